package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// Filter chooses runs. Zero fields choose all.
type Filter struct {
	State  pipeline.State
	Active bool     // only those that have not ended
	Repo   string   // "owner/name"
	Repos  []string // only those of these repositories; nil: of all
	Limit  int      // 0: 100
	Before int64    // only runs with a smaller number: the next page
	Parts  bool     // with the runs that build modules of others
	Parent int64    // only those that build modules of this run
}

// RunRow is a run in a list.
type RunRow struct {
	ID        int64          `json:"id"`
	RepoID    int64          `json:"repo_id"`
	Repo      string         `json:"repo"` // "owner/name"
	Issue     int            `json:"issue"`
	Title     string         `json:"title"`
	Branch    string         `json:"branch"`
	Pull      int            `json:"pull"` // the pull request's number, 0 for none yet
	State     pipeline.State `json:"state"`
	Phase     pipeline.Phase `json:"phase"` // the last one that was entered
	Iteration int            `json:"iteration"`
	MicroUSD  int64          `json:"micro_usd"`
	Unpriced  int64          `json:"unpriced,omitempty"` // tokens of models without a price: what they cost is not in MicroUSD
	Parent    int64          `json:"parent,omitempty"`   // the run whose module it builds
	Part      string         `json:"part,omitempty"`     // which module
	Asks      int            `json:"asks,omitempty"`     // how many of its modules wait for people, while it waits for none itself
	Waits     string         `json:"waits,omitempty"`    // what its phase waits for outside of Forge, and until when
	Started   time.Time      `json:"started"`
	Updated   time.Time      `json:"updated"`
}

// Cost is what the run's model calls cost, for people.
func (r RunRow) Cost() string {
	return pipeline.Usage{MicroUSD: r.MicroUSD, Unpriced: r.Unpriced}.Cost()
}

const runColumns = `SELECT id, repo_id, repo, issue, title, branch, pull, state, phase, iteration, micro_usd, unpriced, started, updated, parent, part, waits,
	CASE WHEN state = 'running' AND parent = 0 THEN (SELECT COUNT(*) FROM runs AS m WHERE ` + asking + `) ELSE 0 END FROM runs`

// asking is the condition that m is a run that builds a module, and waits for people.
const asking = `m.parent <> 0 AND m.parent = runs.id AND m.state = 'waiting'`

// Runs lists runs, newest first.
func (d *DB) Runs(ctx context.Context, f Filter) ([]RunRow, error) {
	if repos := f.repos(); repos != nil && len(repos) == 0 {
		return nil, nil
	}
	query, args := f.query()
	rows, err := d.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return collect(rows, "list runs", func(r *RunRow) error {
		var started, updated int64
		err := rows.Scan(&r.ID, &r.RepoID, &r.Repo, &r.Issue, &r.Title, &r.Branch, &r.Pull, &r.State, &r.Phase, &r.Iteration, &r.MicroUSD,
			&r.Unpriced, &started, &updated, &r.Parent, &r.Part, &r.Waits, &r.Asks)
		r.Started, r.Updated = fromMicros(started), fromMicros(updated)
		return err
	})
}

// query has only the conditions that are asked for: one that a parameter switches
// off finds no index.
func (f Filter) query() (string, []any) {
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := "1 = 1"
	switch f.State {
	case "":
	case pipeline.StateWaiting: // a run whose module asks waits for that, too
		where += " AND (state = 'waiting' OR state = 'running' AND parent = 0 AND EXISTS (SELECT 1 FROM runs AS m WHERE " + asking + "))"
	default:
		where += " AND state = " + arg(string(f.State))
	}
	if f.Active {
		where += " AND " + active
	}
	switch {
	case f.Parent != 0:
		where += " AND parent <> 0 AND parent = " + arg(f.Parent) // as the index has it
	case !f.Parts:
		where += " AND parent = 0"
	}
	if f.Before != 0 {
		where += " AND id < " + arg(f.Before)
	}
	limit := arg(limitOr(f.Limit, 100))
	return newest(runColumns, "runs", where, f.repos(), limit, arg), args
}

