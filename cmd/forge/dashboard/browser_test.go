//go:build browser

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/dashboard/browsertest"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// stage fills a site with something for every page: run 1 asks, run 2 is verified.
func stage(t *testing.T) *site {
	s := newSite(t)
	shop := pipeline.Task{Issue: 101, Title: "The total is wrong for an empty cart", URL: "https://github.example/acme/shop/issues/1"}
	s.keep(t, busy(play(t, shop, stuck).Events, 200), shopRepo, 101, today.Add(-3*time.Hour))
	s.keep(t, busy(play(t, pipeline.Task{Issue: 102, Title: "Round the discount, not the total"},
		"plan ok\nimplement a\nreview error it rounds twice\nimplement b\nreview ok\ntest ok").Events, 120), shopRepo, 102, today.Add(-2*time.Hour))
	s.fill(t)
	s.measure(t, 2, 30)
	s.learns(400, "acme/shop", "acme/secret")
	ids := s.remember(t,
		pipeline.Learning{Scope: "repo:acme/shop", Content: "Wrap errors with the activity and its inputs", Context: "in handlers", Base: 0.7,
			Category: "style", Paths: []string{"api/a.go"}, Author: pipeline.Actor{ID: 1, Login: "ann"}, Source: "human"},
		pipeline.Learning{Scope: "repo:acme/shop", Content: "Close files in tests with t.Cleanup", Base: 0.6, Type: pipeline.LearningProcedural},
		pipeline.Learning{Scope: "org:acme", Content: "Prices are whole cents everywhere", Base: 0.5})
	s.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return s.db.ApplyEvidence(ctx, tx, "repo:acme/shop", []pipeline.Evidence{
			{Learning: ids[0], Key: "a", Delta: 0.1, Why: "a suggestion was applied", Actor: pipeline.Actor{ID: 1, Login: "ann"}, Run: 1, At: today.AddDate(0, 0, -20)},
			{Learning: ids[0], Key: "b", Delta: -0.2, Why: "a finding was dismissed", Actor: pipeline.Actor{ID: 2, Login: "bob"}, Run: 2, At: today.AddDate(0, 0, -9)}})
	})
	s.deliver(t, record.Delivery{Repo: "acme/shop", Action: "labeled", Payload: []byte(`{"action":"labeled","label":{"name":"forge"}}`)},
		record.Delivery{Repo: "acme/secret", Event: "push"})
	s.dead(t, "g2", "the database is locked")
	return s
}

// behindDoor puts a site behind what stands before the real one: its headers
// forbid inline scripts and styles.
func behindDoor(t *testing.T, s *site) http.Handler {
	door, err := access.New(access.Options{Mode: access.Local, User: pipeline.Actor{ID: 5, Login: "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	return door.Wrap(s.router)
}

// Every page, as people see it who like it light, dark or narrow: nothing that
// axe-core objects to, nothing on the console, nothing wider than the window.
func TestBrowserEveryPage(t *testing.T) {
	s := stage(t)
	web := httptest.NewServer(behindDoor(t, s))
	defer web.Close()
	defer s.pages.Close()
	b := browsertest.New(t)
	for _, page := range []struct{ name, path string }{
		{"overview", "/"}, {"runs", "/runs"}, {"runs-verified", "/runs?state=verified"},
		{"run-waiting", "/runs/1"}, {"run-verified", "/runs/2"}, {"events", "/runs/1/events"}, {"tape", "/runs/1/tape"},
		{"insights", "/insights"}, {"insights-90", "/insights?days=90&repo=acme/shop&tab=rework"}, {"insights-all", "/insights?tab=all"},
		{"learning", "/insights/learning"},
		{"memory", "/memory"}, {"memory-search", "/memory?q=errors"}, {"memory-one", "/memory/1"}, {"memory-edit", "/memory/1/edit"},
		{"memory-forget", "/memory/1/forget"},
		{"deliveries", "/deliveries"}, {"delivery", "/deliveries/g1"}, {"delivery-dead", "/deliveries/g2"},
	} {
		for i, scheme := range []string{"light", "dark"} {
			width := []int64{1280, 400}[i]
			name := fmt.Sprintf("%s-%s", page.name, scheme)
			b.Scheme(scheme, width)
			b.Open(web.URL + page.path)
			b.Check(name)
			if b.Overflows() {
				t.Errorf("%s is wider than a window of %d", name, width)
			}
			b.Picture(name)
		}
	}
}

// A page that shows a run takes over what has changed, without being loaded again.
func TestBrowserLiveUpdate(t *testing.T) {
	s := newSite(t)
	web := httptest.NewServer(behindDoor(t, s))
	defer web.Close()
	defer s.pages.Close()
	b := browsertest.New(t)
	if text := b.Open(web.URL + "/"); !strings.Contains(text, "Nothing waits for an answer") {
		t.Fatalf("the overview reads\n%s", text)
	}
	b.Until("the page listens", `!document.getElementById("live").hidden`)
	s.fill(t, "wall")
	s.pages.Notify("run/1", "acme/shop")
	b.Until("the question appears", `document.getElementById("main").innerText.includes("for ann with write access")`)
	b.Check("live")
}
