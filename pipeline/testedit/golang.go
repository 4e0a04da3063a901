package testedit

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	goTest    = lazyregexp.New(`^(?:Test|Example|Fuzz|Benchmark)(?:$|[^a-z])`)
	directive = lazyregexp.New(`(?m)^//(?:go:|\s*\+build).*$`)
)

// directives are what a file tells the compiler.
const directives = "its directives"

func readGo(source []byte) (parts, bool) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	out := parts{}
	text := func(n ast.Node, comments bool) string {
		return goTokens(source[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset], comments)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			key, kind := f.Name.Name, plain
			switch {
			case f.Recv != nil && goTest.MatchString(key): // of a suite
				key, kind = receiverOf(f)+"."+key, test
			case f.Recv != nil:
				key, kind = receiverOf(f)+"."+key, hook // by it the type may satisfy an interface
			case key == "init" || key == "TestMain":
				kind = hook
			case goTest.MatchString(key):
				kind = test
			}
			out.add(key, text(f, strings.HasPrefix(f.Name.Name, "Example")), kind, f.Name.Name)
			continue
		}
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			addSpec(out, g.Tok, s, text(s, false))
		}
	}
	if rules := directive.FindAllString(string(source), -1); len(rules) > 0 {
		out.add(directives, strings.Join(rules, "\n"), hook)
	}
	return out, true
}

func addSpec(out parts, tok token.Token, s ast.Spec, text string) {
	switch s := s.(type) {
	case *ast.ImportSpec:
		name := path.Base(strings.Trim(s.Path.Value, "\"`"))
		if s.Name != nil {
			name = s.Name.Name
		}
		if name == "_" || name == "." {
			out.add("import "+text, text, hook)
			return
		}
		out.load("import "+text, s.Path.Value, name)
	case *ast.TypeSpec:
		out.add(s.Name.Name, tok.String()+" "+text, plain, s.Name.Name)
	case *ast.ValueSpec:
		var names []string
		kind := plain
		for _, id := range s.Names {
			names = append(names, id.Name)
			if id.Name == "_" {
				kind = hook // what it is set to runs
			}
		}
		out.add(strings.Join(names, ", "), tok.String()+" "+text, kind, names...)
	}
}

func receiverOf(f *ast.FuncDecl) string {
	var name string
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name // the first is the type's, others its parameters'
		}
		return true
	})
	return name
}

// goTokens is a piece of Go as the compiler reads it.
func goTokens(source []byte, comments bool) string {
	var s scanner.Scanner
	fset := token.NewFileSet()
	mode := scanner.Mode(0)
	if comments {
		mode = scanner.ScanComments
	}
	s.Init(fset.AddFile("x.go", -1, len(source)), source, nil, mode)
	var b strings.Builder
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return strings.TrimSpace(b.String())
		case tok == token.SEMICOLON:
			b.WriteString("\n")
		case lit != "":
			b.WriteString(lit + " ")
		default:
			b.WriteString(tok.String() + " ")
		}
	}
}
