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

// tools returns what a gate is measured by and the change edits, files of the base: scripts
// that its commands name; the Makefile and the scripts of package.json where they go through them;
// benchmarks; what from_base names, new ones among them.
func (g *gauge) tools(ctx context.Context, gate quality.Gate) (list []string, err error) {
	names := slices.DeleteFunc(g.patch.changedNames(), func(name string) bool { return name == "" })
	if len(names) == 0 || g.o.Base == "" {
		return nil, nil
	}
	tree, err := g.base(ctx, g.o.Base)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	named := namedBy(gate.Command + "\n" + gate.Breakdown)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		data, err := tree.Read(ctx, name)
		is := err == nil && (named(name, data) || gate.Use == quality.GoBench && strings.HasSuffix(name, "_test.go") && bytes.Contains(data, []byte("func Benchmark")))
		if is && path.Base(name) == "package.json" {
			if is, err = g.scriptsDiffer(ctx, name, data); err != nil {
				return nil, err
			}
		}
		if is || slices.ContainsFunc(gate.FromBase, func(pattern string) bool { return glob.Match(pattern, name) }) {
			list = append(list, name)
		}
	}
	return list, ctx.Err()
}

// namedBy tells the scripts that a command names: by their path, or by their name and their
// folder, as in "cd tools && sh size.sh".
func namedBy(command string) func(file string, data []byte) bool {
	words := map[string]bool{".": true}
	for _, w := range shellWords(command) {
		words[path.Clean(w)] = true
	}
	makes, packages := makeCommand.MatchString(command), packageCommand.MatchString(command)
	var programs []string
	for _, m := range goRun.FindAllStringSubmatch(command, -1) {
		programs = append(programs, path.Clean(m[1])+"/")
	}
	return func(file string, data []byte) bool {
		base, here := path.Base(file), words[path.Dir(file)]
		switch {
		case here && (makes && makeNames.MatchString(base) || packages && base == "package.json"):
			return true
		case scriptName.MatchString(base) || bytes.HasPrefix(data, []byte("#!")):
			if words[file] || here && words[base] {
				return true
			}
		}
		return slices.ContainsFunc(programs, func(dir string) bool { return strings.HasPrefix(file, dir) })
	}
}

// scriptsDiffer reports whether the change edits what a package.json runs, not its
// dependencies alone.
func (g *gauge) scriptsDiffer(ctx context.Context, name string, was []byte) (bool, error) {
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
	now, err := tree.Read(ctx, name)
	return err != nil || scripts(was) != scripts(now), ctx.Err()
}
