package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// selfChecks are the assertions of a program that tests itself; where it is started through
// npm or make, it may be any program, and only what is called so counts.
var (
	plainAssert = lazyregexp.New(`\bassert\b`)
	selfChecks  = lazyregexp.New(`\bassert\b|\bassert\w*[.(]|\b(?:check|expect|must)\w*\(`)
)

// editedSelfTests finds assertions that the change takes out of a file of the product
// that a test command runs: they cannot be run as they stood without the product.
func (c *checker) editedSelfTests(isTest map[string]bool) []pipeline.TestChange {
	var out []pipeline.TestChange
	for _, f := range c.patch.files {
		itself, run := c.direct[f.OldName]
		if isTest[f.OldName] || !run || languageOf(f.OldName) == nil {
			continue
		}
		added := map[string]int{}
		var gone []string
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				if l.Op == gitdiff.OpAdd {
					added[strings.TrimSpace(l.Line)]++
				}
			}
		}
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				code := strings.TrimSpace(l.Line)
				switch {
				case l.Op != gitdiff.OpDelete || !selfChecks.MatchString(code) || !itself && !plainAssert.MatchString(code):
				case added[code] > 0:
					added[code]--
				default:
					gone = append(gone, code)
				}
			}
		}
		if len(gone) > 0 {
			out = append(out, pipeline.TestChange{Test: "the checks in " + f.OldName, Files: []string{f.OldName},
				Error: text.Head(fmt.Sprintf("a test command runs this file of the product, and the change takes out of it: %s", strings.Join(gone, "; ")), changedBytes)})
		}
	}
	return out
}

var (
	pythonPath  = lazyregexp.New(`(?m)^\s*pythonpath\s*=\s*(.*(?:\n[ \t]+\S.*)*)`)
	pathEntry   = lazyregexp.New(`[\w./-]+`)
	pathConfigs = []string{"pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"}
)

// docTests is how pytest is told of documents whose examples are tests.
var docTests = lazyregexp.New(`doctest[-_]glob[=\s]+["']?([^\s"',\]]+)`)

// written lists the files of a tree's commit that commands have changed; nil where that
// cannot be told.
func written(ctx context.Context, tree Tree) []string {
	ws, ok := tree.(interface {
		Changes(ctx context.Context) ([]workspace.Change, error)
	})
	if !ok {
		return nil
	}
	list, err := ws.Changes(ctx)
	if err != nil {
		return nil // something that is no plain file: it is not what the tests compare with
	}
	var out []string
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out
}

// writesTests finds what the tests compare with, and what a run of them writes since the
// change: then they compare the product with itself.
func (v *verdict) writesTests(ctx context.Context) error {
	var bad []string
	for _, name := range v.head.wrote {
		if r := roleOf(name); (r == testData || r == testSource || inTests(name) || v.compares(name)) && !strings.Contains(name, scratch) {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 || v.o.Base == "" {
		return nil
	}
	tree, err := v.open(ctx, v.o.Head)
	if err != nil {
		return err
	}
	bad = slices.DeleteFunc(bad, func(name string) bool { // made by the run alone
		_, err := tree.Read(ctx, name)
		return err != nil
	})
	if err := tree.Close(); err != nil || len(bad) == 0 {
		return err
	}
	base, err := v.run(ctx, treeRun{sha: v.o.Base, all: true})
	if _, mine := environment(err); err != nil && !mine {
		return err
	}
	bad = slices.DeleteFunc(bad, func(name string) bool { return slices.Contains(base.wrote, name) })
	if len(bad) > 0 {
		v.found = append(v.found, pipeline.Finding{Rule: ruleForges, File: bad[0], Code: strings.Join(bad, "\n"),
			Message: fmt.Sprintf("Running the tests writes what they compare with (%s), which it did not before this change: they would compare the product with itself", strings.Join(bad[:min(len(bad), 5)], ", "))})
	}
	return nil
}

// compares reports whether what the test commands lead to names a file that is no code.
func (v *verdict) compares(name string) bool {
	_, begun := v.begun[name]
	return begun && !isCode(name)
}

// metadata are the files by which Python's packages say what loads into a test runner.
var metadata = lazyregexp.New(`(?i)(?:\.(?:egg|dist)-info|(?:^|/)EGG-INFO)/entry_points\.txt$`)

// loadsPlugins finds metadata of a package with a plugin for pytest, which loads it from
// every directory that Python looks for modules in.
func (c *checker) loadsPlugins(read func(string) ([]byte, bool)) {
	for _, f := range c.patch.files {
		link := f.NewMode&0o170000 == 0o120000 && regexp.MustCompile(`(?i)\.(?:egg|dist)-info$`).MatchString(f.NewName)
		if f.IsDelete || !link && !metadata.MatchString(f.NewName) {
			continue
		}
		now, there := read(f.NewName)
		if link || !there || bytes.Contains(now, []byte("pytest11")) && !bytes.Contains(textBefore(f, read), []byte("pytest11")) {
			c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: f.NewName,
				Message: "This metadata of a package loads a plugin into the test runner: take it out, or let a human decide that it stays"})
		}
	}
}

