package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// MeasureFunc returns what a run adds to the days. The events are all of the run
// up to some moment, in their order.
type MeasureFunc = func(events []pipeline.Event) []record.MetricRow

// metricsCursor is the name of the reader of the log that measures runs.
const metricsCursor = "metrics"

// measureAtOnce is how many runs one transaction brings up to date.
const measureAtOnce = 100

const (
	// selectBehind finds runs that have gone on since a reader saw them.
	selectBehind = `SELECT r.id, r.repo, COALESCE(c.seq, 0) FROM runs r LEFT JOIN cursors c ON c.name = $1 AND c.run = r.id
		WHERE r.id > $2 AND r.seq > COALESCE(c.seq, 0) ORDER BY r.id LIMIT $3`
	beginCursor = `INSERT INTO cursors (name, run, seq) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	// passCursor moves a cursor only from where it was read: of two servers that
	// measure at the same time, one finds no row and adds nothing.
	passCursor    = `UPDATE cursors SET seq = $3 WHERE name = $1 AND run = $2 AND seq = $4`
	selectMetrics = `SELECT day, metric, label, bucket, n, total, squares FROM metric_snapshots WHERE repo = $1 AND day >= $2 AND day <= $3`
)

// metricColumns are the columns of the table.
const metricColumns = 8

var addMetrics = newBulkInsert(`INTO metric_snapshots (repo, day, metric, label, bucket, n, total, squares) VALUES `, metricColumns,
	` ON CONFLICT (repo, day, metric, label, bucket) DO UPDATE SET n = metric_snapshots.n + excluded.n,
	total = metric_snapshots.total + excluded.total, squares = metric_snapshots.squares + excluded.squares`)

// metricKey is what a sum is of.
type metricKey struct {
	repo   string
	day    int64
	metric string
	label  string
	bucket int
}

// behind is a run that has gone on since it was measured, up to event seq.
type behind struct {
	id   int64
	repo string
	seq  int64
}

// MeasureRuns brings the daily sums up to date with the log and reports how many
// runs it read: those that have gone on since the last call, each once. What such
// a run adds now, less what it added before, is added to its days; an event that
// arrives late changes the day that it belongs to. Any number of servers may call
// it at the same time: no event counts twice.
func (d *DB) MeasureRuns(ctx context.Context, of MeasureFunc) (runs int, err error) {
	after := int64(0)
	for {
		list, err := d.behind(ctx, metricsCursor, after, measureAtOnce)
		if err != nil || len(list) == 0 {
			return runs, err
		}
		err = d.measure(ctx, list, of)
		switch {
		case errors.Is(err, ErrConflict): // another server is at it
			return runs, nil
		case err != nil:
			return runs, fmt.Errorf("measure runs %d to %d: %w", list[0].id, list[len(list)-1].id, err)
		}
		runs += len(list)
		after = list[len(list)-1].id
	}
}

func (d *DB) behind(ctx context.Context, name string, after int64, limit int) ([]behind, error) {
	doing := "list runs that " + name + " has not read to their end"
	rows, err := d.reader.QueryContext(ctx, selectBehind, name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(b *behind) error { return rows.Scan(&b.id, &b.repo, &b.seq) })
}

// measure adds what is new in some runs.
func (d *DB) measure(ctx context.Context, list []behind, of MeasureFunc) error {
	sums := map[metricKey]*record.MetricRow{}
	to := make([]int64, len(list)) // the last event that was read
	for i, b := range list {
		events, err := d.Events(ctx, b.id, 0)
		if err != nil {
			return err
		}
		to[i] = events[len(events)-1].Seq
		before, _ := slices.BinarySearchFunc(events, b.seq+1, func(e pipeline.Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
		gather(sums, b.repo, of(events), 1)
		if before > 0 {
			gather(sums, b.repo, of(events[:before]), -1)
		}
	}
	return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for i, b := range list {
			if err := d.pass(ctx, tx, b, to[i]); err != nil {
				return err
			}
		}
		args := metricArgs(sums)
		days := daysOf(args)
		if err := d.holdDays(ctx, tx, days); err != nil {
			return err
		}
		if err := d.upsertMetrics(ctx, tx, args); err != nil {
			return err
		}
		return d.packDays(ctx, tx, days)
	})
}

// upsertMetrics adds rows, several at once.
func (d *DB) upsertMetrics(ctx context.Context, tx *sql.Tx, args []any) error {
	for _, size := range [...]int{64, 8, 1} {
		n := size * metricColumns
		if len(args) < n {
			continue
		}
		st, err := tx.PrepareContext(ctx, addMetrics.sql(d.dialect, size))
		if err != nil {
			return err
		}
		for ; len(args) >= n && err == nil; args = args[n:] {
			_, err = st.ExecContext(ctx, args[:n]...)
		}
		if err := errors.Join(err, st.Close()); err != nil {
			return err
		}
	}
	return nil
}

// gather adds rows to the sums of their repository and of all, times sign.
func gather(sums map[metricKey]*record.MetricRow, repo string, rows []record.MetricRow, sign int64) {
	for _, r := range rows {
		for _, of := range [...]string{"", repo} {
			key := metricKey{of, r.Day, clean(r.Metric), clean(r.Label), r.Bucket}
			s := sums[key]
			if s == nil {
				s = &record.MetricRow{}
				sums[key] = s
			}
			s.N += sign * r.N
			s.Total += sign * r.Total
			s.Squares += float64(sign) * r.Squares
		}
	}
}

// metricArgs returns the parameters of what changes, always in the same order, so
// that two writers wait for each other instead of locking each other out.
func metricArgs(sums map[metricKey]*record.MetricRow) []any {
	var keys []metricKey
	for k, s := range sums {
		if *s != (record.MetricRow{}) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b metricKey) int {
		return cmp.Or(cmp.Compare(a.repo, b.repo), cmp.Compare(a.day, b.day), cmp.Compare(a.metric, b.metric), cmp.Compare(a.label, b.label),
			cmp.Compare(a.bucket, b.bucket))
	})
	args := make([]any, 0, metricColumns*len(keys))
	for _, k := range keys {
		s := sums[k]
		args = append(args, k.repo, k.day, k.metric, k.label, k.bucket, s.N, s.Total, s.Squares)
	}
	return args
}

// pass notes that a run was measured up to an event; ErrConflict when somebody
// else has measured it meanwhile.
func (d *DB) pass(ctx context.Context, tx *sql.Tx, b behind, to int64) error {
	var n int64
	var err error
	if b.seq == 0 {
		n, err = d.exec(ctx, tx, beginCursor, metricsCursor, b.id, to)
	} else {
		n, err = d.exec(ctx, tx, passCursor, metricsCursor, b.id, to, b.seq)
	}
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Diminished lists the runs that met diminishing returns since a time, in a
// repository ("owner/name"; "" for all), newest first (M3).
func (d *DB) Diminished(ctx context.Context, repo string, since time.Time) ([]int64, error) {
	const doing = "list runs that met diminishing returns"
	rows, err := d.reader.QueryContext(ctx, `SELECT DISTINCT g.run FROM gates g JOIN runs r ON r.id = g.run
		WHERE g.guard = $1 AND g.opened >= $2 AND (CAST($3 AS TEXT) = '' OR r.repo = $3) ORDER BY g.run DESC`, string(pipeline.GuardDiminishing), micros(since), repo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(id *int64) error { return rows.Scan(id) })
}

// Repos lists the repositories that have runs, in the order of their names.
func (d *DB) Repos(ctx context.Context) ([]string, error) {
	const doing = "list repositories"
	// A step of the index for each repository, not one for each run.
	rows, err := d.reader.QueryContext(ctx, `WITH RECURSIVE names (repo) AS (
		SELECT MIN(repo) FROM runs UNION ALL SELECT (SELECT MIN(r.repo) FROM runs r WHERE r.repo > n.repo) FROM names n WHERE n.repo IS NOT NULL)
		SELECT repo FROM names WHERE repo IS NOT NULL ORDER BY repo`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(s *string) error { return rows.Scan(s) })
}
