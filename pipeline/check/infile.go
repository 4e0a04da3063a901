package check

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testedit"
	"forge/pipeline/testname"
)

// Tests that stand in files of the product. Rust has most of its tests there: the file as
// the change has it is given the base's tests back, and is put into the tree in which these
// run as they stood.

// lines are stretches of a file of the head that are tests, or of the base.
type lines []testedit.Span

func (l lines) hold(n int) bool {
	return slices.ContainsFunc(l, func(s testedit.Span) bool { return n >= s.From && n <= s.To })
}

// linesOf turns stretches in bytes into such in lines, from 1.
func linesOf(source []byte, spans []testedit.Span) lines {
	var out lines
	for _, s := range spans {
		out = append(out, testedit.Span{From: 1 + bytes.Count(source[:s.From], []byte("\n")), To: 1 + bytes.Count(source[:s.To], []byte("\n"))})
	}
	return out
}

// insideEdits finds files of the product of which the change edits the tests inside. Those
// that have no place in it any more are told as they are.
func (c *checker) insideEdits(isTest map[string]bool, read func(string) ([]byte, bool)) []edit {
	var out []edit
	c.patch.inside, c.patch.insideBase = map[string]lines{}, map[string]lines{}
	for _, f := range c.patch.files {
		if path.Ext(nameOf(f)) != ".rs" || isTest[nameOf(f)] || f.IsBinary {
			continue
		}
		var now []byte
		if !f.IsDelete {
			now, _ = read(f.NewName)
		}
		before := textBefore(f, read)
		is, fine := testedit.Inside(f.NewName, now)
		was, ok := testedit.Inside(f.OldName, before)
		if fine {
			c.patch.inside[f.NewName] = linesOf(now, is)
		}
		if ok {
			c.patch.insideBase[f.OldName] = linesOf(before, was)
		}
		switch e, same := c.insideEdit(f, before, now, read); {
		case same:
		case e != nil:
			out = append(out, *e)
		default:
			c.inside = append(c.inside, pipeline.TestChange{Test: "the tests in " + nameOf(f), Files: []string{nameOf(f)},
				Error: "they stand in a file of the product that the change rewrites, and could not be run as they stood"})
		}
	}
	return out
}

// declaresTests tells files of Rust that may hold tests.
var declaresTests = lazyregexp.New(`#!?\[[^\]]*test|#\[bench\]`)

// insideEdit is what puts the base's tests back into a file; nil where nothing does.
func (c *checker) insideEdit(f *gitdiff.File, before, now []byte, read func(string) ([]byte, bool)) (e *edit, same bool) {
	switch {
	case !f.IsNew && c.loadedForTests(f.OldName, read):
		return &edit{name: f.OldName, role: testSource, before: before}, false
	case !declaresTests.Match(before) && !declaresTests.Match(now):
		return nil, true
	case f.IsDelete:
		return nil, c.allMoved(f, before, read)
	case before == nil && !f.IsNew:
		return nil, false
	}
	grafted, same, ok := testedit.Graft(f.NewName, before, now)
	if !ok || same {
		return nil, ok && same
	}
	return &edit{name: f.NewName, role: testSource, added: f.IsNew, before: before, merged: grafted}, false
}

// allMoved reports whether all tests of a file that goes are in other files of the change.
func (c *checker) allMoved(f *gitdiff.File, before []byte, read func(string) ([]byte, bool)) bool {
	files := []testedit.File{{Old: f.OldName, Was: before}}
	for _, o := range c.patch.files {
		if path.Ext(o.NewName) == ".rs" && !o.IsDelete {
			now, _ := read(o.NewName)
			files = append(files, testedit.File{New: o.NewName, Is: now})
		}
	}
	return len(testedit.Compare(files)) == 0
}

// loadedForTests reports whether the base loads a file of Rust as a module for tests alone.
func (c *checker) loadedForTests(name string, read func(string) ([]byte, bool)) bool {
	dir, stem := path.Dir(name), strings.TrimSuffix(path.Base(name), ".rs")
	if stem == "mod" {
		dir, stem = path.Dir(dir), path.Base(dir)
	}
	for _, parent := range []string{dir + "/lib.rs", dir + "/main.rs", dir + "/mod.rs", dir + ".rs"} {
		source, ok := read(parent)
		if f := c.patch.file(parent); f != nil {
			source = textBefore(f, read)
		} else if !ok {
			continue
		}
		if testedit.DeclaresForTests(source, stem) {
			return true
		}
	}
	return false
}

// inProduct reports whether a file of the product is given the base's tests back.
func (e edit) inProduct() bool { return e.merged != nil && path.Ext(e.name) == ".rs" }

var (
	rustItemLine = lazyregexp.New(`^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe|default|extern(?:\s+"[^"]*")?)\s+)*(?:fn|struct|enum|union|trait|mod|type|const|static|macro_rules!)\s+(\w+)`)
	exDocTest    = lazyregexp.New(`(?m)^\s*(?:iex|\.\.\.)(?:\(\d+\))?>.*(?:\n\s*[^\s"].*)*`)
)

