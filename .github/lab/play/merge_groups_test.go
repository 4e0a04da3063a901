package play

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/pipeline"
)

// judged waits for Forge's verdict on a commit.
func (ts *testServer) judged(sha string) githubtest.CheckRun {
	ts.t.Helper()
	ctx, cancel := context.WithTimeout(ts.t.Context(), 60*time.Second)
	defer cancel()
	var list []githubtest.CheckRun
	err := ts.gh.Wait(ctx, func() bool {
		list, _ = ts.gh.ChecksOf(greetRepo, sha)
		return len(list) > 0
	})
	if err != nil || len(list) != 1 {
		ts.t.Fatalf("verdicts on %s: %+v, %v", sha, list, err)
	}
	return list[0]
}

// Covers D4: each group of the merge queue gets a verdict on its own commit: what Forge verified is
// tested together with what goes before it. FORGE_GROUPS sets how many more are made.
func TestMergeGroups(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	acme, pull := ts.gh.As("acme"), run.Published.Pull.Number
	enqueue := func(n int, onTopOf string) string {
		t.Helper()
		sha, err := acme.Enqueue(greetRepo, n, onTopOf)
		ts.must(err)
		return sha
	}
	push := func(branch, name, text string) string {
		t.Helper()
		sha, err := acme.PushFiles(greetRepo, githubtest.Push{Branch: branch, Message: "Other work", Files: map[string]*string{name: &text}})
		ts.must(err)
		return sha
	}
	want := func(sha, conclusion, words string) {
		t.Helper()
		if c := ts.judged(sha); c.Name != "forge" || c.Conclusion != conclusion || !strings.Contains(c.Title+c.Summary, words) {
			t.Errorf("verdict on %s: %+v, want %s with %q", sha, c, conclusion, words)
		}
	}
	want(enqueue(pull, ""), "success", "the very files of")
	other := push("other", "OTHER.md", "x\n")
	want(enqueue(pull, other), "success", "its tests pass, too")
	want(enqueue(pull, push("broken", "test.sh", "echo TAP version 13\necho 1..1\necho not ok 1 - greets\n")), "failure", "greets")
	n, err := acme.OpenPull(greetRepo, "other", "Mine")
	ts.must(err)
	want(enqueue(n, ""), "neutral", "Not Forge's work")

	groups := 2
	if text := os.Getenv("FORGE_GROUPS"); text != "" {
		if _, err := fmt.Sscan(text, &groups); err != nil {
			t.Fatal(err)
		}
	}
	slowest, below := time.Duration(0), other
	for i := range groups {
		below = push(fmt.Sprintf("below-%d", i), fmt.Sprintf("N%d.md", i), "x\n")
		begun := time.Now()
		want(enqueue(pull, below), "success", "")
		slowest = max(slowest, time.Since(begun))
	}
	t.Logf("%d groups, the slowest verdict after %s", groups+4, slowest.Round(time.Millisecond))

	// A head that nobody has verified.
	push(run.Branch, "MORE.md", "x\n")
	ts.until("goes on", func(r *pipeline.Run) bool { return r.Head != run.Head })
	sha := enqueue(pull, "")
	if c := ts.judged(sha); c.Conclusion == "neutral" {
		t.Errorf("verdict on unverified work: %+v", c)
	}
}
