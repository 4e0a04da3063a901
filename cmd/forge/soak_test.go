//go:build soak

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/store"
)

// kills is how often the kill tests kill; FORGE_E2E_KILLS sets it.
func kills(t *testing.T, short int) int {
	t.Helper()
	if s := os.Getenv("FORGE_E2E_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("FORGE_E2E_KILLS: %v", err)
		}
		return n
	}
	return short
}

// Covers lessons 10, 11: servers that are killed at random moments and started
// again leave just what an undisturbed one leaves: nothing twice, nothing missing.
func TestKill(t *testing.T) {
	calm := newLab(t, labOptions{})
	calm.serve()
	calm.start()
	want := calm.shape(calm.verified(3 * time.Minute))
	t.Run("sqlite", func(t *testing.T) { killLoop(t, want, 1, func() string { return "" }) })
	t.Run("postgres", func(t *testing.T) { killLoop(t, want, 2, func() string { return newDatabase(t) }) })
}

// killLoop kills one of some servers at random moments, until it has killed often
// enough, over as many runs as that takes.
func killLoop(t *testing.T, want map[string]int, servers int, database func() string) {
	left := kills(t, 4)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, left)
	random := rand.New(rand.NewPCG(seed, 1))
	var slowest time.Duration
	runs := 0
	for ; left > 0; runs++ {
		l := newLab(t, labOptions{database: database()})
		for i := range servers {
			l.shareCache(filepath.Join(l.dir, fmt.Sprintf("state-%d", i)))
		}
		start := func(i int) *process {
			return l.serve("FORGE_STATE_DIR=" + filepath.Join(l.dir, fmt.Sprintf("state-%d", i)))
		}
		var ps []*process
		for i := range servers {
			ps = append(ps, start(i))
		}
		l.start()
		// Not too many in one run, or it gets no further than its first phase.
		for n := 0; n < 10 && left > 0 && !l.isVerified(); n, left = n+1, left-1 {
			wait(random.IntN(4000))
			i := random.IntN(servers)
			ps[i].kill()
			ps[i] = start(i)
			slowest = max(slowest, ps[i].ready)
		}
		pull := l.verified(3 * time.Minute)
		if diff := cmp.Diff(want, l.shape(pull)); diff != "" {
			t.Errorf("after kills (-undisturbed +killed):\n%s", diff)
		}
		if n := l.checkHead(pull); n != 3 {
			t.Errorf("%d commits, want 3", n)
		}
		for _, p := range ps {
			p.kill()
		}
	}
	t.Logf("%d runs, slowest restart to ready: %s", runs, slowest.Round(time.Millisecond))
}

