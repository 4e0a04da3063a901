package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/glob"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/measure"
	"forge/pipeline/quality"
	"forge/pipeline/testname"
	"forge/pipeline/workspace"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// read measures a gate in a tree. Why is why there is no value; an error is one of the
// workspace.
func (g *gauge) read(ctx context.Context, tree workTree, gate quality.Gate) (r measure.Reading, why string, err error) {
	if gate.Kind.Name == quality.SARIF && gate.Command != "" { // one that lies there from before says nothing
		if _, why, err = g.run(ctx, tree, gate, []string{"rm", "-f", "--", gate.Kind.Arg}); err != nil || why != "" {
			return r, why, err
		}
	}
	var out quality.Output
	if gate.Command != "" {
		command, err := inModule(ctx, tree, gate)
		if err != nil {
			return r, "", err
		}
		if gate.Use == quality.BinarySize {
			command = sizesOf(command)
		}
		if out, why, err = g.run(ctx, tree, gate, []string{"sh", "-c", command}); err != nil || why != "" {
			return r, why, err
		}
	}
	r, soft, err := g.value(ctx, tree, gate, out)
	if err != nil || soft != nil {
		if soft != nil {
			why = soft.Error()
		}
		return r, why, err
	}
	if gate.Breakdown != "" {
		parts, why, err := g.run(ctx, tree, gate, []string{"sh", "-c", gate.Breakdown})
		if err != nil {
			return r, "", err
		}
		if why == "" {
			r.Parts = quality.Breakdown(parts.Stdout)
		}
	}
	return r, "", nil
}

// inModule is a gate's command, run where the go.mod of its package lies, as tests are. Of a
// workspace that is the root.
func inModule(ctx context.Context, tree workTree, gate quality.Gate) (string, error) {
	has := func(name string) (bool, error) {
		_, err := tree.Read(ctx, name)
		if absent(err) {
			return false, nil
		}
		return err == nil, err
	}
	dir := strings.TrimSuffix(path.Clean(gate.Package), "...")
	if dir = path.Clean(dir); gate.Package == "" || dir == "." || strings.HasPrefix(dir, "..") || path.IsAbs(dir) {
		return gate.Command, nil
	}
	if work, err := has("go.work"); work || err != nil {
		return gate.Command, err
	}
	for module := dir; module != "."; module = path.Dir(module) {
		is, err := has(path.Join(module, "go.mod"))
		if err != nil {
			return "", err
		}
		if is {
			below := "./" + strings.TrimPrefix(strings.TrimPrefix(path.Clean(gate.Package), module), "/")
			return "cd " + module + " && " + strings.TrimSuffix(gate.Command, gate.Package) + below, nil
		}
	}
	return gate.Command, nil
}

// value reads what a command left; soft is why there is none.
func (g *gauge) value(ctx context.Context, tree workTree, gate quality.Gate, out quality.Output) (r measure.Reading, soft, err error) {
	switch {
	case gate.Use == quality.GoVet:
		root, err := g.root(ctx, tree)
		if err != nil {
			return r, nil, err
		}
		r, soft = quality.ReadVet(out, root)
	case gate.Use == quality.Axe:
		root, err := g.root(ctx, tree)
		if err != nil {
			return r, nil, err
		}
		r, soft = quality.ReadAxe(out, root)
	case gate.Use == quality.GoBench:
		r, soft = quality.ReadBench(out)
	case gate.Use == quality.BinarySize:
		r, soft = quality.ReadSizes(out)
		g.nameFiles(r.Parts)
	case gate.Kind.Name == quality.Size:
		if out.Exit != 0 {
			_, soft = quality.Kind{Name: quality.Number}.Read(out)
			return r, soft, nil
		}
		files, err := g.sizes(ctx, tree, gate)
		if err != nil {
			return r, nil, err
		}
		r, soft = quality.Sum(files)
	case gate.Kind.Name == quality.SARIF:
		return g.sarif(ctx, tree, gate, out)
	default:
		r, soft = gate.Read(out)
	}
	return r, soft, nil
}

// run runs a command of a gate.
func (g *gauge) run(ctx context.Context, tree workTree, gate quality.Gate, args []string) (out quality.Output, why string, err error) {
	limit := g.o.Timeout
	if limit <= 0 {
		limit = time.Duration(cmp.Or(gate.TimeoutMinutes, g.o.Tests.TimeoutMinutes, 10)) * time.Minute
	}
	res, err := tree.Run(ctx, workspace.Command{Args: args, Timeout: limit})
	if err != nil {
		return out, "", err
	}
	switch {
	case res.Class == "timeout":
		return out, fmt.Sprintf("the command did not end and was stopped after %s: give it more time (timeout_minutes of the gate)", limit), nil
	case res.Class != "":
		return out, fmt.Sprintf("the command was stopped: its limit of %s", res.Class), nil
	case res.Truncated:
		return out, "the command printed more than is read: print less", nil
	case res.Exit == 126 || res.Exit == 127:
		return out, fmt.Sprintf("the command cannot be run: %s", cmp.Or(tail(string(res.Stderr)), fmt.Sprintf("it ended with %d", res.Exit))), nil
	}
	return quality.Output{Exit: res.Exit, Stdout: res.Stdout, Stderr: res.Stderr}, "", nil
}

