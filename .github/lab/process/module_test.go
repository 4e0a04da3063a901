package process

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/github/githubtest"
	"forge/lab/meter"
	"forge/pipeline/agent/agenttest"
	"forge/pipeline/needs"
	"forge/pipeline/store"
)

// Covers T1–T3, B1, B8 of the main job: a labelled issue becomes a verified
// pull request, over GitHub's protocol, on a real module with a real bug.
func TestRealModule(t *testing.T) {
	long(t)
	t.Parallel()
	l := newLab(t, labOptions{})
	p := l.serve()
	begun := time.Now()
	l.start()
	pull := l.verified(patience)
	took := time.Since(begun)
	commits := l.checkHead(pull)
	l.checkContract()
	if commits != 3 {
		t.Errorf("%d commits, want 3: one and one for each bounce", commits)
	}
	calls, operations := 0, map[string]int{}
	for _, c := range l.gh.Calls() {
		if !strings.HasPrefix(c.Operation, "git/") {
			operations[c.Operation]++
		}
		if !strings.HasPrefix(c.Operation, "git/") && !strings.HasPrefix(c.Operation, "apps/list-") { // these are the server's, not the run's
			calls++
		}
	}
	t.Logf("API calls by operation: %v", operations)
	t.Logf("%d API calls, %d commits, %s from the label to the end, ready after %s", calls, commits, took.Round(time.Millisecond), p.ready.Round(time.Millisecond))
	l.ownTime(p, took)
	l.checkSecrets()
	if limit := 27 + 2*9; calls > limit {
		t.Errorf("%d API calls, over %d for a run with two bounces", calls, limit)
	}
	if pull.Body == "" || !strings.Contains(pull.Body, "AC2") {
		t.Errorf("the pull request's body lacks the acceptance criteria:\n%s", pull.Body)
	}
	for name, n := range l.shape(pull) {
		t.Logf("%3d × %s", n, name)
	}
}

var suiteTime = regexp.MustCompile(`msg="suite done".* ms=(\d+)`)

// ownTime logs how much of the run was neither tests nor the commands of agents:
// engine, GitHub calls, git, checkouts, the worker. The model is a tape and takes
// no time.
func (l *labTest) ownTime(p *process, took time.Duration) {
	l.t.Helper()
	db, err := store.Open(l.t.Context(), filepath.Join(l.dir, "state", "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	events, err := db.Events(l.t.Context(), 1, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	var tests, tools int64
	for _, m := range suiteTime.FindAllStringSubmatch(p.text(), -1) {
		ms, _ := strconv.ParseInt(m[1], 10, 64)
		tests += ms
	}
	for _, e := range events {
		if t := e.Data.Tool; t != nil && t.Tool == "run" {
			tools += t.Millis
		}
	}
	own := took - time.Duration(tests+tools)*time.Millisecond
	l.t.Logf("%d events; %s in all: tests %d ms, agents' commands %d ms, all the rest (git included) %s", len(events),
		took.Round(time.Millisecond), tests, tools, own.Round(time.Millisecond))
}

// Covers lessons 11, 18: doubled and shuffled deliveries make no difference to a run of
// several rounds; TestDeliveriesInDisorder has a shorter one.
func TestDisorderOnRealModule(t *testing.T) {
	long(t)
	t.Parallel()
	l := newLab(t, labOptions{})
	l.gh.SetDeliveryFaults(githubtest.DeliveryFaults{Duplicate: 0.5, Shuffle: 0.5})
	l.serve()
	l.start()
	pull := l.verified(patience)
	if n := l.checkHead(pull); n != 3 {
		t.Errorf("%d commits, want 3", n)
	}
	shape := l.shape(pull)
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		if strings.Contains(name, "status") && shape[name] != 1 {
			t.Errorf("%d × %s, want one", shape[name], name)
		}
	}
}

// The demo's run, and what its models are sent.
func TestDemoTokens(t *testing.T) {
	long(t)
	t.Parallel()
	needs.Sandbox(t)
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	issue, err := demo.Loop.Repository(gh)
	if err != nil {
		t.Fatal(err)
	}
	models, err := agenttest.NewServer(demo.Loop.Tape())
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	env, err := demo.Environment(gh, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &labTest{t: t, gh: gh, dir: dir, issue: issue}
	l.shareCache(env["FORGE_STATE_DIR"])
	l.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "FORGE_CALL_TIMEOUT=1s"}
	for name, value := range env {
		l.env = append(l.env, name+"="+value)
	}
	l.env = append(l.env, "FORGE_MODEL=anthropic/tape", "ANTHROPIC_BASE_URL="+models.URL, "ANTHROPIC_API_KEY=sk-ant-test-0000000000")
	l.serve()
	if err := gh.As("acme").Label("acme/cart", issue, "forge"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = gh.Wait(ctx, func() bool {
		pulls, err := gh.Pulls("acme/cart")
		return err == nil && len(pulls) == 1 && !pulls[0].Draft
	})
	if err != nil {
		t.Fatalf("the demo's run is not verified: %v\n%s", err, l.log())
	}
	meter.CheckTokens(t, models, 52_000) // half as many again as before the roles were told so much
}
