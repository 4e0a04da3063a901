package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

func TestTaskIsAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tests      []string
		text, test string
		want       bool
	}{
		{[]string{"TestSign"}, "", "example.com/calc.TestSign", true},
		{[]string{"TestSign"}, "", "example.com/calc.TestSign/negative", true},
		{[]string{"TestSign/negative"}, "", "example.com/calc.TestSign/negative", true},
		{[]string{"TestSign/negative"}, "", "example.com/calc.TestSign/positive", false},
		{[]string{"TestSign"}, "", "example.com/calc.TestSignature", false},
		{[]string{"example.com/calc.TestSign"}, "", "example.com/calc.TestSign", true},
		{[]string{"calc"}, "", "example.com/calc [build]", true},
		{[]string{"tests/test_calc.py"}, "", "tests/test_calc.py::TestCalc::test_add[1-2]", true},
		{[]string{"test_add"}, "", "tests/test_calc.py::TestCalc::test_add[1-2]", true},
		{[]string{"TestCalc::test_add"}, "", "tests/test_calc.py::TestCalc::test_add[1-2]", true},
		{[]string{"test_add[1-2]"}, "", "tests/test_calc.py::test_add[1-3]", false},
		{[]string{"adds numbers"}, "", "sum.test.js > adds numbers", true},
		{[]string{"", " "}, "", "sum.test.js > adds numbers", false},
		{nil, "TestSign fails on Mondays", "example.com/calc.TestSign", true},
		{nil, "see `TestSign/negative`.", "example.com/calc.TestSign/negative", true},
		{nil, "see `TestSign/negative`.", "example.com/calc.TestSign/positive", false},
		{nil, "see `TestSign/negative` and TestSign / all", "example.com/calc.TestSign/positive", true},
		{nil, "TestSignature fails", "example.com/calc.TestSign", false},
		{nil, "myTestSign fails", "example.com/calc.TestSign", false},
		{nil, "FAILED tests/test_calc.py::test_add[1-2] - assert", "tests/test_calc.py::test_add[1-2]", true},
		{nil, "the test adds numbers is wrong", "adds numbers", true},
		{nil, "the new button adds a row", "adds", false},
		{nil, "the test 'adds' fails", "adds", true},
		{nil, "example.com/calc does not build", "example.com/calc [build]", true},
		{nil, "", "adds numbers", false},
		{nil, "äTestSignä TestSign", "m.TestSign", true},
	} {
		if got := (Task{Tests: c.tests, Text: c.text}).about(c.test); got != c.want {
			t.Errorf("Task{%q, %q}.about(%q) = %v, want %v", c.tests, c.text, c.test, got, c.want)
		}
	}
}

const twoBroken = `
-- pyproject.toml --
-- calc.py --
def add(a, b):
    return a + b
def sign(n):
    return 0
-- test_calc.py --
import calc
def test_add():
    assert calc.add(1, 2) == 3
def test_sign():
    assert calc.sign(-5) == -1
def test_zero():
    raise ValueError("no zero")
`

