// Package cite keeps what a learning is about: of each name that it tells of, digests of
// the lines of its definition. Later they are compared with the code as it is by then:
// is it there still, has it changed so much that what was learnt may not hold, or has it
// moved. Comments, white space and the form of the code do not count.
//
// The package is pure and stores nothing.
package cite

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/record"
	"forge/pipeline/source"
)

const (
	sampled   = 24   // digests of a definition that are kept
	fewLines  = 3    // a definition of no more lines is told by its name and what is in it
	asItWas   = 0.4  // share of the lines that are left, from which a definition is the same
	elsewhere = 0.5  // likewise, of one in another file
	mostLines = 1000 // of a definition
	mostOf    = 50   // definitions of one name in a file
)

// Of returns what is cited of a file: of the names that are defined in it, each with what
// else of the words stands in its definition. The words are the names, and whatever else is
// told of them.
func Of(path, text string, names, words []string) (out []record.Cite) {
	f := read(path, text)
	for _, n := range names {
		places := f.places(n)
		if len(places) == 0 {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == n })
		at := slices.MaxFunc(places, func(a, b place) int { return cmp.Compare(len(f.with(a, others)), len(f.with(b, others))) })
		lines := f.digests(at)
		slices.Sort(lines)
		out = append(out, record.Cite{File: path, Name: n, Lines: lines[:min(len(lines), sampled)], With: f.with(at, others)})
	}
	return out
}

// Found is what has become of what is cited.
type Found struct {
	Why   string // it does not hold any more, in words; "": it holds
	Moved string // the file where it is now; "": where it was
}

// Tree is the code as it is now.
type Tree struct {
	Read   func(path string) (text string, there bool)
	Having func(name string) (paths []string) // files with that word in them
}

// Look says what has become of what is cited.
func Look(c *record.Cite, t Tree) Found {
	var here *state
	if text, ok := t.Read(c.File); ok {
		here = stateOf(c, c.File, text)
	}
	if here != nil && here.why() == "" {
		return Found{}
	}
	for _, p := range t.Having(c.Name) {
		if p == c.File {
			continue
		}
		if text, ok := t.Read(p); ok {
			if s := stateOf(c, p, text); s != nil && s.why() == "" && s.left >= elsewhere {
				return Found{Moved: p}
			}
		}
	}
	if here == nil {
		return Found{Why: fmt.Sprintf("%s is not defined in %s any more", c.Name, c.File)}
	}
	return Found{Why: here.why()}
}

// state is how a definition stands to what was cited of it.
type state struct {
	c     *record.Cite
	path  string
	left  float64  // share of the lines
	lines int      // that it has now
	lacks []string // what stood in it
}

func (s *state) why() string {
	switch {
	case len(s.lacks) > 0:
		return fmt.Sprintf("%s is not in %s in %s any more", strings.Join(s.lacks, ", "), s.c.Name, s.path)
	case s.left < asItWas && max(s.lines, len(s.c.Lines)) > fewLines:
		return fmt.Sprintf("%s in %s has changed: %.0f %% of its lines are as they were", s.c.Name, s.path, 100*s.left)
	}
	return ""
}

// stateOf finds the definition in a file that is most like what was cited; nil when there
// is none.
func stateOf(c *record.Cite, path, text string) (best *state) {
	f := read(path, text)
	for _, p := range f.places(c.Name) {
		now := map[string]bool{}
		for _, d := range f.digests(p) {
			now[d] = true
		}
		s := &state{c: c, path: path, lines: len(now), left: 1}
		if len(c.Lines) > 0 {
			n := 0
			for _, d := range c.Lines {
				if now[d] {
					n++
				}
			}
			s.left = float64(n) / float64(len(c.Lines))
		}
		there := f.with(p, c.With)
		s.lacks = slices.DeleteFunc(slices.Clone(c.With), func(w string) bool { return slices.Contains(there, w) })
		if best == nil || len(s.lacks) < len(best.lacks) || len(s.lacks) == len(best.lacks) && s.left > best.left {
			best = s
		}
	}
	return best
}

// file is code by lines: the tokens of each, and how far it is indented.
type file struct {
	lines  [][]string
	indent []int
	typed  bool // its language may define by what comes before a name and its brackets
}

// plain cuts text of a language that is not known; a comment goes to the end of the line.
var (
	plain   = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\pL_][\pL\pN_]*|\pN[\pL\pN_.]*|\S`)
	comment = lazyregexp.New(`^\s*(?:#|//|--|;|<!--|\*).*$|\s(?:#|//|--)\s.*$`)
)

func read(path, text string) *file {
	raw := strings.Split(text, "\n")
	f := &file{lines: make([][]string, len(raw)), indent: make([]int, len(raw)), typed: !strings.HasSuffix(path, ".go")}
	for i, l := range raw {
		body := strings.TrimLeft(l, " \t")
		f.indent[i] = len(l) - len(body) + 3*strings.Count(l[:len(l)-len(body)], "\t")
	}
	tokens, ok := source.Read(path, text)
	if !ok {
		for i, l := range raw {
			f.lines[i] = plain.FindAllString(comment.ReplaceAllString(l, ""), -1)
		}
		return f
	}
	for _, t := range tokens {
		if t.Kind == source.Code && !source.IsLayout(t) && t.Line >= 1 && t.Line <= len(raw) {
			f.lines[t.Line-1] = append(f.lines[t.Line-1], t.Text)
		}
	}
	return f
}

