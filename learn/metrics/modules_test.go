package metrics

import (
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// V6: three modules of ten minutes, c after a: thirty minutes of work in twenty-five, of
// which five nobody could go on before a person answered; b conflicts once, and d is left out.
func TestModules(t *testing.T) {
	t.Parallel()
	g := newTeller(func(int) int { return 0 }, "acme/shop", start, 1)
	plan := &pipeline.Plan{Summary: "three", Split: &module.Split{Modules: []module.Module{{ID: "a"}, {ID: "b"}, {ID: "c", Needs: []string{"a"}}, {ID: "d"}}}}
	ref := &pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
	g.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: ref})
	g.add(pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref, Plan: plan})
	after := func(minutes int) { g.now = g.now.Add(time.Duration(minutes) * time.Minute) }
	part := func(typ pipeline.EventType, p module.Part) {
		p.Rev = int64(len(g.events))
		g.add(typ, pipeline.Data{Part: &p})
	}
	merge := func(id string, conflicts ...string) {
		ref := &pipeline.PhaseRef{Phase: pipeline.PhaseMerge, Part: id, Attempt: g.run.Attempts["0/merge/"+id] + 1}
		g.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: ref})
		g.add(pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref,
			Update: &pipeline.Update{Base: "of-" + id, Parent: g.run.Head, Head: g.run.Head + id, Conflicts: conflicts}})
	}
	done := func(id string) {
		part(pipeline.EventModuleChanged, module.Part{ID: id, Run: 2, State: "verified", Head: "of-" + id, Millis: 600_000})
	}
	part(pipeline.EventModuleStarted, module.Part{ID: "a", Run: 2, State: "running"})
	part(pipeline.EventModuleStarted, module.Part{ID: "b", Run: 3, State: "running"})
	after(10)
	done("a")
	merge("a")
	done("b")
	merge("b", "x.go")
	part(pipeline.EventModuleChanged, module.Part{ID: "b", Run: 3, State: "waiting", Question: "which?", Millis: 600_000})
	after(5) // nobody works
	done("b")
	merge("b")
	part(pipeline.EventModuleStarted, module.Part{ID: "c", Run: 4, State: "running"})
	after(10)
	done("c")
	merge("c")
	part(pipeline.EventModuleLeft, module.Part{ID: "d", Left: "given up"})
	g.add(pipeline.EventRunCancelled, pipeline.Data{Note: "over"})
	got := map[string][2]int64{}
	for _, r := range Of(g.events) {
		got[r.Metric] = [2]int64{got[r.Metric][0] + r.N, got[r.Metric][1] + r.Total}
	}
	for key, want := range map[string][2]int64{
		ModuleSpeedup: {1, 150}, ModuleCritical: {1, 100}, ModuleConflicts: {4, 1}, ModulesLeftOut: {4, 1}, ModuleRounds: {3, 0},
	} {
		if got[key] != want {
			t.Errorf("%s: %d observations that come to %d, want %v", key, got[key][0], got[key][1], want)
		}
	}
}
