package dashboard

import (
	"context"
	"net/http"
	"time"

	"forge/pipeline/store"
)

// Finding is what was found out about one thing that the server needs.
type Finding struct {
	Area  string
	State string // "ok", "warning", "bad"
	Says  string
	Fix   string // what to do about it
}

// Checkup is what is known of the server's health.
type Checkup struct {
	Status string    // of /readyz, now
	Now    []Finding // what that is made of
	All    []Finding // what `forge doctor` says
	At     time.Time // when that was found out
}

// Bad counts what is to be mended.
func (c Checkup) Bad() int { return c.count("bad") }

// Warnings counts what should be looked at.
func (c Checkup) Warnings() int { return c.count("warning") }

func (c Checkup) count(state string) int {
	n := 0
	for _, f := range c.All {
		if f.State == state {
			n++
		}
	}
	return n
}

// checkupPage shows what keeps the server from working. It names accounts, paths and
// addresses of the server: who does not see everything does not see it.
func (p *Pages) checkupPage(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if _, all := v.Repos(); !all || p.Checkup == nil {
		return store.ErrNotFound
	}
	// Who asks may go away; what was found out is kept for the next one.
	return p.render(w, r, v, "checkup.html", page{Title: "Doctor", Nav: "/doctor", Data: p.Checkup(context.WithoutCancel(r.Context()))})
}

// HasCheckup reports whether the viewer sees the page of the server's health.
func (p page) HasCheckup() bool {
	if p.Viewer == nil || !p.checkup {
		return false
	}
	_, all := p.Viewer.Repos()
	return all
}
