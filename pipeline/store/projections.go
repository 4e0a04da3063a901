package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// active is the condition for a run that has not ended; the partial indexes of
// the schema have the same.
const active = `state IN ('running', 'waiting', 'stopped')`

// activeRun finds the run of an issue that has not ended.
const activeRun = `SELECT id FROM runs WHERE issue = $1 AND repo_id = $2 AND (repo_id <> 0 OR repo = $3) AND ` + active

const (
	updateRun = `UPDATE runs SET seq = $3, phase = COALESCE(NULLIF($4, ''), phase), iteration = $5, micro_usd = $6, updated = $7, unpriced = $8, waits = $9,
	state = $10, pull = $11, branch = $12, title = $13, due = 1 WHERE id = $1 AND seq = $2`
	// stepRun is updateRun for most events of a run that is being worked on. It
	// touches no indexed column, so a commit writes a third of the pages.
	stepRun = `UPDATE runs SET seq = $3, phase = COALESCE(NULLIF($4, ''), phase), iteration = $5, micro_usd = $6, updated = $7, unpriced = $8, waits = $9
	WHERE id = $1 AND seq = $2 AND due = 1`
)

// projectRun brings the run's row up to date. That the row still has the old seq
// is what makes an append safe: of two writers one finds no row.
func (d *DB) projectRun(ctx context.Context, tx *sql.Tx, old, next *pipeline.Run, events []pipeline.Event) error {
	phase, iteration := "", 0
	for _, e := range events {
		if e.Data.Phase != nil {
			phase = string(e.Data.Phase.Phase)
		}
	}
	if it := next.Current(); it != nil {
		iteration = it.Number
	}
	if old.State.Ended() && !next.State.Ended() { // reopened
		if err := d.mayReopen(ctx, tx, next); err != nil {
			return err
		}
	}
	args := []any{next.ID, old.Seq, next.Seq, phase, iteration, next.Usage.MicroUSD, micros(next.Updated), next.Usage.Unpriced,
		clean(text.Clip(next.Awaits(), 200))}
	if old.State == next.State && pullOf(old) == pullOf(next) && old.Branch == next.Branch && old.Task.Title == next.Task.Title {
		if n, err := d.exec(ctx, tx, stepRun, args...); err != nil || n == 1 {
			return err
		}
	}
	n, err := d.exec(ctx, tx, updateRun, append(args, string(next.State), pullOf(next), clean(next.Branch), clean(next.Task.Title))...)
	if err != nil || n == 1 {
		return err
	}
	// Someone else was faster, or there is no such run.
	if _, err := unseen(ctx, tx, old, nil); err != nil {
		return err
	}
	return ErrConflict // unreachable on SQLite
}

