package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// byName are the tables that keep something by a repository's name, and by what else a row
// is one of its kind. A row whose like is there already stays where it is. Deliveries are
// not among them: they are kept as they came.
var byName = []struct{ table, column, keys string }{
	{"known_failures", "repo", "test"},
	{"incidents", "repo", ""},
	{"deployments", "repo", "id"},
	{"bakes", "repo", "deployment"},
	{"ships", "repo", "busy"},
	{"readings", "repo", "key"},
	{"metric_snapshots", "repo", "day metric label bucket"},
	{"metric_days", "repo", "day"},
	{"memories", "scope", "key"},
	{"signals", "scope", "key"},
	{"memory_terms", "scope", "term learning"},
}

// Names returns the names by which runs of a repository are kept, and the other
// repositories whose runs are kept by a name.
func (d *DB) Names(ctx context.Context, id int64, name string) (names []string, others []int64, err error) {
	doing := fmt.Sprintf("list the names of repository %d", id)
	rows, err := d.reader.QueryContext(ctx, `SELECT DISTINCT repo FROM runs WHERE repo_id = $1 ORDER BY repo`, id)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", doing, err)
	}
	if names, err = collect(rows, doing, func(s *string) error { return rows.Scan(s) }); err != nil {
		return nil, nil, err
	}
	rows, err = d.reader.QueryContext(ctx, `SELECT DISTINCT repo_id FROM runs WHERE repo = $1 AND repo_id <> $2 AND repo_id <> 0 ORDER BY repo_id`, clean(name), id)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", doing, err)
	}
	others, err = collect(rows, doing, func(n *int64) error { return rows.Scan(n) })
	return names, others, err
}

// Rename brings all that is kept of a repository under the name that it has now, and tells
// the runs of it that can go on, in one transaction, of which also is a part for each of
// these. former is a name that it is said to have had; "" for those alone that its runs
// are kept by. What another repository has left by the new name is set aside, as
// OWNER/NAME@ID: nothing is inherited. It returns the events.
func (d *DB) Rename(ctx context.Context, repo pipeline.Repo, former string, at time.Time,
	also func(ctx context.Context, tx *sql.Tx, run *pipeline.Run) error) (told []pipeline.Event, err error) {
	for range 3 { // a run may go on meanwhile
		told = nil
		err = d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			told = nil
			if err := d.moveNames(ctx, tx, repo, clean(former)); err != nil {
				return err
			}
			runs, err := d.lively(ctx, repo)
			if err != nil {
				return err
			}
			for _, run := range runs {
				next, err := d.append(ctx, tx, run, []pipeline.Event{renamed(run, repo, at)})
				if err == nil {
					err = also(ctx, tx, next)
				}
				if err != nil {
					return fmt.Errorf("tell run %d: %w", run.ID, err)
				}
				e := renamed(run, repo, at)
				e.Run, e.Seq, e.Trace = run.ID, next.Seq, run.Trace
				told = append(told, e)
			}
			return nil
		})
		if !errors.Is(err, ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rename repository %d to %s: %w", repo.ID, repo.FullName(), err)
	}
	return told, nil
}

func renamed(run *pipeline.Run, to pipeline.Repo, at time.Time) pipeline.Event {
	to.DefaultBranch = run.Repo.DefaultBranch
	return pipeline.Event{ID: fmt.Sprintf("repository/%d/after/%d", to.ID, run.Seq), Type: pipeline.EventRepositoryRenamed, Source: "github",
		Time: at, Data: pipeline.Data{Repo: &to}}
}

// lively returns the runs of a repository that can go on and do not know what it is called.
func (d *DB) lively(ctx context.Context, repo pipeline.Repo) (out []*pipeline.Run, err error) {
	doing := fmt.Sprintf("list runs of repository %d that can go on", repo.ID)
	rows, err := d.reader.QueryContext(ctx, `SELECT id FROM runs WHERE repo_id = $1 AND (`+active+` OR state IN ('verified', 'accepted')) ORDER BY id`, repo.ID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	ids, err := collect(rows, doing, func(n *int64) error { return rows.Scan(n) })
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		run, err := d.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		to := repo
		if to.DefaultBranch = run.Repo.DefaultBranch; to != run.Repo && (!run.State.Ended() || run.Reopenable()) {
			out = append(out, run)
		}
	}
	return out, nil
}

