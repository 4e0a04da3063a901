package change

import (
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/source"
)

// Why a change does not count.
const (
	idleHere  = "what changed at its place has no effect"
	idleMoved = "its code was moved as it was"
	idleFolds = "its code stands in another form: a lambda, a class that holds it alone, a function of its own for a part, or a tuple"
	idleNames = "only names of variables differ, values stand in a variable first, or nothing reads a new one"
)

// settle takes back that a place has changed when its code does what it did before: only
// how it is written has changed, or it was moved with all of its function.
func (c Change) settle(fate *Fate, p Place, now func(file string) (content string, ok bool)) {
	i := slices.IndexFunc(c.Files, func(f *File) bool { return f.From == p.File && !f.Binary })
	if i < 0 {
		return
	}
	f := c.Files[i]
	content := ""
	if !f.Deleted {
		content, _ = now(f.Path)
	}
	old := f.before(splitLines(content))
	before, known := source.Read(f.From, strings.Join(old, "\n")+"\n")
	after, read := source.Read(f.Path, content)
	if p = p.locate(old); !known || !read || p.Line > len(old) {
		return
	}
	kinds := p.kinds(before)
	v := versions{source.Keep(before, kinds), source.Keep(after, kinds)}
	if p.Line == 0 {
		if !f.Deleted && source.Equal(v.old, v.new) {
			fate.Changed, fate.Idle = false, idleHere
		}
		return
	}
	from, to := surroundings(old, p)
	if !f.Deleted && !v.differ(from, to) {
		fate.Changed, fate.Idle = false, idleHere
		return
	}
	if !f.Deleted && renamed(p, f.Path, old, splitLines(content), v) {
		fate.Changed, fate.Idle = false, idleNames
		return
	}
	c.moved(fate, f, p, old, v, kinds, now)
	if fate.Changed && !f.Deleted && refolded(p, f.Path, old, v) {
		fate.Changed, fate.Idle = false, idleFolds
	}
}

var called = lazyregexp.New(`([\pL_$][\pL\pN_$]*)\s*\(`)

// renamed reports whether the function around a place does what it did, with other names of
// its variables or values put into one, and what is said of the place is about none of them.
func renamed(p Place, file string, old, new []string, v versions) bool {
	first, last := block(old, p.Line, min(max(p.Line, p.End), len(old)))
	name := called.FindStringSubmatch(old[first-1])
	if name == nil || !defines.MatchString(old[first-1]) && (!method.MatchString(old[first-1]) || control.MatchString(old[first-1])) {
		return false
	}
	head := slices.IndexFunc(new, func(l string) bool {
		m := called.FindStringSubmatch(l)
		return m != nil && m[1] == name[1] && (defines.MatchString(l) || method.MatchString(l) && !control.MatchString(l))
	})
	if head < 0 {
		return false
	}
	base, _ := indent(new[head])
	i, j := source.Span(v.old, first, last)
	k, l := source.Span(v.new, head+1, below(new, head+1, base))
	names, same := source.SameButNames(file, v.old[i:j], v.new[k:l])
	if !same || source.Equal(v.old[i:j], v.new[k:l]) || p.names(names) {
		return false
	}
	rest := versions{without(v.old, i, j), without(v.new, k, l)}
	from, to := surroundings(old, p)
	return !rest.differ(from, to)
}

// names reports whether what is said of a place has one of some names.
func (p Place) names(list []string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(p.About) })
}

// asksForm tells what is said of how code is divided, which another form of it may settle.
var asksForm = lazyregexp.New(`(?i)\b(?:lambda|static ?method|extract|helper|duplicat\w+|repeat\w+|split|too (?:long|complex)|wrapper|tuple|class)\b`)

// refolded reports whether the function of Python around a place does what it did in another form.
func refolded(p Place, file string, old []string, v versions) bool {
	first, last := block(old, p.Line, min(max(p.Line, p.End), len(old)))
	name := called.FindStringSubmatch(old[first-1])
	if !strings.HasSuffix(file, ".py") || name == nil || !strings.HasPrefix(old[first-1], "def ") || asksForm.MatchString(p.About) {
		return false
	}
	i, j := source.Span(v.old, first, last)
	list, k, l, ok := source.Unfold(v.old, v.new, name[1])
	if !ok {
		return false
	}
	names, same := source.SameButNames(file, v.old[i:j], list[k:l])
	if !same || p.names(names) {
		return false
	}
	rest := versions{without(v.old, i, j), without(list, k, l)}
	from, to := surroundings(old, p)
	return !rest.differ(from, to)
}

// moved follows a function that stands elsewhere now, word for word.
func (c Change) moved(fate *Fate, f *File, p Place, old []string, v versions, kinds source.Kind, now func(string) (string, bool)) {
	first, last := block(old, p.Line, min(max(p.Line, p.End), len(old)))
	if l := old[first-1]; !defines.MatchString(l) && (!method.MatchString(l) || control.MatchString(l)) {
		return
	}
	i, j := source.Span(v.old, first, last)
	code := v.old[i:j]
	if at := source.Find(v.new, code); at >= 0 {
		rest := versions{without(v.old, i, j), without(v.new, at, at+len(code))}
		if from, to := surroundings(old, p); !rest.differ(from, to) {
			fate.Changed, fate.Idle = false, idleMoved
			fate.Line, fate.End = v.new[at].Line+p.Line-first, 0
		}
		return
	}
	for _, g := range c.Files {
		content, ok := now(g.Path)
		if g == f || g.Deleted || g.Binary || !ok {
			continue
		}
		list, known := source.Read(g.Path, content)
		was, _ := source.Read(g.Path, strings.Join(g.before(splitLines(content)), "\n"))
		list = source.Keep(list, kinds)
		at := source.Find(list, code)
		if !known || at < 0 || g.From != "" && source.Find(source.Keep(was, kinds), code) >= 0 {
			continue
		}
		*fate = Fate{File: g.Path, Line: list[at].Line + p.Line - first, Idle: idleMoved + ", to " + g.Path}
		return
	}
}

