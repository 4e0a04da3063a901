package play

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/needs"
)

// gem publishes a gem, made by RubyGems itself, and returns its line for CHECKSUMS.
func (p *packages) gem(t *testing.T, name, more string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		name + ".gemspec":     fmt.Sprintf("Gem::Specification.new { |s| s.name = %q; s.version = '1.0.0'; s.summary = s.author = 'x'; s.files = Dir['lib/*', 'ext/*', 'bin/*']; %s }\n", name, more),
		"lib/" + name + ".rb": "module " + strings.ToUpper(name[:1]) + name[1:] + "; def self.greeting = 'hello'; end\n",
		"bin/" + name:         "#!/usr/bin/env ruby\nrequire '" + name + "'\nputs 'program of " + name + "'\n",
		"ext/extconf.rb":      "File.write('/deps/ran', 'x')\nrequire 'mkmf'\ncreate_makefile('native')\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("gem", "build", "--silent", name+".gemspec")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gem build: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, name+"-1.0.0.gem"))
	if err != nil {
		t.Fatal(err)
	}
	p.files["/gems/"+name+"-1.0.0.gem"] = string(data)
	info := fmt.Sprintf("---\n1.0.0 |checksum:%x\n", sha256.Sum256(data))
	p.files["/info/"+name] = info
	p.files["/versions"] = fmt.Sprintf("created_at: 2026-01-01T00:00:00Z\n---\n%s 1.0.0 %x\n", name, md5.Sum([]byte(info)))
	return fmt.Sprintf("  %s (1.0.0) sha256=%x\n", name, sha256.Sum256(data))
}

// gemLock locks gems of that name.
func gemLock(sums string, names ...string) string {
	var specs, wants strings.Builder
	for _, n := range names {
		fmt.Fprintf(&specs, "    %s (1.0.0)\n", n)
		fmt.Fprintf(&wants, "  %s (= 1.0.0)\n", n)
	}
	return "GEM\n  remote: https://gems.elsewhere.example/\n  specs:\n" + specs.String() + "\nPLATFORMS\n  ruby\n  x86_64-linux\n  aarch64-linux\n\nDEPENDENCIES\n" + wants.String() +
		"\nCHECKSUMS\n" + sums + "\nBUNDLED WITH\n   2.3.7\n"
}

// archive publishes a package for Composer, and returns what a lock file says of it.
func (p *packages) archive(t *testing.T, name string) string {
	t.Helper()
	class := strings.ToUpper(name[:1]) + name[1:]
	about := fmt.Sprintf(`"name":"acme/%s","version":"1.0.0","type":"library","autoload":{"psr-4":{"Acme\\":"src/"}},"bin":["bin/%[1]s"]`, name)
	p.files["/packages.json"] = `{"packages":[],"metadata-url":"/meta/%package%.json"}`
	p.files["/meta/acme/"+name+".json"] = `{"packages":{"acme/` + name + `":[{` + about + `,"dist":{"type":"zip","url":"REGISTRY/zipball/abc","reference":"abc","shasum":""}}]}}`
	p.files["/zipball/abc"] = zipped(t, map[string]string{
		"x/composer.json": "{" + about + "}", "x/src/" + class + ".php": "<?php namespace Acme; class " + class + " { static function greeting() { return 'hello'; } }\n",
		"x/bin/" + name: "#!/usr/bin/env php\n<?php require $GLOBALS['_composer_autoload_path']; echo Acme\\" + class + "::greeting(), \"\\n\";\n"})
	return `{` + about + `,"source":{"type":"git","url":"https://elsewhere.example/x.git","reference":"abc"},"dist":{"type":"zip","url":"https://elsewhere.example/zipball/abc","reference":"abc","shasum":""}}`
}

// needMore skips where Ruby and PHP are not installed.
func needMore(t *testing.T) {
	t.Helper()
	needTools(t)
	needs.Tools(t, "bundle", "ruby", "composer", "unzip")
}

