package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ends are the ways in which a test can end in one run; "" is not at all.
var ends = []status{passed, flaky, failed, skipped, ""}

// ended is what became of a test in three runs.
type ended struct {
	name              string
	base, stood, head status
}

func drawEnded(t *rapid.T) []ended {
	var out []ended
	for i := range rapid.IntRange(0, 8).Draw(t, "tests") {
		shape := rapid.SampledFrom([]string{"m/p%d.TestX%d", "t/test_%d.py::test_x%d", "t/test_%d.py::C::test_y%d[1-2]", "a%d.js > group > does things %d", "t.m%d.C.test_z%d (i=1)", "m/p%d.TestT%d/case"}).Draw(t, "shape")
		out = append(out, ended{fmt.Sprintf(shape, i%3, i), rapid.SampledFrom([]status{passed, failed, ""}).Draw(t, "base"), rapid.SampledFrom(ends).Draw(t, "stood"), rapid.SampledFrom(ends).Draw(t, "head")})
	}
	return out
}

func cases(tests []ended, of func(ended) status) []testcase {
	var out []testcase
	for _, e := range tests {
		if st := of(e); st != "" {
			out = append(out, testcase{name: e.name, status: st, err: "wrong"})
		}
	}
	return out
}

// compared sets the base's tests as they stood against the head's own run.
func compared(tests []ended, stoodCases, headCases []testcase) *checker {
	b := &pipeline.TestReport{}
	for _, e := range tests {
		switch e.base {
		case passed:
			b.Names = append(b.Names, e.name)
			b.Passed++
		case failed:
			b.Failures = append(b.Failures, (&testcase{name: e.name, status: failed, err: "wrong"}).failure())
		}
	}
	slices.Sort(b.Names)
	c := &checker{patch: &patch{}, o: Options{Baseline: b}, base: baseFailures(b), suites: []*suite{{result: result{cases: headCases}}}}
	c.stood = &stood{cases: stoodCases, tests: outcomes(stoodCases)}
	c.report.Changed = c.changed()
	c.report.Tampered = c.tampered()
	return c
}

func changedNames(c *checker) []string {
	var out []string
	for _, change := range c.report.Changed {
		out = append(out, change.Test)
	}
	slices.Sort(out)
	return out
}

// Covers T8: the comparison never gives way, whatever the three runs say.
func TestComparison(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tests := drawEnded(t)
		stoodCases, headCases := cases(tests, func(e ended) status { return e.stood }), cases(tests, func(e ended) status { return e.head })
		c := compared(tests, stoodCases, headCases)
		changed := changedNames(c)
		said := ""
		for _, f := range c.report.Tampered {
			said += f.Message + "\n"
		}
		ok := func(s status) bool { return s == passed || s == flaky }
		for _, e := range tests {
			is := slices.Contains(changed, e.name)
			if is && (ok(e.stood) || e.head == failed) {
				t.Errorf("%+v is told as changed", e)
			}
			if e.stood == failed && ok(e.head) && !is {
				t.Errorf("%+v passes only as it was edited, and is not told", e)
			}
			if e.base == passed && !ok(e.stood) && ok(e.head) && !is {
				t.Errorf("%+v does not pass as it stood, and is not told", e)
			}
			if e.base != "" && (e.head == "" || e.head == skipped) && !is && len(c.report.Tampered) < maxTampered && !strings.Contains(said, e.name) {
				t.Errorf("%+v is lost, and is not told:\n%s", e, said)
			}
		}
		if len(changed) > 0 && len(c.report.Tampered) == 0 {
			t.Errorf("%q changed without a reason, and nothing is found", changed)
		}

		same := compared(tests, headCases, headCases)
		if got := changedNames(same); len(got) > 0 {
			t.Errorf("the same run twice: %q changed", got)
		}
		turned := changedNames(compared(tests, headCases, stoodCases))
		for _, name := range changed {
			if i := slices.IndexFunc(tests, func(e ended) bool { return e.name == name }); slices.Contains(turned, name) && ok(tests[i].head) {
				t.Errorf("%+v changed from either side", tests[i])
			}
		}
		if again := compared(tests, rapid.Permutation(stoodCases).Draw(t, "stood order"), rapid.Permutation(headCases).Draw(t, "head order")); !slices.Equal(changedNames(again), changed) {
			t.Errorf("changed %q, and in another order %q", changed, changedNames(again))
		}
		justified(t, c)
	})
}

