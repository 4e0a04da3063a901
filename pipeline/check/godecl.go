package check

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// goUnit is a declaration of a Go package.
type goUnit struct {
	key      string // its names
	names    []string
	receiver string // of a method
	text     string
	file     string
	uses     map[string]bool // every name in it
	root     bool            // the product has it, whoever uses it
	from, to int             // where it stands in its file
}

// goDecls puts back the declarations of a package that nothing but its tests use: an
// assertion need not stand in a file of its own.
func (v *verdict) goDecls(p *goDir, base, head *goTree) []edit {
	public := !p.main
	old, ok := goUnits(p.files, base.read, public)
	now, fine := []goUnit(nil), true
	if q := head.packages[p.dir]; q != nil {
		now, fine = goUnits(q.files, head.read, public)
	}
	if !ok || !fine {
		return nil
	}
	lean := map[string]bool{} // names in the tests
	for _, name := range base.testFiles[p.dir] {
		for id := range goNames(base.read(name)) {
			lean[id], lean["."+id] = true, true
		}
	}
	only := reached(old, lean, reached(old, nil, nil))
	is := map[string]goUnit{}
	for _, u := range now {
		is[u.key] = u
	}
	var back []goUnit
	for i, u := range old {
		if had, there := is[u.key]; only[i] && (!there || strings.Join(strings.Fields(had.text), " ") != strings.Join(strings.Fields(u.text), " ")) {
			back = append(back, u)
		}
	}
	if len(back) == 0 {
		return nil
	}
	return v.withUnits(back, now, base, head)
}

// reached returns which declarations lead to one another: from the product's own, or from
// some names on, without those that are in other.
func reached(units []goUnit, names map[string]bool, other []bool) []bool {
	out := make([]bool, len(units))
	wanted := map[string]bool{}
	for name := range names {
		wanted[name] = true
	}
	for grew := true; grew; {
		grew = false
		for i, u := range units {
			if out[i] || other != nil && other[i] {
				continue
			}
			mine := u.root && names == nil
			for _, name := range u.names {
				mine = mine || wanted[name] && (u.receiver == "" || wanted[u.receiver])
			}
			if !mine {
				continue
			}
			out[i], grew = true, true
			for name := range u.uses {
				wanted[name] = true
			}
		}
	}
	return out
}

// maxDeclared caps the declarations of a package, bodies of functions aside. What declares a name
// is looked up by recursion, so that a chain of them, each by the next, would end the server by a
// stack that overflows (S30): the worst found takes 475 bytes of it for one of source, of 1 GB.
const maxDeclared = 512 << 10

// goUnits takes the files of a package apart; false: one of them cannot be read.
func goUnits(files []string, read func(name string) []byte, public bool) ([]goUnit, bool) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	declared := 0
	for _, name := range files {
		source := read(name)
		declared += len(source)
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || bytes.Contains(source, []byte(`import "C"`)) {
			return nil, false
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				declared -= int(f.Body.End() - f.Body.Pos())
			}
		}
		parsed = append(parsed, file)
	}
	if declared > maxDeclared {
		return nil, false
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Error: func(error) {}} // what it imports is not known
	pkg, _ := conf.Check("p", fset, parsed, info)
	var out []goUnit
	for i, name := range files {
		t := &taking{fset: fset, file: parsed[i], name: name, source: read(name), public: public, info: info, scope: pkg.Scope()}
		for _, decl := range parsed[i].Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				t.function(d)
			case *ast.GenDecl:
				t.general(d)
			}
		}
		out = append(out, t.out...)
	}
	return out, true
}

// taking takes a file apart.
type taking struct {
	fset   *token.FileSet
	file   *ast.File
	name   string
	source []byte
	public bool
	info   *types.Info
	scope  *types.Scope
	out    []goUnit
}

func (t *taking) add(names []string, node ast.Node, keyword string, doc *ast.CommentGroup) *goUnit {
	at := func(p token.Pos) int { return t.fset.Position(p).Offset }
	u := goUnit{key: strings.Join(names, ","), names: names, file: t.name, from: at(node.Pos()), to: at(node.End()), uses: map[string]bool{}}
	if doc != nil { // a declaration begins with what is said of it
		u.from = at(doc.Pos())
	}
	u.text = keyword + string(t.source[at(node.Pos()):u.to])
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if o := t.info.Uses[n]; o != nil && o.Parent() == t.scope {
				u.uses[n.Name] = true
			}
		case *ast.SelectorExpr:
			u.uses["."+n.Sel.Name] = true
		case *ast.InterfaceType:
			for _, f := range n.Methods.List {
				for _, id := range f.Names {
					u.uses["."+id.Name] = true
				}
			}
		}
		return true
	})
	for _, n := range names {
		u.uses[n] = true
		u.root = u.root || n == "_" || n == "init" || n == "main" || t.public && ast.IsExported(n)
	}
	if doc != nil {
		for _, c := range doc.List { // the compiler is told of it
			u.root = u.root || strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//export ")
		}
	}
	t.out = append(t.out, u)
	return &t.out[len(t.out)-1]
}

