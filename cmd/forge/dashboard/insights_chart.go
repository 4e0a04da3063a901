package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"forge/learn/metrics"
)

// chart is a drawing of some metrics by day. The script draws it from the table that
// it stands on, so that there is one truth; without the script there is the table.
type chart struct {
	ID, Title     string
	Note          string
	Form          string // "line" or "bars"
	Before, After string // of a number on the axis: "$", " %"
	Full          bool   // the axis goes from 0 to 100; else to the greatest value
	Band          bool   // the second and the third series are the bounds of the first; what follows is drawn as it is
	Series        []string
	Rows          []chartRow
	Empty         bool
}

// chartRow is a day.
type chartRow struct {
	Day   string // 2026-03-31
	Cells []chartCell
}

// chartCell is what was measured on a day. Value is in the unit of the axis, ""
// where nothing was observed: a gap.
type chartCell struct{ Value, Text string }

// chartPlans are the charts of each loop.
var chartPlans = []struct {
	loop            int
	id, title, note string
	keys            []string
}{
	{0, "success", "Success", "runs by the day of their end", []string{metrics.Success, metrics.QuickPass}},
	{0, "cost", "Cost of a run", "mean, without reflections", []string{metrics.Cost}},
	{0, "trouble", "Escalations and publish failures", "less is better", []string{metrics.Escalation, metrics.PublishFailure}},
	{1, "tools", "Tools and stagnation", "of tool calls, and of executions of a phase", []string{metrics.ToolSuccess, metrics.Stagnation}},
	{1, "phase-time", "Working time of a phase", "mean over all phases", []string{metrics.PhaseDuration}},
	{2, "review", "First pass and resolved bounces", "", []string{metrics.FirstPass, metrics.BounceResolution}},
	{2, "rework", "Iterations and bounces of a run", "mean; less is better", []string{metrics.PhaseIterations, metrics.Bounces}},
	{2, "iteration-time", "Working time of an iteration", "mean; waiting for people is not in it", []string{metrics.IterationTime}},
	{3, "memory", "Learnings that were of use", "of phases that were given some, and of the learnings", []string{metrics.Application, metrics.Precision}},
	{4, "people", "Dismissals and overrides", "less is better", []string{metrics.Dismissal, metrics.Override}},
	{4, "response", "Time to human response", "mean, by the day of the question", []string{metrics.Response}},
}

// charts draws a loop's metrics.
func charts(rep metrics.Report, loop int) (out []chart) {
	days := daysOf(rep)
	if loop == 0 {
		out = append(out, runsChart(rep, days))
	}
	for _, plan := range chartPlans {
		if plan.loop != loop {
			continue
		}
		list := measuresOf(rep, plan.keys...)
		c := chart{ID: plan.id, Title: plan.title, Note: plan.note, Form: "line", Empty: true}
		most := 0.0
		for _, m := range list {
			c.Series = append(c.Series, m.Name)
			for _, v := range m.Series {
				if v != nil {
					most = max(most, *v)
				}
			}
		}
		unit := axisOf(list[0].Unit, most)
		c.Before, c.After, c.Full = unit.before, unit.after, list[0].Unit == "share" && most > 0.5
		for i, day := range days {
			row := chartRow{Day: day}
			for _, m := range list {
				cell := chartCell{Text: "–"}
				if v := m.Series[i]; v != nil {
					cell = chartCell{number(*v / unit.of), fmt.Sprintf("%s of %d", metrics.Amount(*v, m.Unit), m.Counts[i])}
					c.Empty = false
				}
				row.Cells = append(row.Cells, cell)
			}
			c.Rows = append(c.Rows, row)
		}
		out = append(out, c)
	}
	return out
}

// runsChart counts the runs that ended. Here a day without any is a 0, not a gap.
func runsChart(rep metrics.Report, days []string) chart {
	c := chart{ID: "runs", Title: "Runs that ended", Note: "and how many of them verified", Form: "bars",
		Series: []string{"ended", "verified"}, Empty: rep.Runs == 0}
	for _, m := range measuresOf(rep, metrics.Success) {
		for i, day := range days {
			n, good := m.Counts[i], 0.0
			if v := m.Series[i]; v != nil {
				good = math.Round(*v * float64(n))
			}
			c.Rows = append(c.Rows, chartRow{day, []chartCell{{number(float64(n)), strconv.FormatInt(n, 10)}, {number(good), fmt.Sprintf("%.0f", good)}}})
		}
	}
	return c
}

