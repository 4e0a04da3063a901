package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Incident is the row of an incident of production. What it is follows from its log.
type Incident struct {
	ID          int64
	Seq         int64 // of the last event
	Repo        string
	Environment string
	Kind        string
	Group       string
	State       string
	Severity    string
	Title       string
	Opened      time.Time
	Updated     time.Time
	Ended       time.Time // zero: it goes on
	Data        []byte    // the folded incident, as JSON
}

// IncidentEvent is one event of an incident's log.
type IncidentEvent struct {
	Seq  int64
	Type string
	At   time.Time
	Data []byte // JSON
}

const (
	insertIncident = `INSERT INTO incidents (seq, repo, environment, kind, grp, state, severity, title, opened, updated, ended, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING RETURNING id`
	updateIncident = `UPDATE incidents SET seq = $3, state = $4, severity = $5, title = $6, updated = $7, ended = $8, data = $9 WHERE id = $1 AND seq = $2`
	insertIncEvent = `INSERT INTO incident_events (incident, seq, type, at, data) VALUES ($1, $2, $3, $4, $5)`
	selectIncident = `SELECT id, seq, repo, environment, kind, grp, state, severity, title, opened, updated, ended, data FROM incidents `
	activeIncident = `state IN ('open', 'recovering')`
)

// SaveIncident writes events to an incident's log, and the row that they fold to. One
// without an ID is new, and gets its ID. The error is ErrConflict when somebody else
// has written since before, or what is new goes on already.
func (d *DB) SaveIncident(ctx context.Context, tx *sql.Tx, v *Incident, before int64, events []IncidentEvent) error {
	var err error
	if v.ID == 0 {
		err = tx.QueryRowContext(ctx, insertIncident, v.Seq, clean(v.Repo), clean(v.Environment), v.Kind, clean(v.Group), v.State, v.Severity, clean(v.Title),
			micros(v.Opened), micros(v.Updated), micros(v.Ended), clean(string(v.Data))).Scan(&v.ID)
		if errors.Is(err, sql.ErrNoRows) {
			err = ErrConflict
		}
	} else {
		var n int64
		n, err = d.exec(ctx, tx, updateIncident, v.ID, before, v.Seq, v.State, v.Severity, clean(v.Title), micros(v.Updated), micros(v.Ended), clean(string(v.Data)))
		if err == nil && n == 0 {
			err = ErrConflict
		}
	}
	for _, e := range events {
		if err == nil {
			_, err = d.exec(ctx, tx, insertIncEvent, v.ID, e.Seq, e.Type, micros(e.At), clean(string(e.Data)))
		}
	}
	if err != nil {
		return fmt.Errorf("save incident %d: %w", v.ID, err)
	}
	return nil
}

// IncidentFilter chooses incidents. Zero fields choose all.
type IncidentFilter struct {
	Repo        string    // "owner/name"
	Repos       []string  // only those of these repositories; nil: of all
	Environment string    //
	Active      bool      // only those that go on
	Since       time.Time // only those that go on, or ended after it
	Limit       int       // 0: 100
	Before      int64     // only those with a smaller ID: the next page
}

// Incidents lists incidents, newest first.
func (d *DB) Incidents(ctx context.Context, f IncidentFilter) ([]Incident, error) {
	repos := (Filter{Repo: f.Repo, Repos: f.Repos}).repos()
	if repos != nil && len(repos) == 0 {
		return nil, nil
	}
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := "1 = 1" + ofRepos("repo", repos, &args)
	if f.Environment != "" {
		where += " AND lower(environment) = lower(" + arg(f.Environment) + ")" // as GitHub compares them
	}
	if f.Active {
		where += " AND " + activeIncident
	}
	if !f.Since.IsZero() {
		where += " AND (" + activeIncident + " OR ended > " + arg(micros(f.Since)) + ")"
	}
	if f.Before != 0 {
		where += " AND id < " + arg(f.Before)
	}
	rows, err := d.reader.QueryContext(ctx, selectIncident+"WHERE "+where+" ORDER BY id DESC LIMIT "+arg(limitOr(f.Limit, 100)), args...)
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return collect(rows, "list incidents", func(v *Incident) error { return v.scan(rows) })
}

func (v *Incident) scan(row interface{ Scan(...any) error }) error {
	var opened, updated, ended int64
	err := row.Scan(&v.ID, &v.Seq, &v.Repo, &v.Environment, &v.Kind, &v.Group, &v.State, &v.Severity, &v.Title, &opened, &updated, &ended, &v.Data)
	v.Opened, v.Updated, v.Ended = fromMicros(opened), fromMicros(updated), fromMicros(ended)
	return err
}