// Covers V3: what failed before the work is a list of its own, with today's error
// and who knows of it; what the task is about must pass.
func TestBefore(t *testing.T) {
	t.Parallel()
	need(t, "pytest")
	w := newWorkspace(t, twoBroken)
	baseline := run(t, w, Options{})
	if len(baseline.Failures) != 2 || len(baseline.Before) != 0 {
		t.Fatalf("baseline: failures %+v, before %+v", baseline.Failures, baseline.Before)
	}
	sign, zero := baseline.Failures[0].Test, baseline.Failures[1].Test
	w.write(t, "-- calc.py --\ndef add(a, b):\n    return a + b\ndef sign(n):\n    raise KeyError(n)\n")
	known := func(pairs ...string) map[string]pipeline.KnownFailure {
		out := map[string]pipeline.KnownFailure{}
		for i := 0; i < len(pairs); i += 2 {
			k := slices.IndexFunc(baseline.Failures, func(f pipeline.Failure) bool { return f.Test == pairs[i] })
			out[pairs[i]] = pipeline.KnownFailure{Login: pairs[i+1], Error: baseline.Failures[k].ErrorKey()}
		}
		return out
	}
	for _, c := range []struct {
		name          string
		o             Options
		before, known []string
		failures      []string
		ok            bool
	}{
		{name: "unknown", before: []string{sign, zero}},
		{name: "known by people", o: Options{Known: known(sign, "eve", zero, "bob")}, before: []string{sign, zero}, known: []string{"", "bob"}},
		{name: "one is known", o: Options{Known: known(zero, "bob")}, before: []string{sign, zero}, known: []string{"", "bob"}},
		{name: "allowed", o: Options{Config: config.Tests{TimeoutMinutes: 10, KnownFailures: "allow"}}, before: []string{sign, zero}, known: []string{"", "settings"}},
		{name: "known without an error", o: Options{Known: map[string]pipeline.KnownFailure{zero: {Login: "bob"}}}, before: []string{sign, zero}, known: []string{"", ""}},
		{name: "the task is about one", o: Options{Task: Task{Text: "test_sign fails"}, Known: known(sign, "eve", zero, "bob")}, before: []string{zero}, known: []string{"bob"}, failures: []string{sign}},
		{name: "the plan names both", o: Options{Task: Task{Tests: []string{"test_sign", "test_zero"}}}, failures: []string{sign, zero}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Baseline = &baseline
			w.ran = nil
			got := run(t, w, c.o)
			var before, known, failures []string
			for _, f := range got.Before {
				before, known = append(before, f.Test), append(known, f.KnownBy)
				want := ""
				if f.Test == sign {
					want = "It failed at the base commit, too, but with another error: assert 0 == -1"
				}
				if f.Analysis != want {
					t.Errorf("%s: analysis %q, want %q", f.Test, f.Analysis, want)
				}
			}
			for _, f := range got.Failures {
				failures = append(failures, f.Test)
			}
			if c.known == nil && len(before) > 0 {
				c.known = make([]string, len(before))
			}
			if d := cmp.Diff([][]string{c.before, c.known, c.failures}, [][]string{before, known, failures}); d != "" {
				t.Errorf("before, known by, failures (-want +got):\n%s", d)
			}
			if got.OK() != c.ok || got.Passed != 1 || len(got.Flaky) > 0 || got.Skipped > 0 || len(got.Tampered) > 0 {
				t.Errorf("OK %v, want %v; report %+v", got.OK(), c.ok, got)
			}
		})
	}
}

// What failed before is not got rid of by skipping or removing it.
func TestBeforeIsNotRemoved(t *testing.T) {
	t.Parallel()
	need(t, "pytest")
	w := newWorkspace(t, twoBroken)
	baseline := run(t, w, Options{})
	w.write(t, "-- test_calc.py --\nimport calc, pytest\ndef test_add():\n    assert calc.add(1, 2) == 3\n@pytest.mark.skip\ndef test_sign():\n    assert calc.sign(-5) == -1\n")
	got := run(t, w, Options{Baseline: &baseline})
	var rules []string
	for _, f := range got.Tampered {
		rules = append(rules, f.Rule+": "+f.Message)
	}
	want := []string{"tests.removed: test_calc.py::test_zero failed at the base commit and is gone: put it back, or let a human decide that it goes",
		"tests.skipped: test_calc.py::test_sign failed at the base commit and is skipped now: run it again"}
	if d := cmp.Diff(want, rules); d != "" || got.OK() {
		t.Errorf("OK %v, findings (-want +got):\n%s", got.OK(), d)
	}
}

// Covers V3: what breaks as a whole hides tests. It is from before the work only
// where it breaks as it did then.
func TestBeforeAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, calcGo+"-- dep/dep.go --\npackage dep\n\nvar X = missing\n-- dep/dep_test.go --\npackage dep\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n")
	baseline := run(t, w, Options{})
	if len(baseline.Failures) != 1 || !baseline.Failures[0].Whole || baseline.Failures[0].Error != "dep/dep.go:3: undefined: missing" {
		t.Fatalf("baseline %+v, want the broken build with its reason", baseline.Failures)
	}
	same := run(t, w, Options{Baseline: &baseline})
	if len(same.Failures) != 0 || len(same.Before) != 1 || same.Before[0].Test != "example.com/calc/dep [build]" || same.OK() {
		t.Errorf("broken as before: failures %+v, before %+v", same.Failures, same.Before)
	}
	w.write(t, "-- dep/dep.go --\npackage dep\n\nvar X = 1 +\n")
	other := run(t, w, Options{Baseline: &baseline})
	if len(other.Failures) != 1 || !strings.Contains(other.Failures[0].Analysis, "but for another reason: dep/dep.go:3: undefined: missing") || len(other.Before) != 0 {
		t.Errorf("broken in another way: failures %+v, before %+v", other.Failures, other.Before)
	}
	w.write(t, "-- dep/dep.go --\npackage dep\n\nvar X = 1\n-- dep/dep_test.go --\npackage dep\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Error(X) }\n")
	mended := run(t, w, Options{Baseline: &baseline})
	if len(mended.Failures) != 1 || !strings.Contains(mended.Failures[0].Analysis, "Whether it worked at the base commit is not known: example.com/calc/dep [build] broke there: dep/dep.go:3: undefined: missing") {
		t.Errorf("built again: failures %+v", mended.Failures)
	}
}

