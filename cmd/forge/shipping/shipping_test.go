package shipping_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shipping"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
)

// harbour is a server whose repository ships, with a service in each of two environments.
type harbour struct {
	*servertest.Server
	later atomic.Int64
	sick  atomic.Value // environment whose service is not healthy
	head  string       // that was verified
	pull  int

	verified *pipeline.Run
}

const shipBoth = "ship: {enabled: true, merge: squash, environments: [staging, production], ask: [production], bake_minutes: 2}\n"

// newHarbour begins a run, and waits until it is verified.
func newHarbour(t *testing.T, ship string, o servertest.Options) *harbour {
	t.Helper()
	h := &harbour{}
	h.sick.Store("")
	o.Now = h.now
	o.Files = maps.Clone(o.Files)
	if o.Files == nil {
		o.Files = map[string]string{}
	}
	o.Files[".github/forge.yml"] = servertest.Greeter()[".github/forge.yml"] + ship
	o.Wire = func(w *server.Options) {
		for _, env := range []string{"staging", "production"} {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if h.sick.Load() == env {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			t.Cleanup(service.Close)
			w.Config.HealthChecks = append(w.Config.HealthChecks,
				settings.HealthCheck{Name: env, URL: service.URL, Repo: servertest.Repo, Environment: env, Expect: 200, Every: time.Hour, Fails: 3, Private: true})
		}
	}
	h.Server = servertest.New(t, o)
	h.Label("acme")
	h.verified = h.UntilState(pipeline.StateVerified)
	h.head, h.pull = h.verified.Head, h.verified.Published.Pull.Number
	return h
}

// answers says something in the pull request.
func (h *harbour) answers(who, format string, args ...any) {
	h.T.Helper()
	_, err := h.GitHub.As(who).Comment(servertest.Repo, h.pull, fmt.Sprintf("/forge ship "+format, args...))
	h.Must(err)
}

// waits waits until the work is there on its way.
func (h *harbour) waits(state shipping.State) *shipping.Ship {
	h.T.Helper()
	var s *shipping.Ship
	var err error
	servertest.Eventually(h.T, func() bool {
		s, err = shipping.Of(h.T.Context(), h.Forge.DB, h.verified.ID)
		return err == nil && s.State == state && len(s.Say) == 0
	}, func() string { return fmt.Sprintf("shipping never came to %s: %+v, %v", state, s, err) })
	return s
}

// made waits until so many deployments are there, and returns the last.
func (h *harbour) made(n int) githubtest.Deployed {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), time.Minute)
	defer cancel()
	if err := h.GitHub.Wait(ctx, func() bool { return len(h.GitHub.Deployments(servertest.Repo)) >= n }); err != nil {
		h.T.Fatalf("there are %d deployments, want %d", len(h.GitHub.Deployments(servertest.Repo)), n)
	}
	return h.GitHub.Deployments(servertest.Repo)[n-1]
}

func (h *harbour) status(id int64, state string) {
	h.T.Helper()
	h.Must(h.GitHub.As("acme").DeploymentStatus(servertest.Repo, id, state, ""))
}

func (h *harbour) now() time.Time { return time.Now().Add(time.Duration(h.later.Load())) }

// minutes lets time pass, with what is done each minute.
func (h *harbour) minutes(n int) {
	h.T.Helper()
	for range n {
		h.later.Add(int64(time.Minute))
		h.Must(h.Forge.Incidents.Bake(h.T.Context()))
		h.Must(h.Forge.Shipping.Round(h.T.Context()))
	}
}

func (h *harbour) counts(want map[string]int) {
	h.T.Helper()
	made := h.GitHub.Mutations()
	for op, n := range want {
		if made[op] != n {
			h.T.Errorf("%s: %d, want %d", op, made[op], n)
		}
	}
}

