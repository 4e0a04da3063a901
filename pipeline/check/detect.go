package check

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

const (
	howToName    = "Name the commands that test this repository in .github/forge.yml, for example:\n\ntests:\n  commands:\n    - make check\n"
	nothingFound = "No tests were found. Forge looked, in the root and one level down, for go.mod or go.work, a package.json with a test script, " +
		"pyproject.toml, setup.cfg, setup.py, pytest.ini, tox.ini or Python tests, Cargo.toml, and a Makefile with a test target. " + howToName
)

// place is a directory that is looked at, with its entries.
type place struct {
	dir   string
	files []string
}

func (p place) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(p.files, n) })
}

func (p place) path(name string) string { return path.Join(p.dir, name) }

// detect finds the suites: those that the configuration names, else what the
// repository's files tell.
func (c *checker) detect(ctx context.Context) ([]*suite, error) {
	places, err := c.places(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.findModules(ctx, places); err != nil {
		return nil, err
	}
	if len(c.o.Config.Commands) > 0 {
		var out []*suite
		for _, command := range c.o.Config.Commands {
			if command = strings.TrimSpace(command); command != "" {
				out = append(out, c.named(command))
			}
		}
		return out, nil
	}
	var out []*suite
	for _, find := range []func(context.Context, []place) ([]*suite, error){c.goSuites, c.nodeSuites, c.pythonSuites, c.cargoSuites} {
		found, err := find(ctx, places)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) > 0 {
		return out, nil
	}
	return c.makeSuite(ctx, places[0])
}

// places lists the root and the directories in it. The root comes first.
func (c *checker) places(ctx context.Context) ([]place, error) {
	entries, err := c.ws.List(ctx, ".")
	if err != nil {
		return nil, err
	}
	out := []place{{dir: ".", files: entries}}
	for _, e := range entries {
		dir, ok := strings.CutSuffix(e, "/")
		if !ok || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") ||
			slices.Contains([]string{"node_modules", "vendor", "testdata", "target", "dist", "build"}, dir) || len(out) > 200 {
			continue
		}
		files, err := c.ws.List(ctx, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, place{dir: dir, files: files})
	}
	return out, nil
}

var (
	goModuleLine = regexp.MustCompile(`(?m)^\s*module\s+"?([^\s"]+)`)
	goUseBlock   = regexp.MustCompile(`(?ms)^\s*use\s*\((.*?)\)`)
	goUseLine    = regexp.MustCompile(`(?m)^\s*use\s+"?([^\s"(]+)`)
	goComment    = regexp.MustCompile(`//.*`)
)

// findModules reads the go.mod files: those that go.work names, else those in the
// root and one level down.
func (c *checker) findModules(ctx context.Context, places []place) error {
	var dirs []string
	for _, p := range places {
		if p.has("go.mod") {
			dirs = append(dirs, p.dir)
		}
	}
	if places[0].has("go.work") {
		data, err := c.ws.Read(ctx, "go.work")
		if err != nil {
			return err
		}
		if used := goWork(string(data)); len(used) > 0 {
			dirs = used
		}
	}
	for _, dir := range dirs {
		data, err := c.ws.Read(ctx, path.Join(dir, "go.mod"))
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.log.Warn("skip a Go module", "dir", dir, "error", err)
			continue
		}
		if m := goModuleLine.FindSubmatch(data); m != nil {
			c.modules = append(c.modules, goModule{path: string(m[1]), dir: strings.TrimPrefix(dir, ".")})
		}
	}
	return nil
}

