package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"forge/cmd/forge/shell"
	"forge/learn/metrics"
	"forge/pipeline/record"
)

// metrics holds the metrics of one run that really happened, on the screen, as JSON and
// as CSV, and how mistakes are answered.
func (c *cli) metrics(t *testing.T) {
	t.Helper()
	c.run(shell.Done, []string{"1 run ended", "success", "100 %", "1 of 10 runs needed", "edit", "Loop 2"}, "metrics")
	c.run(shell.Misused, []string{"did you mean --days 30?"}, "metrics", "--days", "28")
	c.run(shell.Misused, []string{"did you mean --days 90?"}, "metrics", "--days", "365")
	c.run(shell.Misused, []string{"did you mean greet?"}, "metrics", "--repo", "great")
	c.run(shell.Misused, []string{"there are runs in greet"}, "metrics", "--repo", "somebody/else-entirely")
	c.run(shell.Misused, []string{"give one of them"}, "metrics", "--json", "--csv")

	var rep metrics.Report
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "metrics", "--json", "--repo", "greet", "--days", "90")), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Runs != 1 || rep.Days != 90 || rep.Repo != "greet" || len(rep.Metrics) != len(metrics.Catalogue()) {
		t.Errorf("report %+v", rep)
	}
	lines, err := csv.NewReader(strings.NewReader(c.run(shell.Done, nil, "metrics", "--csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range lines[1:] {
		found = found || l[3] == metrics.FirstPass && l[4] == "" && l[6] == "1" && l[7] == "1" && l[10] == "Wilson"
	}
	if !found {
		t.Errorf("the CSV does not say that the first pass of one run was approved:\n%v", lines)
	}
	if strings.Contains(fmt.Sprint(lines), "NaN") {
		t.Errorf("NaN in %v", lines)
	}
}

// manyRows are the sums of 90 days.
func manyRows(now time.Time) (rows []record.MetricRow) {
	for day := range 180 {
		for _, d := range metrics.Catalogue() {
			labels := []string{""}
			if d.By != "" {
				labels = []string{"implement", "review", "a_tool_with_a_rather_long_name", "x1", "x2", "x3", "x4"}
			}
			for i, label := range labels {
				if d.Whole && i == 0 {
					rows = append(rows, record.MetricRow{Day: metrics.DayOf(now.AddDate(0, 0, -day)), Metric: d.Key, N: 3, Total: 4, Squares: 6})
				}
				rows = append(rows, record.MetricRow{Day: metrics.DayOf(now.AddDate(0, 0, -day)), Metric: d.Key, Label: label, N: int64(3 + day/40),
					Total: 3, Squares: 1e9})
			}
		}
	}
	return rows
}

// The screen has every metric, its labels and the targets, and its columns are aligned.
func TestMetricsScreen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	sums := metrics.NewSums(metrics.Options{Days: 90, Now: now})
	for _, r := range manyRows(now) {
		sums.Add(r)
	}
	rep := sums.Report()
	screen, n := metricsScreen(rep), -1
	for line := range strings.Lines(screen) {
		if at := strings.Index(line, "median · p90"); at >= 0 {
			n = utf8.RuneCountInString(line[:at]) + len([]rune("median · p90"))
		}
		if r := []rune(line); strings.HasPrefix(line, "  success") && (n < 0 || r[n] != ' ' || r[n+1] != ' ') {
			t.Errorf("the median is not under its heading (column %d): %s", n, line)
		}
	}
	for _, m := range rep.Metrics {
		if !strings.Contains(screen, "  "+m.Name) {
			t.Errorf("it lacks %s", m.Name)
		}
	}
	if !strings.Contains(screen, "    a_tool_with_a_rather_long_name") || strings.Count(screen, ", goal ") != len(rep.Targets) {
		t.Errorf("it is\n%s", screen)
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0.825, "share", "82 %"}, {120, "ms", "120 ms"}, {1500, "ms", "1.5 s"}, {90_000, "ms", "1.5 min"}, {3 * 3600_000, "ms", "3.0 h"},
		{72 * 3600_000, "ms", "3.0 d"},
		{1200, "micro-USD", "$0.0012"}, {2_345_678, "micro-USD", "$2.35"}, {1.5, "bounces", "1.50"},
	} {
		if got := metrics.Amount(c.v, c.unit); got != c.want {
			t.Errorf("Amount(%v, %s) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
