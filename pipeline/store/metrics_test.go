package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
)

// tally measures a run by counting its events: one row for each day and type.
func tally(events []pipeline.Event) (rows []record.MetricRow) {
	at := map[[2]any]int{}
	for _, e := range events {
		key := [2]any{dayOf(e.Time), e.Type}
		i, known := at[key]
		if !known {
			i = len(rows)
			at[key] = i
			rows = append(rows, record.MetricRow{Day: dayOf(e.Time), Metric: "events", Label: string(e.Type)})
		}
		rows[i].N++
		rows[i].Total += 2
		rows[i].Squares += 4
	}
	return rows
}

func metricsOf(t *testing.T, d *DB, repo string, from, to int64) []record.MetricRow {
	t.Helper()
	rows, err := d.Metrics(t.Context(), repo, from, to)
	must(t, err)
	return rows
}

// Covers M2, M3: what is new is added to its day, by repository and in all, once;
// an event that comes late changes the day that it is of.
func TestMeasureRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		const day = 24 * 3600
		measure := func(want int) {
			t.Helper()
			got, err := d.MeasureRuns(t.Context(), tally)
			must(t, err)
			if got != want {
				t.Errorf("MeasureRuns read %d runs, want %d", got, want)
			}
		}
		measure(0)
		one := begin(t, d, 1)
		begin(t, d, 2)
		add(t, d, one, ev("a", "note", day, pipeline.Data{}), ev("b", "note", day, pipeline.Data{}))
		measure(2)
		add(t, d, one, ev("c", "note", 2*day, pipeline.Data{}), ev("late", "note", day, pipeline.Data{}))
		measure(1)
		measure(0)
		row := func(day int64, label string, n int64) record.MetricRow {
			return record.MetricRow{Day: day, Metric: "events", Label: label, N: n, Total: 2 * n, Squares: 4 * float64(n)}
		}
		want := []record.MetricRow{row(20260301, "run.started", 2), row(20260302, "note", 3), row(20260303, "note", 1)}
		for _, repo := range []string{"", "acme/site"} {
			if diff := cmp.Diff(want, metricsOf(t, d, repo, 20260101, 20261231)); diff != "" {
				t.Errorf("metrics of %q (-want +got)\n%s", repo, diff)
			}
		}
		if diff := cmp.Diff(want[1:2], metricsOf(t, d, "", 20260302, 20260302)); diff != "" {
			t.Errorf("metrics of one day (-want +got)\n%s", diff)
		}
		if got := metricsOf(t, d, "acme/other", 0, 99999999); got != nil {
			t.Errorf("metrics of another repository: %v", got)
		}
		repos, err := d.Repos(t.Context())
		must(t, err)
		if diff := cmp.Diff([]string{"acme/site"}, repos); diff != "" {
			t.Errorf("Repos (-want +got)\n%s", diff)
		}
	})
}

// What two servers read at the same time counts once: the second finds the cursor
// moved, and adds nothing of all that it read.
func TestMeasureTwice(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 1)
		begin(t, d, 2)
		for _, part := range []string{"first", "second"} {
			stale, err := d.behind(t.Context(), metricsCursor, 0, measureAtOnce)
			must(t, err)
			_, err = d.MeasureRuns(t.Context(), tally)
			must(t, err)
			before := metricsOf(t, d, "", 0, 99999999)
			if err := d.measure(t.Context(), stale, tally); !errors.Is(err, ErrConflict) {
				t.Errorf("measure what was measured, %s time: %v", part, err)
			}
			if diff := cmp.Diff(before, metricsOf(t, d, "", 0, 99999999)); diff != "" {
				t.Errorf("%s time (-before +after)\n%s", part, diff)
			}
			add(t, d, run, ev(part, "note", 5, pipeline.Data{}))
		}
	})
}

