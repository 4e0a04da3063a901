package check

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// Tests of Go lean on packages that nothing else imports: of assertions, of doubles, of
// another's module that stands in vendor or is replaced by a directory. The base's tests
// are run with those of the base, wherever go.mod, go.work or vendor lead to since.

const (
	maxGoLines = 400_000 // of package clauses and imports
	maxMixed   = 20      // packages of the product that are taken apart; see godecl.go
)

var (
	goClause  = lazyregexp.New(`^package (\w+)`)
	goImport  = lazyregexp.New(`^(?:import\s+|\s+)(?:[\w.]+\s+)?"([^"\s]+)"`)
	goModule1 = lazyregexp.New(`(?m)^module\s+"?([^\s"]+)`)
	goReplace = lazyregexp.New(`(?m)^\s*(?:replace\s+)?"?([^\s"()]+)"?(?:\s+v\S+)?\s*=>\s*"?([^\s"]+)`)
	goUse     = lazyregexp.New(`(?m)^(?:use\s+\(?|\s+)"?(\.[^\s"()]*)"?\s*(?://.*)?$`)
	// failsTests are a helper's own words for what *testing.T does.
	failsTests = lazyregexp.New(`(?m)(?:^|[{;])\s*(?:Fatalf?|Errorf|FailNow|Helper)\(`)
)

// goDir is a directory of Go code.
type goDir struct {
	dir, path string
	main      bool
	files     []string // without tests
	uses      []string // import paths
	tests     []string // and of its tests
	tested    bool
}

// goTree is what imports what in a repository, at the base or at the head.
type goTree struct {
	read      func(name string) []byte
	packages  map[string]*goDir // by directory
	modules   []goModule
	homes     map[string][]string // of modules that go.mod or go.work lead to a directory, by path
	strange   map[string]string   // of those that they lead to another module: the file that does
	testFiles map[string][]string // by directory
}

const goScript = `grep -rHE --include='*.go' --exclude-dir=.git --exclude-dir=node_modules -e '^package [[:alpha:]_]' -e '^(import[[:space:]]+|[[:space:]]+)([[:alnum:]_.]+[[:space:]]+)?"[^"[:space:]]+"' . | head -n "$1"
echo //
find . \( -name .git -o -name node_modules \) -prune -o -type f \( -name go.mod -o -name go.work \) -print | head -n 500`

