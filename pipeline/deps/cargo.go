package deps

import (
	"path"

	"forge/pipeline/worktree"
)

// cargo finds Rust packages with a lock file. They share one home.
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
			Package []struct{ Source string }
		}](lock)
		if err != nil {
			continue // cargo says so
		}
		remote := false
		for _, p := range table.Package {
			remote = remote || p.Source != ""
		}
		if !remote {
			continue
		}
		p := &Project{Manager: "cargo", Dir: dir, Inputs: []string{path.Join(dir, "Cargo.lock"), manifest}, Lacks: f.lacks("cargo", "cargo", "install Rust")}
		env := []string{"CARGO_HOME=" + root + "/cargo"}
		p.stage = map[string][]byte{"cargo/config.toml": []byte("[source.crates-io]\nreplace-with = \"gateway\"\n\n[source.gateway]\nregistry = \"sparse+" +
			f.host.Registry["cargo"] + "/\"\n")}
		p.steps = []worktree.Command{{Dir: dir, Args: []string{"cargo", "fetch", "--locked"}, Env: env, Timeout: timeout}}
		p.env = append(env, "CARGO_NET_OFFLINE=true")
		out = append(out, p)
	}
	return out, nil
}
