package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/demo"
)

// mayImport says which packages of the program a package may import; a
// sub-package follows its parent. Everybody may import the vocabulary and their own
// sub-packages.
var mayImport = map[string][]string{
	"pipeline":          {},
	"pipeline/secrets":  {"pipeline"},
	"pipeline/store":    {"pipeline"},
	"pipeline/work":     {"pipeline"},
	"pipeline/agent":    {"pipeline"},
	"pipeline/check":    {"pipeline"},
	"pipeline/sandbox":  {"pipeline"},
	"pipeline/identity": {"pipeline"},
	"pipeline/registry": {},
	"pipeline/deps":     {"pipeline"},
	"pipeline/simulate": {"pipeline"}, // plays pipeline's own decisions against a model
	"webhook":           {"pipeline"},
	"github":            {"pipeline"},
	"github/githubtest": {"pipeline"},
	"learn":             {"pipeline"},
	"cmd/forge":         {"*"},
	"cmd/forge/phase": {"pipeline", "pipeline/agent", "pipeline/check", "pipeline/deps", "pipeline/identity", "pipeline/registry",
		"pipeline/sandbox", "pipeline/work", "github"},
	"cmd/forge/memory": {"pipeline", "pipeline/agent", "pipeline/store", "pipeline/work", "learn", "learn/predict", "learn/recall",
		"learn/reflect", "learn/impact", "learn/cite"},
}

// vocabulary are the words that all packages share, and that import nothing of ours but
// each other: the core is made of them.
var vocabulary = []string{
	"pipeline/look",
	"pipeline/align", "pipeline/command", "pipeline/config", "pipeline/fair", "pipeline/fence", "pipeline/glob", "pipeline/lazyregexp", "pipeline/lens", "pipeline/lock",
	"pipeline/measure",
	"pipeline/mergeable", "pipeline/module", "pipeline/needs", "pipeline/panics", "pipeline/point",
	"pipeline/proof", "pipeline/quality", "pipeline/racetest", "pipeline/record", "pipeline/role", "pipeline/rollout",
	"pipeline/source", "pipeline/testedit", "pipeline/testname", "pipeline/text", "pipeline/track", "pipeline/untrusted", "pipeline/upstream", "pipeline/worktree", "pipeline/written",
}

// onlyIn are imports that belong to one package alone; test files and packages
// made for tests may use them.
var onlyIn = map[string][]string{
	"database/sql": {"pipeline/store", "pipeline/work"}, // work names the transactions that it adds jobs to, and runs no statement
	"os/exec":      {"pipeline/sandbox", "pipeline/needs"},
	"testing":      {"pipeline/needs"}, // tests of every package import it
	// What repositories hold is read by untrusted alone; the others read what is ours or the operator's.
	"github.com/BurntSushi/toml":      {"pipeline/untrusted"},
	"github.com/goccy/go-yaml":        {"pipeline/untrusted", "pipeline/agent", "cmd/forge/server", "cmd/forge/settings", "cmd/forge/setup"},
	"github.com/goccy/go-yaml/parser": {"pipeline/untrusted"},
}

// topLevel is all that stands at the top of the tree, dot-files aside.
var topLevel = []string{"Dockerfile", "README.md", "app.yml", "cmd", "github", "go.mod", "go.sum", "learn", "pipeline", "webhook"}

type source struct {
	path, dir string // from the top of the tree, with slashes
	test      bool
	lines     int
	file      *ast.File
	set       *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, data, parser.ParseComments)
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		dir := filepath.ToSlash(filepath.Dir(rel))
		out = append(out, source{rel, dir, strings.HasSuffix(path, "_test.go") || strings.HasSuffix(dir, "test"), strings.Count(string(data), "\n"), f, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("read %d source files only: is this the whole tree?", len(out))
	}
	return out
}

func TestImportRules(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.file.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if homes, held := onlyIn[path]; held && !s.test && !slices.Contains(homes, s.dir) {
				t.Errorf("%s imports %s, which belongs to %v alone", s.path, path, homes)
			}
			own, ours := strings.CutPrefix(path, "forge/")
			if !ours || strings.HasSuffix(s.path, "_test.go") {
				continue
			}
			rule, dir := "", s.dir
			for ; dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
				if _, ok := mayImport[dir]; ok {
					rule = dir
					break
				}
			}
			allowed, ok := mayImport[rule]
			inside := own == rule || strings.HasPrefix(own, rule+"/") && mayImport[own] == nil
			switch {
			case slices.Contains(vocabulary, s.dir) && slices.Contains(vocabulary, own):
			case slices.Contains(vocabulary, s.dir):
				t.Errorf("%s imports %s, but is below all others", s.path, own)
			case !ok:
				t.Errorf("%s: the package %s has no import rule: add it to mayImport, with a reason to exist", s.path, s.dir)
			case slices.Contains(vocabulary, own):
			case !slices.Contains(allowed, "*") && !slices.Contains(allowed, own) && !inside:
				t.Errorf("%s imports %s; %s may import %v", s.path, own, rule, allowed)
			}
		}
	}
}

