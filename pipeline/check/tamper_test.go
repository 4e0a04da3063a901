package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

// tamperCase is a base and a change to it, as txtar archives, and what the tests
// say before and after.
type tamperCase struct {
	name       string
	base, head string
	delete     []string // files
	before     []string // passed at the base
	after      []string // "passed NAME", "skipped NAME", "failed NAME"
	want       []string // "rule file: part of the message"
	failed     []string // at the base
}

// sums are a module of Python and its tests.
const sums = "-- calc.py --\ndef add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n-- test_calc.py --\nimport calc\n\n\ndef test_mul():\n    assert calc.mul(2, 3) == 6\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n"

const twoTests = `-- a_test.go --
package a

import "testing"

func TestOne(t *testing.T) {
	if f(1) != 2 {
		t.Error("one")
	}
	if f(2) != 3 {
		t.Error("two")
	}
}

func TestTwo(t *testing.T) {
	got := f(5)
	want := 6
	if got != want {
		t.Errorf("f(5) = %d, want %d", got, want)
	}
	if f(7) != 8 {
		t.Fatal("seven")
	}
}
`

func replaced(old, new string) string { return strings.ReplaceAll(twoTests, old, new) }

// cutFrom returns what comes before a text.
func cutFrom(s, at string) string { before, _, _ := strings.Cut(s, at); return before }

