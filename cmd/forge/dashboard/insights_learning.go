package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/pipeline/record"
	"forge/pipeline/text"
)

// learningDays is the period over which learning is measured when none is asked for:
// what is withheld is rare, so that a short one tells little.
const learningDays = 90

// learningsShown is how many of the most, and of the least, useful learnings are seen.
const learningsShown = 8

// worthData is the page on what learning is worth.
type worthData struct {
	Choice      choice
	Days        int
	Periods     []int
	Report      impact.Report
	Memory      forestRow
	ByLearning  []forest
	Few         []impact.Ranked // with too few runs to tell
	MoreFew     int
	ByChance    string
	Dismissals  chart
	JSON, Plain string
}

// forest is a part of a forest plot: differences on one scale, around zero.
type forest struct {
	Name string
	Rows []forestRow
}

// forestRow is a difference: its point and its interval.
type forestRow struct {
	Name     string
	Link     string // of the name, "" for none
	Good     string // "more is better"
	Sides    string // the runs on both
	Interval *impact.Interval
	Share    bool
	Better   int // 1: more is better, -1: less
	Scale    float64
}

func (p *Pages) worth(w http.ResponseWriter, r *http.Request, v Viewer) error {
	c, err := p.choose(r, v)
	if err != nil {
		return err
	}
	days, err := askedDays(r.URL.Query(), learningDays)
	if err != nil {
		return err
	}
	repos := c.within()
	if repos == nil {
		repos = []string{""}
	}
	rep, err := p.Worth(r.Context(), impact.Options{Repo: c.Repo, Days: days, Now: p.Now()}, repos...)
	if err != nil {
		return err
	}
	conceal(&rep, v)
	switch format := r.URL.Query().Get("format"); format {
	case "":
	case "json":
		return downloadJSON(w, fmt.Sprintf("forge-learning-%s-%dd.json", rep.To, days), rep)
	default:
		return badInput("There is no format " + strconv.Quote(format) + " of this page: format= takes json.")
	}
	return p.render(w, r, v, "insights_learning.html", page{Title: "What learning is worth", Nav: "/insights", Data: learningView(rep, c, days)})
}

// conceal takes out what learnings say that the viewer may not read: those of other
// repositories, and of an organisation, whose other repositories they may not see.
func conceal(rep *impact.Report, v Viewer) {
	_, all := v.Repos()
	rep.Learnings = slices.Clone(rep.Learnings) // the report may be shown to others, too
	for i := range rep.Learnings {
		r := &rep.Learnings[i]
		repo, ofRepo := record.CutScope(r.Scope)
		if !all && (!ofRepo || !Sees(v, repo)) {
			r.Content, r.Scope = "", ""
		}
	}
}

func learningView(rep impact.Report, c choice, days int) worthData {
	d := worthData{Choice: c, Days: days, Periods: metrics.Periods(), Report: rep,
		Dismissals: dismissals(rep.Weeks), JSON: insightsURL("/insights/learning", c.Repo, days, "json"), Plain: insightsURL("/insights", c.Repo, 0, "")}
	d.Memory = forestRow{Name: "first review approved", Good: "more is better", Interval: rep.Memory.FirstPass, Share: true, Better: 1}
	d.Memory.Scale = forestScale([]forestRow{d.Memory})
	known := slices.DeleteFunc(slices.Clone(rep.Learnings), func(r impact.Ranked) bool { return !r.Enough })
	d.Few = slices.DeleteFunc(slices.Clone(rep.Learnings), func(r impact.Ranked) bool { return r.Enough })
	if len(d.Few) > learningsShown {
		d.MoreFew, d.Few = len(d.Few)-learningsShown, d.Few[:learningsShown]
	}
	d.ByLearning = forests(known)
	if off := offZero(known); len(known) > 0 {
		d.ByChance = fmt.Sprintf("Of %s with runs enough, the intervals of %d do not hold zero; with learnings that did nothing it would be about %.0f, by chance.",
			text.Plural(len(known), "learning", "learnings"), off, math.Ceil(0.05*float64(len(known))))
	}
	return d
}

