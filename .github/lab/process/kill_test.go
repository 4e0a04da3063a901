package process

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/needs"
	"forge/pipeline/store"
)

// kills is how often the kill tests kill: usual times, three with -short;
// FORGE_E2E_KILLS sets it.
func kills(t *testing.T, usual int) int {
	t.Helper()
	if s := os.Getenv("FORGE_E2E_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("FORGE_E2E_KILLS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return min(3, usual)
	}
	return usual
}

// faults is the share of the writes to GitHub that go wrong while servers are killed;
// FORGE_E2E_FAULTS sets it.
func faults(t *testing.T) float64 {
	t.Helper()
	s := os.Getenv("FORGE_E2E_FAULTS")
	if s == "" {
		return 0
	}
	p, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("FORGE_E2E_FAULTS: %v", err)
	}
	return p
}

// addFaults lets that share of what changes something on GitHub go wrong: before and after
// the effect, with answers that never come, and effects that come late.
func (l *labTest) addFaults() {
	l.t.Helper()
	p := faults(l.t)
	if p == 0 {
		return
	}
	for _, kind := range []githubtest.FaultKind{githubtest.FaultErrorBefore, githubtest.FaultErrorAfter, githubtest.FaultHangAfter, githubtest.FaultErrorLate} {
		for _, operation := range []string{"issues/", "pulls/", "checks/", "git/push"} {
			l.gh.AddFault(githubtest.Fault{Operation: operation, Kind: kind, Probability: p / 4})
		}
	}
}

// Covers lessons 10, 11: servers that are killed at random moments and started
// again leave just what an undisturbed one leaves: nothing twice, nothing missing.
func TestKill(t *testing.T) {
	t.Parallel()
	calm := newLab(t, labOptions{})
	calm.serve()
	calm.start()
	want := calm.shape(calm.verified(patience))
	k := killing{kills: kills(t, 4), new: func(t *testing.T, database string) *labTest { return newLab(t, labOptions{database: database}) },
		check: func(t *testing.T, l *labTest, pull *githubtest.Pull) {
			if diff := cmp.Diff(want, l.shape(pull)); diff != "" {
				t.Errorf("after kills (-undisturbed +killed):\n%s", diff)
			}
			if n := l.checkHead(pull); n != 3 {
				t.Errorf("%d commits, want 3", n)
			}
		}}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		k.loop(t, 1, func() string { return "" })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		k.loop(t, 2, func() string { return newDatabase(t) })
	})
}

// Covers V6: the same with three modules, of which the third needs the first: the same
// files come of it, from three runs, each merged once.
func TestKillModules(t *testing.T) {
	long(t)
	t.Parallel()
	f := feature.Beside(3, 3)
	f.Modules[2].Needs = []string{"a"}
	calm := modular(t, f, "")
	calm.serve()
	calm.start()
	pull := calm.verified(patience)
	want, files := calm.shape(pull), calm.filesAt(pull, 1)
	if len(files) != 3 {
		t.Fatalf("an undisturbed run leaves %q", files)
	}
	k := killing{kills: kills(t, 4), new: func(t *testing.T, database string) *labTest { return modular(t, f, database) },
		check: func(t *testing.T, l *labTest, pull *githubtest.Pull) {
			if diff := cmp.Diff(want, l.shape(pull)); diff != "" {
				t.Errorf("after kills (-undisturbed +killed):\n%s", diff)
			}
			if diff := cmp.Diff(files, l.filesAt(pull, 1)); diff != "" {
				t.Errorf("files, merges and branches after kills (-undisturbed +killed):\n%s", diff)
			}
		}, ended: func(t *testing.T, l *labTest, database string) { // each module was built by one run
			if run, parts, _ := l.runs(database); run.State != pipeline.StateVerified || len(parts) != 3 {
				t.Errorf("the run is %s with %d modules, want it verified with 3", run.State, len(parts))
			}
		}}
	t.Run("sqlite", func(t *testing.T) { k.loop(t, 1, func() string { return "" }) })
	t.Run("postgres", func(t *testing.T) {
		k.kills = (k.kills + 1) / 2
		k.loop(t, 2, func() string { return newDatabase(t) })
	})
}