// mayReopen refuses to reopen a run whose issue another one works on by now: the
// unique index would refuse it less clearly.
func (d *DB) mayReopen(ctx context.Context, tx *sql.Tx, r *pipeline.Run) error {
	if r.Task.Issue == 0 || r.Part != nil {
		return nil
	}
	var id int64
	err := tx.QueryRowContext(ctx, activeRun+` AND id <> $4`, r.Task.Issue, r.Repo.ID, clean(r.Repo.FullName()), r.ID).Scan(&id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return &ActiveError{Run: id}
}

func pullOf(r *pipeline.Run) int {
	if r.Published.Pull == nil {
		return 0
	}
	return r.Published.Pull.Number
}

// projectParts writes what the events changed in the run's findings, bounces,
// gates and feedback.
func (d *DB) projectParts(ctx context.Context, tx *sql.Tx, old, next *pipeline.Run, events []pipeline.Event) error {
	for _, lists := range [][2][]pipeline.Issue{{old.Findings, next.Findings}, {old.Failures, next.Failures}} {
		if err := d.projectIssues(ctx, tx, next.ID, lists[0], lists[1]); err != nil {
			return err
		}
	}
	if err := d.projectBounces(ctx, tx, old, next); err != nil {
		return err
	}
	if err := d.projectGates(ctx, tx, old, next); err != nil {
		return err
	}
	if err := d.projectSpend(ctx, tx, events); err != nil {
		return err
	}
	if err := d.projectKnown(ctx, tx, old, next, events); err != nil {
		return err
	}
	for i := range events {
		if err := d.projectFeedback(ctx, tx, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

const upsertFinding = `INSERT INTO findings (run, phase, kind, fingerprint, severity, category, rule, file, line, message, confidence,
	state, first_seen, last_seen, times, fixed_in) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
	ON CONFLICT (run, phase, kind, fingerprint) DO UPDATE SET severity = excluded.severity, category = excluded.category, rule = excluded.rule,
	file = excluded.file, line = excluded.line, message = excluded.message, confidence = excluded.confidence, state = excluded.state,
	first_seen = excluded.first_seen, last_seen = excluded.last_seen, times = excluded.times, fixed_in = excluded.fixed_in`

// issueRow is what the findings table has of an issue.
type issueRow struct {
	phase, kind, fingerprint, severity, category, rule, file, message, state, fixedIn string
	line, first, last, times                                                          int
	confidence                                                                        float64
}

func rowOf(is *pipeline.Issue) issueRow {
	r := issueRow{phase: string(is.Phase), fingerprint: is.Fingerprint(), state: string(is.State), first: is.First, last: is.Last,
		times: is.Times, fixedIn: is.FixedIn}
	if f := is.Finding; f != nil {
		r.kind, r.severity, r.category, r.rule = "finding", string(f.Severity), string(f.Category), f.Rule
		r.file, r.line, r.message, r.confidence = f.File, f.Line, f.Message, f.Confidence
	} else if f := is.Failure; f != nil {
		r.kind, r.severity, r.category, r.rule = "failure", string(pipeline.SeverityError), f.Cause, f.Test
		r.file, r.line, r.message, r.confidence = f.File, f.Line, f.Error, f.Confidence
	}
	return r
}

func (d *DB) projectIssues(ctx context.Context, tx *sql.Tx, run int64, old, next []pipeline.Issue) error {
	for i := range next {
		r := rowOf(&next[i])
		if i < len(old) && rowOf(&old[i]) == r {
			continue
		}
		_, err := d.exec(ctx, tx, upsertFinding, run, r.phase, r.kind, clean(r.fingerprint), clean(r.severity), clean(r.category), clean(r.rule),
			clean(r.file), r.line, clean(r.message), r.confidence, r.state, r.first, r.last, r.times, clean(r.fixedIn))
		if err != nil {
			return err
		}
	}
	return nil
}

const upsertBounce = `INSERT INTO bounces (run, n, phase, number, iteration, blocking, weight, issues, at, resolved)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (run, n) DO UPDATE SET resolved = excluded.resolved`

func (d *DB) projectBounces(ctx context.Context, tx *sql.Tx, old, next *pipeline.Run) error {
	for i, b := range next.Bounces {
		if i < len(old.Bounces) && old.Bounces[i].Resolved == b.Resolved {
			continue
		}
		issues, err := json.Marshal(b.Issues)
		if err != nil {
			return err // unreachable: strings
		}
		_, err = d.exec(ctx, tx, upsertBounce, next.ID, i+1, string(b.Phase), b.Number, b.Iteration, b.Count, b.Weight,
			string(issues), micros(b.At), b.Resolved)
		if err != nil {
			return err
		}
	}
	return nil
}

const upsertGate = `INSERT INTO gates (run, id, kind, guard, question, opened, closed, answers, choice, actor_id, actor, answered, asked)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
	ON CONFLICT (run, id) DO UPDATE SET closed = excluded.closed, answers = excluded.answers, choice = excluded.choice,
	actor_id = excluded.actor_id, actor = excluded.actor, answered = excluded.answered`

func (d *DB) projectGates(ctx context.Context, tx *sql.Tx, old, next *pipeline.Run) error {
	for i, g := range next.Gates {
		if i < len(old.Gates) && old.Gates[i].Closed == g.Closed && len(old.Gates[i].Answers) == len(g.Answers) {
			continue
		}
		var guard string
		if g.Guard != nil {
			guard = string(g.Guard.Name)
		}
		var last pipeline.Answer
		if n := len(g.Answers); n > 0 {
			last = g.Answers[n-1]
		}
		_, err := d.exec(ctx, tx, upsertGate, next.ID, g.ID, string(g.Kind), guard, clean(g.Question), micros(g.Opened), g.Closed,
			len(g.Answers), clean(last.Choice), last.By.ID, clean(last.By.Login), micros(last.At), clean(g.For.Login))
		if err != nil {
			return err
		}
	}
	return nil
}

const insertFeedback = `INSERT INTO feedback_events (run, seq, type, actor_id, actor, gate, finding, choice, text, via, at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// projectFeedback records what a human did: who, what, when, on which gate or
// finding (H7).
func (d *DB) projectFeedback(ctx context.Context, tx *sql.Tx, e *pipeline.Event) error {
	a := e.Data.Answer
	if a == nil && !strings.HasPrefix(string(e.Type), "feedback.") {
		return nil
	}
	if a == nil {
		a = &pipeline.Answer{Text: e.Data.Note}
		if e.Data.Actor != nil {
			a.By = *e.Data.Actor
		}
		if s := e.Data.Signal; s != nil {
			a.By, a.Text, a.Choice, a.Via = s.Actor, s.Text, string(s.Kind), "github"
			if s.Off {
				a.Choice += " taken back"
			}
		}
	}
	var finding string
	if e.Data.Finding != nil {
		finding = e.Data.Finding.Fingerprint
	} else if e.Data.Signal != nil {
		finding = e.Data.Signal.Finding
	}
	_, err := d.exec(ctx, tx, insertFeedback, e.Run, e.Seq, string(e.Type), a.By.ID, clean(a.By.Login), clean(a.Gate), clean(finding),
		clean(a.Choice), clean(a.Text), clean(a.Via), micros(e.Time))
	return err
}
