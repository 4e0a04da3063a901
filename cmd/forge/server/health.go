package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"forge/cmd/forge/monitoring"
)

const (
	probeEvery = time.Minute     // how often the sandbox is tried
	beatWithin = time.Minute     // how long ago the engine may have looked for work; it looks every second
	writeTime  = 3 * time.Second // for the database to take a write
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

// The checks. Without the vital ones a server must get no webhooks: it could not
// keep them, or is about to end. Without the others it keeps them, and what they
// ask for waits; so it is degraded, and a proxy must not take it out.
const (
	checkDatabase = "database" // can be written
	checkEngine   = "engine"   // looks for work
	checkDraining = "draining" // ok: it is not ending
	checkSandbox  = "sandbox"  // runs commands
	checkGitHub   = "github"   // knows the App by its credentials
)

var vital = []string{checkDatabase, checkEngine, checkDraining}

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

func (s *Server) readiness(ctx context.Context) readiness {
	v := readiness{Status: "ready", Checks: map[string]condition{}}
	is := func(name string, ok bool, why string) {
		if ok {
			why = ""
		}
		v.Checks[name] = condition{ok, why}
	}
	is(checkDatabase, s.writable(ctx) == nil, "it cannot be written; see the log")
	is(checkEngine, s.now().Sub(s.beat()) < beatWithin, "it has not looked for work for a minute; see the log")
	is(checkDraining, !s.health.draining.Load(), "the server ends; another one goes on")
	is(checkSandbox, s.health.sandbox.Load(), "commands cannot be run; see the log")
	is(checkGitHub, s.github == nil || s.github.botID() != 0, "GitHub has not yet said who the App is; see the log")
	for _, c := range v.Checks {
		if !c.OK {
			v.Status = "degraded"
		}
	}
	for _, name := range vital {
		if !v.Checks[name].OK {
			v.Status = "not ready"
		}
	}
	return v
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
		if h.wrote = s.DB.Writable(ctx); h.wrote != nil {
			s.log.Warn("the database is not ready", "error", h.wrote)
		}
		h.looked = now
	}
	return h.wrote
}

// probe tries the sandbox, again and again.
func (s *Server) probe(ctx context.Context, unsafe bool) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		s.trySandbox(ctx, unsafe)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// trySandbox tells the log when the sandbox begins to fail, and when it works again.
func (s *Server) trySandbox(ctx context.Context, unsafe bool) {
	if unsafe { // warned of at the start
		s.health.sandbox.Store(true)
		return
	}
	err := s.spaces.Probe(ctx)
	if ctx.Err() != nil {
		return
	}
	switch was := s.health.sandbox.Swap(err == nil); {
	case err != nil && (was || !s.tried):
		s.log.Error("no sandbox: phases that need one will be refused", "error", err)
	case err == nil && !was && s.tried:
		s.log.Info("the sandbox works again")
	}
	s.tried = true
}

// watched adds to a scrape what this process knows and the database does not.
func (s *Server) watched(ctx context.Context, snap *monitoring.Snapshot) {
	snap.DayUSD, snap.MonthUSD = s.config.DayUSD, s.config.MonthUSD
	snap.Traces = s.traces.Stats()
	if s.github != nil {
		snap.Limits, snap.Calls = s.github.app.Limits(), s.github.app.Calls()
	}
	snap.Ready = map[string]bool{}
	for name, c := range s.readiness(ctx).Checks {
		snap.Ready[name] = c.OK
	}
}