// Effect reports whether the change of a file does more than to write the same code in
// another way. Of a language that is not known, all but white space does.
func (f *File) Effect(now func(file string) (content string, ok bool)) bool {
	if f.Binary || f.Deleted || len(f.notes) > 0 && f.From != "" {
		return true
	}
	content, _ := now(f.Path)
	before, _ := source.Read(f.Path, strings.Join(f.before(splitLines(content)), "\n")+"\n")
	after, known := source.Read(f.Path, content)
	if known {
		return !source.Equal(source.Keep(before, source.Code), source.Keep(after, source.Code))
	}
	for i := range f.hunks {
		if slices.ContainsFunc(f.hunks[i].edits(commentsOf(f.Path), indented(f.Path)), func(e edit) bool { return !e.blank }) {
			return true
		}
	}
	return false
}

// OnlyMoved reports whether nothing but the file's name is another.
func (f *File) OnlyMoved() bool {
	added, removed := f.Touched()
	return f.From != "" && f.From != f.Path && added+removed == 0 && !f.Binary
}

// Asserts reports whether the change of a test file may assert anything: it replaces code,
// or what it adds names more than the words of tests and constants.
func (f *File) Asserts() bool {
	var added strings.Builder
	for i := range f.hunks {
		for _, l := range f.hunks[i].lines {
			if l.op == '-' && strings.TrimSpace(commentsOf(f.Path).toEnd(l.text)) != "" {
				return true
			}
			if l.op == '+' && !imports.MatchString(l.text) {
				added.WriteString(l.text + "\n")
			}
		}
	}
	list, known := source.Read(f.Path, added.String())
	return f.Deleted || f.Binary || !known || slices.ContainsFunc(source.Keep(list, source.Code), func(t source.Token) bool {
		return names.MatchString(t.Text) && !testWords.MatchString(t.Text)
	})
}

var (
	imports   = lazyregexp.New(`^\s*(?:import\b|from\b|package\b|(?:const|let|var)\b.*\brequire\()`)
	names     = lazyregexp.New(`^[A-Za-z_$]`)
	testWords = lazyregexp.New(`^(?i:_?tests?(?:_.*)?|Test\w*|def|func|function|it|describe|class|self|this|t|b|async|await|return|pass|const|let|var|void|public|static|final|` +
		`true|false|none|nil|null|undefined|object|unittest|testing|pytest|mark|assert\w*|expect|require|should|must|be|to|not|ok|equals?|is|in|and|or|toBe\w*|toEqual|strictEqual|deepEqual|` +
		`log|fatal|error|errorf|fatalf|skip|run|if|else|for|range|do|end)$`)
)

// versions are the tokens of a file at two commits.
type versions struct{ old, new []source.Token }

// differ reports whether anything between two old lines is another now.
func (v versions) differ(from, to int) bool {
	edits, ok := source.Diff(v.old, v.new)
	return !ok || slices.ContainsFunc(edits, func(e source.Edit) bool {
		if e.From == e.To {
			return (e.From == 0 || v.old[e.From-1].Line <= to) && (e.To == len(v.old) || v.old[e.To].Line >= from)
		}
		return v.old[e.From].Line <= to && v.old[e.To-1].Line >= from
	})
}

// without is a list without a part, and without its blocks: what a function leaves behind.
func without(list []source.Token, from, to int) []source.Token {
	rest := slices.Delete(slices.Clone(list), from, to)
	return slices.DeleteFunc(rest, source.IsLayout)
}

// What a finding may be about although it has no effect.
var aboutKinds = map[source.Kind]*lazyregexp.Regexp{
	source.Comment: lazyregexp.New(`(?i)\bcomments?\b`),
	source.Idle:    lazyregexp.New(`(?i)\bdoc[- ]?strings?\b|\b(?:dead code|unreachable|never (?:run|read|used|reached)|unused|unread|redundant|useless|superfluous|no[- ]ops?|no effect)\b`),
	source.Hint:    lazyregexp.New(`(?i)\b(?:type hints?|annotat\w+|typing|mypy|pyright)\b`),
}

// AboutNoEffect reports whether words name what has no effect: a comment, dead code, a hint.
func AboutNoEffect(words string) bool { return Place{About: words}.kinds(nil) != 0 }

// kinds are those tokens without effect that count at a place: it holds such, or they are
// what is said of it.
func (p Place) kinds(list []source.Token) source.Kind {
	var out source.Kind
	for k, re := range aboutKinds {
		if re.MatchString(p.About) {
			out |= k
		}
	}
	for _, t := range list {
		if t.Line >= p.Line && t.Line <= max(p.Line, p.End) {
			out |= t.Kind
		}
	}
	return out
}
