package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoleOf(t *testing.T) {
	t.Parallel()
	for want, names := range map[role][]string{
		testSource: {"a_test.go", "pkg/testutil/check.go", "mocks/store.go", "mock_store.go", "tests/test_a.py", "test_a.py", "a_test.py", "app/tests.py", "tests/helpers.py", "test/calc.test.js",
			"src/calc.spec.ts", "__tests__/a.js", "src/__mocks__/fs.js", "test/helper.js", "spec/a_spec.rb", "src/test/java/ATest.java", "Calc.Tests/CalcTests.cs", "tests/it.rs", "test_helper.exs", "test-utils.ts", "test-sum.js"},
		testData: {"testdata/a.golden", "pkg/testdata/src/a.go", "tests/data/rows.json", "test/fixtures/sums.json", "__snapshots__/a.snap", "spec/fixtures/a.yml", "tests/data/notes.md", "x.snap", "fixtures/seed.sql"},
		runner: {"conftest.py", "tests/conftest.py", "pytest.ini", "tox.ini", ".coveragerc", "noxfile.py", "sitecustomize.py", "jest.config.js", "jest.setup.ts", "setupTests.js", "vitest.config.mts", "vite.config.ts",
			".mocharc.yml", ".npmrc", ".env.test", ".env.test.local", "phpunit.xml.dist", ".rspec", "run_tests.sh", "scripts/run-tests.sh", "test.sh", "babel.config.js",
			"pytest.py", "unittest/__init__.py", "_pytest/runner.py", "json.py", "traceback.py", "node_modules/chai/index.js", "node_modules/.bin/jest", "vendor/github.com/stretchr/testify/assert/assertions.go",
			"lib/minitest/fast_plugin.rb", "lib/minitest.rb", "lib/rspec/expectations/handler.rb", "src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener", ".cargo/config.toml"},
		mixed: {"package.json", "web/package.json", "pyproject.toml", "setup.cfg"},
		product: {"calc.go", "testing.go", "test/e2e.go", "spec/openapi.yaml", "specs/design.go", "fixtures/load.go", "src/json.py", "mock/README.md", "tests/README.md", "README.md", "docs/testing.md",
			"latest.py", "contest.js", "src/attest.ts", "node_modules/left-pad/index.js", "vendor/example.com/x/x.go", "Makefile", "go.mod", "server.js", "snapshot.py", "lib/fixture.rs", "lib/minitest/pretty.rb", "lib/rspec/json.rb",
			"META-INF/services/com.example.Plugin"},
	} {
		for _, name := range names {
			if got := roleOf(name); got != want {
				t.Errorf("roleOf(%q) = %d, want %d", name, got, want)
			}
		}
	}
}

