package play

import (
	"errors"
	"fmt"
	"forge/cmd/forge/server/servertest"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/module"
)

// another opens an issue like the first, labels it, and waits for its run.
func another(ts *servertest.Server) {
	ts.T.Helper()
	issue, err := ts.GitHub.As("acme").OpenIssue(servertest.Repo, "Letters", "Each piece says its own letter.")
	ts.Must(err)
	ts.Issue = issue
	ts.Label("acme")
	ts.Until("of the issue", func(r *pipeline.Run) bool { return r.Task.Issue == issue })
}

// stopsOfOne is how many stops one server is tried with: GitHub answers 5,000 calls an hour.
const stopsOfOne = 25

// Covers V6, lessons 12: a stop reaches all modules within 5 s at any moment.
// FORGE_STOPS sets how many moments are tried.
func TestStopModulesAtAnyMoment(t *testing.T) {
	long(t)
	stops := 10
	if n, err := strconv.Atoi(os.Getenv("FORGE_STOPS")); err == nil {
		stops = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d stops", seed, stops)
	s := &moduleStops{random: rand.New(rand.NewPCG(seed, 2)), working: map[int]int{}}
	for left := stops; left > 0 && !t.Failed(); left -= stopsOfOne {
		t.Run(strconv.Itoa(left)+" left", func(t *testing.T) { s.tryServer(t, min(left, stopsOfOne)) })
	}
	t.Logf("the slowest stop took %s; stops by modules that were stopped: %v", s.slowest.Round(time.Millisecond), s.working)
}

// moduleStops are stops of runs with modules at random moments.
type moduleStops struct {
	random  *rand.Rand
	slowest time.Duration
	working map[int]int // stops by how many modules were at work
}

// tryServer tries some with a server of its own.
func (s *moduleStops) tryServer(t *testing.T, stops int) {
	f := feature.Beside(3, 3)
	f.Modules[2].Needs, f.Minute = []string{"a"}, 100*time.Millisecond
	ts := modular(t, f, servertest.Options{})
	ts.Label("acme")
	first := verifiedWith(ts, 3)
	lasts := first.Updated.Sub(first.Started)
	t.Logf("a run lasts %s", lasts)
	for done := 0; done < stops; {
		another(ts)
		issue := ts.Issue
		wait(s.random.IntN(int(lasts.Milliseconds())))
		begun := time.Now()
		ts.Comment("acme", "/forge stop")
		halted := func(p module.Part) bool {
			return p.Run == 0 || p.State != string(pipeline.StateRunning) && p.State != string(pipeline.StateWaiting)
		}
		run := ts.Until("stopped with its modules, or ended before", func(r *pipeline.Run) bool {
			return r.Task.Issue == issue && (r.State.Ended() || r.State == pipeline.StateStopped && !slices.ContainsFunc(r.Parts, func(p module.Part) bool { return !halted(p) }))
		})
		took := time.Since(begun)
		if run.State != pipeline.StateStopped {
			continue // it came too late
		}
		s.slowest = max(s.slowest, took)
		if took > 5*time.Second {
			t.Errorf("stop %d took %s", done, took)
		}
		n := 0
		for _, p := range run.Parts {
			if p.State == string(pipeline.StateStopped) {
				n++
			}
		}
		s.working[n]++
		ts.Comment("acme", "/forge cancel")
		ts.Until("cancelled", func(r *pipeline.Run) bool { return r.Task.Issue == issue && r.State == pipeline.StateCancelled })
		done++
	}
}

// pace is how long the modules of a run took: from the first one's start to the last
// merge, and, of the phases that were worked on, along the longest way and in all.
func pace(ts *servertest.Server, run *pipeline.Run) (build, critical, serial time.Duration) {
	ts.T.Helper()
	events, err := ts.Forge.DB.Events(ts.T.Context(), run.ID, 0)
	ts.Must(err)
	work, entered := map[string]time.Duration{}, map[string]time.Time{}
	var first, last time.Time
	for _, e := range events {
		switch p := e.Data.Phase; {
		case e.Type == pipeline.EventModuleStarted && first.IsZero():
			first = e.Time
		case p == nil || p.Phase != pipeline.PhaseMerge || p.Iteration > 0:
		case e.Type == pipeline.EventPhaseEntered:
			entered[p.Part] = e.Time
		case e.Type == pipeline.EventPhaseCompleted:
			work[p.Part] += e.Time.Sub(entered[p.Part])
			last = e.Time
		}
	}
	longest := map[string]time.Duration{}
	for _, m := range run.Plan.Split.Modules { // in an order in which each comes after what it needs
		child, err := ts.Forge.DB.Load(ts.T.Context(), module.Find(run.Parts, m.ID).Run)
		ts.Must(err)
		work[m.ID] += time.Duration(child.Worked()) * time.Millisecond
		serial += work[m.ID]
		for _, n := range m.Needs {
			longest[m.ID] = max(longest[m.ID], longest[n])
		}
		longest[m.ID] += work[m.ID]
		critical = max(critical, longest[m.ID])
	}
	return last.Sub(first), critical, serial
}

// Covers V6: modules take as long as the longest way through them, and little more, by
// what each takes when they are built one after the other; three that need nothing are
// built in little more than the time of one. FORGE_MINUTE is how long the model takes for a
// minute of its work, so that the machine's own speed counts less.
func TestPaceOfModules(t *testing.T) {
	long(t)
	minute := time.Second
	if d, err := time.ParseDuration(os.Getenv("FORGE_MINUTE")); err == nil {
		minute = d
	}
	for _, c := range []struct {
		name    string
		f       feature.Feature
		slower  float64 // at most, than the longest way
		speedup float64 // at least
	}{
		{"five, two of which need others", feature.Five(3), 1.15, 0},
		{"six beside each other", feature.Beside(6, 3), 0, 2.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			measure := func(workers int) (build, critical, serial time.Duration) {
				f := c.f
				f.Minute, f.Finding = minute, ""
				ts := modular(t, f, servertest.Options{Wire: func(o *server.Options) { o.Config.Parallel.Parts = workers }})
				ts.Label("acme")
				return pace(ts, verifiedWith(ts, len(f.Modules)))
			}
			build, _, _ := measure(c.f.Parallel)
			one, critical, serial := measure(1)
			slower, speedup := build.Seconds()/critical.Seconds(), one.Seconds()/build.Seconds()
			t.Logf("%.1f s: %.2f × the longest way (%.1f s); one at a time %.1f s, %.2f × as long; work in all %.1f s",
				build.Seconds(), slower, critical.Seconds(), one.Seconds(), speedup, serial.Seconds())
			if c.slower > 0 && slower > c.slower || speedup < c.speedup {
				t.Errorf("more than %.2f × the longest way, or less than %.1f × as fast as one at a time", c.slower, c.speedup)
			}
		})
	}
}

