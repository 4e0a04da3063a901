package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"forge/learn/metrics"
	"forge/pipeline/text"
)

// insightDays is the period that is shown when none is asked for.
const insightDays = 30

// labelsShown is how many labels of a metric are seen at once; the others are folded.
const labelsShown = 6

// insightsData is the page with all metrics.
type insightsData struct {
	Choice  choice
	Days    int
	Periods []int
	Report  metrics.Report
	Figures []figureView // what the page opens with
	Tabs    []tab
	Tab     string // the one that is shown
	Loops   []insightLoop

	CSV, JSON, Learning string // addresses of the same, and of what learning is worth
}

// tab is a part of the page, with its address.
type tab struct{ Key, Name, URL string }

// The tabs that are no loop.
const (
	tabSummary = ""
	tabAll     = "all"
)

// figureKeys are the metrics that the page opens with, and what they are called there:
// how well it goes, what it takes, and what people make of it.
var figureKeys = []struct{ key, name, of, each string }{
	{metrics.Success, "Runs verified", "runs", "run"},
	{metrics.FirstPass, "Approved at the first review", "runs", "run"},
	{metrics.PhaseIterations, "Iterations per run", "runs", "run"},
	{metrics.Cost, "Cost per run", "runs", "run"},
	{metrics.Response, "Time to a person’s answer", "questions", "question"},
	{metrics.Dismissal, "Findings that people dismiss", "findings", "finding"},
}

// figureView is one of the figures that the page opens with.
type figureView struct {
	metrics.Metric
	Observed string // "of 12 runs"
}

// insightLoop is what is measured of one of the feedback loops.
type insightLoop struct {
	Name, Text string
	Charts     []chart
	Metrics    []metricView
}

// metricView is a metric with what is drawn of it.
type metricView struct {
	metrics.Metric
	Scale float64 // where the range bar ends
	Bars  labelBars
}

// labelBars are a metric's labels as bars of one scale.
type labelBars struct {
	Shown, More []labelBar
}

type labelBar struct {
	metrics.Figure
	Unit  string
	Scale float64
}

// insightLoops are the loops in the order of the page, with what it says of them;
// number is that of the catalogue.
var insightLoops = []struct {
	number          int
	tab, name, text string
}{
	{0, "results", "Across the loops", "What all of it comes to: whether runs end well, and what they cost."},
	{1, "agents", "Agent and tools", "Loop 1, seconds to minutes: an agent works with its tools."},
	{2, "rework", "Review, tests and rework", "Loop 2, minutes: what a review or a test finds goes back, and is done again."},
	{3, "memory", "Memory", "Loop 3, hours: what runs teach is given to later ones."},
	{4, "people", "People", "Loop 4, hours to days: what people decide."},
}

func (p *Pages) insights(w http.ResponseWriter, r *http.Request, v Viewer) error {
	c, err := p.choose(r, v)
	if err != nil {
		return err
	}
	days, err := askedDays(r.URL.Query(), insightDays)
	if err != nil {
		return err
	}
	rep, err := p.report(r.Context(), c, days)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("forge-metrics-%s-%dd", rep.To, days)
	switch format := r.URL.Query().Get("format"); format {
	case "":
	case "csv":
		var b bytes.Buffer
		if err := rep.WriteCSV(&b); err != nil {
			return err
		}
		return download(w, name+".csv", "text/csv; charset=utf-8", b.Bytes())
	case "json":
		return downloadJSON(w, name+".json", rep)
	default:
		return badInput("There is no format " + strconv.Quote(format) + ": format= takes csv or json.")
	}
	d := insightsData{Choice: c, Days: days, Periods: metrics.Periods(), Report: rep, Tab: r.URL.Query().Get("tab"), Tabs: tabs(c.Repo, days),
		CSV: insightsURL("/insights", c.Repo, days, "csv"), JSON: insightsURL("/insights", c.Repo, days, "json"),
		Learning: insightsURL("/insights/learning", c.Repo, 0, "")}
	if !slices.ContainsFunc(d.Tabs, func(t tab) bool { return t.Key == d.Tab }) {
		return badInput("There is no part " + strconv.Quote(d.Tab) + " of this page.")
	}
	for _, f := range figureKeys {
		for _, m := range measuresOf(rep, f.key) {
			m.Name = f.name
			view := figureView{Metric: m}
			if m.Now != nil {
				view.Observed = "of " + text.Plural(int(m.Now.N), f.each, f.of)
			}
			d.Figures = append(d.Figures, view)
		}
	}
	d.Loops = loopViews(rep, d.Tab)
	return p.render(w, r, v, "insights.html", page{Title: "Insights", Nav: "/insights", Data: d})
}

// askedDays reads the period of ?days=.
func askedDays(q url.Values, otherwise int) (int, error) {
	text := q.Get("days")
	if text == "" {
		return otherwise, nil
	}
	const kept = "metrics are kept for 7, 30 and 90 days"
	days, err := strconv.Atoi(text)
	if err != nil {
		return 0, badInput(fmt.Sprintf("days= takes a number, not %q: %s; days=%d is usual.", text, kept, otherwise))
	}
	if near := metrics.NearestPeriod(days); near != days {
		return 0, badInput(fmt.Sprintf("days=%d is none of the periods: %s. Did you mean days=%d?", days, kept, near))
	}
	return days, nil
}

