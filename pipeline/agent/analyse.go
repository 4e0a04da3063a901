package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
)

// causes are the root causes of B4.
var causes = []string{"logic", "syntax", "runtime", "flaky", "env"}

var (
	analysisParts = []any{
		"id", typed("string", "The failure's id, such as T1."),
		"cause", oneOf("The root cause.", causes...),
		"analysis", typed("string", "Where the cause is, and how it leads to the failure."),
		"confidence", typed("number", "How sure you are of the cause and the fix, from 0 to 1."),
		"fix?", object(
			"description", typed("string", "The one fix to make."),
			"diff?", typed("string", "The fix as a unified diff."),
		),
	}
	analysisSchema = object("failures", listOf(object(analysisParts...), "Every failure, once."))

	// analysisTold is what a tester submits who may tell that a test and a criterion cannot both hold.
	analysisTold = object("failures", listOf(object(append(slices.Clip(analysisParts), "against?", typed("string",
		"The id of the acceptance criterion, where the test was there before this work and asks for the contrary of it, so that no code can meet both. Empty otherwise."))...),
		"Every failure, once."))
)

// analyse fills in what the tester finds out about the job's failures.
func (p *phase) analyse(ctx context.Context) ([]pipeline.Failure, error) {
	out := slices.Clone(p.job.Failures)
	if len(out) == 0 {
		return out, nil
	}
	w := p.prompt().say("These tests fail. Find out why.").
		task().plan().instructions().mark().notes().comments().tests()
	p.shownChange(ctx, w)
	w.recall().lastFault().data("Test failures", feedback{failures: out}.failureList())
	s := w.spec("tester", roleTester, system("tester"))
	s.tools, s.result = p.examining(), analysisSchema
	var known []string
	if p.job.Run.TakesFeedback() {
		s.result = analysisTold
		for _, c := range p.job.Run.Asks().Criteria {
			known = append(known, c.ID)
		}
	}
	s.accept = func(args json.RawMessage) []string { return checkAnalysis(out, known, args) }
	err := p.converse(ctx, s)
	if err != nil {
		return slices.Clone(p.job.Failures), err
	}
	return out, nil
}

// checkAnalysis reads what the tester submits into failures. Known are the criteria that a test
// may contradict, for the owner to hear of.
func checkAnalysis(failures []pipeline.Failure, known []string, args json.RawMessage) []string {
	var in struct {
		Failures []struct {
			ID         string
			Cause      string
			Analysis   string
			Confidence float64
			Fix        *pipeline.Fix
			Against    string
		}
	}
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	var bad []string
	done := map[string]bool{}
	for _, a := range in.Failures {
		i := slices.IndexFunc(failures, func(f pipeline.Failure) bool { return a.ID == f.Test || a.ID == f.Fingerprint })
		var n int
		if _, err := fmt.Sscanf(a.ID, "T%d", &n); err == nil && n >= 1 && n <= len(failures) {
			i = n - 1
		}
		if i < 0 {
			bad = append(bad, fmt.Sprintf("there is no failure %q", a.ID))
			continue
		}
		id := fmt.Sprintf("T%d", i+1)
		cause := strings.ToLower(strings.TrimSpace(a.Cause))
		switch {
		case done[id]:
			bad = append(bad, fmt.Sprintf("failure %s is answered twice", id))
		case !slices.Contains(causes, cause):
			bad = append(bad, fmt.Sprintf("failure %s: cause %q is not one of %s", id, a.Cause, strings.Join(causes, ", ")))
		case strings.TrimSpace(a.Analysis) == "":
			bad = append(bad, fmt.Sprintf("failure %s: analysis is missing", id))
		case a.Confidence < 0 || a.Confidence > 1:
			bad = append(bad, fmt.Sprintf("failure %s: confidence %v is not within 0 to 1", id, a.Confidence))
		case len(known) > 0 && a.Against != "" && !slices.Contains(known, a.Against):
			bad = append(bad, fmt.Sprintf("failure %s: against %q is not one of %s", id, a.Against, strings.Join(known, ", ")))
		}
		done[id] = true
		f := &failures[i]
		f.Cause, f.Analysis, f.Confidence, f.Fix = cause, strings.TrimSpace(a.Analysis), a.Confidence, a.Fix
		if len(known) > 0 {
			f.Against = a.Against
		}
		if f.Fix != nil {
			f.Fix.Replacement = nil // a failure has no lines that it could replace
			if f.Fix.Description = strings.TrimSpace(f.Fix.Description); f.Fix.Description == "" && f.Fix.Diff == "" {
				f.Fix = nil
			}
		}
	}
	for i, f := range failures {
		if id := fmt.Sprintf("T%d", i+1); !done[id] {
			bad = append(bad, fmt.Sprintf("failure %s (%s) is not answered", id, f.Test))
		}
	}
	return bad
}
