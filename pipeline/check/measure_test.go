package check

import (
	"path"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

// Covers V1: tests.coverage names the functions below it that the change touches,
// and the files below it elsewhere; 0 measures nothing.
func TestCoverageThreshold(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, calcGo+"-- far/far.go --\npackage far\n\nfunc F() int { return 1 }\n")
	base := w.commit(t)
	w.write(t, `
-- calc.go --
package calc

type acc[T any] struct{ n int }

func (a *acc[T]) add(n int) int {
	if n < 0 {
		return -1
	}
	if n > 9 {
		return -2
	}
	if n > 8 {
		return -3
	}
	return a.n + n
}

func Add(a, b int) int { return (&acc[int]{a}).add(b) }

func Sign(n int) int { return 1 }

func unused() {}

func never() int { return 1 }
`)
	got := run(t, w, Options{Iteration: 1, Patch: w.diff(t, base)})
	want := []pipeline.CoverageGap{
		{File: "calc.go", Function: "never", Line: 24, Lines: 0, Changed: true},
		{File: "calc.go", Function: "acc.add", Line: 5, Lines: 57.1, Changed: true},
		{File: "far/far.go", Lines: 0},
	}
	if got.Coverage == nil || got.Coverage.Threshold != 60 {
		t.Fatalf("coverage %+v", got.Coverage)
	}
	if d := cmp.Diff(want, got.Coverage.Under); d != "" {
		t.Errorf("below the threshold (-want +got):\n%s", d)
	}
	off, err := Run(t.Context(), w, Options{Iteration: 1})
	if err != nil || off.Coverage != nil || off.Passed != 2 {
		t.Errorf("without a threshold: coverage %+v, passed %d, error %v", off.Coverage, off.Passed, err)
	}
}

// fakeCov stands for pytest-cov: it understands its options, writes a Cobertura
// file, and does what the environment asks for besides.
const fakeCov = `
-- pytest_cov.py --
-- conftest.py --
import os
def pytest_addoption(parser):
    parser.addoption("--cov", action="store", nargs="?", const="*", default=None)
    parser.addoption("--cov-branch", action="store_true")
    parser.addoption("--cov-report", action="append", default=[])
    parser.addoption("--cov-fail-under", type=int, default=None)
def pytest_sessionfinish(session, exitstatus):
    o = session.config.option
    if o.cov is None:
        return
    for r in o.cov_report:
        kind, _, to = r.partition(":")
        if kind == "xml":
            open(to, "w").write('<coverage><packages><package><classes><class filename="calc.py"><lines><line number="1" hits="1"/><line number="2" hits="0"/></lines></class><class filename="test_calc.py"><lines><line number="1" hits="1"/></lines></class></classes></package></packages></coverage>')
    if o.cov_fail_under is None:
        print("\nFAIL Required test coverage of 90% not reached. Total coverage: 50.00%")
        session.exitstatus = 1
    if os.environ.get("BREAK"):
        raise RuntimeError("coverage: the data file is broken")
-- calc.py --
def add(a, b): return a + b
-- test_calc.py --
import os, sys
def test_add():
    assert not os.environ.get("ONLY_MEASURED") or not any(a.startswith("--cov") for a in sys.argv)
`

// Covers V1: coverage is measured with what the project has; whether it passes is
// not for measuring to say.
func TestMeasuringChangesNothing(t *testing.T) {
	t.Parallel()
	need(t, "pytest")
	for _, c := range []struct {
		name, more string
		env        []string
		command    string
		failed     string
		lines      float64 // -1: none
		runs       int     // of pytest
	}{
		{name: "measured", lines: 50, runs: 1},
		{name: "measured by a named command", command: "pytest", lines: 50, runs: 1},
		{name: "the project's own threshold", more: "-- pytest.ini --\n[pytest]\naddopts = --cov\n", lines: 50, runs: 2, failed: "FAIL Required test coverage of 90% not reached"},
		{name: "measuring breaks", env: []string{"BREAK=1"}, lines: 50, runs: 2},
		{name: "a test that fails only when measured", env: []string{"ONLY_MEASURED=1"}, lines: 50, runs: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkspace(t, fakeCov+c.more)
			w.env = c.env
			o := Options{Iteration: 1}
			if c.command != "" {
				o.Config.Commands = []string{c.command}
			}
			got := run(t, w, o)
			lines := -1.0
			if got.Coverage != nil {
				lines = got.Coverage.Lines
			}
			runs := 0
			for _, line := range w.ran {
				if strings.Contains(line, "--junitxml") {
					runs++
				}
			}
			if lines != c.lines || runs != c.runs || got.Passed != 1 {
				t.Errorf("lines %v, %d runs, passed %d; want %v, %d, 1: %+v", lines, runs, got.Passed, c.lines, c.runs, got)
			}
			failed := ""
			for _, f := range got.Failures {
				failed += f.Error
			}
			if !strings.HasPrefix(failed, c.failed) || c.failed == "" && failed != "" {
				t.Errorf("failures %q, want %q", failed, c.failed)
			}
		})
	}
}