// TestExpressionsAreLazy holds that no package compiles regular expressions as it starts:
// every command in the sandbox starts this program anew, and that took longer than the
// command.
func TestExpressionsAreLazy(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") || s.dir == "pipeline/lazyregexp" {
			continue
		}
		for _, d := range s.file.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if _, inFunc := n.(*ast.FuncLit); inFunc {
					return false
				}
				call, _ := n.(*ast.SelectorExpr)
				if call != nil && fmt.Sprint(call.X) == "regexp" && strings.HasPrefix(call.Sel.Name, "MustCompile") {
					t.Errorf("%s: use lazyregexp.New: this is compiled at each start", s.set.Position(call.Pos()))
				}
				return true
			})
		}
	}
}

// TestImportDepth holds that no package stands on a chain of more than four imports
// within the program, commands aside: who reads one reads few others. lazyregexp does
// not count: it reads like the standard library's package.
func TestImportDepth(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, imp := range s.file.Imports {
			if own, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "forge/"); ours && own != "pipeline/lazyregexp" {
				if imports[s.dir] == nil {
					imports[s.dir] = map[string]bool{}
				}
				imports[s.dir][own] = true
			}
		}
	}
	chains := map[string][]string{}
	var longest func(dir string) []string
	longest = func(dir string) []string {
		if c, ok := chains[dir]; ok {
			return c
		}
		var best []string
		for own := range imports[dir] {
			if c := longest(own); len(c) > len(best) {
				best = c
			}
		}
		chains[dir] = append([]string{dir}, best...)
		return chains[dir]
	}
	for dir := range imports {
		if c := longest(dir); len(c)-1 > 4 && !strings.HasPrefix(dir, "cmd/") {
			t.Errorf("%s stands on a chain of %d imports, over 4: %s", dir, len(c)-1, strings.Join(c, " → "))
		}
	}
}

func TestPipelineIsPure(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir != "pipeline" || s.test {
			continue
		}
		for _, imp := range s.file.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if strings.Contains(path, ".") || slices.Contains([]string{"os", "io", "net", "net/http", "math/rand", "math/rand/v2", "log", "log/slog",
				"context", "sync"}, path) {
				t.Errorf("%s imports %s: the core does no I/O, has no clock, no randomness, no concurrency", s.path, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && (sel.Sel.Name == "Now" || sel.Sel.Name == "Since" || sel.Sel.Name == "Sleep") {
					t.Errorf("%s uses time.%s", s.set.Position(sel.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestBudgets holds the sizes: files to 1,000 lines, functions to 120 (tables in
// tests aside), interfaces to 7 methods, packages to 60 exported types, functions
// and variables, the core to 80. Constants of an enumeration count as part of their
// type. The commands and what they print have 4,200 lines at most: what is more than
// that belongs in a room of its own.
func TestBudgets(t *testing.T) {
	exported := map[string]int{}
	documented := map[string]bool{}
	root := 0
	for _, s := range sources(t) {
		if s.lines > 1000 {
			t.Errorf("%s has %d lines, over 1,000", s.path, s.lines)
		}
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		documented[s.dir] = documented[s.dir] || s.file.Doc != nil
		if s.dir == "cmd/forge" {
			root += s.lines
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if n := s.set.Position(d.End()).Line - s.set.Position(d.Pos()).Line; n > 120 {
					t.Errorf("%s: %s has %d lines, over 120", s.set.Position(d.Pos()), d.Name.Name, n)
				}
				if d.Recv == nil && d.Name.IsExported() {
					exported[s.dir]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					exported[s.dir] += exportedIn(t, s, d.Tok, spec)
				}
			}
		}
	}
	for dir, n := range exported {
		limit := 60
		if dir == "pipeline" {
			limit = 80 // the vocabulary that all others share: it has no siblings to be split into
		}
		if n > limit {
			t.Errorf("package %s exports %d types, functions and variables, over %d", dir, n, limit)
		}
	}
	if root > 4200 {
		t.Errorf("cmd/forge itself has %d lines, over 4,200", root)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func exportedIn(t *testing.T, s source, tok token.Token, spec ast.Spec) (n int) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 7 {
			t.Errorf("%s: interface %s has %d methods, over 7", s.set.Position(spec.Pos()), spec.Name.Name, i.Methods.NumFields())
		}
		if spec.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if tok == token.VAR && name.IsExported() {
				n++
			}
		}
	}
	return n
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			got = append(got, e.Name())
		}
	}
	if !slices.Equal(got, topLevel) {
		t.Errorf("the top of the tree holds %v, want %v", got, topLevel)
	}
}

func TestManifestIsTheSame(t *testing.T) {
	top, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	if string(top) != string(demo.Manifest()) {
		t.Error("cmd/forge/demo/app.yml differs from app.yml: copy it over")
	}
}
