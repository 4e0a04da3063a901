package cite

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/record"
)

// tree is code by path, with the files that each word is in.
type tree struct {
	text  map[string]string
	words map[string][]string
}

func newTree(text map[string]string) tree {
	t := tree{text, map[string][]string{}}
	for _, p := range slices.Sorted(maps.Keys(text)) {
		list := word.FindAllString(text[p], -1)
		slices.Sort(list)
		for _, w := range slices.Compact(list) {
			t.words[w] = append(t.words[w], p)
		}
	}
	return t
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

func (t tree) look(c *record.Cite) Found {
	return Look(c, Tree{
		Read:   func(path string) (string, bool) { text, ok := t.text[path]; return text, ok },
		Having: func(name string) []string { return t.words[name] },
	})
}

// What is cited is found in every language, by how it is defined, and not where it is used.
func TestLook(t *testing.T) {
	t.Parallel()
	const python = "import os\n\ntotal = add(1, 2)\n\n\nclass Sums:\n" +
		"    def add(self, a, b):\n        \"\"\"Adds.\"\"\"\n        self.log(a)\n        return a + b * 7\n"
	const constant = "package a\n\nconst longest = 80\n"
	const shell = "#!/bin/sh\n# polite greets\npolite() {\n  echo \"hello\"\n  wave 12\n}\npolite me\n"
	const yaml = "jobs:\n  build:\n    timeout: 15\n    run: make\n  test:\n    run: make test\n"
	for _, c := range []struct {
		name, file, text string
		cited, with      string
		now              map[string]string
		why, moved       string
	}{
		{"python", "a.py", python, "add", "7", map[string]string{"a.py": strings.Replace(python, "import os\n", "import sys\n# changed\n", 1)}, "", ""},
		{"python, another value", "a.py", python, "add", "7", map[string]string{"a.py": strings.Replace(python, "* 7", "* 8", 1)},
			"7 is not in add in a.py any more", ""},
		{"python, used alone", "a.py", python, "add", "7", map[string]string{"a.py": "total = add(1, 7)\n"}, "add is not defined in a.py any more", ""},
		{"shell", "a.sh", shell, "polite", "12", map[string]string{"a.sh": strings.Replace(shell, "# polite greets", "# says hello", 1)}, "", ""},
		{"shell, moved", "a.sh", shell, "polite", "12", map[string]string{"a.sh": "polite me\n", "b.sh": shell}, "", "b.sh"},
		{"shell, another value", "a.sh", shell, "polite", "12", map[string]string{"a.sh": strings.Replace(shell, "12", "13", 1)}, "12 is not in polite", ""},
		{"yaml", "a.yml", yaml, "build", "15", map[string]string{"a.yml": strings.Replace(yaml, "15", "20", 1)}, "15 is not in build", ""},
		{"yaml, beside it", "a.yml", yaml, "build", "15", map[string]string{"a.yml": strings.Replace(yaml, "make test", "make check", 1)}, "", ""},
		{"a constant", "a.go", constant, "longest", "80", map[string]string{"a.go": "package a\n\nconst longest = 90\n"}, "80 is not in longest", ""},
		{"a constant, whatever it is", "a.go", constant, "longest", "", map[string]string{"a.go": "package a\n\nconst longest = 90\n"}, "", ""},
		{"another's constant of that name", "a.go", constant, "longest", "", map[string]string{"b.go": "package b\n\nconst longest = 12\n"},
			"longest is not defined in a.go any more", ""},
		{"a method of two", "a.go", "package a\n\nfunc (a A) run() { first() }\n\nfunc (b B) run() { second() }\n", "run", "second",
			map[string]string{"a.go": "package a\n\nfunc (b B) run() { second() }\n"}, "", ""},
	} {
		list := Of(c.file, c.text, []string{c.cited}, []string{c.cited, c.with})
		if len(list) != 1 || (c.with != "") != (len(list[0].With) == 1) {
			t.Errorf("%s: cited is %+v", c.name, list)
			continue
		}
		if got := newTree(c.now).look(&list[0]); got.Moved != c.moved || !strings.Contains(got.Why, c.why) || (got.Why == "") != (c.why == "") {
			t.Errorf("%s: %+v, want %q, moved to %q", c.name, got, c.why, c.moved)
		}
	}
	if list := Of("a.go", "package a\n\nfunc run() { stop() }\n", []string{"stop", "absent"}, nil); len(list) != 0 {
		t.Errorf("what is not defined there is cited: %+v", list)
	}
}

// A definition is found however its language writes it, and not where it is only called.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text string }{ // of sumUp, with 7 in it
		{"a.js", "exports.sumUp = function (a, b) {\n  return a + b * 7;\n};\n"},
		{"a.js", "module.exports.sumUp = async (a, b) => {\n  return a + b * 7;\n};\n"},
		{"a.js", "module.exports = {\n  sumUp(a, b) {\n    return a + b * 7;\n  },\n};\n"},
		{"a.js", "module.exports = {\n  sumUp: function (a, b) {\n    return a + b * 7;\n  },\n};\n"},
		{"a.js", "const sumUp = (a, b) => {\n  return a + b * 7;\n};\n"},
		{"a.js", "const sumUp = (a, b) => a + b * 7;\n"},
		{"a.mjs", "export const sumUp = async function (a, b) {\n  return a + b * 7;\n};\n"},
		{"a.mjs", "export default function sumUp(a, b) {\n  return a + b * 7;\n}\n"},
		{"a.js", "Cart.prototype.sumUp = function (a, b) {\n  return a + b * 7;\n};\n"},
		{"a.js", "class Cart {\n  sumUp(a, b) {\n    return a + b * 7;\n  }\n}\n"},
		{"a.js", "class Cart {\n  static async sumUp(a, b) {\n    return a + b * 7;\n  }\n}\n"},
		{"a.js", "class Cart {\n  get sumUp() {\n    return this.a * 7;\n  }\n}\n"},
		{"a.js", "class Cart {\n  async sumUp(a, b) {\n    return a + b * 7;\n  }\n}\n"},
		{"a.js", "class Cart {\n  sumUp = (a, b) => {\n    return a + b * 7;\n  };\n}\n"},
		{"a.ts", "export class Cart {\n  private readonly sumUp = (a: number): number => {\n    return a * 7;\n  };\n}\n"},
		{"a.ts", "export class Cart {\n  public async sumUp<T>(a: T): Promise<T> {\n    return times(a, 7);\n  }\n}\n"},
		{"a.ts", "export class Cart {\n  sumUp<T>(a: T): T {\n    return times(a, 7);\n  }\n}\n"},
		{"a.ts", "export function sumUp(\n  a: number,\n): number {\n  return a * 7;\n}\n"},
		{"a.ts", "export const sumUp: Summer = (a) => {\n  return a * 7;\n};\n"},
		{"A.java", "class A {\n    public static int sumUp(int a) {\n        return a * 7;\n    }\n}\n"},
		{"A.cs", "class A\n{\n    internal int sumUp(int a)\n    {\n        return a * 7;\n    }\n}\n"},
		{"a.c", "static int sumUp(int a)\n{\n    return a * 7;\n}\n"},
		{"a.cpp", "int Cart::sumUp(int a) {\n    return a * 7;\n}\n"},
		{"a.rb", "class Cart\n  def self.sumUp(a)\n    a * 7\n  end\nend\n"},
		{"a.py", "class Cart:\n    async def sumUp(self, a):\n        return a * 7\n"},
		{"a.php", "class Cart {\n    public function sumUp($a) {\n        return $a * 7;\n    }\n}\n"},
		{"a.kt", "fun Cart.sumUp(a: Int): Int {\n    return a * 7\n}\n"},
		{"a.swift", "  func sumUp(a: Int) -> Int {\n    return a * 7\n  }\n"},
		{"a.rs", "impl Cart {\n    pub fn sumUp(&self, a: i32) -> i32 {\n        a * 7\n    }\n}\n"},
		{"a.lua", "function M.sumUp(a)\n  return a * 7\nend\n"},
		{"a.R", "sumUp <- function(a) {\n  a * 7\n}\n"},
		{"a.ex", "defmodule Cart do\n  defp sumUp(a) do\n    a * 7\n  end\nend\n"},
		{"a.sc", "object Cart {\n  def sumUp(a: Int): Int =\n    a * 7\n}\n"},
		{"a.pl", "sub sumUp {\n  return $_[0] * 7;\n}\n"},
	} {
		list := Of(c.file, c.text, []string{"sumUp"}, []string{"7"})
		if len(list) != 1 || len(list[0].With) != 1 {
			t.Errorf("%s: cited is %+v of\n%s", c.file, list, c.text)
			continue
		}
		now := strings.Replace(c.text, "7", "8", 1)
		if got := newTree(map[string]string{c.file: now}).look(&list[0]); !strings.Contains(got.Why, "7 is not in sumUp") {
			t.Errorf("%s: with another value: %+v of\n%s", c.file, got, now)
		}
	}
	for _, c := range []struct{ file, text string }{
		{"a.js", "function other(a) {\n  return sumUp(a, 7);\n}\n"},
		{"a.js", "other.sumUp(7);\nif (cart.sumUp(7)) {\n  go();\n}\n"},
		{"a.js", "if (a) {\n  await sumUp(7, () => {\n    go();\n  });\n}\n"},
		{"a.js", "for (const x of sumUp(7)) {\n  go(x);\n}\nif (sumUp(7)) {\n}\nreturn sumUp(7, {\n});\n"},
		{"A.java", "class A {\n    int b() {\n        return sumUp(7);\n    }\n}\n"},
		{"A.java", "class A {\n    void b() {\n        new sumUp(7) {\n        };\n        else sumUp(7);\n    }\n}\n"},
		{"a.c", "int b(void)\n{\n    while (sumUp(7)) {\n    }\n    return sumUp(7);\n}\n"},
	} {
		if list := Of(c.file, c.text, []string{"sumUp"}, nil); len(list) != 0 {
			t.Errorf("%s: what is only called is cited: %+v of\n%s", c.file, list, c.text)
		}
	}
}

// Reading and citing come to an end whatever the text is.
func FuzzOf(f *testing.F) {
	f.Add("a.go", "package a\nfunc x() {", "x")
	f.Add("a", "x: 1\n\tx(", "x")
	f.Fuzz(func(t *testing.T, path, text, name string) {
		for _, c := range Of(path, text, []string{name}, []string{"1"}) {
			if got := newTree(map[string]string{path: text}).look(&c); got != (Found{}) {
				t.Errorf("%+v in the same text: %+v", c, got)
			}
		}
	})
}