// justified holds that a reason settles a change, each its own, and nothing else: not
// that a test of what is still there is not run any more.
func justified(t *rapid.T, c *checker) {
	r := c.report
	before := r.Tampered
	Justify(&r, nil)
	if d := cmp.Diff(before, r.Tampered); d != "" {
		t.Errorf("without reasons the findings differ:\n%s", d)
	}
	reasons := slices.Clone(r.Changed)
	for i := range reasons {
		reasons[i].Reason = "because"
	}
	Justify(&r, append(reasons, pipeline.TestChange{Test: "another", Reason: "because"}))
	var left, want []string
	for _, f := range r.Tampered {
		if f.Rule == ruleChanged {
			left = append(left, strings.Split(f.Code, "\n")...)
		}
	}
	for _, c := range r.Changed {
		if dropped(c, r.Names) {
			want = append(want, c.Test)
		}
	}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) && len(r.Tampered) < maxTampered {
		t.Errorf("each has its reason, and these stay: %q, want %q", left, want)
	}
	if len(r.Changed) != len(reasons) || slices.ContainsFunc(r.Changed, func(c pipeline.TestChange) bool { return c.Reason != "because" }) {
		t.Errorf("reasons %+v", r.Changed)
	}
}

// A blank reason is none.
func TestJustifyBlank(t *testing.T) {
	t.Parallel()
	c := compared([]ended{{"m.TestA", passed, failed, passed}}, []testcase{{name: "m.TestA", status: failed, err: "one\ntwo"}}, []testcase{{name: "m.TestA", status: passed}})
	r := c.report
	Justify(&r, []pipeline.TestChange{{Test: "m.TestA", Reason: " \n"}})
	if len(r.Tampered) != 1 || r.Tampered[0].Rule != ruleChanged || !strings.Contains(r.Tampered[0].Message, "As they stood: one.") {
		t.Errorf("findings %+v", r.Tampered)
	}
}

// A test whose cases failed is told by them; a planted one not at all.
func TestComparisonOfTables(t *testing.T) {
	t.Parallel()
	stoodCases := []testcase{{name: "m.TestA", status: carrier}, {name: "m.TestA/x", status: failed, err: "x is wrong"}, {name: "m.TestA/y", status: passed}}
	headCases := []testcase{{name: "m.TestA", status: passed}, {name: "m.TestA/x", status: passed}, {name: "m.TestA/y", status: passed}}
	c := compared([]ended{{"m.TestA", passed, "", ""}, {"m.TestA/x", passed, "", ""}, {"m.TestA/y", passed, "", ""}}, stoodCases, headCases)
	if got := changedNames(c); !slices.Equal(got, []string{"m.TestA/x"}) {
		t.Errorf("changed %q, want the case alone", got)
	}
}

// More changes than anybody reads are counted.
func TestChangedCap(t *testing.T) {
	t.Parallel()
	var tests []ended
	for i := range maxChanged + 50 {
		tests = append(tests, ended{fmt.Sprintf("m.TestA%03d", i), passed, failed, passed})
	}
	c := compared(tests, cases(tests, func(e ended) status { return e.stood }), cases(tests, func(e ended) status { return e.head }))
	if n := len(c.report.Changed); n != maxChanged || c.report.Changed[n-1].Test != "51 more tests" {
		t.Errorf("%d changes, the last %+v", n, c.report.Changed[n-1])
	}
	if len(c.report.Tampered) == 0 {
		t.Error("nothing is found")
	}
}

// fakeTree is a tree whose commands are answered by a function; "-" in files is a
// file that is not there.
type fakeTree struct {
	sha    string
	files  map[string]string
	log    *[]string
	answer func(t *fakeTree, line string) (workspace.Result, error)
}

func (f *fakeTree) List(context.Context, string) ([]string, error) { return nil, nil }

func (f *fakeTree) Read(_ context.Context, name string) ([]byte, error) {
	if text, ok := f.files[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (f *fakeTree) Write(_ context.Context, name string, content []byte) error {
	f.files[name] = string(content)
	*f.log = append(*f.log, "write "+name)
	return nil
}

func (f *fakeTree) Restore(_ context.Context, sha string, paths []string) error {
	*f.log = append(*f.log, "restore "+sha+" "+strings.Join(paths, " "))
	return nil
}

func (f *fakeTree) Close() error {
	*f.log = append(*f.log, "close")
	return nil
}

func (f *fakeTree) Run(_ context.Context, c workspace.Command) (workspace.Result, error) {
	line := strings.Join(c.Args, " ")
	if !isTesting(c) || strings.Contains(line, "command -v") {
		return workspace.Result{Stdout: []byte("/work\n")}, nil
	}
	*f.log = append(*f.log, line)
	return f.answer(f, line)
}

// Covers T8: an environment that lacks something for the base's tests alone is no
// fault of the run, for the head's tests were run; a sandbox that is gone is.
func TestVerifyFaults(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/test_a.py b/test_a.py\n--- a/test_a.py\n+++ b/test_a.py\n@@ -1 +1 @@\n-assert f() == 1\n+assert f() == 2\n"
	tap := workspace.Result{Stdout: []byte("TAP version 13\n1..1\nok 1 - a\n")}
	gone := errors.New("the worker is gone")
	for _, c := range []struct {
		what   string
		second workspace.Result
		err    error
		want   string
	}{
		{"passes", tap, nil, ""},
		{"a program is missing", workspace.Result{Exit: 127, Stderr: []byte("sh: 1: special: not found")}, nil, "changed all tests of the base: `sh run` could not run: needs `special` on the server"},
		{"the worker is gone", workspace.Result{}, gone, "error: run sh run: the worker is gone"},
	} {
		var log []string
		opened := 0
		open := func(_ context.Context, sha string) (Tree, error) {
			opened++
			second := opened == 2
			return &fakeTree{sha: sha, log: &log, files: map[string]string{"test_a.py": "assert f() == 2\n"}, answer: func(*fakeTree, string) (workspace.Result, error) {
				if second {
					return c.second, c.err
				}
				return tap, nil
			}}, nil
		}
		baseline := &pipeline.TestReport{Names: []string{"a"}, Passed: 1}
		r, err := Verify(t.Context(), open, Options{Base: "B", Head: "H", Patch: patch, Baseline: baseline, Config: config.Tests{Commands: []string{"sh run"}}})
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		}
		for _, change := range r.Changed {
			got += "changed " + change.Test + ": " + change.Error
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if err == nil && r.OK() != (c.want == "") {
			t.Errorf("%s: OK %v", c.what, r.OK())
		}
		if !slices.Contains(log, "restore B test_a.py") || strings.Count(strings.Join(log, "\n"), "close") != opened {
			t.Errorf("%s: %d opened; what was done: %q", c.what, opened, log)
		}
	}
}

// Where the change touches nothing that tests consist of, the second run is spared.
func TestVerifyOnce(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]int{"calc.py": 1, "README.md": 1, "test_calc.py": 2, "conftest.py": 2} {
		var log []string
		opened := 0
		open := func(_ context.Context, sha string) (Tree, error) {
			opened++
			return &fakeTree{sha: sha, log: &log, files: map[string]string{file: "x = 1\n"}, answer: func(*fakeTree, string) (workspace.Result, error) {
				return workspace.Result{Stdout: []byte("TAP version 13\n1..1\nok 1 - a\n")}, nil
			}}, nil
		}
		patch := strings.ReplaceAll("diff --git a/F b/F\n--- a/F\n+++ b/F\n@@ -1 +1 @@\n-x = 0\n+x = 1\n", "F", file)
		r, err := Verify(t.Context(), open, Options{Base: "B", Head: "H", Patch: patch, Baseline: &pipeline.TestReport{Names: []string{"a"}, Passed: 1}, Config: config.Tests{Commands: []string{"sh run"}}})
		if err != nil || opened != want || !r.OK() {
			t.Errorf("%s: %d trees opened, want %d; %v, %v", file, opened, want, err, told(&r))
		}
	}
}

// A change of nothing is told, where there must be one.
func TestVerifyNothing(t *testing.T) {
	t.Parallel()
	for _, may := range []bool{false, true} {
		var log []string
		open := func(_ context.Context, sha string) (Tree, error) {
			return &fakeTree{sha: sha, log: &log, answer: func(*fakeTree, string) (workspace.Result, error) {
				return workspace.Result{Stdout: []byte("TAP version 13\n1..1\nok 1 - a\n")}, nil
			}}, nil
		}
		r, err := Verify(t.Context(), open, Options{Base: "B", Head: "H", MayBeEmpty: may, Baseline: &pipeline.TestReport{Names: []string{"a"}, Passed: 1}, Config: config.Tests{Commands: []string{"sh run"}}})
		if err != nil || r.OK() != may || !may && !strings.Contains(told(&r)[0], "tampered change.empty") {
			t.Errorf("it may be empty: %v; %q, %v", may, told(&r), err)
		}
	}
}

// Only the packages whose test files the change touches are run again, where that
// is sure to be enough.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		edits []string
		want  []string
	}{
		{[]string{"a/a_test.go", "b/b_test.go", "a/c_test.go"}, []string{"a", "b"}},
		{[]string{"a_test.go"}, []string{"."}},
		{[]string{"a/a_test.go", "a/testdata/x"}, nil},
		{[]string{"a/a_test.go", "testutil/x.go"}, nil},
		{nil, nil},
	} {
		v := &verdict{head: &checker{modules: []goModule{{path: "example.com/m"}}}}
		for _, e := range c.edits {
			v.edits = append(v.edits, edit{name: e, role: testSource})
		}
		if got := v.packages(); !slices.Equal(got, c.want) {
			t.Errorf("%q: packages %q, want %q", c.edits, got, c.want)
		}
	}
	s := &suite{dir: ".", format: formatGo, args: []string{"go", "test", "-failfast", "./..."}}
	c := &checker{bare: true, narrow: []string{".", "a/b", "sub/x"}, modules: []goModule{{path: "m"}, {path: "m/sub", dir: "/sub"}}}
	if got := c.bareArgs(s); !slices.Equal(got, []string{"go", "test", "./.", "./a/b"}) {
		t.Errorf("command %q", got)
	}
	s.dir = "sub"
	if got := c.bareArgs(s); !slices.Equal(got, []string{"go", "test", "./x"}) {
		t.Errorf("command in the nested module %q", got)
	}
	c.narrow = []string{"a"}
	if c.concerns(s) {
		t.Error("the nested module is run for a package that it does not have")
	}
}