// What the commands go through is about tests, what they merely name may be the
// product; and a helper is told by what it imports and how it is called.
func TestEdits(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, `
-- Makefile --
test:
	sh scripts/check.sh
-- scripts/check.sh --
true
-- tool.py --
print(1)
-- helpers.py --
import pytest
-- plugin.py --
import pytest
-- assertions.js --
const { expect } = require('chai');
-- internal/helper.go --
package internal

import "testing"
-- old_test.go --
package x
-- gone_test.go --
package x

func TestA(t *testing.T) {}
-- package.json --
{"scripts": {"test": "node --test"}}
-- deps/package.json --
{"name": "deps"}
`)
	base := w.commit(t)
	w.git(t, "mv", "old_test.go", "new_test.go")
	w.git(t, "rm", "-q", "gone_test.go")
	w.write(t, "-- Makefile --\ntest:\n\ttrue\n-- scripts/check.sh --\nfalse\n-- tool.py --\nprint(2)\n-- helpers.py --\nimport pytest, os\n-- plugin.py --\nimport pytest, os\n-- assertions.js --\nconst expect = 1;\n"+
		"-- internal/helper.go --\npackage internal\n-- conftest.py --\nx = 1\n-- package.json --\n{\"scripts\": {\"test\": \"true\"}, \"version\": \"2\"}\n-- deps/package.json --\n{\"name\": \"deps\", \"version\": \"2\"}\n")
	p, err := parsePatch(w.diff(t, base))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) ([]byte, bool) {
		data, err := w.Read(t.Context(), name)
		return data, err == nil
	}
	var got []string
	for _, e := range p.edits(read, map[string]bool{"scripts/check.sh": true}, true) {
		line := e.name
		if e.added {
			line += " added"
		}
		if e.merged != nil {
			line += " = " + strings.Join(strings.Fields(string(e.merged)), " ")
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := []string{"Makefile", "assertions.js", "conftest.py added", "gone_test.go", "helpers.py", "internal/helper.go", "new_test.go added", "old_test.go",
		`package.json = { "scripts": { "test": "node --test" }, "version": "2" }`, "scripts/check.sh"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("edits (-want +got):\n%s", d)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, name, before, head, want string // want "=": the head's file as it is; "base": the base's as a whole
	}{
		{"a dependency", "package.json", `{"scripts":{"test":"jest"},"jest":{"bail":1}}`, `{"jest":{"bail":1},"scripts":{"test":"jest"},"dependencies":{"a":"1"}}`, "="},
		{"a script beside", "package.json", `{"scripts":{"test":"jest"}}`, `{"scripts":{"test":"jest","lint":"eslint"}}`, "="},
		{"a hook", "package.json", `{"scripts":{"test":"jest"}}`, `{"scripts":{"test":"jest","pretest":"x"}}`, `{"scripts":{"test":"jest"}}`},
		{"another command", "package.json", `{"scripts":{"test":"jest"}}`, `{"scripts":{"test":"true","lint":"eslint"},"version":"2"}`, `{"scripts":{"lint":"eslint","test":"jest"},"version":"2"}`},
		{"settings of jest", "package.json", `{}`, `{"jest":{"setupFiles":["./x"]}}`, `{}`},
		{"no JSON", "package.json", `{}`, `{`, "base"},
		{"new", "package.json", ``, `{"scripts":{"test":"true"},"name":"x"}`, `{"name":"x"}`},
		{"a version", "pyproject.toml", "[project]\nversion = \"1\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n", "[project]\nversion = \"2\"\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n", "="},
		{"other options", "pyproject.toml", "[project]\nversion = \"1\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n", "[tool.pytest.ini_options]\naddopts = \"-k x\"\n[project]\nversion = \"2\"", "[project]\nversion = \"2\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n"},
		{"options in another way", "pyproject.toml", "[project]\n", "[project]\n[tool]\npytest.ini_options.addopts = \"-k x\"\n", "base"},
		{"coverage", "setup.cfg", "[metadata]\nname = x\n[coverage:run]\nbranch = 1\n", "[metadata]\nname = y\n[tool:pytest]\naddopts = -k x\n", "[metadata]\nname = y\n[coverage:run]\nbranch = 1\n"},
		{"nothing about tests", "setup.cfg", "[metadata]\nname = x\n", "[metadata]\nname = y\n", "="},
	} {
		merged, same := merge(c.name, []byte(c.before), []byte(c.head))
		got := string(merged)
		if c.name == "package.json" && merged != nil {
			got = strings.Join(strings.Fields(got), "")
		}
		switch {
		case same:
			got = "="
		case merged == nil:
			got = "base"
		}
		if got != c.want {
			t.Errorf("%s: merge(%q, %q) = %q, want %q", c.what, c.before, c.head, got, c.want)
		}
	}
}

// The text before a change is what git had, whatever the change.
func TestTextBefore(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "-- a.txt --\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n-- gone.txt --\nx\n-- tail.txt --\nno end -- moved.txt --\na\nb\nc\nd\ne\n")
	w.write(t, "-- moved.txt --\na\nb\nc\nd\ne\nf\ng\n")
	base := w.commit(t)
	before := map[string]string{"a.txt": w.git(t, "show", base+":a.txt"), "gone.txt": "x\n", "tail.txt": w.git(t, "show", base+":tail.txt"), "moved.txt": w.git(t, "show", base+":moved.txt")}
	w.git(t, "mv", "moved.txt", "there.txt")
	w.git(t, "rm", "-q", "gone.txt")
	w.write(t, "-- a.txt --\nzero\none\nthree\nfour\nfive\nsix\nSEVEN\neight\nnine\n-- tail.txt --\nan end\n-- there.txt --\na\nb\nc\nd\ne\nF\ng\n-- new.txt --\nnew\n")
	p, err := parsePatch(w.diff(t, base))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range p.files {
		got := textBefore(f, func(name string) ([]byte, bool) {
			data, err := w.Read(t.Context(), name)
			return data, err == nil
		})
		if f.IsNew {
			if got != nil {
				t.Errorf("%s is new, and was %q before", f.NewName, got)
			}
			continue
		}
		seen++
		if string(got) != before[f.OldName] {
			t.Errorf("%s was %q, want %q", f.OldName, got, before[f.OldName])
		}
		if got := textBefore(f, func(string) ([]byte, bool) { return []byte("something else\n"), true }); got != nil && !f.IsDelete {
			t.Errorf("%s over another file: %q", f.OldName, got)
		}
	}
	if seen != 4 {
		t.Errorf("%d files looked at, want 4", seen)
	}
}

// Covers T8: code of the product is none of the tests' own for being named by them alone.
func TestSure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"src/Calc.php", "<?php\nfunction total(array $xs) { return array_sum($xs); }\n", false},
		{"lib/calc.lua", "return { total = function(xs) return #xs end }\n", false},
		{"calc.py", "def total(xs):\n    return sum(xs)\n", false},
		{"cases.py", "CASES = [1, 2]\n", true},
		{"cases.csv", "1,2\n", true},
		{"internal/must/must.go", "package must\n\ntype T interface{ Fatalf(string, ...any) }\n\nfunc Equal(t T, a, b int) {}\n", true},
		{"internal/sum/sum.go", "package sum\n\nfunc Of(a, b int) int { return a + b }\n", false},
		{"src/test_helper.php", "<?php\nfunction same($a, $b) { if ($a !== $b) { throw new Exception(); } }\n", true},
	} {
		if got := (&baseView{}).sure(edit{name: c.name, before: []byte(c.text)}); got != c.want {
			t.Errorf("sure(%s) = %v", c.name, got)
		}
	}
}

// newFile is a patch that adds a file.
func newFile(name string, lines ...string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%[2]d @@\n+%[3]s\n", name, len(lines), strings.Join(lines, "\n+"))
}
