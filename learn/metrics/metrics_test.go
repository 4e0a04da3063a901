package metrics

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// databases are those that a report is computed from. With the tag e2e, PostgreSQL is one.
var databases = []database{{"sqlite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "forge.db") }}}

type database struct {
	name    string
	address func(testing.TB) string // of a new one
}

func onEach(t *testing.T, test func(t *testing.T, db *store.DB)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), d.address(t), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			test(t, db)
		})
	}
}

// reportOf computes a report from the database.
func reportOf(t testing.TB, db *store.DB, o Options) Report {
	t.Helper()
	from, to := o.Span()
	list, err := db.Metrics(context.Background(), o.Repo, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return compute(list, o)
}

func compute(rows []record.MetricRow, o Options) Report {
	s := NewSums(o)
	for _, r := range rows {
		s.Add(r)
	}
	return s.Report()
}

// keep appends a run's log in parts, after each of which between is called.
func keep(t testing.TB, db *store.DB, key string, events []pipeline.Event, part int, between func()) {
	t.Helper()
	ctx := context.Background()
	run, err := db.CreateRun(ctx, key, *events[0].Data.Start, events[0].Time, "trace", nil)
	for part := range slices.Chunk(events[1:], part) {
		if err == nil {
			between()
			err = db.Append(ctx, run, part, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wanted is an estimate computed from observations themselves.
func wanted(d Definition, values []float64) *Estimate {
	if len(values) == 0 {
		return nil
	}
	n, sum := float64(len(values)), 0.0
	for _, v := range values {
		sum += v
	}
	e := &Estimate{N: int64(len(values)), Value: sum / n}
	squares := 0.0
	for _, v := range values {
		squares += (v - e.Value) * (v - e.Value)
	}
	switch p, z2 := e.Value, z95*z95; {
	case d.Kind == Share: // the roots of |p - x| = z sqrt(x(1-x)/n)
		a, b, c := 1+z2/n, -(2*p + z2/n), p*p
		root := math.Sqrt(max(0, b*b-4*a*c))
		e.Interval, e.Method = &[2]float64{(-b - root) / (2 * a), (-b + root) / (2 * a)}, "Wilson"
	case n > 1:
		half := quantile95(len(values)-1) * math.Sqrt(squares/(n-1)/n)
		e.Interval, e.Method = &[2]float64{max(0, p-half), p + half}, "Student"
	}
	if d.Dist {
		slices.Sort(values)
		median, p90 := values[int(math.Ceil(0.5*n))-1], values[int(math.Ceil(0.9*n))-1]
		e.Median, e.P90 = &median, &p90
	}
	return e
}

// quantile95 is Student's two-sided 95 % quantile, found by halving the integral
// of its density.
func quantile95(freedom int) float64 {
	if q, known := quantiles.Load(freedom); known {
		return q.(float64)
	}
	v := float64(freedom)
	lg1, _ := math.Lgamma((v + 1) / 2)
	lg2, _ := math.Lgamma(v / 2)
	density := func(x float64) float64 {
		return math.Exp(lg1-lg2) / math.Sqrt(v*math.Pi) * math.Pow(1+x*x/v, -(v+1)/2)
	}
	const step = 1e-3
	for x, area := 0.0, 0.0; ; x += step {
		if area += step * (density(x) + 4*density(x+step/2) + density(x+step)) / 6; area >= 0.475 {
			quantiles.Store(freedom, x+step)
			return x + step
		}
	}
}

// quantiles are those that were found, by their degrees of freedom.
var quantiles sync.Map

// alike reports whether two estimates are the same but for rounding, the buckets
// and the approximation of Student's quantile.
func alike(got, want *Estimate) bool {
	if got == nil || want == nil {
		return got == want
	}
	near := func(a, b, tolerance float64) bool {
		return math.Abs(a-b) <= tolerance*max(1e-6, math.Abs(a), math.Abs(b))
	}
	both := func(a, b *float64) bool { return (a == nil) == (b == nil) && (a == nil || near(*a, *b, 0.0626)) }
	if got.N != want.N || got.Method != want.Method || !near(got.Value, want.Value, 1e-9) || (got.Interval == nil) != (want.Interval == nil) {
		return false
	}
	for i := range 2 {
		if in := got.Interval; in != nil && math.Abs(in[i]-want.Interval[i]) > 0.02*max(want.Interval[1]-want.Value, 1e-6) {
			return false
		}
	}
	return both(got.Median, want.Median) && both(got.P90, want.P90)
}

// compare holds a report against the observations of a repository's runs.
func compare(t rapid.TB, rep Report, all []observation, o Options) {
	t.Helper()
	today := timeOf(DayOf(o.Now))
	inside := func(day int64, from, to int) bool { // days ago, to excluded
		ago := int(today.Sub(timeOf(day)).Hours() / 24)
		return ago >= from && ago < to
	}
	values := func(d Definition, label string, every bool, from, to int) (out []float64) {
		for _, ob := range all {
			if ob.metric == d.Key && inside(ob.day, from, to) && (ob.label == label || every && !d.Whole) {
				out = append(out, ob.value)
			}
		}
		return out
	}
	check := func(m Metric, f Figure, every bool) {
		for k, got := range []*Estimate{f.Now, f.Before} {
			want := wanted(m.Definition, values(m.Definition, f.Label, every, k*o.Days, (k+1)*o.Days))
			if !alike(got, want) {
				t.Fatalf("%s %q, period %d back, %d days:\n got %s\nwant %s", m.Key, f.Label, k, o.Days, text(got), text(want))
			}
		}
		for i, got := range f.Series {
			want := wanted(m.Definition, values(m.Definition, f.Label, every, o.Days-1-i, o.Days-i))
			if (got == nil) != (want == nil) || got != nil && math.Abs(*got-want.Value) > 1e-6*max(1, want.Value) {
				t.Fatalf("%s %q, day %d: got %v, want %v", m.Key, f.Label, i, got, want)
			}
			if n := f.Counts[i]; want == nil && n != 0 || want != nil && n != want.N {
				t.Fatalf("%s %q, day %d: %d observations, want %v", m.Key, f.Label, i, n, want)
			}
		}
	}
	for _, m := range rep.Metrics {
		check(m, m.Figure, true)
		seen := map[string]bool{}
		for _, f := range m.Labels {
			seen[f.Label] = true
			check(m, f, false)
		}
		for _, ob := range all {
			if ob.metric == m.Key && m.By != "" && ob.label != "" && inside(ob.day, 0, 2*o.Days) && !seen[ob.label] {
				t.Fatalf("%s has no label %q", m.Key, ob.label)
			}
		}
	}
}

func text(e *Estimate) string {
	if e == nil {
		return "no data"
	}
	s := fmt.Sprintf("n %d, value %v", e.N, e.Value)
	if e.Interval != nil {
		s += fmt.Sprintf(" %s %v", e.Method, *e.Interval)
	}
	if e.Median != nil {
		s += fmt.Sprintf(" median %v p90 %v", *e.Median, *e.P90)
	}
	return s
}

// Covers M1, I3, B9: every metric of random logs is what a slow look at each
// observation gives.
func TestAgainstReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		var rows []record.MetricRow
		var all []observation
		for range 1 + pick(4) {
			events := newTeller(pick, "r", start.AddDate(0, 0, pick(60)), 3).tell()
			rows, all = append(rows, Of(events)...), append(all, observe(events)...)
		}
		o := Options{Days: []int{7, 30, 90}[pick(3)], Now: start.AddDate(0, 0, pick(90))}
		compare(t, compute(rows, o), all, o)
	})
}

// Covers M1, M2: the same with the database between, on both engines: logs are
// taken in in parts, by several readers at a time, and repositories apart and
// together add up over 7, 30 and 90 days.
func TestStored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		rng := rand.New(rand.NewPCG(1, 2))
		all := map[string][]observation{}
		var latest time.Time
		for n := range 24 {
			repo := []string{"acme/site", "acme/shop", "zoo"}[n%3]
			events := newTeller(rng.IntN, repo, start.AddDate(0, 0, rng.IntN(60)), 3).tell()
			all[repo], all[""] = append(all[repo], observe(events)...), append(all[""], observe(events)...)
			latest = latestOf(latest, events[len(events)-1].Time)
			keep(t, db, fmt.Sprint("run", n), events, 1+rng.IntN(100), func() {
				if rng.IntN(3) == 0 {
					measureTogether(t, db)
				}
			})
		}
		measureTogether(t, db)
		for repo, observations := range all {
			for _, days := range []int{7, 30, 90} {
				o := Options{Repo: repo, Days: days, Now: latest.AddDate(0, 0, -rng.IntN(20))}
				compare(t, reportOf(t, db, o), observations, o)
			}
		}
		if runs, err := db.MeasureRuns(t.Context(), Of); runs != 0 || err != nil {
			t.Errorf("MeasureRuns with nothing new = %d, %v", runs, err)
		}
	})
}