// twins finds a new file by which a name that users load leads to another one.
func (c *checker) twins(f *gitdiff.File, isTest map[string]bool, read func(string) ([]byte, bool)) {
	if !f.IsNew || isTest[f.NewName] {
		return
	}
	ext := path.Ext(f.NewName)
	stem, dir := strings.TrimSuffix(f.NewName, ext), path.Dir(f.NewName)
	var others []string
	switch {
	case path.Base(f.NewName) == "__init__.py":
		others = []string{dir + ".py"}
	case ext == ".py":
		others = []string{stem + "/__init__.py"}
	case path.Base(stem) == "index" && jsKinds.MatchString(ext):
		others = []string{dir + ".js", dir + ".cjs", dir + ".mjs", dir + ".ts"}
	case jsKinds.MatchString(ext):
		others = []string{stem + "/index.js", stem + "/index.ts", stem + "/index.cjs"}
		for _, e := range []string{".js", ".cjs", ".ts", ".mjs"} {
			if e != ext {
				others = append(others, stem+e)
			}
		}
	case ext == "":
		others = []string{stem + ".js", stem + ".cjs", stem + ".py", stem + "/index.js"}
	}
	for _, other := range others {
		if passesOn(f.NewName, other, read) {
			continue
		}
		if _, there := read(other); there && c.patch.file(other) == nil || there && !c.patch.file(other).IsNew {
			c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: other,
				Message: fmt.Sprintf("This new file may be loaded in the place of %s, whose name it has: give it another, or let a human decide that it stays", other)})
			return
		}
	}
}

var (
	jsRemark = lazyregexp.New(`(?s)/\*.*?\*/|(?m:^\s*//.*$)`)
	jsHands  = lazyregexp.New(`^(?:['"]use strict['"]|import\s+[\w*{}\s,$]+\s+from\s+['"][^'"]+['"]|(?:const|let|var)\s+(?:\w+|\{[\w\s,$:]*\})\s*=\s*require\(['"][^'"]+['"]\)` +
		`|export\s*\*(?:\s*as\s+\w+)?\s*from\s+['"][^'"]+['"]|export\s*\{[\w\s,$]*\}(?:\s*from\s+['"][^'"]+['"])?|export\s+default\s+\w+` +
		`|export\s+const\s+(?:\{[\w\s,$]*\}\s*=\s*\w+|(\w+)\s*=\s*\w+\.(\w+))|module\.exports\s*=\s*(?:\w+|require\(['"][^'"]+['"]\)))$`)
	jsFrom = lazyregexp.New(`(?:\bfrom\s+|\brequire\()['"]([^'"]+)['"]`)
)

// passesOn reports whether a file of JavaScript only hands on what another one exports,
// under the same names: whoever loads it gets the other.
func passesOn(name, other string, read func(string) ([]byte, bool)) bool {
	source, there := read(name)
	if !there || languageOf(name) != &jsLang {
		return false
	}
	code := jsRemark.ReplaceAll(source, nil)
	for _, m := range jsFrom.FindAllSubmatch(code, -1) {
		if at := path.Join(path.Dir(name), string(m[1])); at != other && at != strings.TrimSuffix(other, path.Ext(other)) {
			return false // of another file, too
		}
	}
	code = regexp.MustCompile(`\n\s*(?:import|export|const|let|var|module)\b`).ReplaceAllFunc(code, func(b []byte) []byte { return append([]byte(";"), b...) })
	handed := false
	for s := range strings.SplitSeq(string(code), ";") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		m := jsHands.FindStringSubmatch(s)
		if m == nil || m[1] != m[2] || regexp.MustCompile(`\bas\s+\w+|:`).MatchString(jsFrom.ReplaceAllString(s, "")) && strings.Contains(s, "{") {
			return false
		}
		handed = handed || jsFrom.MatchString(s)
	}
	return handed
}

// entryMoved finds that a package's name leads to another file than it did, while the
// one that it led to stays, and has nothing to do with it.
func (c *checker) entryMoved(f *gitdiff.File, read func(string) ([]byte, bool)) {
	if path.Base(f.NewName) != "package.json" || f.IsNew || f.IsDelete || strings.Contains(f.NewName, "node_modules/") {
		return
	}
	now, _ := read(f.NewName)
	dir := path.Dir(f.NewName)
	was, wasText := entryOf(dir, textBefore(f, read), read)
	is, isText := entryOf(dir, now, read)
	if was == "" || is == "" || was == is || names(isText, was) || names(wasText, is) {
		return
	}
	c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: was,
		Message: fmt.Sprintf("Whoever loads this package, its tests among them, gets %s now and not %s, which stays beside it: let one load the other, or let a human decide that it stays", is, was)})
}

