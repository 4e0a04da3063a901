package edit

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChunks divides the program's own files and expects all of them back.
func TestChunks(t *testing.T) {
	t.Parallel()
	n := 0
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(p) {
		case ".go", ".py", ".md", ".rb", ".sh", ".yaml":
		default:
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		n++
		want := strings.TrimLeft(strings.TrimSuffix(string(data), "\n")+"\n", "\n")
		if got := all(chunks(string(data))); strings.TrimSpace(want) != "" && got != want {
			t.Errorf("%s (-want +got):\n%s", p, cmp.Diff(want, got))
		}
		if got, back := Merge(string(data), string(data), never); got != strings.TrimRight(want, "\n")+"\n" && strings.TrimSpace(want) != "" || len(back) > 0 {
			t.Errorf("%s merged with itself: %v (-want +got):\n%s", p, back, cmp.Diff(want, got))
		}
		return nil
	})
	if err != nil || n < 100 {
		t.Fatalf("%d files, %v", n, err)
	}
}

func never(string) bool { return false }

const python = `# Shapes.
import math

class Square:
    """A square."""

    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * 2

    @property
    def name(self):
        return "square"


def circle(r):
    """The area of a circle."""
    return math.pi * r


LIMIT = 10
`

// TestMerge plays answers as small models give them for a file.
func TestMerge(t *testing.T) {
	t.Parallel()
	fixed := strings.Replace(python, "side * 2", "side * self.side", 1)
	golang := "// Package calc counts.\npackage calc\n\nimport \"fmt\"\n\n// Sub subtracts.\nfunc Sub(a, b int) int { return a + b }\n\n" +
		"type T struct{ n int }\n\nfunc (t *T) String() string {\n\treturn fmt.Sprint(t.n)\n}\n"
	for name, tt := range map[string]struct{ file, text, want, back string }{
		"whole":                   {python, fixed, fixed, ""},
		"whole, an example added": {python, fixed + "\nif __name__ == '__main__':\n    print(circle(2))\n", fixed, ""},
		"whole, without comments": {python, strings.Replace(fixed, "# Shapes.\n", "", 1), fixed, ""},
		"a method dropped": {python, strings.Replace(fixed, "    @property\n    def name(self):\n        return \"square\"\n\n", "", 1),
			fixed, "Square.name"},
		"one method of the class":         {python, "class Square:\n    def area(self):\n        return self.side * self.side\n", fixed, "circle LIMIT Square.__init__ Square.name"},
		"one method without its class":    {python, "    def area(self):\n        return self.side * self.side\n", fixed, "circle LIMIT Square.__init__ Square.name"},
		"two methods without their class": {python, "def area(self):\n    return self.side * self.side\n\ndef __init__(self, side):\n    self.side = side\n", fixed, "circle LIMIT Square.name"},
		"elided":                          {python, "import math\n\nclass Square:\n    # ... existing code ...\n    def area(self):\n        return self.side * self.side\n\n# rest of the code remains the same...\n", fixed, "Square.__init__ Square.name"},
		"one function":                    {python, "def circle(r):\n    return math.pi * r ** 2\n", strings.Replace(python, "    \"\"\"The area of a circle.\"\"\"\n    return math.pi * r\n", "    return math.pi * r ** 2\n", 1), "Square LIMIT"},
		"a comment about the change":      {python, "# Corrected function in shapes.py\ndef circle(r):\n    return math.pi * r ** 2\n", strings.Replace(python, "    \"\"\"The area of a circle.\"\"\"\n    return math.pi * r\n", "    return math.pi * r ** 2\n", 1), "Square LIMIT"},
		"a new function with its import": {python, "from typing import List\n\ndef total(l: List[int]):\n    return sum(l)\n",
			strings.Replace(python, "import math\n", "import math\nfrom typing import List\n", 1) + "\ndef total(l: List[int]):\n    return sum(l)\n", "Square circle LIMIT"},
		"go, one function": {golang, "package main\n\nimport \"strings\"\n\nfunc Sub(a, b int) int { return a - b }\n\nfunc main() { fmt.Println(Sub(1, 2)) }\n",
			strings.NewReplacer("a + b", "a - b", "import \"fmt\"\n", "import \"fmt\"\nimport \"strings\"\n").Replace(golang), "T T.String"},
		"go, without its import":                                 {golang, strings.Replace(golang, "a + b", "a - b", 1), strings.Replace(golang, "a + b", "a - b", 1), ""},
		"all that there is, without its import":                  {"import re\n\ndef f(s):\n    return s\n", "def f(s):\n    return re.escape(s)\n", "import re\n\ndef f(s):\n    return re.escape(s)\n", ""},
		"java, a method without its class and the file's import": {"import java.util.List;\n\nclass A {\n    int n(List<A> l) {\n        return 1;\n    }\n}\n", "    int n(List<A> l) {\n        return l.size();\n    }\n", "import java.util.List;\n\nclass A {\n    int n(List<A> l) {\n        return l.size();\n    }\n}\n", ""},
		"line ends": {"a = 1\r\nb = 2\r\n", "a = 1\nb = 3", "a = 1\r\nb = 3\r\n", ""},
	} {
		got, back := Merge(tt.file, tt.text, never)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if b := strings.Join(back, " "); b != tt.back && !sameWords(b, tt.back) {
			t.Errorf("%s put back %q, want %q", name, b, tt.back)
		}
	}
	if got, back := Merge(python, strings.Replace(python, "LIMIT = 10\n", "", 1), func(n string) bool { return n == "LIMIT" }); strings.Contains(got, "LIMIT") || len(back) > 0 {
		t.Errorf("what may go was put back: %v\n%s", back, got)
	}
	if got, want := Excerpt(python, []string{"circle"}), "# Shapes.\nimport math\n\n// ... existing code ...\n\ndef circle(r):\n    \"\"\"The area of a circle.\"\"\"\n    return math.pi * r\n\n\n// ... existing code ...\n\n"; got != want {
		t.Errorf("the excerpt is (-want +got):\n%s", cmp.Diff(want, got))
	}
	if got, back := Merge(python, strings.Replace(Excerpt(python, []string{"area"}), "side * 2", "side * self.side", 1), never); got != fixed || len(back) > 0 {
		t.Errorf("an excerpt changed: %v (-want +got):\n%s", back, cmp.Diff(fixed, got))
	}
	test := "import calc\n\ndef test_a():\n    assert calc.a\n"
	if got := Add(test, "def test_a():\n    pass\n\ndef test_b():\n    assert calc.b\n"); got != test+"\ndef test_b():\n    assert calc.b\n" {
		t.Errorf("added:\n%s", got)
	}
}

