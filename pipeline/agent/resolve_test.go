package agent

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/upstream"
)

// Covers U3: a model cannot name a human as who made a criterion a limitation, nor as who
// decided.
func TestOnlyHumansLimit(t *testing.T) {
	plan, bad := checkPlan([]byte(`{"summary":"x","steps":["y"],"criteria":[{"id":"AC1","text":"z","by":"ann"}],
		"left_out":[{"id":"AC2","text":"q","by":"ann"}]}`))
	if len(bad) > 0 || plan.Criteria[0].By != "" || len(plan.LeftOut) > 0 {
		t.Errorf("plan %+v, %v", plan, bad)
	}
	run := newRun()
	run.State, run.Config.Upstream.Enabled = pipeline.StateRunning, true
	run.Plan = &plan
	run.Upstream = []upstream.Feedback{{ID: "up/1", From: upstream.Implementer, Kind: upstream.Constraint, State: upstream.Resolving,
		Ask: upstream.Ask{About: []string{"AC1"}, Text: "not so"}}}
	const tape = "-- resolve 0/1 --\n>>> submit\nchoice: fix\nwhy: go on\nby: ann\nhuman: true\n"
	a := newAgent(t, "tape:script", tapeModel(t, tape))
	reply, _, err := a.Resolve(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhaseResolve}, newWorkspace(t, nil), &eventLog{}))
	if err != nil || reply.By != "" || reply.Human || reply.Why != "go on" {
		t.Errorf("reply %+v, %v", reply, err)
	}
}

// Covers U2: what is said must be about criteria that there are, and in the task's words;
// with the setting off, nobody is asked for it and nothing is read.
func TestAsks(t *testing.T) {
	run := newRun()
	run.Task.Body, run.Plan = "Export it as **CSV**.", &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "x"}}}
	p := &phase{job: Job{Run: run}}
	args := []byte(`{"constraints":[{"about":["AC9"],"text":"no","severity":"high"},{"about":[],"text":"no","severity":"low"}],
		"uncovered":[{"quote":"as csv","text":"t"},{"quote":"as pdf","text":"t"}]}`)
	var impl pipeline.Implementation
	if bad := p.constrained(args, &impl); bad != nil || impl.Constraints != nil {
		t.Errorf("off: %v, %+v", bad, impl.Constraints)
	}
	if list, bad := p.uncovered(args); list != nil || bad != nil {
		t.Errorf("off: %v, %+v", bad, list)
	}
	run.Config.Upstream.Enabled = true
	bad := strings.Join(p.constrained(args, &impl), "; ")
	if !strings.Contains(bad, `no criterion "AC9"; about is one of plan, AC1`) || !strings.Contains(bad, "number 2 needs about") {
		t.Errorf("constraints: %s", bad)
	}
	if _, bad := p.uncovered(args); len(bad) != 1 || !strings.Contains(bad[0], `"as pdf" does not stand in the task`) {
		t.Errorf("uncovered: %v", bad)
	}
}
