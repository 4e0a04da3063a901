package dashboard

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// hostile is a label that tries to leave the place that it is written to.
const hostile = `</script><img src=x onerror="alert('1')">`

// measure gives the site repositories acme/repo00 and on, each with a run and daily
// sums of all metrics over some days, with gaps.
func (s *site) measure(t testing.TB, repos, days int) {
	t.Helper()
	sums := func(of store.MeasureFunc) {
		if _, err := s.db.MeasureRuns(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	sums(func([]pipeline.Event) []record.MetricRow { return nil }) // of the runs that there are
	start := pipelinetest.New(config.Default(), pipeline.Task{Issue: 1, Title: "Put a comma", Body: "after hello"}).Events
	for repo := range repos {
		s.keep(t, start, pipeline.Repo{ID: int64(repo + 1), Owner: "acme", Name: fmt.Sprintf("repo%02d", repo), DefaultBranch: "main"}, repo+1, today)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	sums(func([]pipeline.Event) (rows []record.MetricRow) {
		for ago := range days {
			for _, d := range metrics.Catalogue() {
				for i, label := range labelsOf(d) {
					if rng.IntN(8) == 0 || ago%7 == 2 {
						continue // a weekend
					}
					rows = append(rows, observed(rng, d, label, i, metrics.DayOf(today.AddDate(0, 0, -ago)), ago))
				}
			}
		}
		return rows
	})
}

func labelsOf(d metrics.Definition) []string {
	list := map[string][]string{"phase": {"plan", "implement", "review", "test"}, "category": {"style", "correctness", "tests", hostile},
		"tool": {"read", "edit", "grep", "run", "list", hostile, "x1", "x2", "x3"}, "": {""}}[d.By]
	if d.Whole {
		return append([]string{""}, list...)
	}
	return list
}

// observed is a day's sum of a metric that gets better towards today.
func observed(rng *rand.Rand, d metrics.Definition, label string, at int, day int64, ago int) record.MetricRow {
	r := record.MetricRow{Day: day, Metric: d.Key, Label: label, N: 1 + rng.Int64N(3)}
	good := 0.9 - 0.3*float64(ago)/180 - 0.04*float64(at)
	for range r.N {
		v := int64(0)
		switch d.Unit {
		case "share":
			if (rng.Float64() < good) == (d.Better > 0) {
				v = 1
			}
		case "ms":
			v = int64((1.6-good)*900_000*(0.5+rng.Float64())) + 1
		case "micro-USD":
			v = int64((1.6-good)*800_000*(0.5+rng.Float64())) + 1
		default:
			v = rng.Int64N(5) + 1
		}
		r.Total += v
		if d.Kind == metrics.Mean {
			r.Squares += float64(v) * float64(v)
		}
	}
	if d.Dist {
		r.Bucket = sort.Search(500, func(b int) bool { _, high := metrics.BucketRange(b); return high >= r.Total/r.N })
	}
	return r
}

// Covers M1, M2, V6: every metric of the loops in its unit, with interval, trend and
// labels; the targets; the period and the repository; nothing when there is nothing.
func TestInsights(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	page := s.get(t, "/insights", 200)
	has(t, page, "0 runs ended", "no data", "4 without data", "-<rect", "-class=\"plot\"", "-NaN", "-Inf")
	s.measure(t, 2, 180)
	page = s.get(t, "/insights?days=90&tab=all", 200)
	for _, d := range metrics.Catalogue() {
		has(t, page, "<h3>"+d.Name+"</h3>", html.EscapeString(d.Text))
	}
	has(t, page, "2026-01-01 to 2026-03-31", "✓ hit", "✗ missed", "goal: under 10 %", "better", "pt ", "95 %: ", " · median ", " · p90 ", "correctness",
		`<option value="90" selected>`, `format=csv`, `id="chart-runs"`, `data-before="$"`, `data-after=" %" data-full`, "All repositories",
		html.EscapeString(hostile), "-"+hostile, "-<img src=x", "-NaN", "-Inf", "-style=", "-<style", "-onerror=\"", "-ZgotmplZ")
	if n := strings.Count(page, "<script>"); n != 0 {
		t.Errorf("%d inline scripts", n)
	}
	has(t, s.get(t, "/insights?repo=acme/repo00&days=7", 200), "acme/repo00, 2026-03-25 to 2026-03-31")
}

// Covers V6: the page opens with six figures and the targets; all else is behind links
// that work without a script, and keep the choice.
func TestInsightsTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.measure(t, 1, 60)
	page := s.get(t, "/insights?days=30&repo=acme/repo00", 200)
	at := 0
	for _, name := range []string{"Runs verified", "Approved at the first review", "Iterations per run", "Cost per run",
		"Time to a person’s answer", "Findings that people dismiss"} {
		i := strings.Index(page, "<h2>"+name+"</h2>")
		if i <= at {
			t.Errorf("%q is at %d, after %d", name, i, at)
		}
		at = max(at, i)
	}
	has(t, page, `class="target `, `>Summary</a>`, "-class=\"plot\"", "-class=\"card metric\"")
	links := regexp.MustCompile(`<a href="(/insights\?[^"]*)"( aria-current="page")?>`).FindAllStringSubmatch(page, -1)
	metricsSeen, current := 0, 0
	for _, l := range links {
		if l[2] != "" {
			current++
		}
		to := html.UnescapeString(l[1])
		if strings.Contains(to, "format=") || strings.HasSuffix(to, "tab=all") || !strings.Contains(to, "tab=") {
			continue
		}
		part := s.get(t, to, 200)
		has(t, part, `<option value="30" selected>`, `<option selected>acme/repo00`, `<input type="hidden" name="tab"`, `class="plot"`, "-class=\"target ")
		metricsSeen += strings.Count(part, `class="card metric"`)
	}
	if want := len(metrics.Catalogue()); metricsSeen != want || current != 1 {
		t.Errorf("%d metrics behind tabs, want %d; %d tabs are the current one", metricsSeen, want, current)
	}
	has(t, s.get(t, "/insights?tab=x%3Cb%3E", 400), "There is no part", "-<b>")
}

// The table under a chart says what the report says, with gaps as gaps.
func TestChartNumbers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.measure(t, 1, 60)
	var rep metrics.Report
	if err := json.Unmarshal([]byte(s.get(t, "/insights?format=json&days=30", 200)), &rep); err != nil {
		t.Fatal(err)
	}
	page := s.get(t, "/insights?days=30&tab=all", 200)
	_, figure, _ := strings.Cut(page, `id="chart-people"`)
	figure, _, _ = strings.Cut(figure, "</figure>")
	rows := regexp.MustCompile(`<tr><th scope="row">([^<]*)</th><td class="num">(?:<data value="([^"]*)">)?([^<]*)`).FindAllStringSubmatch(figure, -1)
	if len(rows) != 30 || rows[29][1] != "2026-03-31" {
		t.Fatalf("%d rows, the last %v", len(rows), rows[len(rows)-1])
	}
	m := measuresOf(rep, metrics.Dismissal)[0]
	gaps := 0
	for i, row := range rows {
		want, text := "", "–"
		if v := m.Series[i]; v != nil {
			want, text = number(100**v), fmt.Sprintf("%.0f %% of %d", 100**v, m.Counts[i])
		} else {
			gaps++
		}
		if row[2] != want || row[3] != text {
			t.Errorf("%s: %q %q, want %q %q", row[1], row[2], row[3], want, text)
		}
	}
	if gaps < 4 {
		t.Errorf("%d gaps in 30 days, want those of the weekends", gaps)
	}
}

func TestInsightsMistakes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean")
	has(t, s.get(t, "/insights?days=13", 400), "Did you mean days=7?", "7, 30 and 90")
	has(t, s.get(t, "/insights?days=-1", 400), "Did you mean days=7?")
	has(t, s.get(t, "/insights?days=1000000000", 400), "Did you mean days=90?")
	has(t, s.get(t, "/insights?days=99999999999999999999", 400), "takes a number")
	has(t, s.get(t, "/insights?days=x%3Cb%3E", 400), "takes a number", "-<b>", "7, 30 and 90")
	has(t, s.get(t, "/insights?format=xml", 400), "csv or json")
	has(t, s.get(t, "/insights?repo=acme/shopp", 404), "Did you mean acme/shop?")
}

