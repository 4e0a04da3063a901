// Package monitoring is what operators watch Forge with: its metrics for
// Prometheus, alert rules and a Grafana dashboard that are made of them, and the
// catalogue of the keys of its log lines. `forge monitoring` prints the files.
package monitoring

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"forge/cmd/forge/tracing"
	"forge/github"
	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Snapshot is everything that a scrape shows, as it is at one moment. It is a
// prometheus.Collector of constants: what is counted lies in the database, which
// all servers share, so that a restart resets nothing.
type Snapshot struct {
	At       time.Time
	Version  string
	Gauges   *store.Gauges
	Sums     []record.MetricRow // of Counted, over all days
	Figures  metrics.Report     // of the last days
	Memory   impact.Whole       // what memory changes, of all times
	DayUSD   float64            // caps on all runs together; 0: none
	MonthUSD float64            //
	Limits   []github.Limit     //
	Calls    int64              // to GitHub, by this process
	Traces   tracing.Stats      //
	Ready    map[string]bool    // by check

	Production Production
}

// Production is what goes wrong there, and what is on its way to it. A time is zero when
// there is nothing that it could be of.
type Production struct {
	Incidents  map[string]int // that go on, by severity
	Unanswered time.Time      // when the oldest critical one began that no person has answered
	Asking     time.Time      // when the oldest question about shipping was asked
	Step       time.Time      // when the oldest step of shipping began that is not a person's, and no watch
	Hooks      []Hook
}

// Hook is what came in by a hook of this process.
type Hook struct {
	Name                  string
	Taken, Unproven, Busy int64
}

// Counted are the metrics that a snapshot has the sums of.
var Counted = []string{metrics.PhaseDuration, metrics.PublishFailure, metrics.ModelTokens}

// FigureDays is the period of the figures of the loops, in days.
const FigureDays = 7

// Process collects what the Go runtime and the operating system know of this process.
func Process() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// states are all that a run can be in: each is shown, also when no run is in it.
var states = []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified,
	pipeline.StateAccepted, pipeline.StateCancelled, pipeline.StateFailed, pipeline.StateSkipped}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("forge_"+name, help, labels, nil)
}

// The metrics. Names are stable: people have alerts on them.
var (
	descBuild        = desc("build_info", "1, with the version of Forge and of Go.", "version", "go_version")
	descReady        = desc("ready", "1 when a check of /readyz is passed.", "check")
	descRuns         = desc("runs", "Runs by state.", "state")
	descWorking      = desc("runs_working", "Runs that a server is working on.")
	descDue          = desc("runs_due", "Runs that have something to do, and nobody who does it yet.")
	descDueAge       = desc("run_due_oldest_seconds", "How long the longest of them has waited; 0 when there is none.")
	descPauses       = desc("pauses", "Pauses of work, by `forge pause`: of all of it, or of a repository's.")
	descGates        = desc("gates_open", "Questions that wait for a person.")
	descGateAge      = desc("gate_oldest_seconds", "How long the oldest of them has waited; 0 when there is none.")
	descDeliveries   = desc("deliveries", "Webhook deliveries that wait to be handled, and that were given up.", "state")
	descDeliveryAge  = desc("delivery_oldest_seconds", "How long the oldest delivery has waited to be handled; 0 when there is none.")
	descCost         = desc("model_cost_usd_total", "What all model calls have cost.")
	descTokens       = desc("model_tokens_total", "Tokens of agents' model calls, up to the last measurement: input, cached (input that the provider's cache served), output, reasoning.", "kind")
	descSpent        = desc("spent_usd", "What model calls have cost on this day, and in this month (UTC).", "period")
	descBudget       = desc("budget_usd", "The cap on it (day_usd, month_usd); absent without one.", "period")
	descPublish      = desc("publish_total", "Attempts to show a run on GitHub, up to the last measurement.")
	descPublishError = desc("publish_errors_total", "Those that failed.")
	descDuration     = desc("phase_duration_seconds", "Working time of executions of a phase that ended with a result, up to the last measurement.", "phase")
	descFigure       = desc("figure", "A figure of `forge metrics` over 7 days: a share from 0 to 1, or a mean in the unit that is named there.", "metric", "label")
	descFigureN      = desc("figure_observations", "How many observations the figure is of.", "metric", "label")
	descMemoryRuns   = desc("memory_runs", "Ended runs that worked with what Forge has learnt, and without, as it was drawn when they began.", "memory")
	descMemoryEffect = desc("memory_effect", "Share of first reviews approved with memory, less the share without: value, and the bounds low and high "+
		"of an interval that is good however often it is looked at; absent while there are too few runs.", "bound")
	descLimit      = desc("github_limit", "Calls in an hour that GitHub allows an installation, as last heard.", "installation", "resource")
	descRemaining  = desc("github_limit_remaining", "What is left of them.", "installation", "resource")
	descCalls      = desc("github_calls_total", "Calls to GitHub by this process.")
	descIncidents  = desc("incidents", "Incidents of production that go on.", "severity")
	descUnanswered = desc("incident_unanswered_seconds",
		"How long the oldest critical incident has gone on to which no person has said anything; 0 when there is none.")
	descShipAsk  = desc("ship_question_oldest_seconds", "How long the oldest question about shipping has waited for a person; 0 when there is none.")
	descShipStep = desc("ship_step_oldest_seconds", "How long the oldest merge or deployment of shipping has not got on; 0 when there is none.")
	descHooks    = desc("hook_deliveries_total", "What came in by a hook of this process: taken, unproven (who sends it does not prove who it is), "+
		"busy (more than it takes).", "hook", "result")
	descSpans = desc("trace_spans_total", "Spans of traces: exported, failed (the collector did not take them), dropped (too many waited).", "result")
)

