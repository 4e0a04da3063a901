package deps

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"forge/pipeline/lock"
	"forge/pipeline/workspace"
)

// goLocks finds the modules whose go.mod or go.sum lacks what a change imports or requires,
// and those that take one of them from its directory: what it needs by then they need, too.
// One that has its packages in the repository is not written: what these lack is said.
func goLocks(e Edit, host Host) ([]*Lock, error) {
	f := &finder{files: slices.DeleteFunc(slices.Clone(e.Now.Paths), foreign), host: host}
	dirs := f.dirs("go.mod")
	taken, err := takenFrom(e, dirs)
	if err != nil {
		return nil, err
	}
	var out []*Lock
	needs := map[string]bool{} // modules that need something else than before
	for _, dir := range takenFirst(dirs, taken) {
		all := e.touches(path.Join(dir, "go.mod")) || slices.ContainsFunc(taken[dir], func(d string) bool { return needs[d] })
		find := goLock
		if slices.Contains(e.Now.Paths, path.Join(dir, vendorList)) {
			find = vendored
		}
		l, err := find(e, f, dir, dirs, all)
		if err != nil {
			return nil, err
		}
		if l != nil {
			out, needs[dir] = append(out, l), true
		}
	}
	return out, nil
}

// takenFrom are the directories that modules take others from.
func takenFrom(e Edit, dirs []string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, dir := range dirs {
		now, err := e.Now.Text(path.Join(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		manifest, err := modfile.Parse(dir, now, nil)
		if err != nil {
			continue // its build says so
		}
		for _, r := range manifest.Replace {
			if r.New.Version == "" && !path.IsAbs(r.New.Path) {
				out[dir] = append(out[dir], path.Join(dir, r.New.Path))
			}
		}
	}
	return out, nil
}

// takenFirst brings modules before those that take them from their directories.
func takenFirst(dirs []string, taken map[string][]string) []string {
	var out []string
	met := map[string]bool{}
	var add func(dir string)
	add = func(dir string) {
		if met[dir] {
			return
		}
		met[dir] = true
		for _, d := range taken[dir] {
			add(d)
		}
		if slices.Contains(dirs, dir) {
			out = append(out, dir)
		}
	}
	for _, dir := range dirs {
		add(dir)
	}
	return out
}

// goLock is of all packages of a module, or of those that a change imports anew.
func goLock(e Edit, f *finder, dir string, modules []string, all bool) (*Lock, error) {
	mod, sum := path.Join(dir, "go.mod"), path.Join(dir, "go.sum")
	now, err := e.Now.Text(mod)
	if err != nil {
		return nil, err
	}
	manifest, err := modfile.Parse(mod, now, nil)
	if err != nil || manifest.Module == nil {
		return nil, nil // its build says so
	}
	what := []string{"./..."}
	if !all {
		if what, err = imported(e, dir, modules, manifest.Module.Mod.Path); err != nil || len(what) == 0 {
			return nil, err
		}
	}
	l := &Lock{Manager: "go", Dir: dir, Lacks: f.lacks("go", "go", "install Go")}
	l.Check = &workspace.Command{Dir: dir, Timeout: timeout, Args: append([]string{"go", "list", "-mod=readonly", "-deps", "-test", "-f", "{{\"\"}}", "--"}, what...)}
	base, err := e.Base.Text(mod)
	if err != nil {
		return nil, err
	}
	sums, err := e.Before.Text(sum)
	if err != nil {
		return nil, err
	}
	l.stage = map[string][]byte{"lock/go.mod": now, "lock/go.sum": sums}
	l.take = map[string]string{mod: "lock/go.mod", sum: "lock/go.sum"}
	db := f.host.SumDB
	if db == "" {
		db = "off"
	}
	env := []string{"GOPROXY=" + f.host.Registry["go"], "GOSUMDB=" + db, "GOMODCACHE=" + root + "/go", "GOFLAGS=-modcacherw -buildvcs=false", "GONOSUMDB=", "GOPRIVATE=",
		"GONOPROXY=", "GOINSECURE=", "GOWORK=off", "GOENV=off"}
	step := func(args ...string) []workspace.Command {
		return []workspace.Command{{Dir: dir, Env: env, Timeout: timeout, Args: args}}
	}
	const file = "-modfile=" + root + "/lock/go.mod"
	// Where a module is not tidy as it is, what is missing is added and nothing else is done.
	l.tries = [][]workspace.Command{step("go", "mod", "tidy", file), step("go", "list", "-mod=mod", file, "-deps", "-test", "-f", "{{\"\"}}", "./...")}
	l.read = func(taken map[string][]byte) (map[string][]byte, []lock.Package, error) {
		after, err := modfile.Parse(mod, taken[mod], nil)
		if err != nil {
			return nil, nil, refusal("the go command wrote a go.mod that cannot be read: " + err.Error())
		}
		if err := grown(manifest, after); err != nil {
			return nil, nil, err
		}
		return taken, required(dir, base, after), nil
	}
	return l, nil
}

// imported are the packages outside of a module that a change imports anew in its files.
func imported(e Edit, dir string, modules []string, module string) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for _, name := range e.Changed {
		if path.Ext(name) != ".go" || !below(path.Dir(name), dir) || foreign(name) ||
			slices.ContainsFunc(modules, func(m string) bool { return m != dir && below(m, dir) && below(path.Dir(name), m) }) {
			continue
		}
		now, before, err := e.Both(name)
		if err != nil {
			return nil, err
		}
		had := importsOf(before)
		for _, p := range importsOf(now) {
			first, _, _ := strings.Cut(p, "/")
			if strings.Contains(first, ".") && p != module && !strings.HasPrefix(p, module+"/") && !slices.Contains(had, p) && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// importsOf are a Go file's imports, as far as it can be read.
func importsOf(source []byte) (out []string) {
	if source == nil {
		return nil
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", source, parser.ImportsOnly)
	if file == nil {
		return nil
	}
	for _, s := range file.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// grown refuses a go.mod that differs from another in more than requirements that were
// added, or raised because what was added asks for that.
func grown(was, is *modfile.File) error {
	if goLine(was) != goLine(is) {
		return refusal(fmt.Sprintf("what is asked for needs `go %s`, and go.mod says %s: take a version of it that needs no more, or raise that line yourself where the task allows",
			goLine(is), goLine(was)))
	}
	if a, b := restOf(was), restOf(is); !bytes.Equal(a, b) {
		return refusal("the go command would change more of go.mod than its requirements")
	}
	for _, r := range was.Require {
		i := slices.IndexFunc(is.Require, func(n *modfile.Require) bool { return n.Mod.Path == r.Mod.Path })
		switch {
		case i < 0:
			return refusal("the go command would take the requirement of " + r.Mod.Path + " away, which nothing imports")
		case semver.Compare(is.Require[i].Mod.Version, r.Mod.Version) < 0:
			return refusal("the go command would lower the requirement of " + r.Mod.Path)
		}
	}
	return nil
}

func goLine(f *modfile.File) string {
	if f.Go == nil {
		return ""
	}
	return f.Go.Version
}

// restOf is what a go.mod says besides its requirements and its version of the language.
func restOf(f *modfile.File) []byte {
	var b bytes.Buffer
	for _, s := range f.Syntax.Stmt {
		switch s := s.(type) {
		case *modfile.Line:
			line(&b, nil, s.Token)
		case *modfile.LineBlock:
			for _, l := range s.Line {
				line(&b, s.Token, l.Token)
			}
		}
	}
	return b.Bytes()
}

func line(b *bytes.Buffer, verb, rest []string) {
	all := slices.Concat(verb, rest)
	if len(all) > 0 && all[0] != "require" && all[0] != "go" {
		b.WriteString(strings.Join(all, " ") + "\n")
	}
}

// required are the requirements of a go.mod that another does not have.
func required(dir string, base []byte, now *modfile.File) (out []lock.Package) {
	had := map[string]string{}
	if was, err := modfile.ParseLax("go.mod", base, nil); err == nil && base != nil {
		for _, r := range was.Require {
			had[r.Mod.Path] = r.Mod.Version
		}
	}
	for _, r := range now.Require {
		if from := had[r.Mod.Path]; from != r.Mod.Version {
			out = append(out, lock.Package{Manager: "go", Dir: place(dir), Name: r.Mod.Path, Version: r.Mod.Version, From: from, Indirect: r.Indirect})
		}
	}
	return out
}