// Verified work goes all the way: a person agrees, it is merged at the verified head,
// deployed to staging, watched, a person agrees again, deployed to production, watched.
// Who may not write agrees to nothing. Covers V12.
func TestShip(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, shipBoth, servertest.Options{Deploys: true})
	h.Says(fmt.Sprintf("`/forge ship approve %s` — this pull request is merged into main at %[1]s, and at no other head (squash)", text.ShortSHA(h.head)))
	h.Says("and at no other head (squash); then a deployment to staging is made")
	h.waits(shipping.Asking)
	h.answers("stranger", "approve %s", text.ShortSHA(h.head))
	h.Outcome("issue_comment", "stranger may not command Forge")
	h.answers("acme", "approve staging")
	h.Outcome("issue_comment", "ship: answered: Nothing was done.")
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
	h.Outcome("issue_comment", "Shipping is at: watching")
	h.minutes(3)
	h.Says("**Deploy to production?**")
	h.answers("acme", "approve production")
	production := h.made(2)
	if production.Environment != "production" || production.SHA != staging.SHA {
		t.Fatalf("%+v", production)
	}
	h.status(production.ID, "success")
	h.waits(shipping.Watching)
	h.minutes(3)
	h.waits(shipping.Done)
	h.Says("**Shipped**: merged as ")
	h.Says(fmt.Sprintf("| production | %d | acme | ", production.ID))
	h.Says("; in production, healthy since ")
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 2})
	if all := h.Comments(); strings.Count(all, "**Ship this?**") != 1 || strings.Count(all, "**Shipped**") != 1 {
		t.Errorf("people are told more than once:\n%s", all)
	}
	h.logged("ship.asked  ", "ship.merged  ", "ship.deployed staging healthy", "ship.asked production ", "ship.deployed production healthy", "ship.finished  ")
	run, err := h.Forge.DB.Load(t.Context(), h.verified.ID)
	h.Must(err)
	if len(run.Shipped) != 2 || run.Shipped[1].By != "acme" || run.Shipped[1].Deployment != production.ID || run.Shipped[1].Commit != production.SHA {
		t.Errorf("the run has %+v", run.Shipped)
	}
}

// logged wants the run's log to have these steps of shipping, each once.
func (h *harbour) logged(want ...string) {
	h.T.Helper()
	events, err := h.Forge.DB.Events(h.T.Context(), h.verified.ID, 0)
	h.Must(err)
	var got []string
	for _, e := range events {
		if s := e.Data.Ship; s != nil {
			got = append(got, fmt.Sprintf("%s %s %s", e.Type, s.Environment, s.State))
			if e.Type == pipeline.EventShipAsked && (len(s.Choices) != 2 || !strings.HasPrefix(s.Question, "**")) {
				h.T.Errorf("asked %q with the choices %v", s.Question, s.Choices)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.T.Errorf("the run's log (- want, + got):\n%s", diff)
	}
}

// approved lets a person agree to the merge.
func (h *harbour) approved() {
	h.T.Helper()
	h.waits(shipping.Asking)
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
}

// The deployment by which it came this far fails after it had succeeded, while people are
// asked about the next one: it stops, and goes on only when they say so knowing that.
func TestShipTurns(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging, production], ask: [production]}\n", servertest.Options{Deploys: true})
	h.approved()
	staging := h.made(1)
	h.status(staging.ID, "success")
	h.Says("**Deploy to production?**")
	h.status(staging.ID, "failure")
	h.Says(fmt.Sprintf("**Shipping stopped**: deployment %d to staging ended as failure after it had succeeded.", staging.ID))
	h.answers("acme", "approve production")
	h.Outcome("issue_comment", "ship: answered: Nothing was done.")
	h.counts(map[string]int{"repos/create-deployment": 1})
	h.answers("acme", "again")
	h.Says("**Deploy to production?** Once more, as acme chose.")
	h.answers("acme", "approve production")
	h.status(h.made(2).ID, "success")
	h.waits(shipping.Done)
	if all := h.Comments(); !strings.Contains(all, "ended as failure after it had succeeded |\n| production") {
		t.Errorf("the table does not say how it fares:\n%s", all)
	}
}

// What was healthy is not any more while people are asked about the next environment.
func TestShipTurnsUnhealthy(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, shipBoth, servertest.Options{Deploys: true})
	h.approved()
	staging := h.made(1)
	h.status(staging.ID, "success")
	h.waits(shipping.Watching)
	h.minutes(3)
	h.Says("**Deploy to production?**")
	body, err := json.Marshal(production.Observation{Kind: production.KindAnomaly, Source: "test", Repo: servertest.Repo, Environment: "staging", Group: "g",
		Severity: production.SeverityCritical, Status: production.StatusFiring, At: h.now(), Title: "It fails", Deployment: staging.ID})
	h.Must(err)
	h.Must(h.Forge.Hooks.Take(t.Context(), "late", "check/test", body))
	h.Incident(1, func(i *production.Incident) bool {
		return len(i.Suspects) > 0 && i.Suspects[0].Score >= production.Attributed
	})
	h.minutes(1)
	h.Says("unhealthy: incident 1.\n\nIt is merged as ")
	h.answers("acme", "approve production")
	h.Outcome("issue_comment", "ship: answered: Nothing was done.")
	h.counts(map[string]int{"repos/create-deployment": 1})
}

