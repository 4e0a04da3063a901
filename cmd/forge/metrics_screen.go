package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	ansi "github.com/jedib0t/go-pretty/v6/text"

	"forge/cmd/forge/printing"
	"forge/learn/metrics"
	"forge/pipeline/text"
)

var loopNames = []string{"Across the loops", "Loop 1 · agent and tools", "Loop 2 · review, tests and rework", "Loop 3 · memory",
	"Loop 4 · people", "Loop 5 · production"}

// metricsScreen renders a report for people.
func metricsScreen(rep metrics.Report) string {
	of := rep.Repo
	if of == "" {
		of = "all repositories"
	}
	t := printing.Table("", "value", "95 %", "median · p90", "n", "trend")
	right := table.ColumnConfig{Align: ansi.AlignRight, AlignHeader: ansi.AlignRight}
	var columns []table.ColumnConfig
	for n := 2; n <= 5; n++ {
		right.Number = n
		columns = append(columns, right)
	}
	t.SetColumnConfigs(columns)
	for loop := 1; loop <= len(loopNames); loop++ {
		name := loopNames[loop%len(loopNames)]
		for _, m := range rep.Metrics {
			if m.Loop != loop%len(loopNames) {
				continue
			}
			if name != "" {
				t.AppendRow(table.Row{name})
				name = ""
			}
			t.AppendRow(figureRow(m))
			for _, f := range m.Labels {
				if f.Now != nil {
					t.AppendRow(table.Row{"    " + f.Label, metrics.Amount(f.Now.Value, m.Unit)})
				}
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Metrics of %s, %d days (%s to %s): %s ended\n\n%s\n\nTargets\n", of, rep.Days, rep.From, rep.To, text.Plural(int(rep.Runs), "run", "runs"), t.Render())
	for _, t := range rep.Targets {
		b.WriteString(targetText(t) + "\n")
	}
	b.WriteString("\nIntervals: Wilson for shares, Student for means. ▲▼ only where the intervals do not meet. Medians are within 6.25 %.\n")
	return b.String()
}

func targetText(t metrics.Target) string {
	mark, is := "–", "no data"
	if few := t.Few(); few != "" && t.Value != nil {
		mark, is = "… too few", fmt.Sprintf("%s so far, %s", metrics.Amount(*t.Value, t.Unit), few)
	}
	if t.Hit != nil {
		mark = "✗ missed"
		if *t.Hit {
			mark = "✓ hit"
		}
		is = fmt.Sprintf("%s (n %d)", metrics.Amount(*t.Value, t.Unit), t.N)
	}
	return fmt.Sprintf("  %-9s %s: %s, goal %s", mark, t.Name, is, t.Goal)
}

func figureRow(m metrics.Metric) table.Row {
	name, f := "  "+m.Name, m.Figure
	if f.Now == nil {
		return table.Row{name, "no data"}
	}
	interval, median := "", ""
	if in := f.Now.Interval; in != nil {
		interval = metrics.Amount(in[0], m.Unit) + "–" + metrics.Amount(in[1], m.Unit)
	}
	if f.Now.Median != nil {
		median = metrics.Amount(*f.Now.Median, m.Unit) + " · " + metrics.Amount(*f.Now.P90, m.Unit)
	}
	return table.Row{name, metrics.Amount(f.Now.Value, m.Unit), interval, median, strconv.FormatInt(f.Now.N, 10), f.ChangeText(m.Unit)}
}
