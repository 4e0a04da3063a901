package check

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"
)

// maxPlanted caps the files that get a planted test.
const maxPlanted = 400

// planted is a test that must fail, put into a file of tests. Where a runner is
// tricked into showing failures as passes, this one does not show either.
type planted struct {
	file  string   // of the tests that it stands beside
	own   bool     // it is a file of its own, at this path
	text  string   // what is appended to the file, or is the file
	words []string // each is in the error of one planted test
	any   bool     // its suite tells no tests apart: it must fail as a whole
}

// planting is a set of such tests in one run.
type planting struct {
	word  string // in the name of each
	list  []planted
	seen  map[string]bool // words that were reported in an error
	alive map[string]bool // files of which another test was reported as passing
	lost  map[string]bool // files that broke off as a whole
}

// newPlanting makes the planted tests for some files. Their names are made of a random
// word: the code under test is not to know them.
func newPlanting(files []testFile, word string) *planting {
	p := &planting{word: word, seen: map[string]bool{}, alive: map[string]bool{}, lost: map[string]bool{}}
	for i, f := range files[:min(len(files), maxPlanted)] {
		word := func(j int) string { return fmt.Sprintf("%s%dx%d", p.word, i, j) }
		one := planted{file: f.name, any: f.any}
		switch path.Ext(f.name) {
		case ".go":
			one.own, one.words = true, []string{word(1)}
			one.file = path.Join(path.Dir(f.name), "zz"+p.word+"_test.go")
			one.text = fmt.Sprintf("package %s\n\nimport \"testing\"\n\nfunc TestZz%s(t *testing.T) { t.Error(%q) }\n", f.pkg, p.word, word(1))
		case ".py":
			one.words = []string{word(1)}
			one.text = fmt.Sprintf("\n\nimport unittest as zz%[1]s\n\n\nclass Zz%[1]s(zz%[1]s.TestCase):\n    def test_%[1]s(self):\n        self.assertEqual(%[2]q, '')\n", p.word, word(1))
			if f.bare {
				one.words = append(one.words, word(2))
				one.text += fmt.Sprintf("\n\ndef test_zz%s():\n    assert %q == ''\n", p.word, word(2))
			}
		default:
			one.words = []string{word(1), word(2)}
			one.text = plantedJS(f, p.word, word(1), word(2))
		}
		p.list = append(p.list, one)
	}
	return p
}

// plantedJS is for the runner that the file itself uses: an assertion, and an
// error that is thrown.
func plantedJS(f testFile, word, first, second string) string {
	load := ""
	test, expect := "(globalThis.test || globalThis.it)", "globalThis.expect"
	switch {
	case f.lib == "node:test" && f.esm:
		load = fmt.Sprintf("import { test as zz%[1]s } from 'node:test';\nimport za%[1]s from 'node:assert';\n", word)
		test, expect = "zz"+word, ""
	case f.lib == "node:test":
		load = fmt.Sprintf("const zz%[1]s = require('node:test').test, za%[1]s = require('node:assert');\n", word)
		test, expect = "zz"+word, ""
	case f.lib != "" && f.esm:
		load = fmt.Sprintf("import { test as zz%[1]s, expect as za%[1]s } from '%[2]s';\n", word, f.lib)
		test, expect = "zz"+word, "za"+word
	case f.lib != "":
		load = fmt.Sprintf("const { test: zz%[1]s, expect: za%[1]s } = require('%[2]s');\n", word, f.lib)
		test, expect = "zz"+word, "za"+word
	}
	check := fmt.Sprintf("za%s.strictEqual('%s', '');", word, first)
	if expect != "" {
		check = fmt.Sprintf("if (!%[1]s) throw new Error('%[2]s'); const e = %[1]s('%[2]s'); e.toBe ? e.toBe('') : e.to.equal('');", expect, first)
	}
	return fmt.Sprintf("\n;\n%[1]s%[2]s('keeps %[3]s', () => { %[4]s });\n%[2]s('holds %[3]s', () => { throw new Error('%[5]s'); });\n", load, test, word, check, second)
}

