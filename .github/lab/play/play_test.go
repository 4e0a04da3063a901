// Package play has the tests that play whole runs in this process and take minutes: real
// projects with their package managers, modules that are stopped at any moment, the web
// pages in a browser.
package play

import (
	"slices"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/module"
)

// newServer is a server whose commands run in bubblewrap, with this machine's tools.
func newServer(t *testing.T, o servertest.Options) *servertest.Server {
	t.Helper()
	o.Sandbox = true
	return servertest.New(t, o)
}

// labelInRound labels the issue, and in later rounds another one, by its title.
func labelInRound(ts *servertest.Server, round int, title string) {
	ts.T.Helper()
	if round > 0 {
		var err error
		ts.Issue, err = ts.GitHub.As("acme").OpenIssue(servertest.Repo, title, "Again.")
		ts.Must(err)
	}
	ts.Label("acme")
}

// modular is a server with a feature's issue.
func modular(t *testing.T, f feature.Feature, o servertest.Options) *servertest.Server {
	t.Helper()
	return modularWith(t, f, o, "")
}

// modularWith is the same with more sections of its model's tape.
func modularWith(t *testing.T, f feature.Feature, o servertest.Options, tape string) *servertest.Server {
	t.Helper()
	o.Files, o.Tape = f.Files(), f.Tape()+tape
	o.Files["greet.sh"] = ""
	o.Title, o.Body = "Letters", "Each piece says its own letter."
	return newServer(t, o)
}

// verifiedWith waits until a run is verified with its modules; one that asks ends it.
func verifiedWith(ts *servertest.Server, modules int) *pipeline.Run {
	ts.T.Helper()
	asks := func(p module.Part) bool { return p.Question != "" && p.Left == "" }
	run, ok := ts.Within(10*time.Minute, func(r *pipeline.Run) bool {
		return r.State != pipeline.StateRunning || slices.ContainsFunc(r.Parts, asks)
	})
	if !ok || run.State != pipeline.StateVerified || len(run.Parts) != modules {
		ts.T.Fatalf("the run is %s with %d modules, want %d: %+v\n%s", run.State, len(run.Parts), modules, run.Gates, ts.Comments())
	}
	return run
}

// gatesOf are the settings of the greeter with gates of quality.
func gatesOf(gates string) map[string]string {
	return map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\nquality:\n" + gates}
}

// goFiles are the files of a package in Go. Its test takes no time: nothing is compiled
// for it, while the gate builds the package alone, and not all of Go for it.
func goFiles(gates string) map[string]string {
	return map[string]string{
		"greet.sh":          "",
		"test.sh":           "echo TAP version 13\necho 1..1\nif grep -q '\"hello' words/words.go; then echo ok 1 - greets; else echo not ok 1 - greets; fi\n",
		".github/forge.yml": "tests:\n  commands: [sh test.sh]\nquality:\n" + gates,
		"go.mod":            "module example.com/greet\n\ngo 1.22\n",
		"names/names.go":    "package names\n\nfunc First() string { return \"Ann\" }\n",
		"words/words.go":    "package words\n\nfunc Greet(name string) string { return \"hello \" + name }\n",
	}
}

// long leaves a test out that takes minutes, where the short ones alone are asked for.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
}

func wait(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }
