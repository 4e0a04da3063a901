package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/agent"
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

// What two repositories of an owner have learnt is told in a third that shares, until no two
// confirm it; a repository that does not share neither tells nor is told.
func TestSharing(t *testing.T) {
	m, first := bare(t, nil)
	repo := func(name string, share bool) *pipeline.Run {
		t.Helper()
		cfg := first.Config
		cfg.Learn.Share = share
		run, err := m.o.DB.CreateRun(t.Context(), name, pipeline.Start{Repo: pipeline.Repo{ID: int64(100 + len(name)), Owner: "acme", Name: name},
			Task: pipeline.Task{Issue: 9, Title: "The schema of the database"}, Config: cfg, Base: "b", Branch: "forge/" + name}, m.o.Now(), first.Trace, nil)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	learnt := func(repo, content string) (id int64) {
		t.Helper()
		l := pipeline.Learning{Key: repo + content[:4], Scope: "repo:acme/" + repo, Type: pipeline.LearningProcedural, Content: content,
			Source: pipeline.SourceReflection, Weight: 1, Base: 0.8, Created: m.o.Now()}
		if err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			ids, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			id = ids[0]
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	told := func(run *pipeline.Run) string {
		t.Helper()
		if err := m.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.choose(t.Context(), &agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	repo("one", true)
	repo("three", true)
	repo("private", false)
	asked, silent := repo("asks", true), repo("still_none", false)
	learnt("one", "Run the migrations of the database schema before the integration tests")
	learnt("private", "Run the migrations of the database schema before the integration tests.")
	if got := told(asked); got != "" {
		t.Errorf("one repository that shares is enough:\n%s", got)
	}
	id := learnt("three", "Before the integration tests, run the migrations of the database schema")
	if got := told(asked); strings.Count(got, "migrations") != 1 || !strings.Contains(got, "(0.85, procedural, reflection)") {
		t.Errorf("two repositories have learnt it, and a third is told %q", got)
	}
	if got := told(silent); got != "" {
		t.Errorf("who does not share is told %q", got)
	}
	if err := m.o.DB.ForgetLearning(t.Context(), nil, id, pipeline.Actor{ID: 1, Login: "ann"}, m.o.Now(), "no"); err != nil {
		t.Fatal(err)
	}
	if got := told(asked); got != "" {
		t.Errorf("no two confirm it any more, and a third is told %q", got)
	}
}
