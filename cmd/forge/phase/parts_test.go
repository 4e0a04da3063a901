package phase

import (
	"slices"
	"testing"

	"forge/pipeline"
	"forge/pipeline/module"
)

// Covers V6: what keeps a merge from becoming the head, and what does not.
func TestBroken(t *testing.T) {
	failed := func(test string) pipeline.Failure { return pipeline.Failure{Test: test, Error: "got 1 want 2"} }
	for name, tt := range map[string]struct {
		report   pipeline.TestReport
		baseline *pipeline.TestReport
		open     string // a failure that the run has open
		there    []string
		want     int
	}{
		"nothing":                       {},
		"a test":                        {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, want: 1},
		"one that the run knows":        {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, open: "TestX"},
		"a promise without its side":    {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestPair")}}, there: []string{"a"}},
		"a promise with both":           {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestPair")}}, there: []string{"a", "b"}, want: 1},
		"a suite that does not end":     {report: pipeline.TestReport{Unclean: "exit status 2"}, want: 1},
		"one that did not before, too":  {report: pipeline.TestReport{Unclean: "exit status 2"}, baseline: &pipeline.TestReport{Unclean: "exit status 2"}},
		"one that did end well at base": {report: pipeline.TestReport{Unclean: "exit status 2"}, baseline: &pipeline.TestReport{}, want: 1},
	} {
		run := &pipeline.Run{Baseline: tt.baseline, Plan: &pipeline.Plan{Split: &module.Split{Promises: []module.Promise{{ID: "P1", From: "a", To: []string{"b"}, Probe: "TestPair"}}}}}
		if tt.open != "" {
			f := failed(tt.open)
			run.Failures = []pipeline.Issue{{Failure: &f, State: pipeline.IssueOpen}}
		}
		got := broken(run, tt.report, func(id string) bool { return slices.Contains(tt.there, id) })
		if len(got) != tt.want {
			t.Errorf("%s: %d failures, want %d: %v", name, len(got), tt.want, got)
		}
	}
}
