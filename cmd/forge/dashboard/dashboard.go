// Package dashboard serves Forge's web pages: what runs now and waits for whom,
// how well the feedback loops work, what a run did and why, what is remembered,
// and what became of webhook deliveries.
//
// Pages are rendered here from html/template, and work without JavaScript but for
// live updates and charts, whose numbers stand in a table beside them. A page reads
// the database when it is asked for and keeps nothing. Who looks, and what they
// may see and do, is asked of the [Viewer] in every handler: lists hold only
// repositories that the viewer sees, a page about another one does not exist for
// them, and a change needs write access at that very moment.
package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"forge/learn/impact"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Viewer is who looks at the pages.
type Viewer interface {
	Actor() pipeline.Actor
	// Repos returns the repositories ("owner/name") that they see; all means every one.
	Repos() (list []string, all bool)
	// MayWrite asks whether they may change something in a repository, now.
	MayWrite(ctx context.Context, repo string) (bool, error)
}

// Options are what the pages need.
type Options struct {
	DB     *store.DB
	Viewer func(*http.Request) Viewer
	// Report computes the metrics of repositories together, "" being all of them.
	Report func(ctx context.Context, o metrics.Options, repos ...string) (metrics.Report, error)
	// Worth computes what learning is worth in repositories together, "" being all of them.
	Worth func(ctx context.Context, o impact.Options, repos ...string) (impact.Report, error)
	// Tell gives a run a command and returns the answer; key tells a repeat.
	Tell func(ctx context.Context, run int64, key string, choice command.Line, by pipeline.Actor, via string) (string, error)
	// Redrive has a delivery handled again.
	Redrive func(ctx context.Context, guid string) error
	// Checkup finds out what keeps the server from working; nil: nobody is told.
	Checkup func(ctx context.Context) Checkup
	Now     func() time.Time
	Log     *slog.Logger
	Version string
	Slug    string // what commands begin with; "": command.Slug
	SignOut bool   // the viewer has signed in, and may sign out

	Events http.Handler // streams to programs what happens; nil: nothing does

	Production bool // there are pages of what runs where, and of what goes wrong there
}

// Pages are the web pages. Route adds them to a router; Notify tells those who
// look that something has changed.
type Pages struct {
	Options
	live *live
}

// New makes the pages.
func New(o Options) *Pages {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Pages{Options: o, live: newLive()}
}

// Route adds the pages to a router.
func (p *Pages) Route(r *mux.Router) {
	get := func(path string, h handler) { r.Handle(path, p.handle(h)).Methods(http.MethodGet, http.MethodHead) }
	post := func(path string, h handler) { r.Handle(path, p.handle(h)).Methods(http.MethodPost) }
	get("/", p.runs)
	get("/runs", p.runs)
	get("/memory", p.memory)
	get("/memory/{id}", p.learningPage)
	get("/memory/{id}/edit", p.editPage)
	post("/memory/{id}/edit", p.edit)
	get("/memory/{id}/forget", p.forgetPage)
	post("/memory/{id}/forget", p.forget)
	get("/deliveries", p.deliveries)
	get("/deliveries/{guid}", p.delivery)
	post("/deliveries/{guid}/retry", p.retryDelivery)
	get("/doctor", p.checkupPage)
	get("/servers", p.servers)
	if p.Production {
		get("/production", p.production)
		get("/production/incidents/{id}", p.incident)
	}
	get("/insights", p.insights)
	get("/insights/learning", p.worth)
	get("/runs/{id}", p.run)
	get("/runs/{id}/events", p.events)
	get("/runs/{id}/tape", p.tape)
	get("/runs/{id}/answer", p.toRun)
	r.Handle("/runs/{id}/answer", p.handle(p.answer)).Methods(http.MethodPost)
	r.HandleFunc("/live", p.serveLive).Methods(http.MethodGet)
	if p.Events != nil {
		r.Handle("/events", p.Events).Methods(http.MethodGet)
	}
	r.PathPrefix("/static/").HandlerFunc(serveStatic).Methods(http.MethodGet, http.MethodHead)
}

// handler answers with a page, or an error that fail shows.
type handler func(w http.ResponseWriter, r *http.Request, v Viewer) error

func (p *Pages) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := p.Viewer(r)
		if err := h(w, r, v); err != nil {
			p.fail(w, r, v, err)
		}
	})
}

// problem is an error for people, with its status.
type problem struct {
	status int
	text   string
}

func (e *problem) Error() string { return e.text }

func notFound(text string) error { return &problem{http.StatusNotFound, text} }
func badInput(text string) error { return &problem{http.StatusBadRequest, text} }

// fail shows an error. What is not meant for people goes to the log alone.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, v Viewer, err error) {
	var told *problem
	switch {
	case errors.As(err, &told):
	case errors.Is(err, store.ErrNotFound):
		told = &problem{http.StatusNotFound, "There is nothing here, or nothing that you may see."}
	case errors.Is(err, context.Canceled):
		return
	default:
		p.Log.Error("show a page", "path", r.URL.Path, "error", err)
		told = &problem{http.StatusInternalServerError, "This page could not be made. The server's log says why."}
	}
	err = p.render(&statusWriter{w, told.status}, r, v, "problem.html", page{Title: http.StatusText(told.status), Data: told.text})
	if err != nil {
		p.Log.Error("show an error", "path", r.URL.Path, "error", err)
	}
}

// statusWriter answers with a status of its own as soon as there is something to write.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status != 0 {
		w.WriteHeader(w.status)
		w.status = 0
	}
	return w.ResponseWriter.Write(b)
}

// Sees reports whether a viewer sees a repository.
func Sees(v Viewer, repo string) bool {
	list, all := v.Repos()
	return all || slices.Contains(list, repo)
}

// visible returns the repositories with runs that a viewer sees, by name, and
// whether these are all that there are.
func (p *Pages) visible(ctx context.Context, v Viewer) (repos []string, all bool, err error) {
	repos, err = p.DB.Repos(ctx)
	list, all := v.Repos()
	if err != nil || all {
		return repos, all, err
	}
	return slices.DeleteFunc(repos, func(r string) bool { return !slices.Contains(list, r) }), false, nil
}

// choice is the repository that a page is about: the one of ?repo=, or all that
// the viewer sees.
type choice struct {
	Repo  string   // "" for all
	Repos []string // that may be chosen
	all   bool     // the viewer sees every one
}

// within are the repositories to list: nil for every one, never nil otherwise.
func (c choice) within() []string {
	switch {
	case c.Repo != "":
		return []string{c.Repo}
	case c.all:
		return nil
	}
	return append([]string{}, c.Repos...)
}

func (p *Pages) choose(r *http.Request, v Viewer) (choice, error) {
	repos, all, err := p.visible(r.Context(), v)
	if err != nil {
		return choice{}, err
	}
	c := choice{Repo: r.URL.Query().Get("repo"), Repos: repos, all: all}
	if c.Repo == "" || slices.Contains(repos, c.Repo) {
		return c, nil
	}
	words := "No run was ever in " + c.Repo + ", or you do not see it."
	if near := text.Nearest(c.Repo, repos); near != "" {
		words += " Did you mean " + near + "?"
	}
	return choice{}, notFound(words)
}