// repos are the repositories that are chosen: nil for all.
func (f Filter) repos() []string {
	switch {
	case f.Repo == "":
		return f.Repos
	case f.Repos == nil || slices.Contains(f.Repos, f.Repo):
		return []string{f.Repo}
	}
	return []string{}
}

// newest is a query of the newest rows of a table with a condition, of one or some
// repositories (nil: of all), each of which is asked for its own newest ones: so
// it reads no more than so many rows of each, however many there are, and however
// few of these the newest are of.
func newest(columns, table, where string, repos []string, limit string, arg func(any) string) string {
	if repos == nil {
		return columns + " WHERE " + where + " ORDER BY id DESC LIMIT " + limit
	}
	each := make([]string, 0, len(repos))
	for i, r := range repos {
		each = append(each, fmt.Sprintf("SELECT id FROM (SELECT id FROM %s WHERE repo = %s AND %s ORDER BY id DESC LIMIT %s) AS of%d", table,
			arg(r), where, limit, i))
	}
	return columns + " WHERE id IN (" + nested(each) + ") ORDER BY id DESC LIMIT " + limit
}

// atOnce is how many queries SQLite takes in one UNION, with some room: it takes 500.
const atOnce = 400

// nested puts queries together, in groups when there are many.
func nested(queries []string) string {
	if len(queries) <= atOnce {
		return strings.Join(queries, " UNION ALL ")
	}
	var groups []string
	for group := range slices.Chunk(queries, atOnce) {
		groups = append(groups, "SELECT * FROM ("+strings.Join(group, " UNION ALL ")+fmt.Sprintf(") AS some%d", len(groups)))
	}
	return nested(groups)
}

// ofRepos is the condition that a column names one of some repositories, for whom
// it adds parameters; nil is no condition.
func ofRepos(column string, repos []string, args *[]any) string {
	if repos == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(" AND " + column + " IN (")
	for i, r := range repos {
		if i > 0 {
			b.WriteString(", ")
		}
		*args = append(*args, r)
		fmt.Fprintf(&b, "$%d", len(*args))
	}
	if len(repos) == 0 {
		b.WriteString("NULL")
	}
	return b.String() + ")"
}

// GateRow is a question that waits for an answer, in a list.
type GateRow struct {
	Run      int64             `json:"run"`
	ID       string            `json:"id"` // within the run
	Kind     pipeline.GateKind `json:"kind"`
	Question string            `json:"question"`
	Opened   time.Time         `json:"opened"`
	Repo     string            `json:"repo"`
	Issue    int               `json:"issue"`
	Title    string            `json:"title"`
	Asked    string            `json:"asked,omitempty"` // the login of who is asked first
}

