package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// InTx is what a caller does in the transaction that appends events: enqueue
// jobs, finish a delivery. It must not write by other ways than tx.
type InTx = func(ctx context.Context, tx *sql.Tx) error

const insertRun = `INSERT INTO runs (key, trace, seq, repo_id, repo, issue, title, branch, state, started, updated, parent, part)
	VALUES ($1, $2, 0, $3, $4, $5, $6, $7, 'running', $8, $8, $9, $10)
	ON CONFLICT DO NOTHING RETURNING id`

// CreateRun starts a run: it appends run.started, whose id is the key, as the
// first event and gives the run its number. The key names the cause (a
// delivery's GUID, say): a second call with it returns the run that is there.
// An issue has at most one run that has not ended: else the error is an
// [*ActiveError]. also may be nil; it runs even when the run was there already,
// because what it records belongs to this call.
func (d *DB) CreateRun(ctx context.Context, key string, start pipeline.Start, at time.Time, trace string,
	also func(ctx context.Context, tx *sql.Tx, run int64) error) (*pipeline.Run, error) {
	if key == "" {
		return nil, errors.New("create run: it has no key")
	}
	event := pipeline.Event{ID: key, Type: pipeline.EventRunStarted, Source: "forge", Time: at, Data: pipeline.Data{Start: &start}}
	var run *pipeline.Run
	var known int64
	err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		id, err := d.claim(ctx, tx, key, event, trace)
		if err != nil {
			return err
		}
		if id < 0 {
			known = -id
		} else {
			if start := *event.Data.Start; start.Part == nil && start.Holdout == nil { // else the parent's, or that of a run that is replayed
				start.Holdout = record.DrawHoldout(start.Config.Learn.Holdout, id, key)
				event.Data.Start = &start
			}
			run, err = d.append(ctx, tx, &pipeline.Run{ID: id, Trace: trace}, []pipeline.Event{event})
			if err != nil {
				return err
			}
			known = 0
		}
		if also == nil {
			return nil
		}
		return also(ctx, tx, max(id, -id))
	})
	if err != nil {
		return nil, fmt.Errorf("create run %s for %s#%d: %w", key, start.Repo.FullName(), start.Task.Issue, err)
	}
	if known != 0 {
		return d.Load(ctx, known)
	}
	return run, nil
}

// claim inserts the run's row and returns its number, or the negative number of
// the run that has this key already.
func (d *DB) claim(ctx context.Context, tx *sql.Tx, key string, e pipeline.Event, trace string) (int64, error) {
	s := e.Data.Start
	issue, parent, part := s.Task.Issue, int64(0), ""
	if s.Part != nil { // the issue is its parent's
		issue, parent, part = 0, s.Part.Run, s.Part.Module.ID
	}
	// A run that is in the way may end between the two queries on PostgreSQL.
	for range 3 {
		var id int64
		err := tx.QueryRowContext(ctx, insertRun, key, trace, s.Repo.ID, clean(s.Repo.FullName()), issue,
			clean(s.Task.Title), clean(s.Branch), micros(e.Time), parent, part).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return id, err
		}
		err = tx.QueryRowContext(ctx, `SELECT id FROM runs WHERE key = $1`, key).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return -id, err
		}
		err = tx.QueryRowContext(ctx, activeRun, s.Task.Issue, s.Repo.ID, clean(s.Repo.FullName())).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, errors.Join(err, &ActiveError{Run: id})
		}
	}
	return 0, ErrConflict
}

var insertEvents = newBulkInsert(`INTO events (run, seq, id, type, source, time, data) VALUES `, 7, ` ON CONFLICT DO NOTHING`)

// errRepeated says that an event was there already; the append starts over
// without it.
var errRepeated = errors.New("an event is there already")

// Append appends events to a run's log, brings the projections up to date, marks
// the run as due and calls also (which may be nil), all in one transaction; then
// it takes the events in to run. It fills in the events' Run, Seq and Trace; ID,
// Type and Time must be set. An event whose ID the run has already is passed
// over; also runs all the same.
//
// The error is ErrConflict when the log has gone on since run was loaded,
// ErrNotFound when there is no such run, and an [*ActiveError] when it would be
// reopened although another run works on its issue. On any error run is as it was.
func (d *DB) Append(ctx context.Context, run *pipeline.Run, events []pipeline.Event, also InTx) error {
	events, err := distinct(events)
	if err != nil {
		return fmt.Errorf("append to run %d: %w", run.ID, err)
	}
	// Repeats are rare: they are looked for when one was met.
	next, err := d.tryAppend(ctx, run, events, also, false)
	if errors.Is(err, errRepeated) {
		next, err = d.tryAppend(ctx, run, events, also, true)
	}
	if err != nil {
		return fmt.Errorf("append to run %d after %d: %w", run.ID, run.Seq, err)
	}
	*run = *next
	return nil
}

func (d *DB) tryAppend(ctx context.Context, run *pipeline.Run, events []pipeline.Event, also InTx, look bool) (next *pipeline.Run, err error) {
	err = d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		fresh := events
		if look || len(events) == 0 {
			if fresh, err = unseen(ctx, tx, run, events); err != nil {
				return err
			}
		}
		if next, err = d.append(ctx, tx, run, fresh); err != nil {
			return err
		}
		if also == nil {
			return nil
		}
		return also(ctx, tx)
	})
	return next, err
}

