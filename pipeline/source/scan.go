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