// Of a run for some files of tests, suites of Python are run for theirs, and those of Go for none of Python.
func TestAmong(t *testing.T) {
	t.Parallel()
	py := &suite{dir: "web", pytest: true, format: formatJUnit, args: []string{"pytest"}}
	gotest := &suite{dir: ".", format: formatGo, args: []string{"go", "test", "./..."}}
	c := &checker{bare: true, among: []string{"web/tests/test_a.py", "api/test_b.py"}}
	if got := c.bareArgs(py); !slices.Equal(got, []string{"pytest", "--maxfail=0", "--continue-on-collection-errors", "tests/test_a.py"}) {
		t.Errorf("command %q", got)
	}
	if !c.concerns(py) || c.concerns(gotest) {
		t.Error("Python's suite is not run, or Go's is")
	}
	c.among = []string{"a_test.go"}
	if c.concerns(py) || !c.concerns(gotest) {
		t.Error("Python's suite is run, or Go's is not")
	}
	if c.among = nil; !c.concerns(py) || !c.concerns(gotest) {
		t.Error("a whole run leaves one out")
	}
}

func TestGoParts(t *testing.T) {
	t.Parallel()
	const source = "package p\n\nimport (\n\t\"testing\"\n\n\tq \"example.com/q\"\n)\n\n// one is shared.\nconst one = 1\n\nfunc TestA(t *testing.T) {\n\tif one != 1 {\n\t\tt.Fatal(one)\n\t}\n}\n\nfunc TestB(t *testing.T) { q.Check(t) }\n\nfunc help() int {\n\treturn 1\n}\n"
	tests, rest := goParts([]byte(source))
	if got := slices.Sorted(maps.Keys(tests)); !slices.Equal(got, []string{"TestA", "TestB"}) || !strings.Contains(tests["TestA"], "t.Fatal(one)") || strings.Contains(tests["TestB"], "help") {
		t.Errorf("tests %q", tests)
	}
	if want := "package p\nq \"example.com/q\"\nconst one = 1\nfunc help() int {\nreturn 1\n}\n"; rest != want {
		t.Errorf("rest %q, want %q", rest, want)
	}
	for what, c := range map[string]struct {
		text string
		same bool
	}{
		"an import of the standard library": {strings.Replace(source, "\"testing\"\n", "\"os\"\n\t\"testing\"\n", 1), true},
		"another test":                      {source + "func TestC(t *testing.T) {}\n", true},
		"a comment":                         {strings.Replace(source, "shared", "for all", 1), true},
		"another library by the same name":  {strings.Replace(source, "example.com/q", "example.com/r", 1), false},
		"a helper":                          {strings.Replace(source, "return 1", "return 2", 1), false},
		"a directive":                       {"//go:build never\n\n" + source, false},
		"an init":                           {source + "func init() { one() }\n", false},
	} {
		if _, got := goParts([]byte(c.text)); (got == rest) != c.same {
			t.Errorf("%s: the rest is the same: %v, want %v", what, got == rest, c.same)
		}
	}
}

