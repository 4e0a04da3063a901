package repositories

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One comparison or constant of a line is changed at a time, and none in texts or remarks.
func TestFlipped(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"if a <= 3 && b {\n":            {"if a < 3 && b {\n", "if a <= 73 && b {\n", "if a <= 3 || b {\n"},
		"return \"a == 1\" // b == 2\n": nil,
		"// a == b\n":                   nil,
		"if x == 'a < b':  # c > d\n":   {"if x != 'a < b':  # c > d\n"},
		"if (a === b) return true;\n":   {"if (a !== b) return true;\n", "if (a === b) return false;\n"},
		"    return a and not b\n":      {"    return a or not b\n"},
		"return a &&":                   nil,
		"x := f(0.5)\n":                 {"x := f(70.5)\n"},
		"let x: Vec<u8> = y > 2;\n":     {"let x: Vec<u8> = y >= 2;\n", "let x: Vec<u8> = y > 72;\n"},
	} {
		if diff := cmp.Diff(want, flipped(line)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// Only lines that a commit adds to code are changed, and its tests stay as they are.
func TestWrongs(t *testing.T) {
	t.Parallel()
	code, tests := "package a\nvar x = 1 == 1\nvar y = 2 < n\n", "package a\nvar z = 1 < 2\n"
	c := commit{Files: map[string]string{"a.go": "package a\nvar x = 1 == 1\n"}, Change: map[string]*string{"a.go": &code, "a_test.go": &tests, "old.go": nil},
		Tests: map[string]bool{"a_test.go": true}}
	var got []string
	for _, w := range wrongs(c) {
		got = append(got, w.Wrong)
		if *w.Change["a_test.go"] != tests || *c.Change["a.go"] != code {
			t.Errorf("%s: %q %q", w.Wrong, *w.Change["a_test.go"], *c.Change["a.go"])
		}
	}
	if diff := cmp.Diff([]string{"a.go:3: var y = 72 < n", "a.go:3: var y = 2 <= n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
