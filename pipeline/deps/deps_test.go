package deps

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/tools/txtar"

	"forge/pipeline/workspace"
)

var update = flag.Bool("update", false, "write what is wanted anew")

// whole is a server with everything.
var whole = Host{
	Tools: map[string]string{"go": "go1.26", "npm": "11", "node": "v20", "python3": "Python 3.11", "pip": "pip 23", "cargo": "cargo 1.95",
		"ruby": "ruby 3.1", "php": "PHP 8.2", "composer": "Composer version 2.5", "mvn": "Apache Maven 3.8.7"},
	Registry: map[string]string{"go": "http://127.0.0.1:4801", "npm": "http://127.0.0.1:4802", "pypi": "http://127.0.0.1:4803", "cargo": "http://127.0.0.1:4804",
		"maven":    "http://127.0.0.1:4805",
		"rubygems": "http://127.0.0.1:4806", "composer": "http://127.0.0.1:4807"},
	SumDB: "sum.example",
}

func find(t testing.TB, files map[string]string, host Host) *Recipe {
	t.Helper()
	names := slices.Sorted(maps.Keys(files))
	known := Manifests(names)
	read := func(name string) ([]byte, error) {
		if !slices.Contains(known, name) && path.Ext(name) != ".txt" && path.Ext(name) != ".whl" && path.Ext(name) != ".tgz" { // requirements may name others
			t.Errorf("%s is read by itself: add it to the manifests", name)
		}
		text, ok := files[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
	first, err := Find(names, read, Host{})
	if err != nil {
		t.Fatal(err)
	}
	known = append(known, first.Sources()...)
	r, err := Find(names, read, host)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe writes a recipe for people.
func describe(r *Recipe) string {
	var b strings.Builder
	for _, p := range r.Projects {
		fmt.Fprintf(&b, "%s: %s\n", p, strings.Join(p.Inputs, " "))
		for _, name := range p.elsewhere {
			fmt.Fprintf(&b, "  without %s\n", name)
		}
		for _, name := range p.unasked {
			fmt.Fprintf(&b, "  not asked: %s\n", name)
		}
		if p.Lacks != "" {
			fmt.Fprintf(&b, "  lacks: %s\n", p.Lacks)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.stage)) {
			fmt.Fprintf(&b, "  file %s\n", name)
			if base := path.Base(name); base != "RECORD" && path.Ext(base) != ".rb" && path.Ext(base) != ".sh" && base != "package.json" && !strings.HasPrefix(base, "go.") {
				for line := range strings.Lines(string(p.stage[name])) {
					fmt.Fprintf(&b, "    | %s\n", strings.TrimRight(line, "\n"))
				}
			}
		}
		for _, s := range p.steps {
			fmt.Fprintf(&b, "  run in %s: %s\n", s.Dir, strings.Join(s.Args, " "))
		}
		if len(p.env) > 0 {
			fmt.Fprintf(&b, "  use %s\n", strings.Join(p.env, " "))
		}
	}
	return b.String()
}

// Each file of testdata is a repository, and in "want" what is found in it.
func TestFind(t *testing.T) { // D1
	t.Parallel()
	names, _ := filepath.Glob("testdata/*.txtar")
	if len(names) < 12 {
		t.Fatalf("%d cases", len(names))
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, want, at := map[string]string{}, "", -1
			for i, f := range a.Files {
				if f.Name == "want" {
					want, at = string(f.Data), i
					continue
				}
				files[f.Name] = string(f.Data)
			}
			got := describe(find(t, files, whole))
			if *update {
				if at < 0 {
					a.Files = append(a.Files, txtar.File{Name: "want"})
					at = len(a.Files) - 1
				}
				a.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// Which package indexes are not asked is said without who signs in there.
func TestUnaskedIndexes(t *testing.T) {
	t.Parallel()
	r := find(t, map[string]string{"requirements.txt": "left\n--extra-index-url https://me:secret@pypi.acme.example/simple\n"}, whole)
	want := []string{"the server's registry is asked (pip), and not what the repository names: https://pypi.acme.example/simple"}
	if got := r.Unasked(); !slices.Equal(got, want) {
		t.Errorf("Unasked = %q, want %q", got, want)
	}
}

func TestWhatAServerLacks(t *testing.T) { // D1: said by name
	t.Parallel()
	files := map[string]string{
		"go.mod": "module m\n\nrequire x.y/z v1.0.0\n", "package.json": `{"dependencies":{"left":"1"}}`, "requirements.txt": "left\n",
		"Cargo.toml": "", "Cargo.lock": "[[package]]\nname = \"left\"\nversion = \"1\"\nsource = \"registry+https://x\"\n",
	}
	for _, c := range []struct {
		change func(*Host)
		want   []string
	}{
		{func(h *Host) { h.Tools = nil }, []string{"go: go is not installed", "npm: npm is not installed", "pip: python3 is not installed",
			"cargo: cargo is not installed"}},
		{func(h *Host) { h.Registry = nil }, []string{"go: the server lists no registry of the kind go", "npm: ", "pip: ", "cargo: "}},
		{func(h *Host) { delete(h.Tools, "pip") }, []string{"pip: pip is not installed on the server: apt-get install python3-pip"}},
		{func(*Host) {}, nil},
	} {
		host := Host{Tools: maps.Clone(whole.Tools), Registry: maps.Clone(whole.Registry)}
		c.change(&host)
		got := find(t, files, host).Lacking()
		if len(got) != len(c.want) {
			t.Errorf("lacking %q, want %q", got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("lacking %q, want %q", got[i], c.want[i])
			}
		}
	}
}

// The key changes with whatever decides the result, and with nothing else.
func TestKey(t *testing.T) { // D1
	t.Parallel()
	files := map[string]string{"go.mod": "module m\n\nrequire x.y/z v1.0.0\n", "go.sum": "a", "main.go": "package main",
		"package.json": `{"dependencies":{"left":"1"}}`, "package-lock.json": "{}"}
	key := find(t, files, whole).Key
	with := func(name, text string) map[string]string {
		m := maps.Clone(files)
		m[name] = text
		return m
	}
	for name, same := range map[string]bool{"main.go": true, "README.md": true, "vendor/x/package.json": true, "go.sum": false,
		"go.mod": false, "package-lock.json": false} {
		if got := find(t, with(name, "module m\n\nrequire x.y/z v1.0.1\n"), whole).Key; (got == key) != same {
			t.Errorf("%s changed: the key is the same: %v", name, got == key)
		}
	}
	other := whole
	other.Scripts = true
	newer := whole
	newer.Tools = map[string]string{"go": "go1.27", "npm": "11", "node": "v20", "python3": "Python 3.11", "pip": "pip 23", "cargo": "cargo 1.95"}
	for name, host := range map[string]Host{"scripts": other, "tools": newer} {
		if find(t, files, host).Key == key {
			t.Errorf("other %s, the same key", name)
		}
	}
}

// Composer's class map names the classes of a project's own files, so that it is made anew
// when a file or a class comes, and not for what a class does.
func TestKeyOfClassMap(t *testing.T) { // D1
	t.Parallel()
	key := func(text, more string) string {
		t.Helper()
		files := map[string]string{"composer.json": `{"require":{"acme/log":"1"},"autoload":{"classmap":["lib/"]}}`, "composer.lock": `{"packages":[]}`,
			"lib/old.php": text}
		if more != "" {
			files[more] = "<?php\n"
		}
		return find(t, files, whole).Key
	}
	first := key("<?php class Old { const X = 1; }", "")
	if key("<?php class Old { const X = 2; }", "src/new.php") != first {
		t.Error("another key for the same classes")
	}
	for _, k := range []string{key("<?php class Old {}\nfinal class Added {}", ""), key("<?php namespace N;\nclass Old {}", ""),
		key("<?php class Old {}", "lib/new.php")} {
		if k == first {
			t.Error("the same key for other classes")
		}
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	got := ParseTools("go go1.26.8\nnpm 11.19.1\npython3 Python 3.11.2\npip pip 23.0.1 from /usr\n\nnode \nmvn \x1b[1mApache Maven 3.9.9 (8e8579a)\x1b[m\n")
	want := map[string]string{"go": "go1.26.8", "npm": "11.19.1", "python3": "Python 3.11.2", "pip": "pip 23.0.1 from /usr", "mvn": "Apache Maven 3.9.9 (8e8579a)"}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// scripted is an installer whose commands end as they are told.
type scripted struct {
	exits map[string]workspace.Result // by the command's first words
	log   []string
}

func (s *scripted) Run(_ context.Context, c workspace.Command) (workspace.Result, error) {
	line := strings.Join(c.Args, " ")
	s.log = append(s.log, c.Dir+"$ "+line)
	for start, r := range s.exits {
		if strings.HasPrefix(line, start) {
			return r, nil
		}
	}
	return workspace.Result{Duration: time.Second}, nil
}

func (s *scripted) Stage(_ context.Context, name string, _ []byte) error {
	s.log = append(s.log, "stage "+name)
	return nil
}

func TestMake(t *testing.T) { // D1: one that fails does not keep the others away
	t.Parallel()
	files := map[string]string{"go.mod": "module m\n\nrequire x.y/z v1.0.0\n",
		"web/package.json": `{"dependencies":{"left":"1"},"workspaces":["packages/*"]}`, "web/packages/a/package.json": "{}"}
	in := &scripted{exits: map[string]workspace.Result{
		"go mod":    {Exit: 1, Stderr: []byte("go: x.y/z@v1.0.0: reading http://127.0.0.1:4801/x.y/z/@v/v1.0.0.mod: 404 Not Found\n")},
		"find node": {Stdout: []byte("node/in/web/node_modules\nnode/in/web/packages/a/node_modules\n")},
	}}
	tree, err := find(t, files, whole).Make(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.Mounts; len(got) != 10 || got[0] != (Mount{From: "node/in/web/node_modules", To: "web/node_modules"}) ||
		got[1] != (Mount{To: "web/node_modules/.cache"}) ||
		got[5] != (Mount{From: "node/in/web/packages/a/node_modules", To: "web/packages/a/node_modules"}) {
		t.Errorf("mounts: %v", got)
	}
	tree.Explain(nil, []string{"go /x.y/z/@v/v1.0.0.mod"})
	want := []string{"installed dependencies (npm in web)",
		"could not install dependencies (go): `go mod download` ended with 1: go: x.y/z@v1.0.0: reading http://127.0.0.1:4801/x.y/z/@v/v1.0.0.mod: 404 Not Found\n(no registry has go /x.y/z/@v/v1.0.0.mod)"}
	if got := tree.Summary(); !slices.Equal(got, want) {
		t.Errorf("summary: %q", got)
	}
	if !tree.Broken() || len(tree.Env) != 0 {
		t.Errorf("broken %v, env %v", tree.Broken(), tree.Env)
	}
}

// npm says first what is wrong, and how it is called last; and that a place cannot be
// reached does not say what it was wanted for.
func TestWhyNpmFailed(t *testing.T) { // D1
	t.Parallel()
	files := map[string]string{"package.json": `{"dependencies":{"left":"1","own":"github:acme/own#v1","right":"git+https://ann:secret@git.example/right"},"devDependencies":{"@acme/tool":"1"}}`,
		"package-lock.json": "{}", ".npmrc": "@acme:registry=https://npm.acme.example/\n"}
	in := &scripted{exits: map[string]workspace.Result{"npm ci": {Exit: 1, Stderr: []byte("npm error code EUSAGE\nnpm error\n" +
		"npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.\nnpm error\nnpm error Missing: left@1.0.0 from lock file\n" +
		"npm error\nnpm error Clean install a project\nnpm error\nnpm error Usage:\nnpm error npm ci\nnpm error\nnpm error Run \"npm help ci\" for more info\n")}}}
	tree, err := find(t, files, whole).Make(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"could not install dependencies (npm): `npm ci --ignore-scripts` ended with 1: npm error code EUSAGE\n" +
		"npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.\nnpm error Missing: left@1.0.0 from lock file\n" +
		"not from a registry, and nothing else is reached: own (github:acme/own#v1), right (git+https://git.example/right). Publish it where the server's registries have it, or commit it\n" +
		".npmrc takes packages of @acme from https://npm.acme.example/, which is not asked unless the server's settings list it: `registries` with `match: [\"@acme\"]`"}
	if got := tree.Summary(); !slices.Equal(got, want) {
		t.Errorf("summary: %q\nwant %q", got, want)
	}
}

// Where packages may run scripts, the repository's own do not: they want its files.
func TestOwnHooksDoNotRun(t *testing.T) { // D1
	t.Parallel()
	files := map[string]string{"package.json": `{"name":"a","scripts":{"postinstall":"node scripts/gen.js","prepare":"husky","test":"tap"},"dependencies":{"left":"1"},"workspaces":["b"]}`,
		"b/package.json": `{"name":"b","scripts":{"install":"node-gyp rebuild"}}`}
	host := whole
	host.Scripts = true
	p := find(t, files, host).Projects[0]
	for name, want := range map[string]string{"node/top/package.json": `{"dependencies":{"left":"1"},"name":"a","scripts":{"test":"tap"},"workspaces":["b"]}`,
		"node/top/b/package.json": `{"name":"b","scripts":{}}`} {
		if got := string(p.stage[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// What no registry has is said, with who signs in there left out.
func TestElsewhereIsSaid(t *testing.T) { // D1
	t.Parallel()
	files := map[string]string{"requirements.txt": "left\nown @ git+https://ann:secret@git.example/own\n"}
	r := find(t, files, whole)
	want := []string{"pip: not from a registry, and nothing else is reached: own @ git+https://git.example/own. Publish it where the server's registries have it, or commit it"}
	if got := r.Lacking(); !slices.Equal(got, want) || r.Empty() {
		t.Errorf("lacking: %q", got)
	}
}

// Where every module that go.mod asks for is a directory of the repository, nothing is downloaded,
// and what tidies up finds nothing to remove.
func TestNothingDownloaded(t *testing.T) { // D1
	t.Parallel()
	files := map[string]string{"go.mod": "module m\n\nrequire x.y/z v0.0.0\n\nreplace x.y/z => ./z\n", "z/go.mod": "module x.y/z\n"}
	dir, ran := t.TempDir(), 0
	for _, p := range find(t, files, whole).Projects {
		for _, step := range p.steps {
			if step.Args[0] == "go" {
				continue
			}
			ran++
			for i := range step.Args {
				step.Args[i] = strings.ReplaceAll(step.Args[i], root+"/", dir+"/")
			}
			if out, err := exec.Command(step.Args[0], step.Args[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%q: %v: %s", step.Args, err, out)
			}
		}
	}
	if ran != 1 {
		t.Errorf("%d commands tidy up, want 1", ran)
	}
}

func TestPoetryRanges(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"^1.2.3": ">=1.2.3,<2", "^0.2.3": ">=0.2.3,<0.3", "^0.0.3": ">=0.0.3,<0.0.4", "^1": ">=1,<2", "~1.2.3": ">=1.2.3,<1.3", "~1": ">=1,<2",
		"*": "", "": "", "1.2.3": "==1.2.3", ">=1,<3": ">=1,<3", "^0.0": ">=0.0,<0.1", "~=1.4": "~=1.4",
	} {
		if got := poetryRange(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, text := range []string{"module m\nrequire (\n\tx v1\n)", `{"workspaces":{"packages":["**","!x"]}}`,
		"-r requirements.txt\n-e .\nleft==1", "[project]\ndependencies=['a']", "go 1.22\nuse (\n./a\n)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := map[string]string{}
		for _, name := range []string{"go.mod", "go.work", "a/go.mod", "package.json", "a/package.json", "package-lock.json",
			"pnpm-workspace.yaml", ".npmrc", "requirements.txt", "pyproject.toml", "poetry.lock", "setup.cfg", "Cargo.lock", "Cargo.toml"} {
			files[name] = text
		}
		for _, p := range find(t, files, whole).Projects {
			for name := range p.stage {
				if path.IsAbs(name) || strings.HasPrefix(path.Clean(name), "..") {
					t.Errorf("%q leaves the tree", name)
				}
			}
		}
	})
}

// Maven also reads poms that are not in UTF-8: what is not understood is not handed to it.
func TestPomInAnotherEncoding(t *testing.T) {
	t.Parallel()
	pom := utf16.Encode([]rune("\ufeff<project><build><extensions><extension><artifactId>x</artifactId></extension></extensions></build></project>"))
	var text []byte
	for _, c := range pom {
		text = binary.BigEndian.AppendUint16(text, c)
	}
	if kept, runs := (&finder{}).pom(text); len(kept) > 0 || runs != "" {
		t.Errorf("kept %q, runs %q", kept, runs)
	}
}
