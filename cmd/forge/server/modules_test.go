package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
	"forge/pipeline/module"
)

// modular is a server with a feature's issue.
func modular(t *testing.T, f servertest.Feature, o testOptions) *testServer {
	t.Helper()
	return modularWith(t, f, o, "")
}

// modularWith is the same with more sections of its model's tape.
func modularWith(t *testing.T, f servertest.Feature, o testOptions, tape string) *testServer {
	t.Helper()
	o.files, o.tape = f.Files(), f.Tape()+tape
	o.files["greet.sh"] = ""
	o.title, o.body = "Letters", "Each piece says its own letter."
	return newTestServer(t, o)
}

// calls counts what a run has asked of GitHub, without git and what the server asks for itself.
func (ts *testServer) calls() (n int, by map[string]int) {
	by = map[string]int{}
	for _, c := range ts.gh.Calls() {
		if !strings.HasPrefix(c.Operation, "git/") && !strings.HasPrefix(c.Operation, "apps/list-") {
			by[c.Operation]++
			n++
		}
	}
	return n, by
}

// verifiedWith waits until a run is verified with its modules; one that asks ends it.
func (ts *testServer) verifiedWith(modules int) *pipeline.Run {
	ts.t.Helper()
	asks := func(p module.Part) bool { return p.Question != "" && p.Left == "" }
	run, ok := ts.within(10*time.Minute, func(r *pipeline.Run) bool {
		return r.State != pipeline.StateRunning || slices.ContainsFunc(r.Parts, asks)
	})
	if !ok || run.State != pipeline.StateVerified || len(run.Parts) != modules {
		ts.t.Fatalf("the run is %s with %d modules, want %d: %+v\n%s", run.State, len(run.Parts), modules, run.Gates, ts.comments())
	}
	return run
}

// Covers V6: what modules cost of GitHub's limits.
func TestCallsOfModules(t *testing.T) {
	t.Parallel()
	ts := modular(t, servertest.Beside(3, 3), testOptions{})
	ts.label("acme")
	ts.verifiedWith(3)
	n, by := ts.calls()
	t.Logf("%d calls: %v", n, by)
	// How often one revision takes the place of another before it is written depends on
	// how fast the machine is.
	updates := by["checks/update"] + by["issues/update-comment"] + by["pulls/update"]
	if n-updates > 30 || n > 60 {
		t.Errorf("%d calls of a clean run with three modules, %d of them updates, want at most 60, and 30 without", n, updates)
	}
}
