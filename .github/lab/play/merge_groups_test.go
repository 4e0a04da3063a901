package play

import (
	"context"
	"fmt"
	"forge/cmd/forge/server/servertest"
	"os"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/pipeline"
)

// judged waits for Forge's verdict on a commit.
func judged(ts *servertest.Server, sha string) githubtest.CheckRun {
	ts.T.Helper()
	ctx, cancel := context.WithTimeout(ts.T.Context(), 60*time.Second)
	defer cancel()
	var list []githubtest.CheckRun
	err := ts.GitHub.Wait(ctx, func() bool {
		list, _ = ts.GitHub.ChecksOf(servertest.Repo, sha)
		return len(list) > 0
	})
	if err != nil || len(list) != 1 {
		ts.T.Fatalf("verdicts on %s: %+v, %v", sha, list, err)
	}
	return list[0]
}

// Covers D4: each group of the merge queue gets a verdict on its own commit: what Forge verified is
// tested together with what goes before it. FORGE_GROUPS sets how many more are made.
func TestMergeGroups(t *testing.T) {
	t.Parallel()
	ts := newServer(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	acme, pull := ts.GitHub.As("acme"), run.Published.Pull.Number
	enqueue := func(n int, onTopOf string) string {
		t.Helper()
		sha, err := acme.Enqueue(servertest.Repo, n, onTopOf)
		ts.Must(err)
		return sha
	}
	push := func(branch, name, text string) string {
		t.Helper()
		sha, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: branch, Message: "Other work", Files: map[string]*string{name: &text}})
		ts.Must(err)
		return sha
	}
	want := func(sha, conclusion, words string) {
		t.Helper()
		if c := judged(ts, sha); c.Name != "forge" || c.Conclusion != conclusion || !strings.Contains(c.Title+c.Summary, words) {
			t.Errorf("verdict on %s: %+v, want %s with %q", sha, c, conclusion, words)
		}
	}
	want(enqueue(pull, ""), "success", "the very files of")
	other := push("other", "OTHER.md", "x\n")
	want(enqueue(pull, other), "success", "its tests pass, too")
	want(enqueue(pull, push("broken", "test.sh", "echo TAP version 13\necho 1..1\necho not ok 1 - greets\n")), "failure", "greets")
	n, err := acme.OpenPull(servertest.Repo, "other", "Mine")
	ts.Must(err)
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
	ts.Until("goes on", func(r *pipeline.Run) bool { return r.Head != run.Head })
	sha := enqueue(pull, "")
	if c := judged(ts, sha); c.Conclusion == "neutral" {
		t.Errorf("verdict on unverified work: %+v", c)
	}
}
