package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// warm compiles the packages that a Go module imports and that are not the
// repository's own, what tests of them need and vet's facts included, and keeps
// them in the seed. c is the command that is about to be run: its directory counts,
// and what of its flags and environment changes how packages are compiled. What
// cannot be compiled is left to that command.
func (w *worker) warm(ctx context.Context, c workspace.Command) error {
	dir, err := checkCommand(c)
	if err != nil {
		return err
	}
	w.command.Lock()
	defer w.command.Unlock()
	s, err := w.whatToSeed(ctx, dir, c)
	if err != nil {
		return fmt.Errorf("warm the build cache: %w", err)
	}
	if len(s.missing) == 0 {
		return nil
	}
	w.retire() // nothing that a command left behind may be there
	packages, err := w.importable(ctx, s)
	if err != nil {
		return fmt.Errorf("warm the build cache: %w", err)
	}
	if len(packages) > 0 {
		whole, err := w.compile(ctx, s, packages)
		if err == nil {
			err = w.promote()
		}
		if err != nil {
			return fmt.Errorf("warm the build cache: %w", err)
		}
		if !whole { // out of time: the next one goes on from here
			return nil
		}
	}
	return s.remember()
}

// seeding is what one module needs of the seed.
type seeding struct {
	module  string   // its directory
	flags   []string // of the go command
	env     []string
	file    string   // lists what the seed has under these conditions
	known   []string // import paths that it lists
	missing []string // import paths that it does not
}

// whatToSeed reads which packages the module around a directory imports.
func (w *worker) whatToSeed(ctx context.Context, dir string, c workspace.Command) (*seeding, error) {
	s := &seeding{module: dir, flags: buildFlags(c.Args), env: buildEnv(c.Env)}
	for !w.isFile(path.Join(s.module, "go.mod")) {
		if s.module == "." {
			return s, nil
		}
		s.module = path.Dir(s.module)
	}
	mod, key, err := w.seedKey(s)
	if err != nil || key == "" {
		return s, err
	}
	s.file = filepath.Join(w.Seed, "known-"+key)
	if text, err := os.ReadFile(s.file); err == nil {
		_ = json.Unmarshal(text, &s.known) // what cannot be read is compiled again
	}
	imports, err := w.tree.imports(ctx, s.module)
	if err != nil {
		return nil, err
	}
	for _, p := range imports {
		if p != mod && !strings.HasPrefix(p, mod+"/") && !slices.Contains(s.known, p) {
			s.missing = append(s.missing, p)
		}
	}
	return s, nil
}

var moduleLine = lazyregexp.New(`(?m)^module[ \t]+"?([^\s"]+)`)

// seedKey returns the module's path, and a name for all that decides what its
// imports are compiled to; none where there is no Go.
func (w *worker) seedKey(s *seeding) (mod, key string, err error) {
	sum := sha256.New()
	goBin := ""
	for _, dir := range filepath.SplitList(w.path()) {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "go"))
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil {
			goBin = real
			fmt.Fprintln(sum, real, info.Size(), info.ModTime().UnixNano())
			break
		}
	}
	if goBin == "" {
		return "", "", nil
	}
	fmt.Fprintf(sum, "%s %q %q %s\n", runtime.GOARCH, s.flags, s.env, w.ModCache)
	for _, dir := range w.env.Lowers {
		fmt.Fprintln(sum, dir)
	}
	files := []string{path.Join(s.module, "go.mod"), path.Join(s.module, "go.sum"), path.Join(s.module, "vendor/modules.txt")}
	for dir := s.module; ; dir = path.Dir(dir) {
		files = append(files, path.Join(dir, "go.work"), path.Join(dir, "go.work.sum"))
		if dir == "." {
			break
		}
	}
	for i, name := range files {
		text, _, err := w.tree.safeRead(name, w.tree.limits.ReadBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		fmt.Fprintf(sum, "%d %d\n%s", i, len(text), text)
		if m := moduleLine.FindSubmatch(text); i == 0 && m != nil {
			mod = string(m[1])
		}
	}
	return mod, hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// remember adds what was missing to the list.
func (s *seeding) remember() error {
	all := append(slices.Clone(s.known), s.missing...)
	slices.Sort(all)
	text, err := json.Marshal(slices.Compact(all))
	if err != nil {
		return err
	}
	temp := s.file + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.file)
}

// buildFlags are those flags of a go command that change what is compiled.
func buildFlags(args []string) []string {
	var flags []string
	for i, a := range args {
		flag := "-" + strings.TrimLeft(a, "-")
		switch {
		case !strings.HasPrefix(a, "-"):
		case flag == "-race", flag == "-msan", flag == "-asan", flag == "-trimpath", strings.HasPrefix(flag, "-tags="):
			flags = append(flags, flag)
		case flag == "-tags" && i+1 < len(args):
			flags = append(flags, "-tags="+args[i+1])
		}
	}
	return flags
}

