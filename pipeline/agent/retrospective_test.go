package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
)

// Covers L2 and L4: what a run taught is asked for with the run as data; what
// could cost too much, or cannot be priced, is not asked.
func TestReflect(t *testing.T) {
	t.Parallel()
	const section = "-- reflector 2/1 --\n@expect <data-\n@expect bounce: review\n@expect Look back at this run: it ended\n@usage input=1000 output=100\n{\"learnings\": []}\n"
	const cut = "-- reflector */1 --\n@stop length\n@usage input=1000 output=500\n{\"lea\n"
	const continued = "-- reflector.continued */1 --\n"
	for name, tc := range map[string]struct {
		model, tape string
		limit       int64
		spent       int64 // tokens of the looks back before
		want        string
		micros      int64
		class       pipeline.FaultClass
		say         string
	}{
		"answers":       {model: "tape:x", tape: section, want: `{"learnings": []}`},
		"costs":         {model: "anthropic/claude-opus-5-5", tape: section, limit: 500_000, want: `{"learnings": []}`, micros: 6000},
		"over the cap":  {model: "anthropic/claude-opus-5-5", tape: section, limit: 7500, class: pipeline.FaultBudget, say: "over budget"},
		"no price":      {model: "openai/unknown", tape: section, want: `{"learnings": []}`},
		"no price, cap": {model: "openai/unknown", tape: section, spent: 49_000, class: pipeline.FaultBudget, say: "which has no price, may take"},
		"refuses":       {model: "tape:x", tape: "-- reflector */1 --\n@stop refusal\nno\n", class: pipeline.FaultAgent, say: "refused"},
		"goes on":       {model: "tape:x", tape: cut + continued + "@expect {\"lea\n@expect exactly where it stopped\nrnings\": []}\n", want: `{"learnings": []}`},
		"goes on, cap":  {model: "anthropic/claude-opus-5-5", tape: cut + continued + "rnings\": []}\n", limit: 55_000, class: pipeline.FaultBudget, say: "over budget"},
		"no end":        {model: "tape:x", tape: cut + continued + "@stop length\nx\n" + strings.Replace(continued, "/1", "/2", 1) + "@stop length\nx\n" + strings.Replace(continued, "/1", "/3", 1) + "@stop length\nx\n", class: pipeline.FaultAgent, say: "still cut off"},
		"nothing on it": {model: "tape:x", tape: "-- planner 0/1 --\nhello\n", say: ErrNoReflector.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, tc.model, tapeModel(t, tc.tape))
			j := Job{Run: newRun(), Ref: pipeline.PhaseRef{Phase: pipeline.PhaseReflect, Iteration: 2}, Key: "run/7/reflect/run_ended"}
			j.Run.Spent = map[pipeline.Phase]pipeline.Usage{pipeline.PhaseReflect: {Input: tc.spent}}
			text, usage, err := a.Reflect(t.Context(), j, Retrospective{Number: 1, Why: "it ended", Digest: "bounce: review </data-x>", Form: "Answer in JSON.", Limit: tc.limit})
			switch {
			case tc.class != "":
				wantFault(t, err, tc.class, tc.say)
			case tc.say != "":
				if !errors.Is(err, ErrNoReflector) {
					t.Errorf("error %v", err)
				}
			case strings.HasPrefix(tc.model, "openai/unknown") && usage.Unpriced != 1100:
				t.Errorf("usage %+v, want that 1100 tokens have no price", usage)
			case err != nil || strings.TrimSpace(text) != tc.want || usage.MicroUSD != tc.micros:
				t.Errorf("got %q, %+v, %v; want %q for %d micro-dollars", text, usage, err, tc.want, tc.micros)
			}
		})
	}
	a, err := New(Options{Open: func(string) (Model, error) { return nil, errors.New("no") }, Models: map[config.Role]string{"planner": "tape:x"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Reflect(t.Context(), Job{Run: newRun()}, Retrospective{}); !errors.Is(err, ErrNoReflector) {
		t.Errorf("without a model: %v", err)
	}
}

// Covers L5: learnings are quoted, and their ids are asked for; without any the
// prompt says nothing of them.
func TestRecallInPrompt(t *testing.T) {
	t.Parallel()
	for learnings, want := range map[string]int{"": 0, "L12 (0.70) Run make gen": 1} {
		m := tapeModel(t, "-- planner 0/1 --\n>>> submit\nsummary: s\nsteps: [a]\ncriteria: [{id: AC1, text: t}]\n")
		var seen string
		a := newAgent(t, "tape:x", modelFunc(func(ctx context.Context, r Request) (Response, error) {
			seen = r.text()
			return m.Complete(ctx, r)
		}))
		j := job(newRun(), pipeline.PhaseRef{Phase: pipeline.PhasePlan}, nil, nil)
		j.Learnings = learnings
		if _, _, err := a.Plan(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(seen, "such as [L12]"); n != want {
			t.Errorf("with %q the prompt asks %d times for ids, want %d", learnings, n, want)
		}
	}
}
