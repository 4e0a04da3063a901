package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"forge/learn/impact"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/store"
)

// Covers L4: with one model for all roles a small run is looked back at in fewer words,
// and runs that are too small alone are looked back at together, for at most a tenth of
// what they cost; and where what looks back taught was of no use, for a quarter of that.
func TestSmallRunsAreLookedBackAt(t *testing.T) {
	t.Parallel()
	const answer = "-- reflector */* --\n@usage input=900 output=60\n" +
		`{"learnings": [{"type": "semantic", "content": "A fact of %s.", "confidence": 0.5, "stands": "fact"}]}` + "\n"
	for name, tc := range map[string]struct {
		cost int64 // of each run, in micro-dollars
		runs int
		past int    // learnings from looks back that runs were given before
		used int    // of them
		by   string // the model that had looked; "": another key
		want []int  // learnings of each run's look back; -1: it waits for the next
	}{
		"alone":           {600_000, 2, 0, 0, "", []int{1, 1}},
		"shorter":         {250_000, 2, 0, 0, "", []int{1, 1}},
		"together":        {60_000, 8, 0, 0, "", []int{-1, -1, -1, 1, -1, -1, -1, 1}},
		"nothing":         {0, 3, 0, 0, "", []int{-1, -1, -1}},
		"of use":          {250_000, 1, 25, 5, "", []int{1}},
		"of no use":       {250_000, 1, 25, 0, "", []int{-1}},
		"model of no use": {250_000, 1, 25, 0, "anthropic/claude-opus-5-5", []int{-1}},
		"another model":   {250_000, 1, 25, 0, "openai/gone", []int{1}},
		"too few":         {250_000, 1, 19, 0, "", []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tape, err := agent.ReadTape([]byte(fmt.Sprintf(strings.ReplaceAll(answer, "*/*", "*/1"), name)))
			if err != nil {
				t.Fatal(err)
			}
			m, run := bare(t, tape)
			model := func(string) (agent.Model, error) { return tape, nil }
			if m.o.Reflector, err = agent.New(agent.Options{Models: map[config.Role]string{"": "anthropic/claude-opus-5-5"}, Open: model}); err != nil {
				t.Fatal(err)
			}
			for i := range tc.past {
				key := fmt.Sprintf("reflection:t%d/run_ended#1", i)
				if tc.by != "" {
					key = impact.LookKey(fmt.Sprint("t", i), "errors", tc.by) + "#1"
				}
				l := pipeline.Learning{Key: key, Scope: "repo:acme/other", Type: pipeline.LearningSemantic,
					Content: fmt.Sprint("Fact ", i), Source: pipeline.SourceReflection, Weight: 1, Base: 0.5, Created: m.o.Now()}
				err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					ids, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
					if err != nil {
						return err
					}
					r := pipeline.Recall{Phase: pipeline.PhasePlan, Iteration: 1, Role: config.RolePlanner, Given: ids}
					if i < tc.used {
						r.Used = ids
					}
					return m.o.DB.RecordRecall(ctx, tx, run.ID, r, m.o.Now())
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			var spent, cost int64
			for i := range tc.runs {
				if i > 0 {
					start := pipeline.Start{Repo: run.Repo, Task: pipeline.Task{Issue: i + 1, Title: fmt.Sprint("Task ", i+1)}, Config: config.Default(),
						Base: "b", Branch: fmt.Sprint("forge/", i)}
					if run, err = m.o.DB.CreateRun(t.Context(), fmt.Sprint("k", i), start, m.o.Now(), fmt.Sprintf("%032d", i), nil); err != nil {
						t.Fatal(err)
					}
				}
				step := pipeline.Step{Phase: pipeline.PhaseImplement, Number: 1, Usage: pipeline.Usage{Calls: 1, MicroUSD: tc.cost}}
				err := m.o.Record(t.Context(), run.ID, []pipeline.Event{
					{ID: fmt.Sprint("s", i), Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &step}},
					{ID: fmt.Sprint("c", i), Type: pipeline.EventRunCancelled, Data: pipeline.Data{Note: "enough"}},
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.RunEnded(t.Context(), run.ID); err != nil {
					t.Fatal(err)
				}
				list, err := m.o.DB.Reflections(t.Context(), run.ID)
				if err != nil || len(list) != 1 {
					t.Fatalf("run %d: %+v, %v", i+1, list, err)
				}
				r := list[0]
				if waits := strings.HasSuffix(r.Refused, gatherLater); waits != (tc.want[i] < 0) || !waits && (len(r.Learnings) != tc.want[i] || r.Refused != "") {
					t.Fatalf("run %d: %+v, want %d learnings", i+1, r, tc.want[i])
				}
				cost += tc.cost
				if spent += r.Usage.MicroUSD; spent*10 > cost {
					t.Fatalf("run %d: %d of %d are spent on looking back", i+1, spent, cost)
				}
			}
		})
	}
}
