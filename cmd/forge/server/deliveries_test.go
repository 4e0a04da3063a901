package server_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"errors"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers lessons 11, S27: 10,000 deliveries, 30 % of them duplicates, shuffled,
// through the real receiver, store and engine, have as many effects as there are
// distinct ones: each edits the issue of one of a hundred runs.
func TestTenThousandDeliveries(t *testing.T) {
	t.Parallel()
	total, runs := 10_000, 100
	if !e2e {
		total, runs = 300, 10
	}
	distinct := total * 7 / 10
	ts := servertest.New(t, servertest.Options{})
	db, ctx := ts.Forge.DB, t.Context()
	// Who edits an issue is looked up, so the repository and the person are real.
	app := ts.Forge.GitHub.App
	installation, err := app.FindInstallation(ctx, "acme", "greet")
	ts.Must(err)
	repo, err := app.Repo(ctx, installation, "acme", "greet")
	ts.Must(err)
	task, _, err := app.Issue(ctx, repo, ts.Issue)
	ts.Must(err)
	for n := 1; n <= runs; n++ {
		start := pipeline.Start{Repo: repo,
			Task: pipeline.Task{Issue: 1000 + n, Title: "x"}, Config: config.Default(), Base: "base", Branch: fmt.Sprintf("forge/%d", n)}
		run, err := db.CreateRun(ctx, fmt.Sprintf("many/%d", n), start, time.Now().UTC(), fmt.Sprintf("%032x", n), nil)
		if err != nil {
			t.Fatal(err)
		}
		// Stopped, so that nothing but the deliveries happens to it.
		stop := pipeline.Event{ID: "stop", Type: pipeline.EventRunStopped, Source: "test", Time: time.Now().UTC(), Data: pipeline.Data{Answer: &pipeline.Answer{}}}
		if err := db.Append(ctx, run, []pipeline.Event{stop}, nil); err != nil {
			t.Fatal(err)
		}
	}
	order := make([]int, total) // of GUIDs: each once, then some again
	for i := range order {
		order[i] = i % distinct
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(total, func(i, j int) { order[i], order[j] = order[j], order[i] })
	begun := time.Now()
	deliver(t, ts, order, runs, repo, task.Author)
	took := time.Since(begun)
	drained(ts)
	var edits int
	for n := 1; n <= runs; n++ {
		id, err := db.Find(ctx, repo.ID, 1000+n, 0, "")
		if err != nil {
			t.Fatal(err)
		}
		events, err := db.Events(ctx, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == pipeline.EventIssueEdited {
				edits++
			}
		}
	}
	if edits != distinct {
		list, _ := db.Deliveries(ctx, store.DeliveryFilter{Limit: 3})
		t.Logf("the newest deliveries: %+v", list)
		t.Errorf("%d effects of %d distinct deliveries", edits, distinct)
	}
	t.Logf("%d deliveries taken in %s, %d effects after %s", total, took.Round(time.Millisecond), edits, time.Since(begun).Round(time.Millisecond))
}

// deliver posts deliveries, eight at a time, signed, in the given order of GUIDs.
func deliver(t *testing.T, ts *servertest.Server, order []int, runs int, repo pipeline.Repo, by pipeline.Actor) {
	t.Helper()
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range work {
				body := fmt.Appendf(nil, `{"action":"edited","changes":{"title":{"from":"x"}},"sender":{"id":%d,"login":"acme","type":"User"},"installation":{"id":%d},`+
					`"repository":{"id":%d,"name":"greet","full_name":"acme/greet","default_branch":"main","owner":{"id":%d,"login":"acme"}},`+
					`"issue":{"number":%d,"title":"edit %d","user":{"id":%d,"login":"acme"}}}`, by.ID, repo.Installation, repo.ID, by.ID, 1000+n%runs+1, n, by.ID)
				if status, text := post(ts, "issues", fmt.Sprintf("guid-%d", n), ts.GitHub.WebhookSecret, body); status != http.StatusAccepted {
					t.Errorf("delivery %d is answered %d: %s", n, status, text)
				}
			}
		})
	}
	for _, n := range order {
		work <- n
	}
	close(work)
	wg.Wait()
}

