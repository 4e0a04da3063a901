// Package deps finds out what a repository depends on, and how its package managers
// install that in a sandbox without a network, through gateways to registries.
//
// [Find] reads manifests and lock files of one commit and says what is to be done: a
// [Recipe], whose key stands for everything that decides the result. [Recipe.Make]
// does it. No code of the repository is run: install scripts are off, and where a
// package manager would read the work tree, it reads copies of manifests. What
// cannot be installed is a [Project] that says why, and how to fix that.
package deps

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// format is part of every key: trees that were made in another way are not used.
const format = "1"

// root is where the tree is while it is made, and when it is used.
const root = "/deps"

// timeout is how long one package manager may take.
const timeout = 15 * time.Minute

// Host is what the machine offers.
type Host struct {
	Tools    map[string]string            // versions by name; what is not there is missing. See [ToolScript]
	Registry map[string]string            // address of the gateway by kind: go, npm, pypi, cargo
	Lists    func(kind, name string) bool // whether a registry is listed for a package by its name; nil: none is
	SumDB    string                       // Go's checksum database; empty: none is asked
	Scripts  bool                         // install scripts of packages may run
}

// Project is one manifest, with what belongs to it.
type Project struct {
	Manager string   `json:"manager"` // go, npm, pnpm, yarn, pip, cargo, bundler, composer, maven
	Dir     string   `json:"dir"`     // "." for the top
	Inputs  []string `json:"inputs"`  // files that decide what is installed
	Lacks   string   `json:"lacks,omitempty"`

	elsewhere []string // what is asked for that no registry has, and that is left out
	unread    []string // lock files of package managers that Forge does not have
	unasked   []string // package indexes that are named, in whose place the server's registry is asked
	hints     []string // what may help when it fails

	stage   map[string][]byte   // files of the tree, before anything is run
	steps   []workspace.Command //
	mounts  bool                // its node_modules directories are shown in the work tree
	shown   []string            // other directories of its tree that are
	classes []string            // files that decide it by their names and what they declare
	tree    string              // its directory in the tree
	env     []string            // of commands that use it
}

// String names a project for people.
func (p *Project) String() string {
	if p.Dir == "." {
		return p.Manager
	}
	return p.Manager + " in " + p.Dir
}

// Recipe is how the dependencies of one commit are installed.
type Recipe struct {
	Key      string // the same for commits with the same dependencies
	Projects []*Project
}

// Empty reports whether there is nothing to install.
func (r *Recipe) Empty() bool {
	return !slices.ContainsFunc(r.Projects, func(p *Project) bool { return p.Lacks == "" })
}

// Lacking says what cannot be installed, and why; empty when all can.
func (r *Recipe) Lacking() []string {
	var out []string
	for _, p := range r.Projects {
		if p.Lacks != "" {
			out = append(out, p.String()+": "+p.Lacks)
		} else if len(p.elsewhere) > 0 {
			out = append(out, p.String()+": "+notOfRegistries(p.elsewhere))
		}
	}
	return out
}

// Unasked says which package indexes that the repository names are not asked, and which
// lock files are not read.
func (r *Recipe) Unasked() []string {
	var out []string
	for _, p := range r.Projects {
		if len(p.unread) > 0 {
			out = append(out, fmt.Sprintf("%s of Bun is not read: %s installs what package.json asks for, in versions of its own choice", strings.Join(p.unread, ", "), p))
		}
		if len(p.unasked) > 0 {
			out = append(out, fmt.Sprintf("the server's registry is asked (%s), and not what the repository names: %s", p, withoutLogins(p.unasked)))
		}
	}
	return out
}

// login is who signs in at an address.
var login = lazyregexp.New(`://[^/@\s]+@`)

// notOfRegistries says what cannot be had, and what to do.
func notOfRegistries(names []string) string {
	return "not from a registry, and nothing else is reached: " + withoutLogins(names) +
		". Publish it where the server's registries have it, or commit it"
}

// withoutLogins lists addresses for people, the first of many.
func withoutLogins(names []string) string {
	if n := len(names); n > 5 {
		names = append(slices.Clone(names[:5]), fmt.Sprintf("%d more", n-5))
	}
	return text.Clip(login.ReplaceAllString(strings.Join(names, ", "), "://"), 400)
}

// Inputs are the files that decide what is installed, sorted.
func (r *Recipe) Inputs() []string {
	var out []string
	for _, p := range r.Projects {
		out = append(out, p.Inputs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Sources are the files besides [Manifests] that Find reads where their tools are there.
func (r *Recipe) Sources() []string {
	var out []string
	for _, p := range r.Projects {
		out = append(out, p.classes...)
	}
	return out
}

// finder reads one commit.
type finder struct {
	every []string // all files of the commit
	files []string // without those of others
	has   map[string]bool
	read  func(path string) ([]byte, error)
	host  Host
}

// Find reads a commit's manifests. files are all of its paths, read returns one.
func Find(files []string, read func(path string) ([]byte, error), host Host) (*Recipe, error) {
	f := &finder{every: files, read: read, host: host, has: map[string]bool{}}
	for _, name := range files {
		if !foreign(name) {
			f.files = append(f.files, name)
			f.has[name] = true
		} else if strings.HasSuffix(name, "vendor/modules.txt") || strings.HasSuffix(name, "vendor/autoload.php") {
			f.has[name] = true
		}
	}
	r := &Recipe{}
	for _, find := range []func() ([]*Project, error){f.golang, f.node, f.python, f.cargo, f.ruby, f.php, f.maven} {
		list, err := find()
		if err != nil {
			return nil, fmt.Errorf("find dependencies: %w", err)
		}
		r.Projects = append(r.Projects, list...)
	}
	return r, f.key(r)
}

// manifest are the names of files that recipes read.
var manifest = lazyregexp.New(`^(?:go\.(?:mod|sum|work|work\.sum)|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml|\.npmrc|\.yarnrc(?:\.yml)?|` +
	`Cargo\.(?:toml|lock)|pyproject\.toml|setup\.(?:cfg|py)|(?:poetry|uv|pdm)\.lock|Pipfile(?:\.lock)?|tox\.ini|.*requirements.*\.(?:txt|in)|constraints.*\.txt|modules\.txt|` +
	`Gemfile(?:\.lock)?|gems\.(?:rb|locked)|composer\.(?:json|lock)|` +
	`pom\.xml|extensions\.xml|maven\.config)$`)

// Manifests are those of a commit's files that Find may read, as a rule: whoever reads
// them all at once saves a process for each.
func Manifests(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return !manifest.MatchString(path.Base(name)) && !patchFile.MatchString(name) && !cargoConfig.MatchString(name) || foreign(name)
	})
}

// patchFile is a patch of a package, where package managers for Node keep it.
var patchFile = lazyregexp.New(`(?:^|/)(?:\.yarn/)?patches/[^/]+\.patch$`)

// cargoConfig is a file of cargo's settings.
var cargoConfig = lazyregexp.New(`(?:^|/)\.cargo/config(?:\.toml)?$`)

// foreign reports whether a path belongs to somebody else's code, or to a test's data.
func foreign(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "node_modules" || part == "vendor" || isExample(part) {
			return true
		}
	}
	return false
}

