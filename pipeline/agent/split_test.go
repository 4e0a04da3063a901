package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
)

// Covers V6, lessons 17: modules that the budget does not reach for would each stop and ask
// before they have done anything: the feature is built in one piece then, and the plan says why.
func TestPoorSplit(t *testing.T) {
	t.Parallel()
	var args strings.Builder
	args.WriteString(`{"modules": [`)
	for i, id := range []string{"a", "b", "c", "d"} {
		fmt.Fprintf(&args, `%s{"id": %q, "title": %[2]q, "summary": "it", "size": "L", "steps": ["it"], "paths": ["%[2]s/**"]}`, strings.Repeat(", ", min(i, 1)), id)
	}
	args.WriteString("]}")
	for name, tt := range map[string]struct {
		model  string
		change func(*pipeline.Run)
		want   string // why there is no split; "" for one
	}{
		"enough":           {"tape:x", func(*pipeline.Run) {}, ""},
		"few tokens":       {"tape:x", func(r *pipeline.Run) { r.Config.Limits.Tokens = 150_000 }, "(limits.tokens) 4 modules would leave the module a 26250 tokens, and two answers of tape:x can take 32000"},
		"no cap on tokens": {"tape:x", func(r *pipeline.Run) { r.Config.Limits.Tokens = 0 }, ""},
		"dear":             {"maker/dear", func(*pipeline.Run) {}, "(limits.cost_usd) 4 modules would leave the module a $1.75, and two answers of maker/dear can cost $2.40"},
		"dear, and raised": {"maker/dear", func(r *pipeline.Run) { r.Counters.Raised = 10e6 }, ""},
		"no tests":         {"tape:x", func(r *pipeline.Run) { r.Baseline = &pipeline.TestReport{None: "no test files"} }, "no test runs here"},
		"dear, spent":      {"maker/dear", func(r *pipeline.Run) { r.Counters.Raised, r.Usage.MicroUSD = 10e6, 15e6 }, "leave the module a $1.25"},
	} {
		a := newAgent(t, tt.model, nil, func(o *Options) { o.Prices = Prices{"maker/dear": {Input: 15, Output: 75}} })
		run := newRun()
		run.Config.Modules = config.Modules{Mode: config.ModulesAuto, Max: 6, Parallel: 4}
		tt.change(run)
		p := &phase{agent: a, job: Job{Run: run}}
		var plan pipeline.Plan
		if bad := p.split(json.RawMessage(args.String()), &plan); len(bad) > 0 {
			t.Fatalf("%s: the split is refused: %q", name, bad)
		}
		if (plan.Split != nil) != (tt.want == "") || !strings.Contains(plan.Unsplit, tt.want) {
			t.Errorf("%s: split is %t, because %q; want %q", name, plan.Split != nil, plan.Unsplit, tt.want)
		}
	}
}

// Covers V6, lessons 17: what modules have spent is spent of the run's own budget.
func TestBudgetOfModules(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "tape:x", nil)
	run := newRun()
	run.Config.Limits.Tokens = 100_000
	run.Parts = []module.Part{{ID: "a", Tokens: 70_000}}
	if _, err := a.phase(Job{Run: run}, pipeline.PhaseImplement).budget.reserve("tape:x", Prices{}, 20_000, 16_000); err == nil {
		t.Error("36,000 of the last 30,000 tokens are given out")
	}
}

// strayWorkspace is one in which a command has changed what belongs to somebody else, until
// it is undone.
type strayWorkspace struct{ *dirWorkspace }

func (w strayWorkspace) Strays(ctx context.Context) error {
	if text, _ := w.Read(ctx, "b/y.go"); string(text) != "1" {
		return errors.New("b/y.go belongs to the module b")
	}
	return nil
}

// Covers V6: what a command has changed of another module is told with the result, and is
// given back by the same attempt.
func TestStrayChangeIsTold(t *testing.T) {
	t.Parallel()
	tape := "-- implementer 1/1 --\n>>> submit\nsummary: Write it\n" +
		"-- implementer 1/2 --\n@expect b/y.go belongs to the module b\n>>> write\npath: b/y.go\ncontent: \"1\"\n" +
		"-- implementer 1/3 --\n>>> submit\nsummary: Write it\n"
	ws := strayWorkspace{newWorkspace(t, map[string]string{"b/y.go": "2"})}
	if _, _, err := newAgent(t, "tape:x", tapeModel(t, tape)).Implement(t.Context(), job(newRun(), implementRef, ws, &eventLog{})); err != nil {
		t.Error(err)
	}
	if got := ws.files(t)["b/y.go"]; got != "1" {
		t.Errorf("b/y.go is left as %q", got)
	}
}
