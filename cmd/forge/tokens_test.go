package main

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"forge/cmd/forge/demo"
	"forge/github/githubtest"
	"forge/pipeline/agent/agenttest"
)

// checkTokens says what the models of a run were sent, by role, and how much of it a
// provider's cache serves, and holds it under a limit: context is not free.
func checkTokens(t *testing.T, models *agenttest.Server, limit int64) {
	t.Helper()
	calls, err := agenttest.Meter(models.Requests())
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, c := range calls {
		total += c.Input
	}
	t.Logf("sent to the models:\n%s", agenttest.Table(calls))
	if total > limit || total == 0 {
		t.Errorf("the models were sent %d tokens, over %d", total, limit)
	}
}

// The demo's run, and what its models are sent.
func TestDemoTokens(t *testing.T) {
	t.Parallel()
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
	l.env = []string{"FORGE_TEST_COMMAND=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "FORGE_CALL_TIMEOUT=1s"}
	for name, value := range env {
		l.env = append(l.env, name+"="+value)
	}
	l.env = append(l.env, "FORGE_MODEL=anthropic/tape", "ANTHROPIC_BASE_URL="+models.URL, "ANTHROPIC_API_KEY=sk-ant-test-0000000000")
	if _, err := exec.LookPath("bwrap"); err != nil {
		l.env = append(l.env, "FORGE_UNSAFE_NO_SANDBOX=true")
	}
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
	checkTokens(t, models, 52_000) // half as many again as before the roles were told so much
}