// place is where something is defined: lines from, and to without the last.
type place struct{ from, to int }

// Words before a name, or at the beginning of a line, by which it is defined; those before
// a field; and those before what is only used.
var (
	defining = words(`func def class type const var let fn function interface struct enum trait module val fun record message macro define
		object namespace static sub defp defmodule`)
	callable = words(`func def defp fn function fun sub async`)
	defines  = words(`= := : ( [ {`)
	modifier = words(`public private protected internal readonly final abstract override`)
	using    = words(`return if for while switch case else elif elseif unless until do then match when catch with new await yield throw throws raise assert print
		typeof instanceof delete in of is and or not default go defer select echo puts lock using range import from export require emit call try`)
)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// How plainly a name is defined: by a word for it, or at the beginning of a line.
const byWord, byPlace = 1, 2

// places are where a name is defined, most plainly: by a word for it, else at the
// beginning of a line; of those the least indented.
func (f *file) places(name string) (out []place) {
	best, indent := 0, 0
	for i, l := range f.lines {
		k := slices.Index(l, name)
		if k < 0 {
			continue
		}
		rank := f.defined(i, k)
		if rank == 0 {
			continue
		}
		if best == 0 || rank < best || rank == best && f.indent[i] < indent {
			best, indent, out = rank, f.indent[i], nil
		}
		if rank == best && f.indent[i] == indent && len(out) < mostOf {
			out = append(out, place{i, f.end(i)})
		}
	}
	return out
}

// defined says how plainly the token k of a line is a name that is defined there; 0 when it
// is not.
func (f *file) defined(line, k int) int {
	l := f.lines[line]
	last, next, before := l[len(l)-1], "", ""
	if k+1 < len(l) {
		next = l[k+1]
	}
	if k > 0 {
		before = l[k-1]
	}
	switch {
	case defining[before], callable[l[0]] && before == ")" && (next == "(" || next == "["):
		return byWord
	case modifier[before] && next != "" && strings.Contains("=:?!;", next):
		return byWord
	case (before == "." || before == ":") && next == "=" && only(l[:k], ".") && makes(l[k+2:]): // exports.f = function
		return byWord
	case (before == "." || before == ":") && slices.ContainsFunc(l[:k], func(w string) bool { return callable[w] }) && only(l[:k], ".:"): // def self.f
		return byWord
	case f.typed && k > 0 && (next == "(" || next == "<") && !using[before] && !using[l[0]] && before != "." && only(l[:k], "*&<>,[]?:.#@") && (last == "{" || f.opens(line+1)): // int f(int a) {
		return byWord
	case k == 0 && next == "<" && (last == "{" || makes(l)):
		return byPlace
	case k == 0 && next != "" && (next != "(" || last == "{") && (defines[next] || isName(next)) && next != ".":
		return byPlace
	}
	return 0
}

// only reports whether tokens are names, and some signs between them.
func only(list []string, signs string) bool {
	return !slices.ContainsFunc(list, func(w string) bool { return !isWord(w) && w != "::" && !(len(w) == 1 && strings.Contains(signs, w)) })
}

// makes reports whether what is assigned is a function.
func makes(list []string) bool {
	for i, w := range list {
		if w == "function" || w == "=>" || w == "=" && i+1 < len(list) && list[i+1] == ">" {
			return true
		}
	}
	return false
}

// opens reports whether a line begins with the bracket that opens a body.
func (f *file) opens(line int) bool {
	return line < len(f.lines) && len(f.lines[line]) > 0 && f.lines[line][0] == "{"
}

func isWord(s string) bool { return isName(s) && s[0] != '*' && s[0] != '[' }

func isName(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] == '*' || s[0] == '[')
}

// end is the line behind a definition: the next that is indented no further, but for one
// that closes it.
func (f *file) end(from int) int {
	for i := from + 1; i < len(f.lines) && i < from+mostLines; i++ {
		if len(f.lines[i]) == 0 || f.indent[i] > f.indent[from] {
			continue
		}
		switch f.lines[i][0] {
		case ")", "}", "]", "end", "fi", "done", "{", "else", "catch", "finally", "except", "elif", "case", "default":
			continue
		}
		return i
	}
	return min(len(f.lines), from+mostLines)
}

// digests are those of the lines of a definition that have words, each once.
func (f *file) digests(p place) (out []string) {
	for _, l := range f.lines[p.from:p.to] {
		if !slices.ContainsFunc(l, func(t string) bool { return isName(t) && len(t) > 1 }) {
			continue
		}
		h := fnv.New32a()
		for _, t := range l {
			h.Write([]byte(t + " ")) // of a hash: it cannot fail
		}
		out = append(out, fmt.Sprintf("%08x", h.Sum32()))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// with are those of the words that stand in a definition.
func (f *file) with(p place, words []string) (out []string) {
	for _, w := range words {
		if slices.ContainsFunc(f.lines[p.from:p.to], func(l []string) bool { return slices.Contains(l, w) }) {
			out = append(out, w)
		}
	}
	return out
}