// Labels are taken as they come; PostgreSQL takes no NUL.
func TestMetricLabels(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		begin(t, d, 1)
		_, err := d.MeasureRuns(t.Context(), func([]pipeline.Event) []record.MetricRow {
			return []record.MetricRow{{Day: 1, Metric: "m", Label: "a\x00b\xff", N: 1}, {Day: 1, Metric: "m", N: 2, Bucket: 3}}
		})
		must(t, err)
		want := []record.MetricRow{{Day: 1, Metric: "m", N: 2, Bucket: 3}, {Day: 1, Metric: "m", Label: "a\uFFFDb\uFFFD", N: 1}}
		if diff := cmp.Diff(want, metricsOf(t, d, "", 0, 9)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// Covers M2: what a monitor asks for.
func TestGauges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		got, err := d.Gauges(ctx, now)
		must(t, err)
		empty := &Gauges{Runs: map[string]int64{}, Deliveries: map[string]int64{"waiting": 0, "dead": 0}}
		if diff := cmp.Diff(empty, got); diff != "" {
			t.Errorf("of nothing (-want +got)\n%s", diff)
		}
		run := begin(t, d, 1)
		begin(t, d, 2)
		idle := begin(t, d, 3)
		begin(t, d, 4)
		gate := &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateEscalation}
		add(t, d, run, ev("step", pipeline.EventAgentIteration, 1,
			pipeline.Data{Step: &pipeline.Step{Phase: pipeline.PhasePlan, Usage: pipeline.Usage{MicroUSD: 70}}}),
			ev("gate", pipeline.EventGateRequested, 2, pipeline.Data{Gate: gate}))
		must(t, d.KeepDeliveries(ctx, []record.Delivery{delivery("a"), delivery("b")}))
		_, err = d.MeasureRuns(ctx, tally)
		must(t, err)
		// One is being worked on, one was put off; the first waits, and has something to publish.
		for _, id := range []int64{2, idle.ID} {
			_, err := d.Lease(ctx, id, "w", now, time.Minute)
			must(t, err)
		}
		_, err = d.Postpone(ctx, idle.ID, "w", idle.Seq, now.Add(time.Hour))
		must(t, err)
		at := now.Add(30 * time.Second)
		got, err = d.Gauges(ctx, at)
		must(t, err)
		want := &Gauges{Runs: map[string]int64{"running": 3, "waiting": 1}, Working: 1, Due: 2, DueSince: now, Gates: 1, GateSince: now.Add(2 * time.Second),
			Deliveries: map[string]int64{"waiting": 2, "dead": 0}, WaitingSince: delivery("a").Received.UTC(), MicroUSD: 70, DayMicro: 70, MonthMicro: 70}
		sums, err := d.Sums(ctx, "events", "none")
		must(t, err)
		if diff := cmp.Diff([]record.MetricRow{{Metric: "events", Label: "agent.iteration", N: 1, Total: 2},
			{Metric: "events", Label: "gate.requested", N: 1, Total: 2}, {Metric: "events", Label: "run.started", N: 4, Total: 8}}, sums); diff != "" {
			t.Errorf("Sums (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		// The lease runs out and the time comes that the other was put off to.
		got, err = d.Gauges(ctx, now.Add(2*time.Hour))
		must(t, err)
		if got.Working != 0 || got.Due != 4 || !got.DueSince.Equal(now) {
			t.Errorf("two hours later: %+v", got)
		}
	})
}

// It can be written, or it says why not.
func TestWritable(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		must(t, d.Writable(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Writable(ctx); err == nil {
			t.Error("Writable with a context that has ended = nil")
		}
	})
}

// Covers M3: the runs that met diminishing returns.
func TestDiminished(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		for i, name := range []pipeline.GuardName{pipeline.GuardDiminishing, pipeline.GuardBudget, pipeline.GuardDiminishing} {
			gate := &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateStuck, Guard: &pipeline.Guard{Name: name}}
			add(t, d, begin(t, d, i+1), ev("gate", pipeline.EventGateRequested, 60*i, pipeline.Data{Gate: gate}))
		}
		for _, c := range []struct {
			repo  string
			since time.Time
			want  []int64
		}{{"", now, []int64{3, 1}}, {"acme/site", now.Add(time.Minute), []int64{3}}, {"acme/other", now, nil}, {"", now.Add(time.Hour), nil}} {
			got, err := d.Diminished(t.Context(), c.repo, c.since)
			must(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Diminished(%q, %v) (-want +got)\n%s", c.repo, c.since, diff)
			}
		}
	})
}

// A run that was measured and goes on while it is measured again: what comes in
// between is left for the next time.
func TestMeasureWhileItGoesOn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 1)
		n := 0
		interrupt := func(events []pipeline.Event) []record.MetricRow {
			if n++; n == 1 {
				add(t, d, run, ev("between", "note", 60, pipeline.Data{}))
			}
			return tally(events)
		}
		for range 2 {
			_, err := d.MeasureRuns(t.Context(), interrupt)
			must(t, err)
		}
		rows := metricsOf(t, d, "", 0, dayOf(now.Add(time.Hour)))
		want := []record.MetricRow{{Day: 20260301, Metric: "events", Label: "note", N: 1, Total: 2, Squares: 4},
			{Day: 20260301, Metric: "events", Label: "run.started", N: 1, Total: 2, Squares: 4}}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