func (t *taking) function(d *ast.FuncDecl) {
	u := t.add([]string{d.Name.Name}, d, "", d.Doc)
	if failsWith(d) {
		u.root = false
	}
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return
	}
	u.receiver = receiver(d.Recv.List[0].Type)
	u.key, u.root = u.receiver+"."+d.Name.Name, false
	u.names = []string{"." + d.Name.Name}
	if ast.IsExported(d.Name.Name) { // it may satisfy an interface: it goes with its type
		u.names = append(u.names, u.receiver)
	}
}

func (t *taking) general(d *ast.GenDecl) {
	switch {
	case d.Tok == token.IMPORT:
	case !d.Lparen.IsValid(), d.Tok == token.CONST: // constants may count on
		var names []string
		for _, s := range d.Specs {
			names = append(names, specNames(s)...)
		}
		t.add(names, d, "", d.Doc)
	default:
		for _, s := range d.Specs {
			t.add(specNames(s), s, d.Tok.String()+" ", specDoc(s))
		}
	}
}

func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func specNames(s ast.Spec) []string {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		var out []string
		for _, n := range s.Names {
			out = append(out, n.Name)
		}
		return out
	}
	return nil
}

func specDoc(s ast.Spec) *ast.CommentGroup {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Doc
	case *ast.ValueSpec:
		return s.Doc
	}
	return nil
}

var failing = lazyregexp.New(`^(?:Fatalf?|Errorf?|FailNow|Fail)$`)

// failsWith reports whether a function fails what it is given, as tests are failed.
func failsWith(d *ast.FuncDecl) bool {
	given := map[string]bool{}
	for _, f := range d.Type.Params.List {
		for _, n := range f.Names {
			given[n.Name] = true
		}
	}
	found := false
	if d.Body == nil {
		return false
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && failing.MatchString(sel.Sel.Name) && (sel.Sel.Name != "Error" || len(call.Args) > 0) {
			id, ok := sel.X.(*ast.Ident)
			found = found || ok && given[id.Name]
		}
		return true
	})
	return found
}

// goNames lists every name in a file of Go.
func goNames(source []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`[\pL_][\pL\pN_]*`).FindAll(source, -1) {
		out[string(m)] = true
	}
	return out
}

// withUnits makes the files of the head with some declarations of the base in them.
func (v *verdict) withUnits(back, now []goUnit, base, head *goTree) []edit {
	texts, gone := map[string][]string{}, map[string][]goUnit{}
	for _, u := range back {
		texts[u.file] = append(texts[u.file], u.text)
		for _, n := range now {
			if n.key == u.key {
				gone[n.file] = append(gone[n.file], n)
				if texts[n.file] == nil {
					texts[n.file] = []string{}
				}
			}
		}
	}
	var out []edit
	for name, list := range texts {
		was, is := base.read(name), head.read(name)
		text := append([]byte(nil), is...)
		if len(is) == 0 {
			text = append(goPackageLine.Find(was), '\n')
		}
		slices.SortFunc(gone[name], func(a, b goUnit) int { return b.from - a.from })
		for _, u := range gone[name] {
			text = slices.Delete(text, u.from, u.to)
		}
		text = append(text, "\n"+strings.Join(list, "\n\n")+"\n"...)
		merged := withImports(name, text, was, is)
		if merged == nil {
			return nil
		}
		out = append(out, edit{name: name, role: testSource, added: len(is) == 0 || !v.wasThere(name), before: was, merged: merged})
	}
	slices.SortFunc(out, func(a, b edit) int { return strings.Compare(a.name, b.name) })
	return out
}

// withImports gives a file the imports of what is in it, of those of both sides.
func withImports(name string, text, was, is []byte) []byte {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	})
	imports, taken := []string{}, map[string]bool{}
	for _, side := range [][]byte{is, was} {
		if len(side) == 0 {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, side, parser.ImportsOnly)
		if err != nil {
			return nil
		}
		for _, spec := range f.Imports {
			line, local := spec.Path.Value, importName(spec)
			if spec.Name != nil {
				line = spec.Name.Name + " " + line
			}
			silent := local == "_" || local == "." || spec.Name == nil && !bytes.Contains(side, []byte(local+".")) // or its name is not known
			if !taken[local] && used[local] || silent && !slices.Contains(imports, line) && (len(is) == 0 || bytes.Equal(side, is)) {
				taken[local] = true
				imports = append(imports, line)
			}
		}
	}
	for i := len(file.Decls) - 1; i >= 0; i-- {
		if d, ok := file.Decls[i].(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			text = slices.Delete(text, fset.Position(d.Pos()).Offset, fset.Position(d.End()).Offset)
		}
	}
	if len(imports) == 0 {
		return text
	}
	at := fset.Position(file.Name.End()).Offset
	return slices.Insert(text, at, []byte("\n\nimport (\n\t"+strings.Join(imports, "\n\t")+"\n)\n")...)
}

var versionPart = lazyregexp.New(`^v\d+$|^(?:go|gopkg)-|[.-](?:go|v\d+)$`)

// importName is the name by which a file uses an import.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	name := strings.Trim(spec.Path.Value, `"`)
	base := path.Base(name)
	if regexp.MustCompile(`^v\d+$`).MatchString(base) && path.Dir(name) != "." {
		base = path.Base(path.Dir(name))
	}
	return versionPart.ReplaceAllString(base, "")
}
