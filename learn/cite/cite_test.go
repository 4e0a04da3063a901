package cite

import (
	"strings"
	"testing"
)

// What is cited is found in every language, by how it is defined, and not where it is used.
func TestLook(t *testing.T) {
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
