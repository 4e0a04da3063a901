package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"forge/cmd/forge/dashboard"
)

// checkedFor is how long what the doctor found is shown before it looks again: it
// starts processes and asks GitHub, the registries and the models.
const checkedFor = 5 * time.Minute

// checkups keep what the doctor found last.
type checkups struct {
	mu   sync.Mutex // held while it looks: who comes meanwhile waits for the same look
	list []Diagnosis
	at   time.Time
}

// checkup is what the page of the server's health shows: the probes of /readyz, and all
// that the doctor looks at.
func (s *Server) checkup(ctx context.Context) dashboard.Checkup {
	s.checked.mu.Lock()
	if now := s.now(); s.checked.at.IsZero() || now.Sub(s.checked.at) >= checkedFor {
		d := &doctor{o: Options{Config: s.config, Log: slog.New(slog.DiscardHandler)}, db: s.DB, work: s.spaces}
		s.checked.list, s.checked.at = d.examine(ctx, ""), now
	}
	v := dashboard.Checkup{At: s.checked.at}
	for _, d := range s.checked.list {
		v.All = append(v.All, dashboard.Finding{Area: d.Area, State: string(d.Grade), Says: d.Says, Fix: d.Fix})
	}
	s.checked.mu.Unlock()
	ready := s.readiness(ctx)
	v.Status = ready.Status
	for _, name := range slices.Sorted(maps.Keys(ready.Checks)) {
		f := dashboard.Finding{Area: name, State: "ok", Says: "as it should be"}
		if c := ready.Checks[name]; !c.OK {
			f.State, f.Says = "bad", c.Why
		}
		v.Now = append(v.Now, f)
	}
	return v
}
