package check

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// What was skipped is named where tests are named as proofs, and nowhere else.
func TestSkipsForProofs(t *testing.T) {
	open := func(_ context.Context, sha string) (Tree, error) {
		var log []string
		return &fakeTree{sha: sha, log: &log, answer: func(*fakeTree, string) (workspace.Result, error) {
			return workspace.Result{Stdout: []byte("TAP version 13\n1..2\nok 1 - a\nok 2 - b # SKIP no\n")}, nil
		}}, nil
	}
	for _, proofs := range [][]string{nil, {"a"}} {
		r, err := Verify(t.Context(), open, Options{Head: "H", Proofs: proofs, Config: config.Tests{Commands: []string{"sh run"}}})
		want := []string{"b"}
		if proofs == nil {
			want = nil
		}
		if err != nil || r.Skipped != 1 || !slices.Equal(r.Skips, want) {
			t.Errorf("proofs %q: skipped %d, named %q, %v; want %q", proofs, r.Skipped, r.Skips, err, want)
		}
	}
}

// repo is a directory with a history, and an Opener of its commits without a sandbox: what
// runs in it is the tests' own.
type repo struct {
	*dirWorkspace
	opened []string
}

// commitTree is a tree of one commit.
type commitTree struct {
	*dirWorkspace
	t *testing.T
}

func (c commitTree) Close() error { return nil }

func (c commitTree) Write(_ context.Context, name string, content []byte) error {
	return os.WriteFile(filepath.Join(c.dir, name), content, 0o644)
}

func (c commitTree) Restore(_ context.Context, sha string, paths []string) error {
	for _, name := range paths {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			return err
		}
		if c.git(c.t, "ls-tree", sha, "--", name) != "" {
			c.git(c.t, "checkout", sha, "--", name)
		}
	}
	return nil
}

func (r *repo) open(t *testing.T) Opener {
	return func(_ context.Context, sha string) (Tree, error) {
		r.opened = append(r.opened, sha)
		w := &dirWorkspace{dir: t.TempDir(), path: r.path}
		w.git(t, "clone", "-q", r.dir, ".")
		w.git(t, "checkout", "-q", sha)
		return commitTree{w, t}, nil
	}
}

// tried judges a change, and returns what is known of the proofs.
func tried(t *testing.T, base, head string, proofs ...string) (pipeline.TestReport, int) {
	t.Helper()
	r := &repo{dirWorkspace: newWorkspace(t, base)}
	o := Options{Config: defaults, Base: r.commit(t), Proofs: proofs, Iteration: 1}
	tree, err := r.open(t)(t.Context(), o.Base)
	if err != nil {
		t.Fatal(err)
	}
	before, err := Run(t.Context(), tree, Options{Config: defaults, Head: o.Base})
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, head)
	o.Patch = r.diff(t, o.Base)
	o.Head, o.Baseline = r.commit(t), &before
	r.opened = nil
	got, err := Verify(t.Context(), r.open(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Failures) > 0 || got.Unclean != "" || got.Passed == 0 {
		t.Fatalf("the head fails: %+v", got)
	}
	return got, len(r.opened)
}

const (
	goBase = "-- go.mod --\nmodule example.com/m\n\ngo 1.21\n-- m.go --\npackage m\n\nfunc Add(a, b int) int { return a }\n" +
		"-- m_test.go --\npackage m\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif Add(1, 0) != 1 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestStays(t *testing.T) {\n\tif Add(2, 0) != 2 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestMoves(t *testing.T) {\n\tif Add(3, 0) != 3 {\n\t\tt.Fatal()\n\t}\n}\n"
	goHead = "-- m.go --\npackage m\n\nfunc Add(a, b int) int { return a + b }\nMORE" +
		"-- m_test.go --\npackage m\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif Add(1, 0) != 1 EXTENDED {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestStays(t *testing.T) {\n\tif Add(2, 0) != 2 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestMoved(t *testing.T) {\n\tif Add(3, 0) != 3 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestEmpty(t *testing.T) {}\n\n" +
		"func TestFive(t *testing.T) {\n\tt.Run(\"five\", func(t *testing.T) {\n\t\tif Add(2, 3) != 5 {\n\t\t\tt.Fatal()\n\t\t}\n\t})\n}\n"
)

// The head's tests, on the product code of the base: a new test that passes there shows
// nothing, nor does one that is only renamed; one that the change extends fails.
func TestTrialGo(t *testing.T) {
	need(t, "go")
	all := []string{"TestZero", "TestStays", "TestMoved", "TestEmpty", "TestFive"}
	head := strings.NewReplacer("MORE", "", "EXTENDED", "|| Add(1, 1) != 2").Replace(goHead)
	r, with := tried(t, goBase, head, all...)
	if r.Trial == nil {
		t.Fatal("no trial")
	}
	const m = "example.com/m."
	if want := []string{m + "TestFive", m + "TestFive/five", m + "TestZero"}; !slices.Equal(r.Trial.Fails, want) {
		t.Errorf("fail without the change: %q, want %q", r.Trial.Fails, want)
	}
	if want := []string{m + "TestEmpty", m + "TestMoved", m + "TestStays"}; !slices.Equal(r.Trial.Passes, want) {
		t.Errorf("pass without the change: %q, want %q", r.Trial.Passes, want)
	}
	if r, without := tried(t, goBase, head); r.Trial != nil || without != with-1 {
		t.Errorf("no test is named: trial %+v, %d trees, with proofs %d", r.Trial, without, with)
	}
}

// Tests that do not load without the change fail without it, except those of the base
// whose text is what it was.
func TestTrialNotLoaded(t *testing.T) {
	need(t, "go")
	r, _ := tried(t, goBase, strings.NewReplacer("MORE", "\nfunc Sub(a, b int) int { return a - b }\n", "EXTENDED", "|| Sub(1, 1) != 0").Replace(goHead), "TestZero", "TestStays", "TestFive")
	const m = "example.com/m."
	if want := []string{m + "TestFive", m + "TestFive/five", m + "TestZero"}; r.Trial == nil || !slices.Equal(r.Trial.Fails, want) || !slices.Equal(r.Trial.Passes, []string{m + "TestStays"}) {
		t.Errorf("%+v, want to fail %q", r.Trial, want)
	}
}

// Covers the same of Python.
func TestTrialPython(t *testing.T) {
	need(t, "python3")
	const base = "-- calc.py --\ndef add(a, b):\n    return a\n-- test_calc.py --\nimport unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(calc.add(1, 0), 1)\n"
	const head = "-- calc.py --\ndef add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n-- test_calc.py --\nimport unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(calc.add(1, 0), 1)\n        self.assertEqual(calc.add(1, 1), 2)\n\n    def test_true(self):\n        assert True\n" +
		"-- test_sub.py --\nimport unittest\nfrom calc import sub\n\n\nclass S(unittest.TestCase):\n    def test_sub(self):\n        self.assertEqual(sub(1, 1), 0)\n"
	r, _ := tried(t, base, head, "test_zero", "test_true", "test_sub")
	ends := func(tests []string, names ...string) bool {
		return len(tests) == len(names) && !slices.ContainsFunc(names, func(n string) bool {
			return !slices.ContainsFunc(tests, func(test string) bool { return strings.HasSuffix(test, n) })
		})
	}
	if r.Trial == nil || !ends(r.Trial.Fails, "test_zero", "test_sub") || !ends(r.Trial.Passes, "test_true") {
		t.Errorf("%+v", r.Trial)
	}
}
