package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"forge/pipeline/record"
)

// Gauges are counts of what is in the database now, for a monitor. A time is zero
// when there is nothing that it could be of.
type Gauges struct {
	Runs         map[string]int64 // by state
	Working      int64            // runs that a server is working on: someone holds their lease
	Due          int64            // runs that have something to do, and nobody who does it
	DueSince     time.Time        // since when the one has that is due for longest
	Gates        int64            // open
	GateSince    time.Time        // since when the oldest of them is
	Deliveries   map[string]int64 // waiting and dead
	WaitingSince time.Time        // when the oldest waiting one came
	MicroUSD     int64            // what all model calls have cost
	DayMicro     int64            // on the day
	MonthMicro   int64            // in the month up to the day
	Pauses       int64            // of all work, or of a repository's
}

const (
	countRuns = `SELECT state, count(*), COALESCE(SUM(CASE WHEN lease_owner <> '' AND lease_until > $1 THEN 1 ELSE 0 END), 0) FROM runs GROUP BY state`
	// A run is due since its last event, or since the time that it was put off to.
	countDue   = `SELECT count(*), COALESCE(MIN(CASE WHEN due > 1 THEN due ELSE updated END), 0) FROM runs WHERE due > 0 AND due <= $1 AND (lease_owner = '' OR lease_until <= $1)`
	countOther = `SELECT (SELECT count(*) FROM gates WHERE NOT closed), (SELECT COALESCE(MIN(opened), 0) FROM gates WHERE NOT closed),
		(SELECT count(*) FROM deliveries WHERE state = 'waiting'), (SELECT COALESCE(MIN(received), 0) FROM deliveries WHERE state = 'waiting'),
		(SELECT count(*) FROM deliveries WHERE state = 'dead'), (SELECT COALESCE(SUM(micro_usd), 0) FROM spend),
		(SELECT count(*) FROM pauses WHERE paused = 1 AND` + lastOfRepo + `)`
)

// Gauges counts what is in the database at a time. It makes four queries, whatever
// there is to count.
func (d *DB) Gauges(ctx context.Context, at time.Time) (*Gauges, error) {
	const doing = "count for a monitor"
	g := &Gauges{Runs: map[string]int64{}, Deliveries: map[string]int64{}}
	rows, err := d.reader.QueryContext(ctx, countRuns, micros(at))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	_, err = collect(rows, doing, func(*struct{}) error {
		var state string
		var n, working int64
		err := rows.Scan(&state, &n, &working)
		g.Runs[state] = n
		g.Working += working
		return err
	})
	if err != nil {
		return nil, err
	}
	var due, gate, waiting, dead, since int64
	if err := d.reader.QueryRowContext(ctx, countDue, micros(at)).Scan(&g.Due, &due); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if err := d.reader.QueryRowContext(ctx, countOther).Scan(&g.Gates, &gate, &waiting, &since, &dead, &g.MicroUSD, &g.Pauses); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	g.DueSince, g.GateSince, g.WaitingSince = fromMicros(due), fromMicros(gate), fromMicros(since)
	g.Deliveries["waiting"], g.Deliveries["dead"] = waiting, dead
	g.DayMicro, g.MonthMicro, err = d.Spent(ctx, at)
	return g, err
}

// Sums adds up metrics over all days and repositories; the rows' Day is 0. It reads
// all days: ask for it no more often than the days change.
func (d *DB) Sums(ctx context.Context, metrics ...string) ([]record.MetricRow, error) {
	doing := "sum " + strings.Join(metrics, ", ")
	marks, args := make([]string, len(metrics)), make([]any, len(metrics))
	for i, m := range metrics {
		marks[i], args[i] = fmt.Sprintf("$%d", i+1), m
	}
	rows, err := d.reader.QueryContext(ctx, `SELECT metric, label, bucket, SUM(n), SUM(total) FROM metric_snapshots
		WHERE repo = '' AND metric IN (`+strings.Join(marks, ", ")+`) GROUP BY metric, label, bucket ORDER BY metric, label, bucket`, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(r *record.MetricRow) error { return rows.Scan(&r.Metric, &r.Label, &r.Bucket, &r.N, &r.Total) })
}

// Writable reports whether the database can be written now: it takes the right to
// write, as every append does, and gives it back. It reads no more than a page;
// see [DB.Check] for a thorough look.
func (d *DB) Writable(ctx context.Context) error {
	err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE cursors SET seq = seq WHERE name = ''`) // no reader has that name
		return err
	})
	if err != nil {
		return fmt.Errorf("write to database %s: %w", d.name, err)
	}
	return nil
}