// OpenGates lists the questions that wait in some repositories (nil: in all), the
// oldest first, and counts all of them.
func (d *DB) OpenGates(ctx context.Context, repos []string, limit int) (list []GateRow, all int, err error) {
	const doing = "list questions that wait"
	var args []any
	where := ` FROM gates g JOIN runs r ON r.id = g.run WHERE NOT g.closed AND r.state = 'waiting'` + ofRepos("r.repo", repos, &args)
	if err := d.reader.QueryRowContext(ctx, `SELECT COUNT(*)`+where, args...).Scan(&all); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	rows, err := d.reader.QueryContext(ctx, `SELECT g.run, g.id, g.kind, g.question, g.opened, r.repo, r.issue, r.title, g.asked`+where+
		fmt.Sprintf(` ORDER BY g.opened, g.run LIMIT %d`, limitOr(limit, 100)), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	list, err = collect(rows, doing, func(g *GateRow) error {
		var opened int64
		err := rows.Scan(&g.Run, &g.ID, &g.Kind, &g.Question, &opened, &g.Repo, &g.Issue, &g.Title, &g.Asked)
		g.Opened = fromMicros(opened)
		return err
	})
	return list, all, err
}

// collect reads all rows with scan and closes them.
func collect[T any](rows *sql.Rows, doing string, scan func(*T) error) (list []T, err error) {
	defer func() {
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			list, err = nil, fmt.Errorf("%s: %w", doing, err)
		}
	}()
	for rows.Next() {
		var one T
		if err := scan(&one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// findBy are the ways by which [DB.Find] knows a run; each has its index.
var findBy = [...]string{"issue", "pull", "branch"}

// Find returns the run that an issue, a pull request or a branch of a repository
// belongs to: the active one, else the newest. Zero values are not looked for.
// The error is ErrNotFound when there is none.
func (d *DB) Find(ctx context.Context, repoID int64, issue, pull int, branch string) (int64, error) {
	var best struct {
		id     int64
		active bool
	}
	for i, set := range [...]bool{issue != 0, pull != 0, branch != ""} {
		if !set {
			continue
		}
		var id int64
		var alive bool
		arg := [...]any{issue, pull, branch}[i]
		err := d.reader.QueryRowContext(ctx, `SELECT id, `+active+` AS alive FROM runs WHERE repo_id = $1 AND `+findBy[i]+` = $2
			ORDER BY alive DESC, id DESC LIMIT 1`, repoID, arg).Scan(&id, &alive)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("find run of repository %d by %s %v: %w", repoID, findBy[i], arg, err)
		}
		if best.id == 0 || alive && !best.active || alive == best.active && id > best.id {
			best.id, best.active = id, alive
		}
	}
	if best.id == 0 {
		return 0, fmt.Errorf("find run of repository %d by issue %d, pull request %d, branch %q: %w", repoID, issue, pull, branch, ErrNotFound)
	}
	return best.id, nil
}

// Active returns the runs of a repository that have not ended, in their order.
func (d *DB) Active(ctx context.Context, repoID int64) ([]int64, error) {
	doing := fmt.Sprintf("list active runs of repository %d", repoID)
	rows, err := d.reader.QueryContext(ctx, `SELECT id FROM runs WHERE repo_id = $1 AND `+active+` ORDER BY id`, repoID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(id *int64) error { return rows.Scan(id) })
}

// Followed returns runs with a pull request and an event since the given time,
// newest first, those with smaller numbers than before (0: all); of one repository,
// or of all (0). A limit of 0 is 100.
func (d *DB) Followed(ctx context.Context, repoID int64, since time.Time, before int64, limit int) ([]int64, error) {
	const doing = "list runs whose pull requests are followed"
	rows, err := d.reader.QueryContext(ctx, `SELECT id FROM runs WHERE pull <> 0 AND updated >= $1 AND (CAST($2 AS BIGINT) = 0 OR repo_id = $2)
		AND (CAST($3 AS BIGINT) = 0 OR id < $3) ORDER BY id DESC LIMIT $4`, micros(since), repoID, before, limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(id *int64) error { return rows.Scan(id) })
}

// Bounces returns a run's bounces in their order (B8).
func (d *DB) Bounces(ctx context.Context, run int64) ([]pipeline.Bounce, error) {
	doing := fmt.Sprintf("list bounces of run %d", run)
	rows, err := d.reader.QueryContext(ctx, `SELECT phase, number, iteration, blocking, weight, issues, at, resolved
		FROM bounces WHERE run = $1 ORDER BY n`, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(b *pipeline.Bounce) error {
		var issues string
		var at int64
		if err := rows.Scan(&b.Phase, &b.Number, &b.Iteration, &b.Count, &b.Weight, &issues, &at, &b.Resolved); err != nil {
			return err
		}
		b.At = fromMicros(at)
		return json.Unmarshal([]byte(issues), &b.Issues)
	})
}
