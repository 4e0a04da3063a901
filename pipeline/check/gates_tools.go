package check

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"forge/pipeline/glob"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/quality"
)

var (
	scriptName = lazyregexp.New(`\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|mts|rb|pl|php|lua|awk|sed|jq|mk|ps1)$`)
	goRun      = lazyregexp.New(`\bgo\s+run\s+(?:-\S+\s+)*(\S+)`)
)

const maxScript = 64 << 10 // of one that is followed to what it runs

// tools returns what a gate is measured by and the change edits. sure are files of the
// base: scripts that its commands run, and what these run; the Makefile and the scripts
// of package.json where they go through them; benchmarks; what from_base names. maybe
// are those that may be read as well, new ones among them: what lies beside such a
// script, settings, test files beside a benchmark.
func (g *gauge) tools(ctx context.Context, gate quality.Gate) (sure, maybe []string, err error) {
	names := slices.DeleteFunc(g.patch.changedNames(), func(name string) bool { return name == "" })
	if len(names) == 0 || g.o.Base == "" {
		return nil, nil, nil
	}
	tree, err := g.base(ctx, g.o.Base)
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	read := func(name string) ([]byte, bool) {
		data, err := tree.Read(ctx, name)
		return data, err == nil
	}
	found := follow(gate.Command+"\n"+gate.Breakdown, read)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		data, there := read(name)
		is := there && found.names(name) || slices.ContainsFunc(gate.FromBase, func(pattern string) bool { return glob.Match(pattern, name) })
		if !is && gate.Use == quality.GoBench && strings.HasSuffix(name, "_test.go") {
			is = bytes.Contains(data, []byte("func Benchmark"))
		}
		if is && path.Base(name) == "package.json" {
			if is, err = g.scriptsDiffer(ctx, name, read); err != nil {
				return nil, nil, err
			}
		}
		switch {
		case is:
			sure = append(sure, name)
		case found.near(name), gate.Use == quality.GoBench && strings.HasSuffix(name, "_test.go"):
			maybe = append(maybe, name)
		}
	}
	return sure, maybe, ctx.Err()
}

// ran is what a command runs of a repository.
type ran struct {
	files map[string]bool // a folder whose program is run by go run ends in a slash
	dirs  map[string]bool // whose scripts are run, or all of them
	makes bool
}

func (r *ran) names(name string) bool {
	for dir := range r.files {
		if strings.HasSuffix(dir, "/") && strings.HasPrefix(name, dir) {
			return true
		}
	}
	return r.files[name]
}

// near reports whether a file may be read by what is run, though nothing names it.
func (r *ran) near(name string) bool {
	base := path.Base(name)
	if settingsName.MatchString(base) || r.makes && makeNames.MatchString(base) {
		return true
	}
	if !scriptName.MatchString(base) && strings.Contains(base, ".") {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.dirs[dir] {
			return true
		}
	}
	return false
}

var (
	// settingsName is that of a file that tells a tool what to look at, and how.
	settingsName = lazyregexp.New(`(?i)^\.[\w-]+(?:rc|ignore|lint)(?:\.\w+)?$|` +
		`^\.(?:flake8|npmrc|yarnrc\.yml|golangci\.ya?ml|stylelint\w*)$|\.config\.[cm]?[jt]s$|^(?:setup\.cfg|tox\.ini|ruff\.toml|mypy\.ini|pylintrc)$`)
	changesDir  = lazyregexp.New(`(?:\b(?:cd|pushd)|\s-C|--(?:prefix|directory|cwd|dir))[ =]+["']?([\w.][\w./-]*)`)
	interpreted = lazyregexp.New(`(?:\b(?:ba|da|z|k)?sh|\bpython[\d.]*|\bnode|\bruby|\bperl|\bphp|\bsource|(?:^|[\s;&|])\.)` +
		`\s+(?:-\w+\s+)*["']?(?:\$\{?\w+\}?/)?([\w.@/-]+)`)
	moduleRun   = lazyregexp.New(`\bpython[\d.]*\s+(?:-\w\s+)*-m\s+([\w.]+)`)
	importLine  = lazyregexp.New(`(?:\brequire\(|\bimport\(|\bimport|\bfrom|\brequire_relative)\s*["']?([\w.@/-]+)`)
	fromImport  = lazyregexp.New(`\bfrom\s+([\w.]+)\s+import\s+\(?([\w, \n\t]+)`)
	searchPath  = lazyregexp.New(`\bPATH=["']?(?:\$\{?\w+\}?/)?([\w.][\w./-]*)|\bsys\.path\.(?:insert|append)\([^)\n]*["']([\w.][\w./-]*)["']`)
	findScripts = lazyregexp.New(`\bfind\s+["']?(?:\$\{?\w+\}?/)?([\w.][\w./-]*)["']?\s[^\n|;]*-name\s+["']?\*\.(?:sh|bash|py|mjs|cjs|js)\b`)
	allScripts  = lazyregexp.New(`([\w.][\w./-]*)/\*\.(?:sh|bash|py|mjs|cjs)\b`)
)

