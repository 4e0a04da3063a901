package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// benchDB makes a database with a log over 180 days, of about 100 events a run.
// FORGE_BENCH_EVENTS sets its size (20,000 events), FORGE_BENCH_DB a path at which
// it is kept and found again.
func benchDB(b *testing.B) (db *store.DB, runs, events int) {
	want := 20_000
	if s := os.Getenv("FORGE_BENCH_EVENTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		want = n
	}
	path := cmp.Or(os.Getenv("FORGE_BENCH_DB"), filepath.Join(b.TempDir(), "forge.db"))
	db, err := store.Open(b.Context(), path, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	if err := db.SQL().QueryRow("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM events)").Scan(&runs, &events); err != nil {
		b.Fatal(err)
	}
	if events > 0 {
		return db, runs, events
	}
	if _, err := db.SQL().Exec("PRAGMA synchronous = OFF"); err != nil { // only to fill it
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for ; events < want; runs++ {
		list := newTeller(rng.IntN, fmt.Sprintf("acme/repo%d", runs%10), start.AddDate(0, 0, -rng.IntN(180)), benchSteps).tell()
		keep(b, db, fmt.Sprint("run", runs), list, len(list), func() {})
		events += len(list)
	}
	if _, err := db.SQL().Exec("PRAGMA synchronous = FULL"); err != nil {
		b.Fatal(err)
	}
	return db, runs, events
}

const benchSteps = 9

func p95(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)*95/100].Microseconds()) / 1000
}

// BenchmarkMetrics measures, on one log: taking all of it in the first time,
// against reading and decoding the same events; taking in what one run did since;
// and a report over 7, 30 and 90 days with the period before, against the bare
// query of the same rows.
func BenchmarkMetrics(b *testing.B) {
	db, runs, events := benchDB(b)
	ctx := context.Background()
	b.Logf("%d runs, %d events", runs, events)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			for _, table := range []string{"metric_snapshots", "cursors"} {
				if _, err := db.SQL().Exec("DELETE FROM " + table); err != nil {
					b.Fatal(err)
				}
			}
			at := time.Now()
			if _, err := db.MeasureRuns(ctx, Of); err != nil {
				b.Fatal(err)
			}
			ours := time.Since(at)
			at = time.Now()
			bareEvents(b, db)
			b.ReportMetric(float64(events)/ours.Seconds(), "events/s")
			b.ReportMetric(ours.Seconds()/time.Since(at).Seconds(), "x-bare-read")
		}
	})
	if _, err := db.MeasureRuns(ctx, Of); err != nil {
		b.Fatal(err)
	}
	b.Run("next", func(b *testing.B) {
		var times []time.Duration
		for n := 0; b.Loop(); n++ {
			run, err := db.Load(ctx, int64(1+n%runs))
			if err != nil {
				b.Fatal(err)
			}
			e := pipeline.Event{ID: fmt.Sprint("bench/", run.Seq), Type: pipeline.EventPublishCompleted, Time: start}
			if err := db.Append(ctx, run, []pipeline.Event{e}, nil); err != nil {
				b.Fatal(err)
			}
			at := time.Now()
			if n, err := db.MeasureRuns(ctx, Of); n != 1 || err != nil {
				b.Fatalf("MeasureRuns = %d, %v", n, err)
			}
			times = append(times, time.Since(at))
		}
		b.ReportMetric(p95(times), "p95-ms")
	})
	for _, days := range []int{7, 30, 90} {
		b.Run(fmt.Sprint("report-", days), func(b *testing.B) {
			o := Options{Days: days, Now: start}
			var times []time.Duration
			var ours, bare time.Duration
			for b.Loop() {
				at := time.Now()
				if rep := reportOf(b, db, o); rep.Runs == 0 {
					b.Fatal("a report of nothing")
				}
				took := time.Since(at)
				at = time.Now()
				bareRows(b, db, o)
				ours, bare, times = ours+took, bare+time.Since(at), append(times, took)
			}
			b.ReportMetric(p95(times), "p95-ms")
			b.ReportMetric(ours.Seconds()/bare.Seconds(), "x-bare-query")
		})
	}
}

func bareEvents(b *testing.B, db *store.DB) {
	rows, err := db.SQL().Query("SELECT run, seq, id, type, source, time, data FROM events ORDER BY run, seq")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var run, seq, at int64
		var id, typ, source string
		var data []byte
		var d pipeline.Data
		if err := rows.Scan(&run, &seq, &id, &typ, &source, &at, &data); err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func bareRows(b *testing.B, db *store.DB, o Options) {
	from, to := o.Span()
	rows, err := db.SQL().Query("SELECT day, metric, label, bucket, n, total, squares FROM metric_snapshots WHERE repo = $1 AND day >= $2 AND day <= $3", o.Repo, from, to)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r record.MetricRow
		if err := rows.Scan(&r.Day, &r.Metric, &r.Label, &r.Bucket, &r.N, &r.Total, &r.Squares); err != nil {
			b.Fatal(err)
		}
	}
}
