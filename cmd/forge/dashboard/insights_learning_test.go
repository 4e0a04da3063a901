package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/learn/impact"
	"forge/pipeline/record"
)

// experience is what the runs and the people of a repository did.
type experience struct {
	outcomes []record.Outcome
	feedback impact.Feedback
}

// learns gives the site what learning was worth: some learnings help the first
// review, some harm it, most do nothing; the reviewer is too sure of itself; people
// dismiss less from week to week. The scopes of learnings take turns.
func (s *site) learns(runs int, repos ...string) (asked *[]string) {
	asked = new([]string)
	by := map[string]experience{}
	for i, repo := range repos {
		by[repo] = experienced(rand.New(rand.NewPCG(9, uint64(i))), runs)
	}
	scopes := []string{"repo:acme/shop", "repo:acme/secret", "org:acme"}
	s.pages.Worth = func(_ context.Context, o impact.Options, of ...string) (impact.Report, error) {
		*asked = of
		var all experience
		for repo, e := range by {
			if slices.Contains(of, repo) || slices.Contains(of, "") {
				all.outcomes, all.feedback.Decided = append(all.outcomes, e.outcomes...), append(all.feedback.Decided, e.feedback.Decided...)
				all.feedback.Suppressed = append(all.feedback.Suppressed, e.feedback.Suppressed...)
			}
		}
		rep := impact.Of(all.outcomes, all.feedback, o)
		rep.Memory = impact.WholeOf(all.outcomes)
		for i := range rep.Learnings {
			r := &rep.Learnings[i]
			r.Scope, r.State = scopes[r.Learning%3], "active"
			r.Content = fmt.Sprintf("Lesson %d of %s: wrap errors with the activity and its inputs %s", r.Learning, r.Scope, hostile)
		}
		return rep, nil
	}
	return asked
}

// drawn says of the runs of a site that each fourth worked without memory, and how many in
// a hundred of those with it, and of those without, were approved at first.
func (s *site) drawn(runs, with, without int) {
	ask := s.pages.Worth
	s.pages.Worth = func(ctx context.Context, o impact.Options, of ...string) (impact.Report, error) {
		rep, err := ask(ctx, o, of...)
		var list []record.Outcome
		for i := range runs {
			h := &record.Holdout{Share: 0.25, Out: i%4 == 0}
			passed := with
			if h.Out {
				passed = without
			}
			list = append(list, record.Outcome{FirstPass: i/4%100 < passed, Holdout: h})
		}
		rep.Memory = impact.WholeOf(list)
		return rep, err
	}
}

func experienced(rng *rand.Rand, runs int) (e experience) {
	for range runs {
		o := record.Outcome{Findings: rng.IntN(5)}
		chance := 0.45
		for id := range int64(40) {
			if rng.IntN(6) > 0 && id != 3 {
				continue
			}
			if rng.IntN(5) == 0 {
				o.Withheld = append(o.Withheld, id+1)
				continue
			}
			o.Given = append(o.Given, id+1)
			chance += map[int64]float64{3: 0.35, 7: 0.3, 11: -0.3}[id]
		}
		if o.FirstPass = rng.Float64() < chance; !o.FirstPass {
			o.Bounces = 1 + rng.IntN(2)
		}
		o.Dismissed = rng.IntN(o.Findings + 1)
		e.outcomes = append(e.outcomes, o)
		age := time.Duration(rng.IntN(88*24)) * time.Hour
		sure := 0.3 + 0.7*rng.Float64()
		right := rng.Float64() < sure-0.1-0.3*float64(age)/float64(88*24*time.Hour)
		d := impact.Decided{Dismissed: !right, At: today.Add(-age)}
		e.feedback.Decided = append(e.feedback.Decided, d)
		if int(age/time.Hour)%4 == 0 {
			e.feedback.Suppressed = append(e.feedback.Suppressed, d.At)
		}
	}
	return e
}