// Covers V6: a small run beside one of six modules takes hardly longer than alone: 1.25 × on a
// machine with nothing else to do, which FORGE_FAIR asks for.
func TestFairnessOfModules(t *testing.T) {
	long(t)
	limit := 2.0 // as long as other tests keep the machine busy
	if text := os.Getenv("FORGE_FAIR"); text != "" {
		var err error
		if limit, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatalf("FORGE_FAIR: %v", err)
		}
	}
	f := feature.Beside(6, 3)
	f.Minute = 500 * time.Millisecond
	f.Whole = 4
	ts := modular(t, f, servertest.Options{})
	settings := func(text string) {
		_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Settings", Files: map[string]*string{".github/forge.yml": &text}})
		ts.Must(err)
	}
	small := func() time.Duration {
		settings("tests: {commands: [sh test.sh]}\n")
		begun := time.Now()
		another(ts)
		issue := ts.Issue
		run := ts.Until("verified alone", func(r *pipeline.Run) bool { return r.Task.Issue == issue && r.State != pipeline.StateRunning })
		if run.State != pipeline.StateVerified || len(run.Parts) != 0 {
			t.Fatalf("the small run is %s with %d modules: %s", run.State, len(run.Parts), ts.Comments())
		}
		return time.Since(begun)
	}
	var alone, beside []time.Duration
	for range 3 {
		alone = append(alone, small())
		settings(f.Files()[".github/forge.yml"])
		another(ts)
		large := ts.Until("building", func(r *pipeline.Run) bool { return len(r.Parts) == 3 })
		beside = append(beside, small())
		if x, err := ts.Forge.DB.Load(t.Context(), large.ID); err != nil || x.State.Ended() {
			t.Errorf("the large run is %s already, %v", x.State, err)
		}
		ts.Issue = large.Task.Issue
		ts.Comment("acme", "/forge cancel")
		ts.Says("cancelled")
	}
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("alone %v, beside six modules %v: %.2f ×", alone, beside, beside[1].Seconds()/alone[1].Seconds())
	if beside[1].Seconds() > limit*alone[1].Seconds() {
		t.Errorf("more than %.2f × of alone", limit)
	}
}

// span is a time in which something went on.
type span struct{ from, to time.Time }

func (s span) overlaps(o span) bool { return s.from.Before(o.to) && o.from.Before(s.to) }

