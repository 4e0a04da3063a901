package check

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const calcGo = `
-- go.mod --
module example.com/calc

go 1.24
-- calc.go --
package calc

func Add(a, b int) int { return a + b }

func Sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
-- calc_test.go --
package calc

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Error("Add(1, 2) is not 3")
	}
}

func TestSign(t *testing.T) {
	if got := Sign(5); got != 1 {
		t.Errorf("Sign(5) = %d, want 1", got)
	}
}
`

// Covers V1, B4: a Go repository that passes, with coverage of all and of the
// changed lines.
func TestGoPasses(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, calcGo)
	base := w.commit(t)
	w.write(t, "-- calc.go --\npackage calc\n\nfunc Add(a, b int) int { return a + b }\n\nfunc Sign(n int) int {\n\tif n < 0 {\n\t\tn = 0\n\t\treturn -1\n\t}\n\tn++\n\treturn 1\n}\n")
	got := run(t, w, Options{Head: "abc", Iteration: 1, Patch: w.diff(t, base)})
	want := pipeline.TestReport{
		Head: "abc", Suites: []pipeline.Suite{{Name: "go test", Command: "go test ./..."}}, Total: 2, Passed: 2,
		Names:    []string{"example.com/calc.TestAdd", "example.com/calc.TestSign"},
		Coverage: &pipeline.Coverage{Lines: 66.7, Branches: -1, Changed: 50, Threshold: 60},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(pipeline.Suite{}, "Millis")); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	if !got.OK() {
		t.Error("the report is not OK")
	}
}

// Covers B4, V2, V3 and B5's input: a failing test, a regression, a failure that
// the base has too, a broken build and a flaky test, told apart.
func TestGoTellsFailuresApart(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, calcGo+`
-- old/old_test.go --
package old

import "testing"

func TestOld(t *testing.T) { t.Fatal("never worked on day", 7) }
-- dep/dep.go --
package dep

func F() int { return 1 }
-- dep/dep_test.go --
package dep

import "testing"

func TestF(t *testing.T) {
	if F() != 1 {
		t.Error("F is not 1")
	}
}
`)
	base := w.commit(t)
	baseline := run(t, w, Options{Head: "base"})
	if want := []string{"example.com/calc.TestAdd", "example.com/calc.TestSign", "example.com/calc/dep.TestF"}; !slices.Equal(baseline.Names, want) || baseline.Failed != 1 {
		t.Fatalf("baseline: %d failed, names %q", baseline.Failed, baseline.Names)
	}
	flag := filepath.Join(w.place(), "flag")
	w.write(t, strings.ReplaceAll(`
-- calc.go --
package calc

func Add(a, b int) int { return a + b }

func Sign(n int) int { return 0 }
-- dep/dep.go --
package dep

func F() int { return undefinedName }
-- flaky_test.go --
package calc

import (
	"os"
	"testing"
)

func TestFlaky(t *testing.T) {
	if _, err := os.Stat("FLAG"); err != nil {
		os.WriteFile("FLAG", nil, 0o644)
		t.Fatal("not yet")
	}
}

func TestNew(t *testing.T) {
	t.Run("a b", func(t *testing.T) { t.Error("wrong from the start") })
	t.Run("c", func(t *testing.T) {})
}
-- old/old_test.go --
package old

import "testing"

func TestOld(t *testing.T) { t.Fatal("never worked on day", 8) }
`, "FLAG", flag))
	got := run(t, w, Options{Head: "abc", Iteration: 3, Patch: w.diff(t, base), Baseline: &baseline, Config: config.Tests{Reruns: 1},
		Earlier: []Past{{1, &pipeline.TestReport{Names: []string{"example.com/calc.TestSign"}}}, {2, &pipeline.TestReport{Names: []string{"example.com/calc.TestAdd", "example.com/calc.TestSign"}}}}})
	want := []pipeline.Failure{
		{Test: "example.com/calc/dep [build]", File: "dep/dep.go", Line: 3, Error: "dep/dep.go:3: undefined: undefinedName", Cause: "syntax", WorkedIn: WorkedAtBase, Whole: true},
		{Test: "example.com/calc.TestSign", File: "calc_test.go", Line: 13, Error: "Sign(5) = 0, want 1", WorkedIn: 2},
		{Test: "example.com/calc.TestNew/a_b", File: "flaky_test.go", Line: 16, Error: "wrong from the start"},
	}
	if d := cmp.Diff(want, got.Failures, cmpopts.IgnoreFields(pipeline.Failure{}, "Fingerprint")); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}
	for _, f := range got.Failures {
		if f.Fingerprint != f.Digest() {
			t.Errorf("%s: fingerprint %q", f.Test, f.Fingerprint)
		}
	}
	if want := []string{"example.com/calc.TestFlaky"}; !slices.Equal(got.Flaky, want) {
		t.Errorf("flaky %q, want %q", got.Flaky, want)
	}
	if len(got.Before) != 1 || got.Before[0].Test != "example.com/calc/old.TestOld" || got.Before[0].Error != "never worked on day 8" || got.Before[0].Was != "never worked on day 7" {
		t.Errorf("before %+v, want TestOld with today's error and that of the base", got.Before)
	}
	if got.Passed != 3 || got.Skipped != 0 || got.OK() || len(got.Tampered) != 0 {
		t.Errorf("passed %d, skipped %d, OK %v, tampered %v", got.Passed, got.Skipped, got.OK(), got.Tampered)
	}
	alone := 0
	for _, c := range w.ran {
		if strings.Contains(c, "-run=^(TestFlaky)$ ") {
			alone++
		}
		if strings.HasSuffix(c, "calc/dep") {
			t.Errorf("run again for nothing: %s", c)
		}
	}
	if alone != 1 {
		t.Errorf("TestFlaky was run again alone %d times, want once:\n%s", alone, strings.Join(w.ran, "\n"))
	}
}

