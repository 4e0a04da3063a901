package main

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/proof"
)

// Where tests are wanted as proofs, a run's own pages say what shows each criterion, and what
// is not proved, as the pull request does; elsewhere they are as they were.
func TestShowProofs(t *testing.T) {
	t.Parallel()
	for _, mode := range []config.Proofs{"", config.ProofsWarn, config.ProofsRequire} {
		run := &pipeline.Run{ID: 7, Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "adds"}, {ID: "AC2", Text: "says so"}, {ID: "AC3", Text: "stays"}}}}
		run.Config.Loop.Proofs = mode
		run.Iterations = []pipeline.Iteration{{Number: 1, Tests: &pipeline.TestReport{Total: 1, Passed: 1, Names: []string{"m.TestAdd"}},
			Impl: &pipeline.Implementation{Head: "1a2b3c4d5e", Proofs: []proof.Claim{{Criterion: "AC1", Tests: []string{"TestAdd"}}, {Criterion: "AC2", Tests: []string{"TestGone"}}}}}}
		var show, report strings.Builder
		if err := showRun(&show, run); err != nil {
			t.Fatal(err)
		}
		showReports(&report, run)
		for _, lacks := range []string{"did not run on this head: TestGone", "no test is named that shows it"} {
			if got := strings.Contains(show.String(), "not proved: "+lacks); got != mode.On() {
				t.Errorf("proofs %q: show says %q: %v\n%s", mode, lacks, got, show.String())
			}
			if got := strings.Contains(report.String(), "**not proved**: "+lacks); got != mode.On() {
				t.Errorf("proofs %q: the report says %q: %v\n%s", mode, lacks, got, report.String())
			}
		}
		shown := "AC1: tests: `TestAdd` passed (since 1a2b3c4)"
		for _, out := range []string{show.String(), report.String()} {
			if strings.Contains(out, shown) != mode.On() {
				t.Errorf("proofs %q: it says not %q:\n%s", mode, shown, out)
			}
		}
		if n := strings.Count(show.String(), "not proved"); n > 2 {
			t.Errorf("proofs %q: %d criteria are not proved\n%s", mode, n, show.String())
		}
	}
}
