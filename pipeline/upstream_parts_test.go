package pipeline_test

import (
	"slices"
	"testing"

	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"

	. "forge/pipeline"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Covers U1: what is decided of a module's constraint stands in the plan and in the split of
// the run that planned it, and in the plan of the module; a person is asked by the first alone,
// also where the module says the same once more.
func TestDecisionsForModules(t *testing.T) {
	t.Parallel()
	cfg := listening()
	cfg.Modules = config.Modules{Mode: "auto", Max: 6, Parallel: 3, Iterations: 3, Rounds: 2}
	begin := "plan split a, b; unwired\npart a: plan given\npart b: plan given\npart b: implement half constraint blocking "
	type state struct{ Steps, Criteria []string }
	of := func(p *Plan) (s state) {
		s.Steps = p.Steps
		for _, c := range p.Criteria {
			s.Criteria = append(s.Criteria, c.ID)
		}
		return s
	}
	for _, c := range []struct {
		script string
		module state // in the split of the parent, and in the module's own plan
		whole  state // the parent's plan
	}{
		{"plan: it is too slow\nresolve design other steps", state{[]string{"other steps"}, []string{"AC-b"}}, state{[]string{"one"}, []string{"AC1", "AC-a", "AC-b"}}},
		{"AC-b: no sockets\nresolve limit AC-b\nhuman choose a", state{[]string{"one"}, nil}, state{[]string{"one"}, []string{"AC1", "AC-a"}}},
		{"plan: Sum is not named\nresolve add Sum is wrong (Sum is wrong)", state{[]string{"one"}, []string{"AC-b", "AC2"}}, state{[]string{"one"}, []string{"AC1", "AC-a", "AC-b", "AC2"}}},
		{"AC-b: no sockets\nresolve fix poll\npart b: implement half constraint blocking AC-b: there are no sockets\nhuman choose poll",
			state{[]string{"one"}, []string{"AC-b"}}, state{[]string{"one"}, []string{"AC1", "AC-a", "AC-b"}}},
	} {
		p := pipelinetest.New(cfg, Task{Issue: 1, Title: "Sum", Body: "Sum is wrong."})
		if err := p.Play(begin + c.script); err != nil {
			t.Fatalf("%s: %v", c.script, err)
		}
		p.Busy()
		m, child := p.Run.Plan.Split.Module("b"), &p.Parts["b"].Run
		if d := cmp.Diff(c.module, state{m.Steps, slices.Clip(m.Criteria)}, sameEmpty); d != "" {
			t.Errorf("%s: the split (-want +got):\n%s", c.script, d)
		}
		if d := cmp.Diff(c.module, of(child.Plan), sameEmpty); d != "" {
			t.Errorf("%s: the module's plan (-want +got):\n%s", c.script, d)
		}
		if d := cmp.Diff(c.whole, of(p.Run.Plan), sameEmpty); d != "" {
			t.Errorf("%s: the plan (-want +got):\n%s", c.script, d)
		}
		if child.Feedback() != nil || len(child.Gates) > 0 || p.Run.Feedback() != nil {
			t.Errorf("%s: open %+v, %+v; the module asked %+v", c.script, child.Feedback(), p.Run.Feedback(), child.Gates)
		}
	}
}

// sameEmpty takes a list without entries for none.
var sameEmpty = cmpopts.EquateEmpty()
