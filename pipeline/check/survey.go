package check

import (
	"cmp"
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

// survey is what detection knows of a repository's files: those by which a suite
// is recognised, at any depth, and the programs that the sandbox has.
type survey struct {
	dirs  map[string][]string // names of marker files, sorted, and test kinds by directory from the root
	tools map[string]bool
}

// markers are the names of files by which a suite is recognised.
var markers = []string{
	"go.mod", "go.work",
	"package.json", "pnpm-workspace.yaml", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", ".pnp.cjs", "bun.lock", "bun.lockb", "jest.config.*",
	"pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", "tox.ini", "noxfile.py", "conftest.py", ".coveragerc", "manage.py",
	"Cargo.toml",
	"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew",
	"*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj",
	"Gemfile", "Rakefile", ".rspec", "*.gemspec",
	"CMakeLists.txt",
	"composer.json", "phpunit.xml", "phpunit.xml.dist",
	"GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile",
}

// Entries that stand for all test files of a kind in a directory.
const (
	goTests   = "=go"
	pyTests   = "=py"
	pySource  = "=py-src" // modules or packages below a directory named src
	rubySpecs = "=rspec"
	rubyTests = "=rb"
	phpTests  = "=php"
)

// testKinds fold test files into one entry for each directory and kind: which
// there are does not matter, and a large repository has many. Pattern is find's,
// file is an extended regular expression for sed.
var testKinds = []struct{ entry, test, pattern, file string }{
	{goTests, "-name", "*_test.go", `[^/]*_test\.go`},
	{pyTests, "-name", "test_*.py", `test_[^/]*\.py`},
	{pyTests, "-name", "*_test.py", `[^/]*_test\.py`},
	{pySource, "-path", "*/src/*.py", `src/[^=]*\.py`},
	{rubySpecs, "-name", "*_spec.rb", `[^/]*_spec\.rb`},
	{rubyTests, "-name", "*_test.rb", `[^/]*_test\.rb`},
	{rubyTests, "-name", "test_*.rb", `test_[^/]*\.rb`},
	{phpTests, "-name", "*Test.php", `[^/]*Test\.php`},
}

// tools are the programs that suites are started with.
var tools = []string{"go", "node", "npm", "pnpm", "yarn", "bun", "python3", "tox", "nox", "cargo", "mvn", "gradle", "dotnet",
	"ruby", "bundle", "rake", "rspec", "php", "phpunit", "make", "just", "cmake", "ctest"}

// toolLine marks a tool among the survey's lines: no path from the root starts so.
const toolLine = "//"

const surveyScript = `pwd -P
for t in $1; do
	if command -v "$t" >/dev/null 2>&1; then echo "` + toolLine + `$t"; fi
done
edit=$2
shift 2
find . "$@" | sed -E "$edit" | LC_ALL=C sort -u`

// surveyArgs are the script's arguments.
func surveyArgs() []string {
	find := []string{"-type", "d", "-name", "node_modules", "-print", "-prune", "-o", "-type", "d", "(", "-name", ".?*"}
	for _, dir := range []string{"vendor", "testdata", "site-packages", "venv"} {
		find = append(find, "-o", "-name", dir)
	}
	find = append(find, ")", "-prune", "-o", "-type", "f", "(", "-name", markers[0])
	for _, m := range markers[1:] {
		find = append(find, "-o", "-name", m)
	}
	var edit strings.Builder
	for _, k := range testKinds {
		find = append(find, "-o", k.test, k.pattern)
		fmt.Fprintf(&edit, "s#/%s$#/%s#\n", k.file, k.entry)
	}
	return append([]string{strings.Join(tools, " "), edit.String()}, append(find, ")", "-print")...)
}

// look makes the survey, by one command whatever the size of the repository.
func (c *checker) look(ctx context.Context) (*survey, error) {
	args := append([]string{"sh", "-c", surveyScript, "sh"}, surveyArgs()...)
	res, err := c.ws.Run(ctx, workspace.Command{Args: args, Timeout: 2 * time.Minute})
	if err != nil {
		return nil, err
	}
	if res.Exit != 0 || res.Truncated {
		return nil, &pipeline.Fault{Class: pipeline.FaultEnvironment, Final: true, Message: fmt.Sprintf(
			"the repository's files could not be listed (exit code %d, cut off: %v): %s. %s", res.Exit, res.Truncated, tail(string(res.Stderr)), howToName)}
	}
	root, lines, _ := strings.Cut(string(res.Stdout), "\n")
	c.root = strings.TrimSpace(root)
	v := &survey{dirs: map[string][]string{}, tools: map[string]bool{}}
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if tool, ok := strings.CutPrefix(line, toolLine); ok {
			v.tools[tool] = true
		} else if name, ok := strings.CutPrefix(line, "./"); ok { // anything else is the rest of a name with a line end in it
			dir := path.Dir(name)
			v.dirs[dir] = append(v.dirs[dir], path.Base(name))
		}
	}
	return v, nil
}

// has reports whether a directory holds one of these names.
func (v *survey) has(dir string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(v.dirs[dir], n) })
}

// with returns the directories that hold one of these names, sorted.
func (v *survey) with(names ...string) []string {
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(v.dirs)) {
		if v.has(dir, names...) {
			out = append(out, dir)
		}
	}
	return out
}

// within reports whether a directory, or one below it, holds one of these names.
func (v *survey) within(dir string, names ...string) bool {
	for d := range v.dirs {
		if below(d, dir) && v.has(d, names...) {
			return true
		}
	}
	return false
}

// below reports whether a directory is another one, or lies in it.
func below(dir, in string) bool {
	return in == "." || dir == in || strings.HasPrefix(dir, in+"/")
}

// examples are directories whose content is shown or copied, not tested.
var examples = lazyregexp.New(`(?:^|/)(?:_[^/]*|examples?|samples?|fixtures|__fixtures__|templates?|testdata|test-data|dist|target)(?:/|$)`)

// topmost leaves the directories out that lie in another one of them, and those of
// examples.
func topmost(dirs []string) []string {
	var out []string
	for _, dir := range slices.SortedFunc(slices.Values(dirs), func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) }) {
		if !examples.MatchString(dir) && !slices.ContainsFunc(out, func(in string) bool { return below(dir, in) }) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return strings.Count(dir, "/") + 1
}

// lacksTools returns why a suite cannot run without some programs; "" when all are
// there.
func (v *survey) lacksTools(names ...string) string {
	var out []string
	for _, n := range names {
		if !v.tools[n] {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return needs(out...)
}
