package source

import (
	"slices"
	"strings"
	"testing"
)

// What is code is told from comments, docstrings and hints, however it is written.
func TestSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, before, after string
		same                      bool
	}{
		{"that group", "a.py", "return a + b * c\n", "return (a + b) * c\n", false},
		{"a tuple", "a.py", "return a,\n", "return (a,)\n", false},
		{"a call", "a.py", "return f\n", "return f()\n", false},
		{"a generator", "a.py", "x = [i for i in a]\n", "x = (i for i in a)\n", false},
		{"not", "a.py", "return not a and b\n", "return not (a and b)\n", false},
		{"pass", "a.py", "def f():\n    return 1\n", "def f():\n    pass\n    return 1\n", true},
		{"pass in the place of a call", "a.py", "if a:\n    b()\n", "if a:\n    pass\n", false},
		{"a semicolon", "a.py", "def f():\n    return 1\n", "def f():\n    return 1;\n", true},
		{"two statements in one line", "a.py", "a()\nb()\n", "a(); b()\n", true},
		{"quotes", "a.py", "S = \"x\"\n", "S = 'x'\n", true},
		{"quotes within", "a.py", "S = 'it\\'s'\n", "S = \"it's\"\n", true},
		{"a prefix", "a.py", "S = 'x'\n", "S = f'x'\n", false},
		{"a text", "a.py", "S = 'x'\n", "S = 'y'\n", false},
		{"a docstring", "a.py", "def f():\n    return 1\n", "def f():\n    \"\"\"One.\n\n    It is.\n    \"\"\"\n    return 1\n", true},
		{"a docstring that is read", "a.py", "print(__doc__)\n", "'x'\nprint(__doc__)\n", false},
		{"hints", "a.py", "def f(a, b=1):\n    return 1\n", "def f(a: int, b: dict[str, int] = 1) -> int:\n    return 1\n", true},
		{"a default", "a.py", "def f(a, b=1):\n    return 1\n", "def f(a, b=2):\n    return 1\n", false},
		{"hints that a decorator reads", "a.py", "@get\ndef f(a):\n    return 1\n", "@get\ndef f(a: int):\n    return 1\n", false},
		{"a field", "a.py", "class A:\n    a = 1\n", "class A:\n    a: int = 1\n", false},
		{"a variable", "a.py", "def f():\n    a = 1\n", "def f():\n    a: int = 1\n", true},
		{"a decorator", "a.py", "def f():\n    return 1\n", "@cache\ndef f():\n    return 1\n", false},
		{"a dedent", "a.py", "for a in b:\n    c()\n    d()\n", "for a in b:\n    c()\nd()\n", false},
		{"wider indents", "a.py", "for a in b:\n  c()\n", "for a in b:\n    c()\n", true},
		{"a comment", "a.py", "a() # b\n", "a()\n", true},
		{"f-string alone", "a.py", "a()\n", "a()\nf'{b()}'\n", false},
		{"await", "a.js", "const a = f()\n", "const a = await f()\n", false},
		{"semicolon", "a.js", "return a + b;\n", "return a + b\n", true},
		{"semicolons that matter", "a.js", "let a = b;\n(c)()\n", "let a = b\n(c)()\n", false},
		{"return alone", "a.js", "return\n  a\n", "return a\n", false},
		{"an empty body", "a.js", "if (a);\nb()\n", "if (a)\nb()\n", false},
		{"a loop", "a.js", "for (;;) a()\n", "for (;b;) a()\n", false},
		{"quotes", "a.ts", "a('x', `y`)\n", "a(\"x\", 'y')\n", true},
		{"a template", "a.ts", "a(`${x}`)\n", "a('${x}')\n", false},
		{"an object", "a.js", "f(() => {})\n", "f(() => ({}))\n", false},
		{"a condition", "a.js", "if (a && b) c()\n", "if (a || b) c()\n", false},
		{"a regular expression", "a.js", "a(/x'/g)\n", "a(/y'/g)\n", false},
		{"comments", "a.js", "a() // b\n/* c */ d()\n", "a()\nd()\n", true},
		{"use strict", "a.js", "a()\n", "'use strict'\na()\n", false},
		{"those that group", "a.go", "package a\n\nvar x = a*b + c\n", "package a\n\nvar x = a*(b + c)\n", false},
		{"the right operand", "a.go", "package a\n\nvar x = a - b - c\n", "package a\n\nvar x = a - (b - c)\n", false},
		{"quotes", "a.go", "package a\n\nvar x = \"a\"\n", "package a\n\nvar x = `a`\n", true},
		{"a comment", "a.go", "package a\n\nfunc f() {\n\ta()\n}\n", "package a\n\n// f is.\nfunc f() {\n\ta() // b\n\t// c\n}\n", true},
		{"a directive", "a.go", "package a\n\nvar x []byte\n", "package a\n\n//go:embed x\nvar x []byte\n", false},
		{"semicolons", "a.go", "package a\n\nfunc f() {\n\ta()\n}\n", "package a\n\nfunc f() {\n\t;a();;\n}\n", true},
		{"defer", "a.go", "package a\n\nfunc f() {\n\ta()\n}\n", "package a\n\nfunc f() {\n\tdefer a()\n}\n", false},
		{"a semicolon of Rust", "a.rs", "fn f() { a() }\n", "fn f() { a(); }\n", false},
		{"an empty statement", "A.java", "a();\n", "a();;\n", true},
		{"characters", "a.rs", "let a: &'a str = 'b';\n", "let a: &'a str = 'c';\n", false},
	} {
		before, ok := Read(c.file, c.before)
		after, _ := Read(c.file, c.after)
		if got := slices.Equal(code(before), code(after)); !ok || got != c.same {
			t.Errorf("%s, %s: same %v, want %v:\n%v\n%v", c.file, c.name, got, c.same, code(before), code(after))
		}
	}
}

// code are the texts of what is code.
func code(list []Token) (out []string) {
	for _, t := range list {
		if t.Kind == Code {
			out = append(out, t.Text)
		}
	}
	return out
}

func FuzzRead(f *testing.F) {
	f.Add("def f(a: int):\n  return ('x')\n")
	f.Add("func f() { return (a) }")
	f.Fuzz(func(t *testing.T, s string) {
		for _, file := range []string{"a.py", "a.go", "a.js", "a.c"} {
			a, _ := Read(file, s)
			last := 0
			for _, k := range a {
				if k.Line < last || k.Line > strings.Count(s, "\n")+1 {
					t.Fatalf("%s: line %d after %d", file, k.Line, last)
				}
				last = k.Line
			}
		}
	})
}
