package learn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"forge/pipeline"
)

// unrelated are findings, and learnings of the same file and category, of which neither says
// anything about the other.
var unrelated = []struct {
	finding, learning string
	stand             Stand
}{
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "`sigmaCalc1` returns 1 when the total is over 101.", StandFact},
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "The function sigmaCalc1 in lib adds the unit price.", StandFact},
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "Run `npm run deploy` after every change.", StandHow},
	{"`psiCalc3` should log overflow before it adds.", "`psiCalc0` should split the sum before it adds.", StandAsk},
	{"`psiCalc3` should log overflow before it adds.", "`psiCalc3` should freeze its value.", StandAsk},
	{"The retry has no limit", "Retries of the client wait 30 seconds.", StandFact},
	{"loadConfig reads the file twice", "loadConfig reads settings in tests.", StandFact},
}

// What a finding says nothing about is moved by nothing that becomes of it, in whatever
// file it is: neither by a dismissal, nor by a suggestion that was applied or left out.
func TestEvidenceIsAboutTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range unrelated {
		l := learning("l", c.learning, func(l *pipeline.Learning) {
			l.Category, l.Paths, l.Tags = "style", []string{"a.go"}, []string{c.stand.Tag()}
		})
		for _, k := range []pipeline.SignalKind{pipeline.SignalDismissed, pipeline.SignalRefused, pipeline.SignalApplied, pipeline.SignalIgnored, pipeline.SignalFixedByHuman} {
			s := dismissing(c.finding, "won't fix", 0)
			s.Kind = k
			if e, ok := EvidenceFrom(s, &l); ok {
				t.Errorf("%q is %s, and %q (%s) gets %+.2f: %s", c.finding, k, c.learning, c.stand, e.Delta, e.Why)
			}
		}
	}
}

// How a person rewrote one suggestion is not told by what became of others of its file; what
// became of those of its rule there is.
func TestRewritesStandForThemselves(t *testing.T) {
	t.Parallel()
	about := func(n int, message, rule string, kind pipeline.SignalKind) pipeline.Signal {
		s := dismissing(message, "Won't fix", n)
		s.About.Category, s.About.Rule, s.Kind = "correctness", rule, kind
		s.About.File, s.File = "lib/psi.js", "lib/psi.js"
		return s
	}
	own := about(0, "`psiCalc0` should split the sum before it adds.", "split-the-sum", pipeline.SignalRewritten)
	own.Before, own.After, own.Actor = "const a = 1;\nconst b = a;", "const x = 1;\nconst b = x + 0;", pipeline.Actor{ID: 1}
	for _, c := range []struct {
		name string
		s    pipeline.Signal
		want float64 // of either learning
	}{
		{"another was dismissed", about(1, "`psiCalc3` should log overflow before it adds.", "log-overflow", pipeline.SignalDismissed), 0},
		{"another was left out", about(1, "`psiCalc4` should guard zero before it adds.", "guard-zero", pipeline.SignalIgnored), 0},
		{"one of the rule was dismissed", about(1, "Split it: `psiCalc7` sums twice.", "split-the-sum", pipeline.SignalDismissed), dismissedDelta},
		{"one of the rule was applied", about(1, "Split it: `psiCalc7` sums twice.", "split-the-sum", pipeline.SignalApplied), appliedDelta},
	} {
		born := LearningsFrom(own)
		if len(born) != 2 {
			t.Fatalf("a rewrite bears %+v", born)
		}
		for i := range born {
			if e, _ := EvidenceFrom(c.s, &born[i]); e.Delta != c.want {
				t.Errorf("%s: %s gets %+.2f (%s), want %+.2f", c.name, born[i].Key, e.Delta, e.Why, c.want)
			}
		}
	}
}

// A suggestion that was applied says of both sides what it says: it raises what asks for
// it, whatever that was learnt from, and lowers what is against it.
func TestAppliedIsForAndAgainst(t *testing.T) {
	t.Parallel()
	const finding = "`sigmaCalc3` has no JSDoc comment; functions in lib need one that names the unit."
	for _, c := range []struct {
		content string
		stand   Stand
		want    float64 // when it was applied; a dismissal is as much against it as for the others
	}{
		{"Functions in lib need a JSDoc comment that names the unit.", StandAsk, appliedDelta},
		{"Do not forget a JSDoc comment on functions in lib.", StandAsk, appliedDelta},
		{"Functions in lib need no JSDoc comment.", StandAvoid, -appliedDelta},
	} {
		l := learning("l", c.content, func(l *pipeline.Learning) { l.Category, l.Tags = "style", []string{c.stand.Tag()} })
		s := dismissing(finding, "Won't fix", 0)
		dismissed, _ := EvidenceFrom(s, &l)
		s.Kind = pipeline.SignalApplied
		applied, _ := EvidenceFrom(s, &l)
		if applied.Delta != c.want || (dismissed.Delta < 0) != (c.want > 0) || dismissed.Delta == 0 {
			t.Errorf("%q: applied %+.2f, dismissed %+.2f; want %+.2f, and the other way round", c.content, applied.Delta, dismissed.Delta, c.want)
		}
	}
}

func dismissing(finding, reason string, n int) pipeline.Signal {
	f := pipeline.Finding{Category: "style", Message: finding, File: "a.go"}
	return pipeline.Signal{Key: fmt.Sprint("dismissed/", n), Kind: pipeline.SignalDismissed, Scope: scope, At: day(float64(n + 1)), Weight: 1,
		Text: reason, File: f.File, About: &f}
}

// Covers H1: what agrees with a dismissal is not punished for it, what wants what was dismissed is,
// and of a fact, which wants nothing, nothing is known.
func TestEvidenceHasADirection(t *testing.T) {
	t.Parallel()
	for want, l := range map[float64]pipeline.Learning{
		+appliedDelta:  learning("l", "Missing docstring remarks are dismissed by this team.", func(l *pipeline.Learning) { l.Tags = []string{StandAvoid.Tag()} }),
		dismissedDelta: learning("l", "Add a docstring where one is missing.", func(l *pipeline.Learning) { l.Type = pipeline.LearningProcedural }),
		0:              learning("l", "A missing docstring does not break the build.", func(l *pipeline.Learning) { l.Source = pipeline.SourceHuman }),
	} {
		l.Category = "style"
		if e, ok := EvidenceFrom(dismissing("Missing docstring", "not wanted", 0), &l); ok != (want != 0) || e.Delta != want {
			t.Errorf("%q gets %+v, want %v", l.Content, e, want)
		}
	}
}

func TestStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		change  func(*pipeline.Learning)
		want    Stand
	}{
		{"Flag every missing timeout.", nil, StandFact}, // nobody has said what it stands for
		{"The flag --json prints JSON.", nil, StandFact},
		{"The request has a timeout.", nil, StandFact},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Type = pipeline.LearningProcedural }, StandHow},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Tags = []string{"go", StandAvoid.Tag()} }, StandAvoid},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Tags = []string{"stands:nothing"} }, StandFact},
		{"whatever", func(l *pipeline.Learning) { l.Source = pipeline.SourceGap }, StandAsk},
		{"Do not ask for it.", func(l *pipeline.Learning) { l.Tags = []string{StandAsk.Tag()} }, StandAsk},
	} {
		l := learning("l", c.content)
		if c.change != nil {
			c.change(&l)
		}
		if got := Stands(&l); got != c.want {
			t.Errorf("%q %v stands for %s, want %s", c.content, l.Tags, got, c.want)
		}
	}
}

