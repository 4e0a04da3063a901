package source

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer cuts text into the tokens that most languages share.
type lexer struct {
	text string
	at   int
	line int
	out  []Token
}

func (s *lexer) rest() string { return s.text[s.at:] }

// take moves over n bytes and returns them.
func (s *lexer) take(n int) string {
	got := s.text[s.at : s.at+n]
	s.at += n
	s.line += strings.Count(got, "\n")
	return got
}

func (s *lexer) add(text string, line int, kind Kind) {
	s.out = append(s.out, Token{Text: text, Line: line, Kind: kind})
}

// last is the last token of code, "" when there is none.
func (s *lexer) last() string {
	for i := len(s.out) - 1; i >= 0; i-- {
		if s.out[i].Kind == Code {
			return s.out[i].Text
		}
	}
	return ""
}

// directives are comments that tools and interpreters act on.
var directives = []string{"//go:", "// +build", "//export ", "#!", "# -*-", "# type:", "// @ts-", "/* @ts-"}

func (s *lexer) comment(n int) {
	line := s.line
	text := s.take(n)
	kind := Comment
	if slices.ContainsFunc(directives, func(d string) bool { return strings.HasPrefix(text, d) }) {
		kind = Code
	}
	s.add(strings.TrimSpace(text), line, kind)
}

func toEndOfLine(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// operators of more than one character, the longest first.
var operators = []string{
	">>>=", "===", "!==", "**=", "//=", "<<=", ">>=", ">>>", "...", "&&=", "||=", "??=", "&^=", "..=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "**", "//", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=",
	":=", "->", "<-", "::", "&^", "..", "?:", "!!",
}

// word takes a name, a number or an operator.
func (s *lexer) word() {
	rest, line := s.rest(), s.line
	r, size := utf8.DecodeRuneInString(rest)
	if inName(r) {
		n := size
		for n < len(rest) {
			r, size = utf8.DecodeRuneInString(rest[n:])
			if !inName(r) && !(r == '.' && rest[0] >= '0' && rest[0] <= '9') {
				break
			}
			n += size
		}
		s.add(s.take(n), line, Code)
		return
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			s.add(s.take(len(op)), line, Code)
			return
		}
	}
	s.add(s.take(size), line, Code)
}

func inName(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// quoted returns how long a literal is that begins with a quote, -1 when it does not end;
// one of a single line ends on it.
func quoted(s, quote string, lines, escapes bool) int {
	for i := len(quote); i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		case s[i] == '\n' && !lines:
			return -1
		}
	}
	return -1
}

// content is what stands between quotes, the same for every kind of them.
func content(s string) string {
	return strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `"`).Replace(s)
}

// ungroup takes away parentheses that group nothing: around a single operand, and around
// all of an expression. calls reports whether a token before a parenthesis makes it one
// of a call, a list of parameters or a statement.
func ungroup(list []Token, calls func(string) bool, lines bool) []Token {
	for range 5 {
		gone := map[int]bool{}
		var open []int
		for i, t := range list {
			if t.Kind != Code {
				continue
			}
			switch t.Text {
			case "(":
				open = append(open, i)
			case ")":
				if len(open) > 0 {
					if from := open[len(open)-1]; idleGroup(list, from, i, calls, lines) {
						gone[from], gone[i] = true, true
					}
					open = open[:len(open)-1]
				}
			}
		}
		if len(gone) == 0 {
			break
		}
		var out []Token
		for i, t := range list {
			if !gone[i] {
				out = append(out, t)
			}
		}
		list = out
	}
	return list
}

var (
	opensExpression  = []string{"", "⏎", "⇥", "⇤", "=", ":=", "+=", "-=", "return", "(", "[", "{", ",", ":", ";", "=>", "if", "elif", "while", "assert", "throw", "case", "default"}
	closesExpression = []string{"", "⏎", ")", "]", "}", ",", ":", ";"}
	keepsGroup       = []string{",", "for", "async", "yield", ":=", "lambda", "=", "=>", "function", "class", "await", "..."}
)

func idleGroup(list []Token, from, to int, calls func(string) bool, lines bool) bool {
	before, after := beside(list, from, -1), beside(list, to, 1)
	prev, next := "", ""
	if before >= 0 {
		prev = list[before].Text
	}
	if after >= 0 {
		next = list[after].Text
	}
	var inside []Token
	for _, t := range list[from+1 : to] {
		if t.Kind == Code {
			inside = append(inside, t)
		}
	}
	if len(inside) == 0 || calls(prev) || inside[0].Text == "{" || next == "=>" || next == "->" {
		return false
	}
	depth := 0
	for _, t := range inside {
		switch t.Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth == 0 && slices.Contains(keepsGroup, t.Text) {
			return false
		}
	}
	ends := slices.Contains(closesExpression, next) || lines && list[after].Line > list[to].Line && isWord(next)
	whole := slices.Contains(opensExpression, prev) && ends
	return whole || prev != "." && prev != "new" && isOperandAlone(inside)
}

// isOperandAlone reports whether tokens are a name or a number, with what is called, taken or
// looked up of it.
func isOperandAlone(list []Token) bool {
	if !isWord(list[0].Text) || reserved[list[0].Text] && len(list) > 1 {
		return false
	}
	depth := 0
	for i, t := range list[1:] {
		switch t.Text {
		case "(", "[":
			depth++
			continue
		case ")", "]":
			depth--
			continue
		case ".":
			continue
		}
		if depth == 0 && list[i].Text != "." {
			return false
		}
	}
	return true
}

func isWord(s string) bool { r, _ := utf8.DecodeRuneInString(s); return inName(r) }

// beside is the index of the token of code before or after another, -1 when there is none.
func beside(list []Token, i, step int) int {
	for i += step; i >= 0 && i < len(list); i += step {
		if list[i].Kind == Code {
			return i
		}
	}
	return -1
}
