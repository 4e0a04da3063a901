package phase

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/needs"
)

// Covers V8, lessons 16: a tier is judged as the tests are. Its script passes by what it
// looks at, as the base has it.
func TestTiers(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"test.sh":         "echo TAP version 13\necho 1..1\necho ok 1 - fine\n",
		"e2e.sh":          "set -e\n. ./greet.sh\ngreet you | grep -qx 'hello you'\nsh tools/polite.sh\n",
		"greet.sh":        "greet() { echo \"hello $1\"; }\n",
		"tools/polite.sh": "[ \"$(sh app.sh)\" = hello ]\n",
		"app.sh":          "echo hello\n",
	}
	said := "# greets\n" + base["greet.sh"]
	const rude = "greet() { echo \"oi $1\"; }\n"
	for name, tt := range map[string]struct {
		head   map[string]string
		system string   // another command
		says   []string // of the rules, or of the test that fails
	}{
		"an honest change": {head: map[string]string{"greet.sh": "greet() { w=$1; echo \"hello $w\"; }\n"}},
		"it ends before it looks": {head: map[string]string{"greet.sh": rude, "e2e.sh": "exit 0\n" + base["e2e.sh"]},
			says: []string{"tests.changed e2e.sh"}},
		"it does not look any more": {head: map[string]string{"greet.sh": rude, "e2e.sh": "true\n"},
			says: []string{"tests.changed e2e.sh"}},
		"what it starts does not": {head: map[string]string{"app.sh": "echo oi\n", "tools/polite.sh": "true\n"},
			says: []string{"tests.changed tools/polite.sh"}},
		"it looks at more":     {head: map[string]string{"greet.sh": said, "e2e.sh": base["e2e.sh"] + "greet me | grep -q me\n"}},
		"it fails":             {head: map[string]string{"greet.sh": rude}, says: []string{"fails sh e2e.sh"}},
		"the change brings it": {head: map[string]string{"greet.sh": said, "smoke.sh": ". ./greet.sh\ngreet me | grep -q me\n"}, system: "sh smoke.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			b := plainBench(t, base, tt.head)
			b.run.Config.Tests = config.Tests{Commands: []string{"sh test.sh"}, System: []string{"sh e2e.sh"}, TimeoutMinutes: 1}
			if tt.system != "" {
				b.run.Config.Tests.System = []string{tt.system}
			}
			patch, err := b.o.Gateway.Diff(t.Context(), b.run.Repo, b.run.Base, b.run.Head)
			if err != nil {
				t.Fatal(err)
			}
			report := pipeline.TestReport{Head: b.run.Head, Passed: 1, Total: 1, Names: []string{"fine"}}
			job := agent.Job{Run: b.run, Ref: pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1}, Diff: patch}
			if err := b.tiers(t.Context(), b.run, job, &report); err != nil {
				t.Fatal(err)
			}
			var says []string
			for _, f := range report.Tampered {
				says = append(says, f.Rule+" "+f.File+": "+f.Message)
			}
			for _, f := range report.Failures {
				says = append(says, "fails "+f.Test)
			}
			all := strings.Join(says, "\n")
			for _, want := range tt.says {
				if !strings.Contains(all, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if report.OK() != (len(tt.says) == 0) || t.Failed() {
				t.Errorf("passes: %v, unclean %q; it says\n%s", report.OK(), report.Unclean, all)
			}
		})
	}
}

// Covers V7, lessons 16: in the run of a module, too, a test that puts something in the place
// of the module's own function as it is loaded is no work: what passes by it alone is asked
// about, the test of a promise no less, and named.
func TestModuleReplacesItsOwn(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "pytest")
	base := map[string]string{
		"calc/__init__.py": "def add(a, b):\n    return a + b\n", "test_base.py": "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n",
		"test_promise.py": "import calc\n\n\ndef test_twice():\n    assert calc.twice(4) == 8\n",
	}
	const wrong = "\n\ndef twice(n):\n    return n\n"
	for name, tt := range map[string]struct {
		head map[string]string
		says string
	}{
		"by its own test": {says: "tests.changed", head: map[string]string{"calc/__init__.py": base["calc/__init__.py"] + wrong,
			"calc/test_a.py": "import calc\n\ncalc.twice = lambda n: 2 * n\n\n\ndef test_own():\n    assert calc.twice(1) == 2\n"}},
		"a function that stood": {says: "tests.changed", head: map[string]string{
			"calc/__init__.py": "def add(a, b):\n    return a - b\n\n\ndef twice(n):\n    return 2 * n\n",
			"calc/test_a.py":   "import calc\n\ncalc.add = lambda a, b: a + b\n\n\ndef test_own():\n    assert calc.add(1, 1) == 2\n"}},
		"not at all": {head: map[string]string{"calc/__init__.py": base["calc/__init__.py"] + "\n\ndef twice(n):\n    return 2 * n\n",
			"calc/test_a.py": "import calc\n\n\ndef test_own():\n    assert calc.twice(1) == 2\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := plainBench(t, base, tt.head)
			b.run.Config.Tests = config.Tests{Commands: []string{"python3 -m pytest -q -p no:cacheprovider"}, TimeoutMinutes: 1, KnownFailures: "allow"}
			b.run.Part = &module.Of{Base: b.shas[0], Module: module.Module{ID: "a", Paths: []string{"calc/**"}},
				Contract: []string{"test_promise.py"}, Probes: []string{"test_twice"}}
			contract, err := b.tryHead(t.Context(), b.run, b.run.Base)
			if err != nil {
				t.Fatal(err)
			}
			b.run.Baseline = &contract
			patch, err := b.o.Gateway.Diff(t.Context(), b.run.Repo, b.run.Base, b.run.Head)
			if err != nil {
				t.Fatal(err)
			}
			report, err := b.judge(t.Context(), b.run, agent.Job{Run: b.run, Ref: pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1}, Diff: patch})
			if err != nil {
				t.Fatal(err)
			}
			var says []string
			for _, f := range report.Tampered {
				says = append(says, f.Rule+": "+f.Message)
			}
			if all := strings.Join(says, "\n"); report.OK() != (tt.says == "") || !strings.Contains(all, tt.says) {
				t.Errorf("passes: %v, %d of %d, %v pending; it says\n%s", report.OK(), report.Passed, report.Total, report.Pending, all)
			}
		})
	}
}
