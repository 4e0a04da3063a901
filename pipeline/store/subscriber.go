package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Subscriber is somebody who is told of events. How far is its cursor, of the same name.
type Subscriber struct {
	Name   string
	Since  time.Time // nothing from before is told
	Failed time.Time // since when nothing gets through; zero: it does
	Paused string    // why it is told nothing any more; "": it is
}

// Subscribe makes a subscriber, unless it is there, whose news begin now: what has
// happened in all runs and incidents so far counts as told.
func (d *DB) Subscribe(ctx context.Context, name string, now time.Time) error {
	err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		n, err := d.change(ctx, tx, `INSERT INTO subscribers (name, since) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, micros(now))
		if err == nil && n > 0 {
			_, err = d.change(ctx, tx, `INSERT INTO cursors (name, run, seq) SELECT $1, id, seq FROM runs WHERE seq > 0 ON CONFLICT DO NOTHING`, name)
		}
		if err == nil && n > 0 {
			_, err = d.change(ctx, tx, `INSERT INTO incident_cursors (name, incident, seq) SELECT $1, id, seq FROM incidents WHERE seq > 0 ON CONFLICT DO NOTHING`, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("subscribe %s: %w", name, err)
	}
	return nil
}

// Subscriber returns one, or ErrNotFound.
func (d *DB) Subscriber(ctx context.Context, name string) (Subscriber, error) {
	s := Subscriber{Name: name}
	var since, failed int64
	err := d.reader.QueryRowContext(ctx, `SELECT since, failed, paused FROM subscribers WHERE name = $1`, name).Scan(&since, &failed, &s.Paused)
	if errors.Is(err, sql.ErrNoRows) {
		return s, fmt.Errorf("read subscriber %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return s, fmt.Errorf("read subscriber %s: %w", name, err)
	}
	s.Since = fromMicros(since)
	if failed != 0 {
		s.Failed = fromMicros(failed)
	}
	return s, nil
}

// HoldSubscriber makes holder the one who tells a subscriber, until a moment. It reports
// false when another one holds it, or it is paused.
func (d *DB) HoldSubscriber(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	n, err := d.change(ctx, nil, `UPDATE subscribers SET holder = $2, until = $4 WHERE name = $1 AND paused = '' AND (holder = $2 OR until <= $3)`,
		name, holder, micros(now), micros(until))
	if err != nil {
		return false, fmt.Errorf("hold subscriber %s: %w", name, err)
	}
	return n > 0, nil
}

// SubscriberFailed notes since when nothing gets through to a subscriber, the zero time
// when it does, and why it is paused, "" when it is not.
func (d *DB) SubscriberFailed(ctx context.Context, name string, since time.Time, paused string) error {
	at := int64(0)
	if !since.IsZero() {
		at = micros(since)
	}
	n, err := d.change(ctx, nil, `UPDATE subscribers SET failed = $2, paused = $3 WHERE name = $1`, name, at, clean(paused))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("change subscriber %s: %w", name, err)
	}
	return nil
}

// Behind lists runs with events that the reader called name has not passed, at most
// limit of them, by their number, from the one behind after.
func (d *DB) Behind(ctx context.Context, name string, after int64, limit int) ([]int64, error) {
	list, err := d.behind(ctx, name, after, limit)
	out := make([]int64, len(list))
	for i, b := range list {
		out[i] = b.id
	}
	return out, err
}

// Changed is a run, or an incident, with events since some moment.
type Changed struct {
	ID, Seq int64
	Repo    string // "owner/name"
	Updated time.Time
}

// Changed lists the runs in which something was stored at a moment or later, by their
// number. It reads all runs: some 5 ms for 10,000.
func (d *DB) Changed(ctx context.Context, since time.Time) ([]Changed, error) {
	return d.changed(ctx, "runs", since)
}

// changed lists the rows of a table that changed at a moment or later.
func (d *DB) changed(ctx context.Context, table string, since time.Time) ([]Changed, error) {
	doing := "list changed " + table
	rows, err := d.reader.QueryContext(ctx, `SELECT id, seq, repo, updated FROM `+table+` WHERE updated >= $1 ORDER BY id`, micros(since))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(c *Changed) error {
		var updated int64
		err := rows.Scan(&c.ID, &c.Seq, &c.Repo, &updated)
		c.Updated = fromMicros(updated)
		return err
	})
}
