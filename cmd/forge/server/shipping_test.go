package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shipping"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/text"
)

// harbour is a server whose repository ships, with a service in each of two environments.
type harbour struct {
	*testServer
	later atomic.Int64
	sick  atomic.Value // environment whose service is not healthy
	head  string       // that was verified
	pull  int
}

const shipBoth = "ship: {enabled: true, merge: squash, environments: [staging, production], ask: [production], bake_minutes: 2}\n"

// newHarbour begins a run, and waits until it is verified.
func newHarbour(t *testing.T, ship string, o testOptions) *harbour {
	t.Helper()
	h := &harbour{}
	h.sick.Store("")
	o.now = func() time.Time { return time.Now().Add(time.Duration(h.later.Load())) }
	o.files = maps.Clone(o.files)
	if o.files == nil {
		o.files = map[string]string{}
	}
	o.files[".github/forge.yml"] = servertest.Greeter()[".github/forge.yml"] + ship
	o.wire = func(w *Options) {
		for _, env := range []string{"staging", "production"} {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if h.sick.Load() == env {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			t.Cleanup(service.Close)
			w.Config.HealthChecks = append(w.Config.HealthChecks,
				settings.HealthCheck{Name: env, URL: service.URL, Repo: greetRepo, Environment: env, Expect: 200, Every: time.Hour, Fails: 3, Private: true})
		}
	}
	h.testServer = newTestServer(t, o)
	h.label("acme")
	run := h.untilState(pipeline.StateVerified)
	h.head, h.pull = run.Head, run.Published.Pull.Number
	return h
}

// answers says something in the pull request.
func (h *harbour) answers(who, format string, args ...any) {
	h.t.Helper()
	_, err := h.gh.As(who).Comment(greetRepo, h.pull, fmt.Sprintf("/forge ship "+format, args...))
	h.must(err)
}

// waits waits until the work is there on its way.
func (h *harbour) waits(state shipping.State) *shipping.Ship {
	h.t.Helper()
	deadline := time.After(time.Minute)
	for {
		s, err := shipping.Of(h.t.Context(), h.s.DB, h.run.ID)
		if err == nil && s.State == state && len(s.Say) == 0 {
			return s
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			h.t.Fatalf("shipping never came to %s: %+v, %v", state, s, err)
		}
	}
}

// made waits until so many deployments are there, and returns the last.
func (h *harbour) made(n int) githubtest.Deployed {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	if err := h.gh.Wait(ctx, func() bool { return len(h.gh.Deployments(greetRepo)) >= n }); err != nil {
		h.t.Fatalf("there are %d deployments, want %d", len(h.gh.Deployments(greetRepo)), n)
	}
	return h.gh.Deployments(greetRepo)[n-1]
}

func (h *harbour) status(id int64, state string) {
	h.t.Helper()
	h.must(h.gh.As("acme").DeploymentStatus(greetRepo, id, state, ""))
}

// minutes lets time pass, with what is done each minute.
func (h *harbour) minutes(n int) {
	h.t.Helper()
	for range n {
		h.later.Add(int64(time.Minute))
		h.must(h.s.incidents.Bake(h.t.Context()))
		h.must(h.s.shipping.Round(h.t.Context()))
	}
}

func (h *harbour) counts(want map[string]int) {
	h.t.Helper()
	made := h.gh.Mutations()
	for op, n := range want {
		if made[op] != n {
			h.t.Errorf("%s: %d, want %d", op, made[op], n)
		}
	}
}

// Verified work goes all the way: a person agrees, it is merged at the verified head,
// deployed to staging, watched, a person agrees again, deployed to production, watched.
// Who may not write agrees to nothing. Covers V12.
func TestShip(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, shipBoth, testOptions{deploys: true})
	h.says(fmt.Sprintf("`/forge ship approve %s` — this pull request is merged at %[1]s, and at no other head (squash); then a deployment to staging is made", text.ShortSHA(h.head)))
	h.waits(shipping.Asking)
	h.answers("stranger", "approve %s", text.ShortSHA(h.head))
	h.outcome("issue_comment", "stranger may not command Forge")
	h.answers("acme", "approve staging")
	h.outcome("issue_comment", "ship: answered: Nothing was done.")
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 0})
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
	staging := h.made(1)
	if staging.Environment != "staging" || staging.Creator != "forge[bot]" || staging.Task != "deploy" {
		t.Fatalf("%+v", staging)
	}
	h.status(staging.ID, "in_progress")
	h.status(staging.ID, "success")
	h.waits(shipping.Watching)
	h.answers("acme", "approve production") // nobody has asked yet
	h.outcome("issue_comment", "Shipping is at: watching")
	h.minutes(3)
	h.says("**Deploy to production?**")
	h.answers("acme", "approve production")
	production := h.made(2)
	if production.Environment != "production" || production.SHA != staging.SHA {
		t.Fatalf("%+v", production)
	}
	h.status(production.ID, "success")
	h.waits(shipping.Watching)
	h.minutes(3)
	h.waits(shipping.Done)
	h.says("**Shipped**: merged as ")
	h.says(fmt.Sprintf("| production | %d | acme | ", production.ID))
	h.says("; in production, healthy since ")
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 2})
	if all := h.comments(); strings.Count(all, "**Ship this?**") != 1 || strings.Count(all, "**Shipped**") != 1 {
		t.Errorf("people are told more than once:\n%s", all)
	}
}
