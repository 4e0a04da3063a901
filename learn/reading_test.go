package learn

import (
	"slices"
	"strings"
	"testing"

	"forge/learn/nearest"
	"forge/pipeline"
)

// Covers H1: what a model reads as a refusal is weak: it takes nothing from what a person
// said, hides nothing that blocks, and counts half; and words that the code speaks against
// teach nothing.
func TestRefusalsAsRead(t *testing.T) {
	t.Parallel()
	f := pipeline.Finding{Fingerprint: "fp", Category: pipeline.CategoryStyle, Severity: pipeline.SeverityWarning,
		File: "a.go", Code: "x := 1", Message: "The constant needs a name"}
	signal := func(kind pipeline.SignalKind, words string, about pipeline.Finding) pipeline.Signal {
		return pipeline.Signal{Key: "k", Kind: kind, At: day(2), Actor: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1, Finding: about.Fingerprint, File: "a.go",
			Before: about.Code, Text: words, Scope: scope, About: &about}
	}
	known := func(source pipeline.LearningSource, author pipeline.Actor) pipeline.Learning {
		return pipeline.Learning{ID: 1, Key: "l", Scope: scope, Source: source, Author: author, Type: pipeline.LearningProcedural, Category: pipeline.CategoryStyle,
			Content: "Always give a constant a name", Created: day(1), Weight: 1, Base: 0.8, State: pipeline.LearningActive}
	}
	own, theirs := known(pipeline.SourceReflection, pipeline.Actor{}), known(pipeline.SourceHuman, pipeline.Actor{ID: 2, Login: "bob"})
	plain, read := signal(pipeline.SignalDismissed, "We do not do that.", f), signal(pipeline.SignalRefused, "Three people would read it.", f)
	unsure := plain
	unsure.Unsure = true
	for name, tc := range map[string]struct {
		signal  pipeline.Signal
		learns  float64 // confidence of the learning that it bears; 0: none
		own     float64 // what it does to what Forge learnt itself
		theirs  float64 // and to what a person said
		counts  float64 // weight of the decision; 0: none
		quietly bool
	}{
		"plain":  {plain, 0.7, -0.2, -0.2, 1, false},
		"read":   {read, 0.5, -0.1, 0, 0.5, true},
		"unsure": {unsure, 0, 0, 0, 0, false},
	} {
		learnings := LearningsFrom(tc.signal)
		if got := len(learnings); got != 0 && learnings[0].Base != tc.learns || (got == 0) != (tc.learns == 0) {
			t.Errorf("%s: it bears %+v", name, learnings)
		}
		for _, l := range []struct {
			of   *pipeline.Learning
			want float64
		}{{&own, tc.own}, {&theirs, tc.theirs}} {
			e, ok := EvidenceFrom(tc.signal, l.of)
			if e.Delta != l.want || ok != (l.want != 0) || ok && strings.HasSuffix(e.Why, "without a reason") != tc.quietly {
				t.Errorf("%s, on what is from %s: %+v, %v; want %v", name, l.of.Source, e, ok, l.want)
			}
		}
		d := nearest.Decisions([]pipeline.Signal{tc.signal})
		if len(d) != 0 && (d[0].Weight != tc.counts || !d[0].Dismissed) || (len(d) == 0) != (tc.counts == 0) {
			t.Errorf("%s: decisions %+v, want weight %v", name, d, tc.counts)
		}
	}
	for severity, held := range map[pipeline.Severity]bool{pipeline.SeverityWarning: true, pipeline.SeverityError: false} {
		same := f
		same.Severity = severity
		memory := LearningsFrom(signal(pipeline.SignalRefused, "Three people would read it.", same))
		_, suppressed := Filter([]pipeline.Finding{same}, memory, nil)
		if (len(suppressed) == 1) != held || held && !strings.HasSuffix(suppressed[0].Why, "as a model reads the answer") {
			t.Errorf("%s: held back %+v", severity, suppressed)
		}
		if !slices.Contains(memory[0].Tags, TagAsRead) || !strings.Contains(memory[0].Content, "as a model reads this answer: Three people") {
			t.Errorf("it bears %+v", memory[0])
		}
	}
}
