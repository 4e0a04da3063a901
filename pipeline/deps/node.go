package deps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline/glob"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/untrusted"
	"forge/pipeline/workspace"
)

// nodePackage is what of a package.json decides what is installed.
type nodePackage struct {
	PackageManager string            `json:"packageManager"`
	Workspaces     json.RawMessage   `json:"workspaces"`
	Dependencies   map[string]string `json:"dependencies"`
	Dev            map[string]string `json:"devDependencies"`
	Optional       map[string]string `json:"optionalDependencies"`
	Peer           map[string]string `json:"peerDependencies"`
}

func (p *nodePackage) needs() bool {
	return len(p.Dependencies)+len(p.Dev)+len(p.Optional)+len(p.Peer)+len(p.Workspaces) > 0
}

// locks are the lock files of Node's package managers, the one that counts first.
var locks = []struct{ file, manager string }{
	{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"npm-shrinkwrap.json", "npm"}, {"package-lock.json", "npm"},
}

// node finds Node packages. A package beneath another without a lock file of its own
// is part of that one's workspaces, as far as that one names it.
func (f *finder) node() ([]*Project, error) {
	var out []*Project
	for _, dir := range f.dirs("package.json") { // sorted: what is above comes first
		text, err := f.read(path.Join(dir, "package.json"))
		if err != nil {
			return nil, err
		}
		own := f.nodeLock(dir)
		inside := slices.ContainsFunc(out, func(p *Project) bool {
			return below(dir, p.Dir) && slices.Contains(p.Inputs, path.Join(dir, "package.json"))
		})
		pkg, err := decode[nodePackage](text)
		if isRefused(err) && !inside {
			p := &Project{Manager: "npm", Dir: dir, Inputs: f.existing(dir, "package.json")}
			p.unreadable("package.json", err)
			out = append(out, p)
		}
		needs := pkg.needs() || f.has[path.Join(dir, pnpmSettings)]
		if own == "" && inside || err != nil || !needs || f.vendored(dir) {
			continue
		}
		p, err := f.nodeProject(dir, own, &pkg)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// vendored reports whether a repository has its packages in it.
func (f *finder) vendored(dir string) bool { return f.has[path.Join(dir, ".pnp.cjs")] }

func (f *finder) nodeLock(dir string) string {
	for _, l := range locks {
		if f.has[path.Join(dir, l.file)] {
			return l.file
		}
	}
	return ""
}

func (f *finder) nodeProject(dir, lock string, pkg *nodePackage) (*Project, error) {
	p := &Project{Manager: "npm", Dir: dir, mounts: true, stage: map[string][]byte{}}
	for _, l := range locks {
		if l.file == lock {
			p.Manager = l.manager
		}
	}
	p.tree = slot("node", dir)
	p.Inputs = slices.Concat(f.existing(dir, "package.json", lock, ".npmrc", pnpmSettings, berrySettings), f.patches(dir), f.pnpmPatches(dir, lock))
	globs, err := f.workspaces(dir, pkg)
	if err != nil {
		return nil, err
	}
	for _, sub := range f.dirs("package.json") {
		if rel, ok := within(sub, dir); ok && matchAny(globs, rel) {
			p.Inputs = append(p.Inputs, path.Join(sub, "package.json"))
		}
	}
	p.Inputs = append(p.Inputs, f.archives(dir, pkg)...)
	var settings []byte
	lacks := f.lacks("npm", "npm", "install Node.js with npm")
	for _, name := range p.Inputs {
		text, err := f.read(name)
		if err != nil {
			return nil, err
		}
		rel, _ := within(name, dir)
		if rel == pnpmSettings || rel == berrySettings {
			if err := untrusted.YAML(text, &map[string]any{}); err != nil {
				p.unreadable(name, err)
				lacks = p.Lacks
			}
		}
		p.stage[path.Join(p.tree, rel)] = f.staged(rel, text)
		if rel == berrySettings {
			settings = text
		}
	}
	p.hints = nodeHints(pkg, f.config(dir))
	p.unasked = f.registries(p, f.config(dir))
	if lock == "" {
		p.unread = f.existing(dir, "bun.lock", "bun.lockb")
	}
	p.Lacks = lacks
	p.steps = f.nodeSteps(p, lock, settings, pkg)
	return p, nil
}

// within is a path as seen from a directory above it.
func within(name, dir string) (string, bool) {
	if dir == "." {
		return name, name != "."
	}
	rel, ok := strings.CutPrefix(name, dir+"/")
	return rel, ok
}

// workspaces are the globs of the packages that belong to one.
func (f *finder) workspaces(dir string, pkg *nodePackage) ([]string, error) {
	var globs []string
	if json.Unmarshal(pkg.Workspaces, &globs) != nil {
		var object struct{ Packages []string }
		_ = json.Unmarshal(pkg.Workspaces, &object)
		globs = object.Packages
	}
	if name := path.Join(dir, pnpmSettings); f.has[name] {
		text, err := f.read(name)
		if err != nil {
			return nil, err
		}
		var file struct{ Packages []string }
		if untrusted.YAML(text, &file) == nil {
			globs = append(globs, file.Packages...)
		}
	}
	return globs, nil
}

// matchAny matches a directory against workspace globs, in which "**" stands for any
// directories and a "!" takes back.
func matchAny(globs []string, dir string) bool {
	matched := false
	for _, g := range globs {
		not := strings.HasPrefix(g, "!")
		g = path.Clean(strings.TrimPrefix(strings.TrimPrefix(g, "!"), "./"))
		if glob.Match(g, dir) {
			matched = !not
		}
	}
	return matched
}

// archive is an address of a package's archive in a lock file, whatever registry it
// was made with.
var archive = lazyregexp.New(`https?://[^\s"'#/]+(?:/[^\s"'#]*?)??/((?:@[\w.~-]+/)?[\w.~-]+/-/(?:@[\w.~-]+/)?[\w.+~-]+\.tgz)`)

// keptConfig are the lines of an .npmrc that decide what is installed, and nothing else.
var keptConfig = lazyregexp.New(`(?m)^\s*(?:legacy-peer-deps|strict-peer-dep(?:endencie)?s|auto-install-peers|install-links|omit|include|node-linker|shamefully-hoist|public-hoist-pattern(?:\[\])?|hoist(?:-pattern(?:\[\])?)?|dedupe-peer-dependents|resolution-mode)\s*=.*$`)

// staged is a manifest as package managers read it: lock files lead to the gateway,
// and settings name no other registry and no program.
func (f *finder) staged(name string, text []byte) []byte {
	switch base := path.Base(name); {
	case base == "package.json" && f.host.Scripts:
		return withoutHooks(text)
	case base == ".npmrc":
		return []byte(strings.Join(keptConfig.FindAllString(string(text), -1), "\n") + "\n")
	case base == berrySettings:
		return berrySettingsOf(text)
	case base == pnpmSettings:
		return pnpmSettingsOf(text)
	case base == "yarn.lock" && isBerry(text):
		return f.berryLocked(text)
	case base == "pnpm-lock.yaml":
		text = hooksOf.ReplaceAll(text, nil)
	case slices.ContainsFunc(locks, func(l struct{ file, manager string }) bool { return l.file == base }):
	default:
		return text
	}
	return archive.ReplaceAll(text, []byte(f.host.Registry["npm"]+"/$1"))
}

// archives are packages that a project has as files.
func (f *finder) archives(dir string, pkg *nodePackage) (out []string) {
	for _, table := range []map[string]string{pkg.Dependencies, pkg.Dev, pkg.Optional} {
		for _, said := range table {
			rel, ok := strings.CutPrefix(said, "file:")
			rel = path.Clean(rel)
			name := path.Join(dir, rel)
			if ok && (path.Ext(rel) == ".tgz" || path.Ext(rel) == ".gz") && !strings.HasPrefix(rel, "..") && slices.Contains(f.every, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hooks are the scripts that package managers run when they install. Those of packages
// may run where the server says so; those of the repository want its files, which are
// not there.
var hooks = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare", "pnpm:devPreinstall", "dependencies"}

// withoutHooks is a package.json without them.
func withoutHooks(text []byte) []byte {
	var all, scripts map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil || json.Unmarshal(all["scripts"], &scripts) != nil {
		return text
	}
	for _, name := range hooks {
		delete(scripts, name)
	}
	kept, err := json.Marshal(scripts)
	if err != nil {
		return text // unreachable
	}
	all["scripts"] = kept
	if kept, err = json.Marshal(all); err != nil {
		return text // unreachable
	}
	return kept
}

// config is a project's .npmrc; empty where there is none.
func (f *finder) config(dir string) []byte {
	name := path.Join(dir, ".npmrc")
	if !f.has[name] {
		return nil
	}
	text, err := f.read(name)
	if err != nil {
		return nil // whoever reads all inputs says so
	}
	return text
}

var (
	notRegistry = lazyregexp.New(`^(?:git\+|git:|https?:|github:|gitlab:|bitbucket:|gist:|[\w.-]+/[\w.-]+(?:#|$))`)
	ownRegistry = lazyregexp.New(`(?m)^\s*(@[\w.~-]+):registry\s*=\s*"?(\S+?)"?\s*$`)
)

// nodeHints are what may explain that packages cannot be installed.
func nodeHints(pkg *nodePackage, config []byte) []string {
	var out, names []string
	for _, table := range []map[string]string{pkg.Dependencies, pkg.Dev, pkg.Optional} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if notRegistry.MatchString(table[name]) {
				names = append(names, name+" ("+table[name]+")")
			}
		}
	}
	if len(names) > 0 {
		out = append(out, notOfRegistries(names))
	}
	for _, m := range ownRegistry.FindAllSubmatch(config, -1) {
		out = append(out, fmt.Sprintf(".npmrc takes packages of %s from %s, which is not asked unless the server's settings list it: `registries` with `match: [%q]`", m[1], m[2], m[1]))
	}
	return out
}

var (
	allFrom        = lazyregexp.New(`(?m)^\s*registry\s*=\s*"?(\S+?)"?\s*$`)
	publicPackages = lazyregexp.New(`^https?://registry\.(?:npmjs\.org|yarnpkg\.com)/?$`)
)

// registries are those that a project's .npmrc names and that are not asked, of a scope only
// where a package of it is asked for.
func (f *finder) registries(p *Project, config []byte) (out []string) {
	for _, m := range allFrom.FindAllSubmatch(config, -1) {
		if at := string(m[1]); !publicPackages.MatchString(at) {
			out = append(out, at)
		}
	}
	for _, m := range ownRegistry.FindAllSubmatch(config, -1) {
		scope, at := string(m[1]), string(m[2])
		used := false
		for _, text := range p.stage {
			used = used || bytes.Contains(text, []byte(`"`+scope+"/")) || bytes.Contains(text, []byte("'"+scope+"/"))
		}
		if used && !publicPackages.MatchString(at) && (f.host.Lists == nil || !f.host.Lists("npm", scope)) {
			out = append(out, at+" for "+scope)
		}
	}
	return out
}

// nodeSteps are the commands that install. Managers other than npm are fetched by
// it, in the version that the repository names.
func (f *finder) nodeSteps(p *Project, lock string, settings []byte, pkg *nodePackage) []workspace.Command {
	manager, version, _ := strings.Cut(pkg.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+") // a checksum
	if locked := p.stage[path.Join(p.tree, lock)]; p.Manager == "yarn" && isBerry(locked) {
		if at := path.Join(p.tree, berrySettings); p.stage[at] == nil {
			p.stage[at] = berrySettingsOf(nil)
		}
		return f.berrySteps(p, berryVersion(version, settings, locked))
	}
	if manager != p.Manager || !versionText.MatchString(version) {
		version = map[string]string{"pnpm": pnpmVersion(p.stage[path.Join(p.tree, lock)]), "yarn": "1"}[p.Manager]
	}
	var args []string
	switch {
	case p.Manager == "pnpm":
		args = []string{"npm", "exec", "--yes", "--package=pnpm@" + version, "--", "pnpm", "install", "--frozen-lockfile", "--ignore-pnpmfile",
			"--store-dir=/scratch/pnpm", "--package-import-method=copy"}
	case p.Manager == "yarn":
		args = []string{"npm", "exec", "--yes", "--package=yarn@" + version, "--", "yarn", "install", "--frozen-lockfile", "--non-interactive",
			"--cache-folder=/scratch/yarn"}
	case lock != "":
		args = []string{"npm", "ci"}
	default:
		args = []string{"npm", "install", "--no-package-lock"}
	}
	if !f.host.Scripts {
		args = append(args, "--ignore-scripts")
	}
	return []workspace.Command{{Dir: path.Join(root, p.tree), Args: args, Timeout: timeout, Env: f.npmEnv()}}
}

// npmEnv leads npm, and the managers that it fetches, to the gateway.
func (f *finder) npmEnv() []string {
	registry := f.host.Registry["npm"]
	return []string{"npm_config_registry=" + registry + "/", "YARN_REGISTRY=" + registry, "npm_config_cache=/scratch/npm", "npm_config_audit=false",
		"npm_config_fund=false", "npm_config_update_notifier=false", "npm_config_replace_registry_host=always", "npm_config_fetch_retries=0",
		"npm_config_prefix=/scratch/global", "COREPACK_ENABLE_STRICT=0", "HUSKY=0"}
}