// goWork returns the directories that a go.work uses, those outside the
// repository left out.
func goWork(text string) []string {
	text = goComment.ReplaceAllString(text, "")
	var out []string
	add := func(dir string) {
		if dir = path.Clean(strings.Trim(dir, `"`)); !path.IsAbs(dir) && dir != ".." && !strings.HasPrefix(dir, "../") {
			out = append(out, dir)
		}
	}
	for _, m := range goUseBlock.FindAllStringSubmatch(text, -1) {
		for _, dir := range strings.Fields(m[1]) {
			add(dir)
		}
	}
	for _, m := range goUseLine.FindAllStringSubmatch(text, -1) {
		add(m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func newSuite(name, dir string, f format, args ...string) *suite {
	command := strings.Join(args, " ")
	if dir != "." {
		name += " in " + dir
		command = "cd " + dir + " && " + command
	}
	return &suite{dir: dir, args: args, format: f, done: pipeline.Suite{Name: name, Command: command}}
}

func (c *checker) goSuites(context.Context, []place) ([]*suite, error) {
	var out []*suite
	for _, m := range c.modules {
		s := newSuite("go test", path.Join(".", m.dir), formatGo, "go", "test", "./...")
		s.alone = true
		s.args = withGoFlags(s.args, "-json", "-count=1", "-timeout="+c.goTimeout())
		out = append(out, s)
	}
	return out, nil
}

// goTimeout is a little less than the command's, so that the hanging test is
// named by the one that knows it.
func (c *checker) goTimeout() string {
	t := c.timeout()
	return (t - max(t/20, 5*time.Second)).String()
}

// withGoFlags puts flags right after "go test".
func withGoFlags(args []string, flags ...string) []string {
	return slices.Concat(args[:2:2], flags, args[2:])
}

func hasFlag(args []string, prefix string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, prefix) || strings.HasPrefix(a, "-"+prefix)
	})
}

// nearest keeps the root alone where it qualifies, else the directories in it.
func nearest(places []place, ok func(place) bool) []place {
	if ok(places[0]) {
		return places[:1]
	}
	var out []place
	for _, p := range places[1:] {
		if ok(p) {
			out = append(out, p)
		}
	}
	return out
}

func (c *checker) nodeSuites(ctx context.Context, places []place) ([]*suite, error) {
	var out []*suite
	for _, p := range nearest(places, func(p place) bool { return p.has("package.json") }) {
		data, err := c.ws.Read(ctx, p.path("package.json"))
		if err != nil {
			return nil, err
		}
		var pkg struct {
			PackageManager string            `json:"packageManager"`
			Scripts        map[string]string `json:"scripts"`
		}
		if err := json.Unmarshal(data, &pkg); err != nil {
			c.log.Warn("skip a package.json", "dir", p.dir, "error", err)
			continue
		}
		script := pkg.Scripts["test"]
		if script == "" || strings.Contains(script, "no test specified") {
			continue
		}
		out = append(out, nodeSuite(p, pkg.PackageManager, script))
	}
	return out, nil
}

// nodeSuite asks for a report that can be read, where the script's runner is known.
func nodeSuite(p place, manager, script string) *suite {
	tool := "npm"
	if strings.HasPrefix(manager, "pnpm@") || p.has("pnpm-lock.yaml") {
		tool = "pnpm"
	} else if strings.HasPrefix(manager, "yarn@") || p.has("yarn.lock") {
		tool = "yarn"
	}
	s := newSuite(tool+" test", p.dir, formatAny, tool, "test")
	s.env = []string{"CI=1", "NO_COLOR=1"}
	extra := func(args ...string) {
		if tool == "npm" {
			s.args = append(s.args, "--")
		}
		s.args = append(s.args, args...)
	}
	runner := regexp.MustCompile(`(?:^|[\s/])(node|jest|vitest|mocha)(?:\s|$)`).FindStringSubmatch(script)
	chained := strings.ContainsAny(script, "|;&") // arguments would go to the last command
	switch {
	case runner == nil:
	case runner[1] == "node" && strings.Contains(script, "--test") && !strings.Contains(script, "--test-reporter"):
		s.format = formatTAP
		s.env = append(s.env, "NODE_OPTIONS=--test-reporter=tap")
	case runner[1] == "jest" && !chained:
		s.format = formatJest
		extra("--json")
	case runner[1] == "vitest" && !chained:
		s.format = formatJest
		extra("--run", "--reporter=json")
	case runner[1] == "mocha" && !chained && !strings.Contains(script, "--reporter"):
		s.format = formatTAP
		extra("--reporter=tap")
	}
	return s
}

