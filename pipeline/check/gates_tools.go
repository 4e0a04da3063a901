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

// tools returns the files that the base has, that a gate is measured by and that the
// change edits: scripts that its commands run, and what these run; the Makefile and the
// scripts of package.json where they go through them; benchmarks; what from_base names.
func (g *gauge) tools(ctx context.Context, gate quality.Gate) ([]string, error) {
	edited := map[string]bool{}
	for _, f := range g.patch.files {
		if f.OldName != "" {
			edited[f.OldName] = true
		}
	}
	if len(edited) == 0 || g.o.Base == "" {
		return nil, nil
	}
	tree, err := g.base(ctx, g.o.Base)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	read := func(name string) ([]byte, bool) {
		data, err := tree.Read(ctx, name)
		return data, err == nil
	}
	found := follow(gate.Command+"\n"+gate.Breakdown, read)
	var out []string
	for name := range edited {
		is := found[name] || slices.ContainsFunc(gate.FromBase, func(pattern string) bool { return glob.Match(pattern, name) })
		if !is && gate.Use == quality.GoBench && strings.HasSuffix(name, "_test.go") {
			data, _ := read(name)
			is = bytes.Contains(data, []byte("func Benchmark"))
		}
		for dir := range found {
			is = is || strings.HasSuffix(dir, "/") && strings.HasPrefix(name, dir)
		}
		if is && path.Base(name) == "package.json" {
			is, err = g.scriptsDiffer(ctx, name, read)
			if err != nil {
				return nil, err
			}
		}
		if is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, ctx.Err()
}

// follow finds the files that a command runs, and those that these run; a folder whose
// program is run by go run ends in a slash.
func follow(command string, read func(string) ([]byte, bool)) map[string]bool {
	found := map[string]bool{}
	type said struct{ dir, text string }
	for queue := []said{{".", command}}; len(queue) > 0 && len(found) < 200; queue = queue[1:] {
		at := queue[0]
		var names []string
		for _, w := range pathWord.FindAllString(at.text, -1) {
			names = append(names, path.Clean(w), path.Join(at.dir, w))
		}
		if makeCommand.MatchString(at.text) {
			for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
				names = append(names, name, path.Join(at.dir, name))
			}
		}
		if packageCommand.MatchString(at.text) {
			names = append(names, "package.json", path.Join(at.dir, "package.json"))
		}
		for _, m := range goRun.FindAllStringSubmatch(at.text, -1) {
			found[path.Clean(m[1])+"/"] = true
		}
		for _, name := range names {
			if found[name] || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") {
				continue
			}
			data, ok := read(name)
			base := path.Base(name)
			runs := scriptName.MatchString(name) || makeNames.MatchString(base) || base == "package.json" || bytes.HasPrefix(data, []byte("#!"))
			if !ok || !runs {
				continue
			}
			found[name] = true
			if len(data) <= maxScript {
				queue = append(queue, said{path.Dir(name), string(data)})
			}
		}
	}
	return found
}

// scriptsDiffer reports whether the change edits the scripts of a package.json, not its
// dependencies alone.
func (g *gauge) scriptsDiffer(ctx context.Context, name string, read func(string) ([]byte, bool)) (bool, error) {
	tree, err := g.head(ctx, g.o.Head)
	if err != nil {
		return false, err
	}
	defer tree.Close()
	scripts := func(data []byte) string {
		var of struct{ Scripts map[string]any }
		if json.Unmarshal(data, &of) != nil {
			return ""
		}
		out, err := json.Marshal(of.Scripts) // in the order of their names
		if err != nil {
			return ""
		}
		return string(out)
	}
	was, _ := read(name)
	now, err := tree.Read(ctx, name)
	return err != nil || scripts(was) != scripts(now), ctx.Err()
}
