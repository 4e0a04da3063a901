package check

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

const (
	howToName    = "Name the commands that test this repository in .github/forge.yml, for example:\n\ntests:\n  commands:\n    - make check\n"
	nothingFound = "No tests were found. Forge looked, at any depth, for go.mod, a package.json with a test script, Python tests, Cargo.toml, pom.xml, " +
		"build.gradle, .NET projects, Ruby and PHP tests, and in the root for a CMakeLists.txt with tests, or for a Makefile or justfile with a test target. " + howToName
)

// detect finds the suites: those that the configuration names, else what the
// repository's files tell.
func (c *checker) detect(ctx context.Context) ([]*suite, error) {
	v, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.findModules(ctx, v); err != nil {
		return nil, err
	}
	if len(c.o.Config.Commands) > 0 {
		var out []*suite
		for _, command := range c.o.Config.Commands {
			if command = strings.TrimSpace(command); command != "" {
				s := c.named(command)
				if s.pytest {
					has, err := c.pythonModules(ctx, v, s.dir)
					if err != nil {
						return nil, err
					}
					s.measure = pytestMeasured(command, has)
				}
				out = append(out, s)
			}
		}
		return out, nil
	}
	var out []*suite
	for _, find := range []func(context.Context, *survey) ([]*suite, error){
		c.goSuites, c.nodeSuites, c.pythonSuites, c.cargoSuites, c.jvmSuites, c.dotnetSuites, c.rubySuites, c.phpSuites,
	} {
		found, err := find(ctx, v)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) > 0 {
		return out, nil
	}
	if out, err = c.ctestSuite(ctx, v); err != nil || len(out) > 0 {
		return out, err
	}
	return c.makeSuite(ctx, v)
}

// byteOrderMark begins some files of JSON. Node and npm pass over it.
var byteOrderMark = []byte("\ufeff")

// open reads a file that detection looks into. One that cannot be read says
// nothing.
func (c *checker) open(ctx context.Context, dir, name string) ([]byte, error) {
	data, err := c.ws.Read(ctx, path.Join(dir, name))
	if err == nil {
		return bytes.TrimPrefix(data, byteOrderMark), nil
	}
	c.log.Warn("skip a file in the search for tests", "file", path.Join(dir, name), "error", err)
	return nil, ctx.Err()
}

// require says that a suite cannot run where programs are missing.
func (s *suite) require(v *survey, tools ...string) *suite {
	if s.done.NotRun == "" {
		s.done.NotRun = v.lacksTools(tools...)
	}
	return s
}

var (
	goModuleLine = lazyregexp.New(`(?m)^\s*module\s+"?([^\s"]+)`)
	goUseBlock   = lazyregexp.New(`(?ms)^\s*use\s*\((.*?)\)`)
	goUseLine    = lazyregexp.New(`(?m)^\s*use\s+"?([^\s"(]+)`)
	goComment    = lazyregexp.New(`//.*`)
)

// findModules reads the go.mod files at any depth, and the go.work files, which
// say for the modules below them which ones are built together.
func (c *checker) findModules(ctx context.Context, v *survey) error {
	work := map[string][]string{} // the modules that a go.work uses, by its directory
	for _, dir := range v.with("go.work") {
		data, err := c.open(ctx, dir, "go.work")
		if err != nil {
			return err
		}
		for _, used := range goWork(string(data)) {
			work[dir] = append(work[dir], path.Join(dir, used))
		}
	}
	for _, dir := range v.with("go.mod") {
		if slices.ContainsFunc(strings.Split(dir, "/"), func(s string) bool { return strings.HasPrefix(s, "_") }) {
			continue // the go tool does not look there either
		}
		data, err := c.open(ctx, dir, "go.mod")
		if err != nil {
			return err
		}
		if m := goModuleLine.FindSubmatch(data); m != nil {
			c.modules = append(c.modules, goModule{path: string(m[1]), dir: strings.TrimPrefix(dir, "."), apart: apart(work, dir)})
		}
	}
	return nil
}

// apart reports whether the nearest go.work above a module does not use it: the
// go tool then refuses to work in it.
func apart(work map[string][]string, dir string) bool {
	for in := dir; ; in = path.Dir(in) {
		if used := work[in]; used != nil {
			return !slices.Contains(used, dir)
		}
		if in == "." {
			return false
		}
	}
}

// goWork returns the directories that a go.work uses, relative to its own.
func goWork(text string) []string {
	text = goComment.ReplaceAllString(text, "")
	var out []string
	add := func(dir string) {
		if dir = path.Clean(strings.Trim(dir, `"`)); !path.IsAbs(dir) {
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

// goSuites makes a suite of every module. Of those without a test, which are there
// to see that they build, only the outermost must be able to run.
func (c *checker) goSuites(_ context.Context, v *survey) ([]*suite, error) {
	var out []*suite
	for _, m := range c.modules {
		dir := path.Join(".", m.dir)
		s := newSuite("go test", dir, formatGo, "go", "test", "./...")
		s.alone = true
		s.args = withGoFlags(s.args, "-json", "-count=1", "-timeout="+c.goTimeout())
		if m.apart {
			s.env = append(s.env, "GOWORK=off")
			s.done.Command = strings.Replace(s.done.Command, "go test", "GOWORK=off go test", 1)
		}
		s.optional = !v.within(dir, goTests) && len(v.with(goTests)) > 0
		out = append(out, s.require(v, "go"))
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
		s.args = f
		s.isPytest()
	case is("cargo", "test") && !slices.Contains(f, "--"):
		s.args, s.format, s.alone = f, formatCargo, true
	case is("node", "--test") && !hasFlag(f, "--test-reporter"):
		s.args, s.format = slices.Concat(f[:2], []string{"--test-reporter=tap"}, f[2:]), formatTAP
	case is("npm", "test") && len(f) == 2, is("make") && len(f) == 2:
		s.args = f
	}
	return s
}