// Describe implements prometheus.Collector. A snapshot is collected once and
// checked then; it promises nothing before.
func (s *Snapshot) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Snapshot) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(descBuild, 1, s.Version, runtime.Version())
	for _, name := range slices.Sorted(maps.Keys(s.Ready)) {
		gauge(descReady, number(s.Ready[name]), name)
	}
	s.collectWork(gauge)
	s.collectProduction(gauge, counter)
	g := s.Gauges
	counter(descCost, usd(g.MicroUSD))
	for _, p := range []struct {
		name  string
		spent int64
		limit float64
	}{{"day", g.DayMicro, s.DayUSD}, {"month", g.MonthMicro, s.MonthUSD}} {
		gauge(descSpent, usd(p.spent), p.name)
		if p.limit > 0 {
			gauge(descBudget, p.limit, p.name)
		}
	}
	var tries, failures int64
	tokens := map[string]int64{}
	for _, r := range s.Sums {
		switch {
		case r.Metric == metrics.PublishFailure:
			tries, failures = tries+r.N, failures+r.Total
		case r.Metric == metrics.ModelTokens && r.Label != "": // which is all of them
			tokens[r.Label] += r.Total
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(tokens)) {
		counter(descTokens, float64(tokens[kind]), kind)
	}
	counter(descPublish, float64(tries))
	counter(descPublishError, float64(failures))
	durations(out, s.Sums)
	for _, m := range s.Figures.Metrics {
		for _, f := range append([]metrics.Figure{m.Figure}, m.Labels...) {
			if f.Now != nil {
				gauge(descFigure, f.Now.Value, m.Key, f.Label)
				gauge(descFigureN, float64(f.Now.N), m.Key, f.Label)
			}
		}
	}
	gauge(descMemoryRuns, float64(s.Memory.With.Runs), "with")
	gauge(descMemoryRuns, float64(s.Memory.Without.Runs), "without")
	if i := s.Memory.FirstPass; i != nil {
		gauge(descMemoryEffect, i.Value, "value")
		gauge(descMemoryEffect, i.Low, "low")
		gauge(descMemoryEffect, i.High, "high")
	}
	for _, l := range s.Limits {
		id := strconv.FormatInt(l.Installation, 10)
		gauge(descLimit, float64(l.Limit), id, l.Resource)
		gauge(descRemaining, float64(l.Remaining), id, l.Resource)
	}
	counter(descCalls, float64(s.Calls))
	counter(descSpans, float64(s.Traces.Exported), "exported")
	counter(descSpans, float64(s.Traces.Failed), "failed")
	counter(descSpans, float64(s.Traces.Dropped), "dropped")
}

// collectWork shows what there is to do, and for how long it has waited.
func (s *Snapshot) collectWork(gauge func(*prometheus.Desc, float64, ...string)) {
	g := s.Gauges
	for _, state := range states {
		gauge(descRuns, float64(g.Runs[string(state)]), string(state))
	}
	gauge(descWorking, float64(g.Working))
	gauge(descDue, float64(g.Due))
	gauge(descDueAge, s.age(g.DueSince))
	gauge(descPauses, float64(g.Pauses))
	gauge(descGates, float64(g.Gates))
	gauge(descGateAge, s.age(g.GateSince))
	for _, state := range slices.Sorted(maps.Keys(g.Deliveries)) {
		gauge(descDeliveries, float64(g.Deliveries[state]), state)
	}
	gauge(descDeliveryAge, s.age(g.WaitingSince))
}

// collectProduction shows what goes wrong in production, and what is on its way there.
func (s *Snapshot) collectProduction(gauge, counter func(*prometheus.Desc, float64, ...string)) {
	p := s.Production
	for _, severity := range []production.Severity{production.SeverityWarning, production.SeverityCritical} {
		gauge(descIncidents, float64(p.Incidents[string(severity)]), string(severity))
	}
	gauge(descUnanswered, s.age(p.Unanswered))
	gauge(descShipAsk, s.age(p.Asking))
	gauge(descShipStep, s.age(p.Step))
	for _, h := range p.Hooks {
		counter(descHooks, float64(h.Taken), h.Name, "taken")
		counter(descHooks, float64(h.Unproven), h.Name, "unproven")
		counter(descHooks, float64(h.Busy), h.Name, "busy")
	}
}

// age is how long ago a time was, in seconds.
func (s *Snapshot) age(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, s.At.Sub(t).Seconds())
}

// leastBound and mostBound are the bounds of the histogram's buckets, as powers of
// two in milliseconds: from a second to 70 minutes. At powers of two they agree
// with the buckets in which durations are counted.
const (
	leastBound = 10
	mostBound  = 22
)

// durations shows how long phases took, as a histogram for each.
func durations(out chan<- prometheus.Metric, rows []record.MetricRow) {
	phases := map[string][]record.MetricRow{}
	for _, r := range rows {
		if r.Metric == metrics.PhaseDuration {
			phases[r.Label] = append(phases[r.Label], r)
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		within := func(bound int64) (n uint64) {
			for _, r := range phases[phase] {
				if _, high := metrics.BucketRange(r.Bucket); high <= bound {
					n += uint64(max(0, r.N))
				}
			}
			return n
		}
		buckets := map[float64]uint64{}
		for power := leastBound; power <= mostBound; power++ {
			bound := int64(1)<<power - 1
			buckets[float64(bound)/1000] = within(bound)
		}
		var ms int64
		for _, r := range phases[phase] {
			ms += r.Total
		}
		out <- prometheus.MustNewConstHistogram(descDuration, within(math.MaxInt64), float64(ms)/1000, buckets, phase)
	}
}

func usd(micro int64) float64 { return float64(micro) / 1e6 }

func number(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