// measureTogether measures as two servers at a time would, then once more: one of
// the two may have given way.
func measureTogether(t *testing.T, db *store.DB) {
	t.Helper()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := db.MeasureRuns(context.Background(), Of); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := db.MeasureRuns(context.Background(), Of); err != nil {
		t.Error(err)
	}
}

func latestOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A run measured in two parts adds the same as measured once: the differences add up.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		events := newTeller(pick, "r", start, 3).tell()
		sums := map[record.MetricRow][2]int64{}
		add := func(rows []record.MetricRow, sign int64) {
			for _, r := range rows {
				key := record.MetricRow{Day: r.Day, Metric: r.Metric, Label: r.Label, Bucket: r.Bucket}
				s := sums[key]
				sums[key] = [2]int64{s[0] + sign*r.N, s[1] + sign*r.Total}
			}
		}
		last := 0
		for last < len(events) {
			next := min(len(events), last+1+pick(60))
			add(Of(events[:next]), 1)
			add(Of(events[:last]), -1)
			last = next
		}
		add(Of(events), -1)
		for k, s := range sums {
			if s != [2]int64{} {
				t.Fatalf("%+v is off by %v", k, s)
			}
		}
	})
}

// Buckets hold all values, in order, and are as narrow as is said.
func TestBuckets(t *testing.T) {
	t.Parallel()
	next := int64(0)
	for b := range 480 {
		low, high := BucketRange(b)
		if low != next || high < low || float64(high-low)/2 > 0.0625*float64(low)+1e-9 {
			t.Fatalf("BucketRange(%d) = %d, %d after %d", b, low, high, next-1)
		}
		if bucketOf(low) != b || bucketOf(high) != b {
			t.Fatalf("bucketOf(%d), bucketOf(%d) = %d, %d, want %d", low, high, bucketOf(low), bucketOf(high), b)
		}
		next = high + 1
		if high == math.MaxInt64 {
			break
		}
	}
	if got := bucketOf(-5); got != 0 {
		t.Errorf("bucketOf(-5) = %d, want 0", got)
	}
}