// Covers D1 for Ruby and PHP, with the real clients: gems and packages come through the
// gateway from where registries say they are, and the tests use them offline, by Bundler and
// by Composer's class loader.
func TestDependenciesOfRubyAndPHP(t *testing.T) {
	t.Parallel()
	needMore(t)
	p := newPackages(t)
	sums := p.gem(t, "left", "s.executables = ['left']; s.bindir = 'bin'")
	files := map[string]string{
		"test.sh": `echo TAP version 13; echo 1..5
if [ "$(sh greet.sh Ann)" = "hello, Ann" ] || [ "$(sh greet.sh Ann)" = "hello Ann" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi
if bundle exec ruby -e 'require "left"; exit Left.greeting == "hello"'; then echo ok 2 - bundler; else echo not ok 2 - bundler; fi
if [ "$(bundle exec left)" = "program of left" ]; then echo ok 3 - a program of a gem; else echo not ok 3 - a program of a gem; fi
if (cd php && php -r 'require "vendor/autoload.php"; exit(Acme\Left::greeting() . (new Mapped)->x == "hello1" ? 0 : 1);'); then echo ok 4 - composer; else echo not ok 4 - composer; fi
if (cd php && [ "$(vendor/bin/left)" = hello ]); then echo ok 5 - a program of a package; else echo not ok 5 - a program of a package; fi
`,
		".github/forge.yml":  "tests:\n  commands: [sh test.sh]\n",
		"Gemfile":            "source 'https://gems.elsewhere.example'\ngem 'left', '1.0.0'\n",
		"Gemfile.lock":       gemLock(sums, "left"),
		"php/composer.json":  `{"name":"acme/app","require":{"acme/left":"1.0.0"},"autoload":{"classmap":["lib/"]}}`,
		"php/composer.lock":  `{"packages":[` + p.archive(t, "left") + `],"packages-dev":[],"aliases":[],"minimum-stability":"stable","stability-flags":[],"platform":[],"platform-dev":[]}`,
		"php/lib/mapped.php": "<?php class Mapped { public $x = 1; }\n",
	}
	o := p.options(files)
	inner := o.Wire
	o.Wire = func(w *server.Options) {
		inner(w)
		for _, kind := range []string{"rubygems", "composer"} {
			w.Config.Registries = append(w.Config.Registries, settings.Registry{Name: kind, Kind: kind, URL: p.URL, Private: true})
		}
	}
	ts := newServer(t, o)
	for round := range 2 {
		asked := len(p.requests())
		labelInRound(ts, round, "Greet again")
		run, ok := ts.Within(3*time.Minute, func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State != pipeline.StateRunning })
		if !ok || run.State != pipeline.StateVerified {
			t.Fatalf("round %d: %s: %+v\n%s", round, run.State, run.Gates, ts.Comments())
		}
		tests := run.Current().Tests
		said := strings.Join(tests.Setup, "\n")
		if tests.Passed != 5 || !strings.Contains(said, "installed dependencies (bundler, composer in php)") {
			t.Errorf("round %d: %d passed, setup: %s", round, tests.Passed, said)
		}
		more := p.requests()[asked:]
		for _, want := range []string{"/gems/left-1.0.0.gem", "/meta/acme/left.json", "/zipball/abc"} {
			if slices.Contains(more, want) != (round == 0) {
				t.Errorf("round %d asked for %q", round, more)
			}
		}
	}
}

