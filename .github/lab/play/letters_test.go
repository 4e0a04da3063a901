package play

import (
	"forge/cmd/forge/server/servertest"
	"slices"
	"strings"
	"testing"

	"forge/lab/feature"
	"forge/pipeline/module"
)

// Covers V7: a module that is wrong twice, and one that does not keep what it promised
// another, and in which the integration finds something then.
func TestFiveLetters(t *testing.T) {
	long(t)
	t.Parallel()
	f := feature.Five(3)
	f.Modules[0].Breaks = true
	ts := modular(t, f, servertest.Options{})
	ts.Label("acme")
	run := verifiedWith(ts, 5)
	ts.Says("2 of 2 passed, 4 pending") // a module's tests, without those of promises of others
	if a := module.Find(run.Parts, "a"); a.Round != 2 || len(run.Iterations) != 2 {
		t.Errorf("a was sent back %d times in %d iterations", a.Round, len(run.Iterations))
	}
	if slices.ContainsFunc(run.Parts, func(p module.Part) bool { return p.Merged != p.Head }) {
		t.Errorf("modules: %+v", run.Parts)
	}
}

// Covers V6: what modules cost of GitHub's limits.
func TestCallsOfModules(t *testing.T) {
	long(t)
	t.Parallel()
	ts := modular(t, feature.Beside(3, 3), servertest.Options{})
	ts.Label("acme")
	verifiedWith(ts, 3)
	n, by := 0, map[string]int{} // without git and what the server asks for itself
	for _, c := range ts.GitHub.Calls() {
		if !strings.HasPrefix(c.Operation, "git/") && !strings.HasPrefix(c.Operation, "apps/list-") {
			by[c.Operation]++
			n++
		}
	}
	t.Logf("%d calls: %v", n, by)
	// How often one revision takes the place of another before it is written depends on
	// how fast the machine is.
	updates := by["checks/update"] + by["issues/update-comment"] + by["pulls/update"]
	if n-updates > 30 || n > 60 {
		t.Errorf("%d calls of a clean run with three modules, %d of them updates, want at most 60, and 30 without", n, updates)
	}
}