// filesAt is what a run of modules leaves in the repository: the tree at its head, the
// modules that were merged, in the order of their names, and its branches, once no more than
// so many are there.
func (l *labTest) filesAt(p *githubtest.Pull, branches int) []string {
	l.t.Helper()
	dir := filepath.Join(l.t.TempDir(), "files")
	git := func(args ...string) string {
		l.t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			l.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	err := l.gh.Wait(ctx, func() bool { // the branches of modules go when all is done
		return strings.Count(git("ls-remote", "--heads", l.gh.URL+"/"+e2eRepo+".git", "forge/*"), "\n") < branches
	})
	if err != nil {
		l.t.Errorf("branches of modules stay: %v", err)
	}
	git("clone", "-q", "--branch", p.Branch, l.gh.URL+"/"+e2eRepo+".git", dir)
	var merged []string
	for _, subject := range strings.Split(git("-C", dir, "log", "--first-parent", "--format=%s", "origin/main..HEAD"), "\n") {
		if m := mergeOf.FindStringSubmatch(subject); m != nil {
			merged = append(merged, m[1])
		}
	}
	slices.Sort(merged)
	return []string{git("-C", dir, "rev-parse", "HEAD^{tree}"), strings.Join(merged, " "),
		git("-C", dir, "branch", "-r", "--list", "origin/forge/*", "--format=%(refname:short)")}
}

// killing is how a kind of run is killed.
type killing struct {
	kills int
	new   func(t *testing.T, database string) *labTest
	check func(t *testing.T, l *labTest, pull *githubtest.Pull)
	ended func(t *testing.T, l *labTest, database string) // when its servers are gone; or nil
}

// loop kills one of some servers at random moments, until it has killed often enough,
// over as many runs as that takes.
func (k killing) loop(t *testing.T, servers int, database func() string) {
	left := k.kills
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, left)
	random := rand.New(rand.NewPCG(seed, 1))
	var slowest time.Duration
	runs := 0
	for ; left > 0 && !t.Failed(); runs++ {
		address := database()
		l := k.new(t, address)
		l.addFaults()
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
		k.check(t, l, l.verified(patience))
		for _, p := range ps {
			p.kill()
		}
		if address == "" {
			address = filepath.Join(l.dir, "state-0", "forge.db")
		}
		if k.ended != nil {
			k.ended(t, l, address)
		}
		if t.Failed() {
			l.tellRuns(address)
		}
	}
	t.Logf("%d runs, slowest restart to ready: %s", runs, slowest.Round(time.Millisecond))
}

// tellRuns logs how the runs of a database stand, and what happened to them last.
func (l *labTest) tellRuns(database string) {
	l.t.Helper()
	run, parts, _ := l.runs(database)
	db, err := store.Open(l.t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	all := []*pipeline.Run{run}
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, parts[id])
	}
	for _, r := range all {
		l.t.Logf("run %d (%s) is %s at %d, shown as of %d; branch %s at %s, published at %s; over %t, foreign %t",
			r.ID, r.Ended, r.State, r.Seq, r.Published.Rev, r.Branch, r.Head, r.Published.Head, r.Over, r.Foreign)
		for _, p := range r.Parts {
			l.t.Logf("  module %s: run %d, %s, told %q, merged %s, head %s, foreign %t", p.ID, p.Run, p.State, p.Told, p.Merged, p.Head, p.Foreign)
		}
		events, err := db.Events(l.t.Context(), r.ID, max(0, r.Seq-60))
		if err != nil {
			l.t.Fatal(err)
		}
		for _, ev := range events {
			l.t.Logf("  %s %d %s %s", ev.Time.Format("05.000"), ev.Seq, ev.Type, ev.ID)
		}
	}
	for i, p := range l.procs {
		text := p.text()
		l.t.Logf("end of the log of process %d:\n%s", i, text[max(0, len(text)-3000):])
	}
}

// newDatabase makes a PostgreSQL database for one run.
func newDatabase(t *testing.T) string {
	t.Helper()
	address := needs.Postgres(t)
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
	long(t)
	l := newLab(t, labOptions{})
	ctx := t.Context()
	db, err := store.Open(ctx, filepath.Join(l.dir, "state", "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_000 {
		now := time.Now().UTC()
		start := pipeline.Start{Repo: pipeline.Repo{ID: 77, Owner: "acme", Name: "many"}, Task: pipeline.Task{Issue: n + 1, Title: "x"},
			Config: config.Default(), Base: "base", Branch: "forge/x"}
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
