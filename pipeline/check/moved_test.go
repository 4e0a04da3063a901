package check

import (
	"slices"
	"testing"
)

// What numbers are spelled otherwise means the same, and nothing else is touched.
func TestRespelled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source, want string }{
		{"test_a.py", "assert total([100], 19) == 119  # 119 cents\n", "assert total([0x64], 0x13) == 0x77  # 119 cents\n"},
		{"test_a.py", "assert f(1.5, 1e3, 0x10, 1_000, a1, x.y2) == '7' + \"8\"\n", "assert f(1.5, 1e3, 0x10, 1_000, a1, x.y2) == '7' + \"8\"\n"},
		{"test_a.py", "x = \"\"\"\n1 2\n\"\"\"\ny = 3\n", "x = \"\"\"\n1 2\n\"\"\"\ny = 0x3\n"},
		{"a.test.js", "for (const [a, b] of [[10, 19], [0, 7n]]) it(`of ${1}`, () => 5);\n", "for (const [a, b] of [[0xa, 0x13], [0x0, 7n]]) it(`of ${1}`, () => 0x5);\n"},
		{"a.test.js", "assert.match(x, /^\\d{3}$/, 4);\n", "assert.match(x, /^\\d{3}$/, 4);\n"},
		{"a_test.go", "{[]int{100}, 19, '1', \"2\", `3`, 010, 1 << 4},\n", "{[]int{0x64}, 0x13, '1', \"2\", `3`, 010, 0x1 << 0x4},\n"},
		{"a_test.go", "x := `\n1\n`\n", "x := `\n1\n`\n"},
		{"a.rs", "1", "1"},
	} {
		if got := respelled(tt.name, tt.source); got != tt.want {
			t.Errorf("respelled(%s, %q) = %q, want %q", tt.name, tt.source, got, tt.want)
		}
	}
}

// The directories of tests get other names, and what speaks of them does, too.
func TestMovedNames(t *testing.T) {
	t.Parallel()
	if got, want := testRoots([]string{"tests/test_a.py", "tests/sub/tests/test_b.py", "pkg/test/a.test.js", "test/a_test.go", "test/a.test.js", "spec/helper.js", "src/a.py", "node_modules/x/test/y.test.js"}), []string{"pkg/test", "spec", "tests"}; !slices.Equal(got, want) {
		t.Errorf("testRoots = %v, want %v", got, want)
	}
	m := &moved{names: map[string]string{"pq": "test"}}
	for _, tt := range []struct{ ext, text, want string }{
		{".json", `"test": "node --test test/ ./test/a"`, `"test": "node --test pq/ ./pq/a"`},
		{".js", `const { test } = require('node:test'); require('./test/x'); test.only("test/y")`, `const { test } = require('node:test'); require('./pq/x'); test.only("pq/y")`},
		{".py", "from test.support import x\nimport test\nimport testing\n", "from pq.support import x\nimport pq\nimport testing\n"},
		{".toml", "testpaths = [\"test\"]\nname = \"test-kit\"\n", "testpaths = [\"pq\"]\nname = \"test-kit\"\n"},
		{".ini", "testpaths = test\n", "testpaths = pq\n"},
	} {
		if got := m.say(tt.text, tt.ext); got != tt.want {
			t.Errorf("say(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	for _, tt := range [][2][]string{
		{{"python3", "-m", "pytest", "test", "test/unit"}, {"python3", "-m", "pytest", "pq", "pq/unit"}},
		{{"npm", "test"}, {"npm", "test"}},
		{{"go", "test", "./..."}, {"go", "test", "./..."}},
	} {
		if got := m.command(tt[0]); !slices.Equal(got, tt[1]) {
			t.Errorf("command(%q) = %q, want %q", tt[0], got, tt[1])
		}
	}
}

// A package's entry is what its manifest says; one that leads to another file, beside
// one that stays and is not named, is found by the corpus.
func TestEntryOf(t *testing.T) {
	t.Parallel()
	read := func(name string) ([]byte, bool) {
		return []byte("x"), slices.Contains([]string{"index.js", "lib/a.js", "lib/b/index.js", "sub/index.js"}, name)
	}
	for _, tt := range []struct{ dir, manifest, want string }{
		{".", `{}`, "index.js"}, {".", `{"main": "lib/a"}`, "lib/a.js"}, {".", `{"main": "./lib/b"}`, "lib/b/index.js"}, {".", `{"main": "dist/x.js"}`, ""}, {".", `no`, ""},
		{".", `{"main": "index.js", "exports": {".": {"import": "./lib/none.mjs", "require": "./lib/a.js"}}}`, "lib/a.js"}, {".", `{"exports": "./lib/a.js"}`, "lib/a.js"}, {"sub", `{}`, "sub/index.js"},
	} {
		if got, _ := entryOf(tt.dir, []byte(tt.manifest), read); got != tt.want {
			t.Errorf("entryOf(%s, %s) = %q, want %q", tt.dir, tt.manifest, got, tt.want)
		}
	}
	for _, tt := range []struct {
		source, file string
		want         bool
	}{{`require("./lib/a")`, "lib/a.js", true}, {`export * from './lib/a.js'`, "lib/a.js", true}, {`require("./lib/ab")`, "lib/a.js", false}, {`require("..")`, "index.js", true}, {`require("./b")`, "lib/b/index.js", true}} {
		if got := names([]byte(tt.source), tt.file); got != tt.want {
			t.Errorf("names(%s, %s) = %v", tt.source, tt.file, got)
		}
	}
}
