package check

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// pythonMarks are the files by which a directory is a Python project.
var pythonMarks = []string{"pytest.ini", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", ".coveragerc", "manage.py"}

var (
	wantsPytest = lazyregexp.New(`(?m)^\[(?:tool[.:])?pytest(?:\.ini_options)?\]|\bpytest\b`)
	ownRunner   = lazyregexp.New(`\b(stestr|nosetests|nose2|trial|zope-testrunner|ward|manage\.py test)\b`)
	toxCommands = lazyregexp.New(`(?m)^\s*commands\s*=`)
	noxSession  = lazyregexp.New(`(?m)\.run\(`)
)

// pythonSuites finds the Python projects. A project in the root stands for all
// that lies below it, as pytest collects it.
func (c *checker) pythonSuites(ctx context.Context, v *survey) ([]*suite, error) {
	var dirs []string
	for _, dir := range v.with(append([]string{pyTests}, pythonMarks...)...) {
		up, err := c.besideTests(ctx, v, dir)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, up)
	}
	var out []*suite
	for _, dir := range topmost(dirs) {
		s, err := c.pythonSuite(ctx, v, dir)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

// besideTests returns the directory that holds a directory of tests, which import what
// lies beside it. So do those deeper in it where they are no project and pytest runs
// them: unittest looks into packages alone.
func (c *checker) besideTests(ctx context.Context, v *survey, dir string) (string, error) {
	if base := path.Base(dir); base == "tests" || base == "test" {
		return path.Dir(dir), nil
	}
	at := slices.IndexFunc(strings.Split(dir, "/"), func(name string) bool { return name == "tests" || name == "test" })
	if at < 0 || v.has(dir, pythonMarks...) {
		return dir, nil
	}
	up := path.Join(".", path.Join(strings.Split(dir, "/")[:at]...))
	if v.within(up, "conftest.py") {
		return up, nil
	}
	has, err := c.pythonModules(ctx, v, up)
	if err != nil || !has["pytest"] && !has["asks"] {
		return dir, err
	}
	return up, nil
}

// pythonSuite makes the suite of one project; nil where nothing is to be tested.
func (c *checker) pythonSuite(ctx context.Context, v *survey, dir string) (*suite, error) {
	var config bytes.Buffer // how the project is tested, as its configuration has it
	for _, name := range pythonMarks {
		if !v.has(dir, name) || name == "setup.py" || name == "manage.py" {
			continue
		}
		data, err := c.open(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		config.Write(data)
		config.WriteByte('\n')
	}
	text := config.String()
	pytest := wantsPytest.MatchString(text) || v.within(dir, "conftest.py")
	if runner := ownRunner.FindString(text); runner != "" && !pytest {
		if s := c.isolated(v, dir, text); s != nil {
			return s, nil
		}
	}
	if v.has(dir, "manage.py") && !strings.Contains(text, "DJANGO_SETTINGS_MODULE") {
		manage, err := c.open(ctx, dir, "manage.py")
		if err != nil {
			return nil, err
		}
		if bytes.Contains(manage, []byte("django")) { // it has a runner of its own, which knows its settings
			s := newSuite("manage.py test", dir, formatUnittest, "python3", "manage.py", "test", "--noinput", "-v", "2")
			s.env = []string{"PYTHONDONTWRITEBYTECODE=1"}
			s.own, err = c.pythonOwn(ctx, dir)
			return s.require(v, "python3"), err
		}
	}
	if !v.within(dir, pyTests) && !v.has(dir, "pytest.ini") && !strings.Contains(text, "pytest.ini_options") && !strings.Contains(text, "[tool:pytest]") {
		return nil, nil
	}
	has, err := c.pythonModules(ctx, v, dir)
	if err != nil {
		return nil, err
	}
	var s *suite
	var paths []string
	if v.has(dir, pySource) {
		paths = append(paths, path.Join(c.root, dir, "src"))
	}
	switch {
	case has["pytest"], pytest, has["asks"]:
		s = newSuite("pytest", dir, formatJUnit, "python3", "-m", "pytest", "-p", "no:cacheprovider")
		s.isPytest()
		s.measure = pytestMeasured(text, has)
		if v.tools["python3"] && !has["pytest"] {
			s.done.NotRun = needs("pytest")
		}
	default:
		s = newSuite("unittest", dir, formatUnittest, "python3", "-m", "unittest", "discover", "-v")
		s.alone = true
		if has["coverage"] {
			s.measure = coveragePy(text)
		}
		start, err := c.unittestStart(ctx, v, dir)
		if err != nil {
			return nil, err
		}
		if start != "" { // no package: unittest does not look into it by itself
			s.args, s.done.Command = append(s.args, "-s", start), s.done.Command+" -s "+start
			paths = append(paths, path.Join(c.root, dir, start))
		}
	}
	if s.own, err = c.pythonOwn(ctx, dir); err != nil {
		return nil, err
	}
	s.env = []string{"PYTHONDONTWRITEBYTECODE=1"}
	if len(paths) > 0 {
		s.env = append(s.env, "PYTHONPATH="+strings.Join(paths, ":"))
	}
	return s.require(v, "python3"), nil
}

// unittestStart returns the directory of tests that is no package, if the tests are
// in one.
func (c *checker) unittestStart(ctx context.Context, v *survey, dir string) (string, error) {
	for _, name := range []string{"tests", "test"} {
		if at := path.Join(dir, name); !v.has(dir, pyTests) && v.has(at, pyTests) {
			files, err := c.ws.List(ctx, at)
			if err != nil || !slices.Contains(files, "__init__.py") {
				return name, ctx.Err()
			}
		}
	}
	return "", nil
}

// pythonOwn lists what can be imported because it is the repository's own.
func (c *checker) pythonOwn(ctx context.Context, dir string) ([]string, error) {
	own := []string{}
	for _, d := range []string{dir, path.Join(dir, "src"), path.Join(dir, "tests"), path.Join(dir, "test")} {
		files, err := c.ws.List(ctx, d)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, f := range files {
			if name, ok := strings.CutSuffix(f, "/"); err == nil && ok {
				own = append(own, name)
			} else if name, ok := strings.CutSuffix(f, ".py"); ok {
				own = append(own, name)
			}
		}
	}
	return own, nil
}

// isPytest makes a suite one of pytest.
func (s *suite) isPytest() {
	s.format, s.pytest, s.alone = formatJUnit, true, true
	s.report = []string{"--junitxml={}", "-o", "junit_family=xunit1", "--continue-on-collection-errors"}
}

// isolated is a project that is tested through tox or nox, by a runner that Forge
// does not know itself; nil when it is not.
func (c *checker) isolated(v *survey, dir, config string) *suite {
	switch {
	case v.has(dir, "tox.ini") && toxCommands.MatchString(config):
		return newSuite("tox", dir, formatAny, "tox").require(v, "tox")
	case v.has(dir, "noxfile.py") && noxSession.MatchString(config):
		return newSuite("nox", dir, formatAny, "nox").require(v, "nox")
	}
	return nil
}

// pythonScript tells which modules can be had, and "asks" where a test imports
// pytest.
const pythonScript = `python3 -c 'import importlib.util as u
for m in ("pytest", "pytest_cov", "coverage"):
    try:
        if u.find_spec(m) and __import__(m): print(m)
    except Exception: pass'
grep -rqE --include='*.py' --exclude-dir='.?*' --exclude-dir=node_modules '^ *(import|from) +pytest' . && echo asks
true`

// pythonModules returns which of the modules that matter the project's Python has.
func (c *checker) pythonModules(ctx context.Context, v *survey, dir string) (map[string]bool, error) {
	has := map[string]bool{}
	if !v.tools["python3"] {
		return has, nil
	}
	res, err := c.ws.Run(ctx, workspace.Command{Args: []string{"sh", "-c", pythonScript}, Dir: dir, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	for _, m := range strings.Fields(string(res.Stdout)) {
		if slices.Contains([]string{"pytest", "pytest_cov", "coverage", "asks"}, m) {
			has[m] = true
		}
	}
	return has, nil
}
