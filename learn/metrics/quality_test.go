package metrics

import (
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/measure"
)

// A gate that is missed, then met, is a failure of two measures, and has recovered.
func TestGates(t *testing.T) {
	t.Parallel()
	m := measurer{sums: sums{}, ended: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)}
	for _, ok := range []bool{true, false, true} {
		tests := &pipeline.TestReport{Measures: []measure.Result{{Name: "size", OK: ok}, {Name: "lint", OK: false}, {Name: "bench", OK: true}}}
		m.gates(&pipeline.Event{Time: m.ended, Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseTest}, Tests: tests}})
		m.gates(&pipeline.Event{Time: m.ended, Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhasePlan}, Tests: tests}})
	}
	m.finishGates()
	got := map[string][2]int64{}
	for _, row := range m.sums.rows() {
		got[row.Metric+" "+row.Label] = [2]int64{row.N, row.Total}
	}
	for key, want := range map[string][2]int64{
		"quality_failure size": {3, 1}, "quality_failure lint": {3, 3}, "quality_failure bench": {3, 0},
		"quality_recovered size": {1, 1}, "quality_recovered lint": {1, 0}, "quality_recovered bench": {},
	} {
		if got[key] != want {
			t.Errorf("%s: %v, want %v; all: %v", key, got[key], want, got)
		}
	}
}