// Covers lessons 12: a stop takes effect within 5 s at any moment, and what GitHub
// shows then fits together. FORGE_STOPS sets how many moments are tried.
func TestStopAtAnyMoment(t *testing.T) {
	stops := 20
	if n, err := strconv.Atoi(os.Getenv("FORGE_STOPS")); err == nil {
		stops = n
	}
	slow := "sleep 0.4\n" + greeter["test.sh"]
	of := newOffice(t, officeOptions{files: map[string]string{"test.sh": slow}})
	of.label("acme")
	first := of.untilState(pipeline.StateVerified)
	lasts := first.Updated.Sub(first.Started)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d stops, a run lasts %s", seed, stops, lasts)
	random := rand.New(rand.NewPCG(seed, 2))
	var slowest time.Duration
	phases := map[pipeline.Phase]int{}
	for done := 0; done < stops; {
		issue, err := of.gh.As("acme").OpenIssue(officeRepo, "The greeting lacks its comma", "It prints `hello Ann`.")
		if err != nil {
			t.Fatal(err)
		}
		of.issue = issue
		of.label("acme")
		of.until("of the issue", func(r *pipeline.Run) bool { return r.Task.Issue == issue })
		wait(random.IntN(int(lasts.Milliseconds())))
		begun := time.Now()
		of.comment("acme", "/forge stop")
		run := of.until("stopped, or ended before", func(r *pipeline.Run) bool {
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
		of.s.exec.mu.Lock()
		if of.s.exec.open[run.ID] != nil {
			t.Errorf("stop %d: its workspace is still open", done)
		}
		of.s.exec.mu.Unlock()
		of.checkStopped(run)
		if run.Active != nil {
			phases[run.Active.Phase]++
		}
		of.comment("acme", "/forge cancel")
		of.until("cancelled", func(r *pipeline.Run) bool { return r.Task.Issue == issue && r.State == pipeline.StateCancelled })
		done++
	}
	t.Logf("the slowest stop took %s; stopped in %v", slowest.Round(time.Millisecond), phases)
}

// checkStopped wants the comment, the label, the branch and the check run of a
// stopped run to say the same.
func (of *office) checkStopped(run *pipeline.Run) {
	of.t.Helper()
	i, err := of.gh.Issue(officeRepo, run.Task.Issue)
	if err != nil {
		of.t.Fatal(err)
	}
	if !slices.Contains(i.Labels, "forge") {
		of.t.Errorf("issue %d has the labels %q", i.Number, i.Labels)
	}
	if !slices.ContainsFunc(i.Comments, func(c githubtest.Comment) bool { return strings.Contains(c.Body, "Forge was stopped") }) {
		of.t.Errorf("no comment of issue %d says that Forge was stopped: %+v", i.Number, i.Comments)
	}
	head, _ := of.gh.Head(officeRepo, run.Branch) // "" before the first push
	if head != run.Published.Head || run.Head != run.Base && head != run.Head {
		of.t.Errorf("the branch is at %q; the run shows %q and has made %q from %q", head, run.Published.Head, run.Head, run.Base)
	}
	if run.Published.Pull == nil {
		return
	}
	pulls, err := of.gh.Pulls(officeRepo)
	if err != nil {
		of.t.Fatal(err)
	}
	for _, p := range pulls {
		if p.Branch == run.Branch && (len(p.Checks) != 1 || p.Checks[0].Status != "completed" || p.Checks[0].Conclusion != "neutral" || !p.Draft) {
			of.t.Errorf("pull request #%d, draft: %v, has the check runs %+v", p.Number, p.Draft, p.Checks)
		}
	}
}

// newDatabase makes a PostgreSQL database for one run.
func newDatabase(t *testing.T) string {
	t.Helper()
	address := os.Getenv("FORGE_TEST_POSTGRES")
	if address == "" {
		t.Skip("needs PostgreSQL: set FORGE_TEST_POSTGRES=postgres://USER@HOST:PORT/DATABASE")
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("forge_e2e_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if conn, err := pgx.Connect(ctx, address); err == nil {
			conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			conn.Close(ctx)
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// wait lets a random time pass: a kill must come at a moment that nobody chose.
func wait(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

// TestRestartWithManyRuns logs how long a server with 10,000 runs in its store, a
// hundred of them waiting, takes from its start to its first answer.
func TestRestartWithManyRuns(t *testing.T) {
	l := newLab(t, labOptions{})
	ctx := t.Context()
	db, err := store.Open(ctx, filepath.Join(l.dir, "state", "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_000 {
		now := time.Now().UTC()
		start := pipeline.Start{Repo: pipeline.Repo{ID: 77, Owner: "acme", Name: "many"}, Task: pipeline.Task{Issue: n + 1, Title: "x"}, Config: pipeline.DefaultConfig(), Base: "base", Branch: "forge/x"}
		run, err := db.CreateRun(ctx, fmt.Sprintf("many/%d", n), start, now, trace(), nil)
		if err != nil {
			t.Fatal(err)
		}
		end := pipeline.EventRunCancelled
		if n%100 == 0 {
			end = pipeline.EventRunStopped
		}
		if err := db.Append(ctx, run, []pipeline.Event{
			{ID: "end", Type: end, Source: "test", Time: now, Data: pipeline.Data{Answer: &pipeline.Answer{}}},
			{ID: "shown", Type: pipeline.EventPublishCompleted, Source: "test", Time: now, Data: pipeline.Data{Publication: &pipeline.Publication{Rev: 2}}},
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p := l.serve()
		t.Logf("ready after %s", p.ready.Round(time.Millisecond))
		p.kill()
	}
}
