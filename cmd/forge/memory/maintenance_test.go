package memory

import (
	"context"
	"fmt"
	"log/slog"
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
	t.Parallel()
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
		r := pipeline.Recall{Phase: pipeline.PhaseImplement, Iteration: 1, Role: "implementer", Given: []int64{ids[2], ids[3]}}
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
	var logged strings.Builder
	m.o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	for range 2 {
		if err := m.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := fmt.Sprintf("L%d of repo:acme/greet went into L%d", ids[1], ids[0]); strings.Count(logged.String(), want) != 1 {
		t.Errorf("the log does not say once that %s:\n%s", want, &logged)
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
	t.Parallel()
	m, first := bare(t, nil)
	runs, ids := 0, map[string]int64{}
	repo := func(name string, share bool) *pipeline.Run {
		t.Helper()
		runs++
		if ids[name] == 0 {
			ids[name] = int64(100 + runs)
		}
		cfg := first.Config
		cfg.Learn.Share = share
		run, err := m.o.DB.CreateRun(t.Context(), fmt.Sprint(runs), pipeline.Start{Repo: pipeline.Repo{ID: ids[name], Owner: "acme", Name: name},
			Task: pipeline.Task{Issue: runs, Title: "The schema of the database"}, Config: cfg, Base: "b", Branch: fmt.Sprint("forge/", runs)}, m.o.Now(),
			first.Trace, nil)
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
	id := learnt("one", "Run the migrations of the database schema before the integration tests")
	learnt("private", "Run the migrations of the database schema before the integration tests.")
	if got := told(asked); got != "" {
		t.Errorf("one repository that shares is enough:\n%s", got)
	}
	learnt("three", "Before the integration tests, run the migrations of the database schema")
	if got := told(asked); strings.Count(got, "migrations") != 1 || !strings.Contains(got, "(0.85, procedural, reflection)") {
		t.Errorf("two repositories have learnt it, and a third is told %q", got)
	}
	if got := told(silent); got != "" {
		t.Errorf("who does not share is told %q", got)
	}
	if got := told(repo("one", true)); strings.Count(got, "migrations") != 1 {
		t.Errorf("who has learnt it, too, is told %q", got)
	}
	learnt("four", "Run the migrations of the database schema before the integration tests.")
	repo("four", true)
	if got := told(asked); !strings.Contains(got, "(0.90, procedural, reflection)") {
		t.Errorf("a third repository confirms it, and another is told %q", got)
	}
	for _, share := range []bool{false, true} { // what ended is told again once two confirm it
		repo("one", share)
		repo("four", share)
		if got := told(asked); (got != "") != share {
			t.Errorf("shared by one and four: %v, and another is told %q", share, got)
		}
	}
	forget := func(id int64) {
		t.Helper()
		if err := m.o.DB.ForgetLearning(t.Context(), nil, id, pipeline.Actor{ID: 1, Login: "ann"}, m.o.Now(), "no"); err != nil {
			t.Fatal(err)
		}
	}
	forget(id)
	if got := told(asked); got == "" {
		t.Error("two others confirm it still, and another is not told")
	}
	shared, err := m.o.DB.Learnings(t.Context(), store.MemoryFilter{Scopes: []string{"org:acme"}, States: []pipeline.LearningState{"*"}})
	if err != nil || len(shared) != 1 {
		t.Fatalf("%d learnings of the owner, want 1 (%v): %+v", len(shared), err, shared)
	}
	forget(shared[0].ID)
	learnt("asks", "Run the migrations of the database schema before integration tests")
	if got := told(repo("five", true)); got != "" {
		t.Errorf("it is forgotten, and told under another key: %q", got)
	}
}

// Each run that teaches the same confirms it, up to so many runs over all.
func TestTaughtByMany(t *testing.T) {
	t.Parallel()
	m, _ := bare(t, nil)
	for run := range int64(8) {
		l := pipeline.Learning{Key: fmt.Sprint(run), Scope: "repo:acme/greet", Type: pipeline.LearningProcedural,
			Content: "Run make generate after you change a schema file.", Source: pipeline.SourceReflection, Weight: 1, Base: 0.5, Run: run + 1, Created: m.o.Now()}
		if err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := m.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := m.o.DB.Learnings(t.Context(), store.MemoryFilter{})
	if err != nil || len(list) != 1 || list[0].Confidence != 0.7 {
		t.Errorf("%+v (%v), want one with the confidence 0.7", list, err)
	}
}