// Who ticks the box of a choice chooses it, and is told what comes of it. An environment's
// name may have what means something in Markdown.
func TestShipByBoxes(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [\"Prod & <EU>\"], ask: [\"Prod & <EU>\"]}\n", servertest.Options{Deploys: true})
	tick := func(choice string) {
		t.Helper()
		h.Says("[ ] `/forge ship " + choice)
		comment, nth := h.Box("/forge ship " + choice)
		h.Must(h.GitHub.As("acme").TickBox(servertest.Repo, comment, nth))
	}
	tick("approve " + text.ShortSHA(h.head))
	h.Says("as acme chose, unless it has changed by then")
	h.Says("**Deploy to Prod")
	tick("approve Prod")
	d := h.made(1)
	h.status(d.ID, "failure")
	h.waits(shipping.Stopped)
	tick("again")
	h.Says("Shipping goes on, as acme chose.")
	if d.Environment != "Prod & <EU>" || d.Creator != "forge[bot]" {
		t.Errorf("%+v", d)
	}
}

// Without the setting nothing is asked, merged, deployed or kept, and the command says so.
func TestShippingIsOff(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {environments: [staging]}\n", servertest.Options{Deploys: true})
	before := len(h.GitHub.Calls())
	h.Forge.Shipping.Wake(h.verified.ID, true)
	h.Must(h.Forge.Shipping.Round(t.Context()))
	if _, err := shipping.Of(t.Context(), h.Forge.DB, h.verified.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is shipped: %v", err)
	}
	for _, c := range h.GitHub.Calls()[before:] {
		t.Errorf("a call: %s %s", c.Operation, c.Path)
	}
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
	h.Says("Nothing is shipped here")
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 0})
}

// The head moves after people agreed, and GitHub has not yet told of it: nothing is
// merged. GitHub itself, too, is asked to merge that head alone.
func TestShipHeadMoved(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, shipBoth, servertest.Options{Deploys: true})
	h.waits(shipping.Asking)
	h.GitHub.SetHook("https://forge.invalid/webhook")
	words := "#!/bin/sh\necho something else\n"
	moved, err := h.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: h.verified.Branch, Message: "Something else", Files: map[string]*string{"greet.sh": &words}})
	h.Must(err)
	run := h.verified
	word := work.Word{Repo: run.Repo, Actor: pipeline.Actor{Login: "acme"}, Run: run.ID, Text: "approve " + text.ShortSHA(h.head)}
	said, err := h.Forge.Shipping.Answer(t.Context(), word)
	h.Must(err)
	h.Says(fmt.Sprintf("Nothing was merged: the head moved from %s, which people agreed to, to %s.", text.ShortSHA(h.head), text.ShortSHA(moved)))
	if s := h.waits(shipping.Asking); s.Head != h.head { // it is verified still, as far as Forge knows
		t.Errorf("%q: %+v", said, s)
	}
	err = h.Forge.GitHub.App.MergeAt(t.Context(), run.Repo, h.pull, h.head, "merge")
	var fault *pipeline.Fault
	if !errors.As(err, &fault) || !fault.Final {
		t.Errorf("merged at another head: %v", err)
	}
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 0})
}

// The pull request is turned to another base between the question and the answer:
// nothing is merged there, and nothing deployed; turned back, people are asked again.
func TestShipBaseChanged(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, merge: merge, environments: [production]}\n", servertest.Options{Deploys: true})
	h.Says("this pull request is merged into main at " + text.ShortSHA(h.head))
	h.waits(shipping.Asking)
	words := "nobody looked at this\n"
	_, err := h.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "release", Message: "Of another branch", Files: map[string]*string{"r.txt": &words}})
	h.Must(err)
	h.Must(h.GitHub.As("acme").Retarget(servertest.Repo, h.pull, "release"))
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
	h.Says("**Shipping stopped**: its base is release, and it was verified for main.")
	h.waits(shipping.Stopped)
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 0})
	h.answers("acme", "again") // as it is: it is not asked about
	h.Outcome("issue_comment", "Shipping goes on, as acme chose.")
	h.waits(shipping.Stopped)
	h.Must(h.GitHub.As("acme").Retarget(servertest.Repo, h.pull, "main"))
	h.answers("acme", "again")
	h.approved()
	h.status(h.made(1).ID, "success")
	h.waits(shipping.Done)
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 1})
}