func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// TestRead plays the forms in which models hand in code.
func TestRead(t *testing.T) {
	t.Parallel()
	known := []string{"calc.py", "pkg/util/text.go", "test_calc.py"}
	for name, tt := range map[string]struct {
		answer string
		want   []Block
	}{
		"a path on the line before": {"Here is the corrected `calc.py`:\n\n```python\na = 1\n```\nThis fixes it.", []Block{{Path: "calc.py", Lang: "python", Text: "a = 1\n"}}},
		"a path in the info":        {"```python:calc.py\na = 1\n```", []Block{{Path: "calc.py", Lang: "python", Text: "a = 1\n"}}},
		"a title":                   {"```go title=\"text.go\"\npackage util\n```", []Block{{Path: "pkg/util/text.go", Lang: "go", Text: "package util\n"}}},
		"a comment":                 {"```python\n# File: calc.py\na = 1\n```", []Block{{Path: "calc.py", Lang: "python", Text: "a = 1\n"}}},
		"a comment that says more":  {"```python\n# calc.py adds numbers\na = 1\n```", []Block{{Lang: "python", Text: "# calc.py adds numbers\na = 1\n"}}},
		"a heading, a new file":     {"### `new.py`\n```\nx = 2\n```", []Block{{Path: "new.py", Text: "x = 2\n"}}},
		"a sentence":                {"Now e.g. in setup.py nothing has to change for this:\n```\nx = 2\n```", []Block{{Text: "x = 2\n"}}},
		"two files": {"**calc.py**\n```python\na = 1\n```\n**test_calc.py**\n```python\nb = 1\n```",
			[]Block{{Path: "calc.py", Lang: "python", Text: "a = 1\n"}, {Path: "test_calc.py", Lang: "python", Text: "b = 1\n"}}},
		"cut off": {"calc.py\n```python\na = 1\nb =", []Block{{Path: "calc.py", Lang: "python", Text: "a = 1\nb =\n", Open: true}}},
		"search and replace": {"calc.py\n<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n",
			[]Block{{Path: "calc.py", Old: "a = 1\n", Text: "a = 2\n"}}},
		"search and replace in a fence": {"```python\n# calc.py\n<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n```",
			[]Block{{Path: "calc.py", Lang: "python", Old: "a = 1\n", Text: "a = 2\n"}}},
		"a patch": {"```diff\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n x = 0\n-a = 1\n+a = 2\n```",
			[]Block{{Path: "calc.py", Lang: "diff", Old: "x = 0\na = 1\n", Text: "x = 0\na = 2\n"}}},
		"nothing": {"I cannot see what is wrong.", nil},
	} {
		if d := cmp.Diff(tt.want, Read(tt.answer, known)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