// rustExamples returns the examples in the documentation of a file, by the name of what
// they document; "" is the file.
func rustExamples(source []byte) map[string]string {
	out := map[string]string{}
	var example strings.Builder
	fenced := false
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		doc, outer := strings.CutPrefix(line, "///")
		if !outer {
			doc, _ = strings.CutPrefix(line, "//!")
		}
		switch isDoc := outer || doc != line; {
		case isDoc && strings.HasPrefix(strings.TrimSpace(doc), "```"):
			fenced = !fenced
			example.WriteString(strings.TrimSpace(doc) + "\n")
		case isDoc && fenced:
			example.WriteString(strings.TrimSpace(doc) + "\n")
		case isDoc, strings.HasPrefix(line, "#["):
		default:
			fenced = false
			if example.Len() > 0 {
				name := ""
				if m := rustItemLine.FindStringSubmatch(line); m != nil {
					name = m[1]
				}
				out[name] += example.String()
			}
			example.Reset()
		}
	}
	return out
}

// editedExamples finds examples in the documentation of the product that are tests of the
// base, and that the change edits: they cannot be put back without the product.
func (c *checker) editedExamples(names []string, isTest map[string]bool, read func(string) ([]byte, bool)) []pipeline.TestChange {
	var out []pipeline.TestChange
	for _, f := range c.patch.files {
		ext := path.Ext(f.OldName)
		if f.IsNew || f.IsDelete || isTest[f.OldName] || ext != ".rs" && ext != ".ex" {
			continue
		}
		now, _ := read(f.NewName)
		before := textBefore(f, read)
		why := "its text stands in the documentation of " + f.OldName + ", and the change edits it: it could not be run as it stood"
		if ext == ".ex" {
			tested := slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "doctest ") })
			if was := exDocTest.FindAll(before, -1); tested && !containsAll(now, was) {
				out = append(out, pipeline.TestChange{Test: "the examples in " + f.OldName, Files: []string{f.OldName}, Error: why})
			}
			continue
		}
		was, is := rustExamples(before), rustExamples(now)
		for _, name := range names {
			_, of, mine := strings.Cut(name, "::doc::")
			item, ok := strings.CutPrefix(of, f.OldName+" -")
			for dir := f.OldName; mine && !ok && strings.Contains(dir, "/"); { // of a member of a workspace
				_, dir, _ = strings.Cut(dir, "/")
				item, ok = strings.CutPrefix(of, dir+" -")
			}
			item = strings.TrimSpace(item)
			item = item[strings.LastIndexByte(item, ':')+1:]
			if mine && ok && was[item] != is[item] {
				out = append(out, pipeline.TestChange{Test: name, Files: []string{f.OldName}, Error: why})
			}
		}
	}
	return out
}

func containsAll(text []byte, parts [][]byte) bool {
	return !slices.ContainsFunc(parts, func(p []byte) bool { return !bytes.Contains(text, bytes.TrimSpace(p)) })
}

// rustPart reports whether a test of cargo's stands for a part of a file.
func rustPart(name, file, part string) bool {
	file = strings.TrimSuffix(file, ".rs")
	if i := strings.LastIndex("/"+file, "/src/"); i >= 0 {
		file = file[i+len("src/"):]
	} else {
		file = path.Base(file) // a program of its own
	}
	at := append(strings.Split(file, "/"), part)
	at = slices.DeleteFunc(at, func(s string) bool { return s == "lib" || s == "main" || s == "mod" })
	return strings.HasSuffix("::"+name, "::"+strings.Join(at, "::"))
}

// rustReaches are what code under test asks, or puts in the way of its tests. Where tests
// stand in the same file, only what is outside of them is looked at.
var rustReaches = []reach{
	{ruleDetects, lazyregexp.New(`\bcfg!?\(.*\bnot\(.*\btest\b|\bcfg!\(.*\btest\b|#!?\[cfg\((?:test|all\(.*\btest\b.*)\)\]`), nil, "asks whether it is compiled for tests"},
	{ruleDetects, lazyregexp.New(`\bcfg_attr\((?:\w+\()*test\b\)*\s*,\s*(?:path|cfg|macro_use|no_implicit_prelude)|\bcfg_attr\(.*\btest\b.*\bpath\s*=`), nil, "asks whether it is compiled for tests"},
	{ruleDetects, lazyregexp.New(`\bcurrent_exe\b|\bthread::current\(\)|\bCARGO_(?:PRIMARY_PACKAGE|BIN_NAME|CRATE_NAME|TARGET_TMPDIR)\b|\bRUST_TEST_\w+`), lazyregexp.New(`["']/?(?:deps|target|main|test\w*)/?["']|\.is_(?:some|ok|none|err)\(\)`), byItsRun},
	{ruleForges, lazyregexp.New(`\bmacro_rules!\s*(?:debug_)?assert\w*\b|\bmacro_rules!\s*(?:panic|unreachable|unimplemented|todo|matches)\b|\buse\b[^;]*\b(?:as\s+|::)(?:debug_)?assert(?:_eq|_ne|_matches)?\b`), nil, "puts something in the place of what tests assert with"},
	{ruleForges, lazyregexp.New(`\b(?:panic::(?:set_hook|take_hook)|set_hook\()`), lazyregexp.New(`\bexit\(`), "changes how the process ends"},
}

// inTestsOf reports whether a line of the head stands among the tests inside a file.
func (p *patch) inTestsOf(name string, line int) bool {
	return path.Ext(name) == ".rs" && (testname.IsFile(name) || p.inside[name].hold(line))
}
