package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// stepOf is an event as an agent makes most: a tool's use, some 300 bytes.
func stepOf(n int) pipeline.Event {
	return ev(fmt.Sprintf("iter/1/implement/step/%d", n), pipeline.EventToolExecuted, n, pipeline.Data{Tool: &pipeline.ToolUse{
		Phase: pipeline.PhaseImplement, Iteration: 1, Step: n, Tool: "edit", Subject: "internal/server/handler.go", OK: true,
		Millis: 12, Bytes: 4096, Digest: strings.Repeat("d", 64)}})
}

// BenchmarkAppend compares [DB.Append] of 10 events with the bare insert of the
// same rows in one transaction with prepared statements, in turn, and prints
// Append's speed as a multiple (target: 0.8 or more).
func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	d, bare := openFile(b), openFile(b)
	run, other := begin(b, d, 1), begin(b, bare, 1)
	insert, err := bare.writer.Prepare(insertEvents.sql(dialectSQLite, 1))
	must(b, err)
	const batch = 10
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		events := make([]pipeline.Event, batch)
		rows := make([][]any, batch)
		for i := range events {
			n++
			events[i] = stepOf(n)
			data, err := json.Marshal(events[i].Data)
			must(b, err)
			rows[i] = []any{other.ID, n + 1, events[i].ID, string(events[i].Type), "forge", micros(events[i].Time), string(data)}
		}
		at := time.Now()
		must(b, d.Append(ctx, run, events, nil))
		ours += time.Since(at)
		at = time.Now()
		must(b, bare.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			st := tx.StmtContext(ctx, insert)
			for _, row := range rows {
				if _, err := st.ExecContext(ctx, row...); err != nil {
					return err
				}
			}
			return nil
		}))
		theirs += time.Since(at)
	}
	b.ReportMetric(float64(n)/ours.Seconds(), "events/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "x-bare-insert")
}

// BenchmarkReplay compares [DB.Load] of a run of 1,000 events in a big log with
// the bare SELECT and decoding of the same rows, in turn, and prints Load's time
// as a multiple (target: 1.3 or less). FORGE_BENCH_EVENTS sets the size of the
// log (20,000 events).
func BenchmarkReplay(b *testing.B) {
	ctx := context.Background()
	total := 20_000
	if s := os.Getenv("FORGE_BENCH_EVENTS"); s != "" {
		var err error
		total, err = strconv.Atoi(s)
		must(b, err)
	}
	d := openFile(b)
	const each = 1000
	runs := max(1, total/each)
	for i := range runs {
		run := begin(b, d, i+1)
		events := make([]pipeline.Event, each-1)
		for n := range events {
			events[n] = stepOf(n)
		}
		add(b, d, run, events...)
	}
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		id := int64(n*7919%runs + 1)
		n++
		first, second := func() { must(b, loadOnly(ctx, d, id, each)) }, func() { must(b, bareReplay(ctx, d, id, each)) }
		if n%2 == 0 { // who comes second finds the pages in memory
			theirs += timed(second)
			ours += timed(first)
		} else {
			ours += timed(first)
			theirs += timed(second)
		}
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(n), "µs/replay")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-bare-select")
}

func timed(f func()) time.Duration {
	at := time.Now()
	f()
	return time.Since(at)
}

func loadOnly(ctx context.Context, d *DB, id int64, events int64) error {
	run, err := d.Load(ctx, id)
	if err == nil && run.Seq != events {
		err = fmt.Errorf("run %d has %d events", id, run.Seq)
	}
	return err
}

func bareReplay(ctx context.Context, d *DB, id int64, events int64) error {
	rows, err := d.reader.QueryContext(ctx, `SELECT seq, id, type, source, time, data FROM events WHERE run = $1 ORDER BY seq`, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	var e pipeline.Event
	for rows.Next() {
		var at int64
		var data []byte
		e = pipeline.Event{}
		if err := rows.Scan(&e.Seq, &e.ID, &e.Type, &e.Source, &at, &data); err != nil {
			return err
		}
		if err := json.Unmarshal(data, &e.Data); err != nil {
			return err
		}
	}
	if e.Seq != events {
		return fmt.Errorf("run %d has %d events", id, e.Seq)
	}
	return rows.Err()
}