// Who merges it by hand into another branch is told that this is not deployed.
func TestShipMergedElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, merge: merge, environments: [production]}\n", servertest.Options{Deploys: true})
	h.waits(shipping.Asking)
	words := "nobody looked at this\n"
	_, err := h.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "release", Message: "Of another branch", Files: map[string]*string{"r.txt": &words}})
	h.Must(err)
	h.Must(h.GitHub.As("acme").Retarget(servertest.Repo, h.pull, "release"))
	h.Must(h.GitHub.As("acme").Merge(servertest.Repo, h.pull))
	h.Says("**Shipping stopped**: it was merged into release, and it was verified for main.")
	h.counts(map[string]int{"repos/create-deployment": 0})
}

// A deployment that fails stops it, and says so; after "again" people are asked, and
// another one is made.
func TestShipDeploymentFails(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging]}\n", servertest.Options{Deploys: true})
	h.approved()
	first := h.made(1)
	h.status(first.ID, "failure")
	h.Says(fmt.Sprintf("**Shipping stopped**: deployment %d of ", first.ID))
	h.Says("to staging ended as failure")
	h.waits(shipping.Stopped)
	h.answers("stranger", "again")
	h.Outcome("issue_comment", "stranger may not command Forge")
	h.answers("acme", "again")
	h.waits(shipping.Asking)
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 1})
	h.answers("acme", "approve staging")
	second := h.made(2)
	h.status(second.ID, "success")
	s := h.waits(shipping.Done)
	if len(s.Record) != 2 || s.Record[0].Deployment != first.ID || s.Record[0].Why == "" || s.Record[1].Deployment != second.ID || s.Record[1].By != "acme" || s.Record[1].Succeeded.IsZero() {
		t.Errorf("%+v", s.Record)
	}
	h.Says("not watched")
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 2})
}

// Nothing listens to deployments: people are asked after some time, and what then
// happens after all is taken.
func TestShipNobodyListens(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging, production], timeout_minutes: 10}\n", servertest.Options{Deploys: true})
	h.approved()
	first := h.made(1)
	h.waits(shipping.Rolling)
	h.minutes(9)
	h.waits(shipping.Rolling)
	h.minutes(2)
	h.Says("**Nothing listens to deployments of staging")
	h.answers("acme", "wait staging")
	h.waits(shipping.Rolling)
	h.minutes(11)
	h.waits(shipping.Asking)
	h.status(first.ID, "success") // somebody does after all
	production := h.made(2)
	h.status(production.ID, "in_progress")
	h.Outcome("deployment_status", "to production is in_progress")
	h.minutes(11)
	h.Says(fmt.Sprintf("**Deployment %d to production is in_progress", production.ID))
	h.answers("acme", "stop")
	h.waits(shipping.Stopped)
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 2})
}

// While work is paused nobody is asked and nothing is deployed, however long it lasts;
// then shipping goes on where it was.
func TestShipPaused(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging, production], timeout_minutes: 10}\n", servertest.Options{Deploys: true})
	h.approved()
	h.made(1)
	h.waits(shipping.Rolling)
	h.Must(h.Forge.DB.SetPaused(t.Context(), store.Pause{At: time.Now(), Actor: "mia", Paused: true}))
	before := h.GitHub.Mutations()
	h.minutes(12)
	if diff := cmp.Diff(before, h.GitHub.Mutations()); diff != "" {
		t.Errorf("while work was paused, GitHub was changed (-before +after):\n%s", diff)
	}
	h.waits(shipping.Rolling)
	h.Must(h.Forge.DB.SetPaused(t.Context(), store.Pause{At: time.Now(), Actor: "mia"}))
	h.minutes(1)
	h.Says("**Nothing listens to deployments of staging")
}