// Covers B4: a test that hangs is named, whether go test or the sandbox ends it,
// and is not run again.
func TestHanging(t *testing.T) {
	t.Parallel()
	archive := "-- go.mod --\nmodule example.com/h\n\ngo 1.24\n-- h_test.go --\npackage h\n\nimport \"testing\"\n\nfunc TestQuick(t *testing.T) {}\n\nfunc TestHangs(t *testing.T) { <-make(chan int) }\n"
	t.Run("ended by go test", func(t *testing.T) {
		w := newWorkspace(t, archive)
		got := run(t, w, Options{Config: config.Tests{Commands: []string{"go test -timeout=500ms ./..."}, Reruns: 2}})
		if len(got.Failures) != 1 || got.Failures[0].Test != "example.com/h.TestHangs" || got.Failures[0].Line != 7 || !strings.HasPrefix(got.Failures[0].Error, "panic: test timed out after 500ms") {
			t.Errorf("failures %+v, want TestHangs in line 7", got.Failures)
		}
		if n := strings.Count(strings.Join(w.ran, "\n"), "go test"); n != 1 {
			t.Errorf("go test was run %d times", n)
		}
	})
	t.Run("ended by the sandbox", func(t *testing.T) {
		w := newWorkspace(t, archive)
		w.hook = func(res *workspace.Result) { res.Exit, res.Class = -1, "timeout" }
		got := run(t, w, Options{Config: config.Tests{Commands: []string{
			`printf '{"Action":"run","Package":"p","Test":"TestA"}\n{"Action":"pass","Package":"p","Test":"TestA"}\n{"Action":"run","Package":"p","Test":"TestB"}\n'`}, Reruns: 2}})
		if len(got.Failures) != 1 || got.Failures[0].Test != "p.TestB" || !strings.Contains(got.Failures[0].Error, "stopped after 10m0s") || !got.Suites[0].TimedOut || got.Passed != 1 {
			t.Errorf("report %+v, want p.TestB as the one that hung", got)
		}
		// At the base too: not this change's failure, but nothing is verified by what ran.
		again := run(t, w, Options{Baseline: &got, Timeout: 3 * time.Second, Config: config.Tests{Commands: []string{got.Suites[0].Command}}})
		if len(again.Failures) > 0 || again.Passed != 1 || again.OK() || len(again.Before) != 1 || !strings.Contains(again.Unclean, "did not end and was stopped after 3s") {
			t.Errorf("report %+v, want it not to be OK, and to say why", again)
		}
	})
}

