package look

import (
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// What an exception is decides what a test that waits for one takes, and what a block returns at its end
// whether a test sees that what it checks there is wrong.

var (
	returnsIt   = lazyregexp.New(`^\s*return\s+(?:[^NF\s]|N[^o]|F[^a])`) // but None and False
	passesOn    = lazyregexp.New(`^\s*return\s+[^=!<>]*__a?exit__\(`)    // what another block returns
	anExitBlock = lazyregexp.New(`^\s*(?:async\s+)?def\s+__a?exit__\(`)
	exitGiven   = lazyregexp.New(`\b__a?exit__\s*=[^=]`)
	suppressing = lazyregexp.New(`^\s*class\s+\w+\(.*\bsuppress\b`)
	catchesAll  = lazyregexp.New(`^\s*except(?:\s+(?:Base)?Exception\b.*|\s*):`)
	suppresses  = lazyregexp.New(`\bsuppress\(`)
	ofBlock     = lazyregexp.New(`^\s*@[\w.]*contextmanager\b`)
	raisesAgain = lazyregexp.New(`^\s*raise\b`)
	rubyRescues = lazyregexp.New(`\brescue\b.*\b(?:Exception|Minitest::\w+|RSpec::\w+)`)
)

// swallows reports whether a line may end a block in which its caller checks as if all were well.
func (f *File) swallows(at int) bool {
	line := f.Added[at].Text
	switch path.Ext(f.Name) {
	case ".rb":
		return rubyRescues.MatchString(line)
	case ".py":
	default:
		return false
	}
	if exitGiven.MatchString(line) || suppressing.MatchString(line) {
		return true
	}
	lines, i := f.whole(at)
	if returnsIt.MatchString(line) && !passesOn.MatchString(line) {
		head := within(lines, i)
		return head >= 0 && anExitBlock.MatchString(lines[head])
	}
	if !catchesAll.MatchString(line) && !suppresses.MatchString(line) {
		return false
	}
	head := within(lines, i)
	return head > 0 && ofBlock.MatchString(lines[head-1]) && !slices.ContainsFunc(below(lines, i), raisesAgain.MatchString)
}

var aFunction = lazyregexp.New(`^\s*(?:async\s+)?def\b`)

// within returns the line that begins the function of Python which a line stands in; -1: none.
func within(lines []string, i int) int {
	indent := indentOf(lines[i])
	for i--; i >= 0 && indent > 0; i-- {
		if strings.TrimSpace(lines[i]) == "" || indentOf(lines[i]) >= indent {
			continue
		}
		if indent = indentOf(lines[i]); aFunction.MatchString(lines[i]) {
			return i
		}
	}
	return -1
}

// below returns the lines of the block that a line opens.
func below(lines []string, i int) []string {
	end := i + 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || indentOf(lines[end]) > indentOf(lines[i])) {
		end++
	}
	return lines[i+1 : end]
}

var (
	classHead = lazyregexp.New(`^\s*(?:(?:export|default|abstract|final|public|open)\s+)*class\s+(\w+)\s*(?:\(([^()]*)\)|extends\s+([\w.$\\]+)|<\s*([\w:]+)|:\s*([\w.]+)\s*\()?`)
	anError   = lazyregexp.New(`(?:Error|Exception|Warning|Failure|Throwable)\b`)
	ofCheck   = lazyregexp.New(`\bAssertion(?:Error|FailedError)\b|\bMinitest::Assertion\b`)
	namedAs   = lazyregexp.New(`^\s*(?:(?:export\s+)?(?:const|let|var)\s+|(?:module\.)?exports\.)?([A-Za-z_]\w*)\s*(?::[^=]+)?=\s*([^=\s].*)$`)
	broad     = lazyregexp.New(`^[(\[]?\s*(?:\w+\s*,\s*)*(?:BaseException|Exception|AssertionError|StandardError|Throwable|Error)\s*(?:[,)\];#].*)?$`)
	importAs  = lazyregexp.New(`\bimport\b.*\b(?:BaseException|Exception|AssertionError)\s+as\s+\w`)
)

// class is what a line says of one: its name, and what it is a kind of.
func class(line string) (name, bases string) {
	m := classHead.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	return m[1], strings.Join(strings.Fields(m[2]+m[3]+m[4]+m[5]), "")
}

// catches reports whether a line makes an exception another kind than it was, or takes one for any.
func (f *File) catches(at int) bool {
	line := f.Added[at].Text
	if importAs.MatchString(line) {
		return true
	}
	if name, bases := class(line); name != "" {
		was, there := f.goneClass(name)
		return ofCheck.MatchString(bases) || there && was != bases && anError.MatchString(name+" "+was+" "+bases)
	}
	m := namedAs.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	was, there := f.goneClass(m[1])
	if !there || !anError.MatchString(m[1]+" "+was) {
		return anError.MatchString(m[1]) && broad.MatchString(m[2])
	}
	now := strings.TrimRight(m[2], "; \t\r")
	return !slices.ContainsFunc(f.Added, func(l point.Line) bool { // a new name, and the old one for who uses it
		name, bases := class(l.Text)
		return name == now && bases == was
	})
}

// goneClass returns what a class was a kind of that the change takes out, or writes anew.
func (f *File) goneClass(name string) (bases string, there bool) {
	for _, l := range f.Gone {
		if n, b := class(l); n == name {
			return b, true
		}
	}
	return "", false
}

var errorName = lazyregexp.New(`\b\w+(?:Error|Exception)\b`)

// lostError returns an error of JavaScript that the change takes out of what the file exports, and that
// a file of tests names: a check against what is not there takes every error.
func (f *File) lostError(test string) string {
	if f.Source == "" || f.New || languages[path.Ext(f.Name)] != javascript {
		return ""
	}
	for _, gone := range f.Gone {
		for _, name := range errorName.FindAllString(gone, -1) {
			exported := func(l string) bool { return mentions(l, name) && exporting.MatchString(l) }
			left := mentions(f.Source, name)
			if mentions(test, name) && (!left || exported(gone) && !slices.ContainsFunc(strings.Split(f.Source, "\n"), exported)) {
				return gone
			}
		}
	}
	return ""
}

var exporting = lazyregexp.New(`\bexports\b|\bexport\b|^\s*\w+,?\s*$`)