// The repository deploys by itself: Forge makes no deployment, and follows those of the
// merge.
func TestShipWatches(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, via: watch, environments: [production], bake_minutes: 2}\n", servertest.Options{Deployments: true})
	h.approved()
	h.waits(shipping.Rolling)
	h.minutes(31)
	h.Says("**Nothing deploys ")
	id, err := h.GitHub.As("acme").Deploy(servertest.Repo, "Production", "main") // letter case does not count
	h.Must(err)
	h.status(id, "success")
	h.waits(shipping.Watching)
	h.minutes(3)
	h.waits(shipping.Done)
	h.Says("n Production, healthy since ")
	h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 0})
}

// What the repository deploys may be newer than the merge: it has the work all the same. What
// does not have it is not followed.
func TestShipWatchesWhatHasIt(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, via: watch, environments: [production], bake_minutes: 2}\n", servertest.Options{Deployments: true})
	before, err := h.GitHub.Head(servertest.Repo, "main")
	h.Must(err)
	h.approved()
	h.waits(shipping.Rolling)
	acme := h.GitHub.As("acme")
	deploy := func(ref string) int64 {
		t.Helper()
		id, err := acme.Deploy(servertest.Repo, "production", ref)
		h.Must(err)
		h.status(id, "success")
		return id
	}
	deploy(before)
	h.Deployed(1)
	h.minutes(1)
	if s := h.waits(shipping.Rolling); s.Record[0].Deployment != 0 {
		t.Errorf("it follows deployment %d of what was there before", s.Record[0].Deployment)
	}
	more := "more\n"
	_, err = acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
	h.Must(err)
	id := deploy("main")
	s := h.waits(shipping.Watching)
	if s.Record[0].Deployment != id {
		t.Errorf("it follows deployment %d, want %d", s.Record[0].Deployment, id)
	}
	h.minutes(3)
	h.waits(shipping.Done)
}

// What is deployed and not healthy goes no further; where that cannot be known, people
// are asked.
func TestShipUnhealthy(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [qa, staging, production], bake_minutes: 4}\n", servertest.Options{Deploys: true})
	h.approved()
	h.status(h.made(1).ID, "success")
	h.waits(shipping.Watching)
	h.minutes(5)
	h.Says("Whether qa is healthy is not known: nothing was measured")
	h.answers("acme", "approve qa")
	h.Outcome("issue_comment", "Nothing was done.")
	h.sick.Store("staging")
	h.answers("acme", "pass qa")
	h.status(h.made(2).ID, "success")
	h.waits(shipping.Watching)
	h.minutes(4)
	h.Says("**Shipping stopped**: in staging since ")
	s := h.waits(shipping.Stopped)
	if last := s.Record[len(s.Record)-1]; last.State != rollout.Unhealthy || s.Record[0].State != rollout.Unknown {
		t.Errorf("%+v", s.Record)
	}
	h.counts(map[string]int{"repos/create-deployment": 2})
}

// The App may not deploy: people are told what is missing, and nothing is merged.
func TestShipMayNotDeploy(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, shipBoth, servertest.Options{Deployments: true})
	h.Says("**Shipping stopped**: Forge may not deploy: ")
	h.Says("deployments: write")
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
	h.Outcome("issue_comment", "Shipping is at: stopped")
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 0})
}

// Who merges by hand is asked before anything is deployed; so is everybody when somebody
// else deployed something there since.
func TestShipPeopleAreQuicker(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging, production]}\n", servertest.Options{Deploys: true})
	h.waits(shipping.Asking)
	h.Must(h.GitHub.As("acme").Merge(servertest.Repo, h.pull))
	h.Says("**Deploy to staging?**")
	h.counts(map[string]int{"repos/create-deployment": 0})
	words := "more\n"
	newer, err := h.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "More", Files: map[string]*string{"more": &words}})
	h.Must(err)
	id, err := h.GitHub.As("acme").Deploy(servertest.Repo, "Production", newer) // letter case does not count
	h.Must(err)
	h.status(id, "success")
	h.Deployed(1)
	h.answers("acme", "approve staging")
	h.status(h.made(2).ID, "success")
	h.Says(fmt.Sprintf("**Deploy to production?** Deployment %d brought %s there in the meantime", id, text.ShortSHA(newer)))
	h.answers("acme", "approve production")
	h.status(h.made(3).ID, "success")
	h.waits(shipping.Done)
	h.counts(map[string]int{"pulls/merge": 0, "repos/create-deployment": 2})
}

