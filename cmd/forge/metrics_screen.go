package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	ansi "github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"

	"forge/learn/metrics"
	"forge/pipeline/text"
)

// screenWidth is how many columns there are to write in.
func screenWidth(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 110
}

// The columns of the screen. Those with a higher number give way first when the
// screen is narrow; the name never does.
var metricColumns = []struct {
	head  string
	yield int
	right bool
}{{"", 0, false}, {"value", 1, true}, {"95 %", 4, true}, {"median · p90", 6, true}, {"n", 2, true}, {"trend", 3, false}, {"by day", 5, false}}

// screenLine is a line of the screen: the cells of a figure, a heading, or the
// values of its labels in one line.
type screenLine struct {
	heading string
	text    string
	cells   []string
	style   string // of painter
}

var loopNames = []string{"Across the loops", "Loop 1 · agent and tools", "Loop 2 · review, tests and rework", "Loop 3 · memory",
	"Loop 4 · people", "Loop 5 · production"}

// metricsScreen renders a report for a screen of some columns.
func metricsScreen(rep metrics.Report, width int, color bool) string {
	var b strings.Builder
	of := rep.Repo
	if of == "" {
		of = "all repositories"
	}
	ended := "1 run ended"
	if rep.Runs != 1 {
		ended = fmt.Sprintf("%d runs ended", rep.Runs)
	}
	title := fmt.Sprintf("Metrics of %s, %d days (%s to %s): %s", of, rep.Days, rep.From, rep.To, ended)
	p := painter(color)
	b.WriteString(p.paint("bold", text.Clip(title, width)) + "\n\n")
	var lines []screenLine
	for loop := 1; loop <= len(loopNames); loop++ {
		lines = append(lines, loopLines(rep.Metrics, loop%len(loopNames), loopNames[loop%len(loopNames)])...)
	}
	widths := fit(lines, width)
	b.WriteString(p.paint("faint", row(headings(), widths, width)) + "\n")
	for _, l := range lines {
		if l.heading != "" {
			b.WriteString(p.paint("heading", text.Clip(l.heading, width)) + "\n")
			continue
		}
		words := text.Clip(l.text, width)
		if l.cells != nil {
			words = row(l.cells, widths, width)
		}
		b.WriteString(p.paint(l.style, words) + "\n")
	}
	b.WriteString("\n" + p.paint("heading", "Targets") + "\n")
	for _, t := range rep.Targets {
		words, style := targetText(t)
		b.WriteString(p.paint(style, text.Clip(words, width)) + "\n")
	}
	b.WriteString("\n" + p.paint("faint", text.Clip("Intervals: Wilson for shares, Student for means. ▲▼ only where the intervals do not meet. Medians are within 6.25 %.", width)) + "\n")
	return b.String()
}

// painter colours text, or leaves it as it is.
type painter bool

func (p painter) paint(style, s string) string {
	if !bool(p) {
		return s
	}
	switch style {
	case "bold":
		return colored(s, ansi.Bold)
	case "heading":
		return colored(s, ansi.Bold, ansi.FgCyan)
	case "faint":
		return colored(s, ansi.Faint)
	case "good":
		return colored(s, ansi.FgGreen)
	case "bad":
		return colored(s, ansi.FgRed)
	}
	return s
}

func targetText(t metrics.Target) (text, style string) {
	mark, is, style := "–", "no data", "faint"
	if few := t.Few(); few != "" && t.Value != nil {
		mark, is = "… too few", fmt.Sprintf("%s so far, %s", metrics.Amount(*t.Value, t.Unit), few)
	}
	if t.Hit != nil {
		mark, style = "✗ missed", "bad"
		if *t.Hit {
			mark, style = "✓ hit", "good"
		}
		is = fmt.Sprintf("%s (n %d)", metrics.Amount(*t.Value, t.Unit), t.N)
	}
	return fmt.Sprintf("  %-9s %s: %s, goal %s", mark, t.Name, is, t.Goal), style
}

