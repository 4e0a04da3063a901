package look

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline/point"
	"forge/pipeline/text"
)

// body is where a declaration of Go stands, and under which constraints.
type body struct {
	file  string
	under string // lines about what it is built for, and what the file's name says of that
	line  int    // of the declaration
	build int    // of the first such line; 0: there is none
}

// Twins returns where a change of Go gives a declaration of the base a further body, under other build
// constraints: the tests run one of them, and a user may get the other. base and head are the
// files without tests of the directories that the change touches, changed is what it does to them.
func Twins(base, head map[string]string, changed []File) []point.Point {
	was, is := bodies(base), bodies(head)
	files := map[string]*File{}
	for i := range changed {
		files[changed[i].Name] = &changed[i]
	}
	var out []point.Point
	seen := map[string]bool{} // directories: one body leads to the others
	for _, name := range sortedKeys(is) {
		dir, _, _ := strings.Cut(name, " ")
		if len(was[name]) == 0 || len(is[name]) < 2 || seen[dir] {
			continue
		}
		fresh := slices.DeleteFunc(slices.Clone(is[name]), func(b body) bool {
			return slices.ContainsFunc(was[name], func(o body) bool { return o.under == b.under })
		})
		if len(fresh) == 0 {
			continue
		}
		seen[dir] = true
		out = append(out, shown(fresh, head, files))
	}
	return out[:min(len(out), MaxPoints)]
}

// shown is the point for the first of some bodies whose lines the change shows.
func shown(list []body, head map[string]string, files map[string]*File) point.Point {
	at, line := list[0], list[0].line
search:
	for _, b := range list {
		for _, n := range []int{b.line, b.build} {
			if f := files[b.file]; f != nil && slices.ContainsFunc(f.Added, func(l point.Line) bool { return l.Number == n }) {
				at, line = b, n
				break search
			}
		}
	}
	code := strings.Split(head[at.file], "\n")[line-1]
	return point.Point{File: at.file, Line: line, Kind: point.Place, Code: text.Head(strings.TrimSpace(code), 300)}
}

// bodies are those of the declarations of some files, by "DIRECTORY PACKAGE NAME". What is of its
// file alone, as main is in files that are run by themselves, is none.
func bodies(files map[string]string) map[string][]body {
	out := map[string][]body{}
	for _, name := range sortedKeys(files) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			continue
		}
		b := body{file: name, under: suffix(name)}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				if c.Pos() < parsed.Package && (strings.HasPrefix(c.Text, "//go:build ") || strings.HasPrefix(c.Text, "// +build ")) {
					b.under += "\n" + strings.TrimPrefix(c.Text, "//go:build ")
					if b.build == 0 {
						b.build = set.Position(c.Pos()).Line
					}
				}
			}
		}
		for _, d := range parsed.Decls {
			for _, id := range declared(d) {
				if id.name != "main" && id.name != "init" && id.name != "_" {
					b.line = set.Position(id.at).Line
					key := path.Dir(name) + " " + parsed.Name.Name + " " + id.name
					out[key] = append(out[key], b)
				}
			}
		}
	}
	return out
}

// suffix is what a file's name may say of the systems that it is built for.
func suffix(name string) string {
	parts := strings.Split(strings.TrimSuffix(path.Base(name), ".go"), "_")
	return strings.Join(parts[max(1, len(parts)-2):], "_")
}

type identifier struct {
	name string
	at   token.Pos
}

// declared are the names of a declaration; a method's has its type's before it.
func declared(d ast.Decl) (out []identifier) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) > 0 {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		out = append(out, identifier{name, d.Pos()})
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, identifier{s.Name.Name, s.Pos()})
			case *ast.ValueSpec:
				for _, id := range s.Names {
					out = append(out, identifier{id.Name, id.Pos()})
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
