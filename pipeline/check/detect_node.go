package check

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/glob"
	"forge/pipeline/lazyregexp"
)

// nodePackage is the part that matters of a package.json.
type nodePackage struct {
	dir      string
	Manager  string            `json:"packageManager"`
	Scripts  map[string]string `json:"scripts"`
	Deps     map[string]any    `json:"dependencies"`
	DevDeps  map[string]any    `json:"devDependencies"`
	Jest     json.RawMessage   `json:"jest"`
	Packages json.RawMessage   `json:"workspaces"` // ["packages/*"], or {"packages": [...]}
	Main     any               `json:"main"`       // entries that other packages and tests import: paths, and tables of them
	Module   any               `json:"module"`
	Bin      any               `json:"bin"`
	Exports  any               `json:"exports"`
	build    string            // of a root: what makes outputs that are not in the repository
}

// eachWorkspace recognises a root script that does no more than start the test
// script of each package: they are started one by one instead, so that their
// results can be read.
var eachWorkspace = lazyregexp.New(`^(?:npm (?:run )?test (?:-ws|--workspaces)(?: --if-present)?|npm (?:-ws|--workspaces) (?:run )?test|pnpm (?:-r|--recursive|-r --if-present) (?:run )?test|yarn workspaces (?:foreach (?:-\S+ )*)?run test)$`)

// nodeSuites finds the packages whose test script is to be run: the outermost ones
// that have one, else the packages of their workspaces.
func (c *checker) nodeSuites(ctx context.Context, v *survey) ([]*suite, error) {
	dirs := v.with("package.json")
	packages := map[string]*nodePackage{}
	for _, dir := range dirs {
		data, err := c.open(ctx, dir, "package.json")
		if err != nil {
			return nil, err
		}
		p := &nodePackage{dir: dir}
		if data != nil {
			if err := json.Unmarshal(data, p); err != nil {
				c.log.Warn("skip a package.json", "dir", dir, "error", err)
				p = &nodePackage{dir: dir}
			}
		}
		packages[dir] = p
	}
	var out []*suite
	for len(dirs) > 0 {
		roots := topmost(dirs)
		dirs = slices.DeleteFunc(dirs, func(d string) bool { return slices.Contains(roots, d) || examples.MatchString(d) })
		for _, root := range roots {
			p := packages[root]
			members, err := c.workspaces(ctx, v, p)
			if err != nil {
				return nil, err
			}
			if p.build, err = c.nodeBuild(ctx, v, p, members, packages); err != nil {
				return nil, err
			}
			script := p.script()
			if script != "" && (len(members) == 0 || !eachWorkspace.MatchString(strings.TrimSpace(script))) {
				list, err := c.nodeChain(ctx, v, p, p)
				if err != nil {
					return nil, err
				}
				out = append(out, list...)
				dirs = slices.DeleteFunc(dirs, func(d string) bool { return below(d, root) })
				continue
			}
			for _, dir := range members {
				if m := packages[dir]; m != nil && m.script() != "" {
					list, err := c.nodeChain(ctx, v, m, p)
					if err != nil {
						return nil, err
					}
					out = append(out, list...)
				}
				dirs = slices.DeleteFunc(dirs, func(d string) bool { return d == dir })
			}
		}
	}
	return out, nil
}

// nodeBuild is the command that makes what the entries of a package, or of its workspaces, name
// and the repository ignores, such as dist/: tests import that. "": there is nothing of that kind.
func (c *checker) nodeBuild(ctx context.Context, v *survey, root *nodePackage, members []string, packages map[string]*nodePackage) (string, error) {
	wanted := false
	for _, dir := range append([]string{root.dir}, members...) {
		p := packages[dir]
		if p == nil || p.Scripts["build"] == "" && root.Scripts["build"] == "" {
			continue
		}
		ignores := ""
		for _, at := range []string{dir, root.dir, "."} {
			if text, err := c.ws.Read(ctx, path.Join(at, ".gitignore")); err == nil {
				ignores += "\n" + string(text)
			} else if ctx.Err() != nil {
				return "", ctx.Err()
			}
		}
		for _, entry := range entries([]any{p.Main, p.Module, p.Bin, p.Exports}) {
			top, _, _ := strings.Cut(path.Clean(entry), "/")
			for line := range strings.Lines(ignores) {
				line = strings.TrimPrefix(strings.Trim(strings.TrimSpace(line), "/*"), "**/")
				wanted = wanted || line != "" && line == top
			}
		}
	}
	tool := packageManager(v, root, root)
	switch {
	case !wanted || strings.Contains(root.script()+root.Scripts["pretest"], "build"):
		return "", nil
	case root.Scripts["build"] != "":
		return tool + " run build", nil
	case tool == "npm":
		return "npm run build --workspaces --if-present", nil
	case tool == "pnpm":
		return "pnpm -r --if-present run build", nil
	}
	return "", nil
}

