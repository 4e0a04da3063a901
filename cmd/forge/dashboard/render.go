package dashboard

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the pages by file name, each in the layout. They are parsed when the
// first page is asked for: this program also starts for each command in the sandbox.
var templates = sync.OnceValue(parseTemplates)

func parseTemplates() map[string]*template.Template {
	layout := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html",
		"templates/insights_chart.html"))
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is right
	}
	out := map[string]*template.Template{}
	for _, name := range names {
		out[strings.TrimPrefix(name, "templates/")] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, name))
	}
	return out
}

// functions are what templates can call.
var functions = template.FuncMap{
	"add":       func(a, b int) int { return a + b },
	"amount":    metrics.Amount,
	"asset":     asset,
	"bytes":     size,
	"clip":      func(n int, s string) string { return text.Clip(text.FirstLine(s), n) },
	"clock":     clock,
	"dollars":   text.USD,
	"kind":      kindWord,
	"from":      sourceWord,
	"fate":      stateWord,
	"forestbar": forestBar,
	"day":       day,
	"category":  func(c pipeline.Category) string { return legible(string(c)) },
	"legible":   legible,
	"scopename": scopeName,
	"int":       func(n int64) int { return int(n) },
	"dollars4":  text.USDExact,
	"firstline": func(s string) string { line, _, _ := strings.Cut(s, "\n"); return line },
	"moment":    func(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05") },
	"plural":    text.Plural,
	"rangebar":  rangeBar,
	"trendword": trendWord,
	"valuebar":  valueBar,
	"verdict":   verdict,
	"score":     func(v float64) string { return fmt.Sprintf("%.3f", v) },
	"short":     func(sha string) string { return fmt.Sprintf("%.7s", sha) },
	"spaced":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"spark":     spark,
	"stamp":     func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") },
	"tokens":    tokens,
	"when":      func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
}

// page is what a template is given.
type page struct {
	Title string
	Nav   string // the entry of the navigation that it belongs to: its path
	Live  string // what is told of by [Pages.Notify] and makes the page out of date, separated by spaces: "runs", "run/7"
	Data  any

	// Filled in by render.
	Viewer  Viewer
	Version string
	SignOut bool
	Said    string // the answer to what the viewer just did
	Now     time.Time
	checkup bool // there is a page of the server's health

	HasProduction bool // and pages of production
	Pauses        []store.Pause
}

// Ago says how long ago a time was.
func (p page) Ago(t time.Time) string {
	switch d := p.Now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// render writes a page, whole or not at all.
func (p *Pages) render(w http.ResponseWriter, r *http.Request, v Viewer, name string, pg page) error {
	pg.Viewer, pg.Version, pg.SignOut, pg.Now, pg.Said = v, p.Version, p.SignOut, p.Now(), said(w, r)
	pg.checkup, pg.HasProduction = p.Checkup != nil, p.Production
	var err error
	if pg.Pauses, err = p.pauses(r.Context(), v); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "layout.html", pg); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = b.WriteTo(w)
	return err
}

// pauses are those that concern a viewer: of all work, and of what they see.
func (p *Pages) pauses(ctx context.Context, v Viewer) ([]store.Pause, error) {
	list, err := p.DB.Pauses(ctx)
	seen, all := v.Repos()
	return slices.DeleteFunc(list, func(w store.Pause) bool {
		return !all && w.Repo != "" && !slices.ContainsFunc(seen, func(name string) bool { return strings.EqualFold(name, w.Repo) })
	}), err
}

// saidCookie holds the answer to what a viewer did until the next page shows it.
const saidCookie = "forge_said"

// done ends a change: the viewer is sent to a page, which says what came of it.
func done(w http.ResponseWriter, r *http.Request, to, said string) {
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: url.QueryEscape(said), Path: "/", MaxAge: 30, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// said takes the answer to what the viewer did last.
func said(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(saidCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, _ := url.QueryUnescape(c.Value)
	return text
}