// timedGit takes git's place for the server that the test starts, and returns what reads
// when it ran.
func timedGit(t *testing.T) func() []span {
	t.Helper()
	bin, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "forge-git") // the worker's user runs it, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := filepath.Join(dir, "log")
	script := "#!/bin/bash\nbegun=$EPOCHREALTIME\n" + bin + " \"$@\"\nstatus=$?\n" +
		"case \"$*\" in *--git-dir=*/state/git/*) echo \"$begun $EPOCHREALTIME\" >>" + log + ";; esac\nexit $status\n"
	for _, file := range []struct {
		path, text string
		mode       os.FileMode
	}{{filepath.Join(dir, "git"), script, 0o755}, {log, "", 0o666}} {
		if err := errors.Join(os.WriteFile(file.path, []byte(file.text), file.mode), os.Chmod(file.path, file.mode), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() (spans []span) {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var from, to float64
			if _, err := fmt.Sscan(line, &from, &to); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			spans = append(spans, span{time.UnixMicro(int64(from * 1e6)), time.UnixMicro(int64(to * 1e6))})
		}
		slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		return spans
	}
}

// merges are when a run merged its modules.
func merges(ts *servertest.Server, run int64) (spans []span) {
	ts.T.Helper()
	events, err := ts.Forge.DB.Events(ts.T.Context(), run, 0)
	ts.Must(err)
	var entered time.Time
	for _, e := range events {
		switch p := e.Data.Phase; {
		case p == nil || p.Phase != pipeline.PhaseMerge:
		case e.Type == pipeline.EventPhaseEntered:
			entered = e.Time
		case e.Type == pipeline.EventPhaseCompleted:
			spans = append(spans, span{entered, e.Time})
		}
	}
	return spans
}

// own is when the run of a module was at work beside the model, its tools and the tests:
// between phases, and in agents' phases besides their steps.
func own(ts *servertest.Server, p module.Part) (spans []span, took time.Duration) {
	ts.T.Helper()
	events, err := ts.Forge.DB.Events(ts.T.Context(), p.Run, 0)
	ts.Must(err)
	at := events[0].Time
	upTo := func(to time.Time) {
		spans = append(spans, span{at, to})
		took += to.Sub(at)
		at = to
	}
	working := false // in a phase without steps: the tests, or what brings the base in
	for _, e := range events {
		switch {
		case e.Type == pipeline.EventPhaseEntered:
			upTo(e.Time)
			working = e.Data.Phase.Phase == pipeline.PhaseTest || e.Data.Phase.Phase == pipeline.PhaseUpdate
		case e.Type == pipeline.EventAgentIteration:
			upTo(e.Time.Add(-time.Duration(e.Data.Step.Millis) * time.Millisecond))
			at = e.Time
		case e.Type == pipeline.EventPhaseCompleted && working:
			at = e.Time
		case e.Type == pipeline.EventPhaseCompleted, e.Type == pipeline.EventRunVerified:
			upTo(e.Time)
		}
		if e.Type == pipeline.EventRunVerified {
			return spans, took
		}
	}
	ts.T.Fatalf("the module %s was never verified", p.ID)
	return nil, 0
}

// Covers V6: a module takes the server little time beside what the model, the tests and git
// take: half a second on a machine with nothing else to do, which FORGE_OWN asks for. It is
// the mean of three at once, since nothing tells whose git is running; git of a merge, which
// goes on beside them, is not taken off.
func TestOwnTimeOfModules(t *testing.T) {
	long(t)
	limit := 3 * time.Second // as long as other tests keep the machine busy
	if text := os.Getenv("FORGE_OWN"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("FORGE_OWN: %v", err)
		}
		limit = d
	}
	f := feature.Beside(3, 3)
	f.Minute, f.Finding = time.Millisecond, ""
	gits := timedGit(t)
	ts := modular(t, f, servertest.Options{})
	ts.Label("acme")
	run := verifiedWith(ts, 3)
	var all time.Duration
	var each []span
	for _, p := range run.Parts {
		spans, took := own(ts, p)
		each, all = append(each, spans...), all+took
	}
	merges := merges(ts, run.ID)
	var git time.Duration
	for _, g := range gits() {
		if slices.ContainsFunc(each, g.overlaps) && !slices.ContainsFunc(merges, g.overlaps) {
			git += g.to.Sub(g.from)
		}
	}
	n := time.Duration(len(run.Parts))
	t.Logf("a module: %s, %s of it git", (all / n).Round(time.Millisecond), (git / n).Round(time.Millisecond))
	if (all-git)/n > limit {
		t.Errorf("%s a module without git, more than %s", (all-git)/n, limit)
	}
}
