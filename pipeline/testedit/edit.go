// Package testedit says which parts of the tests of a base a change edits: each test, each
// helper and fixture, and each file that decides how tests run. Comments and formatting do
// not count.
package testedit

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// What became of a part.
const (
	Added   = "added"   // it was not there, and tests of the base run with it
	Removed = "removed" // it is nowhere any more
)

// How a test does as it stood at the base, on the changed code.
const (
	Passes = "passes"
	Fails  = "fails"
)

// Edit is one part of the tests that a change edits.
type Edit struct {
	File  string `json:"file"`
	Part  string `json:"part,omitempty"` // a test, or what tests use; "": the file as a whole
	What  string `json:"what,omitempty"` // Added, Removed; "" for edited
	Test  bool   `json:"test,omitempty"`
	Stood string `json:"stood,omitempty"` // of a test: Passes, Fails; "" where that is not known
}

// Name is the part with its file.
func (e Edit) Name() string {
	if e.Part == "" {
		return e.File
	}
	return e.File + ": " + e.Part
}

// Says tells what the change does to the part, and whether it had to.
func (e Edit) Says() string {
	what := e.What
	if what == "" {
		what = "edited"
	}
	switch {
	case e.Test && e.Stood == Passes:
		return "passes as it stood; " + what + " all the same"
	case e.Test && e.Stood == Fails:
		return "does not pass as it stood; " + what
	case e.Test:
		return what + "; how it does as it stood is not known"
	case e.What == Added:
		return "added; tests of the base run with it"
	}
	return what + "; it is no test itself, tests of the base use it"
}

// String is both in a line.
func (e Edit) String() string { return e.Name() + " (" + e.Says() + ")" }

// List names edits in a line, with what is to be said of each.
func List(list []Edit) string {
	var out []string
	for _, e := range list {
		out = append(out, e.String())
	}
	return strings.Join(out, ", ")
}

// File is a file of the tests, as a change finds it and leaves it.
type File struct {
	Old, New string // paths; "" where it is not there
	Was, Is  []byte // nil where it is not text
	Applies  bool   // a new one counts for tests of the base
}

// Compare returns what a change edits, in the order of the files.
func Compare(files []File) []Edit {
	bodies := map[string]bool{}
	for _, f := range files {
		if now, ok := read(f.New, f.Is); ok && f.New != "" {
			for name, p := range now {
				bodies[p.body(name)] = true
			}
		}
	}
	var out []Edit
	for _, f := range files {
		out = append(out, f.compare(bodies)...)
	}
	return out
}

// holdsTests tells a file of tests by its name, in languages that have no reader: what their test
// libraries look for. ofHelpers are files that have such a name and hold none.
var (
	holdsTests = lazyregexp.New(`(?:^|/)test_[^/]*\.rb$|_(?:test|spec)\.(?:rb|exs)$|(?:Tests?|Spec|IT)\.(?:php|java|kt|cs|fs|scala|swift|groovy)$`)
	ofHelpers  = lazyregexp.New(`(?:^|/)(?:test|spec|rails)_helper\.rb$`)
)

func isTest(name string) bool { return holdsTests.MatchString(name) && !ofHelpers.MatchString(name) }

func (f File) compare(bodies map[string]bool) []Edit {
	name := f.Old
	if name == "" {
		return f.fresh()
	}
	was, ok := read(f.Old, f.Was)
	now, fine := read(f.New, f.Is)
	switch {
	case f.New == "" && !ok:
		return []Edit{{File: name, What: Removed, Test: isTest(name)}}
	case f.New != "" && (!ok || !fine):
		if f.Was != nil && f.Is != nil && essence(f.Old, f.Was) == essence(f.New, f.Is) {
			return nil
		}
		return []Edit{{File: f.New, Test: isTest(f.New)}}
	}
	if f.New != "" {
		name = f.New
	}
	var out []Edit
	for _, key := range sorted(was) {
		p := was[key]
		switch is := now[key]; {
		case is == nil && p.kind == load, is != nil && is.text == p.text:
		case is == nil && bodies[p.body(key)]: // moved, or under another name
		case is == nil:
			out = append(out, Edit{File: name, Part: key, What: Removed, Test: p.kind == test})
		default:
			out = append(out, Edit{File: name, Part: key, Test: p.kind == test})
		}
	}
	for _, key := range sorted(now) {
		p := now[key]
		if was[key] != nil || p.kind == test || p.kind != hook && !uses(was, was.fresh(p)) {
			continue
		}
		if of, _, member := strings.Cut(key, "."); member && was[of] == nil && now[of] != nil {
			continue // of a class or a type that is new itself
		}
		out = append(out, Edit{File: name, Part: key, What: Added})
	}
	return out
}

