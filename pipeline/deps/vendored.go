package deps

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// vendorList is what is in a module's vendor directory, as the go command wrote it.
const vendorList = "vendor/modules.txt"

// Vendored are, by directory, the changed files that package managers put into a repository:
// sources of others, of which nobody checks that they are what their versions say.
func Vendored(changed []string, before, now Files) []string {
	by := map[string][]string{}
	for _, name := range changed {
		if dir := vendorDir(name, before, now); dir != "" {
			by[dir] = append(by[dir], strings.TrimPrefix(name, dir))
		}
	}
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(by)) {
		out = append(out, dir+": "+strings.Join(most(by[dir]), ", "))
	}
	return out
}

// vendorDir is the directory of packages of others that a file is in: node_modules, or a
// vendor with the list that Go, Composer or Cargo keep of what is there; "": none.
func vendorDir(name string, states ...Files) string {
	parts := strings.Split(path.Dir(name), "/")
	for i, part := range parts {
		dir := strings.Join(parts[:i+1], "/") + "/"
		switch {
		case isExample(part):
			return ""
		case part == "node_modules":
			return dir
		case part == "vendor":
			lists := []string{dir + "modules.txt", dir + "composer/installed.json"}
			if i+1 < len(parts) {
				lists = append(lists, dir+parts[i+1]+"/.cargo-checksum.json")
			}
			for _, f := range states {
				if slices.ContainsFunc(lists, func(list string) bool { return slices.Contains(f.Paths, list) }) {
					return dir
				}
			}
		}
	}
	return ""
}

// vendored says what a change asks for that a module's vendor directory does not have. The
// packages there are sources of the repository, which nobody but a person takes over.
func vendored(e Edit, _ *finder, dir string, modules []string, _ bool) (*Lock, error) {
	mod := path.Join(dir, "go.mod")
	now, before, err := e.Both(mod)
	if err != nil {
		return nil, err
	}
	manifest, err := modfile.Parse(mod, now, nil)
	if err != nil || manifest.Module == nil {
		return nil, nil // said where manifests are read
	}
	listed, err := e.Now.Text(path.Join(dir, vendorList))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(listed), "\n")
	packages, err := imported(e, dir, modules, manifest.Module.Mod.Path)
	if err != nil {
		return nil, err
	}
	lacks := slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(lines, p) })
	for _, r := range required(dir, before, manifest) {
		line := "# " + r.Name + " " + r.Version
		if !slices.ContainsFunc(lines, func(l string) bool { return l == line || strings.HasPrefix(l, line+" ") }) {
			lacks = append(lacks, r.Name+" "+r.Version)
		}
	}
	if len(lacks) == 0 {
		return nil, nil
	}
	where := path.Join(dir, "vendor") + "/"
	return &Lock{Manager: "go", Dir: dir, Refused: fmt.Sprintf("%s has not %s, and what is vendored is not written here: `go mod vendor` needs the network. "+
		"Do with the packages that %s names and leave go.mod as it was; where the task cannot be done so, say in `unable` that a person has to run `go get` and `go mod vendor` on the branch first",
		where, strings.Join(most(lacks), ", "), path.Join(dir, vendorList))}, nil
}