// The runner of Node measures by itself where the script is nothing else.
func TestNodeCoverage(t *testing.T) {
	t.Parallel()
	need(t, "npm")
	w := newWorkspace(t, `
-- package.json --
{"scripts": {"test": "node --test"}}
-- sum.js --
exports.add = (a, b) => {
  if (a > 100) {
    return 0;
  }
  return a + b;
};
-- sum.test.js --
const test = require('node:test'), assert = require('node:assert');
const {add} = require('./sum');
test('adds', () => assert.strictEqual(add(1, 2), 3));
`)
	got := run(t, w, Options{Iteration: 1})
	if got.Passed != 1 || got.Coverage == nil || got.Coverage.Lines < 60 || got.Coverage.Lines >= 100 {
		t.Errorf("passed %d, coverage %+v: want that of sum.js alone, not full", got.Passed, got.Coverage)
	}
}

// Each runner of JavaScript is asked in its own way, and only where the package is
// set up for coverage.
func TestNodeMeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script, config, dep string
		command, report     string // "": none
	}{
		{"jest", "", "", "", ""},
		{"jest", `{"collectCoverageFrom": ["src/**"]}`, "", "npm test -- --json --coverageReporters=lcovonly --coverageDirectory=T --coverage --coverageThreshold={}", ""},
		{"jest --coverage", "", "", "npm test -- --json --coverageReporters=lcovonly --coverageDirectory=T", ""},
		{"vitest run", "", "", "", ""},
		{"vitest run", "", "@vitest/coverage-v8", "npm test -- --run --reporter=json --coverage.enabled --coverage.reporter=lcovonly --coverage.reportsDirectory=T", ""},
		{"c8 node --test", "", "", "npm test", "node_modules/.bin/c8 report --reporter=lcovonly --reports-dir=T"},
		{"nyc mocha", "", "", "npm test -- --reporter=tap", "node_modules/.bin/nyc report --reporter=lcovonly --report-dir=T"},
		{"node --test test/", "", "", "", ""},
		{"tsc", "", "", "", ""},
	} {
		p := &nodePackage{dir: ".", Scripts: map[string]string{"test": c.script}, Jest: []byte(c.config), DevDeps: map[string]any{c.dep: "1"}}
		s, err := (&checker{log: discard}).nodeSuite(t.Context(), &survey{}, p, p)
		if err != nil {
			t.Fatal(err)
		}
		command, report := "", ""
		if m := s.measure; m != nil {
			command = strings.Join(s.args, " ")
			if m.command != nil {
				command = strings.Join(m.command(slices.Clone(s.args), "T"), " ")
			}
			if m.report != nil {
				report = strings.Join(m.report("T"), " ")
			}
		}
		if command != c.command || report != c.report {
			t.Errorf("%q with %q: %q, then %q; want %q, then %q", c.script, c.config, command, report, c.command, c.report)
		}
	}
}

// coverage.py measures where pytest-cov is not there.
func TestCoveragePy(t *testing.T) {
	t.Parallel()
	m := pytestMeasured("", map[string]bool{"coverage": true})
	got := strings.Join(m.command([]string{"python3", "-m", "pytest", "-q"}, "T"), " ")
	if want := "python3 -m coverage run --branch --data-file=T.data --source=. -m pytest -q"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	if got := strings.Join(m.report("T"), " "); got != "python3 -m coverage xml -q --data-file=T.data -o T --fail-under=0" {
		t.Errorf("report %q", got)
	}
	if got := pytestMeasured("[run]\nsource = calc\n", map[string]bool{"pytest_cov": true}).command(nil, "T"); !slices.Contains(got, "--cov") {
		t.Errorf("a project that says what to measure: %q", got)
	}
	if m := pytestMeasured("", nil); m != nil {
		t.Errorf("without either: %+v", m)
	}
}

const jacocoReport = `<?xml version="1.0"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="calc"><group name="core"><package name="com/example"><sourcefile name="Calc.kt"><line nr="3" mi="0" ci="2" mb="1" cb="1"/></sourcefile></package></group>
<package name="com/example"><class name="com/example/Calc"/><sourcefile name="Calc.java"><line nr="4" mi="0" ci="3" mb="0" cb="0"/><line nr="5" mi="2" ci="0" mb="2" cb="0"/></sourcefile></package></report>`

func TestJaCoCo(t *testing.T) {
	t.Parallel()
	v := &covered{}
	c := &checker{root: "/src", cover: v, patch: &patch{}}
	if err := c.addCoverage(v, &suite{dir: "."}, "app/target/site/jacoco/jacoco.xml", []byte(jacocoReport)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/src/main/java/com/example/Calc.java", "app/src/main/kotlin/com/example/Calc.kt"} {
		if v.files[name] == nil {
			t.Errorf("%s is not covered: %v", path.Base(name), v.files)
		}
	}
	if d := cmp.Diff(&pipeline.Coverage{Lines: 66.7, Branches: 25, Changed: -1}, c.coverage()); d != "" {
		t.Errorf("coverage (-want +got):\n%s", d)
	}
	if err := v.jacoco([]byte("<report>"), "x"); err == nil {
		t.Error("a report that breaks off is read")
	}
}
