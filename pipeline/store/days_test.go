package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/record"
)

func metricRows(t *rapid.T) (rows []record.MetricRow) {
	for metric := range rapid.IntRange(0, 3).Draw(t, "metrics") {
		for label := range rapid.IntRange(0, 3).Draw(t, "labels") {
			for bucket := range rapid.IntRange(0, 3).Draw(t, "buckets") {
				rows = append(rows, record.MetricRow{Day: 20260107, Metric: fmt.Sprint("m", metric), Label: []string{"", "plan", "ü\uFFFD"}[label], Bucket: bucket * 80,
					N: rapid.Int64().Draw(t, "n"), Total: rapid.Int64().Draw(t, "total"), Squares: rapid.Float64().Draw(t, "squares")})
			}
		}
	}
	return rows
}

// A day in one piece is read as it was written.
func TestPackRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := metricRows(t)
		u := unpacker{names: map[string]string{}}
		var got []record.MetricRow
		if err := u.rows(20260107, packRows(rows), func(r record.MetricRow) { got = append(got, r) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// FuzzUnpack: whatever a piece holds, it is read or refused.
func FuzzUnpack(f *testing.F) {
	f.Add(packRows([]record.MetricRow{{Metric: "cost", Label: "plan", Bucket: 7, N: 2, Total: 90, Squares: 4.5},
		{Metric: "cost", Label: "plan", Bucket: 8, N: 1}}))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		u := unpacker{names: map[string]string{}}
		rows := 0
		err := u.rows(1, data, func(record.MetricRow) { rows++ })
		if err != nil && !errors.Is(err, errPack) {
			t.Fatal(err)
		}
		if rows > len(data) { // a row takes eleven bytes and more
			t.Errorf("%d rows of %d bytes", rows, len(data))
		}
	})
}

// Covers M2: what is read is what the sums say.
func TestDaysAgainstSums(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		sums := func() (list []record.MetricRow) {
			rows, err := d.reader.Query(selectMetrics+orderMetrics, "", 20260101, 20261231)
			must(t, err)
			list, err = collect(rows, "read sums", func(r *record.MetricRow) error { return scanMetric(rows, r) })
			must(t, err)
			return list
		}
		const day = 24 * 3600
		var runs []*pipeline.Run
		for i := range 3 {
			runs = append(runs, begin(t, d, i+1))
		}
		for step := range 12 {
			run := runs[step%3]
			add(t, d, run, ev(fmt.Sprint("a", step), "note", step*step%40*day, pipeline.Data{}),
				ev(fmt.Sprint("b", step), pipeline.EventType(fmt.Sprint("kind", step%2)), 40*day, pipeline.Data{}))
			_, err := d.MeasureRuns(t.Context(), tally)
			must(t, err)
			if diff := cmp.Diff(sums(), metricsOf(t, d, "", 20260101, 20261231)); diff != "" {
				t.Fatalf("after step %d (-sums +Metrics)\n%s", step, diff)
			}
		}
		packed := count(t, d, `SELECT COUNT(*) FROM metric_days WHERE repo = ''`)
		want(t, "days in one piece", packed, count(t, d, `SELECT COUNT(DISTINCT day) FROM metric_snapshots WHERE repo = ''`))
		_, err := d.SQL().Exec(`UPDATE metric_days SET sums = $1`, []byte{200})
		must(t, err)
		if _, err := d.Metrics(t.Context(), "", 20260101, 20261231); !errors.Is(err, errPack) {
			t.Errorf("a damaged piece: %v", err)
		}
	})
}

// Two servers that measure different runs of one day at the same time: the day in
// one piece has the sums of both.
func TestMeasureADayTogether(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		for round := range 5 {
			kinds := []pipeline.EventType{"left", "right"}
			done := make(chan error, len(kinds))
			for i, kind := range kinds {
				run := begin(t, d, 2*round+i+1)
				add(t, d, run, ev("x", kind, 60, pipeline.Data{}))
				list := []behind{{id: run.ID, repo: "acme/site"}}
				go func() { done <- d.measure(t.Context(), list, tally) }()
			}
			for range kinds {
				must(t, <-done)
			}
		}
		for _, r := range metricsOf(t, d, "", 0, dayOf(now.Add(time.Hour))) {
			want(t, r.Label, r.N, map[string]int64{"left": 5, "right": 5, "run.started": 10}[r.Label])
		}
	})
}
