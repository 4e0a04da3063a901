package deps

import (
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// source is where the work tree is while its dependencies are installed.
const source = "/work"

// inTree are settings by which a repository's packages are in it.
var inTree = lazyregexp.New(`(?m)^\s*(?:directory|local-registry)\s*=`)

// cargo finds Rust packages with a lock file. They share one home, and are fetched from
// there: in the repository, cargo would obey its settings, which name programs, and
// rustup its toolchain.
func (f *finder) cargo() ([]*Project, error) {
	var out []*Project
	for _, dir := range f.dirs("Cargo.lock") {
		manifest := path.Join(dir, "Cargo.toml")
		if !f.has[manifest] {
			continue
		}
		lock, err := f.read(path.Join(dir, "Cargo.lock"))
		if err != nil {
			return nil, err
		}
		table, err := readTOML[struct {
			Package []struct{ Name, Source string }
		}](lock)
		if isRefused(err) {
			p := &Project{Manager: "cargo", Dir: dir, Inputs: []string{path.Join(dir, "Cargo.lock")}}
			p.unreadable("Cargo.lock", err)
			out = append(out, p)
		}
		if err != nil {
			continue // cargo says so
		}
		remote, vendored, err := false, false, error(nil)
		var elsewhere []string
		for _, p := range table.Package {
			remote = remote || p.Source != ""
			if strings.HasPrefix(p.Source, "git+") {
				elsewhere = append(elsewhere, p.Name+" ("+p.Source+")")
			}
		}
		if vendored, err = f.cargoVendored(dir); err != nil {
			return nil, err
		}
		if !remote || vendored {
			continue
		}
		p := &Project{Manager: "cargo", Dir: dir, Inputs: []string{path.Join(dir, "Cargo.lock"), manifest}, Lacks: f.lacks("cargo", "cargo", "install Rust")}
		env := []string{"CARGO_HOME=" + root + "/cargo"}
		p.stage = map[string][]byte{"cargo/config.toml": []byte("[source.crates-io]\nreplace-with = \"gateway\"\n\n[source.gateway]\nregistry = \"sparse+" +
			f.host.Registry["cargo"] + "/\"\n")}
		if len(elsewhere) > 0 {
			p.hints = []string{notOfRegistries(elsewhere)}
		}
		p.steps = []workspace.Command{{Dir: root + "/cargo", Env: env, Timeout: timeout,
			Args: []string{"cargo", "fetch", "--locked", "--manifest-path=" + path.Join(source, manifest)}}}
		p.env = append(env, "CARGO_NET_OFFLINE=true")
		out = append(out, p)
	}
	return out, nil
}

// cargoVendored reports whether a repository's settings say that its packages are in it.
func (f *finder) cargoVendored(dir string) (bool, error) {
	for _, at := range []string{dir, "."} {
		for _, name := range f.existing(at, ".cargo/config.toml", ".cargo/config") {
			text, err := f.read(name)
			if err != nil {
				return false, err
			}
			if inTree.Match(text) {
				return true, nil
			}
		}
	}
	return false, nil
}
