package memory

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers lessons 20: what says the same is merged, what made runs worse is retired,
// and neither is recalled any more.
func TestMaintain(t *testing.T) {
	m, first := bare(t, nil)
	var ids []int64
	tx := func(fn func(context.Context, *store.Tx) error) {
		t.Helper()
		if err := m.o.DB.Tx(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []string{"Run make generate after you change a schema file.",
		"Run make generate after you change a schema file, always.", "Skip the linter to save time.", "Names of tests begin with Test."} {
		l := pipeline.Learning{Key: fmt.Sprint(i), Scope: "repo:acme/greet", Type: pipeline.LearningProcedural, Content: text,
			Source: "reflection", Weight: 1, Base: 0.9 - float64(i)/10, Created: m.o.Now()}
		tx(func(ctx context.Context, tx *store.Tx) error {
			got, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			ids = append(ids, got...)
			return err
		})
	}
	for i := range 80 {
		run, err := m.o.DB.CreateRun(t.Context(), fmt.Sprint("run", i),
			pipeline.Start{Repo: first.Repo, Task: pipeline.Task{Issue: i + 2}, Config: first.Config, Base: "b", Branch: fmt.Sprint("forge/", i)},
			m.o.Now(), first.Trace, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 1, Role: "reviewer", Given: []int64{ids[2], ids[3]}}
		if i%2 == 0 {
			r.Given, r.Withheld = ids[3:], ids[2:3]
		}
		tx(func(ctx context.Context, tx *store.Tx) error {
			if err := m.o.DB.RecordRecall(ctx, tx, run.ID, r, m.o.Now()); err != nil {
				return err
			}
			return m.o.DB.PutOutcome(ctx, tx, record.Outcome{Run: run.ID, FirstPass: i%2 == 0, At: m.o.Now()})
		})
	}
	for range 2 {
		if err := m.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := m.o.DB.Learnings(t.Context(), store.MemoryFilter{States: []pipeline.LearningState{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, l := range list {
		states[l.Key] = string(l.State)
	}
	if diff := cmp.Diff(map[string]string{"0": "active", "1": "merged", "2": "retired", "3": "active"}, states); diff != "" {
		t.Errorf("the memory (-want +got):\n%s", diff)
	}
	if n := m.index.Len(); n != 2 {
		t.Errorf("%d can be recalled, want 2", n)
	}
}
