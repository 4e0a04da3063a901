package monitoring

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"forge/cmd/forge/tracing"
	"forge/github"
	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// text is a scrape of a snapshot.
func text(t *testing.T, s *Snapshot) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// Covers M2: what a monitor reads. The names of before are as they were.
func TestScrapeText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	v := 0.25
	got := text(t, &Snapshot{At: at, Version: "v1", DayUSD: 50, Calls: 7,
		Gauges: &store.Gauges{Runs: map[string]int64{"running": 2, "verified": 40}, Working: 1, Due: 3, DueSince: at.Add(-90 * time.Second),
			Pauses: 2, Gates: 1, GateSince: at.Add(-time.Hour),
			Deliveries: map[string]int64{"waiting": 3, "dead": 1}, WaitingSince: at.Add(time.Minute), MicroUSD: 12_345_678, DayMicro: 1_500_000, MonthMicro: 2_500_000},
		Sums: []record.MetricRow{
			{Metric: metrics.PublishFailure, N: 50, Total: 2},
			{Metric: metrics.ModelTokens, N: 3, Total: 900}, {Metric: metrics.ModelTokens, Label: "input", N: 3, Total: 600},
			{Metric: metrics.ModelTokens, Label: "cached", N: 3, Total: 300}, {Day: 8, Metric: metrics.ModelTokens, Label: "cached", N: 1, Total: 5},
			{Metric: metrics.PhaseDuration, Label: "plan", Bucket: 7, N: 1, Total: 7},     // 7 ms
			{Metric: metrics.PhaseDuration, Label: "plan", Bucket: 71, N: 2, Total: 3990}, // 1,920 to 2,047 ms
			{Metric: metrics.PhaseDuration, Label: "plan", Bucket: 200, N: 1, Total: 268_435_456},
		},
		Figures: metrics.Report{Metrics: []metrics.Metric{
			{Definition: metrics.Definition{Key: metrics.Dismissal}, Figure: metrics.Figure{Now: &metrics.Estimate{N: 8, Value: v}},
				Labels: []metrics.Figure{{Label: "style", Now: &metrics.Estimate{N: 2, Value: 1}}, {Label: "none"}}}}},
		Memory: impact.Whole{With: impact.Arm{Runs: 90}, Without: impact.Arm{Runs: 10}, FirstPass: &impact.Interval{Value: -0.25, Low: -0.5, High: -0.125}},
		Limits: []github.Limit{{Installation: 9, Resource: "core", Limit: 5000, Remaining: 4321}},
		Production: Production{Incidents: map[string]int{"critical": 2}, Unanswered: at.Add(-20 * time.Minute), Asking: at.Add(-time.Hour),
			Hooks: []Hook{{Name: "prom", Taken: 5, Unproven: 2, Busy: 1}}},
		Traces: tracing.Stats{Exported: 5, Failed: 2, Dropped: 1}, Ready: map[string]bool{"database": true, "sandbox": false},
	})
	for _, want := range []string{
		"# TYPE forge_runs gauge\nforge_runs{state=\"accepted\"} 0\n", "forge_runs{state=\"running\"} 2\n", "forge_runs{state=\"verified\"} 40\n",
		"forge_runs{state=\"waiting\"} 0\n",
		"forge_pauses 2\n", "forge_gates_open 1\n", "forge_deliveries{state=\"dead\"} 1\nforge_deliveries{state=\"waiting\"} 3\n",
		"# TYPE forge_model_cost_usd_total counter\nforge_model_cost_usd_total 12.345678\n",
		"forge_model_tokens_total{kind=\"cached\"} 305\nforge_model_tokens_total{kind=\"input\"} 600\n", "forge_publish_total 50\n", "forge_publish_errors_total 2\n",
		"forge_phase_duration_seconds_bucket{phase=\"plan\",le=\"1.023\"} 1\nforge_phase_duration_seconds_bucket{phase=\"plan\",le=\"2.047\"} 3\n",
		"forge_phase_duration_seconds_bucket{phase=\"plan\",le=\"4194.303\"} 3\nforge_phase_duration_seconds_bucket{phase=\"plan\",le=\"+Inf\"} 4\n" +
			"forge_phase_duration_seconds_sum{phase=\"plan\"} 268439.453\nforge_phase_duration_seconds_count{phase=\"plan\"} 4\n",
		"forge_build_info{go_version=\"go", "forge_ready{check=\"database\"} 1\nforge_ready{check=\"sandbox\"} 0\n", "forge_runs_working 1\n", "forge_runs_due 3\n",
		"forge_run_due_oldest_seconds 90\n", "forge_gate_oldest_seconds 3600\n", "forge_delivery_oldest_seconds 0\n", // its clock is ahead
		"forge_spent_usd{period=\"day\"} 1.5\nforge_spent_usd{period=\"month\"} 2.5\n", "forge_budget_usd{period=\"day\"} 50\n",
		"forge_figure{label=\"\",metric=\"finding_dismissal\"} 0.25\nforge_figure{label=\"style\",metric=\"finding_dismissal\"} 1\n",
		"forge_figure_observations{label=\"\",metric=\"finding_dismissal\"} 8\n",
		"forge_memory_runs{memory=\"with\"} 90\nforge_memory_runs{memory=\"without\"} 10\n",
		"forge_memory_effect{bound=\"high\"} -0.125\nforge_memory_effect{bound=\"low\"} -0.5\nforge_memory_effect{bound=\"value\"} -0.25\n",
		"forge_github_limit{installation=\"9\",resource=\"core\"} 5000\n",
		"forge_github_limit_remaining{installation=\"9\",resource=\"core\"} 4321\n", "forge_github_calls_total 7\n",
		"forge_incidents{severity=\"critical\"} 2\nforge_incidents{severity=\"warning\"} 0\n", "forge_incident_unanswered_seconds 1200\n",
		"forge_ship_question_oldest_seconds 3600\n", "forge_ship_step_oldest_seconds 0\n",
		"forge_hook_deliveries_total{hook=\"prom\",result=\"busy\"} 1\nforge_hook_deliveries_total{hook=\"prom\",result=\"taken\"} 5\n" +
			"forge_hook_deliveries_total{hook=\"prom\",result=\"unproven\"} 2\n",
		"forge_trace_spans_total{result=\"dropped\"} 1\nforge_trace_spans_total{result=\"exported\"} 5\nforge_trace_spans_total{result=\"failed\"} 2\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text does not hold %q:\n%s", want, got)
		}
	}
	for _, no := range []string{`period="month"} 0`, `label="none"`} {
		if strings.Contains(got, no) {
			t.Errorf("the text holds %q:\n%s", no, got)
		}
	}
}
