package store

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/measure"
	"forge/pipeline/record"
)

// kept is what a test looks at of a name.
type kept struct {
	learnings, found, signals, failures, metrics, days, readings, runs int
	paused                                                             bool
}

func keptBy(t *testing.T, d *DB, name string) (k kept) {
	t.Helper()
	ctx := t.Context()
	list, err := d.Learnings(ctx, MemoryFilter{Scopes: []string{record.RepoScope(name)}})
	must(t, err)
	hits, err := d.SearchMemories(ctx, "errors", []string{record.RepoScope(name)}, 5)
	must(t, err)
	signals, err := d.Signals(ctx, record.RepoScope(name))
	must(t, err)
	k.learnings, k.found, k.signals = len(list), len(hits), len(signals)
	for table, n := range map[string]*int{"known_failures": &k.failures, "metric_snapshots": &k.metrics, "metric_days": &k.days, "readings": &k.readings, "runs": &k.runs} {
		must(t, d.SQL().QueryRow(`SELECT count(*) FROM `+table+` WHERE repo = $1`, name).Scan(n))
	}
	k.paused, err = d.Paused(ctx, name)
	must(t, err)
	return k
}

// keepAll keeps something of each kind by the name of a run's repository.
func keepAll(t *testing.T, d *DB, run *pipeline.Run) {
	t.Helper()
	ctx, name := t.Context(), run.Repo.FullName()
	must(t, d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		l := pipeline.Learning{Key: "k", Scope: run.Repo.Scope(), Type: pipeline.LearningSemantic, Category: "style", Content: "Wrap errors with what was done.",
			Source: pipeline.SourceHuman, Author: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1, Base: 0.9, Confidence: 0.9, Created: now, Touched: now, State: pipeline.LearningActive}
		if _, err := d.SaveLearnings(ctx, tx, []pipeline.Learning{l}); err != nil {
			return err
		}
		if _, err := d.PutSignal(ctx, tx, pipeline.Signal{Key: "s", Scope: run.Repo.Scope(), Kind: "resolved", Run: run.ID, At: now}); err != nil {
			return err
		}
		for _, q := range []string{
			`INSERT INTO known_failures (repo, test, login, at, run) VALUES ($1, 'TestOld', 'ann', 1, $2)`,
			`INSERT INTO metric_snapshots (repo, day, metric, label, bucket, n, total, squares) VALUES ($1, 1, 'm', '', 0, 1, 1, $2)`,
		} {
			if _, err := tx.ExecContext(ctx, q, name, run.ID); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO metric_days (repo, day, sums) VALUES ($1, 1, $2)`, name, []byte{1})
		return err
	}))
	must(t, d.KeepReading(ctx, name, "k", &measure.Reading{}, time.Now()))
}

// All that is kept by a name follows the repository, and nothing of another one.
func TestRename(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run, over := begin(t, d, 1), begin(t, d, 2)
		add(t, d, over, ev("end", pipeline.EventRunCancelled, 1, pipeline.Data{}))
		keepAll(t, d, run)
		must(t, d.SetPaused(ctx, Pause{At: now, Actor: "mia", Repo: "acme/site", Paused: true}))
		full := keptBy(t, d, "acme/site")
		want(t, "before", full, kept{1, 1, 1, 1, 1, 1, 1, 2, true})

		to := run.Repo
		to.Name, to.CloneURL, to.Installation, to.DefaultBranch = "store", "https://example.org/acme/store", 9, "other"
		woken := 0
		rename := func(to pipeline.Repo, former string) []pipeline.Event {
			t.Helper()
			told, err := d.Rename(ctx, to, former, now, func(_ context.Context, _ *sql.Tx, r *pipeline.Run) error { woken++; return nil })
			must(t, err)
			return told
		}
		told := rename(to, "")
		want(t, "told, woken", [2]int{len(told), woken}, [2]int{1, 1})
		want(t, "the new name", keptBy(t, d, "acme/store"), full)
		want(t, "the old name", keptBy(t, d, "acme/site"), kept{})
		again, err := d.Load(ctx, run.ID)
		must(t, err)
		want(t, "the run", again.Repo, pipeline.Repo{ID: repoID, Owner: "acme", Name: "store", DefaultBranch: "main", CloneURL: to.CloneURL, Installation: 9})
		want(t, "told again", len(rename(to, "acme/site")), 0)
		want(t, "the new name, told again", keptBy(t, d, "acme/store"), full)
		names, others, err := d.Names(ctx, repoID, "acme/store")
		must(t, err)
		want(t, "names", [2]int{len(names), len(others)}, [2]int{1, 0})

		// Another repository is called as the first one was, and then as it is.
		start := startOf(3)
		start.Repo = pipeline.Repo{ID: 77, Owner: "acme", Name: "site", DefaultBranch: "main", CloneURL: "https://example.org/acme/site"}
		second, err := d.CreateRun(ctx, "start/3", start, now, trace, nil)
		must(t, err)
		want(t, "what the second inherits", keptBy(t, d, "acme/site"), kept{runs: 1})
		keepAll(t, d, second)
		_, others, err = d.Names(ctx, 77, "acme/store")
		must(t, err)
		want(t, "others", len(others), 1)
		taken := start.Repo
		taken.Name = "store"
		rename(taken, "")
		want(t, "the taken name", keptBy(t, d, "acme/store"), kept{1, 1, 1, 1, 1, 1, 1, 1, false})
		want(t, "set aside", keptBy(t, d, fmt.Sprintf("acme/store@%d", int64(repoID))), full)
		rename(run.Repo, "") // it comes back by its first name
		want(t, "back again", keptBy(t, d, "acme/site"), full)
	})
}
