package agent

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const nearFile = "import os\n\n\ndef f0(a):\n    return a - 0\n\n\ndef f1(a):\n    if a:\n        return a - 1\n    return \"one\"\n\n\ndef f2(a):\n    return a - 2\n"

// Covers I1: what differs in layout alone is taken, with the file's own indentation; what
// says something else is not.
func TestNear(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, repl, want, how string }{
		"blanks at the ends":            {"def f0(a):  \n    return a - 0\n", "def f0(b):\n    return b\n", "def f0(b):\n    return b\n", "blanks"},
		"a blank line less":             {"    return a - 0\n\ndef f1(a):\n", "    return a\n\n\ndef f1(b):\n", "    return a\n\n\ndef f1(b):\n", "blank lines"},
		"no last line break":            {"def f0(a): \n    return a - 0", "def f0(b):\n    return b", "def f0(b):\n    return b\n", "blanks"},
		"two for four":                  {"def f1(a):\n  if a:\n    return a - 1\n", "def f1(b):\n  if b:\n    return b - 1\n", "def f1(b):\n    if b:\n        return b - 1\n", "indentation"},
		"two for four, and deeper":      {"def f0(a):\n  return a - 0\n", "def f0(b):\n  if b:\n    if a:\n      return b\n", "def f0(b):\n    if b:\n        if a:\n            return b\n", "indentation"},
		"two for four, written right":   {"def f0(a):\n  return a - 0\n", "def f0(b):\n    return b\n", "def f0(b):\n    return b\n", "indentation"},
		"tab for blanks":                {"def f0(a):\n\treturn a - 0\n", "def f0(b):\n\treturn b\n", "def f0(b):\n    return b\n", "indentation"},
		"tab for blanks, written right": {"def f0(a):\n\treturn a - 0\n", "def f0(b):\n    return b\n", "def f0(b):\n    return b\n", "indentation"},
		"an offset":                     {"if a:\n    return a - 1\nreturn \"one\"\n", "if b:\n    return b - 1\nreturn \"two\"\n", "    if b:\n        return b - 1\n    return \"two\"\n", "indentation"},
		"line numbers":                  {"    4\tdef f0(a):\n    5\t    return a - 0\n", "def f0(b):\n    return b\n", "def f0(b):\n    return b\n", "line numbers"},
		"numbers on both":               {"4: def f0(a):\n5:     return a - 0\n", "4: def f0(b):\n5:     return b\n", "def f0(b):\n    return b\n", "line numbers"},
		"literal breaks":                {`def f0(a):\n    return a - 0\n`, "def f0(b):\n    return b\n", "def f0(b):\n    return b\n", "line breaks"},
		"quotes":                        {"    return “one”\n", "    return “two”\n", "    return \"two\"\n", "quotes"},
		"a paraphrase":                  {"def f0(x):\n    return x - 0\n", "def f0(b):\n    return b\n", "", ""},
		"a middle left out":             {"def f0(a):\n...\ndef f1(a):\n", "x", "", ""},
		"two places":                    {"def f9(a):\n  return\n", "x", "", ""},
		"nothing":                       {"\n\n\n\n\n", "x", "", ""},
		"mixed indentation":             {"def f1(a):\n  if a:\n  return a - 1\n", "x\n", "", ""},
	} {
		found, ok := near(nearFile, tt.old, tt.repl)
		if ok != (tt.want != "") || !strings.Contains(found.how, tt.how) {
			t.Errorf("%s: taken %v, for %q", name, ok, found.how)
			continue
		}
		if !ok {
			continue
		}
		now := nearFile[:found.from] + found.text + nearFile[found.to:]
		if begin := strings.Index(now, tt.want); begin < 0 || !strings.HasPrefix(nearFile, now[:begin]) || !strings.HasSuffix(nearFile, now[begin+len(tt.want):]) {
			t.Errorf("%s: the file is now\n%s", name, now)
		}
	}
}

// Covers I1: where two places could be meant, none is taken.
func TestNearIsOne(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var block []string
		for i := range 1 + random.IntN(4) {
			block = append(block, strings.Repeat("    ", min(i, 1+random.IntN(2)))+fmt.Sprintf("line%d(%d)", i, random.IntN(3)))
		}
		one := strings.Join(block, "\n") + "\n"
		two := one
		if random.IntN(2) == 0 { // the same at another depth
			two = ""
			for _, l := range block {
				two += "    " + l + "\n"
			}
		}
		file := "first\n" + one + "\nbetween\n" + two + "last\n"
		old := one
		switch random.IntN(4) {
		case 0:
			old = strings.ReplaceAll(old, "\n", "  \n")
		case 1:
			old = strings.ReplaceAll(old, "    ", "\t")
		case 2:
			old = strings.ReplaceAll(old, "\n", "\n\n")
		case 3:
			old = strings.ReplaceAll(old, "    ", "  ")
		}
		if strings.Contains(file, old) {
			continue
		}
		// Where only one of the two has the file's own indentation, that one is meant.
		if found, ok := near(file, old, "new\n"); ok && (two == one || strings.Contains(found.how, "indentation")) {
			t.Fatalf("%q\nis taken for %q in\n%s", old, file[found.from:found.to], file)
		}
	}
}

// Whatever is looked for: the place lies in the file.
func FuzzNear(f *testing.F) {
	f.Add(nearFile, "def f0(a):\n\treturn a - 0\n", "x\n\ty\n")
	f.Add("a\r\nb\r\n", "a \nb", "c")
	f.Fuzz(func(t *testing.T, file, old, repl string) {
		if found, ok := near(file, old, repl); ok && (found.from < 0 || found.to < found.from || found.to > len(file) || found.how == "") {
			t.Errorf("%+v of %d bytes", found, len(file))
		}
		lines := splitLines(file)
		if from, to, ok := closest(lines, old); ok && (from < 0 || to <= from || to > len(lines)) {
			t.Errorf("lines %d to %d of %d", from, to, len(lines))
		}
	})
}