// Covers V3: a suite that ends badly is told with its reason, as a failure where
// this change broke it.
func TestEndsBadly(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- x --\n")
	command := func(exit string) Options {
		w.write(t, "-- run.sh --\nprintf 'TAP version 13\\n1..1\\nok 1 - a\\n'\nexit "+exit+"\n")
		return Options{Config: config.Tests{Commands: []string{"sh run.sh"}}}
	}
	good, bad := run(t, w, command("0")), run(t, w, command("3"))
	if len(good.Failures) > 0 || len(bad.Failures) != 1 || !strings.HasPrefix(bad.Failures[0].Error, "the command ended with exit code 3, though no test is reported as failing") {
		t.Fatalf("baselines: %+v and %+v", good.Failures, bad.Failures)
	}
	o := command("3")
	o.Baseline = &good
	if got := run(t, w, o); len(got.Failures) != 1 || got.OK() {
		t.Errorf("broken by the change: %+v", got)
	}
	o.Baseline = &bad
	if got := run(t, w, o); len(got.Failures) != 0 || len(got.Before) != 1 || got.OK() {
		t.Errorf("broken before: %+v", got)
	}
	o.Known = map[string]pipeline.KnownFailure{"sh run.sh": {Login: "eve", Error: bad.Failures[0].ErrorKey()}}
	if got := run(t, w, o); !got.OK() {
		t.Errorf("broken before, and known: %+v", got)
	}
}

// A suite that is cut off verifies nothing, whoever knows of it.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"timeout", "memory", "output", "disk", "signal"} {
		w := newWorkspace(t, "-- x --\n")
		w.hook = func(res *workspace.Result) { res.Exit, res.Class = -1, class }
		o := Options{Config: config.Tests{Commands: []string{"printf 'TAP version 13\\n1..2\\nok 1 - a\\n'"}}}
		baseline := run(t, w, o)
		if len(baseline.Failures) != 1 || baseline.Unclean != "" {
			t.Fatalf("%s: baseline %+v", class, baseline)
		}
		o.Baseline, o.Known = &baseline, map[string]pipeline.KnownFailure{baseline.Failures[0].Test: {Login: "eve", Error: baseline.Failures[0].ErrorKey()}}
		got := run(t, w, o)
		if got.OK() || len(got.Failures) > 0 || len(got.Before) > 0 || got.Unclean == "" || !strings.Contains(baseline.Failures[0].Error, text.FirstLine(got.Unclean)) {
			t.Errorf("%s: report %+v, want it to say why it is not clean", class, got)
		}
	}
}

// Of two tests of one name that fail, the one that passed before is a failure.
func TestBeforeSameName(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- x --\n")
	tap := func(lines ...string) Options {
		w.write(t, "-- run.sh --\ncat <<E\nTAP version 13\n1.."+string(rune('0'+len(lines)/2))+"\n"+strings.Join(lines, "\n")+"\nE\n")
		return Options{Config: config.Tests{Commands: []string{"sh run.sh"}}}
	}
	bad := func(why string) string { return "  ---\n  error: '" + why + "'\n  ..." }
	baseline := run(t, w, tap("ok 1 - adds", "# x", "not ok 2 - adds", bad("one")))
	o := tap("not ok 1 - adds", bad("two"), "not ok 2 - adds", bad("one"))
	o.Baseline = &baseline
	got := run(t, w, o)
	if len(got.Before) != 1 || got.Before[0].Error != "one" || len(got.Failures) != 1 || got.Failures[0].Error != "two" {
		t.Errorf("before %+v, failures %+v", got.Before, got.Failures)
	}
	if !slices.Equal(baseline.Names, []string{"adds"}) {
		t.Errorf("baseline names %q", baseline.Names)
	}
}
