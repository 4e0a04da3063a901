package source

import (
	"slices"
	"strings"
)

// Tokens of Python's lines: the end of a statement, and the begin and the end of a block.
const (
	stop   = "⏎"
	indent = "⇥"
	dedent = "⇤"
)

func readPython(text string) []Token {
	s := &pythonScanner{lexer: lexer{text: text, line: 1}, indents: []int{0}}
	for s.at < len(text) {
		s.next()
	}
	s.end()
	markStatements(s.out, strings.Contains(text, "__doc__"))
	return s.out
}

type pythonScanner struct {
	lexer
	indents []int
	depth   int // of brackets
	begun   bool
}

func (s *pythonScanner) next() {
	rest := s.rest()
	if !s.begun && s.depth == 0 && (s.at == 0 || s.text[s.at-1] == '\n') {
		n := 0
		for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t' || rest[n] == '\f') {
			n++
		}
		if n < len(rest) && rest[n] != '\n' && rest[n] != '\r' && rest[n] != '#' {
			s.indent(n)
		}
		if s.take(n); n > 0 {
			return
		}
	}
	line := s.line
	switch c := rest[0]; {
	case c == '\n':
		if s.depth == 0 {
			s.end()
		}
		s.take(1)
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		s.take(1)
	case c == '\\' && strings.HasPrefix(rest[1:], "\n"):
		s.take(2)
	case c == '#':
		s.comment(toEndOfLine(rest))
	case c == ';' && s.depth == 0:
		s.end()
		s.take(1)
		s.begun = true
	default:
		if prefix, n := pythonString(rest); n > 0 {
			text := s.take(n)
			quote := 1
			if body := text[len(prefix):]; strings.HasPrefix(body, `"""`) || strings.HasPrefix(body, "'''") {
				quote = 3
			}
			s.add(`"`+strings.ToLower(prefix)+`"`+content(text[len(prefix)+quote:len(text)-quote]), line, Code)
		} else {
			s.word()
		}
		s.begun = true
		switch c {
		case '(', '[', '{':
			s.depth++
		case ')', ']', '}':
			s.depth = max(0, s.depth-1)
		}
	}
}

// indent takes note of how far a statement is indented.
func (s *pythonScanner) indent(n int) {
	if n > s.indents[len(s.indents)-1] {
		s.indents = append(s.indents, n)
		s.add(indent, s.line, Code)
		return
	}
	for len(s.indents) > 1 && n < s.indents[len(s.indents)-1] {
		s.indents = s.indents[:len(s.indents)-1]
		s.add(dedent, s.line, Code)
	}
}

// end ends a statement.
func (s *pythonScanner) end() {
	if last := s.last(); s.begun && last != stop && last != indent && last != dedent && last != "" {
		s.add(stop, s.line, Code)
	}
	s.begun = false
}

// pythonString returns the prefix and the length of a text that begins here.
func pythonString(s string) (prefix string, n int) {
	i := 0
	for i < len(s) && i < 3 && strings.IndexByte("rRbBuUfFtT", s[i]) >= 0 {
		i++
	}
	for _, q := range []string{`"""`, "'''", `"`, "'"} {
		if strings.HasPrefix(s[i:], q) {
			if n := quoted(s[i:], q, len(q) == 3, true); n > 0 {
				return s[:i], i + n
			}
			return "", 0
		}
	}
	return "", 0
}

// markStatements marks the tokens of what does nothing, and of hints.
func markStatements(list []Token, docs bool) {
	decorated := false
	var blocks []string // the statements that opened those around
	var head string
	for i := 0; i < len(list); {
		for i < len(list) && (list[i].Text == indent || list[i].Text == dedent) {
			if list[i].Text == indent {
				blocks = append(blocks, head)
			} else if len(blocks) > 0 {
				blocks = blocks[:len(blocks)-1]
			}
			i++
		}
		from := i
		var at []int // of the statement's code
		for ; i < len(list) && list[i].Text != indent && list[i].Text != dedent; i++ {
			if list[i].Kind == Code {
				at = append(at, i)
			}
			if list[i].Text == stop {
				i++
				break
			}
		}
		if len(at) == 0 {
			if i == from {
				i++
			}
			continue
		}
		word := func(n int) string {
			if n < len(at) {
				return list[at[n]].Text
			}
			return ""
		}
		if idleStatement(list, at, docs) {
			for _, k := range at {
				list[k].Kind = Idle
			}
			continue
		}
		head = word(0)
		if head == "async" {
			head = word(1)
		}
		switch {
		case head == "@":
			decorated = true
			continue
		case head == "def" && !decorated:
			markHints(list, at)
		case word(1) == ":" && isWord(head) && inFunction(blocks) && !slices.Contains(compound, head):
			markVariable(list, at)
		}
		decorated = false
	}
}

// compound are the words that a colon follows at once.
var compound = []string{"else", "try", "finally", "except", "lambda"}

// inFunction reports whether the nearest function or class around is a function.
func inFunction(blocks []string) bool {
	for _, b := range slices.Backward(blocks) {
		if b == "def" || b == "class" {
			return b == "def"
		}
	}
	return false
}

func idleStatement(list []Token, at []int, docs bool) bool {
	words := at
	if list[words[len(words)-1]].Text == stop {
		words = words[:len(words)-1]
	}
	if len(words) == 2 && list[words[0]].Text == "assert" {
		return list[words[1]].Text == "True" || list[words[1]].Text == "1"
	}
	if len(words) == 0 {
		return false
	}
	for _, k := range words {
		text := list[k].Text
		if strings.HasPrefix(text, `"`) && !docs && !strings.HasPrefix(text, `"f`) {
			continue
		}
		if len(words) == 1 && slices.Contains([]string{"pass", "...", "None", "True", "False", "0", "1"}, text) {
			continue
		}
		return false
	}
	return true
}

// markHints marks the hints of a function's head.
func markHints(list []Token, at []int) {
	depth, hint := 0, false
	for n, k := range at {
		t := &list[k]
		switch t.Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				hint = false
			}
		}
		switch {
		case depth == 1 && t.Text == ":" && !lambdaBefore(list, at[:n]), depth == 0 && t.Text == "->":
			hint = true
		case depth == 1 && (t.Text == "," || t.Text == "="), depth == 0 && t.Text == ":":
			hint = false
		}
		if hint {
			t.Kind = Hint
		}
		if depth == 0 && t.Text == ":" {
			return
		}
	}
}

// lambdaBefore reports whether a colon is that of a lambda.
func lambdaBefore(list []Token, at []int) bool {
	for _, k := range slices.Backward(at) {
		switch list[k].Text {
		case "lambda":
			return true
		case ":", "=":
			return false
		}
	}
	return false
}

// markVariable marks the hint of a variable that is given a value.
func markVariable(list []Token, at []int) {
	end := slices.IndexFunc(at, func(k int) bool { return list[k].Text == "=" })
	if end < 0 && len(at) > 1 && list[at[len(at)-1]].Text == stop { // a hint alone: the name is one of the function's
		for _, k := range at {
			list[k].Kind = Hint
		}
	}
	if end < 0 {
		return
	}
	for _, k := range at[1:end] {
		list[k].Kind = Hint
	}
}
