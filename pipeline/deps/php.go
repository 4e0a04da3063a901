package deps

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// composerManifest is what of a composer.json decides how packages are laid.
type composerManifest struct {
	Require    map[string]string `json:"require"`
	RequireDev map[string]string `json:"require-dev"`
	Autoload   composerAutoload  `json:"autoload"`
	Dev        composerAutoload  `json:"autoload-dev"`
	Config     map[string]any    `json:"config"`
}

type composerAutoload struct {
	Classmap []string `json:"classmap"`
}

// Of a composer.json, and of its config, what is kept: nothing that names a program, another
// registry, or makes the class loader from sources that are not there.
var (
	composerKept = []string{"name", "type", "require", "require-dev", "autoload", "autoload-dev", "minimum-stability", "prefer-stable",
		"provide", "replace", "conflict", "extra"}
	composerConfigKept = []string{"platform", "platform-check", "vendor-dir", "bin-dir", "allow-plugins", "autoloader-suffix", "prepend-autoloader",
		"use-include-path", "bin-compat"}
)

// php finds projects with a composer.json that need packages.
func (f *finder) php() ([]*Project, error) {
	var out []*Project
	for _, dir := range f.dirs("composer.json") {
		text, err := f.read(path.Join(dir, "composer.json"))
		if err != nil {
			return nil, err
		}
		m, err := decode[composerManifest](text)
		if isRefused(err) {
			p := &Project{Manager: "composer", Dir: dir, Inputs: f.existing(dir, "composer.json")}
			p.unreadable("composer.json", err)
			out = append(out, p)
		}
		if err != nil || !m.needs() || f.has[path.Join(dir, "vendor/autoload.php")] {
			continue
		}
		p := &Project{Manager: "composer", Dir: dir, Inputs: f.existing(dir, "composer.json", "composer.lock"), tree: slot("composer", dir)}
		out = append(out, p)
		if !f.has[path.Join(dir, "composer.lock")] {
			p.Lacks = "there is no composer.lock, which says where packages are: commit it, or name `composer update` under setup.commands"
			continue
		}
		lock, err := f.read(path.Join(dir, "composer.lock"))
		if err != nil {
			return nil, err
		}
		f.composed(p, text, lock, &m)
	}
	return out, nil
}

// needs reports whether anything but PHP itself is asked for.
func (m *composerManifest) needs() bool {
	for _, list := range []map[string]string{m.Require, m.RequireDev} {
		for name := range list {
			if strings.Contains(name, "/") {
				return true
			}
		}
	}
	return false
}

// composed says how what a lock file names is installed.
func (f *finder) composed(p *Project, manifest, lock []byte, m *composerManifest) {
	dirs := f.classmap(p, m)
	if p.Lacks = f.lacks("composer", "composer", "install PHP with Composer"); p.Lacks != "" {
		return
	}
	vendor, ok := m.Config["vendor-dir"].(string)
	if !ok {
		vendor = "vendor"
	}
	if vendor = path.Clean(vendor); path.IsAbs(vendor) || vendor == "." || strings.HasPrefix(vendor, "..") {
		p.Lacks = "its vendor-dir is not within the project"
		return
	}
	p.shown = []string{vendor}
	bin, own := m.Config["bin-dir"].(string)
	if bin = path.Clean(bin); own && !below(bin, vendor) && !path.IsAbs(bin) && bin != "." && !strings.HasPrefix(bin, "..") &&
		!slices.ContainsFunc(f.files, func(name string) bool { return below(name, path.Join(p.Dir, bin)) }) {
		p.shown = append(p.shown, bin)
	} else if own && !below(bin, vendor) {
		own = false // what the repository has there would be hidden
	}
	locked, lacks := f.composerLock(lock)
	if p.Lacks = lacks; lacks != "" {
		return
	}
	p.stage = map[string][]byte{path.Join(p.tree, "composer.json"): f.composerManifest(manifest, own), path.Join(p.tree, "composer.lock"): locked}
	home := path.Join(root, p.tree)
	if len(dirs) > 0 { // Composer looks for the classes in there
		p.steps = append(p.steps, workspace.Command{Dir: p.Dir, Timeout: timeout,
			Args: slices.Concat([]string{"cp", "-r", "--parents", "--"}, dirs, []string{home})})
	}
	args := []string{"composer", "install", "--no-scripts", "--no-progress", "--prefer-dist"}
	if !f.host.Scripts {
		args = append(args, "--no-plugins")
	}
	p.steps = append(p.steps, workspace.Command{Dir: home, Timeout: timeout, Args: args, Env: []string{"COMPOSER_HOME=/scratch/composer",
		"COMPOSER_CACHE_DIR=/scratch/composer/cache", "COMPOSER_NO_INTERACTION=1", "COMPOSER_ALLOW_SUPERUSER=1", "COMPOSER_DISABLE_XDEBUG_WARN=1",
		"COMPOSER_NO_AUDIT=1"}})
}