// fresh is what of a new file tests of the base run with: all of one that decides how tests
// run, and what runs of itself in one of Go's tests.
func (f File) fresh() []Edit {
	switch now, ok := read(f.New, f.Is); {
	case !f.Applies:
		return nil
	case !ok || path.Ext(f.New) != ".go":
		return []Edit{{File: f.New, What: Added}}
	default:
		var out []Edit
		for _, key := range sorted(now) {
			if now[key].kind == hook && !strings.Contains(key, ".") && key != directives {
				out = append(out, Edit{File: f.New, Part: key, What: Added})
			}
		}
		return out
	}
}

// uses reports whether one of some names stands in the parts that were there.
func uses(was map[string]*part, names []string) bool {
	for _, name := range names {
		re := regexp.MustCompile(`(?:^|[^\w$])` + regexp.QuoteMeta(name) + `(?:[^\w$]|$)`)
		for _, p := range was {
			if p.kind != load && re.MatchString(p.text) {
				return true
			}
		}
	}
	return false
}

func sorted(parts map[string]*part) []string {
	out := make([]string, 0, len(parts))
	for key := range parts {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b string) int {
		if d := parts[a].at - parts[b].at; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return out
}

// kind is what a part is for.
type kind int

const (
	plain kind = iota // a helper, a table, a fixture that is asked for
	test
	hook // runs with every test of its file, whoever uses it
	load // brings a name in from elsewhere
)

// part is a piece of a file of tests, without comments and formatting.
type part struct {
	kind  kind
	text  string
	binds []string // the names that it brings
	from  string   // of a load: the module
	at    int      // its place among the others
}

// body is the text without the part's own name, by which it is known again elsewhere.
func (p *part) body(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && p.kind != load && !strings.Contains(name, " ") {
		name = name[i+1:]
	} else if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return strings.Replace(p.text, name, "", 1)
}

// parts collects the pieces of a file. Of two that have one name the later may take the
// other's place: both are its text.
type parts map[string]*part

func (p parts) add(key, text string, kind kind, binds ...string) {
	if had := p[key]; had != nil {
		had.text += "\n" + text
		return
	}
	p[key] = &part{kind: kind, text: text, binds: binds, at: len(p)}
}

// fresh lists the names that a part brings and that did not come from there before.
func (p parts) fresh(of *part) []string {
	return slices.DeleteFunc(slices.Clone(of.binds), func(name string) bool {
		for _, had := range p {
			if of.kind == load && had.kind == load && had.from == of.from && slices.Contains(had.binds, name) {
				return true
			}
		}
		return false
	})
}

// load adds what brings names in from a module.
func (p parts) load(text, from string, binds ...string) {
	p.add(text, text, load, binds...)
	p[text].from = from
}

// around is what belongs to a file and to none of its parts.
const around = "the code around its tests"

// read takes a file apart; false where its language has no reader.
func read(name string, source []byte) (parts, bool) {
	if source == nil {
		return nil, false
	}
	switch path.Ext(name) {
	case ".go":
		return readGo(source)
	case ".py":
		return readPython(string(source))
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts":
		return readScript(string(source))
	case ".rs":
		return readRust(name, string(source))
	}
	return nil, false
}

// essence is a file without its blank lines and the lines that are comments alone.
func essence(name string, source []byte) string {
	remark := ""
	switch path.Ext(name) {
	case ".rb", ".sh", ".bash", ".ex", ".exs", ".pl", ".toml", ".yml", ".yaml", ".cfg", ".ini", ".mk", ".py":
		remark = "#"
	case ".rs", ".java", ".kt", ".cs", ".c", ".cc", ".cpp", ".h", ".swift", ".scala", ".php", ".go", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".groovy", ".dart":
		remark = "//"
	default:
		return string(source)
	}
	var b strings.Builder
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && !(strings.HasPrefix(strings.TrimSpace(line), remark) && !strings.HasPrefix(line, "#!")) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