// forests are the most and the least useful learnings, on one scale.
func forests(known []impact.Ranked) (out []forest) {
	var rows []forestRow
	for _, r := range known {
		name := fmt.Sprintf("learning %d", r.Learning)
		if r.Content != "" {
			name = r.Content
		}
		rows = append(rows, forestRow{Name: name, Link: fmt.Sprintf("/memory/%d", r.Learning),
			Sides: fmt.Sprintf("%d given, %d left out", r.Given, r.Withheld), Interval: r.FirstPass, Share: true, Better: 1})
	}
	scale := forestScale(rows)
	for i := range rows {
		rows[i].Scale = scale
	}
	switch n := len(rows); {
	case n == 0:
		return nil
	case n <= 2*learningsShown:
		return []forest{{"All of them, most useful first", rows}}
	default:
		return []forest{{fmt.Sprintf("The %d most useful", learningsShown), rows[:learningsShown]},
			{fmt.Sprintf("The %d least useful", learningsShown), rows[n-learningsShown:]}}
	}
}

// offZero counts the learnings whose interval does not hold zero.
func offZero(list []impact.Ranked) (n int) {
	for _, r := range list {
		if r.FirstPass != nil && (r.FirstPass.Low > 0 || r.FirstPass.High < 0) {
			n++
		}
	}
	return n
}

// forestScale is how far a scale goes to both sides of zero that holds some rows.
func forestScale(rows []forestRow) float64 {
	most := 0.0
	for _, r := range rows {
		if r.Interval != nil {
			most = max(most, math.Abs(r.Interval.Low), math.Abs(r.Interval.High))
		}
	}
	if len(rows) > 0 && rows[0].Share {
		return min(1, max(0.1, math.Ceil(most*10)/10))
	}
	return max(0.5, math.Ceil(most*2)/2)
}

// Verdict says in a word what a row tells.
func (r forestRow) Verdict() string {
	i := r.Interval
	switch {
	case i == nil:
		return ""
	case i.Low <= 0 && i.High >= 0:
		return "not told from chance"
	case (i.Value > 0) == (r.Better > 0):
		return "better"
	}
	return "worse"
}

// End is the end of the row's scale, for people.
func (r forestRow) End() string {
	if r.Share {
		return fmt.Sprintf("%.0f pt", 100*r.Scale)
	}
	return fmt.Sprintf("%.1f", r.Scale)
}

// forestBar draws a row: zero as a line through all rows, the interval, the point.
func forestBar(r forestRow) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<path class="base" d="M%d 0V20"/>`, drawWide/2)
	if i := r.Interval; i != nil {
		at := func(v float64) float64 { return drawWide/2 + drawWide/2*max(-1, min(1, v/r.Scale)) }
		class := map[string]string{"better": " better", "worse": " worse"}[r.Verdict()]
		fmt.Fprintf(&b, `<path class="line%s" d="M%.1f 10H%.1f"/><path class="point%s" d="M%.1f 7V13"/>`, class, at(i.Low), at(i.High), class, at(i.Value))
	}
	return drawing("forestbar", 20, b.String())
}

// dismissals draws the share that people dismissed, by week.
func dismissals(weeks []impact.Week) chart {
	c := chart{ID: "dismissals", Title: "Dismissed findings", Note: "of those that people decided on, by week", Form: "line", After: " %",
		Full: true, Band: true, Series: []string{"dismissed", "at least, 95 %", "at most, 95 %", "at most, had all been posted"}, Empty: true}
	for _, w := range weeks {
		row := chartRow{Day: w.From, Cells: []chartCell{{Text: "–"}, {Text: "–"}, {Text: "–"}, {Text: "–"}}}
		if v, known := w.AtMost(); known {
			row.Cells[3] = chartCell{number(100 * v), fmt.Sprintf("%.0f %%, %d held back", 100*v, w.Suppressed)}
			c.Empty = false
		}
		if w.Interval != nil {
			share := float64(w.Dismissed) / float64(w.Decided)
			row.Cells[0] = chartCell{number(100 * share), fmt.Sprintf("%.0f %% of %d", 100*share, w.Decided)}
			for i, v := range w.Interval {
				row.Cells[1+i] = chartCell{number(100 * v), fmt.Sprintf("%.0f %%", 100*v)}
			}
			c.Empty = false
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}