// A branch that a merge queue alone merges into: the pull request is put into it once,
// and asked about again when it is given back.
func TestShipByQueue(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true}\n", servertest.Options{})
	h.Must(h.GitHub.RequireQueue(servertest.Repo, "main"))
	h.approved()
	queued := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h.Must(h.GitHub.Wait(ctx, func() bool { return h.GitHub.As("acme").Queued(servertest.Repo, h.pull) }))
	}
	queued()
	h.minutes(3)
	h.Must(h.GitHub.As("acme").LeaveQueue(servertest.Repo, h.pull, false))
	h.minutes(1)
	h.Says("**Ship this?** The merge queue gave it back.")
	h.approved()
	queued()
	h.Must(h.GitHub.As("acme").LeaveQueue(servertest.Repo, h.pull, true))
	h.waits(shipping.Done)
	h.counts(map[string]int{"pulls/merge": 0, "graphql/enqueuePullRequest": 2})
}

// Stopped while it waits in the merge queue, it is taken out of that; where GitHub does
// not let it, or it was merged by then, people are told so.
func TestShipStoppedInQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, says string
		fault      bool
		merged     bool
	}{
		{"taken out", "**Shipping stopped**: acme stopped it, and the pull request was taken out of the merge queue.", false, false},
		{"merged by then", "**Shipping stopped**: acme stopped it, but it was merged by then.", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t, "ship: {enabled: true, environments: [production]}\n", servertest.Options{Deploys: true})
			h.Must(h.GitHub.RequireQueue(servertest.Repo, "main"))
			h.approved()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			queued := func() bool { return h.GitHub.As("acme").Queued(servertest.Repo, h.pull) }
			h.Must(h.GitHub.Wait(ctx, queued))
			if tt.fault {
				h.GitHub.AddFault(githubtest.Fault{Operation: "graphql/dequeuePullRequest", Kind: githubtest.FaultErrorBefore, Status: http.StatusForbidden})
			}
			h.answers("acme", "stop")
			if tt.merged {
				h.Says("**is still in the merge queue**, although acme stopped it")
				h.Must(h.GitHub.As("acme").LeaveQueue(servertest.Repo, h.pull, true))
			}
			h.Says(tt.says)
			h.waits(shipping.Stopped)
			if queued() {
				t.Error("it is in the queue")
			}
			h.counts(map[string]int{"repos/create-deployment": 0})
		})
	}
}

// The server is killed before and after each thing that it does: it is merged once, and
// deployed to each environment once, and people are asked each question once.
func TestShipIsKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op  string
		nth int
	}{{"pulls/merge", 1}, {"repos/create-deployment", 1}, {"repos/create-deployment", 2}, {"issues/create-comment", 1}} {
		for _, kind := range []githubtest.FaultKind{githubtest.FaultHangBefore, githubtest.FaultHangAfter} {
			t.Run(fmt.Sprintf("%s %d %s", tt.op, tt.nth, kind), func(t *testing.T) {
				t.Parallel()
				h := newHarbour(t, "ship: {enabled: true, environments: [staging, production], ask: [production]}\n",
					servertest.Options{Deploys: true, Env: map[string]string{"FORGE_CALL_TIMEOUT": "30s"}})
				h.waits(shipping.Asking)
				h.GitHub.AddFault(githubtest.Fault{Operation: tt.op, Kind: kind, Nth: tt.nth, Times: 1})
				killed := false
				kill := func(op string, nth int) {
					if killed || op != tt.op || nth != tt.nth {
						return
					}
					killed = true
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					h.Must(h.GitHub.Wait(ctx, h.GitHub.Hanging))
					h.Restart()
					h.later.Add(int64(3 * time.Minute))
					h.Forge.Shipping.Wake(0, false)
				}
				word := work.Word{Repo: h.verified.Repo, Actor: pipeline.Actor{Login: "acme"}, Run: h.verified.ID, Text: "approve " + text.ShortSHA(h.head)}
				_, err := h.Forge.Shipping.Answer(t.Context(), word)
				h.Must(err)
				kill("pulls/merge", 1)
				kill("repos/create-deployment", 1)
				h.status(h.made(1).ID, "success")
				kill("issues/create-comment", 1)
				h.waits(shipping.Asking)
				word.Text = "approve production"
				_, err = h.Forge.Shipping.Answer(t.Context(), word)
				h.Must(err)
				kill("repos/create-deployment", 2)
				h.status(h.made(2).ID, "success")
				h.waits(shipping.Done)
				h.counts(map[string]int{"pulls/merge": 1, "repos/create-deployment": 2})
				if all := h.Comments(); !killed || strings.Count(all, "**Deploy to production?**") != 1 || strings.Count(all, "**Shipped**") != 1 {
					t.Errorf("killed: %v\n%s", killed, all)
				}
			})
		}
	}
}

