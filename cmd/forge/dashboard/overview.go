package dashboard

import (
	"context"
	"net/http"

	"forge/learn/metrics"
	"forge/pipeline/store"
)

// What the overview shows of lists that may be long.
const (
	gatesShown   = 10
	runningShown = 20
)

// overviewData is the first page.
type overviewData struct {
	Gates     []store.GateRow
	MoreGates int
	Runs      []store.RunRow
	Loops     []loopView
}

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
	if d.Runs, err = p.DB.Runs(ctx, store.Filter{State: "running", Repos: c.within(), Limit: runningShown}); err != nil {
		return err
	}
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

// report computes the metrics of what was chosen.
func (p *Pages) report(ctx context.Context, c choice, days int) (metrics.Report, error) {
	repos := c.within()
	if repos == nil {
		repos = []string{""} // one sum over all of them is kept
	}
	return p.Report(ctx, metrics.Options{Repo: c.Repo, Days: days, Now: p.Now()}, repos...)
}