// classmap are the files and directories of the project that the class loader names file by file.
func (f *finder) classmap(p *Project, m *composerManifest) []string {
	var dirs []string
	for _, name := range slices.Concat(m.Autoload.Classmap, m.Dev.Classmap) {
		dir := path.Clean(name)
		if path.IsAbs(dir) || dir == "." || strings.HasPrefix(dir, "..") || strings.ContainsAny(dir, "*") || slices.Contains(dirs, dir) {
			continue
		}
		at, there := path.Join(p.Dir, dir), false
		for _, file := range f.files {
			if below(file, at) {
				there = true
				p.classes = append(p.classes, file)
			}
		}
		if there {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// phpNames are all names that a file of PHP declares, and some words more.
var phpNames = lazyregexp.New(`(?i)\b(?:namespace|class|interface|trait|enum)\s+[^\s{;(]+`)

// declared writes what the class loader is made from.
func (f *finder) declared(p *Project, to io.Writer) error {
	if p.Lacks != "" {
		return nil
	}
	for _, name := range p.classes {
		text, err := f.read(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		fmt.Fprintf(to, "%q %q\n", name, phpNames.FindAll(text, -1))
	}
	return nil
}

// composerManifest is a composer.json as Composer is given it, with its own directory for programs or not.
func (f *finder) composerManifest(text []byte, bin bool) []byte {
	all, _ := decode[map[string]any](text)
	kept := pick(all, composerKept)
	config, _ := all["config"].(map[string]any)
	own := pick(config, composerConfigKept)
	if !bin {
		delete(own, "bin-dir")
	}
	own["secure-http"] = false // the gateway's side of it is this machine
	kept["config"] = own
	kept["repositories"] = []any{map[string]any{"packagist.org": false}}
	out, _ := json.Marshal(kept) // of what was JSON
	return out
}

// composerLock leads a lock file to the gateway. lacks says what in it no registry has.
func (f *finder) composerLock(text []byte) (out []byte, lacks string) {
	lock, err := decode[map[string]any](text)
	if isRefused(err) {
		return nil, "composer.lock cannot be read: " + err.Error()
	}
	if err != nil {
		return text, "" // Composer says so
	}
	for _, key := range []string{"packages", "packages-dev"} {
		list, _ := lock[key].([]any)
		for _, one := range list {
			pkg, _ := one.(map[string]any)
			if pkg == nil || pkg["type"] == "metapackage" {
				continue
			}
			name, _ := pkg["name"].(string)
			dist, _ := pkg["dist"].(map[string]any)
			reference, _ := dist["reference"].(string)
			if dist["type"] == "path" {
				return nil, name + " is a directory of the repository: name `composer install` under setup.commands"
			}
			if reference == "" {
				return nil, name + " has no archive in composer.lock: take a released version, or name commands under setup"
			}
			dist["url"] = f.host.Registry["composer"] + "/-/dist/" + name + "/" + reference
			delete(dist, "mirrors")
			delete(pkg, "source")
			delete(pkg, "transport-options")
			delete(pkg, "notification-url")
		}
	}
	out, _ = json.Marshal(lock)
	return out, ""
}

// pick are some keys of a map.
func pick(from map[string]any, keys []string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		if v, ok := from[key]; ok {
			out[key] = v
		}
	}
	return out
}