// Nothing is said of nothing: no figure is NaN, or zero for want of data.
func TestNoData(t *testing.T) {
	t.Parallel()
	rep := compute(nil, Options{Days: 7, Now: start})
	if rep.Runs != 0 || rep.From != "2026-02-23" || rep.To != "2026-03-01" || len(rep.Metrics) != len(Catalogue()) {
		t.Errorf("report of nothing: %+v", rep)
	}
	for _, m := range rep.Metrics {
		if m.Now != nil || m.Before != nil || m.Trend != TrendNone || slices.ContainsFunc(m.Series, func(v *float64) bool { return v != nil }) {
			t.Errorf("%s of nothing: %+v", m.Key, m.Figure)
		}
	}
	for _, g := range rep.Targets {
		if g.Value != nil || g.Hit != nil {
			t.Errorf("target %s of nothing: %+v", g.Name, g)
		}
	}
}

// Covers V6 and M2's trends.
func TestTrendsAndTargets(t *testing.T) {
	t.Parallel()
	share := func(day int64, metric string, n, so int64) record.MetricRow {
		return record.MetricRow{Day: day, Metric: metric, N: n, Total: so}
	}
	rows := []record.MetricRow{
		share(20260301, Success, 100, 90), share(20260220, Success, 100, 50), // better
		share(20260301, Escalation, 100, 40), share(20260220, Escalation, 100, 5), // worse
		share(20260301, FirstPass, 10, 6), share(20260220, FirstPass, 10, 5), // chance
		{Day: 20260301, Metric: Learnings, N: 100, Total: 500, Squares: 2500}, {Day: 20260220, Metric: Learnings, N: 100, Total: 300, Squares: 900},
		share(20260301, QuickPass, 10, 5), share(20260301, IterationFixes, 10, 10),
		{Day: 20260301, Metric: IterationTime, Bucket: bucketOf(1_799_999), N: 10, Total: 17_999_990},
	}
	rep := compute(rows, Options{Days: 7, Now: start})
	want := map[string]Trend{Success: TrendBetter, Escalation: TrendWorse, FirstPass: TrendSteady, Learnings: TrendUp, QuickPass: TrendNone}
	for _, m := range rep.Metrics {
		if w, ok := want[m.Key]; ok && m.Trend != w {
			t.Errorf("trend of %s is %q, want %q", m.Key, m.Trend, w)
		}
	}
	hits := map[string]bool{QuickPass: false, IterationFixes: true, Escalation: false, IterationTime: true}
	for _, g := range rep.Targets {
		if g.Hit == nil || *g.Hit != hits[g.Metric] {
			t.Errorf("target %s: hit %v, want %v", g.Name, g.Hit, hits[g.Metric])
		}
	}
	if rep.Runs != 100 {
		t.Errorf("%d runs, want 100", rep.Runs)
	}
}

