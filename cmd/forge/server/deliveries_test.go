package server

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

	"forge/cmd/forge/settings"
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
	ts := newTestServer(t, testOptions{})
	db, ctx := ts.s.DB, t.Context()
	// Who edits an issue is looked up, so the repository and the person are real.
	app := ts.s.github.app
	installation, err := app.FindInstallation(ctx, "acme", "greet")
	ts.must(err)
	repo, err := app.Repo(ctx, installation, "acme", "greet")
	ts.must(err)
	task, _, err := app.Issue(ctx, repo, ts.issue)
	ts.must(err)
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
	ts.drained()
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
func deliver(t *testing.T, ts *testServer, order []int, runs int, repo pipeline.Repo, by pipeline.Actor) {
	t.Helper()
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range work {
				body := fmt.Appendf(nil, `{"action":"edited","changes":{"title":{"from":"x"}},"sender":{"id":%d,"login":"acme","type":"User"},"installation":{"id":%d},`+
					`"repository":{"id":%d,"name":"greet","full_name":"acme/greet","default_branch":"main","owner":{"id":%d,"login":"acme"}},`+
					`"issue":{"number":%d,"title":"edit %d","user":{"id":%d,"login":"acme"}}}`, by.ID, repo.Installation, repo.ID, by.ID, 1000+n%runs+1, n, by.ID)
				if status, text := ts.post("issues", fmt.Sprintf("guid-%d", n), ts.gh.WebhookSecret, body); status != http.StatusAccepted {
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
func (ts *testServer) post(event, guid, secret string, body []byte) (status int, text string) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req, err := http.NewRequestWithContext(ts.t.Context(), http.MethodPost, ts.s.URL+"/webhook", bytes.NewReader(body))
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
func (ts *testServer) drained() {
	ts.t.Helper()
	var list []record.Delivery
	eventually(ts.t, func() (empty bool) {
		var err error
		list, err = ts.s.DB.Deliveries(ts.t.Context(), store.DeliveryFilter{State: record.DeliveryWaiting, Limit: 1})
		ts.must(err)
		return len(list) == 0
	}, func() string { return fmt.Sprintf("deliveries still wait: %+v", list) })
}

// What is older than the configuration keeps is deleted, and nothing else.
func TestTidy(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ts.drained()
	cfg := settings.Config{KeepDeliveries: 30, KeepTapes: 0}
	first, err := ts.s.DB.Deliveries(t.Context(), store.DeliveryFilter{Before: 2}) // the label's; those about what Forge wrote may still be coming in
	if err != nil || len(first) != 1 {
		t.Fatalf("deliveries: %+v, %v", first, err)
	}
	payload := func() int {
		d, err := ts.s.DB.Delivery(t.Context(), first[0].GUID)
		if err != nil {
			t.Fatal(err)
		}
		return len(d.Payload)
	}
	tape := func() int {
		entries, err := ts.s.DB.TapeAll(t.Context(), run.ID)
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
		if err := ts.s.prune(t.Context(), time.Now().AddDate(0, 0, step.days), cfg); err != nil {
			t.Fatal(err)
		}
		if (payload() > 0) != step.payload || (tape() > 0) != step.tape {
			t.Errorf("after %d days: a payload of %d bytes, %d model calls", step.days, payload(), tape())
		}
	}
}
