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
	t.Parallel()
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

// commits are the files of some commits.
type commits map[string]map[string]string

// commitTree is a tree of one of them.
type commitTree struct {
	*dirWorkspace
	of commits
}

func (c commitTree) Close() error { return nil }

func (c commitTree) Write(_ context.Context, name string, content []byte) error {
	return os.WriteFile(filepath.Join(c.dir, name), content, 0o644)
}

func (c commitTree) Restore(_ context.Context, sha string, paths []string) error {
	for _, name := range paths {
		text, there := c.of[sha][name]
		if !there {
			if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
				return err
			}
		} else if err := c.put(map[string]string{name: text}); err != nil {
			return err
		}
	}
	return nil
}

// open is an Opener of the commits; what runs in their trees is the tests' own.
func (of commits) open(t *testing.T, opened *int) Opener {
	return func(_ context.Context, sha string) (Tree, error) {
		*opened++
		w := workspaceIn(t)
		return commitTree{w, of}, w.put(of[sha])
	}
}

// tried judges a change, and returns what is known of the proofs.
func tried(t *testing.T, base, head string, proofs ...string) (r pipeline.TestReport, opened int) {
	t.Helper()
	of := commits{"base": filesOf(base), "head": filesOf(base, head)}
	open := of.open(t, &opened)
	tree, err := open(t.Context(), "base")
	if err != nil {
		t.Fatal(err)
	}
	before, err := Run(t.Context(), tree, Options{Config: defaults, Head: "base"})
	if err != nil {
		t.Fatal(err)
	}
	opened = 0
	r, err = Verify(t.Context(), open, Options{Config: defaults, Base: "base", Head: "head", Patch: patchOf(t, of["base"], of["head"]),
		Baseline: &before, Proofs: proofs, Iteration: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 || r.Unclean != "" || r.Passed == 0 {
		t.Fatalf("the head fails: %+v", r)
	}
	return r, opened
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
	t.Parallel()
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
	t.Parallel()
	r, _ := tried(t, goBase, strings.NewReplacer("MORE", "\nfunc Sub(a, b int) int { return a - b }\n", "EXTENDED", "|| Sub(1, 1) != 0").Replace(goHead), "TestZero", "TestStays", "TestFive")
	const m = "example.com/m."
	if want := []string{m + "TestFive", m + "TestFive/five", m + "TestZero"}; r.Trial == nil || !slices.Equal(r.Trial.Fails, want) || !slices.Equal(r.Trial.Passes, []string{m + "TestStays"}) {
		t.Errorf("%+v, want to fail %q", r.Trial, want)
	}
}

// Covers the same of Python.
func TestTrialPython(t *testing.T) {
	t.Parallel()
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
