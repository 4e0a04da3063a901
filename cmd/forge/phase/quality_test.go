package phase

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/measure"
	"forge/pipeline/proof"
)

// Covers U1, U4: what is measured is held against the figures that criteria, and the
// requirements behind them, ask for, without a model; the gate's own bound does not matter.
func TestHold(t *testing.T) {
	plan := &pipeline.Plan{
		Criteria: []pipeline.Criterion{{ID: "AC1", Text: "The search answers within 500 ms"}, {ID: "AC2", Text: "The bundle is small", For: "REQ2"},
			{ID: "AC3", Text: "The export answers within 2 s"}},
		Requirements: []proof.Requirement{{ID: "REQ2", Text: "small bundle", Quote: "the bundle must not exceed 500 kB"}},
	}
	for _, c := range []struct {
		m          measure.Result
		misses, by string
	}{
		{measure.Result{Name: "search-p95", Unit: "ms", Value: 720, OK: true}, "AC1", `720 ms measured; AC1 asks for more: "The search answers within 500 ms"`},
		{measure.Result{Name: "search-p95", Unit: "s", Value: 0.72, OK: true, Block: true}, "AC1", "0.72 s measured"},
		{measure.Result{Name: "search-p95", Unit: "ms", Value: 480, OK: true}, "", ""},
		{measure.Result{Name: "search-p95", Unit: "ms", Error: "no value"}, "", ""},
		{measure.Result{Name: "search-p95", Unit: "queries", Value: 720, OK: true}, "", ""},
		{measure.Result{Name: "bundle", Unit: "bytes", Value: 620_000, OK: true}, "AC2", "620 kB measured; AC2 asks for more"},
		{measure.Result{Name: "export", Unit: "ms", Value: 1900, OK: true}, "", ""},
	} {
		report := &pipeline.TestReport{Measures: []measure.Result{c.m}}
		hold(plan, report)
		got := pipeline.Failure{}
		if len(report.Failures) > 0 {
			got = report.Failures[0]
		}
		if got.Misses != c.misses || !strings.Contains(got.Error, c.by) || c.misses != "" && (got.Test != "quality/"+c.m.Name || got.Fingerprint == "") {
			t.Errorf("%+v: %+v, want %q by %q", c.m, report.Failures, c.misses, c.by)
		}
	}
	// A gate that is missed already says it, too: one failure.
	report := &pipeline.TestReport{Measures: []measure.Result{{Name: "search-p95", Unit: "ms", Value: 720}},
		Failures: []pipeline.Failure{{Test: "quality/search-p95", Fingerprint: "x", Error: "720 ms, at most 600 ms"}}}
	hold(plan, report)
	if f := report.Failures; len(f) != 1 || f[0].Misses != "AC1" || f[0].Fingerprint != "x" || !strings.Contains(f[0].Error, "at most 600 ms\n720 ms measured") {
		t.Errorf("missed already: %+v", report.Failures)
	}
}