// goTrees reads both sides of the change.
func (v *verdict) goTrees(ctx context.Context, tree Tree, b *baseView) (base, head *goTree, err error) {
	res, err := tree.Run(ctx, workspace.Command{Args: []string{"sh", "-c", goScript, "sh", fmt.Sprint(maxGoLines)}, Timeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	lines, manifests := map[string][]string{}, []string{}
	rest := false
	for line := range strings.Lines(string(res.Stdout)) {
		line = strings.TrimSuffix(line, "\n")
		name, text, _ := strings.Cut(line, ":")
		switch {
		case line == "//":
			rest = true
		case rest:
			manifests = append(manifests, path.Clean(line))
		default:
			name = path.Clean(name)
			lines[name] = append(lines[name], text)
		}
	}
	head = &goTree{read: func(name string) []byte { data, _ := b.read(name); return data }}
	head.fill(lines, manifests)
	for _, f := range v.head.patch.files { // back to what it was
		for _, name := range []string{f.NewName, f.OldName} {
			delete(lines, name)
			manifests = slices.DeleteFunc(manifests, func(m string) bool { return m == name })
		}
	}
	for _, f := range v.head.patch.files {
		switch name := f.OldName; {
		case name == "" || f.IsNew || f.IsCopy:
		case path.Ext(name) == ".go":
			lines[name] = strings.Split(string(b.text(name)), "\n")
		case path.Base(name) == "go.mod" || path.Base(name) == "go.work":
			manifests = append(manifests, name)
		}
	}
	base = &goTree{read: b.text}
	base.fill(lines, manifests)
	return base, head, nil
}

func (g *goTree) fill(lines map[string][]string, manifests []string) {
	g.packages, g.homes, g.strange = map[string]*goDir{}, map[string][]string{}, map[string]string{}
	g.testFiles = map[string][]string{}
	path1 := map[string]string{}
	for _, name := range manifests {
		if m := goModule1.FindSubmatch(g.read(name)); m != nil && path.Base(name) == "go.mod" {
			path1[path.Dir(name)] = string(m[1])
			g.modules = append(g.modules, goModule{path: string(m[1]), dir: strings.TrimPrefix(path.Dir(name), ".")})
		}
	}
	for _, name := range manifests {
		text := g.read(name)
		for _, m := range goReplace.FindAllSubmatch(text, -1) {
			if to := string(m[2]); strings.HasPrefix(to, ".") {
				g.homes[string(m[1])] = append(g.homes[string(m[1])], path.Join(path.Dir(name), to))
			} else if to != string(m[1]) { // and not to another version of itself
				g.strange[string(m[1])] = name
			}
		}
		if path.Base(name) == "go.work" {
			for _, m := range goUse.FindAllSubmatch(text, -1) {
				dir := path.Join(path.Dir(name), string(m[1]))
				g.homes[path1[dir]] = append(g.homes[path1[dir]], dir)
			}
		}
	}
	delete(g.homes, "")
	for name, list := range lines {
		dir := path.Dir(name)
		p := g.packages[dir]
		if p == nil {
			p = &goDir{dir: dir, path: (&checker{modules: g.modules}).packageOf(dir)}
			if _, outside, ok := strings.Cut("/"+dir, "/vendor/"); ok {
				p.path = outside
			}
			g.packages[dir] = p
		}
		test := strings.HasSuffix(name, "_test.go")
		if p.tested = p.tested || test; test {
			g.testFiles[dir] = append(g.testFiles[dir], name)
		} else {
			p.files = append(p.files, name)
		}
		for _, line := range list {
			if m := goClause.FindStringSubmatch(line); m != nil {
				p.main = p.main || m[1] == "main" && !test
			} else if m := goImport.FindStringSubmatch(line); m != nil && test {
				p.tests = append(p.tests, m[1])
			} else if m != nil {
				p.uses = append(p.uses, m[1])
			}
		}
	}
	for _, p := range g.packages {
		slices.Sort(p.files)
	}
}

// dirs are the directories in which an import path is found.
func (g *goTree) dirs(pkg string) []string {
	var out []string
	for module, homes := range g.homes {
		if rest, ok := strings.CutPrefix(pkg+"/", module+"/"); ok {
			for _, home := range homes {
				out = append(out, path.Join(home, rest))
			}
		}
	}
	for dir, p := range g.packages {
		if p.path == pkg && (strings.Contains("/"+dir, "/vendor/") || len(out) == 0) {
			out = append(out, dir)
		}
	}
	out = slices.DeleteFunc(out, func(dir string) bool { return g.packages[dir] == nil })
	slices.Sort(out)
	return slices.Compact(out)
}

// guest reports whether a package came from elsewhere: in vendor, or by a replace.
func (g *goTree) guest(p *goDir) bool {
	if strings.Contains("/"+p.dir, "/vendor/") {
		return true
	}
	for module, homes := range g.homes {
		replaced := p.path == module || strings.HasPrefix(p.path, module+"/")
		if replaced && slices.ContainsFunc(homes, func(h string) bool { return h != "." && (p.dir == h || strings.HasPrefix(p.dir, h+"/")) }) && !g.tested(homes) {
			return true
		}
	}
	return false
}

// tested reports whether there are tests in or beneath some directories.
func (g *goTree) tested(dirs []string) bool {
	for _, p := range g.packages {
		if p.tested && slices.ContainsFunc(dirs, func(d string) bool { return d == "." || p.dir == d || strings.HasPrefix(p.dir, d+"/") }) {
			return true
		}
	}
	return false
}

// lends reports whether a package looks as if it were there for tests.
func (g *goTree) lends(p *goDir) bool {
	if goDirs.MatchString(p.dir+"/") || supportNames.MatchString(p.dir+"/") {
		return true
	}
	return slices.ContainsFunc(p.files, func(name string) bool {
		text := g.read(name)
		return frameworks[".go"].Match(text) || failsTests.Match(text)
	})
}

// forTests returns the import paths that tests alone lead to, and of those the ones
// that may be the product all the same: nothing but tests names a library's own
// packages either.
func (g *goTree) forTests() (sure, unsure map[string]bool) {
	byTests, byCode := map[string]bool{}, map[string]bool{}
	for _, p := range g.packages {
		if strings.Contains("/"+p.dir, "/vendor/") {
			p.tests = nil
		}
		for _, use := range p.tests {
			byTests[use] = byTests[use] || use != p.path
		}
		for _, use := range p.uses {
			byCode[use] = true
		}
	}
	sure, unsure = map[string]bool{}, map[string]bool{}
	product := map[string]bool{}
	var todo []string
	for _, p := range g.packages {
		internal := strings.Contains("/"+p.path+"/", "/internal/")
		switch {
		case p.main || !byTests[p.path] && !byCode[p.path] && !g.guest(p):
		case internal || g.guest(p) || byTests[p.path] && g.lends(p):
			continue
		case byTests[p.path] && !byCode[p.path] && !p.tested && len(p.files) > 0:
			unsure[p.path] = true
		}
		todo = append(todo, p.path)
	}
	reach := func(todo []string, into map[string]bool) {
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if into[at] || product[at] {
				continue
			}
			into[at] = true
			for _, dir := range g.dirs(at) {
				todo = append(todo, g.packages[dir].uses...)
			}
		}
	}
	reach(todo, product)
	for use := range byTests {
		if byTests[use] {
			reach([]string{use}, sure)
		}
	}
	for use := range sure {
		dirs := g.dirs(use)
		first, _, _ := strings.Cut(use, "/")
		switch {
		case len(dirs) == 0 && !strings.Contains(first, "."):
			delete(sure, use) // of the standard library
		case slices.ContainsFunc(dirs, func(d string) bool {
			return g.guest(g.packages[d]) && !strings.Contains("/"+d, "/vendor/") && !g.lends(g.packages[d]) && !strings.Contains("/"+use+"/", "/internal/")
		}):
			delete(sure, use)
			unsure[use] = true
		}
	}
	return sure, unsure
}

// goSupports adds to the helpers what the base's tests of Go lean on.
func (v *verdict) goSupports(ctx context.Context, tree Tree, b *baseView) error {
	if !slices.ContainsFunc(v.head.patch.changedNames(), func(name string) bool {
		base := path.Base(name)
		return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") || base == "go.mod" || base == "go.work"
	}) {
		return nil
	}
	base, head, err := v.goTrees(ctx, tree, b)
	if err != nil {
		return err
	}
	sure, unsure := base.forTests()
	for _, pkg := range slices.Sorted(maps.Keys(sure)) {
		v.helpers = v.addGo(v.helpers, base, head, pkg)
	}
	for _, pkg := range slices.Sorted(maps.Keys(unsure)) {
		alone := v.addGo(nil, base, head, pkg)
		goes := slices.ContainsFunc(base.dirs(pkg), func(dir string) bool { // with what it uses, and does not run without
			return slices.ContainsFunc(base.packages[dir].uses, func(use string) bool {
				return slices.ContainsFunc(base.dirs(use), v.head.patch.touches)
			})
		})
		if len(alone) > 0 && !goes && len(v.alone) < maxAlone {
			v.alone = append(v.alone, alone)
		}
	}
	n := 0
	for _, dir := range slices.Sorted(maps.Keys(base.packages)) {
		p := base.packages[dir]
		if sure[p.path] || base.guest(p) || !v.head.patch.touches(dir) || n == maxMixed {
			continue
		}
		n++
		for _, e := range v.goDecls(p, base, head) {
			if !slices.ContainsFunc(v.helpers, func(o edit) bool { return o.name == e.name }) {
				v.helpers = append(v.helpers, e)
			}
		}
	}
	return nil
}

// addGo adds what makes a package that tests lean on be what it was: its files, and
// these in the places where it is found since.
func (v *verdict) addGo(list []edit, base, head *goTree, pkg string) []edit {
	add := func(e edit) {
		if !slices.ContainsFunc(list, func(o edit) bool { return o.name == e.name }) && !slices.ContainsFunc(v.edits, func(o edit) bool { return o.name == e.name }) {
			list = append(list, e)
		}
	}
	was := base.dirs(pkg)
	for _, dir := range was {
		for _, f := range v.head.patch.files {
			if f.OldName != "" && !f.IsNew && !f.IsCopy && path.Dir(f.OldName) == dir && !strings.HasSuffix(f.OldName, "_test.go") {
				add(edit{name: f.OldName, role: testSource, before: base.read(f.OldName)})
			}
			if f.NewName != "" && (f.IsNew || f.IsRename || f.IsCopy) && path.Dir(f.NewName) == dir && path.Ext(f.NewName) == ".go" && !strings.HasSuffix(f.NewName, "_test.go") {
				add(edit{name: f.NewName, role: testSource, added: true})
			}
		}
	}
	is := head.dirs(pkg)
	if len(was) == 0 {
		v.elsewhereNow(base, head, pkg)
		return list
	}
	for _, dir := range is {
		if slices.Contains(was, dir) {
			continue
		}
		old := base.packages[was[0]]
		for _, name := range head.packages[dir].files { // what is there, except its name
			clause := goPackageLine.Find(head.read(name))
			add(edit{name: path.Join(dir, path.Base(name)), role: testSource, added: !v.wasThere(name), before: clause, merged: append(clause, '\n')})
		}
		for _, name := range old.files {
			at := path.Join(dir, path.Base(name))
			text := base.read(name)
			if i := slices.IndexFunc(list, func(e edit) bool { return e.name == at }); i >= 0 {
				list[i].before, list[i].merged = text, text
			} else {
				add(edit{name: at, role: testSource, added: true, before: text, merged: text})
			}
		}
	}
	return list
}

// wasThere reports whether a file of the head was at the base, too.
func (v *verdict) wasThere(name string) bool {
	f := v.head.patch.file(name)
	return f == nil || !f.IsNew && !f.IsRename && !f.IsCopy
}

// elsewhereNow tells a module of another's that tests alone import, and that go.mod or
// go.work lead elsewhere since the change: what it was is not in the repository.
func (v *verdict) elsewhereNow(base, head *goTree, pkg string) {
	say := func(module, to string) {
		if module != pkg && !strings.HasPrefix(pkg, module+"/") || slices.ContainsFunc(v.found, func(f pipeline.Finding) bool { return f.Code == module }) {
			return
		}
		file := "go.mod"
		if to == "" {
			file = head.strange[module]
			to = "another module"
		}
		v.found = append(v.found, pipeline.Finding{Rule: ruleForges, File: file, Line: 1, Code: module,
			Message: fmt.Sprintf("Tests alone import %s, and this change leads it to %s: they would be judged by another copy than before. Take it out, or let a human decide that it stays", module, to)})
	}
	for module, homes := range head.homes {
		if !slices.Equal(homes, base.homes[module]) && len(base.homes[module]) == 0 {
			say(module, homes[0])
		}
	}
	for module := range head.strange {
		if base.strange[module] == "" {
			say(module, "")
		}
	}
}

// changedNames lists the files of a patch by both their names.
func (p *patch) changedNames() []string {
	var out []string
	for _, f := range p.files {
		out = append(out, f.OldName, f.NewName)
	}
	return out
}

// touches reports whether a patch changes Go code of a directory that is no test.
func (p *patch) touches(dir string) bool {
	return slices.ContainsFunc(p.changedNames(), func(name string) bool {
		return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && path.Dir(name) == dir
	})
}