// append writes the events and what follows from them, and returns the run as it
// then is.
func (d *DB) append(ctx context.Context, tx *sql.Tx, run *pipeline.Run, events []pipeline.Event) (*pipeline.Run, error) {
	next := clone(run)
	if len(events) == 0 {
		return next, nil
	}
	rows := make([]any, 0, len(events)*7)
	applied := make([]pipeline.Event, len(events))
	for i, e := range events {
		e.Run, e.Seq, e.Trace, e.Time = run.ID, run.Seq+int64(i)+1, run.Trace, e.Time.UTC().Truncate(time.Microsecond)
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
		}
		// What is taken in is what a replay will read, and shares no memory with the caller.
		e.Data = pipeline.Data{}
		if err := json.Unmarshal(data, &e.Data); err != nil {
			return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
		}
		next.Apply(e)
		applied[i] = e
		rows = append(rows, e.Run, e.Seq, e.ID, string(e.Type), e.Source, e.Time.UnixMicro(), string(data))
	}
	// First the row, whose seq tells whether someone else was faster.
	if err := d.projectRun(ctx, tx, run, next, applied); err != nil {
		return nil, err
	}
	in, err := insertEvents.run(ctx, d, tx, rows)
	if err != nil {
		return nil, err
	}
	if in < int64(len(events)) {
		return nil, errRepeated
	}
	return next, d.projectParts(ctx, tx, run, next, applied)
}

// distinct checks events and drops those whose ID comes twice.
func distinct(events []pipeline.Event) ([]pipeline.Event, error) {
	seen := make(map[string]bool, len(events))
	out := make([]pipeline.Event, 0, len(events))
	for i, e := range events {
		if e.ID == "" || e.Type == "" || e.Time.IsZero() {
			return nil, fmt.Errorf("event %d (id %q, type %q, time %v) is not complete", i, e.ID, e.Type, e.Time)
		}
		if !seen[e.ID] {
			seen[e.ID] = true
			out = append(out, e)
		}
	}
	return out, nil
}

// unseen returns the events that the run does not have yet.
func unseen(ctx context.Context, tx *sql.Tx, run *pipeline.Run, events []pipeline.Event) ([]pipeline.Event, error) {
	var seq int64
	err := tx.QueryRowContext(ctx, `SELECT seq FROM runs WHERE id = $1`, run.ID).Scan(&seq)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case seq != run.Seq:
		return nil, ErrConflict
	}
	var fresh []pipeline.Event
	for _, e := range events {
		var one int
		err := tx.QueryRowContext(ctx, `SELECT 1 FROM events WHERE run = $1 AND id = $2`, run.ID, e.ID).Scan(&one)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			fresh = append(fresh, e)
		case err != nil:
			return nil, err
		}
	}
	return fresh, nil
}

// Load returns a run by replaying its log. The error is ErrNotFound when there
// is no such run.
func (d *DB) Load(ctx context.Context, id int64) (*pipeline.Run, error) {
	var run pipeline.Run
	found, unknown := false, error(nil)
	err := d.replay(ctx, id, 0, func(e *pipeline.Event) {
		if found = true; !e.Type.Known() {
			unknown = fmt.Errorf("event %d: there is no type %q", e.Seq, e.Type)
		}
		run.Apply(*e)
	})
	err = errors.Join(err, unknown)
	if err == nil && !found {
		err = ErrNotFound // unreachable: a run is made with its first event
	}
	if err != nil {
		return nil, fmt.Errorf("load run %d: %w", id, err)
	}
	return &run, nil
}

// Events returns a run's events after the given one in their order; 0 for all.
func (d *DB) Events(ctx context.Context, id, afterSeq int64) ([]pipeline.Event, error) {
	var events []pipeline.Event
	err := d.replay(ctx, id, afterSeq, func(e *pipeline.Event) { events = append(events, *e) })
	if err != nil {
		return nil, fmt.Errorf("read events of run %d: %w", id, err)
	}
	return events, nil
}

const selectEvents = `SELECT seq, id, type, source, time, data FROM events WHERE run = $1 AND seq > $2 ORDER BY seq`

// replay hands a run's events to take, one after the other. An event is take's
// to keep.
func (d *DB) replay(ctx context.Context, id, afterSeq int64, take func(*pipeline.Event)) error {
	var trace string
	err := d.reader.QueryRowContext(ctx, `SELECT trace FROM runs WHERE id = $1`, id).Scan(&trace)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	rows, err := d.reader.QueryContext(ctx, selectEvents, id, afterSeq)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		e := pipeline.Event{Run: id, Trace: trace}
		var at int64
		var data sql.RawBytes
		if err := rows.Scan(&e.Seq, &e.ID, &e.Type, &e.Source, &at, &data); err != nil {
			return err
		}
		if err := json.Unmarshal(data, &e.Data); err != nil {
			return fmt.Errorf("decode event %d: %w", e.Seq, err)
		}
		e.Time = time.UnixMicro(at).UTC()
		take(&e)
	}
	return rows.Err()
}

// RunOfTrace finds the run of a repository with a trace. The error is ErrNotFound when
// there is none.
func (d *DB) RunOfTrace(ctx context.Context, repo int64, trace string) (id int64, err error) {
	err = d.reader.QueryRowContext(ctx, `SELECT id FROM runs WHERE repo_id = $1 AND trace = $2 ORDER BY id LIMIT 1`, repo, trace).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("find the run with the trace %s: %w", trace, err)
	}
	return id, nil
}
