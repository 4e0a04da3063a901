package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// TapeEntry is one model call: what was asked, as a hash, and what came back.
type TapeEntry struct {
	Key  string // of the action that made the call
	Step int    // within the action
	Hash string // of the request
	Data []byte // the response; compressed in the database
}

// TapeRecord keeps a model call's response. A call of the same action and step
// is replaced.
func (d *DB) TapeRecord(ctx context.Context, run int64, key string, step int, hash string, data []byte) error {
	_, err := d.change(ctx, nil, `INSERT INTO tape (run, key, step, hash, data) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (run, key, step) DO UPDATE SET hash = excluded.hash, data = excluded.data`, run, key, step, hash, s2.Encode(nil, data))
	if err != nil {
		return fmt.Errorf("record model call %d of %s of run %d: %w", step, key, run, err)
	}
	return nil
}

// TapeLookup returns the recorded call of a step; ok is false when there is none.
func (d *DB) TapeLookup(ctx context.Context, run int64, key string, step int) (hash string, data []byte, ok bool, err error) {
	var packed []byte
	err = d.reader.QueryRowContext(ctx, `SELECT hash, data FROM tape WHERE run = $1 AND key = $2 AND step = $3`, run, key, step).Scan(&hash, &packed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, false, nil
	}
	if err == nil {
		data, err = s2.Decode(nil, packed)
	}
	if err != nil {
		return "", nil, false, fmt.Errorf("look up model call %d of %s of run %d: %w", step, key, run, err)
	}
	return hash, data, true, nil
}

// TapeCut forgets an action's calls from a step on: what is asked now differs
// from what was asked then, so that nothing after it can be played back.
func (d *DB) TapeCut(ctx context.Context, run int64, key string, fromStep int) error {
	_, err := d.change(ctx, nil, `DELETE FROM tape WHERE run = $1 AND key = $2 AND step >= $3`, run, key, fromStep)
	if err != nil {
		return fmt.Errorf("cut tape of %s of run %d from %d: %w", key, run, fromStep, err)
	}
	return nil
}

// TapeAll returns a run's model calls in the order in which they were first made.
func (d *DB) TapeAll(ctx context.Context, run int64) ([]TapeEntry, error) {
	doing := fmt.Sprintf("read tape of run %d", run)
	rows, err := d.reader.QueryContext(ctx, selectTape, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collectTape(rows, doing)
}

const selectTape = `SELECT key, step, hash, data FROM tape WHERE run = $1 ORDER BY id`

// TapePage returns at most limit of a run's model calls after the first skip ones,
// in the order of [DB.TapeAll].
func (d *DB) TapePage(ctx context.Context, run int64, skip, limit int) ([]TapeEntry, error) {
	doing := fmt.Sprintf("read tape of run %d from %d", run, skip)
	rows, err := d.reader.QueryContext(ctx, selectTape+` LIMIT $2 OFFSET $3`, run, limitOr(limit, 100), skip)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collectTape(rows, doing)
}

// TapeKeys returns the keys of a run's model calls, in the order of [DB.TapeAll],
// without what came back.
func (d *DB) TapeKeys(ctx context.Context, run int64) ([]string, error) {
	doing := fmt.Sprintf("list tape of run %d", run)
	rows, err := d.reader.QueryContext(ctx, `SELECT key FROM tape WHERE run = $1 ORDER BY id`, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(key *string) error { return rows.Scan(key) })
}

func collectTape(rows *sql.Rows, doing string) ([]TapeEntry, error) {
	return collect(rows, doing, func(t *TapeEntry) error {
		var packed []byte
		if err := rows.Scan(&t.Key, &t.Step, &t.Hash, &packed); err != nil {
			return err
		}
		var err error
		t.Data, err = s2.Decode(nil, packed)
		return err
	})
}
