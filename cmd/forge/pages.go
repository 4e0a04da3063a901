package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"forge/cmd/forge/dashboard"
	"forge/cmd/forge/dashboard/access"
	"forge/learn/metrics"
	"forge/learn/worth"
	"forge/pipeline"
	"forge/pipeline/store"
)

// newPages makes the web pages of a server.
func newPages(w *wiring, o wireOptions) *dashboard.Pages {
	return dashboard.New(dashboard.Options{
		DB: w.db, Now: o.clock(), Log: o.log, Version: version(), SignOut: o.config.Dashboard == access.GitHub,
		Viewer: func(r *http.Request) dashboard.Viewer { return viewer{access.From(r.Context()), w.db} },
		Report: func(ctx context.Context, m metrics.Options, repos ...string) (metrics.Report, error) {
			return reportMetrics(ctx, w.db, m, repos...)
		},
		Worth:   (&worths{db: w.db}).report,
		Tell:    w.engine.Tell,
		Redrive: func(ctx context.Context, guid string) error { return w.engine.Redrive(ctx, "delivery/"+guid) },
	})
}

// worths are reports on what learning is worth. Predictions are made anew for each
// tenth of the decisions, which takes a second in a busy repository, so that a report
// is kept for a minute.
type worths struct {
	db   *store.DB
	mu   sync.Mutex
	kept map[string]worth.Report
	at   time.Time // when the oldest was made
}

func (w *worths) report(ctx context.Context, o worth.Options, repos ...string) (worth.Report, error) {
	key := fmt.Sprint(o.Days, " ", o.Repo, " ", strings.Join(repos, " "))
	w.mu.Lock()
	if age := o.Now.Sub(w.at); age < 0 || age > time.Minute {
		w.kept, w.at = map[string]worth.Report{}, o.Now
	}
	rep, ok := w.kept[key]
	w.mu.Unlock()
	if ok {
		return rep, nil
	}
	rep, err := reportWorth(ctx, w.db, o, repos...)
	if err == nil {
		w.mu.Lock()
		w.kept[key] = rep
		w.mu.Unlock()
	}
	return rep, err
}

// notify tells those who look at the pages what events have changed.
func notify(p *dashboard.Pages, run *pipeline.Run, events []pipeline.Event) {
	repo := run.Repo.FullName()
	p.Notify(fmt.Sprintf("run/%d", run.ID), repo)
	learnt := func(e pipeline.Event) bool {
		family, _, _ := strings.Cut(string(e.Type), ".")
		return family == "feedback" || family == "memory" || family == "reflection"
	}
	if slices.ContainsFunc(events, learnt) {
		p.Notify("memory", repo)
	}
}

// viewer is who looks at the pages, in the pages' own terms.
type viewer struct {
	*access.Viewer
	db *store.DB
}

// Actor implements dashboard.Viewer.
func (v viewer) Actor() pipeline.Actor { return v.Viewer.Actor }

// MayWrite implements dashboard.Viewer. What a repository is to GitHub, its newest
// run tells.
func (v viewer) MayWrite(ctx context.Context, repo string) (bool, error) {
	if v.Local {
		return true, nil
	}
	rows, err := v.db.Runs(ctx, store.Filter{Repo: repo, Limit: 1})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	run, err := v.db.Load(ctx, rows[0].ID)
	if err != nil {
		return false, err
	}
	return v.Viewer.MayWrite(ctx, run.Repo)
}

// servePages serves the web pages: to people who sign in, on the router that
// webhooks come to; to this machine, on an address of their own, because a proxy
// that passes webhooks on makes everybody look like this machine.
func (s *server) servePages(r *mux.Router, o wireOptions) error {
	door, err := newAccess(o.config, s.hub.app, o.log)
	if err != nil {
		return err
	}
	own := mux.NewRouter()
	s.pages.Route(own)
	switch o.config.Dashboard {
	case access.GitHub:
		r.PathPrefix("/").Handler(door.Wrap(own))
		s.pagesURL = o.config.PublicURL
	case access.Local:
		l, err := net.Listen("tcp", o.config.DashboardListen)
		if err != nil {
			// Webhooks matter more than pages.
			o.log.Error("no web pages: set dashboard_listen to a free loopback address, or dashboard to off", "error", err)
			return nil
		}
		s.pagesURL = "http://" + l.Addr().String()
		s.local = newHTTPServer(door.Wrap(own), o.log)
		s.local.RegisterOnShutdown(s.pages.Close)
		s.serve(s.local, l)
	}
	return nil
}

// newHTTPServer makes a server that slow and huge requests do not wear down.
func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// serve serves what comes to a listener until the server is shut down.
func (s *server) serve(server *http.Server, l net.Listener) {
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve", "address", fmt.Sprint(l.Addr()), "error", err)
		}
	}()
}