// Covers S30: whatever a patch and the files under it are like, they are sorted
// out without giving way.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(sumPatch), []byte("package x\n"))
	f.Add([]byte("diff --git a/a_test.go b/b_test.go\nsimilarity index 90%\nrename from a_test.go\nrename to b_test.go\n--- a/a_test.go\n+++ b/b_test.go\n@@ -1,2 +1,2 @@\n-func TestA(t *testing.T) {\n+func TestB(t *testing.T) {\n \tt.Error(1)\n"), []byte("func TestB(t *testing.T) {\n\tt.Error(1)\n"))
	f.Add([]byte("diff --git a/package.json b/package.json\n--- a/package.json\n+++ b/package.json\n@@ -1 +1 @@\n-{\"scripts\":{}}\n+{\"scripts\":{\"test\":\"x\"}}\n"), []byte("{\"scripts\":{\"test\":\"x\"}}\n"))
	f.Add([]byte("diff --git a/pyproject.toml b/pyproject.toml\n--- a/pyproject.toml\n+++ b/pyproject.toml\n@@ -1 +1,2 @@\n [tool.pytest]\n+x = 1\n"), []byte("[tool.pytest]\nx = 1\n"))
	f.Add([]byte(newFile("a.py", "def __eq__(self, o):", "    return True", "import pytest")), []byte("def test_a():\n    pass\n"))
	f.Fuzz(func(t *testing.T, diff, file []byte) {
		p, err := parsePatch(string(diff))
		if err != nil {
			return
		}
		read := func(string) ([]byte, bool) { return file, true }
		edits := p.edits(read, nil, true)
		isTest := map[string]bool{}
		for _, e := range edits {
			isTest[e.name] = true
			goParts(e.before)
			goParts(e.now)
		}
		p.weakened()
		c := &checker{patch: p, o: Options{Baseline: &pipeline.TestReport{Names: []string{"a.py::a.f", "m.TestA"}}}}
		c.inside = c.editedInside(isTest, read)
		c.stood = &stood{tests: map[string]outcome{"m.TestA": {status: failed, err: "x"}}}
		c.edits = edits
		c.report.Changed = c.changed()
		for _, finding := range c.tampered() {
			if finding.Message == "" || finding.Rule == "" || finding.Fingerprint == "" {
				t.Errorf("finding %+v", finding)
			}
		}
		for _, f := range p.files {
			mutated(f, file)
		}
	})
}

// Of examples in the code those are named that were edited, also where they failed before.
func TestEditedExamples(t *testing.T) {
	t.Parallel()
	const source = "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, 2)\n    -1\n    \"\"\"\n    return a - b\n\n\ndef mul(a, b):\n    \"\"\"\n    >>> mul(1, 2)\n    2\n    \"\"\"\n    return a * b\n"
	p, err := parsePatch("diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -4,2 +4,2 @@\n     >>> add(1, 2)\n-    3\n+    -1\n")
	if err != nil {
		t.Fatal(err)
	}
	b := &pipeline.TestReport{Names: []string{"calc.py::calc.mul"}, Failures: []pipeline.Failure{{Test: "calc.py::calc.add"}}}
	c := &checker{patch: p, o: Options{Baseline: b}, base: baseFailures(b)}
	got := c.editedInside(nil, func(string) ([]byte, bool) { return []byte(source), true })
	if len(got) != 1 || got[0].Test != "calc.py::calc.add" {
		t.Errorf("%+v, want add's alone", got)
	}
}

// told lists what a report says, a line each.
func told(r *pipeline.TestReport) []string {
	var out []string
	for _, f := range r.Failures {
		out = append(out, "failed "+f.Test+": "+f.Error)
	}
	for _, f := range r.Before {
		out = append(out, "before "+f.Test+": "+f.Error)
	}
	for _, f := range r.Changed {
		out = append(out, fmt.Sprintf("changed %s %s: %s %q", f.Now, f.Test, f.Error, f.Files))
	}
	for _, f := range r.Tampered {
		out = append(out, fmt.Sprintf("tampered %s %s:%d %s", f.Rule, f.File, f.Line, f.Message))
	}
	if r.Unclean != "" {
		out = append(out, "unclean "+r.Unclean)
	}
	if r.None != "" {
		out = append(out, "none "+r.None)
	}
	return out
}