// moveNames brings every row of the repository under its name of now.
func (d *DB) moveNames(ctx context.Context, tx *sql.Tx, repo pipeline.Repo, former string) error {
	to := clean(repo.FullName())
	rows, err := tx.QueryContext(ctx, `SELECT DISTINCT repo FROM runs WHERE repo_id = $1`, repo.ID)
	if err != nil {
		return err
	}
	names, err := collect(rows, "list names", func(s *string) error { return rows.Scan(s) })
	if err != nil {
		return err
	}
	if !slices.Contains(names, to) {
		if err := d.setAside(ctx, tx, repo.ID, to); err != nil {
			return err
		}
	}
	if former != "" && former != to && !slices.Contains(names, former) {
		owner, err := ownerOf(ctx, tx, former)
		if err != nil {
			return err
		}
		if owner == 0 {
			names = append(names, former)
		}
	}
	for _, name := range names {
		if name == to {
			continue
		}
		if err := d.moveName(ctx, tx, name, to); err != nil {
			return err
		}
		if _, err := d.exec(ctx, tx, `UPDATE runs SET repo = $2 WHERE repo_id = $1 AND repo <> $2`, repo.ID, to); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf returns the repository whose runs are kept by a name, 0 for none.
func ownerOf(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT repo_id FROM runs WHERE repo = $1 ORDER BY id DESC LIMIT 1`, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

// setAside brings what another repository has left by a name out of the way. It is found
// again by its id, should it come back.
func (d *DB) setAside(ctx context.Context, tx *sql.Tx, id int64, name string) error {
	owner, err := ownerOf(ctx, tx, name)
	if err != nil || owner == 0 || owner == id { // what belongs to no run may be the repository's own
		return err
	}
	aside := fmt.Sprintf("%s@%d", name, owner) // no name on GitHub has an @
	if err := d.moveName(ctx, tx, name, aside); err != nil {
		return err
	}
	_, err = d.exec(ctx, tx, `UPDATE runs SET repo = $3 WHERE repo = $2 AND repo_id <> $1 AND repo_id <> 0`, id, name, aside)
	return err
}

// moveRows is the statement that moves the rows of a table, $1 to $2.
func moveRows(table, column, keys string) string {
	where := ""
	for _, k := range strings.Fields(keys) {
		where += " AND o." + k + " = " + table + "." + k
	}
	if where == "" {
		return "UPDATE " + table + " SET " + column + " = $2 WHERE " + column + " = $1"
	}
	if table == "ships" { // many may have ended, one at most is busy
		where += " AND o.busy = 1"
	}
	return "UPDATE " + table + " SET " + column + " = $2 WHERE " + column + " = $1 AND NOT EXISTS (SELECT 1 FROM " + table + " o WHERE o." + column + " = $2" + where + ")"
}

// moveName brings the rows of a name under another one, but for runs.
func (d *DB) moveName(ctx context.Context, tx *sql.Tx, from, to string) error {
	rows, err := tx.QueryContext(ctx, `SELECT id FROM memories WHERE scope = $1`, record.RepoScope(from))
	if err != nil {
		return err
	}
	learnings, err := collect(rows, "list learnings", func(n *int64) error { return rows.Scan(n) })
	if err != nil {
		return err
	}
	for _, t := range byName {
		a, b := from, to
		if t.column == "scope" {
			a, b = record.RepoScope(from), record.RepoScope(to)
		}
		if _, err := d.exec(ctx, tx, moveRows(t.table, t.column, t.keys), a, b); err != nil {
			return fmt.Errorf("%s: %w", t.table, err)
		}
	}
	for _, table := range []string{"incidents", "bakes"} { // what is folded there says it, too
		_, err := d.exec(ctx, tx, `UPDATE `+table+` SET data = replace(data, $2, $3) WHERE repo = $1`, to, `"repo":"`+from+`"`, `"repo":"`+to+`"`)
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if _, err := d.exec(ctx, tx, `UPDATE pauses SET repo = lower($2) WHERE repo = lower($1)`, from, to); err != nil {
		return fmt.Errorf("pauses: %w", err)
	}
	for _, id := range learnings {
		if err := d.indexWords(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}
