package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"forge/cmd/forge/demo"
)

// mayImport says which packages of the program a package may import; a
// sub-package follows its parent. Everybody may import the vocabulary and their own
// sub-packages.
var mayImport = map[string][]string{
	"pipeline":                         {},
	"pipeline/secrets":                 {"pipeline"},
	"pipeline/store":                   {"pipeline"},
	"pipeline/work":                    {"pipeline"},
	"pipeline/agent":                   {"pipeline", "pipeline/workspace"},
	"pipeline/check":                   {"pipeline", "pipeline/workspace"},
	"pipeline/workspace":               {"pipeline"},
	"pipeline/workspace/workspacetest": {"pipeline", "pipeline/deps", "pipeline/workspace", "pipeline/sandbox"},
	"pipeline/sandbox":                 {"pipeline", "pipeline/workspace"},
	"pipeline/identity":                {"pipeline"},
	"pipeline/registry":                {},
	"pipeline/image":                   {"pipeline/registry"}, // connects to public addresses alone
	"pipeline/deps":                    {"pipeline", "pipeline/workspace"},
	"webhook":                          {"pipeline"},
	"github":                           {"pipeline", "pipeline/workspace"},
	"github/githubtest":                {"pipeline"},
	"learn":                            {"pipeline"},
	"cmd/forge":                        {"*"},
	"cmd/forge/phase": {"pipeline", "pipeline/agent", "pipeline/check", "pipeline/deps", "pipeline/identity", "pipeline/image", "pipeline/registry",
		"pipeline/work", "pipeline/workspace", "github"},
	"cmd/forge/memory": {"pipeline", "pipeline/agent", "pipeline/store", "pipeline/work", "learn", "learn/nearest", "learn/recall",
		"learn/reflect", "learn/impact", "learn/cite"},
}

// vocabulary are the words that all packages share, and that import nothing of ours but
// each other: the core is made of them.
var vocabulary = []string{
	"pipeline/command", "pipeline/config", "pipeline/fair", "pipeline/fence", "pipeline/glob", "pipeline/lazyregexp", "pipeline/lens", "pipeline/lock",
	"pipeline/measure",
	"pipeline/mergeable", "pipeline/module", "pipeline/needs", "pipeline/panics",
	"pipeline/proof", "pipeline/quality", "pipeline/record", "pipeline/role", "pipeline/rollout",
	"pipeline/source", "pipeline/testname", "pipeline/text", "pipeline/track", "pipeline/untrusted", "pipeline/upstream", "pipeline/written",
}

// onlyIn are imports that belong to one package alone; test files and packages
// made for tests may use them.
var onlyIn = map[string][]string{
	"database/sql": {"pipeline/store", "pipeline/work"}, // work names the transactions that it adds jobs to, and runs no statement
	"os/exec":      {"pipeline/sandbox", "pipeline/needs"},
	"testing":      {"pipeline/needs"}, // tests of every package import it
	// What repositories hold is read by untrusted alone; the others read what is ours or the operator's.
	"github.com/BurntSushi/toml":      {"pipeline/untrusted", "pipeline/secrets", "cmd/forge/settings"},
	"github.com/goccy/go-yaml":        {"pipeline/untrusted", "pipeline/agent", "cmd/forge/server", "cmd/forge/settings", "cmd/forge/setup"},
	"github.com/goccy/go-yaml/parser": {"pipeline/untrusted"},
}

// topLevel is all that stands at the top of the tree, dot-files aside.
var topLevel = []string{"Dockerfile", "README.md", "app.yml", "cmd", "github", "go.mod", "go.sum", "learn", "pipeline", "webhook"}

type source struct {
	path, dir string // from the top of the tree, with slashes
	test      bool
	file      *ast.File
	set       *token.FileSet
}

// sources are all files of the program; they are parsed once for all rules.
func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("read %d source files only: is this the whole tree?", len(out))
	}
	return out
}

var parsed = sync.OnceValues(func() ([]source, error) { return parse("../..") })

// laboratory are the files of the module that measures the program.
func laboratory(t *testing.T) []source {
	t.Helper()
	out, err := parse("../../.github/lab")
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// parse reads all Go files below a folder, those of dot-folders and testdata in it aside.
func parse(root string) (out []source, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		dir := filepath.ToSlash(filepath.Dir(rel))
		out = append(out, source{rel, dir, strings.HasSuffix(path, "_test.go") || strings.HasSuffix(dir, "test"), f, set})
		return nil
	})
	return out, err
}

func TestImportRules(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

func TestPipelineIsPure(t *testing.T) {
	t.Parallel()
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

// TestPackageComments holds that each package says in one place what it is.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !strings.HasSuffix(s.path, "_test.go") {
			documented[s.dir] = documented[s.dir] || s.file.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// requirements are the ids of what Forge does; those of the ways in, of other models and of
// people's pull requests come with their work.
const requirements = "I1 I2 I3 I4 T1 T2 T3 T4 T5 T6 T7 T8 T9 B1 B2 B3 B4 B5 B6 B7 B8 B9 R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 " +
	"V1 V2 V3 V4 V5 V6 V7 V8 V9 V10 V11 V12 V13 U1 U2 U3 U4 U5 U6 U7 L1 L2 L3 L4 L5 L6 L7 H1 H2 H3 H4 H5 H6 H7 P1 P2 M1 M2 M3 M4 D1 D2 D3 D4 D5 D6"

// TestRequirements holds that each is named by the comment of a test that covers it.
func TestRequirements(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	id := regexp.MustCompile(`\b([A-Z]\d+)(?:(?: to |–)[A-Z]?(\d+))?\b`)
	for _, s := range append(sources(t), laboratory(t)...) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test || f.Doc == nil {
				continue
			}
			_, covers, _ := strings.Cut(strings.ToLower(f.Doc.Text()), "cover")
			for _, m := range id.FindAllStringSubmatch(strings.ToUpper(covers), -1) {
				named[m[1]] = true
				from, _ := strconv.Atoi(m[1][1:])
				to, _ := strconv.Atoi(m[2])
				for n := from + 1; n <= to; n++ {
					named[m[1][:1]+strconv.Itoa(n)] = true
				}
			}
		}
	}
	for id := range strings.FieldsSeq(requirements) {
		if !named[id] {
			t.Errorf("no test says that it covers %s", id)
		}
	}
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	top, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	if string(top) != string(demo.Manifest()) {
		t.Error("cmd/forge/demo/app.yml differs from app.yml: copy it over")
	}
}