// fromPyPI publishes a package for this machine as PyPI has it.
func (p *packages) fromPyPI(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", dir, name).CombinedOutput(); err != nil {
		t.Skipf("needs %s from PyPI: %v\n%s", name, err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("pip downloaded %q: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	wheel := filepath.Base(files[0])
	p.files["/simple/"+name+"/"] = fmt.Sprintf(`<html><body><a href="../../files/%s">%[1]s</a></body></html>`, wheel)
	p.files["/files/"+wheel] = string(text)
}

// Of a Python lock file, packages that are not what it says are refused, and those of other
// systems are not asked for.
func TestPythonLockIsHeld(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	p.pythonPackage(t)
	p.fromPyPI(t, "uv")
	sum := sha256.Sum256([]byte(p.files["/files/left-1.0.0-py3-none-any.whl"]))
	files := map[string]string{}
	for dir, sum := range map[string]string{"good": hex.EncodeToString(sum[:]), "bad": strings.Repeat("0", 64)} {
		files[dir+"/pyproject.toml"] = "[project]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\"left\", \"winonly ; sys_platform == 'win32'\"]\n"
		files[dir+"/uv.lock"] = fmt.Sprintf(`version = 1
requires-python = ">=3.8"

[[package]]
name = "app"
version = "0.1.0"
source = { virtual = "." }
dependencies = [{ name = "left" }, { name = "winonly", marker = "sys_platform == 'win32'" }]

[[package]]
name = "left"
version = "1.0.0"
source = { registry = "https://pypi.elsewhere.example/simple" }
wheels = [{ url = "https://elsewhere.example/left-1.0.0-py3-none-any.whl", hash = "sha256:%s" }]

[[package]]
name = "winonly"
version = "3.0.0"
source = { registry = "https://pypi.elsewhere.example/simple" }
wheels = [{ url = "https://elsewhere.example/winonly-3.0.0-py3-none-any.whl", hash = "sha256:%[1]s" }]
`, sum)
	}
	ts := newServer(t, p.options(files))
	ts.Label("acme")
	run, ok := ts.Within(3*time.Minute, func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if !ok || run.Current() == nil || run.Current().Tests == nil {
		t.Fatalf("%s: %+v\n%s", run.State, run.Gates, ts.Comments())
	}
	said := strings.Join(run.Current().Tests.Setup, "\n")
	for _, want := range []string{"installed dependencies (pip in good)", "could not install dependencies (pip in bad): ", "DO NOT MATCH THE HASHES", "left"} {
		if !strings.Contains(said, want) {
			t.Errorf("setup lacks %q:\n%s", want, said)
		}
	}
	if asked := p.requests(); slices.ContainsFunc(asked, func(path string) bool { return strings.Contains(path, "winonly") }) {
		t.Errorf("asked for %q", asked)
	}
}

// Packages that a repository has as files are installed from there, and no registry is asked for them.
func TestPackagesAsFiles(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	p.pythonPackage(t)
	p.nodePackage(t)
	ts := newServer(t, p.options(map[string]string{
		"py/requirements.txt":                   "./wheels/left-1.0.0-py3-none-any.whl\n",
		"py/wheels/left-1.0.0-py3-none-any.whl": p.files["/files/left-1.0.0-py3-none-any.whl"],
		"web/package.json":                      `{"name":"web","dependencies":{"left":"file:libs/left-1.0.0.tgz"}}`,
		"web/libs/left-1.0.0.tgz":               p.files["/left/-/left-1.0.0.tgz"],
		".github/forge.yml":                     "tests:\n  commands: [sh test.sh]\n",
		"test.sh": `echo TAP version 13; echo 1..2
if (cd web && node -e 'require("left")()'); then echo ok 1 - node; else echo not ok 1 - node; fi
if (cd py && python3 -c 'import left; left.greeting()'); then echo ok 2 - python; else echo not ok 2 - python; fi
`,
	}))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if tests := run.Current().Tests; tests.Passed != 2 || !slices.Equal(tests.Setup, []string{"installed dependencies (npm in web, pip in py)"}) {
		t.Errorf("%d tests passed, setup: %q", tests.Passed, tests.Setup)
	}
	if asked := p.requests(); slices.ContainsFunc(asked, func(path string) bool { return strings.Contains(path, "left") }) {
		t.Errorf("asked for %q", asked)
	}
}
