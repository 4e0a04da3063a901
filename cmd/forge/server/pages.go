package server

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
	"forge/cmd/forge/memory"
	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/store"
)

// NewPages makes the web pages of an App.
func NewPages(a *App, o Options) *dashboard.Pages {
	looks := func(r *http.Request) dashboard.Viewer { return viewer{access.From(r.Context()), a.DB} }
	a.streams.Sees = func(r *http.Request, repo string) bool { return dashboard.Sees(looks(r), repo) }
	return dashboard.New(dashboard.Options{
		DB: a.DB, Now: o.clock(), Log: o.Log, Version: Version(), Slug: a.slug, SignOut: o.Config.Dashboard == access.GitHub,
		Viewer: looks, Events: a.streams,
		Report: func(ctx context.Context, m metrics.Options, repos ...string) (metrics.Report, error) {
			return ReportMetrics(ctx, a.DB, m, repos...)
		},
		Worth: (&worths{db: a.DB}).report,
		Tell: func(ctx context.Context, run int64, id string, cmd command.Line, by pipeline.Actor, via string) (string, error) {
			return a.Engine.Tell(ctx, run, id, cmd, by, via)
		},
		Production: len(o.Config.Hooks)+len(o.Config.HealthChecks) > 0 || a.deploys(),
		Redrive:    func(ctx context.Context, guid string) error { return a.Engine.Redrive(ctx, "delivery/"+guid) },
	})
}

// worths are reports on what learning is worth. Predictions are made anew for each
// tenth of the decisions, which takes a second in a busy repository, so that a report
// is kept for a minute.
type worths struct {
	db   *store.DB
	mu   sync.Mutex
	kept map[string]impact.Report
	at   time.Time // when the oldest was made
}

func (w *worths) report(ctx context.Context, o impact.Options, repos ...string) (impact.Report, error) {
	key := fmt.Sprint(o.Days, " ", o.Repo, " ", strings.Join(repos, " "))
	w.mu.Lock()
	if age := o.Now.Sub(w.at); age < 0 || age > time.Minute {
		w.kept, w.at = map[string]impact.Report{}, o.Now
	}
	rep, ok := w.kept[key]
	w.mu.Unlock()
	if ok {
		return rep, nil
	}
	rep, err := memory.ReportWorth(ctx, w.db, o, repos...)
	if err == nil {
		w.mu.Lock()
		w.kept[key] = rep
		w.mu.Unlock()
	}
	return rep, err
}

// refreshPages tells those who look at the pages what events have changed.
func refreshPages(p *dashboard.Pages, run *pipeline.Run, events []pipeline.Event) {
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
// webhooks come to; to who runs the server, on an address of their own, because a proxy
// that passes webhooks on makes everybody look like this machine.
func (s *Server) servePages(r *mux.Router, o Options) error {
	door, err := newAccess(o.Config, s.GitHub.App, o.Log)
	if err != nil {
		return err
	}
	own := mux.NewRouter()
	s.pages.Route(own)
	switch o.Config.Dashboard {
	case access.GitHub:
		r.PathPrefix("/").Handler(door.Wrap(own))
		s.PagesURL = o.Config.PublicURL
	case access.Local:
		l, err := net.Listen("tcp", o.Config.DashboardListen)
		if err != nil {
			// Webhooks matter more than pages.
			o.Log.Error("no web pages: set dashboard_listen to a free loopback address, or dashboard to off", "error", err)
			return nil
		}
		s.PagesURL, s.PagesKey = "http://"+l.Addr().String(), door.Key()
		s.local = newHTTPServer(door.Wrap(own), o.Log)
		s.local.RegisterOnShutdown(s.endStreams)
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
func (s *Server) serve(hs *http.Server, l net.Listener) {
	go func() {
		if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve", "address", fmt.Sprint(l.Addr()), "error", err)
		}
	}()
}

// endStreams ends what is being told, so that a server that stops does not wait for
// those who listen.
func (s *Server) endStreams() {
	s.pages.Close()
	s.streams.Close()
}
