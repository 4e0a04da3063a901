package store

import (
	"context"
	"fmt"
	"time"
)

// countTurn begins a new window when the last one is over, or lies in the future: the clock
// was put back.
const (
	countTurn = `INSERT INTO turns (place, since, n) VALUES ($1, $2, 1) ON CONFLICT (place) DO UPDATE SET
		n = CASE WHEN turns.since <= $3 OR turns.since > $2 THEN 1 ELSE turns.n + 1 END,
		since = CASE WHEN turns.since <= $3 OR turns.since > $2 THEN excluded.since ELSE turns.since END
		RETURNING since, n`
	pruneTurns = `DELETE FROM turns WHERE since < $1`
)

// Turn counts one more of something in a place, and returns how many that makes in the
// window, and when that began.
func (d *DB) Turn(ctx context.Context, place string, now time.Time, window time.Duration) (n int, since time.Time, err error) {
	var began int64
	if err := d.writer.QueryRowContext(ctx, countTurn, clean(place), micros(now), micros(now.Add(-window))).Scan(&began, &n); err != nil {
		return 0, time.Time{}, fmt.Errorf("count what happens in %s: %w", place, err)
	}
	return n, fromMicros(began), nil
}

// PruneTurns forgets what was counted in windows that began before a time.
func (d *DB) PruneTurns(ctx context.Context, before time.Time) error {
	if _, err := d.change(ctx, nil, pruneTurns, micros(before)); err != nil {
		return fmt.Errorf("delete old counts: %w", err)
	}
	return nil
}