// Covers S8: each way in which the sandbox ends a command is told apart.
func TestKilled(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]string{
		"timeout": "which test was running cannot be told", "memory": "more memory than the sandbox allows",
		"output": "more output than the sandbox allows", "disk": "filled the disk", "signal": "killed by a signal",
	} {
		w := newWorkspace(t, "-- Makefile --\ntest:\n\techo working\n")
		w.hook = func(res *workspace.Result) { res.Exit, res.Class = -1, class }
		got := run(t, w, Options{})
		if len(got.Failures) != 1 || !strings.Contains(got.Failures[0].Error, want) || !strings.Contains(got.Failures[0].Error, "echo working") || got.Failures[0].Cause != "runtime" {
			t.Errorf("%s: failures %+v, want %q", class, got.Failures, want)
		}
		if got.OK() || got.Suites[0].TimedOut != (class == "timeout") {
			t.Errorf("%s: OK %v, suite %+v", class, got.OK(), got.Suites[0])
		}
	}
}

// Covers lessons 9: that nothing was tested is said, with how to mend it.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, archive, want string }{
		{"empty", "-- README.md --\nhello\n", ".github/forge.yml"},
		{"no test script", "-- package.json --\n{\"scripts\":{\"test\":\"echo \\\"Error: no test specified\\\" && exit 1\"}}\n", "package.json with a test script"},
		{"Makefile without test", "-- Makefile --\nall:\n\techo\n", "Makefile or justfile with a test target"},
		{"no tests in Go", "-- go.mod --\nmodule m\n\ngo 1.24\n-- m.go --\npackage m\n", "no test was run by: go test ./..."},
		{"a directory is called test", "-- Makefile --\ntest:\n\tfalse\n-- test/a.js --\n1\n", "no test was run by: make test"},
		{"no packages in Go", "-- go.mod --\nmodule m\n\ngo 1.24\n", "no test was run by: go test ./..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, newWorkspace(t, c.archive), Options{})
			if !strings.Contains(got.None, c.want) || got.OK() || got.Total != 0 {
				t.Errorf("None = %q, OK = %v, total %d; want %q in it", got.None, got.OK(), got.Total, c.want)
			}
		})
	}
}