var tamperCases = []tamperCase{
	{name: "nothing changed", base: twoTests, before: []string{"m/a.TestOne", "m/a.TestTwo"}, after: []string{"passed m/a.TestOne", "passed m/a.TestTwo"}},
	{name: "a test is removed", base: twoTests, head: cutFrom(twoTests, "func TestTwo"), before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/a.TestOne"}, want: []string{"tests.removed a_test.go: m/a.TestTwo passed at the base commit and is gone"}},
	{name: "a file is removed", base: twoTests + "-- b.go --\npackage a\n", delete: []string{"a_test.go"}, before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/b.TestOther"}, want: []string{"tests.removed a_test.go: 2 tests: m/a.TestOne, m/a.TestTwo"}},
	{name: "a file is removed and nobody knew its tests", base: twoTests, delete: []string{"a_test.go"}, before: []string{"make test"},
		after: []string{"passed make test"}, want: []string{"tests.weakened a_test.go: a_test.go is deleted, and with it 4 assertions"}},
	{name: "a test is renamed", base: twoTests, head: replaced("TestTwo", "TestTwice"), before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/a.TestOne", "passed m/a.TestTwice"}},
	{name: "a renamed test that fails is told by its failure alone", base: twoTests, head: replaced("TestTwo", "TestTwice"), before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/a.TestOne", "failed m/a.TestTwice"}},
	{name: "a renamed test that is skipped", base: twoTests, head: replaced("TestTwo", "TestTwice"), before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/a.TestOne", "skipped m/a.TestTwice"}, want: []string{"tests.removed a_test.go: m/a.TestTwo"}},
	{name: "another test under a new name is no rename", base: twoTests, head: cutFrom(twoTests, "func TestTwo") + "func TestNothing(t *testing.T) {\n\tt.Log(f(0))\n}\n",
		before: []string{"m/a.TestOne", "m/a.TestTwo"}, after: []string{"passed m/a.TestOne", "passed m/a.TestNothing"}, want: []string{"tests.removed a_test.go: m/a.TestTwo"}},
	{name: "a test is moved to another file and package", base: twoTests, delete: []string{"a_test.go"}, head: strings.ReplaceAll(replaced("a_test.go", "b/b_test.go"), "package a", "package b"),
		before: []string{"m/a.TestOne", "m/a.TestTwo"}, after: []string{"passed m/b.TestOne", "passed m/b.TestTwo"}},
	{name: "a test is skipped", base: twoTests, head: replaced("\tgot := f(5)\n", "\tt.Skip(\"later\")\n\tgot := f(5)\n"), before: []string{"m/a.TestOne", "m/a.TestTwo"},
		after: []string{"passed m/a.TestOne", "skipped m/a.TestTwo"}, want: []string{"tests.skipped : m/a.TestTwo passed at the base commit and is skipped now"}},
	{name: "an assertion is removed", base: twoTests, head: replaced("\tif f(2) != 3 {\n\t\tt.Error(\"two\")\n\t}\n", ""), before: []string{"m/a.TestOne"},
		after: []string{"passed m/a.TestOne"}, want: []string{"tests.weakened a_test.go: a_test.go asserts less than before: 1 assertions removed, 0 added (1 fewer)"}},
	{name: "an assertion is commented out", base: twoTests, head: replaced("\t\tt.Error(\"two\")", "\t\t// t.Error(\"two\")"), before: []string{"m/a.TestOne"},
		after: []string{"passed m/a.TestOne"}, want: []string{"tests.weakened a_test.go"}},
	{name: "an assertion is changed", base: twoTests, head: replaced("t.Error(\"two\")", "t.Errorf(\"f(2) = %d\", f(2))"), before: []string{"m/a.TestOne"}, after: []string{"passed m/a.TestOne"}},
	{name: "err.Error() is no assertion", base: "-- a_test.go --\npackage a\n\nvar s = err.Error()\n", head: "-- a_test.go --\npackage a\n\nvar s = \"\"\n", before: []string{"m/a.T"}, after: []string{"passed m/a.T"}},
	{name: "assertions outside of tests do not count", base: "-- a.go --\npackage a\n\nfunc f() { x.Errorf(\"a\") }\n", head: "-- a.go --\npackage a\n\nfunc f() {}\n", before: []string{"m/a.T"}, after: []string{"passed m/a.T"}},
	{name: "a failing test is not gone", base: twoTests, before: []string{"m/a.TestOne", "m/a.TestTwo"}, after: []string{"failed m/a.TestOne", "passed m/a.TestTwo"}},
	{name: "a case of a table is removed", base: twoTests, before: []string{"m/a.TestOne", "m/a.TestOne/x", "m/a.TestOne/y"}, after: []string{"passed m/a.TestOne", "passed m/a.TestOne/x"},
		want: []string{"tests.removed : m/a.TestOne/y passed at the base commit and is gone"}},
	{name: "a case of a table is renamed", base: twoTests, before: []string{"m/a.TestOne", "m/a.TestOne/x", "m/a.TestOne/y"}, after: []string{"passed m/a.TestOne", "passed m/a.TestOne/x", "passed m/a.TestOne/z"}},
	{name: "pytest parameters", before: []string{"t/test_a.py::test_x[1]", "t/test_a.py::test_x[2]"}, after: []string{"passed t/test_a.py::test_x[1]"},
		want: []string{"tests.removed : t/test_a.py::test_x[2]"}},
	{name: "Python", base: "-- tests/test_a.py --\ndef test_a():\n    assert f() == 1\n    # assert x\n", head: "-- tests/test_a.py --\ndef test_a():\n    f()\n", before: []string{"tests/test_a.py::test_a"},
		after: []string{"passed tests/test_a.py::test_a"}, want: []string{"tests.weakened tests/test_a.py"}},
	{name: "JavaScript, renamed", base: "-- a.test.js --\ntest('adds', () => {\n  expect(f(1)).toBe(2);\n  expect(f(2)).toBe(3);\n});\n", head: "-- a.test.js --\ntest('adds numbers', () => {\n  expect(f(1)).toBe(2);\n  expect(f(2)).toBe(3);\n});\n",
		before: []string{"a.test.js > adds"}, after: []string{"passed a.test.js > adds numbers"}},
	{name: "JavaScript, weakened", base: "-- a.test.js --\ntest('adds', () => {\n  expect(f(1)).toBe(2);\n});\n", head: "-- a.test.js --\ntest('adds', () => {\n  f(1);\n});\n",
		before: []string{"a.test.js > adds"}, after: []string{"passed a.test.js > adds"}, want: []string{"tests.weakened a.test.js"}},
	{name: "an assertion moves to another file", base: twoTests + "-- b_test.go --\npackage a\n", head: replaced("\tif f(7) != 8 {\n\t\tt.Fatal(\"seven\")\n\t}\n", "") + "-- b_test.go --\npackage a\n\nfunc TestSeven(t *testing.T) {\n\tif f(7) != 8 {\n\t\tt.Fatal(\"seven\")\n\t}\n}\n",
		before: []string{"m/a.TestOne"}, after: []string{"passed m/a.TestOne"}},
	{name: "all tests are gone", base: twoTests, before: []string{"m/a.TestOne", "m/a.TestTwo"}, want: []string{"tests.removed : 2 tests: m/a.TestOne, m/a.TestTwo"}},
	{name: "a test becomes a table", base: sums, head: strings.Replace(sums, "def test_add():\n    assert calc.add(2, 3) == 5\n", "@pytest.mark.parametrize('a', [2, 3])\ndef test_add(a):\n    assert calc.add(a, 3) == a + 3\n", 1),
		before: []string{"test_calc.py::test_add", "test_calc.py::test_mul"}, after: []string{"passed test_calc.py::test_add[2]", "passed test_calc.py::test_add[3]", "passed test_calc.py::test_mul"}},
	{name: "a test becomes a table that is skipped", base: sums, head: strings.Replace(sums, "def test_add():", "@pytest.mark.skip\ndef test_add():", 1), before: []string{"test_calc.py::test_add"},
		after: []string{"skipped test_calc.py::test_add[2]"}, want: []string{"tests.removed : test_calc.py::test_add"}},
	{name: "a file of tests is deleted", base: sums, delete: []string{"test_calc.py"}, before: []string{"test_calc.py::test_add"},
		want: []string{"tests.removed test_calc.py: test_calc.py::test_add"}},
	{name: "a module and its tests are renamed", base: sums, delete: []string{"test_calc.py", "calc.py"}, head: strings.ReplaceAll(sums, "calc", "sums"), before: []string{"test_calc.py::test_add", "test_calc.py::test_mul"},
		after: []string{"passed test_sums.py::test_add", "passed test_sums.py::test_mul"}},
	{name: "a module is renamed and its tests hold less", base: sums, delete: []string{"test_calc.py", "calc.py"}, head: strings.ReplaceAll(strings.Replace(sums, "assert calc.add(2, 3) == 5", "calc.add(2, 3)", 1), "calc", "sums"),
		before: []string{"test_calc.py::test_mul"}, after: []string{"passed test_sums.py::test_mul"}, want: []string{"tests.weakened test_calc.py"}},
	{name: "a broken build hides its tests", base: twoTests, before: []string{"m/a.TestOne", "m/b.TestTwo"}, after: []string{"build m/a"}, want: []string{"tests.removed : m/b.TestTwo"}},
	{name: "a suite that broke off hides all", base: twoTests, before: []string{"m/a.TestOne", "m/b.TestTwo"}, after: []string{"partial", "failed m/a.TestX"}},
}

// Covers lessons 16.
func TestTampered(t *testing.T) {
	t.Parallel()
	for _, c := range tamperCases {
		t.Run(c.name, func(t *testing.T) {
			head := filesOf(c.base, c.head)
			for _, name := range c.delete {
				delete(head, name)
			}
			p, err := parsePatch(patchOf(t, filesOf(c.base), head))
			if err != nil {
				t.Fatal(err)
			}
			s := &suite{}
			for _, line := range c.after {
				st, name, _ := strings.Cut(line, " ")
				switch st {
				case "build":
					s.result.add(testcase{name: name + " [build]", group: name, status: failed, whole: true})
					s.result.lose(name)
				case "partial":
					s.result.partial = true
				default:
					s.result.add(testcase{name: name, status: status(st)})
				}
			}
			baseline := &pipeline.TestReport{Names: c.before}
			for _, name := range c.failed {
				baseline.Failures = append(baseline.Failures, pipeline.Failure{Test: name})
			}
			ch := &checker{patch: p, suites: []*suite{s}, base: baseFailures(baseline), o: Options{Baseline: baseline}}
			var got []string
			for i, f := range ch.tampered() {
				line := fmt.Sprintf("%s %s: %s", f.Rule, f.File, f.Message)
				if i < len(c.want) && strings.HasPrefix(line, c.want[i]) {
					line = c.want[i]
				}
				got = append(got, line)
				if f.Severity != pipeline.SeverityError || f.Category != "tests" || f.Fingerprint != f.Digest() || f.ID == "" {
					t.Errorf("finding %+v", f)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
		})
	}
}

// Findings are capped, and the rest is counted.
func TestTamperedCap(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("m/p%02d.TestX", i))
	}
	ch := &checker{patch: &patch{}, o: Options{Baseline: &pipeline.TestReport{Names: names}}}
	got := ch.tampered()
	if len(got) != maxTampered || !strings.HasSuffix(got[maxTampered-1].Message, "(and 10 more findings of this kind)") {
		t.Errorf("%d findings, the last %q", len(got), got[len(got)-1].Message)
	}
	seen := map[string]bool{}
	for _, f := range got {
		if seen[f.Fingerprint] {
			t.Errorf("two findings have the fingerprint %s", f.Fingerprint)
		}
		seen[f.Fingerprint] = true
	}
}

// Twenty thousand missing tests are one finding. They take half a second; compared each
// with each, they would take minutes.
func TestTamperedMany(t *testing.T) {
	t.Parallel()
	s := &suite{}
	var names []string
	for i := range maxNames {
		names = append(names, fmt.Sprintf("m/p.TestX/case%d", i))
		s.result.add(testcase{name: fmt.Sprintf("m/q.TestY/case%d", i), status: passed})
	}
	ch := &checker{patch: &patch{}, suites: []*suite{s}, o: Options{Baseline: &pipeline.TestReport{Names: names}}}
	got := ch.tampered()
	if len(got) != 1 || !strings.HasPrefix(got[0].Message, "20000 tests: m/p.TestX/case0, ") {
		t.Errorf("findings %.200v", got)
	}
}

// Covers V2: a test that the work itself brought and that failed does not pass by going.
func TestOwnFailingTestMustNotGo(t *testing.T) {
	t.Parallel()
	const header = "package calc\n\nimport \"testing\"\n\n"
	w := newWorkspace(t, "-- go.mod --\nmodule example.com/calc\n\ngo 1.25\n-- calc.go --\npackage calc\n\nfunc Add(a, b int) int { return a + b }\n"+
		"-- calc_test.go --\n"+header+"func TestAdd(t *testing.T) { Add(1, 2) }\n")
	base := w.commit(t)
	baseline := run(t, w, Options{Head: "base"})
	const pkg = "example.com/calc."
	first := pipeline.TestReport{Names: []string{pkg + "TestAdd", pkg + "TestNew", pkg + "TestNew/one"}, Failures: []pipeline.Failure{{Test: pkg + "TestSum"}, {Test: pkg + "TestNew/two"}}}
	table := func(names string) string {
		return "func TestNew(t *testing.T) {\n\tfor _, name := range []string{" + names + "} {\n\t\tt.Run(name, func(t *testing.T) {})\n\t}\n}\n"
	}
	const sum = "func TestSum(t *testing.T) {}\n"
	for name, tt := range map[string]struct {
		test    string
		more    string // another file's
		later   []Past
		planned int
		want    []string // that are told
		asked   []string // that the reviewer is asked about
	}{
		"both pass":          {test: sum + table(`"one", "two"`)},
		"a case is another":  {test: sum + table(`"one", "three"`)},
		"a passed case went": {test: sum + table(`"two"`), asked: []string{pkg + "TestNew/one"}},
		"a case is gone":     {test: sum + table(`"one"`), want: []string{pkg + "TestNew/two failed in iteration 1"}},
		"all are gone":       {test: "", asked: []string{pkg + "TestNew", pkg + "TestNew/one"}, want: []string{pkg + "TestNew/two failed in iteration 1", pkg + "TestSum failed in iteration 1"}},
		"one is skipped":     {test: "func TestSum(t *testing.T) { t.Skip() }\n" + table(`"one", "two"`), want: []string{pkg + "TestSum failed in iteration 1"}},
		"one moved":          {test: table(`"one", "two"`), more: "-- sum/sum_test.go --\n" + strings.Replace(header, "calc", "sum", 1) + sum},
		"it passed since":    {test: table(`"one", "two"`), later: []Past{{2, &pipeline.TestReport{Names: []string{pkg + "TestSum"}}}}, asked: []string{pkg + "TestSum"}},
		"an older plan's":    {test: "", planned: 1},
		"it failed since":    {test: table(`"one", "two"`), later: []Past{{2, &pipeline.TestReport{Failures: []pipeline.Failure{{Test: pkg + "TestSum"}}}}}, want: []string{pkg + "TestSum failed in iteration 2"}},
		"the build broke it": {test: "func broken(", want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			w.git(t, "reset", "-q", "--hard", base)
			w.write(t, "-- new_test.go --\n"+header+"var _ testing.TB\n\n"+tt.test+"\n"+tt.more)
			got := run(t, w, Options{Head: "abc", Iteration: 3, PlanIteration: tt.planned, Patch: w.diff(t, base), Baseline: &baseline, Earlier: append([]Past{{1, &first}}, tt.later...)})
			var told, asked []string
			for _, f := range got.Tampered {
				if f.Rule != ruleChanged {
					told = append(told, f.Message)
				}
			}
			for _, c := range got.Changed {
				asked = append(asked, c.Test)
				if Justify(&got, []pipeline.TestChange{{Test: c.Test, Reason: "it is another one now"}}); len(got.Changed) == 1 && len(got.Tampered) > len(told) {
					t.Errorf("the reviewer's reason does not settle %s: %v", c.Test, got.Tampered)
				}
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked about %q, want %q", asked, tt.asked)
			}
			if len(told) != len(tt.want) {
				t.Fatalf("told %q, want %q", told, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(told[i], want) {
					t.Errorf("told %q, want %q", told[i], want)
				}
			}
		})
	}
}

// Covers V6: a test that passed and does not run any more is seen, unless it was taken away.
func TestLost(t *testing.T) {
	t.Parallel()
	before := &pipeline.TestReport{Names: []string{"a/test_a.py::test_one", "a/test_a.py::test_two[1]", "c/test_c.py::test_one", "shop/c.TestSum"}}
	const gone = "diff --git a/c/test_c.py b/c/test_c.py\n--- a/c/test_c.py\n+++ b/c/test_c.py\n@@ -1,2 +1,1 @@\n-def test_one():\n-    assert 1\n+x = 1\n"
	for name, tt := range map[string]struct {
		after pipeline.TestReport
		patch string
		want  []string
	}{
		"all run":          {after: pipeline.TestReport{Names: []string{"a/test_a.py::test_one", "a/test_a.py::test_two[2]", "shop/c.TestSum"}, Failures: []pipeline.Failure{{Test: "c/test_c.py::test_one"}}}},
		"one is hidden":    {after: pipeline.TestReport{Names: []string{"a/test_a.py::test_one", "a/test_a.py::test_two[1]", "shop/c.TestSum"}}, want: []string{"c/test_c.py::test_one"}},
		"it is taken away": {after: pipeline.TestReport{Names: []string{"a/test_a.py::test_one", "a/test_a.py::test_two[1]", "shop/c.TestSum"}}, patch: gone},
		"one moved":        {after: pipeline.TestReport{Names: []string{"a/test_a.py::test_one", "a/test_a.py::test_two[1]", "c/test_c.py::test_one", "shop/sum.TestSum"}}},
		"no build":         {after: pipeline.TestReport{Failures: []pipeline.Failure{{Test: "shop/c [build]", Whole: true}}}},
		"it broke off":     {after: pipeline.TestReport{Unclean: "exit status 2"}},
	} {
		if got := Lost(before, &tt.after, tt.patch); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestTestText(t *testing.T) {
	t.Parallel()
	const py = "import a\n\ndef test_pair():\n    x = a.f(\n        1,\n    )\n    assert x == 1\n\nHELP = 2\n\ndef test_other():\n    assert HELP\n"
	if got, want := TestText("t.py", []byte(py), "test_pair"), "def test_pair():\nx = a.f(\n1,\n)\nassert x == 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const golang = "package x\n\nfunc TestPair(t *testing.T) {\n\tif F() != 1 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestOther(t *testing.T) {}\n"
	if got := TestText("x_test.go", []byte(golang), "TestPair"); !strings.Contains(got, "F() != 1") || strings.Contains(got, "TestOther") {
		t.Errorf("got %q", got)
	}
	if got := TestText("x_test.go", []byte(golang), "TestNone"); got != "" {
		t.Errorf("got %q of a test that is not there", got)
	}
}
