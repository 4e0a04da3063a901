package phase

import (
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/workspace"
)

// Covers V6: what keeps a merge from becoming the head, and what does not.
func TestBroken(t *testing.T) {
	failed := func(test string) pipeline.Failure { return pipeline.Failure{Test: test, Error: "got 1 want 2"} }
	for name, tt := range map[string]struct {
		report   pipeline.TestReport
		baseline *pipeline.TestReport
		open     string // a failure that the run has open
		pushed   string // one that the head had already
		there    []string
		want     int
	}{
		"nothing":                       {},
		"a test":                        {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, want: 1},
		"one that the run knows":        {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, open: "TestX"},
		"a promise without its side":    {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestPair")}}, there: []string{"a"}},
		"a promise of a former plan":    {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestFormer")}}, there: []string{"a", "b"}},
		"a promise with both":           {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestPair")}}, there: []string{"a", "b"}, want: 1},
		"a suite that does not end":     {report: pipeline.TestReport{Unclean: "exit status 2"}, want: 1},
		"one that did not before, too":  {report: pipeline.TestReport{Unclean: "exit status 2"}, baseline: &pipeline.TestReport{Unclean: "exit status 2"}},
		"one that somebody pushed":      {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, pushed: "TestX"},
		"another than somebody pushed":  {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestX")}}, pushed: "TestY", want: 1},
		"a promise, as it was":          {report: pipeline.TestReport{Failures: []pipeline.Failure{failed("TestPair")}}, pushed: "TestPair", there: []string{"a", "b"}, want: 1},
		"one that did end well at base": {report: pipeline.TestReport{Unclean: "exit status 2"}, baseline: &pipeline.TestReport{}, want: 1},
	} {
		run := &pipeline.Run{Baseline: tt.baseline, Plan: &pipeline.Plan{Split: &module.Split{Promises: []module.Promise{{ID: "P1", From: "a", To: []string{"b"}, Probe: "TestPair"}}}},
			PastPlans: []pipeline.Plan{{Split: &module.Split{Promises: []module.Promise{{ID: "P1", From: "c", To: []string{"a"}, Probe: "TestFormer"}}}}}}
		if tt.open != "" {
			f := failed(tt.open)
			run.Failures = []pipeline.Issue{{Failure: &f, State: pipeline.IssueOpen}}
		}
		if tt.pushed != "" {
			run.Tried = &pipeline.TestReport{Failures: []pipeline.Failure{failed(tt.pushed)}}
		}
		got := broken(run, tt.report, func(id string) bool { return slices.Contains(tt.there, id) })
		if len(got) != tt.want {
			t.Errorf("%s: %d failures, want %d: %v", name, len(got), tt.want, got)
		}
	}
}

// Covers V7: at the end the test of each promise between merged modules has run. One of
// the same name in a module's own file is another, and what lacks a side is shown by none.
func TestPromisesAreShown(t *testing.T) {
	whole := pipeline.Failure{Test: "api [build]", Whole: true}
	for name, tt := range map[string]struct {
		merged  []string
		report  pipeline.TestReport
		unshown int
		left    int // failures
	}{
		"passed":                    {merged: []string{"a", "b"}, report: pipeline.TestReport{Names: []string{"api/test_api.py::test_pair"}}},
		"failed":                    {merged: []string{"a", "b"}, report: pipeline.TestReport{Failures: []pipeline.Failure{{Test: "api/test_api.py::test_pair"}}}, left: 1},
		"skipped, or there is none": {merged: []string{"a", "b"}, report: pipeline.TestReport{Names: []string{"api/test_api.py::test_other"}}, unshown: 1},
		"another of the name":       {merged: []string{"a", "b"}, report: pipeline.TestReport{Names: []string{"a/test_a.py::test_pair"}}, unshown: 1},
		"in Go":                     {merged: []string{"a", "b"}, report: pipeline.TestReport{Names: []string{"example.com/shop/api.test_pair"}}},
		"what does not build":       {merged: []string{"a", "b"}, report: pipeline.TestReport{Failures: []pipeline.Failure{whole}}, left: 1},
		"a side is left out":        {merged: []string{"a"}, report: pipeline.TestReport{Failures: []pipeline.Failure{{Test: "api/test_api.py::test_pair"}, {Test: "api/test_api.py::test_other"}}}, left: 1},
	} {
		split := &module.Split{Contract: []string{"api/test_api.py"}, Modules: []module.Module{{ID: "a", Paths: []string{"a/**"}}, {ID: "b", Paths: []string{"b/**"}}},
			Promises: []module.Promise{{ID: "P1", From: "a", To: []string{"b"}, Text: "it is one", Probe: "test_pair"}}}
		run := &pipeline.Run{Plan: &pipeline.Plan{Split: split}}
		for _, m := range split.Modules {
			p := module.Part{ID: m.ID}
			if slices.Contains(tt.merged, m.ID) {
				p.Merged = "sha"
			}
			run.Parts = append(run.Parts, p)
		}
		r := tt.report
		r.Failed = len(r.Failures)
		r.Defer(func(test string) bool { return oneSided(run, test) })
		got := unshown(run, &r)
		if len(got) != tt.unshown || len(r.Failures) != tt.left || r.Failed != tt.left {
			t.Errorf("%s: %d promises unshown, want %d; %d failures, want %d: %v", name, len(got), tt.unshown, len(r.Failures), tt.left, got)
		}
	}
}

// Covers V7, V9: the test of a promise counts at the end where what made it is left to the
// integration, and before that no merge is held against it. One of which a side is left out
// counts nowhere.
func TestPromisesLeftToTheIntegration(t *testing.T) {
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: config.ModulesAuto, Max: 6, Parallel: 2, Iterations: 3, Rounds: 1, OnFailure: "ask"}
	p := pipelinetest.New(cfg, pipeline.Task{Issue: 1, Title: "Sum is wrong"})
	err := p.Play(`plan split ok, bad, dep needs bad, far needs bad; promise ok bad TestBad; promise bad dep TestDep; promise dep ok TestOwn; promise far ok TestFar
		part ok: plan given
		part bad: plan given
		part bad: implement unable which colour?
		part bad: human without
		plan do dep without bad keeps AC-dep
		part ok: implement it
		part ok: review ok
		part ok: test ok`)
	if err != nil {
		t.Fatal(err)
	}
	probes := []string{"TestBad", "TestDep", "TestFar", "TestOwn"}
	report := pipeline.TestReport{Failed: len(probes)}
	for _, test := range probes {
		report.Failures = append(report.Failures, pipeline.Failure{Test: test})
	}
	if got := broken(&p.Run, report, there(&p.Run, "ok")); len(got) > 0 {
		t.Errorf("at the merge of ok, %v fails", got)
	}
	if err := p.Play("merge ok"); err != nil {
		t.Fatal(err)
	}
	report.Defer(func(test string) bool { return oneSided(&p.Run, test) })
	if len(report.Failures) != 1 || report.Failures[0].Test != "TestOwn" || !slices.Equal(report.Pending, probes[:3]) {
		t.Errorf("at the end %v fails, and %q counts for nothing", report.Failures, report.Pending)
	}
	if got := unshown(&p.Run, &pipeline.TestReport{}); len(got) != 1 || got[0].Test != "TestOwn" {
		t.Errorf("unshown is %v", got)
	}
}

// Covers V7: a test in a module's own files is never the contract's, whatever it is called.
func TestOfModule(t *testing.T) {
	of := &module.Of{Module: module.Module{ID: "a", Paths: []string{"a/**", "web/x/**"}}, Contract: []string{"test_promise.py", "api/api_test.go"}, Owners: map[string]string{"b/**": "b"}}
	for test, want := range map[string]bool{
		"test_promise.py::test_pair":   false,
		"a/test_a.py::test_pair":       true,
		"b/test_b.py::C::test_pair":    true,
		"example.com/m/api.TestPair":   false,
		"example.com/m/a.TestPair":     true,
		"example.com/m/b/deep.TestX/y": true,
		"example.com/m.TestPair":       false,
		"crate::tests::pair":           false,
		"web/x/a.js > pair":            false, // such a name says nothing of files
	} {
		if got := ofModule(partsOf(of), test); got != want {
			t.Errorf("%s: %v, want %v", test, got, want)
		}
	}
}

// Covers V7: a module is refused the files of the repository that no module owns, where it
// writes and where it commits, and is told whose they are; new files are its own.
func TestUnownedFiles(t *testing.T) {
	t.Parallel()
	b := plainBench(t, map[string]string{"README.md": "1", "a/x.go": "1", "b/y.go": "1", "go.mod": "module m\n", "docs/a.md": "1", "api.go": "1"})
	b.run.Part = &module.Of{Base: b.shas[0], Module: module.Module{ID: "a", Paths: []string{"a/**"}}, Contract: []string{"api.go"},
		Owners: map[string]string{"b/**": "b"}, Others: []string{"b/**", "**/go.mod"}}
	b.run.Config.Paths.Protected = []string{"b/**", "**/go.mod", "api.go"}
	taken, err := b.takenFrom(t.Context(), b.run)
	if err != nil || len(taken) != 2 || taken["README.md"] == "" || taken["docs/a.md"] == "" {
		t.Fatalf("taken %v, %v", taken, err)
	}
	for name, want := range map[string]string{"b/y.go": "the module b", "README.md": unowned, "api.go": "the contract", "go.mod": "the integration", "a/x.go": "", "list.txt": ""} {
		if got, err := b.foreign(t.Context(), b.run, []string{"a/x.go", name}); err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s in conflict: %q, %v, want %q", name, got, err, want)
		}
	}
	ws, err := b.at(t.Context(), b.run, b.shas[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(b.run.ID)
	const words = " belongs to no module, so that the integration alone changes it"
	for name, want := range map[string]string{
		"README.md": "README.md" + words, "./docs/a.md": "docs/a.md" + words, "a/x.go": "", "a/new.go": "", "notes.md": "",
		"b/y.go": "the module b", "api.go": "the contract",
	} {
		if err := ws.Write(t.Context(), name, []byte("2")); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("write %s: %v, want %q", name, err, want)
		}
	}
	if err := ws.Remove(t.Context(), "docs"); err == nil || !strings.Contains(err.Error(), "docs/a.md"+words) {
		t.Errorf("remove docs: %v", err)
	}
	if err := ws.Strays(t.Context()); err != nil {
		t.Errorf("what the tools have written: %v", err)
	}
	if _, err := ws.Run(t.Context(), workspace.Command{Args: []string{"sh", "-c", "echo 2 > README.md; echo 2 > b/y.go; echo 2 > a/z.go; rm api.go"}}); err != nil {
		t.Fatal(err)
	}
	err = ws.Strays(t.Context())
	for _, want := range []string{"README.md" + words, "b/y.go belongs to the module b", "api.go belongs to the contract"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a/z.go") {
			t.Errorf("what a command has written: %v, want %q", err, want)
		}
	}
	_, err = b.o.Gateway.Commit(t.Context(), b.run.Repo, workspace.CommitOptions{
		Parent: b.shas[0], Message: "x", Run: "t", Author: "t", Email: "t@example.com", Time: b.now,
		Changes: []workspace.Change{{Path: "README.md", Content: []byte("2")}}, Taken: taken,
	})
	if err == nil || !strings.Contains(err.Error(), "README.md"+words) {
		t.Errorf("commit README.md: %v", err)
	}
	whole := *b.run
	whole.Part = nil
	if taken, err := b.takenFrom(t.Context(), &whole); len(taken) > 0 || err != nil {
		t.Errorf("of the whole, %v are taken, %v", taken, err)
	}
}

// Somebody has pushed over the branch: a module whose commit the head does not have is gone,
// whether that commit is still to be had or not.
func TestGone(t *testing.T) {
	x, run, shas := commits(t, map[string]string{"a": "1"}, map[string]string{"b": "1"}, map[string]string{"c": "1"})
	run.Head = shas[1]
	run.Parts = []module.Part{{ID: "on", Merged: shas[0], Doubt: "ann pushed"}, {ID: "head", Merged: shas[1], Doubt: "ann pushed"}, {ID: "off", Merged: shas[2], Doubt: "ann pushed"},
		{ID: "lost", Merged: strings.Repeat("1", 40), Doubt: "ann pushed"}, {ID: "since", Merged: shas[2]}}
	got, err := x.gone(t.Context(), run)
	if err != nil || !slices.Equal(got, []string{"off", "lost"}) {
		t.Errorf("gone are %q, %v, want off and lost", got, err)
	}
}

// Somebody has reverted a module's merge: its commit is there, and nothing of its files.
func TestReverted(t *testing.T) {
	x, run, shas := commits(t, map[string]string{"README": "1", "own/before": "1", "gone/x": "0"}, map[string]string{"gone/x": "1", "kept/y": "1", "kept/z": "1"},
		map[string]string{"own/before": "2"}, map[string]string{"gone/x": "0", "kept/y": "2"})
	run.Base, run.Head = shas[0], shas[3]
	run.Plan = &pipeline.Plan{Split: &module.Split{}}
	for _, id := range []string{"gone", "kept", "own", "none"} {
		run.Plan.Split.Modules = append(run.Plan.Split.Modules, module.Module{ID: id, Paths: []string{id + "/**"}})
		run.Parts = append(run.Parts, module.Part{ID: id, Merged: shas[2], Doubt: "ann pushed"})
	}
	run.Parts = append(run.Parts, module.Part{ID: "off", Merged: shas[2], Doubt: "ann pushed"}, module.Part{ID: "since", Merged: shas[2]})
	got, err := x.reverted(t.Context(), run, []string{"off"})
	if err != nil || !slices.Equal(got, []string{"gone"}) {
		t.Errorf("reverted are %q, %v, want gone", got, err)
	}
}

// A test that the base branch has brought, and that fails there, is not what the integration
// broke; one that passed when the modules were merged is, whatever it did before the work.
func TestNotOfBase(t *testing.T) {
	failed := func(test, message string) pipeline.Failure { return pipeline.Failure{Test: test, Error: message} }
	got := &pipeline.TestReport{Failures: []pipeline.Failure{failed("brought", "no module"), failed("otherwise", "got 1"), failed("worked", "got 1"), failed("own", "got 1")}}
	notOfBase(got, &pipeline.TestReport{Names: []string{"worked"}}, []pipeline.Failure{failed("brought", "no module"), failed("otherwise", "no module"), failed("worked", "got 1")})
	var left []string
	for _, f := range got.Failures {
		left = append(left, f.Test)
	}
	if !slices.Equal(left, []string{"otherwise", "worked", "own"}) {
		t.Errorf("what the integration broke is %q", left)
	}
	report := &pipeline.TestReport{Total: 12, Passed: 11, Before: []pipeline.Failure{failed("worked", "got 1")}}
	report.Add(got)
	if report.Total != 14 || report.Failed != 3 || len(report.Before) != 0 {
		t.Errorf("%d in all, %d failed, %d of them before the work: a test is counted twice", report.Total, report.Failed, len(report.Before))
	}
}

// A module that was accepted with nothing done is tested with what was merged before: what its
// promises do not keep goes with it.
func TestAcceptedWithoutACommit(t *testing.T) {
	run := &pipeline.Run{Head: "h1"}
	for name, tt := range map[string]struct {
		state, merged string
		want          bool
	}{"accepted": {"accepted", "h1", true}, "verified": {"verified", "h1", false}, "a merge": {"verified", "h2", true}} {
		if got := tellsNews(run, &module.Part{ID: "a", State: tt.state}, tt.merged); got != tt.want {
			t.Errorf("%s: the tests run: %t", name, got)
		}
	}
}
