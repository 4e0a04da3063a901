package agent

import (
	"testing"

	"forge/pipeline"
)

// Covers B3: a criterion that was not met is met when code changed since, or the
// writing that its evidence names; where it is disputed, a line that is there shows it.
func TestCriterionIsMetByCode(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it works"}}}}
	now := func(file string) (string, bool) { return "a\nb\n", file == "calc.py" }
	for _, c := range []struct {
		name        string
		since, code bool
		prose       []string
		dispute     string
		evidence    string
		want        pipeline.Verdict
		changed     bool
	}{
		{"code changed", true, true, nil, "", "test_sub", "fixed", true},
		{"only notes changed", true, false, []string{"README.md"}, "", "test_sub", "fixed", false},
		{"only notes changed, and a line of the code is named", true, false, []string{"README.md"}, "", "see calc.py:2", "fixed", false},
		{"notes changed, and they are named", true, false, []string{"README.md"}, "", "README.md says it", "fixed", true},
		{"nothing of effect changed", true, false, nil, "", "see calc.py:2", "fixed", false},
		{"nothing changed, and it is disputed", false, false, nil, "calc.py:2 does it", "see calc.py:2", "withdrawn", false},
		{"it is disputed, and the line is not there", false, false, nil, "it is met", "see calc.py:7", "fixed", false},
		{"it is disputed, and the file is not there", true, false, nil, "it is met", "TestDoesNotExistAnywhere nowhere.py:1", "fixed", false},
	} {
		f := &pipeline.Finding{Criterion: "AC1", Message: notMet("AC1", "it works"), Fingerprint: "f1"}
		list := []*claim{{issue: &pipeline.Issue{Finding: f, Disputed: c.dispute}, since: c.since, code: c.code, prose: c.prose}}
		got := ruleCriteria(run, list, []pipeline.Compliance{{Criterion: "AC1", Met: true, Evidence: c.evidence}}, now)
		if len(got) != 1 || got[0].Verdict != c.want || got[0].Changed != c.changed {
			t.Errorf("%s: %+v, want %s, changed %v", c.name, got, c.want, c.changed)
		}
	}
}
