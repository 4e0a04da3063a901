package source

import (
	"go/ast"
	"go/parser"
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
	idle := idleParens(text)
	cgo := strings.Contains(text, `import "C"`)
	var out []Token
	last := func() int { return beside(out, len(out), -1) }
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			markIdle(out, "go")
			return trimmed(out)
		}
		if idle[file.Offset(pos)] {
			continue
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

// idleParens are the offsets of the parentheses without which a file reads the same.
func idleParens(text string) map[int]bool {
	out := map[int]bool{}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return out
	}
	var above []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if p, ok := n.(*ast.ParenExpr); ok && idleParen(p, above) {
			out[fset.Position(p.Lparen).Offset], out[fset.Position(p.Rparen).Offset] = true, true
		}
		above = append(above, n)
		return true
	})
	return out
}

func idleParen(p *ast.ParenExpr, above []ast.Node) bool {
	inner := p.X
	for {
		q, ok := inner.(*ast.ParenExpr)
		if !ok {
			break
		}
		inner = q.X
	}
	switch inner.(type) {
	case *ast.Ident, *ast.BasicLit, *ast.SelectorExpr, *ast.IndexExpr:
		return true
	case *ast.BinaryExpr, *ast.CallExpr:
	default:
		return false
	}
	var parent ast.Node
	for i := len(above) - 1; i >= 0; i-- {
		if _, ok := above[i].(*ast.ParenExpr); !ok {
			parent = above[i]
			break
		}
	}
	switch x := parent.(type) {
	case *ast.CallExpr:
		return x.Fun.Pos() != p.Pos()
	case *ast.BinaryExpr:
		b, ok := inner.(*ast.BinaryExpr)
		return !ok || b.Op.Precedence() > x.Op.Precedence() || b.Op.Precedence() == x.Op.Precedence() && x.X.Pos() == p.Pos()
	case *ast.UnaryExpr, *ast.StarExpr, *ast.SelectorExpr, *ast.SliceExpr, *ast.TypeAssertExpr:
		_, call := inner.(*ast.CallExpr)
		return call
	case *ast.IndexExpr:
		_, call := inner.(*ast.CallExpr)
		return call || x.X.Pos() != p.Pos()
	}
	return true
}
