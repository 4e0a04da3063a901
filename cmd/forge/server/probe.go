package server

import (
	"context"
	"errors"
	"time"
)

// Probe is one thing that a server needs: how to find out whether it is there, and
// what to do when it is not. The answers of /readyz, the checks at the start of
// serve and demo, and the gauge forge_ready are made of probes.
type Probe struct {
	Name  string
	Check func(ctx context.Context) error // its error is for the log alone
	Fix   string                          // what is wrong, and where to go from there: never a name, an address or an error's text, because whoever reaches the server may read it
	Vital bool                            // without it a server must get no webhooks: it could not keep them, or is about to end
}

// Sandbox is the probe of what commands run in; it starts one. It passes where the
// settings do without a sandbox.
func Sandbox(o Options) Probe {
	return sandboxProbe(o.Config.UnsafeNoSandbox, func(ctx context.Context) error {
		spaces, _, err := newWorkspaces(o)
		if err != nil {
			return err
		}
		return spaces.Probe(ctx)
	})
}

func sandboxProbe(without bool, try func(context.Context) error) Probe {
	p := Probe{Name: "sandbox", Check: try, Fix: "commands cannot be run; see the log"}
	if without { // warned of at the start
		p.Check = func(context.Context) error { return nil }
	}
	return p
}

// errNot is the error of a probe whose Fix says all there is to say.
var errNot = errors.New("not so")

func holds(ok func() bool) func(context.Context) error {
	return func(context.Context) error {
		if !ok() {
			return errNot
		}
		return nil
	}
}

// probes are what the readiness of the server is made of. Without those that are not
// vital it keeps webhooks, and what they ask for waits; so it is degraded, and a proxy
// must not take it out.
func (s *Server) probes() []Probe {
	return []Probe{
		{Name: "database", Vital: true, Check: s.writable, Fix: "it cannot be written; see the log"},
		{Name: "engine", Vital: true, Check: holds(func() bool { return s.now().Sub(s.beat()) < beatWithin }), Fix: "it has not looked for work for a minute; see the log"},
		{Name: "draining", Vital: true, Check: holds(func() bool { return !s.health.draining.Load() }), Fix: "the server ends; another one goes on"},
		{Name: "disk", Check: s.roomy, Fix: "there is less than 1 GB left for what the server keeps; make room"},
		{Name: "work", Check: s.unpaused, Fix: "all work is paused; `forge unpause` lets it go on"},
		sandboxProbe(false, holds(s.health.sandbox.Load)), // tried in the background: it takes a process
		{Name: "github", Check: holds(func() bool { return s.GitHub == nil || s.GitHub.botID() != 0 }), Fix: "GitHub has not yet said who the App is; see the log"},
	}
}

// unpaused tells whether people have stopped all work.
func (s *Server) unpaused(ctx context.Context) error {
	paused, err := s.DB.Paused(ctx, "")
	if paused {
		return errNot
	}
	return err
}

func (s *Server) readiness(ctx context.Context) readiness {
	v := readiness{Status: "ready", Checks: map[string]condition{}}
	for _, p := range s.probes() {
		if p.Check(ctx) == nil {
			v.Checks[p.Name] = condition{OK: true}
			continue
		}
		v.Checks[p.Name] = condition{Why: p.Fix}
		switch {
		case p.Vital:
			v.Status = "not ready"
		case v.Status == "ready":
			v.Status = "degraded"
		}
	}
	return v
}

// keepProbing tries the sandbox, again and again.
func (s *Server) keepProbing(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		s.trySandbox(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// trySandbox tells the log when the sandbox begins to fail, and when it works again.
func (s *Server) trySandbox(ctx context.Context) {
	err := sandboxProbe(s.config.UnsafeNoSandbox, s.spaces.Probe).Check(ctx)
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
