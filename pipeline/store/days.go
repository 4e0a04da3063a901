package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"forge/pipeline/record"
)

// The sums of a day are kept a second time, in one piece, because a report over 90
// days of a busy database would read 50,000 rows of them. A piece is written in the
// transaction that changes the day's sums, and is never more than a copy of them.

const (
	selectDays   = `SELECT day, sums FROM metric_days WHERE repo = $1 AND day >= $2 AND day <= $3 ORDER BY day`
	putDay       = `INSERT INTO metric_days (repo, day, sums) VALUES ($1, $2, $3) ON CONFLICT (repo, day) DO UPDATE SET sums = excluded.sums`
	orderMetrics = ` ORDER BY day, metric, label, bucket`
)

// dayKey is a day of a repository.
type dayKey struct {
	repo string
	day  int64
}

// daysOf are the days that rows of parameters (see [metricArgs]) change, in order.
func daysOf(args []any) (days []dayKey) {
	for ; len(args) > 0; args = args[metricColumns:] {
		k := dayKey{args[0].(string), args[1].(int64)}
		if len(days) == 0 || days[len(days)-1] != k {
			days = append(days, k)
		}
	}
	return days
}

// holdDays makes changes of these days wait for each other until the transaction
// ends: of two that change different sums of a day, one would miss the other's when
// it writes the day. SQLite has one writer anyway.
func (d *DB) holdDays(ctx context.Context, tx *sql.Tx, days []dayKey) error {
	if d.dialect == dialectSQLite {
		return nil
	}
	for _, k := range days {
		if _, err := d.exec(ctx, tx, putDay, k.repo, k.day, []byte{}); err != nil {
			return err
		}
	}
	return nil
}

// packDays writes days in one piece, as their sums are now.
func (d *DB) packDays(ctx context.Context, tx *sql.Tx, days []dayKey) error {
	if len(days) == 0 {
		return nil
	}
	read, err := tx.PrepareContext(ctx, selectMetrics+orderMetrics)
	if err != nil {
		return err
	}
	defer read.Close() //nolint:errcheck // the transaction ends it
	for _, k := range days {
		rows, err := read.QueryContext(ctx, k.repo, k.day, k.day)
		if err != nil {
			return err
		}
		list, err := collect(rows, "read a day's sums", func(r *record.MetricRow) error { return scanMetric(rows, r) })
		if err != nil {
			return err
		}
		if _, err := d.exec(ctx, tx, putDay, k.repo, k.day, packRows(list)); err != nil {
			return err
		}
	}
	return nil
}

func scanMetric(rows *sql.Rows, r *record.MetricRow) error {
	return rows.Scan(&r.Day, &r.Metric, &r.Label, &r.Bucket, &r.N, &r.Total, &r.Squares)
}

// packRows encodes the rows of one day, in their order: each metric and label once,
// then its buckets.
func packRows(rows []record.MetricRow) []byte {
	var out []byte
	text := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	for len(rows) > 0 {
		first, n := rows[0], 1
		for n < len(rows) && rows[n].Metric == first.Metric && rows[n].Label == first.Label {
			n++
		}
		text(first.Metric)
		text(first.Label)
		out = binary.AppendUvarint(out, uint64(n))
		for _, r := range rows[:n] {
			out = binary.AppendVarint(out, int64(r.Bucket))
			out = binary.AppendVarint(out, r.N)
			out = binary.AppendVarint(out, r.Total)
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(r.Squares))
		}
		rows = rows[n:]
	}
	return out
}

// errPack is a piece that cannot be read.
var errPack = errors.New("a day's sums are damaged")

// unpacker decodes pieces. It keeps each name once.
type unpacker struct {
	names map[string]string
	data  []byte
	err   error
}

// rows hands the rows of a day to take.
func (u *unpacker) rows(day int64, data []byte, take func(record.MetricRow)) error {
	u.data, u.err = data, nil
	for len(u.data) > 0 && u.err == nil {
		r := record.MetricRow{Day: day, Metric: u.text(), Label: u.text()}
		for n := u.count(); n > 0 && u.err == nil; n-- {
			r.Bucket, r.N, r.Total = int(u.number()), u.number(), u.number()
			if len(u.data) < 8 {
				u.err = errPack
				break
			}
			r.Squares = math.Float64frombits(binary.LittleEndian.Uint64(u.data))
			u.data = u.data[8:]
			take(r)
		}
	}
	return u.err
}

func (u *unpacker) text() string {
	n := u.count()
	if u.err != nil || n > uint64(len(u.data)) {
		u.err = errPack
		return ""
	}
	b := u.data[:n]
	u.data = u.data[n:]
	s, known := u.names[string(b)]
	if !known {
		s = string(b)
		u.names[s] = s
	}
	return s
}

func (u *unpacker) count() uint64 {
	v, n := binary.Uvarint(u.data)
	return past(u, v, n)
}

func (u *unpacker) number() int64 {
	v, n := binary.Varint(u.data)
	return past(u, v, n)
}

// past goes past what was read.
func past[T any](u *unpacker, v T, n int) (none T) {
	if n <= 0 {
		u.err, u.data = errPack, nil
		return none
	}
	u.data = u.data[n:]
	return v
}

// Metrics returns the sums of the days from one to another, both included, of a
// repository ("owner/name"; "" for all together), in the order of days.
func (d *DB) Metrics(ctx context.Context, repo string, from, to int64) (list []record.MetricRow, err error) {
	err = d.EachMetric(ctx, repo, from, to, func(r record.MetricRow) { list = append(list, r) })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b record.MetricRow) int { return cmp.Compare(a.Day, b.Day) })
	return list, nil
}

// EachMetric hands the rows of [DB.Metrics] to take, in no order of days, and keeps
// none of them: a year of many repositories has millions.
func (d *DB) EachMetric(ctx context.Context, repo string, from, to int64, take func(record.MetricRow)) error {
	doing := fmt.Sprintf("read metrics of %q from %d to %d", repo, from, to)
	rows, err := d.reader.QueryContext(ctx, selectDays, repo, from, to)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	u := unpacker{names: map[string]string{}}
	_, err = collect(rows, doing, func(day *int64) error {
		var sums sql.RawBytes
		if err := rows.Scan(day, &sums); err != nil {
			return err
		}
		return u.rows(*day, sums, take)
	})
	return err
}
