package agent

import (
	"testing"

	"forge/pipeline"
)

// Covers B3, T8: a criterion that was not met is met once something was committed since; where
// nothing was, a dispute that is right withdraws it.
func TestCriterionIsMet(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it works"}}}}
	for _, c := range []struct {
		name       string
		since, met bool
		dispute    string
		want       pipeline.Verdict
		changed    bool
	}{
		{"committed since", true, true, "", "fixed", true},
		{"nothing was committed", false, true, "", "fixed", false},
		{"nothing was committed, and it is disputed", false, true, "calc.py:2 does it", "withdrawn", false},
		{"not met", true, false, "", "open", true},
	} {
		f := &pipeline.Finding{Criterion: "AC1", Message: notMet("AC1", "it works"), Fingerprint: "f1"}
		list := []*claim{{issue: &pipeline.Issue{Finding: f, Disputed: c.dispute}, since: c.since}}
		got := ruleCriteria(run, list, []pipeline.Compliance{{Criterion: "AC1", Met: c.met, Evidence: "calc.py:2"}})
		if len(got) != 1 || got[0].Verdict != c.want || got[0].Changed != c.changed {
			t.Errorf("%s: %+v, want %s, changed %v", c.name, got, c.want, c.changed)
		}
	}
}
