package play

import (
	"forge/cmd/forge/server/servertest"
	"slices"
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/module"
)

// failing are three modules, the second of which stops at its guards after one build; the
// third needs it.
func failing(settings string) feature.Feature {
	f := feature.Beside(3, 3)
	f.Modules[1].Fails, f.Modules[2].Needs = true, []string{"b"}
	f.Settings = settings
	return f
}

// asks reports whether all of these modules ask, and the first one is merged meanwhile.
func asks(ids ...string) func(r *pipeline.Run) bool {
	return func(r *pipeline.Run) bool {
		a := module.Find(r.Parts, "a")
		return a != nil && a.Done() && !slices.ContainsFunc(ids, func(id string) bool {
			p := module.Find(r.Parts, id)
			return p == nil || p.Question == ""
		})
	}
}

// mergedParts are the modules that a run holds.
func mergedParts(run *pipeline.Run) string {
	var out []string
	for _, p := range run.Parts {
		if p.Merged != "" {
			out = append(out, p.ID)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Covers V9: a module that stops at its guards asks at once, and another one ends before
// anybody answers; each answer is carried out, as is each setting that answers by itself;
// the head stays green, commit by commit.
func TestSlowCasesOfFailingModules(t *testing.T) {
	long(t)
	t.Parallel()
	const replanned = "-- planner 0@2/1 --\n>>> submit\nsummary: Without b\nsteps: [c/run.sh, all/doc.go]\ncriteria:\n" +
		"  - {id: AC-c, text: c says who it is}\n  - {id: AC-all, text: there is a place for all}\n"
	const simpler = "-- b/planner 1/1 --\n>>> submit\nsummary: One word\nsteps: [b/run.sh]\ncriteria: [{id: AC-b, text: b says who it is}]\n"
	push := func(ts *servertest.Server) {
		right := "# It says who it is.\necho b\n"
		ts.Until("b is taken over", func(r *pipeline.Run) bool { return module.Find(r.Parts, "b").State == string(pipeline.StateStopped) })
		_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: ts.Run().Branch + "--b", Message: "By hand", Files: map[string]*string{"b/run.sh": &right}})
		ts.Must(err)
		ts.Comment("acme", "/forge b resume")
	}
	for _, tt := range []struct {
		name, settings string
		unsure         bool   // it asks because nobody is sure of the cause, and not at its last iteration
		answer         string // "": the settings answer
		then           func(ts *servertest.Server)
		left           []string
		tape           string
		merged         string
		says           string
	}{
		{name: "continue", answer: "/forge b continue 1", merged: "a b c"},
		{name: "accept", answer: "/forge b accept", merged: "a b c", says: "the module b was accepted with known issues"},
		{name: "take-over", unsure: true, answer: "/forge b take-over", then: push, merged: "a b c"},
		{name: "simplify", unsure: true, answer: "/forge b simplify one word less", tape: simpler, merged: "a b c"},
		{name: "cancel", answer: "/forge b cancel", left: []string{"b", "c"}, merged: "a"},
		{name: "later", answer: "/forge b later", left: []string{"b", "c"}, merged: "a", says: "kept for later in #"},
		{name: "without", answer: "/forge b without", left: []string{"b"}, tape: replanned, merged: "a"},
		{name: "passed", settings: "on_failure: passed", left: []string{"b", "c"}, merged: "a"},
		{name: "without by itself", settings: "on_failure: without", left: []string{"b"}, tape: replanned, merged: "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := failing(strings.TrimSuffix("iterations: 1, "+tt.settings, ", "))
			if f.Modules[1].Unsure = tt.unsure; tt.unsure {
				f.Settings = "iterations: 3"
			}
			f.Left = tt.left
			ts := modularWith(t, f, servertest.Options{}, tt.tape)
			ts.Label("acme")
			if tt.answer != "" {
				ts.Until("asks while another module is merged", asks("b"))
				ts.Comment("acme", tt.answer)
			}
			if tt.then != nil {
				tt.then(ts)
			}
			run := ts.Until("ended, or asks again", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
			if run.State != pipeline.StateVerified || mergedParts(run) != tt.merged || len(run.Gates) != 0 {
				t.Errorf("the run is %s with %q merged, want %q; it asked %d times: %s", run.State, mergedParts(run), tt.merged, len(run.Gates), ts.Comments())
			}
			for _, p := range run.Parts {
				if p.Left == "" && p.Merged == "" {
					t.Errorf("module %s is neither merged nor left out", p.ID)
				}
			}
			if tt.says != "" {
				ts.Says(tt.says)
			}
			ts.GreenMerges()
		})
	}
}

// Covers V9: two modules ask at the same time; an answer without a name is for neither.
func TestSlowCasesOfTwoQuestions(t *testing.T) {
	long(t)
	t.Parallel()
	f := feature.Beside(3, 3)
	f.Modules[1].Fails, f.Modules[2].Fails, f.Settings = true, true, "iterations: 1"
	ts := modular(t, f, servertest.Options{})
	ts.Label("acme")
	ts.Until("both ask while another module is merged", asks("b", "c"))
	ts.Comment("acme", "/forge accept")
	ts.Says("2 modules ask, so it is not clear which one this answers: b, c.")
	ts.Comment("acme", "/forge c continue 1")
	ts.Until("the second one is merged", func(r *pipeline.Run) bool { return mergedParts(r) == "a c" })
	ts.Comment("acme", "/forge b accept")
	run := ts.Until("ended, or asks again", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if run.State != pipeline.StateVerified || mergedParts(run) != "a b c" {
		t.Errorf("the run is %s with %q merged: %s", run.State, mergedParts(run), ts.Comments())
	}
	ts.GreenMerges()
}

// Covers V9: a module is accepted although it does not keep a promise: who relies on it is
// merged with that, and neither is sent back for it.
func TestSlowCasesOfAcceptedPromises(t *testing.T) {
	long(t)
	t.Parallel()
	f := feature.Beside(3, 3)
	f.Modules[0].Breaks, f.Modules[0].Unsure, f.Modules[2].Needs = true, true, []string{"a"}
	ts := modular(t, f, servertest.Options{})
	ts.Label("acme")
	ts.Until("a asks about its promise", func(r *pipeline.Run) bool { a := module.Find(r.Parts, "a"); return a != nil && a.Question != "" })
	ts.Comment("acme", "/forge a accept")
	run := ts.Until("ended, or asks again", func(r *pipeline.Run) bool {
		c := module.Find(r.Parts, "c")
		return r.State != pipeline.StateRunning || c.Question != ""
	})
	if a := module.Find(run.Parts, "a"); run.State != pipeline.StateVerified || mergedParts(run) != "a b c" || !slices.Equal(a.Known, []string{"tests/a-c.sh"}) {
		t.Errorf("the run is %s with %q merged, and a is taken with %q: %s", run.State, mergedParts(run), a.Known, ts.Comments())
	}
	ts.Says("the module a was accepted with known issues; 1 test fails there: tests/a-c.sh")
	ts.GreenMerges()
}