// Covers R6: what is missing around the tests is a fault, not a failure.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, command, want string }{
		{"missing tool", "no-such-tool --flag", "`no-such-tool --flag` could not run: needs `no-such-tool` on the server: it was not found in the sandbox. Install what is missing on the server, under /usr/local or /usr (the sandbox sees no home directories"},
		{"missing tool in make", "make test", "needs `no-such-tool` on the server"},
		{"Go module", "echo 'go: x@v1: module lookup disabled by GOPROXY=off'; exit 1", "vendor it (go mod vendor)"},
		{"Go version", "echo 'go: go.mod requires go >= 1.99 (running go 1.26; GOTOOLCHAIN=local)'; exit 1", "install it on the server"},
		{"network", "echo 'getaddrinfo EAI_AGAIN registry.npmjs.org'; exit 1", "the sandbox has none"},
		{"disk", "echo 'write: No space left on device'; exit 1", "make room on the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkspace(t, "-- Makefile --\ntest:\n\tno-such-tool --flag\n")
			_, err := Run(t.Context(), w, Options{Config: config.Tests{Commands: []string{c.command}}})
			var f *pipeline.Fault
			if !errors.As(err, &f) || f.Class != pipeline.FaultEnvironment || !strings.Contains(f.Message, c.want) {
				t.Errorf("Run with %q: error %v, want a fault of the environment with %q", c.command, err, c.want)
			}
		})
	}
	t.Run("no go", func(t *testing.T) {
		w := newWorkspace(t, calcGo)
		w.path = "/usr/bin:/bin"
		_, err := Run(t.Context(), w, Options{})
		var f *pipeline.Fault
		if !errors.As(err, &f) || !strings.Contains(f.Message, "needs `go` on the server") {
			t.Errorf("error %v, want that go is needed", err)
		}
	})
	t.Run("of the sandbox", func(t *testing.T) {
		w := newWorkspace(t, calcGo)
		want := &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "no sandbox"}
		w.fail = func(workspace.Command) error { return want }
		if _, err := Run(t.Context(), w, Options{}); !errors.Is(err, want) {
			t.Errorf("error %v, want the sandbox's fault", err)
		}
	})
	t.Run("of the workspace, in the middle", func(t *testing.T) {
		w := newWorkspace(t, calcGo)
		broken := errors.New("the worker is gone")
		w.fail = func(c workspace.Command) error {
			if isTesting(c) {
				return broken
			}
			return nil
		}
		if _, err := Run(t.Context(), w, Options{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "run go test ./...") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		w := newWorkspace(t, "-- Makefile --\ntest:\n\ttrue\n")
		ctx, cancel := context.WithCancel(t.Context())
		w.fail = func(c workspace.Command) error {
			if isTesting(c) {
				cancel()
			}
			return nil
		}
		if _, err := Run(ctx, w, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	})
	t.Run("patch", func(t *testing.T) {
		if _, err := Run(t.Context(), newWorkspace(t, calcGo), Options{Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n+a\n"}); err == nil || !strings.Contains(err.Error(), "read the patch") {
			t.Errorf("error %v", err)
		}
	})
}

// Covers lessons 9: a suite that cannot run beside one that passes is told, and
// the whole is not green.
func TestOneSuiteCannotRun(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- x --\n")
	got := run(t, w, Options{Config: config.Tests{Commands: []string{"true", "no-such-tool test"}}})
	const why = "needs `no-such-tool` on the server: it was not found in the sandbox"
	if got.OK() || got.Passed != 1 || len(got.Failures) > 0 || got.Suites[0].NotRun != "" || got.Suites[1].NotRun != why {
		t.Errorf("OK %v, report %+v; want the second suite not run: %s", got.OK(), got, why)
	}
	if want := "`no-such-tool test` could not run: " + why; got.Unclean != want {
		t.Errorf("Unclean = %q, want %q", got.Unclean, want)
	}
	// Its tests of the base are not gone: they were not looked for.
	base := pipeline.TestReport{Names: []string{"lib.TestA", "true"}}
	if again := run(t, w, Options{Baseline: &base, Config: config.Tests{Commands: []string{"true", "no-such-tool test"}}}); len(again.Tampered) > 0 {
		t.Errorf("tampered: %+v", again.Tampered)
	}
}

// A failing command that prints a tool's missing pieces after tests ran is a
// failure all the same.
func TestNoFaultAfterTests(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- x --\n")
	got := run(t, w, Options{Config: config.Tests{Commands: []string{"printf 'TAP version 13\\n1..1\\nok 1 - a\\n'; no-such-tool"}}})
	if got.Passed != 1 || got.Failed != 1 || !strings.HasPrefix(got.Failures[0].Error, "the command ended with exit code 127, though no test is reported as failing") {
		t.Errorf("report %+v", got)
	}
}

var (
	discard = slog.New(slog.DiscardHandler)
	epoch   = time.Unix(1_000_000_000, 0)
)

func TestNode(t *testing.T) {
	t.Parallel()
	need(t, "npm")
	w := newWorkspace(t, `
-- package.json --
{"scripts": {"test": "node --test"}}
-- sum.test.js --
const test = require('node:test'), assert = require('node:assert'), fs = require('node:fs');
test('adds', () => assert.strictEqual(1 + 2, 3));
test('flaky', () => {
  if (!fs.existsSync('../flag')) { fs.writeFileSync('../flag', ''); assert.fail('not yet'); }
});
test('wrong', () => {
  assert.strictEqual(1 + 2, 4);
});
`)
	got := run(t, w, Options{Config: config.Tests{Reruns: 1}})
	if len(got.Failures) != 1 || got.Failures[0].Test != "wrong" || got.Failures[0].File != "sum.test.js" || got.Failures[0].Line != 7 {
		t.Errorf("failures %+v, want wrong at sum.test.js:7", got.Failures)
	}
	if !slices.Equal(got.Names, []string{"adds", "flaky"}) || !slices.Equal(got.Flaky, []string{"flaky"}) || got.Suites[0].Name != "npm test" {
		t.Errorf("names %q, flaky %q, suites %+v", got.Names, got.Flaky, got.Suites)
	}
}

const pythonRepo = `
-- pyproject.toml --
[project]
name = "x"
-- calc.py --
def add(a, b):
    return a + b
-- tests/__init__.py --
-- tests/test_calc.py --
import os
import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)

    def test_wrong(self):
        self.assertEqual(calc.add(1, 2), 4)

    def test_flaky(self):
        flag = os.environ["FLAG"]
        if not os.path.exists(flag):
            open(flag, "w").close()
            self.fail("not yet")
`

func TestPython(t *testing.T) {
	t.Parallel()
	need(t, "pytest")
	t.Run("unittest", func(t *testing.T) {
		w := newWorkspace(t, pythonRepo)
		w.env = []string{"FLAG=" + filepath.Join(w.place(), "flag"), "PYTHONPATH=" + filepath.Join(w.dir, "none")}
		w.write(t, "-- none/pytest.py --\nraise ImportError('not here')\n")
		got := run(t, w, Options{Config: config.Tests{Reruns: 2}})
		comparePython(t, got, "unittest", "tests.test_calc.CalcTest.test_wrong", "tests.test_calc.CalcTest.test_flaky")
	})
	t.Run("pytest", func(t *testing.T) {
		w := newWorkspace(t, pythonRepo)
		w.env = []string{"FLAG=" + filepath.Join(w.place(), "flag")}
		got := run(t, w, Options{Config: config.Tests{Reruns: 2}})
		comparePython(t, got, "pytest", "tests/test_calc.py::CalcTest::test_wrong", "tests/test_calc.py::CalcTest::test_flaky")
	})
}

func comparePython(t *testing.T, got pipeline.TestReport, suite, wrong, flaky string) {
	t.Helper()
	if len(got.Failures) != 1 || got.Failures[0].Test != wrong || got.Failures[0].File != "tests/test_calc.py" || got.Failures[0].Line != 12 || !strings.Contains(got.Failures[0].Error, "3 != 4") {
		t.Errorf("failures %+v, want %s at tests/test_calc.py:12", got.Failures, wrong)
	}
	if !slices.Equal(got.Flaky, []string{flaky}) || got.Passed != 2 || got.Suites[0].Name != suite {
		t.Errorf("flaky %q, passed %d, suites %+v", got.Flaky, got.Passed, got.Suites)
	}
}

// Covers V1: commands from the configuration, in every format that is recognised.
func TestNamedCommands(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, calcGo+"-- Makefile --\ncheck:\n\tgo test ./...\n")
	for _, c := range []struct {
		command string
		names   []string
		failed  string
	}{
		{"go test -run TestAdd ./...", []string{"example.com/calc.TestAdd"}, ""},
		{"go test -json ./... | cat", []string{"example.com/calc.TestAdd", "example.com/calc.TestSign"}, ""},
		{"make check", []string{"example.com/calc"}, ""},
		{"make check GOFLAGS=-v", []string{"example.com/calc.TestAdd", "example.com/calc.TestSign"}, ""},
		{"true", []string{"true"}, ""},
		{"echo oh no; exit 3", nil, "the command ended with exit code 3\noh no"},
		{"printf 'TAP version 14\\nok 1 - a\\nnot ok 2 - b\\n1..2\\n'; exit 1", []string{"a"}, "the test failed without a message"},
		{`printf '<testsuite><testcase classname="C" name="a"/><testcase classname="C" name="b"><failure message="bad">x</failure></testcase></testsuite>' > TEST-x.xml; exit 1`, []string{"C.a"}, "bad"},
		{"printf 'running 1 test\\ntest a ... ok\\n\\ntest result: ok. 1 passed; 0 failed\\n'", []string{"a"}, ""},
		{"printf 'test_a (m.C.test_a) ... ok\\n\\n---\\nRan 1 test in 0.1s\\n\\nOK\\n' >&2", []string{"m.C.test_a"}, ""},
	} {
		t.Run(c.command, func(t *testing.T) {
			got := run(t, w, Options{Config: config.Tests{Commands: []string{c.command}}})
			if !slices.Equal(got.Names, c.names) {
				t.Errorf("names %q, want %q", got.Names, c.names)
			}
			text := ""
			for _, f := range got.Failures {
				text += f.Error
			}
			if text != c.failed {
				t.Errorf("failures %+v, want %q", got.Failures, c.failed)
			}
		})
	}
}

// A report that was committed proves nothing: only what is written anew counts.
func TestOldReports(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- TEST-x.xml --\n<testsuite><testcase classname=\"C\" name=\"a\"/></testsuite>\n-- coverage.xml --\n<coverage><packages><package><classes><class filename=\"a.py\"><lines><line number=\"1\" hits=\"1\"/></lines></class></classes></package></packages></coverage>\n")
	for _, f := range []string{"TEST-x.xml", "coverage.xml"} {
		if err := os.Chtimes(filepath.Join(w.dir, f), epoch, epoch); err != nil {
			t.Fatal(err)
		}
	}
	got := run(t, w, Options{Config: config.Tests{Commands: []string{"true"}}})
	if !slices.Equal(got.Names, []string{"true"}) || got.Coverage != nil {
		t.Errorf("names %q, coverage %+v: read from old reports", got.Names, got.Coverage)
	}
	got = run(t, w, Options{Config: config.Tests{Commands: []string{"touch TEST-x.xml coverage.xml"}}})
	if !slices.Equal(got.Names, []string{"C.a"}) || got.Coverage == nil || got.Coverage.Lines != 100 {
		t.Errorf("names %q, coverage %+v: want those of the new reports", got.Names, got.Coverage)
	}
}

