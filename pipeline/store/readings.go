package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	selectReading = `SELECT reading FROM readings WHERE repo = $1 AND key = $2`
	putReading    = `INSERT INTO readings (repo, key, reading, at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (repo, key) DO UPDATE SET reading = excluded.reading, at = excluded.at`
	forgetReadings = `DELETE FROM readings WHERE at < $1`
)

const readingsKept = 30 * 24 * time.Hour

// Reading reads into v what was measured at a base, by how that was done. It is not there
// when nobody has measured it, or it was deleted after a month.
func (d *DB) Reading(ctx context.Context, repo, key string, v any) (there bool, err error) {
	var data string
	err = d.reader.QueryRowContext(ctx, selectReading, clean(repo), key).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(data), v)
	}
	if err != nil {
		return false, fmt.Errorf("read what %s came to at a base: %w", repo, err)
	}
	return true, nil
}

// KeepReading keeps what was measured at a base, as JSON, and deletes what is older than a month.
func (d *DB) KeepReading(ctx context.Context, repo, key string, v any, now time.Time) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = d.change(ctx, nil, forgetReadings, micros(now.Add(-readingsKept)))
	}
	if err == nil {
		_, err = d.change(ctx, nil, putReading, clean(repo), key, clean(string(data)), micros(now))
	}
	if err != nil {
		return fmt.Errorf("keep what %s came to at a base: %w", repo, err)
	}
	return nil
}
