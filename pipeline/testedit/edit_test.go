package testedit

import (
	"strings"
	"testing"
)

// compare says in lines what a change of one file edits.
func compare(name, was, is string) string {
	var out []string
	for _, e := range Compare([]File{{Old: name, New: name, Was: []byte(was), Is: []byte(is)}}) {
		out = append(out, strings.TrimSpace(e.Part+" "+e.What))
	}
	return strings.Join(out, "; ")
}

// Covers T8: whatever a test of the base is edited to, it is named.
func TestEditsOfATest(t *testing.T) {
	t.Parallel()
	type source struct{ file, text, test string }
	py := source{"test_calc.py", "import calc\n\n\n@mark\ndef test_mul():\n    assert calc.mul(2, 3) == 6\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n", "test_mul"}
	js := source{"calc.test.js", "const calc = require('./calc');\n\ndescribe('calc', () => {\n  test('mul', () => {\n    assert.equal(calc.mul(2, 3), 6);\n  });\n});\n", "mul"}
	golang := source{"calc_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestMul(t *testing.T) {\n\tif got := Mul(2, 3); got != 6 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n", "TestMul"}
	for _, c := range []struct {
		in       source
		old, new string
	}{
		{py, "== 6", "is not None"},
		{py, "== 6", "== 6 or True"},
		{py, "== 6", ">= 6"},
		{py, "calc.mul(2, 3) == 6", "True"},
		{py, "    assert calc.mul", "    return\n    assert calc.mul"},
		{py, "    assert calc.mul", "    if False:\n        assert calc.mul"},
		{py, "@mark", "@skip"},
		{py, "test_mul()", "test_mul(fake)"},
		{py, "\n\n\ndef test_add", "\n\n\ndef test_mul():\n    pass\n\n\ndef test_add"},
		{js, "    assert.equal", "    return;\n    assert.equal"},
		{js, "6", "calc.mul(2, 3)"},
		{js, "test('mul'", "test.skip('mul'"},
		{golang, "\tif got", "\tif true {\n\t\treturn\n\t}\n\tif got"},
		{golang, "!= 6", "< -5"},
	} {
		is := strings.Replace(c.in.text, c.old, c.new, 1)
		if got := compare(c.in.file, c.in.text, is); got != c.in.test {
			t.Errorf("%q for %q in %s: it names %q, want %q", c.new, c.old, c.in.file, got, c.in.test)
		}
	}
}

// What is no test is named where tests of the base run with it, and nothing is named that
// says the same.
func TestEditsBesideTests(t *testing.T) {
	t.Parallel()
	py := "import calc\n\nCASES = [1, 2]\n\n\ndef test_a():\n    for c in CASES:\n        assert calc.f(c)\n\n\nclass TestB:\n    def test_b(self):\n        self.holds(1)\n"
	js := "import { f } from './calc.js';\n\nconst cases = [1];\ntest('f', () => {\n  for (const c of cases) check(f(c)); // all\n});\n"
	golang := "package calc\n\nimport \"testing\"\n\nvar cases = []int{1, 2}\n\n// TestF tests.\nfunc TestF(t *testing.T) {\n\tfor _, c := range cases {\n\t\tcheck(t, c)\n\t}\n}\n\ntype suite struct{}\n\nfunc (s *suite) TestG() { s.holds(1) }\n\nfunc ExampleF() {\n\tF()\n\t// Output: 1\n}\n"
	for _, c := range []struct{ file, text, old, new, want string }{
		{"t.py", py, "[1, 2]", "[1]", "CASES"},
		{"t.py", py, "import calc", "import calc\nimport os", ""},
		{"t.py", py, "import calc", "from fake import calc", "from fake import calc added"},
		{"t.py", py, "import calc", "import calc\ncalc.f = bool", "the code around its tests added"},
		{"t.py", py, "import calc", "import calc\nimport pytest\n\n\n@pytest.fixture(autouse=True)\ndef mocked():\n    pass", "mocked added"},
		{"t.py", py, "import calc", "import calc\n\n\ndef helper():\n    pass\n\n\ndef test_c():\n    helper()", ""},
		{"t.py", py, "import calc", "import calc\n\n\nclass TestC:\n    def setup_method(self):\n        pass\n\n    def test_c(self):\n        pass", ""},
		{"t.py", py, "    def test_b", "    def holds(self, x):\n        pass\n\n    def test_b", "TestB.holds added"},
		{"t.py", py, "self.holds(1)", "pass", "TestB.test_b"},
		{"t.py", py, "assert calc.f(c)", "\"\"\"Words.\"\"\"\n\n        assert   calc.f( c )  # each", ""},
		{"t.py", py, "test_a", "test_all", ""},
		{"t.js", js, "[1]", "[]", "the code around its tests"},
		{"t.js", js, "// all", "/* each one */", ""},
		{"t.js", js, "import", "import test from 'node:test';\nimport", "import test from 'node:test' added"},
		{"t.py", strings.Replace(py, "import calc", "from m import calc", 1), "m import calc", "m import (calc, more)", ""},
		{"t.js", js, "./calc.js", "./fake.js", "import{f}from './fake.js' added"},
		{"t.js", js, "import {", "import { g, ", ""},
		{"t_test.go", golang, "{1, 2}", "{1}", "cases"},
		{"t_test.go", golang, "// TestF tests.", "// TestF tests much.", ""},
		{"t_test.go", golang, "type suite", "func init() { f = nil }\n\ntype suite", "init added"},
		{"t_test.go", golang, "type suite", "func (s *suite) holds(int) {}\n\ntype suite", "suite.holds added"},
		{"t_test.go", golang, "s.holds(1)", "", "suite.TestG"},
		{"t_test.go", golang, "Output: 1", "Output: 2", "ExampleF"},
		{"t_test.go", golang, "package calc", "//go:build never\n\npackage calc", "its directives added"},
		{"t_test.go", golang, "TestF(t *testing.T) {", "TestEach(t *testing.T) {", ""},
		{"t.sh", "#!/bin/sh\ntest 1 = 1\n", "1\n", "1 # same\n", ""},
	} {
		if c.file == "t.sh" {
			c.want = ""
			if got := Compare([]File{{Old: c.file, New: c.file, Was: []byte(c.text), Is: []byte(strings.Replace(c.text, "test 1 = 1", "true", 1))}}); len(got) != 1 || got[0].Name() != "t.sh" {
				t.Errorf("a script that was edited: %v", got)
			}
			continue
		}
		if got := compare(c.file, c.text, strings.Replace(c.text, c.old, c.new, 1)); got != c.want {
			t.Errorf("%q for %q in %s: it names %q, want %q", c.new, c.old, c.file, got, c.want)
		}
	}
}

