package look

import (
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	header     = lazyregexp.New(`^\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b`)
	asProgram  = lazyregexp.New(`^if\s+__name__\s*==`)
	ofProgram  = lazyregexp.New(`^\s*(?:async\s+)?def\s+_?(?:main|cli|\w+_main)\(|\((?:self,\s*)?_?(?:signum|signal|sig|signo|number)\b[^,)]*,\s*_?\w*frame\b`)
	endsIt     = lazyregexp.New(`^def\s+_?(?:die|usage|bail|fatal|quit|exit\w*|error|fail|abort)\(`)
	ofIterator = lazyregexp.New(`^\s*(?:async\s+)?def\s+(?:__a?next__|next|throw|close|athrow)\(`)
	iteration  = lazyregexp.New(`\bStop(?:Async)?Iteration\b`)
	command    = lazyregexp.New(`^\s*@[\w.]*\b(?:command|group|callback)\b`)
	rubyThrow  = lazyregexp.New(`\bthrow[ (]+:?(\w+)`)
	rubyNext   = lazyregexp.New(`^\s*def\s+(?:next|peek|size)\b`)
)

// endsWell reports whether a line that ends something does so where that is what it is for: the program
// in its own main or command, an iteration in the method that goes on with it, a block that is caught.
func (f *File) endsWell(at int) bool {
	line := f.Added[at].Text
	lines, i := f.whole(at)
	if strings.HasSuffix(f.Name, ".rb") {
		if m := rubyThrow.FindStringSubmatch(line); m != nil {
			return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "catch") && mentions(l, m[1]) })
		}
		return iteration.MatchString(line) && slices.ContainsFunc(lines[max(0, i-8):i], rubyNext.MatchString)
	}
	program := path.Base(f.Name) == "__main__.py" || slices.ContainsFunc(lines, asProgram.MatchString)
	indent := indentOf(lines[i])
	if indent == 0 && asProgram.MatchString(lines[i]) {
		return true // on the line itself
	}
	for i--; i >= 0 && indent > 0; i-- {
		head := lines[i]
		if strings.TrimSpace(head) == "" || indentOf(head) >= indent {
			continue
		}
		indent = indentOf(head)
		switch {
		case !header.MatchString(head):
		case iteration.MatchString(line):
			if ofIterator.MatchString(head) {
				return true
			}
		case asProgram.MatchString(head), ofProgram.MatchString(head), program && endsIt.MatchString(head), i > 0 && command.MatchString(lines[i-1]):
			return true
		}
	}
	return false
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// whole returns the lines of the file and which of them an added one is; of a file that is not known,
// the added lines.
func (f *File) whole(at int) (lines []string, i int) {
	if f.lines == nil {
		f.lines = strings.Split(f.Source, "\n")
		for _, l := range f.Added {
			f.own = append(f.own, l.Text)
		}
	}
	if l := f.Added[at]; l.Number <= len(f.lines) && strings.TrimRight(f.lines[l.Number-1], "\r") == l.Text {
		return f.lines, l.Number - 1
	}
	return f.own, at
}
