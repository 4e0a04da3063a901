package source

import (
	"slices"
	"strings"
)

// readBraces reads JavaScript, TypeScript, and the languages that look like C.
func readBraces(text, lang string) []Token {
	s := &lexer{text: text, line: 1}
	for s.at < len(text) {
		s.brace(lang == "js")
	}
	return semicolons(s.out, lang == "js")
}

func (s *lexer) brace(js bool) {
	rest, line := s.rest(), s.line
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		s.take(1)
	case strings.HasPrefix(rest, "//") && s.last() != ":", s.at == 0 && strings.HasPrefix(rest, "#!"):
		s.comment(toEndOfLine(rest))
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest, "*/")
		if end < 0 {
			end = len(rest) - 2
		}
		s.comment(end + 2)
	case strings.HasPrefix(rest, `"""`) && !js && quoted(rest, `"""`, true, false) > 0:
		s.add(s.take(quoted(rest, `"""`, true, false)), line, Code)
	case c == '"' && quoted(rest, `"`, false, true) > 0:
		s.literal(quoted(rest, `"`, false, true), js)
	case c == '\'' && quoted(rest, "'", false, true) > 0 && (js || isChar(rest)):
		s.literal(quoted(rest, "'", false, true), js)
	case c == '`' && js && quoted(rest, "`", true, true) > 0:
		n := quoted(rest, "`", true, true)
		last := s.last()
		s.literal(n, !strings.Contains(rest[:n], "${") && !strings.Contains(rest[:n], "\n") && !isWord(last) && last != ")")
	case c == '/' && js && s.regex() > 0:
		s.add(s.take(s.regex()), line, Code)
	default:
		s.word()
	}
}

// literal takes a text in quotes; plain says that the kind of quotes means nothing.
func (s *lexer) literal(n int, plain bool) {
	line := s.line
	text := s.take(n)
	if plain {
		text = `"` + content(text[1:len(text)-1])
	}
	s.add(text, line, Code)
}

// isChar tells a character from the lifetime of a type.
func isChar(s string) bool {
	n := quoted(s, "'", false, true)
	return n > 0 && n <= 12 && (s[1] == '\\' || n <= 6)
}

// regex returns how long the regular expression is that begins here, 0 when a division does.
func (s *lexer) regex() int {
	if last := s.last(); last == ")" || last == "]" || last == "}" || strings.HasPrefix(last, `"`) || isWord(last) && last != "return" && last != "typeof" && last != "case" {
		return 0
	}
	rest, class := s.rest(), false
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\n':
			return 0
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return 0
}

// semicolons takes away those that end nothing. In JavaScript most of them can be left
// out; those stay without which the code would be read in another way.
func semicolons(list []Token, js bool) []Token {
	var out []Token
	var code []Token // of out
	var open []bool  // of the parentheses around: whether they are those of a for
	bare := false    // the last ) closes what a statement follows
	for i, t := range list {
		if t.Kind != Code {
			out = append(out, t)
			continue
		}
		prev := Token{}
		if len(code) > 0 {
			prev = code[len(code)-1]
		}
		if js && prev.Line > 0 && prev.Line < t.Line && slices.Contains([]string{"return", "throw", "break", "continue", "yield"}, prev.Text) && t.Text != ";" && t.Text != "}" {
			end := Token{Text: ";", Line: prev.Line}
			out, code = append(out, end), append(code, end)
		}
		switch t.Text {
		case "(":
			head := slices.Contains([]string{"for", "while", "if", "with"}, prev.Text)
			open = append(open, head)
		case ")":
			if bare = false; len(open) > 0 {
				bare, open = open[len(open)-1], open[:len(open)-1]
			}
		case ";":
			within := len(open) > 0 && open[len(open)-1]
			if idle := prev.Text == ";" || prev.Text == "{" || prev.Text == ""; !within && (idle || js && !(prev.Text == ")" && bare) && !continues(list[i+1:])) {
				continue
			}
		}
		out, code = append(out, t), append(code, t)
	}
	return out
}

// continues reports whether what follows would be read as a part of what stands before it.
func continues(list []Token) bool {
	for _, t := range list {
		if t.Kind == Code {
			return slices.Contains([]string{"(", "[", "+", "-", "/", "*", ".", ",", "++", "--"}, t.Text) || strings.HasPrefix(t.Text, "`") || strings.HasPrefix(t.Text, "/")
		}
	}
	return false
}