// Covers H1 and lessons 3: clicks without a word, however many, take no more than one
// dismissal with a reason.
func TestSilenceIsWeak(t *testing.T) {
	t.Parallel()
	m := NewMemory(learning("l", "Wrap every returned error with its operation.",
		func(l *pipeline.Learning) { l.Type, l.Category, l.Base = pipeline.LearningProcedural, "style", 0.8 }))
	for n := range 8 {
		m.Take(dismissing("The returned error is not wrapped", "", n))
	}
	of := func() pipeline.Learning {
		for _, l := range m.Learnings() {
			if l.Key == "l" {
				return l
			}
		}
		return pipeline.Learning{}
	}
	if l := of(); math.Abs(l.Confidence-0.6) > 1e-9 || l.Against != 8 {
		t.Errorf("after eight clicks: %+v, want a confidence of 0.6", l)
	}
	m.Take(dismissing("The returned error is not wrapped", "the caller does", 9))
	if l := of(); math.Abs(l.Confidence-0.4) > 1e-9 {
		t.Errorf("and after a reason: %v, want 0.4", l.Confidence)
	}
}

// What a person told Forge is theirs to end: dismissals of one pull request, however many,
// take no more from it than one, those of all no more than two, and it is questioned.
func TestPersonsWordIsNotTakenAway(t *testing.T) {
	t.Parallel()
	rule := learning("l", "Reviews must ask for a zero guard before division.",
		func(l *pipeline.Learning) {
			l.ID, l.Source, l.Category, l.Base, l.Tags = 7, pipeline.SourceHuman, "style", 0.9, []string{StandAsk.Tag()}
		})
	after := func(source pipeline.LearningSource, runs int, reasons ...string) pipeline.Learning {
		rule := rule
		if rule.Source = source; source == pipeline.SourceRewrite {
			rule.Author = pipeline.Actor{ID: 3}
		}
		m := NewMemory(rule)
		for n, r := range reasons {
			s := dismissing("There is no zero guard before the division", r, n)
			s.Run = int64(1 + n%runs)
			m.Take(s)
		}
		for _, l := range m.Learnings() {
			if l.Key == "l" {
				return l
			}
		}
		return pipeline.Learning{}
	}
	many := func(reason string) []string { return slices.Repeat([]string{reason}, 8) }
	for _, c := range []struct {
		name       string
		source     pipeline.LearningSource
		runs       int
		reasons    []string
		want       float64
		questioned bool
	}{
		{"one", pipeline.SourceHuman, 1, []string{"we do not want guards"}, 0.7, false},
		{"many in one pull request", pipeline.SourceHuman, 1, many("we do not want guards"), 0.7, true},
		{"many in many", pipeline.SourceHuman, 8, many("we do not want guards"), 0.5, true},
		{"of what Forge taught itself", pipeline.SourceReflection, 1, many("we do not want guards"), 0, false},
		{"of a rewrite", pipeline.SourceRewrite, 1, many("we do not want guards"), 0.7, true},
	} {
		l := after(c.source, c.runs, c.reasons...)
		if math.Abs(l.Confidence-c.want) > 1e-9 {
			t.Errorf("%s: %.2f, want %.2f", c.name, l.Confidence, c.want)
		}
		if got := Questioned([]pipeline.Learning{l}, nil); (len(got) == 1) != c.questioned || c.questioned && got[0].Why == "" {
			t.Errorf("%s: questioned %+v, want %v", c.name, got, c.questioned)
		}
	}
}

// Covers H6: a dismissed suggestion was not applied.
func TestRatesCountDismissed(t *testing.T) {
	t.Parallel()
	text := "x"
	var list []pipeline.Signal
	for n := range 10 {
		s := dismissing("Wrap it", "", n)
		s.Comment = int64(n + 1)
		s.About.Fix = &pipeline.Fix{Replacement: &text}
		if n == 0 {
			s.Kind = pipeline.SignalApplied
		}
		list = append(list, s)
	}
	again := list[3] // refused, and rewritten all the same: one suggestion
	again.Key, again.Kind = "suggestion/4", pipeline.SignalRewritten
	without := dismissing("Another", "", 20) // no suggestion
	got := Rates(append(list, again, without), day(21))
	if len(got) != 1 || got[0].Suggested != 10 || got[0].Applied != 1 || got[0].Rate != 0.1 {
		t.Errorf("%+v, want 1 of 10", got)
	}
}