func headings() (out []string) {
	for _, c := range metricColumns {
		out = append(out, c.head)
	}
	return out
}

func loopLines(list []metrics.Metric, loop int, name string) (out []screenLine) {
	for _, m := range list {
		if m.Loop != loop {
			continue
		}
		if out == nil {
			out = append(out, screenLine{heading: name})
		}
		out = append(out, figureLine(m))
		var parts []string
		for _, f := range m.Labels {
			if f.Now != nil {
				parts = append(parts, f.Label+" "+metrics.Amount(f.Now.Value, m.Unit))
			}
		}
		if len(parts) > 0 {
			out = append(out, screenLine{text: "    " + strings.Join(parts, " · "), style: "faint"})
		}
	}
	return out
}

func figureLine(m metrics.Metric) screenLine {
	f, name := m.Figure, "  "+m.Name
	if f.Now == nil {
		return screenLine{cells: []string{name, "no data"}, style: "faint"}
	}
	interval, median := "", ""
	if in := f.Now.Interval; in != nil {
		interval = metrics.Amount(in[0], m.Unit) + "–" + metrics.Amount(in[1], m.Unit)
	}
	if f.Now.Median != nil {
		median = metrics.Amount(*f.Now.Median, m.Unit) + " · " + metrics.Amount(*f.Now.P90, m.Unit)
	}
	return screenLine{cells: []string{name, metrics.Amount(f.Now.Value, m.Unit), interval, median, strconv.FormatInt(f.Now.N, 10),
		f.ChangeText(m.Unit), spark(f.Series, m.Kind)},
		style: map[metrics.Trend]string{metrics.TrendBetter: "good", metrics.TrendWorse: "bad"}[f.Trend]}
}

// sparkCells is how many cells a line of days has at most.
const sparkCells = 30

// spark draws a line of days: shares from 0 to 1, other values from 0 to the
// greatest; a dot is a day without an observation. Longer periods have several
// days in a cell.
func spark(series []*float64, kind metrics.Kind) string {
	per := (len(series) + sparkCells - 1) / sparkCells
	most := 1.0
	if kind != metrics.Share {
		most = 0
		for _, v := range series {
			if v != nil {
				most = max(most, *v)
			}
		}
	}
	var b strings.Builder
	for cell := range slices.Chunk(series, max(1, per)) {
		sum, n := 0.0, 0.0
		for _, v := range cell {
			if v != nil {
				sum, n = sum+*v, n+1
			}
		}
		level := 0
		if n > 0 && most > 0 {
			level = int(sum/n/most*7 + 0.5)
		}
		if n == 0 {
			b.WriteString("·")
		} else {
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(7, level)])
		}
	}
	return b.String()
}

// fit says how wide each column is; those that give way have no width.
func fit(lines []screenLine, width int) []int {
	widths := make([]int, len(metricColumns))
	for i, c := range metricColumns {
		widths[i] = ansi.StringWidthWithoutEscSequences(c.head)
		for _, l := range lines {
			if i < len(l.cells) {
				widths[i] = max(widths[i], ansi.StringWidthWithoutEscSequences(l.cells[i]))
			}
		}
	}
	for {
		sum, first := -2, 0
		for i, w := range widths {
			if w == 0 {
				continue
			}
			sum += w + 2
			if metricColumns[i].yield > metricColumns[first].yield {
				first = i
			}
		}
		if sum <= width || metricColumns[first].yield <= 1 {
			return widths
		}
		widths[first] = 0
	}
}

// row sets cells into their columns.
func row(cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, w := range widths {
		if w == 0 || i >= len(cells) {
			continue
		}
		pad := strings.Repeat(" ", max(0, w-ansi.StringWidthWithoutEscSequences(cells[i])))
		if i > 0 {
			b.WriteString("  ")
		}
		if metricColumns[i].right {
			b.WriteString(pad + cells[i])
		} else {
			b.WriteString(cells[i] + pad)
		}
	}
	return text.Clip(strings.TrimRight(b.String(), " "), width)
}