// What moves to another file is not removed; a file that cannot be read is named whole.
func TestEditsOfFiles(t *testing.T) {
	t.Parallel()
	test := []byte("def test_a():\n    assert f(1) == 2\n")
	for _, c := range []struct {
		why   string
		files []File
		want  string
	}{
		{"moved", []File{{Old: "a.py", New: "a.py", Was: test, Is: []byte("")}, {New: "b.py", Is: test}}, ""},
		{"renamed", []File{{Old: "a.py", New: "b.py", Was: test, Is: test}}, ""},
		{"deleted", []File{{Old: "a.py", Was: test}}, "a.py: test_a (removed; how it does as it stood is not known)"},
		{"unreadable", []File{{Old: "a.py", New: "a.py", Is: test}}, "a.py (edited; it is no test itself, tests of the base use it)"},
		{"Ruby", []File{{Old: "test/calc_test.rb", New: "test/calc_test.rb", Was: []byte("a"), Is: []byte("b")}}, "test/calc_test.rb (edited; how it does as it stood is not known)"},
		{"Ruby's helper", []File{{Old: "test/test_helper.rb", New: "test/test_helper.rb", Was: []byte("a"), Is: []byte("b")}}, "test/test_helper.rb (edited; it is no test itself, tests of the base use it)"},
		{"RSpec", []File{{Old: "spec/calc_spec.rb", Was: []byte("a")}}, "spec/calc_spec.rb (removed; how it does as it stood is not known)"},
		{"PHP", []File{{Old: "tests/CalcTest.php", New: "tests/CalcTest.php", Was: []byte("a"), Is: []byte("b")}}, "tests/CalcTest.php (edited; how it does as it stood is not known)"},
		{"PHP's helper", []File{{Old: "tests/TestCase.php", New: "tests/TestCase.php", Was: []byte("a"), Is: []byte("b")}}, "tests/TestCase.php (edited; it is no test itself, tests of the base use it)"},
		{"new settings", []File{{New: "conftest.py", Is: test, Applies: true}}, "conftest.py (added; tests of the base run with it)"},
		{"new tests", []File{{New: "b.py", Is: test}}, ""},
		{"new in Go", []File{{New: "b_test.go", Applies: true, Is: []byte("package b\n\nfunc init() { F = nil }\n\nfunc TestB() {}\n")}}, "b_test.go: init (added; tests of the base run with it)"},
	} {
		if got := List(Compare(c.files)); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}
