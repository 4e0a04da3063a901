package access

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

//go:embed page.html
var pageText string

// page is a small page of this package. Its style is the dashboard's.
var page = template.Must(template.New("page").Parse(pageText))

type pageData struct {
	Title, Text string
	Link, Label string // where to go on; "": nowhere
	Key         bool   // it asks for the key
	To          string // and leads there
}

// Refuse answers with a small page that says why not, in plain text for programs
// and for parts of pages (htmx). The text is shown to people: it says what to do.
func (a *Access) Refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	d := pageData{Title: http.StatusText(status), Text: text, Link: "/", Label: "To the start"}
	if status == http.StatusForbidden && a.opts.Mode == Local {
		d.Link = "" // it would lead here
	}
	say(w, r, status, d)
}

// askToSignIn refuses with a way to sign in that leads back to this page.
func (a *Access) askToSignIn(w http.ResponseWriter, r *http.Request, text string) {
	to := loginPath
	if !unsafe(r.Method) && !asksForText(r) {
		if here := relative(r.URL.RequestURI()); here != "/" {
			to += "?" + url.Values{"to": {here}}.Encode()
		}
	}
	say(w, r, http.StatusUnauthorized, pageData{Title: "Sign in", Text: text, Link: to, Label: "Sign in with GitHub"})
}

// asksForText reports whether an answer is read by a program or put into a page.
func asksForText(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return r.Header.Get("HX-Request") == "true" || strings.Contains(accept, "json") && !strings.Contains(accept, "text/html")
}

func say(w http.ResponseWriter, r *http.Request, status int, d pageData) {
	w.Header().Set("Cache-Control", "no-store")
	if asksForText(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintln(w, d.Text)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, d) // the reader may be gone
}
