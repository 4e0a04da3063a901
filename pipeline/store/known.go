package store

import (
	"context"
	"database/sql"
	"fmt"

	"forge/pipeline"
)

const (
	putKnown = `INSERT INTO known_failures (repo, test, login, at, run, error, pull, head) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (repo, test) DO UPDATE SET login = excluded.login, at = excluded.at, run = excluded.run, error = excluded.error, pull = excluded.pull, head = excluded.head`
	deleteKnown = `DELETE FROM known_failures WHERE repo = $1 AND test = $2`
	selectKnown = `SELECT test, login, at, run, error, pull, head FROM known_failures WHERE repo = $1`
)

// KnownFailures returns the tests of a repository that failed before somebody's work,
// with who has called each known, and of what error (V3).
func (d *DB) KnownFailures(ctx context.Context, repo pipeline.Repo) (map[string]pipeline.KnownFailure, error) {
	return known(ctx, d.reader, repoKey(repo))
}

// repoKey names a repository; a local one by its path, because two may have one name.
func repoKey(r pipeline.Repo) string {
	if r.ID == 0 {
		return clean(r.CloneURL)
	}
	return clean(r.FullName())
}

func known(ctx context.Context, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, repo string) (map[string]pipeline.KnownFailure, error) {
	doing := "list known failures of " + repo
	rows, err := q.QueryContext(ctx, selectKnown, repo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	out := map[string]pipeline.KnownFailure{}
	_, err = collect(rows, doing, func(test *string) error {
		var k pipeline.KnownFailure
		var at int64
		err := rows.Scan(test, &k.Login, &at, &k.Run, &k.Error, &k.Pull, &k.Head)
		k.At = fromMicros(at)
		out[*test] = k
		return err
	})
	return out, err
}

// projectKnown keeps what people called known, until the repository's own tests, as
// they stand before somebody's work, show that it passes. What passes on a run's
// branch passes nowhere else yet.
func (d *DB) projectKnown(ctx context.Context, tx *sql.Tx, old, next *pipeline.Run, events []pipeline.Event) error {
	repo := repoKey(next.Repo)
	for test, login := range next.Known {
		if old.Known[test] == login && old.KnownAs[test] == next.KnownAs[test] {
			continue
		}
		pull := 0
		if p := next.Published.Pull; p != nil {
			pull = p.Number
		}
		if _, err := d.exec(ctx, tx, putKnown, repo, clean(test), clean(login), micros(next.Updated), next.ID, next.KnownAs[test], pull,
			clean(next.Head)); err != nil {
			return err
		}
	}
	for i := range events {
		data := &events[i].Data
		if events[i].Type != pipeline.EventPhaseCompleted || data.Tests == nil || data.Phase == nil || data.Phase.Phase == pipeline.PhaseTest {
			continue
		}
		if err := d.forgetPassed(ctx, tx, repo, data.Tests.Names); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) forgetPassed(ctx context.Context, tx *sql.Tx, repo string, passed []string) error {
	list, err := known(ctx, tx, repo)
	if err != nil || len(list) == 0 {
		return err
	}
	for _, test := range passed {
		if _, there := list[clean(test)]; !there {
			continue
		}
		if _, err := d.exec(ctx, tx, deleteKnown, repo, clean(test)); err != nil {
			return err
		}
	}
	return nil
}