// root is the tree's folder as its commands see it.
func (g *gauge) root(ctx context.Context, tree workTree) (string, error) {
	res, err := tree.Run(ctx, workspace.Command{Args: []string{"pwd", "-P"}, Timeout: time.Minute})
	return strings.TrimSpace(string(res.Stdout)), err
}

var meta = lazyregexp.New(`[*?\[\\]`)

// sizes lists the files that a glob matches.
func (g *gauge) sizes(ctx context.Context, tree workTree, gate quality.Gate) (files []measure.Part, err error) {
	pattern := path.Clean(gate.Kind.Arg)
	from := "."
	if at := meta.FindStringIndex(pattern); at == nil {
		from = path.Dir(pattern)
	} else if slash := strings.LastIndexByte(pattern[:at[0]], '/'); slash > 0 {
		from = pattern[:slash]
	}
	res, err := tree.Run(ctx, workspace.Command{Args: []string{"find", "./" + from, "-name", ".git", "-prune", "-o", "-type", "f", "-printf", `%s %p\n`}, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(res.Stdout)) {
		size, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseFloat(size, 64)
		if name = path.Clean(name); err == nil && glob.Match(pattern, name) {
			files = append(files, measure.Part{Name: name, Value: n})
		}
	}
	return files, nil
}

func (g *gauge) sarif(ctx context.Context, tree workTree, gate quality.Gate, out quality.Output) (r measure.Reading, soft, err error) {
	data, err := tree.Read(ctx, gate.Kind.Arg)
	if err != nil {
		if ctx.Err() != nil {
			return r, nil, err
		}
		said := ""
		if out.Exit != 0 {
			said = fmt.Sprintf("; the command ended with %d: %s", out.Exit, tail(string(out.Stderr)))
		}
		return r, fmt.Errorf("the file %s cannot be read: it is not there, or too large%s", gate.Kind.Arg, said), nil
	}
	root, err := g.root(ctx, tree)
	if err != nil {
		return r, nil, err
	}
	r, soft = quality.ReadSARIF(data, root)
	if soft != nil {
		soft = fmt.Errorf("the file %s: %w", gate.Kind.Arg, soft)
	}
	return r, soft, nil
}

// sizesOf has a build into $d say how large each program is, and each of its packages. The
// random generator's 32 MiB are listed as data, and are only there while it runs.
func sizesOf(build string) string {
	return build + ` || exit 1; cd "$d" && for f in *; do [ -f "$f" ] || continue; wc -c <"$f" | sed "s|\$| $f|;s|^ *|S |"
go tool nm -size "./$f" 2>/dev/null | awk '$3 ~ /^[TtRrDd]$/ && $4 != "crypto/internal/fips140/drbg.memory" { n = $4; sub(/\[.*/, "", n); m = n; k = 0
while ((i = index(m, "/")) > 0) { k += i; m = substr(m, i + 1) }
j = index(m, "."); if (j > 0) n = substr(n, 1, k + j - 1); size[n] += $2 } END { for (n in size) print "P " size[n] " " n }'; done; cd / && rm -rf "$d"`
}

// nameFiles adds to the names of packages the files that the change touches in them.
func (g *gauge) nameFiles(parts []measure.Part) {
	for i := range parts {
		p := &parts[i]
		if strings.HasPrefix(p.Name, "go:") || strings.HasPrefix(p.Name, "type:") {
			continue
		}
		var names []string
		for _, name := range g.patch.changedNames() {
			dir := path.Dir(name)
			is := p.Name == dir || strings.HasSuffix(p.Name, "/"+dir) || p.Name == "main" && (dir == "." || strings.HasPrefix(dir, "cmd/"))
			if is && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 && len(names) <= 5 {
			p.Name += " (the change touches " + strings.Join(names, ", ") + ")"
		}
	}
}

// builtElsewhere is the name of a file of Go that is built for other systems alone.
var builtElsewhere = lazyregexp.New(`_(?:aix|android|darwin|dragonfly|freebsd|illumos|ios|` +
	`js|netbsd|openbsd|plan9|solaris|wasip1|windows)(?:_\w+)?\.go$`)

// noCode is the name of a file that no test runs.
var noCode = lazyregexp.New(`(?i)\.(?:md|markdown|mdx|rst|adoc|txt|json|jsonc|ya?ml|toml|ini|cfg|` +
	`conf|env|csv|tsv|xml|svg|png|jpe?g|gif|webp|ico|pdf|woff2?|lock|sum|mod|work|css|scss|less|html?|sql|diff|patch)$|(?:^|/)(?:[^/.]+|\.[^/]*)$`)

// coverage takes the value from what the tests left.
func (g *gauge) coverage(gate quality.Gate) measure.Result {
	c := g.report.Coverage
	if g.o.Tests.Coverage <= 0 {
		return gate.Unmeasured("tests.coverage is 0, so that the tests measure none: set it")
	}
	if c == nil || c.Lines < 0 {
		return gate.Unmeasured("the tests left no coverage that can be read: for Python, install coverage.py or pytest-cov; for others, have the test commands write LCOV or Cobertura")
	}
	if gate.Use == quality.CoverageChanged {
		if c.Changed >= 0 {
			m := gate.Judge(measure.One(c.Changed), nil, "")
			for _, name := range g.patch.changedNames() {
				if builtElsewhere.MatchString(name) {
					m.Note = "not in it: " + name + ", which is not built here"
				}
			}
			return m
		}
		for _, f := range g.patch.files {
			name := f.NewName
			adds := slices.ContainsFunc(f.TextFragments, func(t *gitdiff.TextFragment) bool { return t.LinesAdded > 0 })
			if !adds || noCode.MatchString(name) || testname.IsFile(name) {
				continue
			}
			if lang := languageOf(name); lang != &goLang && lang != &pyLang {
				return gate.Unmeasured("of what the change touches, such as " + name + ", the tests left no coverage")
			}
		}
		m := gate.Judge(measure.One(100), nil, "")
		m.Note = "no line that the change touches is one that can be covered"
		return m
	}
	var was *measure.Reading
	if b := g.o.Baseline; b != nil && b.Coverage != nil && b.Coverage.Lines >= 0 {
		r := measure.One(b.Coverage.Lines)
		was = &r
	}
	return gate.Judge(measure.One(c.Lines), was, "the tests left no coverage there")
}

// dependencies counts those that the base does not name.
func (g *gauge) dependencies(ctx context.Context, gate quality.Gate) (measure.Result, error) {
	names := func(open Opener, sha string) (map[string]string, error) {
		tree, err := open(ctx, sha)
		if err != nil {
			return nil, err
		}
		defer tree.Close()
		return namedDependencies(ctx, tree)
	}
	now, err := names(g.head, g.o.Head)
	if err != nil {
		return measure.Result{}, err
	}
	was, err := names(g.base, g.o.Base)
	if err != nil {
		return measure.Result{}, err
	}
	if now == nil {
		return gate.Unmeasured("there is neither a go.mod nor a package.json at the root that can be read"), nil
	}
	r := measure.Reading{Series: []measure.Series{{Samples: []float64{0}}}}
	for name, licence := range now {
		if _, known := was[name]; !known {
			file, name, _ := strings.Cut(name, " ")
			r.Series[0].Samples[0]++
			r.Places = append(r.Places, measure.Place{File: file, Message: name + " is new; its licence: " + cmp.Or(licence, "not known here")})
		}
	}
	quality.SortPlaces(r.Places)
	return gate.Judge(r, nil, ""), nil
}

var requireLine = lazyregexp.New(`(?m)^\s*(?:require\s+)?([\w.~-]+\.[\w.~-]+(?:/[\w.~/-]+)*)\s+v\S+`)

// namedDependencies lists what go.mod and package.json name, with the licence where the
// package lies there and names one.
func namedDependencies(ctx context.Context, tree workTree) (map[string]string, error) {
	var out map[string]string
	add := func(file, name, licence string) {
		if out == nil {
			out = map[string]string{}
		}
		if name != "" {
			out[file+" "+name] = licence
		}
	}
	data, err := tree.Read(ctx, "go.mod")
	if err == nil {
		add("go.mod", "", "")
		for _, m := range requireLine.FindAllSubmatch(data, -1) {
			add("go.mod", string(m[1]), "")
		}
	} else if !absent(err) {
		return nil, err
	}
	if data, err = tree.Read(ctx, "package.json"); err != nil {
		if !absent(err) {
			return nil, err
		}
		return out, nil
	}
	var pack struct{ Dependencies, DevDependencies, OptionalDependencies, PeerDependencies map[string]any }
	if json.Unmarshal(data, &pack) != nil {
		return nil, nil
	}
	add("package.json", "", "")
	for _, list := range []map[string]any{pack.Dependencies, pack.DevDependencies, pack.OptionalDependencies, pack.PeerDependencies} {
		for name := range list {
			var of struct{ License any }
			if data, err := tree.Read(ctx, path.Join("node_modules", name, "package.json")); err == nil {
				_ = json.NewDecoder(bytes.NewReader(data)).Decode(&of) // without it, the licence is not known
			}
			licence, _ := of.License.(string)
			add("package.json", name, licence)
		}
	}
	return out, ctx.Err()
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
