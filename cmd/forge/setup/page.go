package setup

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed pages
var pageFiles embed.FS

var pages = template.Must(template.ParseFS(pageFiles, "pages/*.html"))

// doorCookie lets a browser in that was given the link.
const doorCookie = "forge_setup"

// page is the set-up's page, which only this machine can reach, and of it only who
// has the link.
type page struct {
	s      *setup
	key    string // in the link and the cookie
	url    string
	port   int
	http   *http.Server
	opened atomic.Bool     // somebody looks at it
	seen   chan struct{}   // closed when the end was shown
	once   sync.Once       // of seen
	ctx    context.Context // of calls that a request makes: they outlive it
}

// serve starts the page, on the port that GitHub may still lead back to.
func (s *setup) serve(ctx context.Context) (*page, error) {
	if s.p.Key == "" { // else a browser that was let in before still is
		s.p.Key = random()
		if err := s.save(); err != nil {
			return nil, err
		}
	}
	p := &page{s: s, key: s.p.Key, ctx: ctx, seen: make(chan struct{})}
	var l net.Listener
	err := errors.New("no port")
	ports := []int{s.o.Port} // 0, where none was asked for, is any
	if s.p.Port != 0 {
		ports = []int{s.p.Port, s.o.Port}
	}
	for _, port := range ports {
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the set-up's page: %w", err)
	}
	p.port = l.Addr().(*net.TCPAddr).Port
	p.url = fmt.Sprintf("http://127.0.0.1:%d/start/%s", p.port, p.key)
	p.http = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.http.Serve(l) }() // ends with stop
	if s.o.Ready != nil && !s.o.Terminal {
		s.o.Ready(p.url, "")
	}
	return p, nil
}

// linger gives a browser that follows the set-up the time to show its end.
func (p *page) linger(ctx context.Context, d time.Duration) {
	if !p.opened.Load() {
		return
	}
	select {
	case <-p.seen:
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (p *page) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if p.http.Shutdown(ctx) != nil {
		_ = p.http.Close()
	}
}

func (p *page) redirect() string { return fmt.Sprintf("http://127.0.0.1:%d/callback", p.port) }

func (p *page) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /start/{key}", p.start)
	mux.HandleFunc("GET /{$}", p.inside(p.show))
	mux.HandleFunc("POST /settle", p.inside(p.settle))
	mux.HandleFunc("POST /retry", p.inside(p.retry))
	mux.HandleFunc("GET /callback", p.callback)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	guard := http.NewCrossOriginProtection()
	inner := guard.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || host != "127.0.0.1" && host != "localhost" { // a name that somebody points here
			http.Error(w, "this page is for this machine", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		inner.ServeHTTP(w, r)
	})
}

// start lets a browser in.
func (p *page) start(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.PathValue("key")), []byte(p.key)) != 1 {
		http.NotFound(w, r)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: doorCookie, Value: p.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// inside is for a browser that was let in: the page holds the registration's state.
func (p *page) inside(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie(doorCookie)
		if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.key)) != 1 {
			p.render(w, http.StatusForbidden, view{Step: "closed"})
			return
		}
		next(w, r)
	}
}

// view is what the page shows.
type view struct {
	Step            string // closed, refused, settle, register, retry, install, end
	Error           string
	Answers         Answers
	To, State, Text string // of the form that GitHub takes
	App, Said, Ends string
	Style           template.CSS
	Reload          template.JS
}

const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}label{display:block;margin:.8rem 0 .2rem}input:not([type=checkbox]){width:100%;padding:.4rem;font:inherit;box-sizing:border-box}button,a.button{font:inherit;padding:.5rem 1rem;margin:1rem 0;display:inline-block}small{display:block}pre{white-space:pre-wrap}.error{border-left:4px solid #c00;padding-left:.8rem;white-space:pre-wrap}`

// reload looks again while something is waited for.
const reload = `setTimeout(() => location.reload(), 2000)`

// hash lets a browser take an inline style or script that is ours.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *page) render(w http.ResponseWriter, status int, v view) {
	v.Style = template.CSS(style)
	to := ""
	if v.To != "" {
		to = " " + v.Answers.web()
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src '"+hash(style)+"'; script-src '"+hash(reload)+
		"'; form-action 'self'"+to+"; frame-ancestors 'none'; base-uri 'none'")
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, "setup.html", v); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String())) // the browser may be gone
}

// show shows the step that the set-up has come to.
func (p *page) show(w http.ResponseWriter, _ *http.Request) {
	s := p.s
	s.mu.Lock()
	v := view{Answers: s.p.Answers, App: s.url, Said: s.said, Ends: s.ends}
	done, settled, code := s.done, s.p.Settled, s.p.Code
	s.mu.Unlock()
	p.opened.Store(true)
	switch {
	case v.Ends != "":
		v.Step = "end"
		defer p.once.Do(func() { close(p.seen) })
	case done:
		v.Step, v.Reload = "install", reload
	case code != "":
		v.Step = "retry"
	case settled:
		if err := p.form(&v); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	default:
		v.Step = "settle"
	}
	p.render(w, http.StatusOK, v)
}

// form makes the form that GitHub takes.
func (p *page) form(v *view) (err error) {
	if v.State, err = p.s.begin(p.port); err != nil {
		return err
	}
	v.Step, v.To = "register", newAppPage(v.Answers)+"?state="+v.State
	v.Text, err = v.Answers.manifest(p.redirect())
	return err
}

func (p *page) settle(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("again") != "" { // back to the questions
		p.s.mu.Lock()
		v := view{Step: "settle", Answers: p.s.p.Answers}
		p.s.mu.Unlock()
		p.render(w, http.StatusOK, v)
		return
	}
	f := r.PostFormValue
	a := Answers{GitHub: f("github"), Org: f("org"), Name: f("name"), URL: f("url"), Poll: f("poll") != "", Model: f("model"), Base: f("base")}
	key := strings.TrimSpace(f("key"))
	if key == "" {
		key = p.s.o.Key
	}
	if err := p.s.settle(p.ctx, a, key); err != nil {
		p.render(w, http.StatusUnprocessableEntity, view{Step: "settle", Answers: a, Error: err.Error()})
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// callback is where GitHub leads back to. Its state opens it, and nothing else.
func (p *page) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.after(w, r, p.s.accept(p.ctx, q.Get("code"), q.Get("state")))
}

func (p *page) retry(w http.ResponseWriter, r *http.Request) { p.after(w, r, p.s.resume(p.ctx)) }

func (p *page) after(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errState):
		p.render(w, http.StatusForbidden, view{Step: "refused", Error: err.Error()})
	case err != nil:
		p.render(w, http.StatusBadGateway, view{Step: "refused", Error: err.Error()})
	default:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// registerPage writes the form as a file, to be opened on another machine.
func (s *setup) registerPage(p *page) (string, error) {
	s.mu.Lock()
	v := view{Answers: s.p.Answers, Style: template.CSS(style)}
	s.mu.Unlock()
	if err := p.form(&v); err != nil {
		return "", err
	}
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, "setup.html", v); err != nil {
		return "", err
	}
	return s.path(pageFile), os.WriteFile(s.path(pageFile), []byte(b.String()), 0o600)
}
