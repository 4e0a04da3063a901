package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/webhook"
)

// DrainTime is how long a server may take to end in order, and closeTime how long
// the requests that are under way then have.
const (
	DrainTime = 10 * time.Second
	closeTime = 8 * time.Second
)

// Server is an App that listens.
type Server struct {
	*App
	URL      string // where webhooks come to
	PagesURL string // of the web pages; "" without
	PagesKey string // that they ask for; "" where people sign in

	Hooks *webhook.Receiver
	http  *http.Server
	local *http.Server // of the web pages, for this machine alone; nil without

	config  settings.Config
	now     func() time.Time
	beat    func() time.Time // when the engine last looked for work
	health  health
	checked checkups
	tried   bool // the sandbox, at least once

	pollEvery time.Duration // see poll

	aside  string             // what does not go on beside the engine, since it ended the process twice
	halt   context.CancelFunc // of what runs beside the engine
	ending sync.Mutex         // of the engine
	aux    sync.WaitGroup
}

// Listen builds an App, starts its engine and listens. It takes webhooks in only when
// everything behind them is there.
func Listen(ctx context.Context, o Options) (_ *Server, err error) {
	o.pages = true
	a, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{App: a, config: o.Config, now: o.clock(), beat: a.Engine.Heartbeat, pollEvery: cmp.Or(o.HookEvery, pollEvery)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := s.DB.Own(); err != nil {
		return nil, err
	}
	if o.Alone {
		s.afterCrash(ctx, o.Config.StateDir)
	}
	for _, text := range o.Config.Warnings {
		s.log.Warn(text)
	}
	if err := s.signIn(ctx); err != nil {
		return nil, err
	}
	s.trySandbox(ctx)
	s.Hooks, err = webhook.New(deliveryKeeper{s.DB, s.Incidents.Wake}, o.Log, webhook.Options{
		Secret: []byte(o.Config.WebhookSecret.Reveal()), Read: a.listed(o.Config), Sources: sources(o.Config.Hooks, s.Incidents), Clock: o.Now,
		Notify: func() { s.Engine.Wake(); s.pages.Notify("deliveries", "") },
	})
	if err != nil {
		return nil, err
	}
	s.Incidents.Take = s.Hooks.Take
	if s.Shipping != nil {
		s.Shipping.Take = s.Hooks.Take
	}
	l, err := net.Listen("tcp", o.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: set listen (FORGE_LISTEN) to a free address of this machine, or stop what listens there", o.Config.Listen, err)
	}
	if err := s.Engine.Start(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.Hooks.Start(ctx)
	s.pages.Checkup = s.checkup
	r := s.routes()
	if err := s.servePages(r, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.URL = "http://" + l.Addr().String()
	s.http = newHTTPServer(r, o.Log)
	s.http.RegisterOnShutdown(s.endStreams)
	s.serve(s.http, l)
	s.startUpkeep(ctx)
	return s, nil
}

// signInTime is how long the start waits for GitHub to say who the App is.
const signInTime = 10 * time.Second

// signIn tries the App's key. A wrong key or id ends the start; a GitHub that is away
// does not: deliveries are kept until it is back.
func (s *Server) signIn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	who, err := s.GitHub.identity(ctx)
	var fault *pipeline.Fault
	switch {
	case errors.As(err, &fault) && fault.Final:
		return fmt.Errorf("sign in to GitHub as the App: %s", fault.Message)
	case err != nil:
		s.log.Warn("GitHub does not answer; webhooks are kept until it does", "error", err)
	default:
		s.log.Info("signed in to GitHub", "app", s.config.AppID, "as", who.Name)
	}
	return nil
}

// routes are those of webhooks and of what watches the server.
func (s *Server) routes() *mux.Router {
	r := mux.NewRouter()
	s.Hooks.Route(r)
	r.HandleFunc("/healthz", s.healthy).Methods(http.MethodGet)
	r.HandleFunc("/readyz", s.ready).Methods(http.MethodGet)
	r.Handle("/metrics", scrape{db: s.DB, token: s.config.MetricsToken.Reveal(), log: s.log, now: s.now, more: s.watched, sums: &sums{}, process: monitoring.Process()}).Methods(http.MethodGet)
	return r
}

// Stop ends the server in order: phases end at their next step, while webhooks are
// still kept, so that a proxy has the time to see that it is not ready; then
// nothing new comes in, and what was taken in is on disk.
func (s *Server) Stop(ctx context.Context) error {
	s.health.draining.Store(true)
	s.halt()
	err := s.stopEngine(ctx)
	// Who is in the middle of a request gets an answer, also when the engine took all
	// the time. A connection on which nothing was ever asked holds it up for five seconds.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err = errors.Join(err, shutdown(last, s.http, s.local), s.Hooks.Stop(last))
	s.aux.Wait() // what runs beside the engine may write to the database to its end
	return errors.Join(err, s.App.Close())
}

// stopEngine ends the engine, or waits until somebody else has.
func (s *Server) stopEngine(ctx context.Context) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	return s.Engine.Stop(ctx)
}

// shutdown shuts servers down at the same time; those that are nil are not there.
func shutdown(ctx context.Context, servers ...*http.Server) error {
	errs := make([]error, len(servers))
	var down sync.WaitGroup
	for i, one := range servers {
		if one != nil {
			down.Go(func() { errs[i] = one.Shutdown(ctx) })
		}
	}
	down.Wait()
	return errors.Join(errs...)
}
