package dashboard

import (
	"strings"
	"testing"
)

// Covers V10: what runs and what waits for whom is seen at a glance; nothing yet says so.
func TestOverview(t *testing.T) {
	s := newSite(t)
	has(t, s.get(t, "/", 200), "Nothing waits for an answer", "No run is going on", "no data", "-NaN")
	s.fill(t, "wall", "weighed", "clean")
	page := s.get(t, "/", 200)
	has(t, page, "Waiting for somebody", "for ann", `href="/runs/`, "acme/shop", "acme/secret", `class="spark"`)

	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	has(t, s.get(t, "/", 200), "acme/shop", "-acme/secret", "eve")
	s.viewer = person{login: "nobody", repos: []string{}}
	has(t, s.get(t, "/", 200), "Nothing waits for an answer", "-acme/")
}

// Many runs are paged through; what one does not see is not there.
func TestRuns(t *testing.T) {
	s := newSite(t)
	has(t, s.get(t, "/runs", 200), "No runs here")
	s.fill(t)
	page := s.get(t, "/runs", 200)
	has(t, page, "acme/secret", `rel="next"`, "-Newest")
	has(t, s.get(t, "/runs?before=46", 200), "Newest", `href="/runs/45"`, `-href="/runs/46"`, "-Older")
	has(t, s.get(t, "/runs?state=verified&repo=acme/shop", 200), "verified", "acme/shop", "-acme/secret #")
	has(t, s.get(t, "/runs?repo=acme/shopp", 404), "Did you mean acme/shop?")
	has(t, s.get(t, "/runs?state=dead", 400), "There is no state")
	has(t, s.get(t, "/runs?before=x", 400), "takes a run")
	s.viewer = person{repos: []string{"acme/shop"}}
	has(t, s.get(t, "/runs", 200), "acme/shop", "-acme/secret")
	has(t, s.get(t, "/runs?repo=acme/secret", 404), "-Did you mean acme/secret")
}

// Static files are found by an address that changes with them, and nothing else is.
func TestStatic(t *testing.T) {
	s := newSite(t)
	at, err := asset("style.css")
	if err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, at, 200), "color-scheme")
	s.get(t, "/static/style.css", 200)
	s.get(t, "/static/dashboard.go", 404)
	s.get(t, "/static/", 404)
	if page := s.get(t, "/", 200); !strings.Contains(page, at) || strings.Contains(page, "<style") || strings.Contains(page, "style=") {
		t.Errorf("the page does not use the style sheet %s alone:\n%s", at, page)
	}
}