// buildEnv is what of a command's environment changes what is compiled, and names
// no program.
func buildEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return kv != "CGO_ENABLED=0" && kv != "CGO_ENABLED=1" })
}

// importPath is what may stand among the arguments of a go command.
var importPath = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_~+-]*([./]+[A-Za-z0-9_~+-]+)*$`)

// imports lists what the Go files of one module import, sorted: what it could have
// in the seed, not what it has of its own.
func (t *tree) imports(ctx context.Context, module string) ([]string, error) {
	found := map[string]bool{}
	err := t.walk(ctx, module, func(name string, info fs.FileInfo) error {
		base := path.Base(name)
		if info.IsDir() {
			_, err := t.root.Lstat(path.Join(name, "go.mod"))
			if base == "vendor" || base == "testdata" || base == "node_modules" || base[0] == '.' || base[0] == '_' || err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if !info.Mode().IsRegular() || path.Ext(name) != ".go" || base[0] == '.' || base[0] == '_' {
			return nil
		}
		content, _, err := t.safeRead(name, 1<<20)
		if err != nil {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), base, content, parser.ImportsOnly)
		if err != nil {
			return nil // the compiler says so
		}
		for _, spec := range file.Imports {
			if p, err := strconv.Unquote(spec.Path.Value); err == nil {
				found[p] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []string
	for p := range found {
		parts := strings.Split(p, "/")
		if p != "C" && p != "unsafe" && len(p) < 300 && importPath.MatchString(p) &&
			!slices.Contains(parts, "internal") && !slices.Contains(parts, "..") {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all, nil
}

// importable are the missing packages that exist, are no programs, and have no file
// in the work tree, nor need a package that does.
func (w *worker) importable(ctx context.Context, s *seeding) ([]string, error) {
	tree := boxTree
	if w.Unsafe {
		tree = w.tree.dir
		if real, err := filepath.EvalSymlinks(tree); err == nil { // as the go command names it
			tree = real
		}
	}
	packages := s.missing
	for range 3 {
		args := append([]string{"go", "list", "-e", "-deps", "-f",
			`{{if not .Error}}{{.ImportPath}} {{.Name}} {{.DepOnly}} {{.Standard}} {{.Dir}}{{end}}`}, s.flags...)
		r, err := w.runLocked(ctx, workspace.Command{Args: append(append(args, "--"), packages...), Env: s.env}, s.module)
		if err != nil {
			return nil, err
		}
		var kept, standard []string
		local := false
		for row := range strings.Lines(string(r.Stdout)) {
			f := strings.SplitN(strings.TrimSuffix(row, "\n"), " ", 5)
			if len(f) != 5 || f[4] == "" {
				continue
			}
			own := f[4] == tree || strings.HasPrefix(f[4], tree+"/")
			switch {
			case f[2] == "true":
				local = local || own
			case !own && f[1] != "main":
				kept = append(kept, f[0])
				if f[3] == "true" {
					standard = append(standard, f[0])
				}
			}
		}
		if !local || len(kept) == 0 {
			return kept, nil
		}
		if len(kept) == len(packages) { // something of others is made of something of the repository
			kept = standard
		}
		packages = kept
	}
	return nil, nil
}

// compile has a test compiled that imports the packages, linked, and not run. It
// reports whether it came to an end.
func (w *worker) compile(ctx context.Context, s *seeding, packages []string) (bool, error) {
	dir := ""
	for i := 0; ; i++ {
		dir = path.Join(s.module, "forge_seed"+strconv.Itoa(i))
		if _, err := w.tree.root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return false, err
		}
	}
	var text strings.Builder
	text.WriteString("package seed\n\nimport (\n\t_ \"testing\"\n")
	for _, p := range packages {
		fmt.Fprintf(&text, "\t_ %q\n", p)
	}
	text.WriteString(")\n")
	if err := w.tree.write(path.Join(dir, "seed_test.go"), []byte(text.String())); err != nil {
		return false, err
	}
	defer func() { _ = w.tree.clear(dir) }()
	whole := false
	for _, flags := range [][]string{{"-cover"}, {}} { // an installation can lack the tool for coverage
		args := slices.Concat([]string{"go", "test", "-count=1", "-exec=" + nothing}, flags, s.flags, []string{"."})
		r, err := w.runLocked(ctx, workspace.Command{Args: args, Env: s.env}, dir)
		if err != nil {
			return false, err
		}
		whole = r.Class == ""
		if r.Exit == 0 || !whole {
			break
		}
	}
	return whole, nil
}
