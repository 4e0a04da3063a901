package main

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"forge/cmd/forge/dashboard/access"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/store"
)

// scrape answers a monitor in Prometheus' text format, version 0.0.4. Numbers of
// runs and money are nobody else's business: it answers to who has the token, and
// without one to this machine alone.
type scrape struct {
	db    *store.DB
	token string // "": none is set
	log   *slog.Logger
}

func (s scrape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.allows(r) {
		http.Error(w, "metrics are shown to this machine alone; to read them from elsewhere set metrics_token_file and send the token: Authorization: Bearer TOKEN", http.StatusForbidden)
		return
	}
	g, err := s.db.Gauges(r.Context(), metrics.PhaseDuration, metrics.PublishFailure)
	if err != nil {
		s.log.Error("count for a monitor", "error", err)
		http.Error(w, "the database does not answer; see the log", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	writeGauges(w, g)
}

// allows reports whether a request may read the metrics.
func (s scrape) allows(r *http.Request) bool {
	if s.token != "" {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return ok && subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
	}
	return access.ThisMachine(r)
}

// states are all that a run can be in: each is shown, also when no run is in it.
var states = []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified,
	pipeline.StateAccepted, pipeline.StateCancelled, pipeline.StateFailed, pipeline.StateSkipped}

func writeGauges(w io.Writer, g *store.Gauges) {
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	head("forge_runs", "gauge", "Runs by state.")
	for _, s := range states {
		fmt.Fprintf(w, "forge_runs{state=%q} %d\n", s, g.Runs[string(s)])
	}
	head("forge_gates_open", "gauge", "Questions that wait for a person.")
	fmt.Fprintf(w, "forge_gates_open %d\n", g.Gates)
	head("forge_deliveries", "gauge", "Webhook deliveries that wait to be handled, and that were given up.")
	for _, state := range slices.Sorted(maps.Keys(g.Deliveries)) {
		fmt.Fprintf(w, "forge_deliveries{state=%q} %d\n", state, g.Deliveries[state])
	}
	head("forge_model_cost_usd_total", "counter", "What all model calls have cost.")
	fmt.Fprintf(w, "forge_model_cost_usd_total %d.%06d\n", g.MicroUSD/1e6, g.MicroUSD%1e6)
	var tries, failures int64
	for _, r := range g.Metrics {
		if r.Metric == metrics.PublishFailure {
			tries, failures = tries+r.N, failures+r.Total
		}
	}
	head("forge_publish_total", "counter", "Attempts to show a run on GitHub, up to the last measurement.")
	fmt.Fprintf(w, "forge_publish_total %d\n", tries)
	head("forge_publish_errors_total", "counter", "Those that failed.")
	fmt.Fprintf(w, "forge_publish_errors_total %d\n", failures)
	head("forge_phase_duration_seconds", "histogram", "Working time of executions of a phase that ended with a result, up to the last measurement.")
	writeDurations(w, g.Metrics)
}

// leastBound and mostBound are the bounds of the histogram's buckets, as powers of
// two in milliseconds: from a second to 70 minutes. At powers of two they agree
// with the buckets in which durations are counted.
const (
	leastBound = 10
	mostBound  = 22
)

func writeDurations(w io.Writer, rows []store.MetricRow) {
	phases := map[string][]store.MetricRow{}
	for _, r := range rows {
		if r.Metric == metrics.PhaseDuration {
			phases[r.Label] = append(phases[r.Label], r)
		}
	}
	const name = "forge_phase_duration_seconds"
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		within := func(bound int64) (n int64) {
			for _, r := range phases[phase] {
				if _, high := metrics.BucketRange(r.Bucket); high <= bound {
					n += r.N
				}
			}
			return n
		}
		for power := leastBound; power <= mostBound; power++ {
			bound := int64(1)<<power - 1
			fmt.Fprintf(w, "%s_bucket{phase=%q,le=\"%.3f\"} %d\n", name, phase, float64(bound)/1000, within(bound))
		}
		var ms int64
		for _, r := range phases[phase] {
			ms += r.Total
		}
		all := within(math.MaxInt64)
		fmt.Fprintf(w, "%s_bucket{phase=%q,le=\"+Inf\"} %d\n%s_sum{phase=%q} %d.%03d\n%s_count{phase=%q} %d\n", name, phase, all, name, phase, ms/1000, ms%1000, name, phase, all)
	}
}