// names reports whether a source file names another one.
func names(source []byte, file string) bool {
	stem := strings.TrimSuffix(path.Base(file), path.Ext(file))
	if stem == "index" {
		stem = path.Base(path.Dir(file))
		if stem == "." {
			return regexp.MustCompile(`["'](?:\.\.?/?)+(?:index(?:\.\w+)?)?["']`).Match(source)
		}
	}
	return regexp.MustCompile(`["'][^"']*\b` + regexp.QuoteMeta(stem) + `(?:\.\w+)?/?["']`).Match(source)
}

// entryOf returns the file that the name of a package leads to, and its text; "" when it
// is not there.
func entryOf(dir string, manifest []byte, read func(string) ([]byte, bool)) (string, []byte) {
	var m struct {
		Main    string          `json:"main"`
		Exports json.RawMessage `json:"exports"`
	}
	if json.Unmarshal(bytes.TrimPrefix(manifest, byteOrderMark), &m) != nil {
		return "", nil
	}
	main := cmp.Or(exported(m.Exports), m.Main, "index.js")
	for _, name := range []string{main, main + ".js", main + ".cjs", main + "/index.js"} {
		name = path.Join(dir, name)
		if text, there := read(name); there {
			return name, text
		}
	}
	return "", nil
}

// exported is the file that the "exports" of a package name for the package itself.
func exported(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name
	}
	var by map[string]json.RawMessage
	if json.Unmarshal(raw, &by) != nil {
		return ""
	}
	for _, key := range []string{".", "require", "node", "import", "default"} {
		if found := exported(by[key]); found != "" {
			return found
		}
	}
	return ""
}

var jsKinds = lazyregexp.New(`^\.(?:[cm]?[jt]s|json|node)$`)

// file returns what the change does to a file, nil for nothing.
func (p *patch) file(name string) *gitdiff.File {
	for _, f := range p.files {
		if f.NewName == name {
			return f
		}
	}
	return nil
}

// runners are modules of Python that run tests, that those load first, or that Python
// loads by itself. What lies beside the tests under such a name comes before them.
var runners = []string{"pytest", "_pytest", "unittest", "doctest", "nose", "nose2", "pluggy", "iniconfig", "exceptiongroup", "hypothesis", "xdist", "coverage", "mock",
	"sitecustomize", "usercustomize"}

// shadowing finds new modules of Python that the tests load in the place of another of
// their name: users would get that one.
func (c *checker) shadowing(isTest map[string]bool, read func(string) ([]byte, bool)) {
	var roots []string
	for _, name := range pathConfigs {
		data, _ := read(name)
		for _, m := range pythonPath.FindAllSubmatch(data, -1) {
			for _, w := range pathEntry.FindAllString(string(m[1]), -1) {
				roots = append(roots, path.Clean(w))
			}
		}
	}
	if !slices.Contains(roots, ".") {
		roots = append(roots, ".")
	}
	others := roots // where tests may put what they look for modules in
	for _, dir := range []string{"src", "lib"} {
		if !slices.Contains(others, dir) {
			others = append(others[:len(others):len(others)], dir)
		}
	}
	for _, f := range c.patch.files {
		c.twins(f, isTest, read)
		c.entryMoved(f, read)
		dir, base := path.Split(f.NewName)
		if top, _, _ := strings.Cut(f.NewName, "/"); f.IsNew && slices.Contains(runners, strings.TrimSuffix(top, ".py")) && path.Ext(base) == ".py" {
			c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: top,
				Message: fmt.Sprintf("Python loads %s in the place of what runs the tests, which has its name: give it another, or let a human decide that it stays", top)})
			continue
		}
		stem := strings.TrimSuffix(base, ".py")
		if base == "__init__.py" && path.Clean(dir) != "." {
			dir, stem = path.Split(path.Clean(dir))
		}
		if !f.IsNew || isTest[f.NewName] || path.Ext(base) != ".py" || !slices.Contains(roots, path.Clean(dir)) {
			continue
		}
		for _, other := range others {
			twin := path.Join(other, stem+".py")
			_, there := read(twin)
			if !there {
				twin = path.Join(other, stem, "__init__.py")
				_, there = read(twin)
			}
			if twin == f.NewName || path.Clean(other) == path.Clean(dir) || !there {
				continue
			}
			c.reached = append(c.reached, pipeline.Finding{Rule: ruleForges, File: f.NewName, Line: 1, Code: twin,
				Message: fmt.Sprintf("The tests may load this new module in the place of %s, which has its name: give it another, or let a human decide that it stays", twin)})
			break
		}
	}
}
