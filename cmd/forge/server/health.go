package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/shipping"
)

const (
	probeEvery = time.Minute     // how often the sandbox is tried
	beatWithin = time.Minute     // how long ago the engine may have looked for work; it looks every second
	writeTime  = 3 * time.Second // for the database to take a write
	leastKept  = 64 << 20        // free bytes; a webhook has 25 MB, and is written twice
)

// condition is one thing that a server needs. Why is in words that never hold a name,
// an address or an error's text: whoever reaches the server may read it.
type condition struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

// readiness is what /readyz answers. Its form is stable.
type readiness struct {
	Status string               `json:"status"` // ready, degraded, not ready
	Checks map[string]condition `json:"checks"`
}

// health is what a server knows of itself without looking.
type health struct {
	draining atomic.Bool
	sandbox  atomic.Bool

	mu     sync.Mutex // of what was last found out about the database
	looked time.Time
	wrote  error
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) } //nolint:errcheck // who asked is gone

// ready answers 200 when the server can take webhooks in, 503 when not, and says
// what is wrong.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	v := s.readiness(r.Context())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if v.Status == "not ready" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.Encode(v) //nolint:errcheck // who asked is gone
}

// writable asks the database, once a second at most: anyone may ask the server.
func (s *Server) writable(ctx context.Context) error {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := s.now(); h.looked.IsZero() || now.Sub(h.looked) >= time.Second {
		// Who asks may go away; the answer is for all.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		defer cancel()
		if h.wrote = errors.Join(s.DB.Writable(ctx), roomFor(s.config.DatabaseURL.Reveal())); h.wrote != nil {
			s.log.Warn("the database is not ready", "error", h.wrote)
		}
		h.looked = now
	}
	return h.wrote
}

// roomFor reports that a database's file has no room for webhooks to come: it takes a small
// write where it takes none of them any more. A database elsewhere is asked alone.
func roomFor(database string) error {
	if _, err := os.Stat(database); err != nil {
		return nil
	}
	free, err := freeDisk(filepath.Dir(database))
	if err == nil && free < leastKept {
		err = fmt.Errorf("%s has %s free", filepath.Dir(database), size(free))
	}
	return err
}

// roomy is the doctor's look at the disk; it costs nothing, so that it is part of /readyz.
func (s *Server) roomy(context.Context) error {
	free, err := freeDisk(s.config.StateDir)
	if err == nil && free < leastDisk {
		return errNot
	}
	return err
}

// watchProduction adds to a scrape what is known of production.
func (s *Server) watchProduction(ctx context.Context, p *monitoring.Production) {
	for _, h := range s.Hooks.Sources() {
		p.Hooks = append(p.Hooks, monitoring.Hook{Name: h.Name, Taken: h.Taken, Unproven: h.Unproven, Busy: h.Busy})
	}
	var err, also error
	p.Incidents, p.Unanswered, err = incidents.Glance(ctx, s.DB)
	p.Asking, p.Step, also = shipping.Waits(ctx, s.DB)
	if err = errors.Join(err, also); err != nil && ctx.Err() == nil {
		s.log.Warn("count for a monitor", "error", err)
	}
}

// watched adds to a scrape what this process knows and the database does not.
func (s *Server) watched(ctx context.Context, snap *monitoring.Snapshot) {
	snap.DayUSD, snap.MonthUSD = s.config.DayUSD, s.config.MonthUSD
	snap.Traces = s.traces.Stats()
	if s.GitHub != nil {
		snap.Limits, snap.Calls = s.GitHub.App.Limits(), s.GitHub.App.Calls()
	}
	s.watchProduction(ctx, &snap.Production)
	snap.Ready = map[string]bool{}
	for name, c := range s.readiness(ctx).Checks {
		snap.Ready[name] = c.OK
	}
}