// Covers M3: what learning is worth, with how sure that is, and what cannot be told.
func TestLearning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean", "wall")
	s.learns(0)
	has(t, s.get(t, "/insights/learning", 200), "0 runs had learnings that fit", "No learning has runs enough",
		"no data", "-<circle", "-NaN")
	s.learns(400, "acme/shop")
	page := s.get(t, "/insights/learning", 200)
	has(t, page, "400 runs had learnings that fit", "The 8 most useful", "The 8 least useful", " given, ", "not told from chance", "by chance",
		html.EscapeString(hostile), "-"+hostile, "-<img src=x",
		" held back", "at most, had all been posted",
		`id="chart-dismissals"`, "data-band",
		"-NaN", "-Inf", "-style=", "-ZgotmplZ", "All repositories")
	first := page[strings.Index(page, "most useful</caption>"):]
	if !strings.Contains(first[:strings.Index(first, "</tr>\n")+800], "Lesson 4 of") {
		t.Errorf("the learning that helps is not among the first:\n%s", first)
	}
	s.learns(12, "acme/shop")
	has(t, s.get(t, "/insights/learning?days=30", 200), "Too few runs to tell: ", "too few runs to tell: 1", " left out", "and ")
	has(t, s.get(t, "/insights/learning", 200), "No run has ended yet for which it was drawn", "-with memory, by more")
	s.drawn(800, 60, 50)
	has(t, s.get(t, "/insights/learning", 200), "first review approved 60 % of 600 against 50 % of 200", "10 pt (", "not told from chance", `-role="alert"`)
	s.drawn(800, 20, 90)
	has(t, s.get(t, "/insights/learning", 200), "20 % of 600 against 90 % of 200", "−70 pt (", `role="alert">Runs do worse with memory`)
	has(t, s.get(t, "/insights/learning?days=31", 400), "Did you mean days=30?")
	has(t, s.get(t, "/insights/learning?format=csv", 400), "format= takes json")
}

// A viewer is told of their repositories only: no sums over others, no words of
// learnings of others, or of the organisation's, which may come from any.
func TestLearningRestricted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean", "wall")
	asked := s.learns(200, "acme/shop", "acme/secret")
	var rep impact.Report
	read := func(path string) {
		t.Helper()
		rep = impact.Report{}
		if err := json.Unmarshal([]byte(s.get(t, path, 200)), &rep); err != nil {
			t.Fatal(err)
		}
	}
	read("/insights/learning?format=json")
	if rep.Overall.Runs != 400 || len(*asked) != 1 || (*asked)[0] != "" {
		t.Fatalf("who sees all sees %d runs of %q", rep.Overall.Runs, *asked)
	}
	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	read("/insights/learning?format=json")
	if rep.Overall.Runs != 200 || len(*asked) != 1 || (*asked)[0] != "acme/shop" {
		t.Errorf("eve sees %d runs of %q", rep.Overall.Runs, *asked)
	}
	read("/insights/learning?format=json&repo=acme/shop")
	if rep.Repo != "acme/shop" {
		t.Errorf("got %q", rep.Repo)
	}
	has(t, s.get(t, "/insights/learning", 200), "of repo:acme/shop", "-acme/secret", "-org:acme", "learning ")
	has(t, s.get(t, "/insights/learning?repo=acme/secret", 404), "-acme/shop?")
}

func TestForestRow(t *testing.T) {
	t.Parallel()
	in := func(v, low, high float64) *impact.Interval {
		return &impact.Interval{Value: v, Low: low, High: high, Known: true}
	}
	for _, c := range []struct {
		row     forestRow
		verdict string
		scale   float64
	}{
		{forestRow{Share: true, Better: 1}, "", 0.1}, {forestRow{Share: true, Better: 1, Interval: in(0.2, 0.1, 0.31)}, "better", 0.4},
		{forestRow{Share: true, Better: -1, Interval: in(0.2, 0.1, 0.31)}, "worse", 0.4},
		{forestRow{Better: -1, Interval: in(-0.2, -1.2, 0.31)}, "not told from chance", 1.5},
		{forestRow{Better: -1, Interval: in(-0.2, -0.3, -0.1)}, "better", 0.5}, {forestRow{Share: true, Interval: in(0, -7, 9)}, "not told from chance", 1},
	} {
		if got, scale := c.row.Verdict(), forestScale([]forestRow{c.row}); got != c.verdict || scale != c.scale {
			t.Errorf("%+v: %q to %v, want %q to %v", c.row, got, scale, c.verdict, c.scale)
		}
		c.row.Scale = c.scale
		if bar := string(forestBar(c.row)); strings.Contains(bar, "NaN") || (c.row.Interval != nil) != strings.Contains(bar, "point") {
			t.Errorf("%+v is drawn as %s", c.row, bar)
		}
	}
}