// A target says how many runs it has seen as long as there are too few for a verdict.
func TestTargetsWithTooFewRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n   int64
		few string
		hit bool
	}{{0, "0 of 10 runs needed", false}, {3, "3 of 10 runs needed", false}, {9, "9 of 10 runs needed", false}, {10, "", true}} {
		var rows []record.MetricRow
		if tt.n > 0 {
			rows = append(rows, record.MetricRow{Day: 20260301, Metric: QuickPass, N: tt.n, Total: tt.n})
		}
		got := compute(rows, Options{Days: 7, Now: start}).Targets[0]
		if got.Few() != tt.few || (got.Hit != nil) != tt.hit || (got.Value != nil) != (tt.n > 0) {
			t.Errorf("with %d runs: %+v, %q", tt.n, got, got.Few())
		}
	}
}

// What a model without a price costs is not known: such a run is no observation of
// the cost, and its tools are none.
func TestUnknownCostIsNoObservation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		usage pipeline.Usage
		n     int64
	}{{pipeline.Usage{Calls: 1, Input: 10, MicroUSD: 5}, 1}, {pipeline.Usage{Calls: 1, Input: 10, Unpriced: 10}, 0}} {
		ref := pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
		events := pipelinetest.New(config.Default(), pipeline.Task{Title: "x"}).Events
		at := events[len(events)-1].Time
		for _, e := range []pipeline.Event{
			{Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: &ref}},
			{Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &pipeline.Step{Phase: ref.Phase, Number: 1, Usage: tt.usage}}},
			{Type: pipeline.EventToolExecuted, Data: pipeline.Data{Tool: &pipeline.ToolUse{Phase: ref.Phase, Step: 1, Tool: "read"}}},
			{Type: pipeline.EventRunCancelled},
		} {
			e.Time = at
			events = append(events, e)
		}
		got := map[string]int64{}
		for _, r := range Of(events) {
			got[r.Metric] += r.N
		}
		if got[Cost] != tt.n || got[ToolCost] != tt.n || got[Success] != 1 {
			t.Errorf("%+v: %d costs, %d of tools, %d runs", tt.usage, got[Cost], got[ToolCost], got[Success])
		}
	}
}

// Of never fails, whatever the order of events.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		events := newTeller(pick, "r", start, 3).tell()
		events = rapid.Permutation(events).Draw(t, "order")
		if rapid.Bool().Draw(t, "bare") {
			for i := range events {
				if pick(5) == 0 {
					events[i].Data = pipeline.Data{}
				}
			}
		}
		for _, r := range Of(events) {
			if d := definitions[r.Metric]; r.N < 1 || r.Total < 0 || d.Kind == Share && r.Total > r.N {
				t.Fatalf("row %+v", r)
			}
		}
	})
}

// The catalogue has a name, a definition and a unit for each metric, once.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range Catalogue() {
		if seen[d.Key] || cmp.Or(d.Name, "") == "" || d.Text == "" || d.Unit == "" || d.Kind == Share && d.Unit != "share" || d.Whole && d.By == "" {
			t.Errorf("definition %+v", d)
		}
		seen[d.Key] = true
	}
}
