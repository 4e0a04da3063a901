package process

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/module"
	"forge/pipeline/store"
)

// modular is a local GitHub with a feature's issue on it.
func modular(t *testing.T, f feature.Feature, database string) *labTest {
	t.Helper()
	return newLab(t, labOptions{database: database, tape: f.Tape(), files: f.Files(), plain: f.Go == "",
		issue: "Packages that name a version\nEach says it in its own words."})
}

var mergeOf = regexp.MustCompile(`^Merge module (\S+)`)

// checkMerges wants every commit of the pull request's first line since the contract to
// pass its tests: all but those of promises of which a side is not merged yet. It returns
// the modules in the order of their merges.
func (l *labTest) checkMerges(p *githubtest.Pull, f feature.Feature) []string {
	l.t.Helper()
	dir := filepath.Join(l.t.TempDir(), "merges")
	git := func(args ...string) string {
		l.t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			l.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("clone", "-q", "--branch", p.Branch, l.gh.URL+"/"+e2eRepo+".git", dir)
	var merged []string
	line := strings.Split(git("-C", dir, "log", "--first-parent", "--reverse", "--format=%H %s", "origin/main..HEAD"), "\n")
	for _, commit := range line {
		sha, subject, _ := strings.Cut(commit, " ")
		if m := mergeOf.FindStringSubmatch(subject); m != nil {
			merged = append(merged, m[1])
		}
		pending := []string{"^$"}
		for _, piece := range f.Modules {
			for _, n := range piece.Needs {
				if !slices.Contains(merged, n) || !slices.Contains(merged, piece.ID) {
					pending = append(pending, "^"+f.Probe(n, piece.ID)+"$")
				}
			}
		}
		git("-C", dir, "checkout", "-q", sha)
		cmd := exec.Command("go", "test", "-skip", strings.Join(pending, "|"), "./...")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			l.t.Errorf("%s: its tests do not pass: %v\n%s", commit, err, out)
		}
	}
	return merged
}

