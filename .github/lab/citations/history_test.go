// Package citations measures what becomes of learnings about code in a real history.
package citations

import (
	"compress/gzip"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"forge/learn/cite"
	"forge/pipeline/record"
)

// tree is code by path, with the files that each word is in.
type tree struct {
	text  map[string]string
	words map[string][]string
}

func newTree(text map[string]string) tree {
	t := tree{text, map[string][]string{}}
	for _, p := range slices.Sorted(maps.Keys(text)) {
		list := word.FindAllString(text[p], -1)
		slices.Sort(list)
		for _, w := range slices.Compact(list) {
			t.words[w] = append(t.words[w], p)
		}
	}
	return t
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

func (t tree) look(c *record.Cite) cite.Found {
	return cite.Look(c, cite.Tree{
		Read:   func(path string) (string, bool) { text, ok := t.text[path]; return text, ok },
		Having: func(name string) []string { return t.words[name] },
	})
}

// fact is something that a learning may say of code: of a name, with another word.
type fact struct{ kind, name, word string }

// A name of a declaration is as it is looked up: methods of two types are two.
type declared struct{ owner, name string }

// facts reads from a Go file, with the compiler's own parser, what could be learnt of it:
// which function calls which, takes which parameter, which constant has which value, which
// type which field, and what there is. Names of less than four letters are left out, as
// they are of learnings. It knows nothing of digests: it tells what is true.
func facts(text string) map[fact][]declared {
	out := map[fact][]declared{}
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.SkipObjectResolution)
	if err != nil {
		return out
	}
	add := func(kind, owner, name, word string) {
		if f := (fact{kind, name, word}); len(name) >= 4 && (word == "" || len(word) >= 4 || kind == "is") {
			out[f] = append(out[f], declared{owner, name})
		}
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			owner := ""
			if d.Recv != nil && len(d.Recv.List) == 1 {
				owner = strings.Trim(fmt.Sprint(receiver(d.Recv.List[0].Type)), "*")
			}
			add("exists", owner, d.Name.Name, "")
			for _, p := range d.Type.Params.List {
				for _, n := range p.Names {
					add("takes", owner, d.Name.Name, n.Name)
				}
			}
			if d.Body == nil {
				continue
			}
			ast.Inspect(d.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					switch f := c.Fun.(type) {
					case *ast.Ident:
						add("calls", owner, d.Name.Name, f.Name)
					case *ast.SelectorExpr:
						add("calls", owner, d.Name.Name, f.Sel.Name)
					}
				}
				return true
			})
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for i, n := range s.Names {
						add("exists", "", n.Name, "")
						if i < len(s.Values) {
							if v, ok := s.Values[i].(*ast.BasicLit); ok && v.Kind != token.STRING {
								add("is", "", n.Name, v.Value)
							}
						}
					}
				case *ast.TypeSpec:
					add("exists", "", s.Name.Name, "")
					if t, ok := s.Type.(*ast.StructType); ok {
						for _, f := range t.Fields.List {
							for _, n := range f.Names {
								add("has", "", s.Name.Name, n.Name)
							}
						}
					}
				}
			}
		}
	}
	return out
}

func allFacts(t tree) map[string]map[fact][]declared {
	out := map[string]map[fact][]declared{}
	for p, text := range t.text {
		if strings.HasSuffix(p, ".go") {
			out[p] = facts(text)
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return ""
}

// figures are what became of seeded learnings.
type figures struct {
	held, lost     int // of those that are true: told, left out
	stopped, stale int // of those that are not: left out, told
	moved, strayed int // of those whose code is in another file: followed there, elsewhere
	byKind         map[string][4]int
}

// seed makes learnings of all facts about files of a tree, and looks up in a later tree
// what became of each. A fact is true by then if the same declaration has it, wherever it
// is now in the same kind of file; told is the file that its prompt would name.
func seed(before, after tree, every int) figures {
	out := figures{byKind: map[string][4]int{}}
	then, now := allFacts(before), allFacts(after)
	there := map[string]bool{} // what is declared, by folder: a method of a type that was renamed is the same
	for p, list := range now {
		for f, of := range list {
			for _, d := range of {
				if f.kind == "exists" {
					there[path.Dir(p)+" "+d.owner+" "+d.name] = true
				}
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(before.text)) {
		if !strings.HasSuffix(p, ".go") || after.text[p] == before.text[p] {
			continue
		}
		was := then[p]
		list := slices.SortedFunc(maps.Keys(was), func(a, b fact) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for i, f := range list {
			if i%every != 0 {
				continue
			}
			if len(was[f]) != 1 { // which is meant?
				continue
			}
			d := was[f][0]
			have := func(file string) bool {
				dir := path.Dir(file) + " "
				return slices.ContainsFunc(now[file][f], func(e declared) bool {
					return e == d || !there[dir+d.owner+" "+d.name] && (d.owner == "" || !there[dir+" "+d.owner])
				})
			}
			here, in := have(p), ""
			if !here {
				for q := range now {
					// The same declaration somewhere else, and not one that was there before.
					if have(q) && !slices.Contains(then[q][f], d) {
						in = q
					}
				}
			}
			words := []string{f.name}
			if f.word != "" {
				words = append(words, f.word)
			}
			cites := cite.Of(p, before.text[p], []string{f.name}, words)
			if len(cites) == 0 {
				continue // as before: by its path
			}
			got := after.look(&cites[0])
			k := out.byKind[f.kind]
			switch {
			case (here || in != "") && got.Why == "":
				out.held++
				k[0]++
				if !here {
					if path.Dir(got.Moved) == path.Dir(in) {
						out.moved++
					} else {
						out.strayed++
					}
				}
			case here || in != "":
				out.lost++
				k[1]++
			case got.Why != "":
				out.stopped++
				k[2]++
			default:
				out.stale++
				k[3]++
			}
			out.byKind[f.kind] = k
		}
	}
	return out
}

// history is a tree at two moments, from testdata: the packages github and learn of this
// program, with some days and a great restructuring in between.
func history(t *testing.T, name string) tree {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".txtar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		text[f.Name] = string(f.Data)
	}
	return newTree(text)
}

// Covers L5: of learnings that a real history made false, nine of ten at least are not told,
// none that is about code which is gone; of those that are still true hardly one is lost,
// also where the code has moved.
func TestHistory(t *testing.T) {
	t.Parallel()
	const every = 4
	f := seed(history(t, "before"), history(t, "after"), every)
	t.Logf("%+v", f)
	if n := f.stopped + f.stale; every*n < 160 || 10*f.stopped < 9*n {
		t.Errorf("of %d learnings that are false by now %d are told", n, f.stale)
	}
	if gone := f.byKind["exists"]; gone[2] == 0 || gone[3] > 0 {
		t.Errorf("of %d learnings whose code is gone %d are told", gone[2]+gone[3], gone[3])
	}
	if n := f.held + f.lost; every*n < 800 || 100*f.lost > 5*n {
		t.Errorf("of %d learnings that are still true %d are lost", n, f.lost)
	}
	if every*f.moved < 120 || 10*f.strayed > f.moved {
		t.Errorf("%d are followed to where their code is, %d to somewhere else", f.moved, f.strayed)
	}
}