// insightsURL is the address of a page of insights; what is empty is left out.
func insightsURL(path, repo string, days int, format string) string {
	q := url.Values{}
	if repo != "" {
		q.Set("repo", repo)
	}
	if days != 0 {
		q.Set("days", strconv.Itoa(days))
	}
	if format != "" {
		q.Set("format", format)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// download answers with a file.
func download(w http.ResponseWriter, name, kind string, data []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write(data)
	return err
}

// downloadJSON answers with a value as JSON. A value that JSON has no form for, such as NaN, is an error.
func downloadJSON(w http.ResponseWriter, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return download(w, name, "application/json", append(data, '\n'))
}

// tabs are the parts of the page.
func tabs(repo string, days int) (out []tab) {
	add := func(key, name string) {
		at := insightsURL("/insights", repo, days, "")
		if key != "" {
			at += "&tab=" + key
		}
		out = append(out, tab{key, name, at})
	}
	add(tabSummary, "Summary")
	for _, l := range insightLoops {
		add(l.tab, l.name)
	}
	add(tabAll, "Everything")
	return out
}

// loopViews puts the metrics of a report into their loops: those of one tab, or all.
func loopViews(rep metrics.Report, tab string) (out []insightLoop) {
	for _, l := range insightLoops {
		if tab != tabAll && tab != l.tab {
			continue
		}
		view := insightLoop{Name: l.name, Text: l.text, Charts: charts(rep, l.number)}
		for _, m := range rep.Metrics {
			if m.Loop == l.number {
				view.Metrics = append(view.Metrics, newMetricView(m))
			}
		}
		out = append(out, view)
	}
	return out
}

func newMetricView(m metrics.Metric) metricView {
	v := metricView{Metric: m, Scale: scaleOf(m.Kind, m.Figure)}
	var bars []labelBar
	scale := scaleOf(m.Kind, m.Labels...)
	for _, f := range m.Labels {
		if f.Now != nil {
			bars = append(bars, labelBar{f, m.Unit, scale})
		}
	}
	n := min(len(bars), labelsShown)
	if len(bars) == labelsShown+1 { // nothing is won by folding one
		n = len(bars)
	}
	v.Bars = labelBars{bars[:n], bars[n:]}
	return v
}

// scaleOf is where a scale from 0 ends that holds some figures: 1 for shares, for
// others the greatest value, or the end of an interval up to three times of it: one
// wild interval shall not make all else too small to see.
func scaleOf(kind metrics.Kind, figures ...metrics.Figure) float64 {
	if kind == metrics.Share {
		return 1
	}
	value, end := 0.0, 0.0
	for _, f := range figures {
		for _, e := range []*metrics.Estimate{f.Now, f.Before} {
			if e == nil {
				continue
			}
			value, end = max(value, e.Value), max(end, e.Value)
			if e.Interval != nil {
				end = max(end, e.Interval[1])
			}
		}
	}
	if value == 0 {
		return max(end, 1)
	}
	return min(end, 3*value)
}

// trendWord says in words how a figure moved.
func trendWord(f metrics.Figure) string {
	switch {
	case f.Now == nil:
		return ""
	case f.Before == nil:
		return "nothing before to compare"
	case f.Trend == metrics.TrendUp:
		return "more"
	case f.Trend == metrics.TrendDown:
		return "less"
	}
	return string(f.Trend)
}

// Of names what a page is about.
func (c choice) Of() string {
	switch {
	case c.Repo != "":
		return c.Repo
	case c.all:
		return "All repositories"
	}
	return "The repositories that you see"
}

// Verdicts counts the targets that are hit and missed.
func (d insightsData) Verdicts() string {
	count := map[string]int{}
	for _, t := range d.Report.Targets {
		count[verdict(t)]++
	}
	text := fmt.Sprintf("%d hit, %d missed", count["hit"], count["miss"])
	if count["few"] > 0 {
		text += fmt.Sprintf(", %d with too few runs to tell", count["few"])
	}
	if count[""] > 0 {
		text += fmt.Sprintf(", %d without data", count[""])
	}
	return text
}

// verdict says whether a target is hit: "hit", "miss", "few" with too few
// observations, "" without data.
func verdict(t metrics.Target) string {
	switch {
	case t.Value != nil && t.Few() != "":
		return "few"
	case t.Hit == nil:
		return ""
	case *t.Hit:
		return "hit"
	}
	return "miss"
}

// measuresOf finds metrics by their keys, in the keys' order.
func measuresOf(rep metrics.Report, keys ...string) (out []metrics.Metric) {
	for _, key := range keys {
		if i := slices.IndexFunc(rep.Metrics, func(m metrics.Metric) bool { return m.Key == key }); i >= 0 {
			out = append(out, rep.Metrics[i])
		}
	}
	return out
}

// report computes the metrics of what was chosen.
func (p *Pages) report(ctx context.Context, c choice, days int) (metrics.Report, error) {
	repos := c.within()
	if repos == nil {
		repos = []string{""} // one sum over all of them is kept
	}
	return p.Report(ctx, metrics.Options{Repo: c.Repo, Days: days, Now: p.Now()}, repos...)
}