// While a process makes a deployment, another one with the same database makes none.
func TestShipByTwoProcesses(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging]}\n", servertest.Options{Deploys: true, Env: map[string]string{"FORGE_CALL_TIMEOUT": "5s"}})
	h.GitHub.AddFault(githubtest.Fault{Operation: "repos/create-deployment", Kind: githubtest.FaultHangBefore, Times: 1})
	h.approved()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.Must(h.GitHub.Wait(ctx, h.GitHub.Hanging))
	other := shipping.NewService(shipping.Options{DB: h.Forge.DB, GitHub: h.Forge.GitHub.App, Log: slog.New(slog.DiscardHandler), Now: h.now, Name: "another"})
	h.Must(other.Round(t.Context()))
	if n := len(h.GitHub.Deployments(servertest.Repo)); n != 0 {
		t.Errorf("the other process made %d", n)
	}
	h.later.Add(int64(3 * time.Minute)) // the first one does not come back
	h.Must(other.Round(t.Context()))
	h.made(1)
}

// GitHub's webhook about a deployment does not come: what was said of it is looked up, and
// it goes on.
func TestShipMissesStatus(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true, environments: [staging]}\n", servertest.Options{Deploys: true})
	h.approved()
	d := h.made(1)
	h.waits(shipping.Rolling)
	h.Must(h.GitHub.Settle(t.Context()))
	h.GitHub.SetHook("http://127.0.0.1:1/webhook") // nobody is there
	h.status(d.ID, "in_progress")
	h.status(d.ID, "success")
	h.minutes(3)
	if n := h.GitHub.Calls(); slices.ContainsFunc(n, func(c githubtest.Call) bool { return c.Operation == "repos/list-deployment-statuses" }) {
		t.Error("it is looked up at once")
	}
	h.minutes(3)
	h.waits(shipping.Done)
	h.Says(fmt.Sprintf("| staging | %d |", d.ID))
}

// Nobody answers: it ends, and says so.
func TestShipUnanswered(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true}\ngates: {timeout_hours: 2}\n", servertest.Options{})
	h.waits(shipping.Asking)
	h.later.Add(int64(3 * time.Hour))
	h.Must(h.Forge.Shipping.Round(t.Context()))
	h.Says("**Shipping stopped**: nobody answered within 2 hours.")
	h.counts(map[string]int{"pulls/merge": 0})
}

// Somebody pushes while people are asked: the question holds no more, and once the new
// head is verified they are asked about that.
func TestShipAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, "ship: {enabled: true}\n", servertest.Options{})
	h.waits(shipping.Asking)
	words := "Greets people.\n"
	moved, err := h.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: h.verified.Branch, Message: "docs: say what it does", Files: map[string]*string{"README.md": &words}})
	h.Must(err)
	run := h.Until("is verified again", func(r *pipeline.Run) bool { return r.State == pipeline.StateVerified && r.Head == moved })
	h.Says(fmt.Sprintf("`/forge ship approve %s`", text.ShortSHA(run.Head)))
	h.answers("acme", "approve %s", text.ShortSHA(h.head))
	h.Outcome("issue_comment", "Nothing was done.")
	h.counts(map[string]int{"pulls/merge": 0})
	word := work.Word{Repo: run.Repo, Actor: pipeline.Actor{Login: "acme"}, Run: run.ID, Text: "approve " + text.ShortSHA(moved), Cause: "g"}
	for range 2 { // a repeat is answered alike
		if said, err := h.Forge.Shipping.Answer(t.Context(), word); err != nil || !strings.Contains(said, "as acme chose") {
			t.Errorf("%q, %v", said, err)
		}
	}
	h.waits(shipping.Done)
	if list, err := h.GitHub.Pulls(servertest.Repo); err != nil || list[0].Head != moved {
		t.Errorf("merged %+v, %v", list, err)
	}
	h.counts(map[string]int{"pulls/merge": 1})
}
