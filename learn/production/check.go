package production

import (
	"cmp"
	"fmt"
	"time"
)

// Check is a look at a service's health that is made again and again.
type Check struct {
	Name        string
	URL         string
	Repo        string
	Environment string // "": production
	Expect      int    // status of HTTP; 0: 200
	Fails       int    // in a row, until it is said; 0: 3
}

// Probe is what one look has shown.
type Probe struct {
	At      time.Time
	Status  int    // 0: no answer
	Lacks   string // the text that should have been there, and was not
	Unknown string // why nothing is known: such a look never passes, and never fails
	Why     string // of no answer
}

// Watch follows a check from look to look.
type Watch struct {
	Check
	fails int
	begun time.Time // of the failures in a row
	well  bool      // that it is well was said
}

// Take takes in a look and returns what is to be said of it, nil for nothing.
func (w *Watch) Take(p Probe) *Observation {
	expect := cmp.Or(w.Expect, 200)
	o := &Observation{Kind: KindHealth, Source: w.Name, Repo: w.Repo, Environment: cmp.Or(w.Environment, "production"), Group: "check/" + w.Name, Severity: SeverityCritical,
		Status: StatusFiring, At: p.At, URL: link(w.URL), Health: &Health{Endpoint: name(w.URL), Expected: expect, Actual: p.Status}}
	switch {
	case p.Unknown != "":
		return nil
	case p.Status == expect && p.Lacks == "":
		said := w.well
		w.fails, w.well = 0, true
		if said {
			return nil
		}
		o.Status, o.Title = StatusResolved, line(w.Name+" is healthy", maxTitle)
		return o
	}
	if w.fails++; w.fails == 1 {
		w.begun = p.At
	}
	if w.fails < cmp.Or(w.Fails, 3) {
		return nil
	}
	w.well, o.Since = false, w.begun
	switch {
	case p.Status == 0:
		o.Title = w.Name + " does not answer"
		o.Text = words(p.Why)
	case p.Lacks != "":
		o.Title = fmt.Sprintf("%s answers %d without %q", w.Name, p.Status, p.Lacks)
	default:
		o.Title = fmt.Sprintf("%s answers %d, not %d", w.Name, p.Status, expect)
	}
	o.Title = line(o.Title, maxTitle)
	return o
}