// posixWorkspace runs commands for real that are everywhere.
type posixWorkspace struct{ *dirWorkspace }

func (w posixWorkspace) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	return w.live(ctx, c)
}

// A large output is read in pieces, and none is lost.
func TestLargeOutput(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("0123456789\n", 150_000)
	w := newWorkspace(t, "-- out --\n"+want)
	w.limit = 100_000
	got, err := (&checker{ws: posixWorkspace{w}}).readReport(t.Context(), "out")
	if err != nil || string(got) != want {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
}

// Tests of the same name in two directories are two tests.
func TestDirectoriesAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    suite
		want string
	}{
		{suite{dir: ".", format: formatTAP}, "adds lost"},
		{suite{dir: "web", format: formatTAP}, "web > adds web > lost"},
		{suite{dir: "py", format: formatJUnit, pytest: true}, "py/adds py/lost"},
		{suite{dir: "x", format: formatGo}, "adds lost"},
	} {
		r := result{cases: []testcase{{name: "adds"}, {name: "web/test/a.js"}}, lost: map[string]bool{"lost": true}}
		c.s.inDirectory(&r)
		for group := range r.lost {
			if got := r.cases[0].name + " " + group; got != c.want {
				t.Errorf("%s in %s: %q, want %q", c.s.format, c.s.dir, got, c.want)
			}
		}
		if c.s.dir == "web" && r.cases[1].name != "web/test/a.js" {
			t.Errorf("a name that is a path became %q", r.cases[1].name)
		}
	}
}

// Covers V3: many failing tests are run again together.
func TestRerunBatches(t *testing.T) {
	t.Parallel()
	s := &suite{format: formatGo, alone: true, args: []string{"go", "test", "-json", "./..."}}
	for i := range aloneMax + 2 {
		s.result.add(testcase{name: fmt.Sprintf("p%d.TestX%d/s", i%2, i), group: fmt.Sprintf("p%d", i%2), again: fmt.Sprintf("TestX%d/s", i), status: failed, err: "x"})
	}
	batches := s.batches((&checker{}).worthRerunning(s))
	if len(batches) != 2 {
		t.Fatalf("%d batches, want one for each of 2 packages", len(batches))
	}
	want := []string{"go", "test", "-run=^(TestX0|TestX2|TestX4|TestX6|TestX8)$", "-json", "p0"}
	if d := cmp.Diff(want, s.narrowed(batches[0])); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
}

// Covers V3: a place in a directory with a blank in its name is a place.
func TestFramesWithBlanks(t *testing.T) {
	t.Parallel()
	if m := goFrame.FindStringSubmatch("\t/my work/sum_test.go:12 +0x1d"); m == nil || m[1] != "/my work/sum_test.go" || m[2] != "12" {
		t.Errorf("Go: %q", m)
	}
	if m := jsFrame.FindStringSubmatch("    at Object.<anonymous> (/my work/sum.test.js:7:3)"); m == nil || m[1] != "/my work/sum.test.js" || m[2] != "7" {
		t.Errorf("JavaScript: %q", m)
	}
}