// daysOf lists the days of a report, as its series have them.
func daysOf(rep metrics.Report) (out []string) {
	first, err := time.Parse(time.DateOnly, rep.From)
	if err != nil {
		return nil // unreachable: Compute writes it
	}
	for i := range rep.Days {
		out = append(out, first.AddDate(0, 0, i).Format(time.DateOnly))
	}
	return out
}

// axis says how a unit is written on an axis: before + value/of + after.
type axis struct {
	before, after string
	of            float64
}

// axisOf chooses the unit of an axis that goes up to a value.
func axisOf(unit string, most float64) axis {
	switch unit {
	case "share":
		return axis{after: " %", of: 0.01}
	case "micro-USD":
		return axis{before: "$", of: 1e6}
	case "ms":
		for _, step := range []struct {
			from time.Duration
			name string
			of   time.Duration
		}{{48 * time.Hour, " d", 24 * time.Hour}, {2 * time.Hour, " h", time.Hour}, {time.Minute, " min", time.Minute}, {time.Second, " s", time.Second}} {
			if most >= float64(step.from.Milliseconds()) {
				return axis{after: step.name, of: float64(step.of.Milliseconds())}
			}
		}
		return axis{after: " ms", of: 1}
	}
	return axis{of: 1}
}

// number writes a value for the script; "" for what is no number.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// drawWide is how wide bars are drawn; the style sheet stretches them.
const drawWide = 200

// rangeBar draws a figure's 95 % interval from 0 to scale with its value as a tick,
// and under it, fainter, that of the period before. The numbers stand beside it.
func rangeBar(f metrics.Figure, scale float64) template.HTML {
	var b strings.Builder
	draw := func(e *metrics.Estimate, class string, y, high int) {
		if e == nil {
			return
		}
		at := func(v float64) float64 { return drawWide * max(0, min(1, v/scale)) }
		if e.Interval != nil {
			low, end := at(e.Interval[0]), at(e.Interval[1])
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class, low, y, max(1, end-low), high)
		}
		x := at(e.Value)
		fmt.Fprintf(&b, `<rect class="%s at" x="%.1f" y="%d" width="2" height="%d"/>`, class, max(0, min(drawWide-2, x-1)), y-1, high+2)
	}
	draw(f.Now, "now", 2, 6)
	draw(f.Before, "before", 12, 3)
	return drawing("range", 16, `<rect class="base" x="0" y="9.5" width="200" height="0.7"/>`+b.String())
}

// valueBar draws a label's value from 0 to scale, with its interval as a thin line.
func valueBar(bar labelBar) template.HTML {
	var b strings.Builder
	at := func(v float64) float64 { return drawWide * max(0, min(1, v/bar.Scale)) }
	class := ""
	switch bar.Trend {
	case metrics.TrendBetter, metrics.TrendWorse:
		class = " " + string(bar.Trend)
	}
	fmt.Fprintf(&b, `<rect class="base" x="0" y="1" width="%d" height="8"/><rect class="fill%s" x="0" y="1" width="%.1f" height="8"/>`,
		drawWide, class, at(bar.Now.Value))
	if in := bar.Now.Interval; in != nil {
		fmt.Fprintf(&b, `<rect class="whisker" x="%.1f" y="4.4" width="%.1f" height="1.2"/>`, at(in[0]), max(0.5, at(in[1])-at(in[0])))
	}
	return drawing("bar", 10, b.String())
}

// drawing is an SVG of bars that is stretched to its place. It is decoration: what
// it shows stands beside it in words, so that readers of screens pass it over. Only
// numbers and names of ours go into it.
func drawing(class string, high int, inside string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="%s" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">%s</svg>`, class, drawWide, high, inside)) //nolint:gosec
}