// isExample reports whether what is in a directory of that name is not what is installed.
func isExample(dir string) bool {
	return slices.Contains([]string{"testdata", "third_party", "fixtures", "__fixtures__"}, dir)
}

// toolOf are tools that matter to the projects of one manager alone.
var toolOf = map[string]string{"ruby": "bundler", "php": "composer", "composer": "composer", "mvn": "maven"}

// key gives the recipe a name for all that decides what comes of it.
func (f *finder) key(r *Recipe) error {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %v\n", format, f.host.Scripts)
	for _, tool := range slices.Sorted(maps.Keys(f.host.Tools)) {
		if m := toolOf[tool]; m == "" || slices.ContainsFunc(r.Projects, func(p *Project) bool { return p.Manager == m }) {
			fmt.Fprintf(sum, "%s %q\n", tool, f.host.Tools[tool])
		}
	}
	for _, p := range r.Projects {
		fmt.Fprintf(sum, "%s %q %q\n", p.Manager, p.Dir, p.Lacks)
		for _, name := range p.Inputs {
			text, err := f.read(name)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			fmt.Fprintf(sum, "%q %d\n%s", name, len(text), text)
		}
		if err := f.declared(p, sum); err != nil {
			return err
		}
		for _, s := range p.steps {
			fmt.Fprintf(sum, "%q %q\n", s.Args, s.Env)
		}
	}
	r.Key = hex.EncodeToString(sum.Sum(nil)[:16])
	return nil
}

// dirs returns the directories that have a file of that name, sorted.
func (f *finder) dirs(base string) []string {
	var out []string
	for _, name := range f.files {
		if path.Base(name) == base {
			out = append(out, path.Dir(name))
		}
	}
	slices.Sort(out)
	return out
}

// existing are those of some names that are files in a directory.
func (f *finder) existing(dir string, names ...string) []string {
	var out []string
	for _, n := range names {
		if p := path.Join(dir, n); f.has[p] {
			out = append(out, p)
		}
	}
	return out
}

// below reports whether a directory is another, or beneath it.
func below(dir, top string) bool {
	return top == "." || dir == top || strings.HasPrefix(dir, top+"/")
}

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

// slot is a name for a project's directory in the tree.
func slot(manager, dir string) string {
	if dir == "." {
		return path.Join(manager, "top")
	}
	return path.Join(manager, "in", dir)
}

// ToolScript prints a line "name version" for each tool that there is.
const ToolScript = `v() { printf '%s %s\n' "$1" "$(printf %s "$2" | head -n 1)"; }
for t in go node npm python3 cargo ruby php; do command -v $t >/dev/null || continue
case $t in go) v go "$(go env GOVERSION)";; *) v $t "$($t --version 2>/dev/null)";; esac; done
if p=$(python3 -m pip --version 2>/dev/null); then v pip "$p"; fi
if p=$(mvn -v 2>/dev/null); then v mvn "$p"; fi
if command -v composer >/dev/null && p=$(COMPOSER_HOME=/tmp composer --version --no-ansi --no-plugins 2>/dev/null); then v composer "$p"; fi`

// escapes are what a terminal shows as colours: Maven's version comes in them.
var escapes = lazyregexp.New(`\x1b\[[0-9;]*[A-Za-z]`)

// ParseTools reads what [ToolScript] printed.
func ParseTools(out string) map[string]string {
	tools := map[string]string{}
	for line := range strings.Lines(out) {
		if name, version, ok := strings.Cut(strings.TrimSpace(escapes.ReplaceAllString(line, "")), " "); ok && version != "" {
			tools[name] = version
		}
	}
	return tools
}

// unreadable says of a manifest that nothing can be installed by it.
func (p *Project) unreadable(name string, err error) {
	first, _, _ := strings.Cut(err.Error(), "\n") // others show where
	p.Lacks = path.Base(name) + " cannot be read: " + text.Clip(first, 300)
}

// isRefused reports whether a manifest was not given to its parser. What else cannot be read is
// left to its package manager, which says so: it may be a template.
func isRefused(err error) bool {
	var refused untrusted.Refused
	return errors.As(err, &refused)
}

// decode reads a JSON manifest; what cannot be read has nothing.
func decode[T any](text []byte) (v T, err error) {
	return v, untrusted.JSON(text, &v)
}