// plant writes the planted tests into a tree; any are those for suites that tell
// no tests apart.
func (p *planting) plant(ctx context.Context, tree Tree, any bool) error {
	for _, one := range p.list {
		if one.any != any {
			continue
		}
		content := []byte(one.text)
		if !one.own {
			data, err := tree.Read(ctx, one.file)
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				continue // not in this commit, or a link
			}
			content = append(bytes.TrimRight(data, "\n"), one.text...)
		}
		if err := tree.Write(ctx, one.file, content); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// made reports whether a test is a planted one.
func (p *planting) made(t *testcase) bool { return p != nil && strings.Contains(t.name, p.word) }

// look notes which planted tests a run reported as failing.
func (p *planting) look(c *checker) {
	for _, s := range c.suites {
		red := s.done.Exit != 0 || s.result.failing() > 0
		for _, one := range p.list { // a test that was not built can report nothing
			if path.Ext(one.file) == ".go" && s.result.unbuilt[c.packageOf(path.Dir(one.file))] {
				p.lost[one.file] = true
			}
		}
		for i := range s.result.cases {
			t := &s.result.cases[i]
			for _, one := range p.list {
				mine := c.belongs(t, one.file)
				switch {
				case t.status == failed && t.whole && (mine || t.group == "" && s.format != formatAny):
					p.lost[one.file] = true
				case t.status == passed && mine && !p.made(t):
					p.alive[one.file] = true
				}
				for _, w := range one.words {
					if t.status == failed && strings.Contains(t.err, w) || one.any && red {
						p.seen[w] = true
					}
				}
			}
		}
	}
}

// belongs reports whether a test stands in a file, or in its Go package.
func (c *checker) belongs(t *testcase, file string) bool {
	if path.Ext(file) == ".go" {
		return t.group == c.packageOf(path.Dir(file))
	}
	return t.file == file && t.whole || t.name == file || within(file)(t.name) || t.group == file
}

// missing returns the planted tests that should have been reported and were not.
func (p *planting) missing() []planted {
	var out []planted
	for _, one := range p.list {
		if !p.lost[one.file] && slices.ContainsFunc(one.words, func(w string) bool { return !p.seen[w] }) {
			out = append(out, one)
		}
	}
	return out
}

// testFile is a file in which a test can be planted.
type testFile struct {
	name string
	pkg  string // the Go package
	bare bool   // pytest: functions are tests
	lib  string // the JavaScript library that it takes its tests from; "": they are global
	esm  bool
	any  bool
}

var (
	goPackageLine = lazyregexp.New(`(?m)^package (\w+)`)
	jsLibrary     = lazyregexp.New(`['"](node:test|vitest|@jest/globals)['"]`)
	jsModule      = lazyregexp.New(`(?m)^\s*(?:import\s*[\w{*'"]|export\s)`)
)

// sourceFiles lists the Go, Python and JavaScript files of a tree, without those of
// others, and those of more names.
func sourceFiles(ctx context.Context, tree Tree, more ...string) ([]string, error) {
	args := []string{"find", ".", "(", "-name", ".git", "-o", "-name", "node_modules", "-o", "-name", "vendor",
		"-o", "-name", ".venv", "-o", "-name", scratch, ")", "-prune", "-o", "-type", "f", "-size", "-1024k", "(", "-name", "*.go", "-o", "-name", "*.py", "-o", "-name", "*.[cm]js", "-o", "-name", "*.[jt]s", "-o", "-name", "*.[jt]sx"}
	for _, name := range more {
		args = append(args, "-o", "-name", name)
	}
	res, err := tree.Run(ctx, workspace.Command{Timeout: time.Minute, Args: append(args, ")", "-print")})
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(res.Stdout)) {
		out = append(out, path.Clean(strings.TrimSpace(line)))
	}
	return out, nil
}

// testFiles lists the files of tests in a tree that its suites run: for Go one of
// each package that has passing tests.
func (c *checker) testFiles(ctx context.Context, tree Tree, names []string) ([]testFile, error) {
	sources, err := sourceFiles(ctx, tree)
	if err != nil {
		return nil, err
	}
	groups, whole := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		groups[testname.Parse(n).Container] = true
		file, _, _ := strings.Cut(n, "::")
		file, _, _ = strings.Cut(file, " > ")
		whole[file] = true
	}
	has := func(f format) bool {
		return slices.ContainsFunc(c.suites, func(s *suite) bool { return s.format == f })
	}
	pytest := slices.ContainsFunc(c.suites, func(s *suite) bool { return s.pytest })
	taken := map[string]bool{}
	var out []testFile
	for _, name := range sources {
		f := testFile{name: name}
		switch ext := path.Ext(f.name); {
		case ext == ".go":
			f.any = !has(formatGo)
			if !strings.HasSuffix(f.name, "_test.go") || taken[path.Dir(f.name)] || !f.any && !groups[c.packageOf(path.Dir(f.name))] {
				continue
			}
		case ext == ".py":
			f.any, f.bare = !pytest && !has(formatUnittest), pytest
			if !testname.IsFile(f.name) && !whole[f.name] || path.Base(f.name) == "__init__.py" || path.Base(f.name) == "conftest.py" || pytest && !whole[f.name] {
				continue
			}
		default:
			f.any = !has(formatTAP) && !has(formatJest)
			if !testname.IsFile(f.name) && !testNames.MatchString(path.Base(f.name)) || has(formatJest) && !has(formatTAP) && !whole[f.name] {
				continue
			}
		}
		data, err := tree.Read(ctx, f.name)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		if !f.read(data) {
			continue
		}
		taken[path.Dir(f.name)] = true
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b testFile) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// read takes what must be known of a file's text; false: nothing is planted in it.
func (f *testFile) read(data []byte) bool {
	switch path.Ext(f.name) {
	case ".go":
		m := goPackageLine.FindSubmatch(data)
		if m == nil || bytes.Contains(data, []byte("//go:build")) || !goTestDecl.Match(data) {
			return false
		}
		f.pkg = string(m[1])
	case ".py":
		return pyLang.declares(data) || bytes.Contains(data, []byte("TestCase"))
	default:
		if m := jsLibrary.FindSubmatch(data); m != nil {
			f.lib = string(m[1])
		}
		f.esm = strings.HasPrefix(path.Ext(f.name), ".m") || jsModule.Match(data)
		return jsLang.declares(data)
	}
	return true
}