// entries are all texts of a value of JSON.
func entries(v any) (out []string) {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, one := range v {
			out = append(out, entries(one)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, entries(v[key])...)
		}
	}
	return out
}

// built is a shell's words before a command of a package's tests: the build of its root, which
// says why it fails and stops nothing, since tests may do without.
func (p *nodePackage) built(root *nodePackage) string {
	if root.build == "" {
		return ""
	}
	up := "."
	if p.dir != root.dir {
		up = strings.Repeat("../", strings.Count(path.Clean(p.dir)+"/", "/")-strings.Count(strings.TrimPrefix(path.Clean(root.dir)+"/", "./"), "/"))
	}
	return `said=$(cd ` + up + ` && ` + root.build + ` 2>&1) || printf '%s failed:\n%s\n' '` + root.build + `' "$said" | tail -n 30 >&2; `
}

// script returns the package's test script; "" when it has none.
func (p *nodePackage) script() string {
	if s := p.Scripts["test"]; !strings.Contains(s, "no test specified") {
		return s
	}
	return ""
}

// workspaces returns the directories of the packages that a root package is made
// of.
func (c *checker) workspaces(ctx context.Context, v *survey, root *nodePackage) ([]string, error) {
	var globs []string
	if json.Unmarshal(root.Packages, &globs) != nil {
		var in struct{ Packages []string }
		if json.Unmarshal(root.Packages, &in) == nil {
			globs = in.Packages
		}
	}
	if v.has(root.dir, "pnpm-workspace.yaml") {
		data, err := c.open(ctx, root.dir, "pnpm-workspace.yaml")
		if err != nil {
			return nil, err
		}
		globs = append(globs, pnpmPackages(string(data))...)
	}
	var out []string
	for _, dir := range v.with("package.json") {
		rel := dir
		if root.dir != "." {
			rel = strings.TrimPrefix(dir, root.dir+"/")
		}
		if dir == root.dir || !below(dir, root.dir) {
			continue
		}
		member := false
		for _, g := range globs {
			if not, ok := strings.CutPrefix(g, "!"); ok {
				member = member && !glob.Match(path.Clean(not), rel)
			} else {
				member = member || glob.Match(path.Clean(g), rel)
			}
		}
		if member {
			out = append(out, dir)
		}
	}
	return out, nil
}

var yamlItem = lazyregexp.New(`^\s*-\s*["']?([^"'#]+?)["']?\s*(?:#.*)?$`)

// pnpmPackages reads the list "packages" of a pnpm-workspace.yaml.
func pnpmPackages(text string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := yamlItem.FindStringSubmatch(line); m != nil && inside {
			out = append(out, m[1])
		} else if strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			inside = strings.HasPrefix(line, "packages:")
		}
	}
	return out
}

// packageManager returns the tool that a package is tested with. Its own may not
// be there: npm runs the same script, unless the packages are only to be had
// through the manager.
func packageManager(v *survey, p, root *nodePackage) string {
	tool := "npm"
	for _, at := range []*nodePackage{root, p} {
		switch {
		case strings.HasPrefix(at.Manager, "pnpm@"), v.has(at.dir, "pnpm-lock.yaml"):
			tool = "pnpm"
		case strings.HasPrefix(at.Manager, "yarn@"), v.has(at.dir, "yarn.lock"):
			tool = "yarn"
		case strings.HasPrefix(at.Manager, "bun@"), v.has(at.dir, "bun.lock", "bun.lockb"):
			tool = "bun"
		}
	}
	if !v.tools[tool] && v.tools["npm"] && !v.has(root.dir, ".pnp.cjs") {
		return "npm"
	}
	return tool
}

var (
	nodeRunner   = lazyregexp.New(`(?:^|[\s/])(node|jest|vitest|mocha|ava)(?:\.[cm]?js)?(?:\s|$)`)
	reporterArgs = lazyregexp.New(`--test-reporter\S*`)
	runsScript   = lazyregexp.New(`(?:npm|pnpm|yarn|bun) run ([\w:.-]+)`)
)

var (
	// callOf is a link of a chain that runs a script by its name, with arguments for it.
	callOf = lazyregexp.New(`^(?:npm run(?: -s| --silent)?|pnpm(?: run)?|yarn(?: run)?|bun run) ([\w:.-]+)(?: --( .*)|((?: [^-\s]\S*)*))$`)
	// runAll runs several by their names, in which a star stands for what is between colons.
	runAll = lazyregexp.New(`^(?:run-s|run-p|npm-run-all2?(?: -[sp]| --(?:serial|parallel))?)((?: [\w:.*-]+)+)$`)
)

