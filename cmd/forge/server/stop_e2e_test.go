//go:build e2e

package server_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers lessons 12: a stop takes effect within 5 s at any moment, and what GitHub
// shows then fits together. FORGE_STOPS sets how many moments are tried.
func TestStopAtAnyMoment(t *testing.T) {
	t.Parallel()
	stops := 6
	if n, err := strconv.Atoi(os.Getenv("FORGE_STOPS")); err == nil {
		stops = n
	}
	slow := "sleep 0.4\n" + servertest.Greeter()["test.sh"]
	ts := servertest.New(t, servertest.Options{Files: map[string]string{"test.sh": slow}})
	ts.Label("acme")
	first := ts.UntilState(pipeline.StateVerified)
	lasts := first.Updated.Sub(first.Started)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d stops, a run lasts %s", seed, stops, lasts)
	random := rand.New(rand.NewPCG(seed, 2))
	var slowest time.Duration
	phases := map[pipeline.Phase]int{}
	for done := 0; done < stops; {
		issue, err := ts.GitHub.As("acme").OpenIssue(servertest.Repo, "The greeting lacks its comma", "It prints `hello Ann`.")
		if err != nil {
			t.Fatal(err)
		}
		ts.Issue = issue
		ts.Label("acme")
		ts.Until("of the issue", func(r *pipeline.Run) bool { return r.Task.Issue == issue })
		wait(random.IntN(int(lasts.Milliseconds())))
		begun := time.Now()
		ts.Comment("acme", "/forge stop")
		run := ts.Until("stopped, or ended before", func(r *pipeline.Run) bool {
			return r.Task.Issue == issue && (r.State == pipeline.StateStopped || r.State.Ended())
		})
		took := time.Since(begun)
		if run.State != pipeline.StateStopped {
			continue // it came too late
		}
		slowest = max(slowest, took)
		if took > 5*time.Second {
			t.Errorf("stop %d took %s", done, took)
		}
		if slices.Contains(ts.Forge.OpenRuns(), run.ID) {
			t.Errorf("stop %d: its workspace is still open", done)
		}
		checkStopped(ts, run)
		if run.Active != nil {
			phases[run.Active.Phase]++
		}
		ts.Comment("acme", "/forge cancel")
		ts.Until("cancelled", func(r *pipeline.Run) bool { return r.Task.Issue == issue && r.State == pipeline.StateCancelled })
		done++
	}
	t.Logf("the slowest stop took %s; stopped in %v", slowest.Round(time.Millisecond), phases)
}

// checkStopped wants the comment, the label, the branch and the check run of a
// stopped run to say the same.
func checkStopped(ts *servertest.Server, run *pipeline.Run) {
	ts.T.Helper()
	i, err := ts.GitHub.Issue(servertest.Repo, run.Task.Issue)
	if err != nil {
		ts.T.Fatal(err)
	}
	if !slices.Contains(i.Labels, "forge") {
		ts.T.Errorf("issue %d has the labels %q", i.Number, i.Labels)
	}
	if !slices.ContainsFunc(i.Comments, func(c githubtest.Comment) bool { return strings.Contains(c.Body, "Forge was stopped") }) {
		ts.T.Errorf("no comment of issue %d says that Forge was stopped: %+v", i.Number, i.Comments)
	}
	head, _ := ts.GitHub.Head(servertest.Repo, run.Branch) // "" before the first push
	if head != run.Published.Head || run.Head != run.Base && head != run.Head {
		ts.T.Errorf("the branch is at %q; the run shows %q and has made %q from %q", head, run.Published.Head, run.Head, run.Base)
	}
	if run.Published.Pull == nil {
		return
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	if err != nil {
		ts.T.Fatal(err)
	}
	for _, p := range pulls {
		if p.Branch == run.Branch && (len(p.Checks) != 1 || p.Checks[0].Status != "completed" || p.Checks[0].Conclusion != "neutral" || !p.Draft) {
			ts.T.Errorf("pull request #%d, draft: %v, has the check runs %+v", p.Number, p.Draft, p.Checks)
		}
	}
}

func wait(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }
