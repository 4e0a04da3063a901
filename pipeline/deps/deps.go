// Package deps finds out how a repository is set up, and has that done in a sandbox.
//
// [Find] reads the names of one commit's files, and of some what they say, and returns a
// [Plan]: the commands that the repository itself names, else those of its ecosystems. They
// run once on the base commit, as the repository's own code does in its tests, with gateways
// to registries as the only way out; what they leave is an environment that later commands
// see without a network. A change that edits manifests gets another environment over that one,
// by commands that run nothing of the change. What cannot be set up is told with the reason
// and what helps.
package deps

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// format is part of every key: environments that were made in another way are not used.
const format = "9"

// env is where the environment is while it is made, and when it is used.
const env = workspace.EnvPath

// Host is what the machine offers.
type Host struct {
	Tools    map[string]string // versions by name, or name@DIR; what is not there is missing. See [ToolScript]
	Registry map[string]string // address of the gateway by kind: go, npm, pypi, cargo, maven, rubygems, composer
	SumDB    string            // Go's checksum database; empty: none is asked
	Scripts  bool              // what a change adds may run scripts when it is installed
	Compile  bool              // what is there is compiled ahead
	Offline  bool              // nothing is installed, nor are the repository's own commands run
}

// Project is what one package manager installs at one place.
type Project struct {
	Manager string // go, npm, pnpm, yarn, pip, cargo, maven, gradle, bundler, composer; "setup" for the repository's own commands
	Dir     string // "." for the top
	From    string // the file that says so
	Inputs  []string
	Lacks   string // why it cannot be installed; then nothing is run

	before string            // makes the machine ready for the steps; it may fail
	steps  []string          // of the base, for a shell
	ahead  string            // compiles what is there, after all steps, and runs none of it; it may fail
	check  string            // a command of the work tree that fails where what is locked does not suffice; "": inputs alone decide that
	more   []string          // what brings it in line with a change's inputs; none: nothing can without running the change
	locks  []string          // files that more may write
	stage  map[string]string // files of the environment, by name
	use    []string          // environment of all later commands
	start  string            // runs before each of them
}

// String names a project for people.
func (p *Project) String() string {
	if p.Dir == "." {
		return p.Manager
	}
	return p.Manager + " in " + p.Dir
}

// Plan is how one commit is set up.
type Plan struct {
	Key      string // the same for commits that are set up alike
	Projects []*Project
	Own      []*Project // what is tried first: commands that the repository names; when they fail, Projects are set up
	Services []*Project // what runs beside the tests

	host Host
	bins []string // directories of the toolchains that it gets
	keep []string // directories that are kept although the repository does not ignore them
	text map[string][]byte
}

// every is all that is set up.
func (p *Plan) every() []*Project { return slices.Concat(p.Services, p.Own, p.Projects) }

// Edits reports whether a file that decides what is installed says something else than in
// another commit's plan.
func (p *Plan) Edits(before *Plan) func(name string) bool {
	return func(name string) bool {
		now, there := p.text[name]
		was, then := before.text[name]
		return there != then || !bytes.Equal(now, was)
	}
}

// Lines say for people how the commit is set up, in the order in which it is done.
func (p *Plan) Lines() (out []string) {
	for _, own := range p.Own {
		line := fmt.Sprintf("%s says how: %s", own.From, strings.Join(own.steps, "; "))
		if own.From != settingsCommands && len(p.Projects) > 0 {
			line += " (where that fails, as follows)"
		}
		out = append(out, line)
	}
	for _, one := range p.Projects {
		if one.Lacks == "" && len(one.steps) > 0 {
			out = append(out, fmt.Sprintf("%s installs what %s asks for", one, one.From))
		}
	}
	for _, one := range p.Services {
		if one.Lacks == "" {
			out = append(out, fmt.Sprintf("%s of %s runs beside each command", one, one.From))
		}
	}
	return out
}

// Lacking says what cannot be installed, and why.
func (p *Plan) Lacking() (out []string) {
	for _, one := range slices.Concat(p.Services, p.Projects) {
		if one.Lacks != "" && len(one.steps) > 0 {
			out = append(out, CannotInstall+" ("+one.String()+": "+one.Lacks+")")
		}
	}
	return out
}

// Empty reports whether there is nothing to set up.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.every(), func(p *Project) bool { return p.ahead != "" || p.Lacks == "" && len(p.steps) > 0 })
}

// Inputs are the files that decide what is installed, sorted.
func (p *Plan) Inputs() []string {
	var out []string
	for _, one := range p.every() {
		out = append(out, one.Inputs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Toolchains are the environment by which commands find the toolchains that the commit gets.
func (p *Plan) Toolchains() []string {
	var out []string
	for _, dir := range p.bins {
		out = append(out, "PATH="+dir)
		if p.host.Tools["java@"+dir] != "" {
			out = append(out, "JAVA_HOME="+path.Dir(dir))
		}
	}
	return out
}

// Use is the environment of commands that use what was set up.
func (p *Plan) Use() []string {
	out := p.Toolchains()
	for _, one := range p.every() {
		for _, kv := range one.use {
			if !slices.Contains(out, kv) {
				out = append(out, kv)
			}
		}
	}
	return out
}

// GoFiles are what the commit's go.mod and go.sum files say.
func (p *Plan) GoFiles() (out [][]byte) {
	for name, text := range p.text {
		if base := path.Base(name); base == "go.mod" || base == "go.sum" || base == "go.work.sum" {
			out = append(out, text)
		}
	}
	return out
}

// Commit is what of a commit's files a plan is made of.
type Commit struct {
	Files []string
	Tests []string                                        // commands that test it, if it says so
	Read  func(paths []string) (map[string][]byte, error) // what is not there is left out
}

// usual are directories of installers, which not every repository ignores.
var usual = []string{".venv", "venv", "node_modules", "vendor"}

// finder reads one commit.
type finder struct {
	files []string // without those of others
	has   map[string]bool
	text  map[string][]byte // of some
	host  Host
}

// Find plans the set-up of a commit.
func Find(c Commit, set config.Setup, host Host) (*Plan, error) {
	f := &finder{host: host, has: map[string]bool{}}
	asks, err := c.Read(WantFiles())
	if err != nil {
		return nil, fmt.Errorf("read the versions that it asks for: %w", err)
	}
	var bins []string
	bins, f.host.Tools = Choose(Wants(asks), host.Tools)
	for _, name := range c.Files {
		if !foreign(name) {
			f.files = append(f.files, name)
		}
		f.has[name] = true
	}
	slices.Sort(f.files)
	if f.text, err = c.Read(slices.DeleteFunc(slices.Clone(f.files), func(name string) bool { return !isInput(name) })); err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	p := &Plan{host: host, bins: bins, keep: slices.Concat(set.Cache, usual)}
	installs := set.Installs() && !host.Offline
	p.Projects = f.golang(installs, c.Tests)
	if installs {
		for _, find := range []func() []*Project{f.node, f.python, f.cargo, f.maven, f.gradle, f.ruby, f.php} {
			p.Projects = append(p.Projects, find()...)
		}
	}
	if !host.Offline {
		if p.Own, err = f.own(c, set); err != nil {
			return nil, err
		}
		p.Services = f.services()
	}
	p.text = f.text
	p.Key = p.key(f.text)
	return p, nil
}

// key stands for all that decides what a set-up leaves.
func (p *Plan) key(texts map[string][]byte) string {
	sum := sha256.New()
	fmt.Fprintln(sum, format, p.keep, p.bins)
	for _, tool := range slices.Sorted(maps.Keys(p.host.Tools)) {
		fmt.Fprintf(sum, "%s %q\n", tool, p.host.Tools[tool])
	}
	for _, one := range p.every() {
		fmt.Fprintf(sum, "%s %q %q %q %q %q %q %q\n", one.Manager, one.Dir, one.Lacks, one.steps, one.use, one.stage, one.ahead, one.start)
	}
	for _, name := range p.Inputs() {
		fmt.Fprintf(sum, "%q %d\n%s", name, len(texts[name]), texts[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// input are the names of files that decide what is installed.
var input = lazyregexp.New(`^(?:go\.(?:mod|sum|work|work\.sum)|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml|` +
	`\.npmrc|\.yarnrc(?:\.yml)?|Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|pyproject\.toml|setup\.(?:cfg|py)|(?:poetry|uv|pdm)\.lock|Pipfile(?:\.lock)?|tox\.ini|` +
	`.*requirements.*\.(?:txt|in)|constraints.*\.txt|Gemfile(?:\.lock)?|gems\.(?:rb|locked)|[\w.-]+\.gemspec|composer\.(?:json|lock)|` +
	`pom\.xml|extensions\.xml|maven\.config|(?:build|settings)\.gradle(?:\.kts)?|gradle\.(?:properties|lockfile)|libs\.versions\.toml|` +
	`gradle-wrapper\.properties|maven-wrapper\.properties|copilot-setup-steps\.ya?ml|\.?devcontainer\.json)$`)

// isInput reports whether a file decides what is installed.
func isInput(name string) bool {
	return input.MatchString(path.Base(name)) || strings.Contains("/"+path.Dir(name)+"/", "/requirements/") || strings.Contains("/"+path.Dir(name)+"/", "/patches/") ||
		isWorkflow(name) || isCompose(name)
}

// Steers reports whether a file says how a package manager works, and not what it installs:
// such files name programs that it runs.
func Steers(name string) bool {
	switch path.Base(name) {
	case ".npmrc", ".yarnrc", ".yarnrc.yml", "maven.config", "extensions.xml", "gradle.properties":
		return true
	}
	return false
}

// foreign reports whether a path belongs to somebody else's code, or to a test's data.
func foreign(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		switch part {
		case "node_modules", "vendor", "testdata", "third_party", "fixtures", "__fixtures__", "test-fixtures":
			return true
		}
	}
	return false
}

// beside reports whether a directory holds what a project shows, and not the project.
func beside(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		switch part {
		case "example", "examples", "sample", "samples", "template", "templates", "doc", "docs", "demo", "demos", "benchmark", "benchmarks", "bench":
			return true
		}
	}
	return false
}

// dirs are the directories that have one of some files, those above others first.
func (f *finder) dirs(names ...string) (out []string) {
	for _, name := range f.files {
		if slices.Contains(names, path.Base(name)) {
			out = append(out, path.Dir(name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// topmost are those of dirs that are not below another.
func (f *finder) topmost(names ...string) (out []string) {
	for _, dir := range f.dirs(names...) {
		if !slices.ContainsFunc(out, func(above string) bool { return below(dir, above) }) && !(beside(dir) && len(out) > 0) {
			out = append(out, dir)
		}
	}
	return out
}

// below reports whether a directory is another, or beneath it.
func below(dir, top string) bool {
	return top == "." || dir == top || strings.HasPrefix(dir, top+"/")
}

// inputs are the files below a directory that decide what is installed and are of some names.
func (f *finder) inputs(dir string, of func(base string) bool) []string {
	var out []string
	for _, name := range f.files {
		if below(path.Dir(name), dir) && isInput(name) && of(path.Base(name)) {
			out = append(out, name)
		}
	}
	return out
}

// in reports whether a directory has a file of that name.
func (f *finder) in(dir, name string) bool { return f.has[path.Join(dir, name)] }

// textOf is what a file says, if it was read.
func (f *finder) textOf(dir, name string) string { return string(f.text[path.Join(dir, name)]) }

// lacks says why a manager's projects cannot be installed; empty when they can.
func (f *finder) lacks(tool, kind, install string) string {
	switch {
	case f.host.Tools[tool] == "":
		return tool + " is not installed on the server: " + install
	case f.host.Registry[kind] == "":
		return "the server lists no registry of the kind " + kind + ": name one under `registries` in its settings"
	}
	return ""
}

// readTOML reads a manifest.
func readTOML[T any](text []byte) (v T, err error) {
	return v, untrusted.TOML(text, &v)
}
