package metrics

import (
	"testing"
	"time"

	"forge/pipeline"
)

// Covers R10: bounces count for the folders that a run changes; a finding that a lens alone has
// seen counts as mended where it was fixed. What the general review saw counts for none.
func TestRework(t *testing.T) {
	t.Parallel()
	m := measurer{sums: sums{}, ended: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)}
	for _, files := range [][]string{{"web/a.js", "web/b.js", "go.mod"}, {"api/x/y.go"}} {
		m.run.Iterations = append(m.run.Iterations, pipeline.Iteration{Impl: &pipeline.Implementation{Files: files}})
	}
	m.run.Bounces = make([]pipeline.Bounce, 2)
	issue := func(f string, s pipeline.IssueState) pipeline.Issue {
		return pipeline.Issue{Finding: &pipeline.Finding{Fingerprint: f}, State: s}
	}
	m.run.Findings = []pipeline.Issue{issue("a", pipeline.IssueFixed), issue("b", pipeline.IssueDismissed), issue("c", pipeline.IssueFixed)}
	m.findings = []finding{{fingerprint: "a", lens: "security"}, {fingerprint: "b", lens: "security"}, {fingerprint: "c"},
		{fingerprint: "c", lens: "what a log says"}}
	m.finishRework()
	got := map[string][2]int64{}
	for _, row := range m.sums.rows() {
		got[row.Metric+" "+row.Label] = [2]int64{row.N, row.Total}
	}
	want := map[string][2]int64{"rework web": {1, 2}, "rework .": {1, 2}, "rework api": {1, 2}, "lens_mended security": {2, 1}}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
}
