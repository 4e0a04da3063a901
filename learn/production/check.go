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
	o := &Observation{Kind: KindHealth, Source: w.Name, Repo: w.Repo, Environment: cmp.Or(w.Environment, "production"),
		Group: "check/" + w.Name, Severity: SeverityCritical,
		Status: StatusFiring, At: p.At, URL: link(w.URL), Health: &Health{Endpoint: name(w.URL), Expected: expect, Actual: p.Status}}
	switch {
	case p.Unknown != "":
		return nil
	case w.wrong(p) == "":
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
	if p.Status == 0 {
		o.Text = words(p.Why)
	}
	o.Title = line(w.Name+" "+w.wrong(p), maxTitle)
	return o
}

// wrong says what a look has shown that is not healthy, "" for nothing.
func (c Check) wrong(p Probe) string {
	expect := cmp.Or(c.Expect, 200)
	switch {
	case p.Status == 0:
		return "does not answer"
	case p.Lacks != "":
		return fmt.Sprintf("answers %d without %q", p.Status, p.Lacks)
	case p.Status != expect:
		return fmt.Sprintf("answers %d, not %d", p.Status, expect)
	}
	return ""
}

// Sample is what a look says of a deployment that is watched.
func (c Check) Sample(p Probe) Sample {
	s := Sample{Name: c.Name, Result: Pass, Why: c.wrong(p)}
	switch {
	case p.Unknown != "":
		s.Result, s.Why = NoValue, p.Unknown
	case s.Why != "":
		s.Result = Fail
	}
	return s
}
