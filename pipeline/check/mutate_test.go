package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Covers T8: what a test expects by its looks is changed, and nothing else.
func TestMutateLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, was, is string }{
		{"a_test.go", "\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf(\"got %d\", got)", `	if got := Add(1, 2); got != 73 {`},
		{"a_test.go", "\tif len(got) != 1 || got[0] != \"a\" {\n\t\tt.Fatal(got)", `	if len(got) != 1 || got[0] != "a~mutated" {`},
		{"a_test.go", `	require.Equal(t, -119, total([]int{100}, 19))`, `	require.Equal(t, -7119, total([]int{100}, 19))`},
		{"a_test.go", `	assert.Equal(t, total(2), "b")`, `	assert.Equal(t, total(2), "b~mutated")`},
		{"a_test.go", `		{in: 1, want: 2},`, `		{in: 1, want: 72},`},
		{"a_test.go", "\tif os.Getenv(\"X\") != \"\" {\n\t\treturn", ""},
		{"a_test.go", `	// if got != 3 {`, ""},
		{"a_test.go", `	for i := 0; i != 10; i++ {`, ""},
		{"test_a.py", `    assert total([100], 19) == 119, f"got {x}"`, `    assert total([100], 19) == 7119, f"got {x}"`},
		{"test_a.py", `    assert names() == 'bob'`, `    assert names() == 'bob~mutated'`},
		{"test_a.py", `    assert total() != 3`, ""},
		{"test_a.py", `    self.assertEqual(total([100], 19), 119)`, `    self.assertEqual(total([100], 19), 7119)`},
		{"test_a.py", `    self.assertEqual("a", name())`, `    self.assertEqual("a~mutated", name())`},
		{"test_a.py", `    if x == 3:`, ""},
		{"a.test.js", `  expect(total([100], 19)).toBe(119);`, `  expect(total([100], 19)).toBe(7119);`},
		{"a.test.js", `  expect(total([100], 19)).not.toBe(119);`, ""},
		{"a.test.js", `  assert.strictEqual(total([100], 19), 119);`, `  assert.strictEqual(total([100], 19), 7119);`},
		{"a.test.js", `  if (add(1, 2) !== 3) throw new Error('add');`, `  if (add(1, 2) !== 73) throw new Error('add');`},
		{"a.rb", `    assert_equal 5, add(2, 3)`, `    assert_equal 75, add(2, 3)`},
		{"a.rb", `    expect(total([2])).to eq(5)`, `    expect(total([2])).to eq(75)`},
	} {
		line, next, _ := strings.Cut(c.was, "\n")
		if c.is == "" {
			c.is = line
		}
		if got := languageOf(c.file).mutate(line, next); got != c.is {
			t.Errorf("%s: %s\n became %s\n   want %s", c.file, line, got, c.is)
		}
	}
}

// Covers T8: of the tests of a file those are changed that the change adds or edits, to their end.
func TestMutated(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct{ was, is, want string }{
		"test_a.py": {
			"def test_old():\n    assert f(1) == 2\n\n\ndef test_mine():\n    assert f(2) == 3\n",
			"def test_old():\n    assert f(1) == 2\n\n\ndef test_mine():\n    f(0)\n    assert f(2) == 3\n" +
				"\n\nassert f(4) == 5\n\n\ndef test_new():\n    assert f(6) == 7\n",
			"test_mine 5: assert f(2) == 73, test_new 13: assert f(6) == 77",
		},
		"a_test.go": {
			"package a\n\nfunc TestA(t *testing.T) {\n\tif F(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n}\n",
			"package a\n\nfunc TestA(t *testing.T) {\n\treturn\n\tif F(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n}\n" +
				"\nfunc TestB(t *testing.T) {\n\tF(3)\n}\n",
			"TestA 3: if F(1) != 72 {",
		},
		"a.py": {"x = 1\n", "def test_a():\n    assert x == 1\n", ""},
	} {
		p, err := parsePatch(patchOf(t, map[string]string{file: c.was}, map[string]string{file: c.is}))
		if err != nil {
			t.Fatal(err)
		}
		changed, tests := mutated(p.files[0], []byte(c.is))
		var got []string
		for _, m := range tests {
			for i, line := range strings.Split(string(changed), "\n")[m.line:] {
				if was := strings.Split(c.is, "\n")[m.line+i]; line != was {
					got = append(got, fmt.Sprintf("%s %d: %s", m.name, m.line, strings.TrimSpace(line)))
					break
				}
			}
		}
		if strings.Join(got, ", ") != c.want || len(got) != len(tests) {
			t.Errorf("%s: %v of %v, want %s", file, got, tests, c.want)
		}
	}
}

// Covers T8: a test that asserts nothing is told, and one that holds something is not.
func TestMutate(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	const code, tests = "-- calc.py --\ndef add(a, b):\n    return a + b\n", "-- test_calc.py --\nimport unittest\nimport calc\n\n\n" +
		"class T(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(calc.add(1, 0), 1)\n"
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"holds": {"self.assertEqual(calc.add(1, 1), 2)", nil},
		"in a try": {"try:\n            self.assertEqual(calc.add(1, 1), 2)\n        except AssertionError:\n            pass",
			[]string{"test_two"}},
		"unreached":  {"return\n        self.assertEqual(calc.add(1, 1), 2)", []string{"test_two"}},
		"no literal": {"calc.add(1, 1)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			of := commits{"base": filesOf(code, tests), "head": filesOf(code, tests+"\n    def test_two(self):\n        "+c.body+"\n")}
			opened := 0
			open := of.open(t, &opened)
			tree, err := open(t.Context(), "base")
			if err != nil {
				t.Fatal(err)
			}
			before, err := Run(t.Context(), tree, Options{Config: defaults, Head: "base"})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Verify(t.Context(), open, Options{Config: defaults, Base: "base", Head: "head", Iteration: 1, Baseline: &before,
				Patch: patchOf(t, of["base"], of["head"])})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r.Tampered {
				if f.Rule == ruleMutation && f.File == "test_calc.py" && f.Line == 9 {
					got = append(got, f.Code)
				}
			}
			if !slices.Equal(got, c.want) || r.OK() != (c.want == nil) {
				t.Errorf("told %q, want %q: %v", got, c.want, told(&r))
			}
		})
	}
}
