package source

import (
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

func readGo(text string) []Token {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	cgo := strings.Contains(text, `import "C"`)
	var out []Token
	last := func() int { return beside(out, len(out), -1) }
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return trimmed(out)
		}
		t := Token{Text: tok.String(), Line: file.Line(pos)}
		switch {
		case tok == token.COMMENT:
			t.Text = strings.TrimSpace(lit)
			if !cgo && !slices.ContainsFunc(directives, func(d string) bool { return strings.HasPrefix(lit, d) }) {
				t.Kind = Comment
			}
		case tok == token.STRING:
			t.Text = lit
			if plain, err := strconv.Unquote(lit); err == nil {
				t.Text = strconv.Quote(plain)
			}
		case tok == token.SEMICOLON:
			if n := last(); n >= 0 && (out[n].Text == ";" || out[n].Text == "{") {
				continue
			}
		case tok == token.RBRACE || tok == token.RPAREN:
			for n := last(); n >= 0 && (out[n].Text == ";" || out[n].Text == ","); n = last() {
				out = slices.Delete(out, n, n+1)
			}
		case lit != "":
			t.Text = lit
		}
		out = append(out, t)
	}
}

// trimmed leaves out the ends of statements that are followed by the end of their block, or by
// what does nothing and then that.
func trimmed(list []Token) (out []Token) {
	for i, t := range list {
		if n := beside(list, i, 1); t.Kind != Code || t.Text != ";" || n < 0 || list[n].Text != "}" {
			out = append(out, t)
		}
	}
	return out
}
