package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"forge/learn/metrics"
	"forge/pipeline/store"
)

// What the overview shows of lists that may be long.
const (
	gatesShown   = 10
	runningShown = 20
	endedShown   = 5
)

// overviewData is the first page.
type overviewData struct {
	Gates     []store.GateRow
	MoreGates int
	Runs      runList
	Ended     runList // the last ones
	Loops     []loopView
}

// runList is a table of runs.
type runList struct {
	Runs []store.RunRow
	Now  time.Time
}

// Ago says how long ago a time was.
func (l runList) Ago(t time.Time) string { return page{Now: l.Now}.Ago(t) }

// loopView is how one of the loops does.
type loopView struct {
	Name  string
	Lines []metrics.Metric
}

// loops are the feedback loops, in their order, with the metrics that tell best how
// each does.
var loops = []struct {
	name string
	keys []string
}{
	{"Agent and tools", []string{metrics.ToolSuccess, metrics.Stagnation}},
	{"Review, tests and rework", []string{metrics.FirstPass, metrics.BounceResolution}},
	{"Memory", []string{metrics.Application, metrics.Precision}},
	{"People", []string{metrics.Dismissal, metrics.Response}},
	{"Across the loops", []string{metrics.Success, metrics.Cost}},
}

func (p *Pages) overview(w http.ResponseWriter, r *http.Request, v Viewer) error {
	ctx := r.Context()
	c, err := p.choose(r, v)
	if err != nil {
		return err
	}
	var d overviewData
	all := 0
	if d.Gates, all, err = p.DB.OpenGates(ctx, c.within(), gatesShown); err != nil {
		return err
	}
	d.MoreGates = all - len(d.Gates)
	if d.Runs.Runs, err = p.DB.Runs(ctx, store.Filter{State: "running", Repos: c.within(), Limit: runningShown}); err != nil {
		return err
	}
	if d.Ended.Runs, err = p.lastEnded(ctx, c.within()); err != nil {
		return err
	}
	d.Runs.Now, d.Ended.Now = p.Now(), p.Now()
	rep, err := p.report(ctx, c, 7)
	if err != nil {
		return err
	}
	for _, l := range loops {
		view := loopView{Name: l.name}
		for _, key := range l.keys {
			for _, m := range rep.Metrics {
				if m.Key == key {
					view.Lines = append(view.Lines, m)
				}
			}
		}
		d.Loops = append(d.Loops, view)
	}
	return p.render(w, r, v, "overview.html", page{Title: "Overview", Nav: "/", Live: "run", Data: d})
}

// lastEnded lists the runs that ended last, the last one first. Of each state it looks at
// the newest runs: one that ended after many newer ones may be missing.
func (p *Pages) lastEnded(ctx context.Context, repos []string) (out []store.RunRow, err error) {
	for _, s := range states {
		if !s.Ended() {
			continue
		}
		rows, err := p.DB.Runs(ctx, store.Filter{State: s, Repos: repos, Limit: runningShown})
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	slices.SortFunc(out, func(a, b store.RunRow) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID)) })
	return out[:min(len(out), endedShown)], nil
}

// report computes the metrics of what was chosen.
func (p *Pages) report(ctx context.Context, c choice, days int) (metrics.Report, error) {
	repos := c.within()
	if repos == nil {
		repos = []string{""} // one sum over all of them is kept
	}
	return p.Report(ctx, metrics.Options{Repo: c.Repo, Days: days, Now: p.Now()}, repos...)
}