// The same numbers as files: each label is one cell, and what is not known is empty.
func TestInsightsFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.measure(t, 1, 14)
	w := s.answer(t, "/insights?days=7&format=csv", 200)
	lines, err := csv.NewReader(w.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(lines, func(l []string) bool { return l[3] == metrics.ToolSuccess && l[4] == hostile }) {
		t.Errorf("the hostile label is not in %v", lines)
	}
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="forge-metrics-2026-03-31-7d.csv"` {
		t.Errorf("Content-Disposition: %s", got)
	}
	text := s.get(t, "/insights?days=7&format=json", 200)
	has(t, text, `"key": "tool_success"`, "-NaN", "-Inf", "-</script>")
}

// A viewer sees sums over just their repositories.
func TestInsightsRestricted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.measure(t, 3, 30)
	count := func(path string) (runs int64) {
		var rep metrics.Report
		if err := json.Unmarshal([]byte(s.get(t, path, 200)), &rep); err != nil {
			t.Fatal(err)
		}
		return rep.Runs
	}
	all := count("/insights?format=json")
	var parts [3]int64
	for i := range parts {
		parts[i] = count(fmt.Sprintf("/insights?format=json&repo=acme/repo%02d", i))
	}
	if all != parts[0]+parts[1]+parts[2] || parts[0] == 0 {
		t.Fatalf("%d runs in all, %v in parts", all, parts)
	}
	s.viewer = person{login: "eve", repos: []string{"acme/repo00", "acme/repo02"}}
	if got := count("/insights?format=json"); got != parts[0]+parts[2] {
		t.Errorf("%d runs, want %d + %d", got, parts[0], parts[2])
	}
	has(t, s.get(t, "/insights", 200), "The repositories that you see", "acme/repo02", "-acme/repo01")
	has(t, s.get(t, "/insights?repo=acme/repo01", 404), "-Did you mean acme/repo01")
	s.viewer = person{login: "nobody", repos: []string{}}
	if got := count("/insights?format=json"); got != 0 {
		t.Errorf("who sees nothing is told of %d runs", got)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	e := func(v, low, high float64) *metrics.Estimate {
		return &metrics.Estimate{N: 2, Value: v, Interval: &[2]float64{low, high}}
	}
	for _, c := range []struct {
		kind metrics.Kind
		f    metrics.Figure
		want float64
	}{
		{metrics.Share, metrics.Figure{}, 1}, {metrics.Mean, metrics.Figure{}, 1}, {metrics.Mean, metrics.Figure{Now: e(10, 5, 15)}, 15},
		{metrics.Mean, metrics.Figure{Now: e(10, 0, 900), Before: e(20, 1, 30)}, 60}, {metrics.Mean, metrics.Figure{Now: e(0, 0, 0)}, 1},
	} {
		if got := scaleOf(c.kind, c.f); got != c.want {
			t.Errorf("scaleOf(%s, %+v) = %v, want %v", c.kind, c.f, got, c.want)
		}
	}
}
