package agent

import (
	"testing"

	"forge/pipeline"
)

// Covers B3: a criterion that was not met is met when code changed since, or when its
// evidence is a line that is there; writing about it meets nothing.
func TestCriterionIsMetByCode(t *testing.T) {
	run := &pipeline.Run{Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it works"}}}}
	now := func(file string) (string, bool) { return "a\nb\n", file == "calc.py" }
	for _, c := range []struct {
		name        string
		since, code bool
		evidence    string
		want        bool
	}{
		{"code changed", true, true, "test_sub", true},
		{"only notes changed", true, false, "test_sub", false},
		{"only notes changed, and a line is named", true, false, "see calc.py:2", true},
		{"the line is not there", true, false, "see calc.py:7", false},
		{"the file is not there", true, false, "TestDoesNotExistAnywhere nowhere.py:1", false},
		{"nothing changed", false, false, "see calc.py:2", false},
	} {
		f := &pipeline.Finding{Criterion: "AC1", Message: notMet("AC1", "it works"), Fingerprint: "f1"}
		list := []*claim{{issue: &pipeline.Issue{Finding: f}, since: c.since, code: c.code}}
		got := ruleCriteria(run, list, []pipeline.Compliance{{Criterion: "AC1", Met: true, Evidence: c.evidence}}, now)
		if len(got) != 1 || got[0].Verdict != pipeline.VerdictFixed || got[0].Changed != c.want {
			t.Errorf("%s: %+v, want changed %v", c.name, got, c.want)
		}
	}
}
