package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
)

// What the page lists at most.
const (
	runsShown  = 50
	gatesShown = 10
)

// states are those that runs can be chosen by.
var states = []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified,
	pipeline.StateAccepted, pipeline.StateCancelled, pipeline.StateFailed, pipeline.StateSkipped}

// runsData is the first page: what waits for somebody, and the list of runs.
type runsData struct {
	Gates         []store.GateRow
	MoreGates     int
	Choice        choice
	States        []pipeline.State
	State         pipeline.State
	Parts         bool // with the runs that build modules
	List          runList
	Newest, Older string // addresses
}

// runList is a table of runs.
type runList struct {
	Runs []store.RunRow
	Now  time.Time
}

// Ago says how long ago a time was.
func (l runList) Ago(t time.Time) string { return page{Now: l.Now}.Ago(t) }

func (p *Pages) runs(w http.ResponseWriter, r *http.Request, v Viewer) error {
	c, err := p.choose(r, v)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	d := runsData{Choice: c, States: states, State: pipeline.State(q.Get("state")), Parts: q.Get("parts") == "1"}
	if d.State != "" && !slices.Contains(states, d.State) {
		return badInput("There is no state " + strconv.Quote(string(d.State)) + ".")
	}
	f := store.Filter{State: d.State, Parts: d.Parts, Repos: c.within(), Limit: runsShown + 1}
	if before := q.Get("before"); before != "" {
		if f.Before, err = strconv.ParseInt(before, 10, 64); err != nil || f.Before < 1 {
			return badInput("before= takes a run's number.")
		}
		d.Newest = pageURL(q, 0)
	} else if d.State == "" || d.State == pipeline.StateWaiting {
		all := 0
		if d.Gates, all, err = p.DB.OpenGates(r.Context(), c.within(), gatesShown); err != nil {
			return err
		}
		d.MoreGates = all - len(d.Gates)
	}
	d.List.Now = p.Now()
	if d.List.Runs, err = p.DB.Runs(r.Context(), f); err != nil {
		return err
	}
	if len(d.List.Runs) > runsShown {
		d.List.Runs = d.List.Runs[:runsShown]
		d.Older = pageURL(q, d.List.Runs[runsShown-1].ID)
	}
	return p.render(w, r, v, "runs.html", page{Title: "Runs", Nav: "/", Live: "run", Data: d})
}

// pageURL is the address of another page of a list: what is older than before, 0
// for the newest.
func pageURL(q url.Values, before int64) string {
	next := url.Values{}
	for k := range q {
		if v := q.Get(k); v != "" && k != "before" {
			next.Set(k, v)
		}
	}
	if before > 0 {
		next.Set("before", strconv.FormatInt(before, 10))
	}
	return "?" + next.Encode()
}
