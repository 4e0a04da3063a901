// Package measure counts what a reader of Forge's code has to hold in mind.
package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// Measures are the figures of one tree. Code is all that is not in a test's file; that of
// packages made for tests counts as code.
type Measures struct {
	CodeLines     int    `json:"code_lines"`
	TestLines     int    `json:"test_lines"`
	LabLines      int    `json:"lab_lines"` // of the laboratory, tests included
	Packages      int    `json:"packages"`
	Largest       string `json:"largest_package"`
	LargestLines  int    `json:"largest_package_lines"`
	Exported      int    `json:"exported_names"` // methods and constants included
	Expressions   int    `json:"regular_expressions"`
	RunMethods    int    `json:"run_methods"`
	Interfaces    int    `json:"interfaces_over_5_methods"` // of what they embed, too
	Tags          int    `json:"tags_unlike_names"`         // json and yaml
	LongFunctions int    `json:"functions_over_60_lines"`
	Dependencies  int    `json:"direct_dependencies"`
	Migrations    int    `json:"migrations"`
	BinaryBytes   int64  `json:"binary_bytes,omitempty"`
	BuildMS       int64  `json:"build_ms,omitempty"` // with what is cached
}

// Command returns "lab measure".
func Command() *cobra.Command {
	var build, asJSON bool
	cmd := &cobra.Command{
		Use: "measure [DIR]", Short: "Count lines, packages, names and expressions", Args: cobra.MaximumNArgs(1),
		Long: "Counts what a reader has to hold in mind, in the tree at DIR, which is this one unless said otherwise.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Join("..", "..")
			if len(args) == 1 {
				dir = args[0]
			}
			m, err := Tree(dir)
			if err == nil && build {
				err = m.build(cmd, dir)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
			}
			m.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&build, "build", false, "build the program, too: how big it gets")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// Tree measures the module at a directory.
func Tree(dir string) (*Measures, error) {
	m := &Measures{}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	list, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the packages of %s: %w", dir, err)
	}
	for _, p := range list {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		m.code(p)
	}
	for _, top := range []string{"cmd", "webhook", "github", "pipeline", "learn"} {
		if err := eachGo(filepath.Join(dir, top), func(path string, lines int) { m.file(path, lines) }); err != nil {
			return nil, err
		}
	}
	if err := eachGo(filepath.Join(dir, ".github", "lab"), func(_ string, lines int) { m.LabLines += lines }); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return m, m.module(dir)
}

func (m *Measures) file(path string, lines int) {
	if strings.HasSuffix(path, "_test.go") {
		m.TestLines += lines
		return
	}
	m.CodeLines += lines
}

// eachGo shows every Go file of a folder, those of testdata aside, with its lines.
func eachGo(dir string, show func(path string, lines int)) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		show(path, strings.Count(string(data), "\n"))
		return err
	})
}

// code counts what one package says, for this system and without tags.
func (m *Measures) code(p *packages.Package) {
	m.Packages++
	lines := 0
	for _, f := range p.Syntax {
		lines += p.Fset.File(f.Pos()).LineCount()
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if compiles.MatchString(types.ExprString(n.Fun)) {
					m.Expressions++
				}
			case *ast.FuncDecl:
				if n.Body != nil && p.Fset.Position(n.End()).Line-p.Fset.Position(n.Pos()).Line > 60 {
					m.LongFunctions++
				}
			case *ast.StructType:
				m.tags(n)
			}
			return true
		})
	}
	if lines > m.LargestLines {
		m.Largest, m.LargestLines = strings.TrimPrefix(p.PkgPath, "forge/"), lines
	}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if o.Exported() {
			m.Exported++
		}
		t, ok := o.(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		if in, ok := t.Type().Underlying().(*types.Interface); ok && in.IsMethodSet() && in.NumMethods() > 5 {
			m.Interfaces++
		}
		named, ok := t.Type().(*types.Named)
		if !ok {
			continue
		}
		for f := range named.Methods() {
			if f.Exported() {
				m.Exported++
			}
		}
		if p.PkgPath == "forge/pipeline" && name == "Run" {
			m.RunMethods = named.NumMethods()
		}
	}
}

var compiles = regexp.MustCompile(`^(?:regexp\.(?:Must)?Compile(?:POSIX)?|lazyregexp\.New)$`)

// tags counts the fields whose name in JSON or YAML is not their own in snake case.
func (m *Measures) tags(s *ast.StructType) {
	for _, f := range s.Fields.List {
		if f.Tag == nil || len(f.Names) != 1 {
			continue
		}
		for _, key := range []string{"json", "yaml"} {
			tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get(key), ",")
			if tag != "" && tag != "-" && tag != snake(f.Names[0].Name) {
				m.Tags++
				break
			}
		}
	}
}

// snake writes a Go name in snake case: CostUSD becomes cost_usd.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// module reads go.mod and the migrations.
func (m *Measures) module(dir string) error {
	path := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(path, text, nil)
	if err != nil {
		return err
	}
	for _, r := range mod.Require {
		if !r.Indirect {
			m.Dependencies++
		}
	}
	sql, err := filepath.Glob(filepath.Join(dir, "pipeline/store/migrations/*/*.sql"))
	m.Migrations = len(sql)
	return err
}

// build makes the program as it is released.
func (m *Measures) build(cmd *cobra.Command, dir string) error {
	out, err := os.MkdirTemp("", "forge-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out) //nolint:errcheck // of a folder for temporary files
	begun := time.Now()
	c := exec.CommandContext(cmd.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(out, "forge"), "./cmd/forge")
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, text)
	}
	m.BuildMS = time.Since(begun).Milliseconds()
	info, err := os.Stat(filepath.Join(out, "forge"))
	if err != nil {
		return err
	}
	m.BinaryBytes = info.Size()
	return nil
}

func (m *Measures) print(out io.Writer) {
	t := table.NewWriter()
	v := reflect.ValueOf(*m)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !v.Field(i).IsZero() {
			t.AppendRow(table.Row{strings.ReplaceAll(name, "_", " "), v.Field(i).Interface()})
		}
	}
	fmt.Fprintln(out, t.Render())
}
