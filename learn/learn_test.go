package learn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// Covers I3, against figures worked out by hand.
func TestMeasure(t *testing.T) {
	t.Parallel()
	step := func(p pipeline.Phase, n int, usd int64) pipeline.Event {
		return pipeline.Event{Type: pipeline.EventAgentIteration,
			Data: pipeline.Data{Step: &pipeline.Step{Phase: p, Iteration: 1, Number: n, Usage: pipeline.Usage{MicroUSD: usd}}}}
	}
	tool := func(n int, name string, ok bool, ms int64) pipeline.Event {
		return pipeline.Event{Type: pipeline.EventToolExecuted,
			Data: pipeline.Data{Tool: &pipeline.ToolUse{Phase: pipeline.PhaseImplement, Iteration: 1, Step: n, Tool: name, OK: ok, Millis: ms}}}
	}
	done := func(p pipeline.Phase, ms int64) pipeline.Event {
		return pipeline.Event{Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: p, Iteration: 1, Millis: ms}}}
	}
	got := Measure([]pipeline.Event{
		step(pipeline.PhasePlan, 1, 50), done(pipeline.PhasePlan, 900),
		tool(1, "read", true, 2), tool(1, "edit", false, 4), step(pipeline.PhaseImplement, 1, 100), // tools may be told before their turn
		step(pipeline.PhaseImplement, 2, 30), tool(2, "edit", true, 6), done(pipeline.PhaseImplement, 2000),
		{Type: pipeline.EventRunVerified},
	})
	want := InnerLoop{
		Phases: []Phase{{Name: "plan", Runs: 1, Turns: 1, Millis: 900, MicroUSD: 50}, {Name: "implement", Runs: 1, Turns: 2, Millis: 2000, MicroUSD: 130}},
		Tools:  []Tool{{Name: "edit", Calls: 2, Success: 0.5, MeanMS: 5, MicroUSD: 40}, {Name: "read", Calls: 1, Success: 1, MeanMS: 2, MicroUSD: 50}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Measure(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(InnerLoop{Phases: []Phase{}, Tools: []Tool{}}, Measure(nil)); diff != "" {
		t.Errorf("Measure of nothing(-want +got):\n%s", diff)
	}
}
