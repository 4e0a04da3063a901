package servertest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/module"
)

var (
	mergeOf  = lazyregexp.New(`^Merge module (\S+)`)
	failedAt = lazyregexp.New(`(?m)^not ok \d+ - (\S+)`)
)

// GreenMerges wants the tests of a repository, by its address, whose test.sh prints TAP to pass at every
// commit of the run's branch since the contract: all but those of promises of which a side
// is not merged yet, and what people took with a module.
func GreenMerges(t *testing.T, repository string, run *pipeline.Run) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "merges")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("clone", "-q", "--branch", run.Branch, repository, dir)
	merged := map[string]bool{}
	pending := func(test string) bool {
		for _, plan := range append(slices.Clone(run.PastPlans), *run.Plan) {
			if plan.Split == nil {
				continue
			}
			for _, p := range plan.Split.Promises {
				all := merged[p.From] && !slices.ContainsFunc(p.To, func(to string) bool { return !merged[to] })
				if p.Probe == test && !all {
					return true
				}
			}
		}
		return false
	}
	line := strings.Split(git("-C", dir, "log", "--first-parent", "--reverse", "--format=%H %s", "origin/main..HEAD"), "\n")
	for _, commit := range line {
		sha, subject, _ := strings.Cut(commit, " ")
		if m := mergeOf.FindStringSubmatch(subject); m != nil {
			merged[m[1]] = true
		}
		git("-C", dir, "checkout", "-q", sha)
		cmd := exec.Command("sh", "test.sh")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\nok ") {
			t.Errorf("%s: its tests do not run: %v\n%s", commit, err, out)
		}
		for _, f := range failedAt.FindAllStringSubmatch(string(out), -1) {
			taken := slices.ContainsFunc(run.Parts, func(p module.Part) bool { return merged[p.ID] && slices.Contains(p.Known, f[1]) })
			if !taken && !pending(f[1]) {
				t.Errorf("%s: %s fails", commit, f[1])
			}
		}
	}
	t.Logf("%d commits are green", len(line))
}
