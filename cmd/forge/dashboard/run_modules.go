package dashboard

import (
	"fmt"
	"html/template"
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// moduleRow is a module of a run's plan: how it stands, and when it was worked on.
type moduleRow struct {
	module.Row
	Status   string
	Bar      template.HTML // from its begin to its end, among the others
	Cost     string
	Critical bool // the whole would have ended sooner if it had
}

// The drawing of a module's time, in units of the drawing.
const (
	barWide = 200
	barHigh = 12
)

// modules are those of the run's plan; none where it is built in one piece.
func modules(run *pipeline.Run) []moduleRow {
	if run.Plan == nil || run.Plan.Split == nil {
		return nil
	}
	var out []moduleRow
	from, to := run.Updated, run.Started
	for _, r := range run.Plan.Split.Rows(run.Parts) {
		out = append(out, moduleRow{Row: r, Status: r.Status(run.Parts, run.State.Ended()), Cost: pipeline.Usage{MicroUSD: r.MicroUSD, Unpriced: r.Unpriced}.Cost()})
		if !r.Started.IsZero() && r.Started.Before(from) {
			from = r.Started
		}
		if end := endOf(&r, run.Updated); end.After(to) {
			to = end
		}
	}
	critical := criticalPath(out, run.Updated)
	for i := range out {
		out[i].Critical = critical[out[i].Module.ID]
		out[i].Bar = bar(&out[i], from, to, run.Updated)
	}
	return out
}

// endOf is when a module ended; now for one that has not, the zero time for one that has not begun.
func endOf(r *module.Row, now time.Time) time.Time {
	switch {
	case r.Started.IsZero():
		return time.Time{}
	case r.Left == "" && r.State != "" && !pipeline.State(r.State).Ended(): // or it is at work again
		return now
	case r.Ended.IsZero() && r.Left == "":
		return now
	case r.Ended.IsZero():
		return r.Changed
	}
	return r.Ended
}

// criticalPath finds the chain of modules that ended last: the one that did, then of
// those that it needs the one that ended last, and so on.
func criticalPath(rows []moduleRow, now time.Time) map[string]bool {
	last := func(among func(id string) bool) *moduleRow {
		var best *moduleRow
		for i := range rows {
			if r := &rows[i]; among(r.Module.ID) && !r.Started.IsZero() && (best == nil || endOf(&r.Row, now).After(endOf(&best.Row, now))) {
				best = r
			}
		}
		return best
	}
	out := map[string]bool{}
	for r := last(func(string) bool { return true }); r != nil && !out[r.Module.ID]; {
		out[r.Module.ID] = true
		needs := map[string]bool{}
		for _, id := range r.Needs {
			needs[id] = true
		}
		r = last(func(id string) bool { return needs[id] })
	}
	return out
}

// bar draws when a module was worked on between two times.
func bar(r *moduleRow, from, to, now time.Time) template.HTML {
	all := to.Sub(from)
	if r.Started.IsZero() || all <= 0 {
		return ""
	}
	end := endOf(&r.Row, now)
	x := int(float64(barWide) * float64(r.Started.Sub(from)) / float64(all))
	w := max(2, int(float64(barWide)*float64(end.Sub(r.Started))/float64(all)))
	class := "bar"
	if r.Critical {
		class += " critical"
	}
	words := fmt.Sprintf("from %s to %s", r.Started.UTC().Format("15:04:05"), end.UTC().Format("15:04:05"))
	return template.HTML(fmt.Sprintf(`<svg class="%s" viewBox="0 0 %d %d" role="img" aria-label="%s"><title>%s</title><rect x="%d" y="1" width="%d" height="%d" rx="2"/></svg>`, //nolint:gosec // numbers and times alone
		class, barWide, barHigh, words, words, min(x, barWide-2), min(w, barWide), barHigh-2))
}
