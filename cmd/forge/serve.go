package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"github.com/spf13/cobra"

	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/settings"
	"forge/webhook"
)

// drainTime is how long a server may take to end in order, and closeTime how long
// the requests that are under way then have.
const (
	drainTime = 10 * time.Second
	closeTime = 8 * time.Second
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the App: take webhooks in and work on runs", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := configure(cmd)
			if err != nil {
				return err
			}
			if err := cfg.Ready(); err != nil {
				return usage("%w", err)
			}
			s, err := startServer(cmd.Context(), wireOptions{config: cfg, log: log})
			if err != nil {
				return err
			}
			log.Info("forge is ready", "address", s.url, "pages", s.pagesURL, "version", version())
			<-cmd.Context().Done()
			log.Info("forge ends: running phases stop at their next step")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), drainTime)
			defer cancel()
			return s.stop(ctx)
		},
	}
	dashboardFlag(cmd)
	return cmd
}

// server is a Forge that listens.
type server struct {
	*wiring
	hooks *webhook.Receiver
	http  *http.Server
	local *http.Server // of the web pages, for this machine alone; nil without
	url   string

	pagesURL string // of the web pages; "" without
	log      *slog.Logger

	config settings.Config
	now    func() time.Time
	health health
	tried  bool // the sandbox, at least once

	halt context.CancelFunc // of what runs beside the engine
	aux  sync.WaitGroup
}

