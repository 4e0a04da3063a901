package deps

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// vendorList is what is in a module's vendor directory, as the go command wrote it.
const vendorList = "vendor/modules.txt"

// vendored says what a change asks for that a module's vendor directory does not have. The
// packages there are sources of the repository, which nobody but a person takes over.
func vendored(e Edit, _ *finder, dir string, modules []string) (*Lock, error) {
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