// follow finds the files that a command runs, and those that these run.
func follow(command string, read func(string) ([]byte, bool)) *ran {
	r := &ran{files: map[string]bool{}, dirs: map[string]bool{}}
	type said struct{ dir, text string }
	tried := map[string]bool{}
	for queue := []said{{".", command}}; len(queue) > 0 && len(r.files) < 200; queue = queue[1:] {
		at := queue[0]
		names, asked := r.named(at.dir, at.text)
		for _, name := range names {
			if tried[name] && !asked[name] || r.files[name] || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") {
				continue
			}
			tried[name] = true
			data, ok := read(name)
			base := path.Base(name)
			runs := asked[name] || scriptName.MatchString(name) || makeNames.MatchString(base) || base == "package.json" || bytes.HasPrefix(data, []byte("#!"))
			if !ok || !runs {
				continue
			}
			r.files[name], r.dirs[path.Dir(name)] = true, path.Dir(name) != "."
			if len(data) <= maxScript {
				queue = append(queue, said{path.Dir(name), string(data)})
			}
		}
	}
	return r
}

// named lists the files that a text in a folder may run; asked are those that an
// interpreter is given, whatever they are called.
func (r *ran) named(dir, text string) (names []string, asked map[string]bool) {
	asked = map[string]bool{}
	dirs := []string{".", dir}
	all := func(w string) (out []string) {
		for _, d := range dirs {
			out = append(out, path.Join(d, w), path.Join(d, path.Base(w)))
		}
		return out
	}
	for _, m := range append(changesDir.FindAllStringSubmatch(text, -1), searchPath.FindAllStringSubmatch(text, -1)...) {
		to := strings.Join(m[1:], "") // one of its groups
		for _, d := range []string{path.Clean(to), path.Join(dir, to)} {
			dirs, r.dirs[d] = append(dirs, d), d != "."
		}
	}
	for _, m := range append(allScripts.FindAllStringSubmatch(text, -1), findScripts.FindAllStringSubmatch(text, -1)...) {
		for _, d := range []string{path.Clean(m[1]), path.Join(dir, m[1])} {
			r.dirs[d] = d != "."
		}
	}
	for _, w := range pathWord.FindAllString(text, -1) {
		names = append(names, all(w)...)
	}
	for _, m := range interpreted.FindAllStringSubmatch(text, -1) {
		for _, name := range all(m[1]) {
			names, asked[name] = append(names, name), true
		}
	}
	for _, m := range append(importLine.FindAllStringSubmatch(text, -1), moduleRun.FindAllStringSubmatch(text, -1)...) {
		w := m[1]
		for _, end := range []string{".js", ".cjs", ".mjs", ".ts", ".rb", "/index.js", "/package.json"} {
			names = append(names, all(w+end)...)
		}
		w = strings.ReplaceAll(strings.TrimLeft(w, "."), ".", "/")
		for _, end := range []string{".py", "/__init__.py", "/__main__.py"} {
			names = append(names, all(w+end)...)
		}
	}
	for _, m := range fromImport.FindAllStringSubmatch(text, -1) {
		from := strings.ReplaceAll(strings.TrimLeft(m[1], "."), ".", "/")
		for _, name := range strings.FieldsFunc(m[2], func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' }) {
			names = append(names, all(path.Join(from, name)+".py")...)
		}
	}
	if makeCommand.MatchString(text) {
		r.makes = true
		for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
			names = append(names, all(name)...)
		}
	}
	if packageCommand.MatchString(text) {
		names = append(names, all("package.json")...)
	}
	for _, m := range goRun.FindAllStringSubmatch(text, -1) {
		r.files[path.Clean(m[1])+"/"] = true
	}
	return names, asked
}

// scriptsDiffer reports whether the change edits what a package.json runs, not its
// dependencies alone.
func (g *gauge) scriptsDiffer(ctx context.Context, name string, read func(string) ([]byte, bool)) (bool, error) {
	tree, err := g.head(ctx, g.o.Head)
	if err != nil {
		return false, err
	}
	defer tree.Close()
	scripts := func(data []byte) string {
		var of struct {
			Scripts               map[string]any
			Main, Module, Exports any // what requiring it runs
		}
		if json.Unmarshal(data, &of) != nil {
			return ""
		}
		out, err := json.Marshal(of) // in the order of their names
		if err != nil {
			return ""
		}
		return string(out)
	}
	was, _ := read(name)
	now, err := tree.Read(ctx, name)
	return err != nil || scripts(was) != scripts(now), ctx.Err()
}