// runnerOf is the test runner that a command starts, "" for none that is known: another than node
// where node starts it.
func runnerOf(command string) (runner string) {
	for _, m := range nodeRunner.FindAllStringSubmatch(command, -1) {
		if runner == "" || m[1] != "node" {
			runner = m[1]
		}
	}
	return runner
}

// named are the scripts that a pattern of runAll names, sorted.
func (p *nodePackage) named(pattern string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Scripts)) {
		if glob.Match(strings.ReplaceAll(pattern, ":", "/"), strings.ReplaceAll(name, ":", "/")) {
			out = append(out, name)
		}
	}
	return out
}

// links are the commands of a script that is a chain of them, with those of the scripts that it
// runs by name in their place; nil where it is more than a chain.
func (p *nodePackage) links(script string, depth int) []string {
	if strings.ContainsAny(strings.ReplaceAll(script, "&&", ""), ";|&\n`$()") || depth == 0 {
		return nil
	}
	var out []string
	for link := range strings.SplitSeq(script, "&&") {
		link = strings.TrimSpace(link)
		if strings.Count(link, `"`)%2 != 0 || strings.Count(link, "'")%2 != 0 {
			return nil
		}
		if all := runAll.FindStringSubmatch(link); all != nil {
			for pattern := range strings.FieldsSeq(all[1]) {
				for _, name := range p.named(pattern) {
					inner := p.links("npm run "+name, depth-1)
					if inner == nil {
						return nil
					}
					out = append(out, inner...)
				}
			}
			continue
		}
		m := callOf.FindStringSubmatch(link)
		if m == nil || p.Scripts[m[1]] == "" || p.Scripts["pre"+m[1]] != "" || p.Scripts["post"+m[1]] != "" {
			out = append(out, link)
			continue
		}
		inner := p.links(p.Scripts[m[1]], depth-1)
		if inner == nil {
			inner = []string{link}
		} else {
			inner[len(inner)-1] += m[2] + m[3]
		}
		out = append(out, inner...)
	}
	return out
}

// nodeChain makes a suite of each link of a script, such as a linter's and a runner's, where
// one of them can be asked for its tests; else one of the script.
func (c *checker) nodeChain(ctx context.Context, v *survey, p, root *nodePackage) ([]*suite, error) {
	links := p.links(p.script(), 8)
	known := func(link string) bool { return runnerOf(link) != "" && runnerOf(link) != "node" }
	if len(links) < 2 || !slices.ContainsFunc(links, known) || p.Scripts["pretest"] != "" || p.Scripts["posttest"] != "" {
		s, err := c.nodeSuite(ctx, v, p, root)
		return []*suite{s}, err
	}
	bin := ""
	for at := "node_modules/.bin"; ; at = "../" + at {
		bin += "$PWD/" + at + ":"
		if strings.Count(at, "../") == strings.Count(path.Clean(p.dir)+"/", "/")-strings.Count(path.Clean(root.dir)+"/", "/") || len(bin) > 1000 {
			break
		}
	}
	var out []*suite
	for _, link := range links {
		s := newSuite(link, p.dir, formatAny, "sh", "-c", p.built(root)+`PATH="`+bin+`$PATH"; `+link+` "$@"`, "sh")
		s.env = []string{"CI=1", "NO_COLOR=1"}
		s.lacks = p.lacks(v)
		s.askNode(link, "sh")
		if err := c.measureNode(ctx, v, s, p, link, "sh"); err != nil {
			return nil, err
		}
		out = append(out, s.require(v, "node", packageManager(v, p, root)))
	}
	return out, nil
}

// nodeSuite asks for a report that can be read, where the script's runner is known.
func (c *checker) nodeSuite(ctx context.Context, v *survey, p, root *nodePackage) (*suite, error) {
	tool := packageManager(v, p, root)
	args := []string{tool, "test"}
	if tool == "bun" || tool == "pnpm" { // "bun test" is its own runner, and pnpm takes options of "pnpm test" for its own
		args = []string{tool, "run", "test"}
	}
	if build := p.built(root); build != "" {
		args = append([]string{"sh", "-c", build + `exec "$@"`, "sh"}, args...)
	}
	s := newSuite(tool+" test", p.dir, formatAny, tool, "test")
	s.args = args
	s.env = []string{"CI=1", "NO_COLOR=1"}
	s.lacks = p.lacks(v)
	s.askNode(p.script(), tool)
	left := maxInner
	if inner := p.inner(p.script(), 3, &left); s.format == formatAny && inner != p.script() && strings.Contains(inner, "node --test") {
		s.askNode("node --test "+strings.Join(reporterArgs.FindAllString(inner, -1), " "), tool)
	}
	if err := c.measureNode(ctx, v, s, p, p.script(), tool); err != nil {
		return nil, err
	}
	return s.require(v, "node", tool), nil
}