// startServer wires Forge, starts the engine and listens. It takes webhooks in
// only when everything behind them is there.
func startServer(ctx context.Context, o wireOptions) (_ *server, err error) {
	w, err := wire(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &server{wiring: w, log: o.log, config: o.config, now: o.clock()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := w.db.Own(); err != nil {
		return nil, err
	}
	for _, text := range o.config.Warnings {
		o.log.Warn(text)
	}
	s.trySandbox(ctx, o.config.UnsafeNoSandbox)
	s.hooks, err = webhook.New(keeper{w.db}, o.log, webhook.Options{Secret: []byte(o.config.WebhookSecret.Reveal()), Notify: func() {
		w.engine.Wake()
		w.pages.Notify("deliveries", "")
	}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.config.Listen, err)
	}
	w.pages = newPages(w, o)
	if err := w.engine.Start(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.hooks.Start(ctx)
	r := mux.NewRouter()
	s.hooks.Route(r)
	r.HandleFunc("/healthz", s.healthy).Methods(http.MethodGet)
	r.HandleFunc("/readyz", s.ready).Methods(http.MethodGet)
	r.Handle("/metrics", scrape{db: w.db, token: o.config.MetricsToken.Reveal(), log: o.log, now: s.now, more: s.watched, sums: &sums{}, process: monitoring.Process()}).Methods(http.MethodGet)
	if err := s.servePages(r, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.url = "http://" + l.Addr().String()
	s.http = newHTTPServer(r, o.log)
	s.http.RegisterOnShutdown(w.pages.Close)
	s.serve(s.http, l)
	base, halt := context.WithCancel(context.WithoutCancel(ctx)) // stop ends it
	s.halt = halt
	s.aux.Go(func() { s.sweep(base) })
	s.aux.Go(func() { s.memory.work(base) })
	s.aux.Go(func() { s.tidy(base, o.clock(), o.config) })
	s.aux.Go(func() { s.measure(base) })
	s.aux.Go(func() { s.probe(base, o.config.UnsafeNoSandbox) })
	return s, nil
}

// sweepEvery is how often GitHub is asked for deliveries that did not arrive, and
// sweepBack how far back: GitHub keeps them for three days.
const (
	sweepEvery = 5 * time.Minute
	sweepBack  = 71 * time.Hour
)

// sweep asks GitHub who the App is, until it knows, and has it send again what was
// missed while the server was away: GitHub does not do so by itself.
func (s *server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if _, err := s.hub.identity(ctx); err != nil && ctx.Err() == nil { // to know its own comments' boxes
			s.log.Warn("ask for the App's own user", "error", err)
		}
		missed, err := s.hub.app.Sweep(ctx, time.Now().Add(-sweepBack))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("look for missed deliveries", "error", err)
		case len(missed) > 0:
			s.log.Info("missed deliveries are sent again", "deliveries", len(missed))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tidyEvery is how often what is no longer of use is deleted.
const tidyEvery = 6 * time.Hour

// tidy deletes old payloads and tapes, and tends the memory, at the start and then at intervals.
func (s *server) tidy(ctx context.Context, now func() time.Time, cfg settings.Config) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := s.prune(ctx, now(), cfg); err != nil && ctx.Err() == nil {
			s.log.Warn("delete what is old", "error", err)
		}
		if err := s.memory.tend(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("tend the memory", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// prune deletes what is older than the configuration keeps.
func (s *server) prune(ctx context.Context, now time.Time, cfg settings.Config) error {
	var errs []error
	if days := cfg.KeepDeliveries; days > 0 {
		n, err := s.db.PruneDeliveries(ctx, now.AddDate(0, 0, -days))
		errs = append(errs, err)
		if n > 0 {
			s.log.Info("payloads of old deliveries are deleted", "deliveries", n)
		}
	}
	if days := cfg.KeepTapes; days > 0 {
		n, err := s.db.PruneTapes(ctx, now.AddDate(0, 0, -days))
		errs = append(errs, err)
		if n > 0 {
			s.log.Info("tapes of old runs are deleted", "runs", n)
		}
	}
	return errors.Join(errs...)
}

// measureEvery is how often the daily sums are brought up to date with the log. It
// reads what has gone on since, so that a day is complete when it is over.
const measureEvery = 5 * time.Minute

// measure keeps the daily sums of the metrics up to date.
func (s *server) measure(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		if _, err := s.db.MeasureRuns(ctx, measured); err != nil && ctx.Err() == nil {
			s.log.Warn("measure runs", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the server in order: phases end at their next step, while webhooks are
// still kept, so that a proxy has the time to see that it is not ready; then
// nothing new comes in, and what was taken in is on disk.
func (s *server) stop(ctx context.Context) error {
	s.health.draining.Store(true)
	s.halt()
	defer s.aux.Wait()
	err := s.engine.Stop(ctx)
	// Who is in the middle of a request gets an answer, also when the engine took all
	// the time. A connection on which nothing was ever asked holds it up for five seconds.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(err, shutdown(last, s.http, s.local), s.hooks.Stop(last), s.wiring.close())
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

// configure reads the server's configuration and makes its logger.
func configure(cmd *cobra.Command) (settings.Config, *slog.Logger, error) {
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		if _, err := os.Stat("forge.yml"); err == nil {
			path = "forge.yml"
		}
	}
	if err := checkLogFormat(cmd); err != nil {
		return settings.Config{}, nil, err
	}
	cfg, err := settings.Server(path, overridden(cmd, os.Getenv))
	if err != nil {
		return cfg, nil, usage("%w", err)
	}
	return cfg, logger(cmd), nil
}

// The forms of log lines.
const (
	formatText = "text"
	formatJSON = "json"
)

func checkLogFormat(cmd *cobra.Command) error {
	if f, _ := cmd.Flags().GetString("log-format"); f != formatText && f != formatJSON && f != "" {
		return usage("--log-format %s: there are %s and %s", f, formatText, formatJSON)
	}
	return nil
}

// logger logs to the command's standard error: what operators want to know, and
// with --verbose what developers want to know.
func logger(cmd *cobra.Command) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if v, _ := cmd.Flags().GetBool("verbose"); v {
		o.Level = slog.LevelDebug
	}
	if f, _ := cmd.Flags().GetString("log-format"); f == formatJSON {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), o))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), o))
}