// runs are the feature's run, and those of its modules, as the store has them.
func (l *labTest) runs(database string) (run *pipeline.Run, parts map[string]*pipeline.Run, events []pipeline.Event) {
	l.t.Helper()
	if database == "" {
		database = filepath.Join(l.dir, "state", "forge.db")
	}
	db, err := store.Open(l.t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	must := func(err error) {
		l.t.Helper()
		if err != nil {
			l.t.Fatal(err)
		}
	}
	list, err := db.Runs(l.t.Context(), store.Filter{})
	must(err)
	if len(list) != 1 {
		l.t.Fatalf("%d runs, want one: %+v", len(list), list)
	}
	run, err = db.Load(l.t.Context(), list[0].ID) // PostgreSQL does not give a number again that was not kept
	must(err)
	parts = map[string]*pipeline.Run{}
	for i := range run.Parts {
		parts[run.Parts[i].ID], err = db.Load(l.t.Context(), run.Parts[i].Run)
		must(err)
	}
	list, err = db.Runs(l.t.Context(), store.Filter{Parent: run.ID})
	must(err)
	if len(list) != len(run.Parts) {
		l.t.Errorf("%d runs build %d modules", len(list), len(run.Parts))
	}
	events, err = db.Events(l.t.Context(), run.ID, 0)
	must(err)
	return run, parts, events
}

// Covers V6, V7, V8: five modules of a real Go project, two of which need others, become one
// pull request; a promise that does not hold, and what the integration finds, go to their
// module; no commit on the way is broken; each tier has its report.
func TestFiveModules(t *testing.T) {
	long(t)
	t.Parallel()
	f := feature.Five(3)
	f.Go, f.Modules[0].Breaks = bugModule, true
	l := modular(t, f, "")
	l.serve()
	l.start()
	pull := l.verified(10 * time.Minute)
	merged := l.checkMerges(pull, f)
	if got := slices.Sorted(slices.Values(merged)); !slices.Equal(got, []string{"a", "a", "a", "b", "c", "d", "e"}) || merged[6] != "a" {
		t.Errorf("merged: %v; want each once, a again before those that rely on it, and after what the integration found", merged)
	}
	for _, p := range [][2]string{{"a", "d"}, {"b", "d"}, {"a", "e"}, {"c", "e"}} {
		if slices.Index(merged, p[0]) > slices.Index(merged, p[1]) {
			t.Errorf("%s needs %s, and was merged before it: %v", p[1], p[0], merged)
		}
	}
	run, parts, _ := l.runs("")
	if a := module.Find(run.Parts, "a"); a.Round != 2 || len(parts["a"].Iterations) != 3 || len(run.Iterations) != 2 {
		t.Errorf("a was sent back %d times, and has %d iterations, the run %d", a.Round, len(parts["a"].Iterations), len(run.Iterations))
	}
	if c := parts["c"]; len(c.Iterations) != 3 || len(c.Bounces) != 2 || len(c.Gates)+len(run.Gates) != 0 {
		t.Errorf("c has %d iterations, %d bounces; there are %d questions", len(c.Iterations), len(c.Bounces), len(c.Gates)+len(run.Gates))
	}
	for id, part := range parts {
		if report := part.Report(len(part.Iterations)); !strings.Contains(report, "level: module "+id) {
			t.Errorf("the last report of %s is not of a module:\n%s", id, report)
		}
	}
	if report := run.Report(2); !strings.Contains(report, "level: integration") || !strings.Contains(report, "level: system") {
		t.Errorf("the last report is not of the integration and the system:\n%s", report)
	}
	l.checkContract()
	l.checkSecrets()
}

// Covers V6: a module that is at work costs the server at most 30 MiB of memory, the
// process that holds its work tree included, and what its commands take left out.
func TestMemoryOfModules(t *testing.T) {
	long(t)
	const modules, most = 6, 30 << 10 // KiB
	peak := func(atOnce int) (kib, processes int) {
		f := feature.Beside(modules, modules)
		f.Minute = time.Second
		l := modular(t, f, "")
		p := l.serve(fmt.Sprintf("FORGE_PART_WORKERS=%d", atOnce))
		defer p.kill()
		l.start()
		for begun := time.Now(); !l.isVerified(); wait(50) {
			now, n := proportional(t, p.cmd.Process.Pid)
			kib, processes = max(kib, now), max(processes, n)
			if time.Since(begun) > 5*time.Minute {
				t.Fatalf("not verified: %s", l.log())
			}
		}
		return kib, processes
	}
	one, few := peak(1)
	all, many := peak(modules)
	each := (all - one) / (modules - 1)
	t.Logf("at most %d MiB in %d processes with one at work, %d MiB in %d with %d: %.1f MiB for each module more", one>>10, few, all>>10, many, modules, float64(each)/1024)
	if many-few < modules-1 || each > most {
		t.Errorf("want a process more for each of %d, and at most %d MiB", modules-1, most>>10)
	}
}

// proportional is the memory of a process and of those of its program that it has started,
// each shared page by its share, in KiB, and how many they are. One that ends meanwhile
// counts for nothing.
func proportional(t *testing.T, pid int) (sum, processes int) {
	t.Helper()
	todo := []int{pid}
	for len(todo) > 0 {
		dir := fmt.Sprintf("/proc/%d", todo[0])
		todo = todo[1:]
		lists, _ := filepath.Glob(dir + "/task/*/children")
		for _, list := range lists {
			children, _ := os.ReadFile(list)
			for _, c := range strings.Fields(string(children)) {
				n, _ := strconv.Atoi(c)
				todo = append(todo, n)
			}
		}
		if exe, _ := os.Readlink(dir + "/exe"); exe != program {
			continue
		}
		processes++
		rollup, _ := os.ReadFile(dir + "/smaps_rollup")
		for line := range strings.Lines(string(rollup)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				n, _ := strconv.Atoi(f[1])
				sum += n
			}
		}
	}
	return sum, processes
}
