package dashboard

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// Covers V10: what runs and what waits for whom is seen at a glance; nothing yet says so.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/", 200), "No runs here", "-Waiting for somebody")
	s.fill(t, "wall", "weighed", "clean")
	page := s.get(t, "/", 200)
	has(t, page, "Waiting for somebody", "for ann", `href="/runs/`, "acme/shop", "acme/secret")

	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	has(t, s.get(t, "/", 200), "acme/shop", "-acme/secret", "eve")
	s.viewer = person{login: "nobody", repos: []string{}}
	has(t, s.get(t, "/", 200), "No runs here", "-acme/")
}

// A cost that is not known is shown as such, and never as nothing of a limit.
func TestCostThatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 1, Title: "Task"}, "plan ok\nimplement a")
	events := append(p.Events, pipeline.Event{ID: "step", Type: pipeline.EventAgentIteration, Time: p.Events[len(p.Events)-1].Time,
		Data: pipeline.Data{Step: &pipeline.Step{Phase: pipeline.PhaseImplement, Iteration: 1, Number: 1,
			Usage: pipeline.Usage{Calls: 1, Input: 900, Output: 100, Unpriced: 1000}}}})
	s.keep(t, events, shopRepo, 1, today.Add(-time.Hour))
	for _, path := range []string{"/", "/runs"} {
		has(t, s.get(t, path, 200), "cost unknown", "-$0.00")
	}
	has(t, s.get(t, "/runs/1", 200), `<span class="value">cost unknown</span>`, "-of $10.00")
}

// V10: the runs that build modules are in the list where they are asked for, on every page
// of it, and only of what one sees.
func TestRunsOfModules(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.keep(t, play(t, pipeline.Task{Issue: 1, Title: "Task"}, "plan ok").Events, shopRepo, 1, today.Add(-time.Hour))
	for _, id := range []string{"auth", "mail"} {
		start := pipeline.Start{Kind: pipeline.KindModule, Repo: shopRepo, Task: pipeline.Task{Issue: 1, Title: "Task"}, Part: &module.Of{Run: 1, Module: module.Module{ID: id}}}
		if _, err := s.db.CreateRun(t.Context(), id, start, today.Add(-time.Hour), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	has(t, s.get(t, "/runs", 200), `href="/runs/1"`, `-href="/runs/2"`, `name="parts"`, "-checked")
	has(t, s.get(t, "/runs?parts=1", 200), `href="/runs/1"`, `href="/runs/2"`, "the module auth of", "the module mail of", "checked")
	has(t, s.get(t, "/runs?parts=1&before=3", 200), `href="?parts=1"`, "the module auth of", "-the module mail of")
	s.viewer = person{repos: []string{"acme/other"}}
	has(t, s.get(t, "/runs?parts=1", 200), "-/runs/2")
}

// What has changed is told to those who see it, and to them alone; who listens
// does not keep a server from stopping.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.viewer = person{repos: []string{"acme/shop"}}
	web := httptest.NewServer(s.router)
	defer web.Close()
	answer, err := http.Get(web.URL + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("it is %s", kind)
	}
	in := bufio.NewReader(answer.Body)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "retry: ") {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	s.pages.Notify("run/2", "acme/secret")
	s.pages.Notify("deliveries", "")
	s.pages.Notify("run/1", "acme/shop")
	var told strings.Builder
	for !strings.Contains(told.String(), "data: ") {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		told.WriteString(line)
	}
	s.pages.Close()
	s.pages.Close()
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(told.String() + string(rest)); got != "event: changed\ndata: run/1" {
		t.Errorf("%q", got)
	}
}

// Static files are found by an address that changes with them, and nothing else is.
func TestStatic(t *testing.T) {
	t.Parallel()
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