// jestConfigs are the files in which Jest looks for its configuration, the
// package.json aside.
var jestConfigs = []string{"jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json"}

// measureNode finds out how the package's coverage can be had.
func (c *checker) measureNode(ctx context.Context, v *survey, s *suite, p *nodePackage, script, tool string) error {
	config := string(p.Jest)
	for _, name := range jestConfigs {
		if v.has(p.dir, name) {
			data, err := c.open(ctx, p.dir, name)
			if err != nil {
				return err
			}
			config += string(data)
		}
	}
	deps := func(name string) bool { return p.Deps[name] != nil || p.DevDeps[name] != nil }
	s.measure = nodeMeasured(s, script, config, deps, func(args []string, more ...string) []string {
		if tool == "npm" && !slices.Contains(args, "--") {
			args = append(args, "--")
		}
		return append(args, more...)
	})
	return nil
}

// maxInner caps what scripts come to that run one another many times: a manifest must not be able
// to take all memory (S30).
const maxInner = 64 << 10

// inner is a script with those that it runs in their place, as long as something is left.
func (p *nodePackage) inner(script string, depth int, left *int) string {
	if *left -= len(script); depth == 0 || *left < 0 {
		return script
	}
	return runsScript.ReplaceAllStringFunc(script, func(call string) string {
		if *left < 0 {
			return call
		}
		return p.inner(p.Scripts[runsScript.FindStringSubmatch(call)[1]], depth-1, left)
	})
}

// askNode adds the arguments of the runner that the script ends with: they go to
// the last command of a chain.
func (s *suite) askNode(script, tool string) {
	last := script[strings.LastIndex(script, "&&")+1:]
	last = strings.TrimPrefix(last, "&")
	runner := runnerOf(last)
	open := !strings.ContainsAny(last, "|;&") && !strings.Contains(script, "||")
	extra := func(args ...string) {
		if tool == "npm" {
			s.args = append(s.args, "--")
		}
		s.args = append(s.args, args...)
	}
	switch {
	case runner == "":
	case runner == "node" && strings.Contains(script, "--test") && !strings.Contains(script, "--test-reporter"):
		s.format = formatTAP
		s.env = append(s.env, "NODE_OPTIONS=--test-reporter=tap")
	case runner == "node" && strings.Contains(script, "--test ") && strings.Count(script, "--test-reporter") == 1 && !strings.Contains(script, "--test-reporter-destination"):
		// Its own reporter goes on, elsewhere: which one a script has says nothing about its tests.
		s.format = formatTAP
		s.env = append(s.env, "NODE_OPTIONS=--test-reporter=tap --test-reporter-destination=stdout --test-reporter-destination=stderr")
	case !open:
	case runner == "jest":
		s.format = formatJest
		extra("--json")
		s.report = []string{"--outputFile={}"}
	case runner == "vitest":
		s.format = formatJest
		extra("--run", "--reporter=json")
		s.report = []string{"--outputFile={}"}
	case runner == "mocha": // of two reporters, it takes the last
		s.format = formatTAP
		extra("--reporter=tap")
	case runner == "ava" && !strings.Contains(last, "--tap"):
		s.format = formatTAP
		extra("--tap")
	}
}

// jsTools are programs of scripts that come with a package of another name.
const jsTools = `tsc|ng|c8|nyc|tsx|ts-node|turbo|lerna|nx|react-scripts|jest|vitest|mocha|ava|eslint|cross-env`

// lacks recognises packages that the package.json asks for and that are not
// installed.
func (p *nodePackage) lacks(v *survey) []lack {
	var names []string
	for _, deps := range []map[string]any{p.Deps, p.DevDeps} {
		for name := range deps {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	mend := "node_modules is not there: dependencies are not installed " + noNetwork
	for dir := p.dir; ; dir = path.Dir(dir) {
		if v.has(dir, "node_modules") {
			mend = "a package is missing in node_modules " + noNetwork + ": install the dependencies again"
		}
		if dir == "." {
			break
		}
	}
	asked := strings.Join(names, "|")
	return []lack{
		{lazyregexp.New(`Cannot find (?:module|package) '(?:` + asked + `)['/]`), mend},
		{lazyregexp.New(`(?m)(?:^|[\s:"'/])(?:` + asked + `|` + jsTools + `): (?:command )?not found`), mend},
	}
}
