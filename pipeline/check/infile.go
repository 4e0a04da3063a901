package check

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// Tests that stand in files of the product. Rust has most of its tests there: the file as
// the change has it is given the base's tests back, and is put into the tree in which these
// run as they stood.

// insideEdits finds files of the product of which the change edits the tests inside. Those
// that have no place in it any more are told as they are.
func (c *checker) insideEdits(isTest map[string]bool, read func(string) ([]byte, bool)) []edit {
	var out []edit
	for _, f := range c.patch.files {
		if path.Ext(nameOf(f)) != ".rs" || isTest[nameOf(f)] || f.IsBinary {
			continue
		}
		var now []byte
		if !f.IsDelete {
			now, _ = read(f.NewName)
		}
		before := textBefore(f, read)
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
	grafted, same, ok := graft(f.NewName, before, now)
	if !ok || same {
		return nil, ok && same
	}
	return &edit{name: f.NewName, role: testSource, added: f.IsNew, before: before, merged: grafted}, false
}

// allMoved reports whether all tests of a file that goes are in other files of the change.
func (c *checker) allMoved(f *gitdiff.File, before []byte, read func(string) ([]byte, bool)) bool {
	var others [][]byte
	for _, o := range c.patch.files {
		if path.Ext(o.NewName) == ".rs" && !o.IsDelete {
			now, _ := read(o.NewName)
			others = append(others, now)
		}
	}
	return movedRust(before, others)
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
		if declaresForTests(source, stem) {
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