// Incident returns one incident. The error is ErrNotFound when there is none.
func (d *DB) Incident(ctx context.Context, id int64) (*Incident, error) {
	var v Incident
	err := v.scan(d.reader.QueryRowContext(ctx, selectIncident+"WHERE id = $1", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read incident %d: %w", id, err)
	}
	return &v, nil
}

// IncidentEvents returns the log of an incident.
func (d *DB) IncidentEvents(ctx context.Context, id int64) ([]IncidentEvent, error) {
	doing := fmt.Sprintf("read the log of incident %d", id)
	rows, err := d.reader.QueryContext(ctx, `SELECT seq, type, at, data FROM incident_events WHERE incident = $1 ORDER BY seq`, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(e *IncidentEvent) error {
		var at int64
		err := rows.Scan(&e.Seq, &e.Type, &at, &e.Data)
		e.At = fromMicros(at)
		return err
	})
}

// Deployment is a commit that was brought to an environment.
type Deployment struct {
	Repo        string // "owner/name"
	ID          int64  // GitHub's
	Environment string
	Commit      string
	Ref         string
	Task        string
	Creator     string
	State       string    // GitHub's
	Created     time.Time //
	Changed     time.Time // when its state was
	Succeeded   time.Time // first; zero: not yet
	Previous    string    // the commit that ran there before
}

const (
	// A state that is older than what is known changes nothing; a deployment that has
	// succeeded has done so for good.
	putDeployment = `INSERT INTO deployments (repo, id, environment, sha, ref, task, creator, state, created, changed, succeeded, previous)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (repo, id) DO UPDATE SET
			state = CASE WHEN excluded.changed >= deployments.changed THEN excluded.state ELSE deployments.state END,
			changed = CASE WHEN excluded.changed >= deployments.changed THEN excluded.changed ELSE deployments.changed END,
			succeeded = CASE WHEN deployments.succeeded = 0 THEN excluded.succeeded ELSE deployments.succeeded END,
			previous = CASE WHEN deployments.succeeded = 0 THEN excluded.previous ELSE deployments.previous END`
	runsThere        = `SELECT sha FROM deployments WHERE repo = $1 AND environment = $2 AND succeeded > 0 AND succeeded <= $3 AND id <> $4 ORDER BY succeeded DESC, id DESC LIMIT 1`
	selectDeployment = `SELECT repo, id, environment, sha, ref, task, creator, state, created, changed, succeeded, previous FROM deployments `
)

// KeepDeployment keeps what is known of a deployment now. When it has succeeded, the
// commit that ran there before is looked up.
func (d *DB) KeepDeployment(ctx context.Context, tx *sql.Tx, v Deployment) error {
	if !v.Succeeded.IsZero() {
		err := tx.QueryRowContext(ctx, runsThere, v.Repo, v.Environment, micros(v.Succeeded), v.ID).Scan(&v.Previous)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("keep deployment %d: %w", v.ID, err)
		}
	}
	_, err := d.exec(ctx, tx, putDeployment, clean(v.Repo), v.ID, clean(v.Environment), clean(v.Commit), clean(v.Ref), clean(v.Task),
		clean(v.Creator), clean(v.State),
		micros(v.Created), micros(v.Changed), micros(v.Succeeded), clean(v.Previous))
	if err != nil {
		return fmt.Errorf("keep deployment %d: %w", v.ID, err)
	}
	return nil
}

// DeploymentFilter chooses deployments. Zero fields choose all.
type DeploymentFilter struct {
	Repo        string
	Repos       []string
	Environment string
	Since       time.Time // of their creation
	Limit       int       // 0: 100
}

// Deployments lists deployments, newest first.
func (d *DB) Deployments(ctx context.Context, f DeploymentFilter) ([]Deployment, error) {
	repos := (Filter{Repo: f.Repo, Repos: f.Repos}).repos()
	if repos != nil && len(repos) == 0 {
		return nil, nil
	}
	var args []any
	where := "1 = 1" + ofRepos("repo", slices.Clone(repos), &args)
	if f.Environment != "" {
		args = append(args, f.Environment)
		where += fmt.Sprintf(" AND lower(environment) = lower($%d)", len(args))
	}
	if !f.Since.IsZero() {
		args = append(args, micros(f.Since))
		where += fmt.Sprintf(" AND created >= $%d", len(args))
	}
	args = append(args, limitOr(f.Limit, 100))
	rows, err := d.reader.QueryContext(ctx, selectDeployment+fmt.Sprintf("WHERE %s ORDER BY created DESC, id DESC LIMIT $%d", where, len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return collect(rows, "list deployments", func(v *Deployment) error {
		var created, changed, succeeded int64
		err := rows.Scan(&v.Repo, &v.ID, &v.Environment, &v.Commit, &v.Ref, &v.Task, &v.Creator, &v.State, &created, &changed, &succeeded, &v.Previous)
		v.Created, v.Changed, v.Succeeded = fromMicros(created), fromMicros(changed), fromMicros(succeeded)
		return err
	})
}