func (c *checker) pythonSuites(ctx context.Context, places []place) ([]*suite, error) {
	isTest := func(name string) bool {
		return strings.HasSuffix(name, ".py") && (strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test.py"))
	}
	own := func(p place) bool {
		return p.has("pytest.ini", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini") || slices.ContainsFunc(p.files, isTest)
	}
	found := nearest(places, own)
	if len(found) == 1 && (found[0].dir == "tests" || found[0].dir == "test") {
		found = places[:1] // its tests import what lies beside it
	}
	var out []*suite
	for _, p := range found {
		res, err := c.ws.Run(ctx, pipeline.Command{Args: []string{"python3", "-c", "import pytest"}, Dir: p.dir, Timeout: time.Minute})
		if err != nil {
			return nil, err
		}
		if res.Exit == 0 {
			s := newSuite("pytest", p.dir, formatJUnit, "python3", "-m", "pytest", "-p", "no:cacheprovider")
			s.pytest, s.alone = true, true
			out = append(out, s)
			continue
		}
		s := newSuite("unittest", p.dir, formatUnittest, "python3", "-m", "unittest", "discover", "-v")
		s.alone = true
		out = append(out, s)
	}
	for _, s := range out {
		s.env = []string{"PYTHONDONTWRITEBYTECODE=1"}
	}
	return out, nil
}

func (c *checker) cargoSuites(_ context.Context, places []place) ([]*suite, error) {
	var out []*suite
	for _, p := range nearest(places, func(p place) bool { return p.has("Cargo.toml") }) {
		s := newSuite("cargo test", p.dir, formatCargo, "cargo", "test", "--no-fail-fast")
		s.alone = true
		s.env = []string{"CARGO_TERM_COLOR=never", "RUST_BACKTRACE=0"}
		out = append(out, s)
	}
	return out, nil
}

var makeTarget = regexp.MustCompile(`(?m)^(test|check)\s*:(?:[^=]|$)`)

func (c *checker) makeSuite(ctx context.Context, root place) ([]*suite, error) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if !root.has(name) {
			continue
		}
		data, err := c.ws.Read(ctx, name)
		if err != nil {
			return nil, err
		}
		if m := makeTarget.FindSubmatch(data); m != nil {
			return []*suite{newSuite("make "+string(m[1]), ".", formatAny, "make", string(m[1]))}, nil
		}
	}
	return nil, nil
}

// named makes a suite of a command line from the configuration. Where the command
// is one of a known tool, and simple enough to be sure, it is asked for a report.
func (c *checker) named(command string) *suite {
	s := &suite{dir: ".", args: []string{"sh", "-c", command}, done: pipeline.Suite{Name: command, Command: command}}
	if strings.ContainsAny(command, "$`\"'|&;<>()*?[]{}~#\\\n=!") && !strings.HasPrefix(command, "go test ") || strings.ContainsAny(command, "$`\"'|&;<>()\\\n") {
		return s
	}
	f := strings.Fields(command)
	is := func(words ...string) bool { return len(f) >= len(words) && slices.Equal(f[:len(words)], words) }
	switch {
	case is("go", "test"):
		s.args, s.format, s.alone = f, formatGo, true
		for _, flag := range []string{"-json", "-count=1", "-timeout=" + c.goTimeout()} {
			if name, _, _ := strings.Cut(flag, "="); !hasFlag(f, name) {
				s.args = withGoFlags(s.args, flag)
			}
		}
		for _, a := range f {
			if file, ok := strings.CutPrefix(strings.TrimPrefix(a, "-"), "-coverprofile="); ok {
				s.cover = path.Clean(file)
			}
		}
	case is("pytest"), is("python3", "-m", "pytest"), is("python", "-m", "pytest"):
		s.args, s.format, s.pytest, s.alone = f, formatJUnit, true, true
	case is("cargo", "test") && !slices.Contains(f, "--"):
		s.args, s.format, s.alone = f, formatCargo, true
	case is("node", "--test") && !hasFlag(f, "--test-reporter"):
		s.args, s.format = slices.Concat(f[:2], []string{"--test-reporter=tap"}, f[2:]), formatTAP
	case is("npm", "test") && len(f) == 2, is("make") && len(f) == 2:
		s.args = f
	}
	return s
}