// post posts a delivery that is signed with a secret, and returns the answer.
func post(ts *servertest.Server, event, guid, secret string, body []byte) (status int, text string) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req, err := http.NewRequestWithContext(ts.T.Context(), http.MethodPost, ts.Forge.URL+"/webhook", bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Delivery", guid)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

// drained waits until every delivery has an outcome.
func drained(ts *servertest.Server) {
	ts.T.Helper()
	var list []record.Delivery
	servertest.Eventually(ts.T, func() (empty bool) {
		var err error
		list, err = ts.Forge.DB.Deliveries(ts.T.Context(), store.DeliveryFilter{State: record.DeliveryWaiting, Limit: 1})
		ts.Must(err)
		return len(list) == 0
	}, func() string { return fmt.Sprintf("deliveries still wait: %+v", list) })
}

// What is older than the configuration keeps is deleted, and nothing else.
func TestTidy(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	drained(ts)
	cfg := settings.Config{KeepDeliveries: 30, KeepTapes: 0}
	first, err := ts.Forge.DB.Deliveries(t.Context(), store.DeliveryFilter{Before: 2}) // the label's; those about what Forge wrote may still be coming in
	if err != nil || len(first) != 1 {
		t.Fatalf("deliveries: %+v, %v", first, err)
	}
	payload := func() int {
		d, err := ts.Forge.DB.Delivery(t.Context(), first[0].GUID)
		if err != nil {
			t.Fatal(err)
		}
		return len(d.Payload)
	}
	tape := func() int {
		entries, err := ts.Forge.DB.TapeAll(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for _, step := range []struct {
		days, keepTapes int
		payload, tape   bool
	}{{29, 0, true, true}, {31, 0, false, true}, {91, 90, false, false}} {
		cfg.KeepTapes = step.keepTapes
		if err := ts.Forge.Prune(t.Context(), time.Now().AddDate(0, 0, step.days), cfg); err != nil {
			t.Fatal(err)
		}
		if (payload() > 0) != step.payload || (tape() > 0) != step.tape {
			t.Errorf("after %d days: a payload of %d bytes, %d model calls", step.days, payload(), tape())
		}
	}
}

// Covers I1, T1: with webhooks that reach nobody, an issue is worked on from its
// label to a verified pull request, each delivery having been read once.
func TestPollWithoutWebhooks(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Env: map[string]string{"FORGE_POLL": "true"}, Wire: func(o *server.Options) { o.HookEvery = 20 * time.Millisecond }})
	ts.GitHub.SetHook("https://forge.invalid/webhook")
	ts.Label("acme")
	ts.UntilState(pipeline.StateVerified)
	reads := map[string]int{}
	for _, c := range ts.GitHub.Calls() {
		switch c.Operation {
		case "apps/get-webhook-delivery":
			reads[c.Path]++
		case "apps/redeliver-webhook-delivery":
			t.Error("a delivery is sent again that is read anyway")
		}
	}
	if len(reads) < 3 {
		t.Errorf("%d deliveries were read", len(reads))
	}
	for path, n := range reads {
		if n != 1 {
			t.Errorf("%s was read %d times", path, n)
		}
	}
	for _, d := range ts.GitHub.Deliveries() {
		if d.StatusCode != 0 && d.Event != "ping" {
			t.Errorf("%s was delivered by a webhook", d.Event)
		}
	}
}

// A GitHub that limits the App is asked no more often for it.
func TestPollIsLimited(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.GitHub.AddFault(githubtest.Fault{Operation: "apps/list-webhook-deliveries", Kind: githubtest.FaultSecondary})
	_, err := ts.Forge.GitHub.App.HookDeliveries(t.Context(), time.Now().Add(-time.Hour))
	var limit interface{ RetryAfter() time.Duration }
	if !errors.As(err, &limit) || limit.RetryAfter() <= 0 {
		t.Errorf("the error is %v", err)
	}
}
