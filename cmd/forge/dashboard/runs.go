package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"forge/pipeline"
	"forge/pipeline/store"
)

// runsShown is how many runs a page lists.
const runsShown = 50

// states are those that runs can be chosen by.
var states = []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified,
	pipeline.StateAccepted, pipeline.StateCancelled, pipeline.StateFailed, pipeline.StateSkipped}

// runsData is the list of runs.
type runsData struct {
	Choice        choice
	States        []pipeline.State
	State         pipeline.State
	Parts         bool // with the runs that build modules
	List          runList
	Newest, Older string // addresses
}

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
	}
	d.List.Now = p.Now()
	if d.List.Runs, err = p.DB.Runs(r.Context(), f); err != nil {
		return err
	}
	if len(d.List.Runs) > runsShown {
		d.List.Runs = d.List.Runs[:runsShown]
		d.Older = pageURL(q, d.List.Runs[runsShown-1].ID)
	}
	return p.render(w, r, v, "runs.html", page{Title: "Runs", Nav: "/runs", Live: "run", Data: d})
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
