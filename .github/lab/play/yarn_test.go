package play

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
)

// yarn publishes programs of Yarn 2 and newer as the machine's own registry has them.
func (p *packages) yarn(t *testing.T, versions ...string) {
	t.Helper()
	known := map[string]any{}
	for _, v := range versions {
		dir := t.TempDir()
		pack := exec.CommandContext(t.Context(), "npm", "pack", "--json", "@yarnpkg/cli-dist@"+v)
		pack.Dir = dir
		if out, err := pack.CombinedOutput(); err != nil {
			t.Skipf("needs @yarnpkg/cli-dist@%s from the registry of npm: %v\n%s", v, err, out)
		}
		file := "yarnpkg-cli-dist-" + v + ".tgz"
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		at := "/@yarnpkg/cli-dist/-/cli-dist-" + v + ".tgz"
		p.files[at] = string(text)
		known[v] = map[string]any{"name": "@yarnpkg/cli-dist", "version": v, "bin": map[string]string{"yarn": "./bin/yarn.js"}, "dist": map[string]string{"tarball": "REGISTRY" + at}}
	}
	text, err := json.Marshal(map[string]any{"name": "@yarnpkg/cli-dist", "dist-tags": map[string]string{"latest": versions[0]}, "versions": known})
	if err != nil {
		t.Fatal(err)
	}
	p.files["/@yarnpkg%2fcli-dist"] = string(text)
	p.files["/@yarnpkg/cli-dist"] = string(text)
}

// yarnProject is a project of two workspaces, one of which needs left, with the lock file that its
// own version of Yarn writes.
func (p *packages) yarnProject(t *testing.T, version string) map[string]string {
	t.Helper()
	files := map[string]string{
		"package.json":            fmt.Sprintf(`{"name":"web","private":true,"packageManager":"yarn@%s","workspaces":["packages/*"]}`, version) + "\n",
		"packages/a/package.json": `{"name":"a","version":"1.0.0","main":"index.js","dependencies":{"left":"^1.0.0"}}` + "\n",
		"packages/a/index.js":     "module.exports = require('left')\n",
		"packages/b/package.json": `{"name":"b","version":"1.0.0","dependencies":{"a":"workspace:*"}}` + "\n",
		"packages/b/index.js":     "console.log(require('a')())\n",
		".yarnrc.yml":             "nodeLinker: node-modules\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock := exec.CommandContext(t.Context(), "npm", "exec", "--yes", "--package=@yarnpkg/cli-dist@"+version, "--", "yarn", "install", "--mode=skip-build")
	if strings.HasPrefix(version, "2.") {
		lock.Args[len(lock.Args)-1] = "--skip-builds"
	}
	lock.Dir = dir
	lock.Env = append(os.Environ(), "npm_config_registry="+p.URL+"/", "npm_config_cache="+t.TempDir(), "YARN_NPM_REGISTRY_SERVER="+p.URL, "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1",
		"YARN_ENABLE_TELEMETRY=0", "YARN_GLOBAL_FOLDER="+t.TempDir(), "YARN_ENABLE_IMMUTABLE_INSTALLS=false")
	if out, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("yarn %s: %v\n%s", version, err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "yarn.lock"))
	if err != nil {
		t.Fatal(err)
	}
	files["yarn.lock"] = string(text)
	return files
}

// Covers D1 for Yarn 2, 3 and 4, with the real program of each: workspaces are installed through the
// gateway by the version that wrote the lock file. The tests run offline, and a second run asks no
// registry.
func TestDependenciesOfYarn(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	p.nodePackage(t)
	versions := map[string]string{"web": "4.9.2", "old": "3.8.7", "older": "2.4.2"}
	p.yarn(t, slices.Collect(maps.Values(versions))...)
	script := "echo TAP version 13; echo 1..4\n" +
		`if [ "$(sh greet.sh Ann)" = "hello, Ann" ] || [ "$(sh greet.sh Ann)" = "hello Ann" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi` + "\n"
	files := map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\n", ".gitignore": "node_modules/\n"}
	for i, dir := range slices.Sorted(maps.Keys(versions)) {
		for name, text := range p.yarnProject(t, versions[dir]) {
			files[dir+"/"+name] = text
		}
		script += fmt.Sprintf("if [ \"$(cd %s/packages/b && node index.js)\" = hello ]; then echo ok %d - %s; else echo not ok %d - %s; fi\n", dir, i+2, dir, i+2, dir)
	}
	files["test.sh"] = script
	p.twice(newServer(t, p.options(files)), 1, func(tests *pipeline.TestReport) bool {
		return tests.Passed == 4 && tests.Failed == 0 && tests.Setup[0] == "installed dependencies (yarn in old, yarn in older, yarn in web)"
	})
}
