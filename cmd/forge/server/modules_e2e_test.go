//go:build e2e

package server

import (
	"forge/cmd/forge/server/servertest"
	"forge/pipeline/module"
	"slices"
	"testing"
)

// Covers V7: a module that is wrong twice, and one that does not keep what it promised
// another, and in which the integration finds something then.
func TestFiveLetters(t *testing.T) {
	t.Parallel()
	f := servertest.Five(3)
	f.Modules[0].Breaks = true
	ts := modular(t, f, testOptions{})
	ts.label("acme")
	run := ts.verifiedWith(5)
	ts.says("2 of 2 passed, 4 pending") // a module's tests, without those of promises of others
	if a := module.Find(run.Parts, "a"); a.Round != 2 || len(run.Iterations) != 2 {
		t.Errorf("a was sent back %d times in %d iterations", a.Round, len(run.Iterations))
	}
	if slices.ContainsFunc(run.Parts, func(p module.Part) bool { return p.Merged != p.Head }) {
		t.Errorf("modules: %+v", run.Parts)
	}
}
