package deps

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/lock"
	"forge/pipeline/workspace"
)

// edit is a change of files that were the same at the base.
func edit(before, now map[string]string) Edit {
	at := func(files map[string]string) Files {
		return Files{Paths: slices.Sorted(maps.Keys(files)), Read: func(name string) ([]byte, error) {
			text, ok := files[name]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}}
	}
	e := Edit{Before: at(before), Base: at(before)}
	all := maps.Clone(before)
	for name, text := range now {
		all[name] = text
		if was, ok := before[name]; !ok || was != text {
			e.Changed = append(e.Changed, name)
		}
	}
	slices.Sort(e.Changed)
	e.Now = at(all)
	return e
}

const (
	goMod    = "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.0.0\n"
	lockOne  = `{"lockfileVersion":2,"packages":{"":{},"node_modules/left":{"version":"1.0.0","resolved":"https://npm.acme.example/root/left/-/left-1.0.0.tgz"}}}`
	yarnOne  = "left@1.0.0:\n  version \"1.0.0\"\n  resolved \"https://registry.yarnpkg.com/left/-/left-1.0.0.tgz#aa\"\n"
	berryOne = "__metadata:\n  version: 8\n\n\"left@npm:1.0.0\":\n  version: 1.0.0\n  resolution: \"left@npm:1.0.0\"\n"
)

// Covers D1: what a lock file lacks is found where it can be lacking, and nothing is run
// for what no registry has.
func TestFindLocks(t *testing.T) {
	t.Parallel()
	node := func(asks string) map[string]string {
		return map[string]string{"package.json": `{"dependencies":{` + asks + `}}`}
	}
	npm := map[string]string{"package.json": `{"dependencies":{"left":"1.0.0"}}`, "package-lock.json": lockOne}
	module := map[string]string{"go.mod": goMod, "a.go": "package a\n\nimport _ \"example.com/left\"\n"}
	for _, tt := range []struct {
		name        string
		before, now map[string]string
		want        string // what is found, with what is checked before or why it is refused
	}{
		{"a module is required", module, map[string]string{"go.mod": goMod + "require example.com/right v1.0.0\n"}, "go: ./..."},
		{"a package is imported", module, map[string]string{"b.go": "package a\n\nimport (\n\t\"fmt\"\n\t_ \"example.com/app/in\"\n\t\"example.com/right/deep\"\n)\n"}, "go: example.com/right/deep"},
		{"a package is imported as before", module, map[string]string{"a.go": "package a\n\nimport _ \"example.com/left\"\n\nvar B int\n"}, ""},
		{"in the module beneath", map[string]string{"go.mod": goMod, "sub/go.mod": "module example.com/sub\n"}, map[string]string{"sub/b.go": "package a\n\nimport _ \"example.com/right\"\n"},
			"go in sub: example.com/right"},
		{"a module takes it from its directory", map[string]string{"a/go.mod": "module example.com/a\n", "app/go.mod": goMod + "replace example.com/b => ../b\n", "b/go.mod": "module example.com/b\n\nreplace example.com/a => ../a\n", "c/go.mod": "module example.com/c\n"},
			map[string]string{"a/go.mod": "module example.com/a\n\nrequire example.com/right v1.0.0\n"}, "go in a: ./...; go in b: ./...; go in app: ./..."},
		{"packages are in the repository", map[string]string{"go.mod": goMod, "vendor/modules.txt": ""}, map[string]string{"go.mod": goMod + "\nretract v0.1.0\n"}, ""},
		{"a package is asked for", npm, node(`"left":"1.0.0","right":"^1"`), "npm"},
		{"without a lock file", map[string]string{"package.json": "{}"}, node(`"right":"1"`), ""},
		{"scripts alone", npm, map[string]string{"package.json": `{"scripts":{"test":"node"},"dependencies":{"left":"1.0.0"}}`}, ""},
		{"a git repository", npm, node(`"left":"1.0.0","right":"acme/right"`), "npm: refused right (acme/right)"},
		{"a git address", npm, node(`"right":"git+ssh://me:secret@host/right.git"`), "npm: refused right (git+ssh://host/right.git)"},
		{"another host", npm, node(`"right":"https://evil.example/right.tgz"`), "npm: refused right (https://evil.example/right.tgz)"},
		{"code that is run", npm, node(`"right":"exec:./right.js"`), "npm: refused right (exec:./right.js)"},
		{"outside of the repository", npm, node(`"right":"file:../../etc"`), "npm: refused right (file:../../etc)"},
		{"an absolute path", npm, node(`"right":"link:/etc"`), "npm: refused right (link:/etc)"},
		{"a directory of the repository", npm, node(`"right":"file:./right"`), "npm"},
		{"another name", npm, node(`"right":"npm:@acme/left@^1.0.0 || 2.x"`), "npm"},
		{"what was there is not asked about", map[string]string{"package.json": `{"dependencies":{"left":"acme/left"}}`, "package-lock.json": lockOne}, node(`"left":"acme/left","right":"1"`), "npm"},
		{"an override", npm, map[string]string{"package.json": `{"dependencies":{"left":"1.0.0"},"overrides":{"left":{"deep":"acme/deep"}}}`}, "npm: refused left>deep (acme/deep)"},
		{"pnpm's override", map[string]string{"package.json": "{}", "pnpm-lock.yaml": "lockfileVersion: '9.0'\n"},
			map[string]string{"package.json": `{"dependencies":{"left":"1"},"pnpm":{"overrides":{"deep":"acme/deep"}}}`}, "pnpm: refused deep (acme/deep)"},
		{"a workspace's package", map[string]string{"package.json": `{"workspaces":["p/*"]}`, "p/a/package.json": "{}", "yarn.lock": yarnOne}, map[string]string{"p/a/package.json": `{"dependencies":{"right":"1"}}`}, "yarn"},
	} {
		list, err := FindLocks(edit(tt.before, tt.now), whole)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			line := l.String()
			if l.Check != nil {
				line += ": " + strings.Join(l.Check.Args[slices.Index(l.Check.Args, "--")+1:], " ")
			}
			if _, names, ok := strings.Cut(l.Refused, "reached: "); ok {
				names, _, _ = strings.Cut(names, ". Publish")
				line += ": refused " + names
			}
			got = append(got, line)
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}

// Covers D1: a manifest that cannot be read any more is told whoever wrote it, in the words
// of who reads it; what could not be read before, and what is to be filled in, is left alone.
func TestManifestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const latest = goMod + "require example.com/right latest\n"
	for _, tt := range []struct {
		name, file, before, now string
		want                    string
	}{
		{"a query", "go.mod", goMod, latest, `go: go.mod:6: require example.com/right: version "latest" invalid: must be of the form v1.2.3`},
		{"a word that Go does not know", "go.mod", goMod, strings.Replace(goMod, "require", "requires", 1), "go: go.mod:5: unknown directive: requires"},
		{"no module", "go.mod", goMod, "go 1.22\n", "go: go.mod: no module declaration"},
		{"a new one", "sub/go.mod", "", "modul x\n", "go in sub: sub/go.mod:1: unknown directive: modul"},
		{"as before", "go.mod", latest, latest + "\n", ""},
		{"a template", "scaffold/go.mod", "", "module {{.Name}}\n\ngo {{.Go}}\n", ""},
		{"a comma", "web/package.json", "{}", "{\n\"a\": 1,\n}", "node in web: web/package.json:3: invalid character '}'"},
		{"a new package.json", "package.json", "", "{", "node: package.json:1: unexpected end of JSON input"},
		{"no JSON before", "package.json", "{", "{{", ""},
		{"a byte order mark", "package.json", "{}", "\ufeff{\"a\":1}", ""},
		{"a template of a package", "scaffold/package.json", "", "{\"name\": <%= name %>}", ""},
		{"a test's", "testdata/package.json", "{}", "{", ""},
		{"taken away", "package.json", "{}", "-", ""},
	} {
		before, now := map[string]string{}, map[string]string{tt.file: tt.now}
		if tt.before != "" {
			before[tt.file] = tt.before
		}
		e := edit(before, now)
		if tt.now == "-" {
			e = edit(before, nil)
			e.Now.Paths, e.Changed = nil, []string{tt.file}
		}
		list, err := FindLocks(e, whole)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, l := range list {
			if l.Refused != "" {
				got += l.String() + ": " + l.Refused
			}
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || len(list) > 1 {
			t.Errorf("%s: %q (%d found), want %q", tt.name, got, len(list), tt.want)
		}
	}
}

// taker is a sandbox in which commands write what they are told to.
type taker struct {
	staged map[string]string
	ran    []workspace.Command
	writes []map[string]string // of the first command, the second, …; nil: it fails
}

func (f *taker) Stage(_ context.Context, name string, content []byte) error {
	f.staged[name] = string(content)
	return nil
}

func (f *taker) Run(_ context.Context, c workspace.Command) (workspace.Result, error) {
	f.ran = append(f.ran, c)
	writes := f.writes[len(f.ran)-1]
	if writes == nil {
		return workspace.Result{Exit: 1, Stderr: []byte("no such package")}, nil
	}
	maps.Copy(f.staged, writes)
	return workspace.Result{}, nil
}

func (f *taker) Take(_ context.Context, name string) ([]byte, error) {
	text, ok := f.staged[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return []byte(text), nil
}

// Covers D1: of a go.mod that the go command has written, requirements alone are taken.
func TestGoLockIsTaken(t *testing.T) {
	t.Parallel()
	const right = "\nrequire example.com/right v1.2.0\n"
	for _, tt := range []struct {
		name  string
		wrote []string // go.mod, of the first try and the second
		want  string   // of what came in, or why nothing is taken
	}{
		{"a requirement", []string{goMod + right}, "example.com/right v1.2.0"},
		{"raised", []string{strings.Replace(goMod, "left v1.0.0", "left v1.1.0", 1) + right}, "example.com/left v1.0.0 → v1.1.0, example.com/right v1.2.0"},
		{"lowered", []string{strings.Replace(goMod, "v1.0.0", "v0.9.0", 1), strings.Replace(goMod, "v1.0.0", "v0.9.0", 1)}, "lower the requirement of example.com/left"},
		{"taken away, but not the second time", []string{"module example.com/app\n\ngo 1.22\n" + right, goMod + right}, "example.com/right v1.2.0"},
		{"another language", []string{strings.Replace(goMod, "1.22", "1.24", 1), strings.Replace(goMod, "1.22", "1.24", 1)}, "needs `go 1.24`, and go.mod says 1.22"},
		{"replaced", []string{goMod + "replace example.com/left => /etc\n", goMod + "replace example.com/left => /etc\n"}, "change more of go.mod"},
		{"a toolchain", []string{goMod + "toolchain go1.99\n", goMod + "toolchain go1.99\n"}, "change more of go.mod"},
		{"fails", []string{"", ""}, "ended with 1: no such package"},
	} {
		list, err := FindLocks(edit(map[string]string{"go.mod": goMod, "go.sum": "as before\n"}, map[string]string{"go.sum": "as an agent likes it\n", "b.go": "package a\n\nimport _ \"example.com/right\"\n"}), whole)
		if err != nil || len(list) != 1 {
			t.Fatalf("found %v, %v", list, err)
		}
		f := &taker{staged: map[string]string{}}
		for _, text := range tt.wrote {
			if text == "" {
				f.writes = append(f.writes, nil)
				continue
			}
			f.writes = append(f.writes, map[string]string{"lock/go.mod": text})
		}
		made, err := list[0].Make(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		got := made.Why
		if made.Why == "" {
			got = strings.TrimPrefix(strings.Join((&lock.Update{Packages: made.Packages}).Lines(), "; "), "go: ")
			if string(made.Files["go.sum"]) != "as before\n" {
				t.Errorf("%s: it does not begin from the go.sum before the change: %q", tt.name, made.Files["go.sum"])
			}
		}
		if !strings.Contains(got, tt.want) || made.Why == "" && got != tt.want || len(f.ran) != len(tt.wrote) {
			t.Errorf("%s: %q after %d commands, want %q after %d", tt.name, got, len(f.ran), tt.want, len(tt.wrote))
		}
		for _, c := range f.ran {
			if env := strings.Join(c.Env, " "); !strings.Contains(env, "GOPROXY=http://127.0.0.1:4801 ") || !strings.Contains(env, "GOSUMDB=sum.example ") || !strings.Contains(env, "GOWORK=off") {
				t.Errorf("%s: %q runs with %s", tt.name, c.Args, env)
			}
		}
	}
}

// Covers D1: a lock file keeps the addresses that it had, and names what is new by the
// registry of the others; no script runs, whatever the server allows to those who install.
func TestNodeLockIsTaken(t *testing.T) {
	t.Parallel()
	host := whole
	host.Scripts = true
	gateway := host.Registry["npm"]
	for _, tt := range []struct {
		manager, file, old string
		wrote              string // beside what was staged
		off                string // the argument, or variable, that keeps scripts from running
		has, came          string
	}{
		{"npm", "package-lock.json", lockOne, `{"packages":{"":{},"node_modules/left":{"version":"1.0.0","resolved":"GATEWAY/left/-/left-1.0.0.tgz"},"node_modules/left/node_modules/deep":{"version":"2.0.0"},"node_modules/right":{"version":"1.1.0","resolved":"GATEWAY/right/-/right-1.1.0.tgz"}}}`,
			"--ignore-scripts", "https://npm.acme.example/root/right/-/right-1.1.0.tgz", "right 1.1.0, deep 2.0.0 (indirect)"},
		{"yarn", "yarn.lock", yarnOne, yarnOne + "\nright@^1:\n  version \"1.1.0\"\n  resolved \"GATEWAY/right/-/right-1.1.0.tgz#bb\"\n", "--ignore-scripts",
			"https://registry.yarnpkg.com/right/-/right-1.1.0.tgz#bb", "right 1.1.0"},
		{"yarn", "yarn.lock", berryOne, berryOne + "\n\"right@npm:^1\":\n  version: 1.1.0\n  resolution: \"right@npm:1.1.0\"\n", "YARN_ENABLE_SCRIPTS=false", "right@npm:1.1.0", "right 1.1.0"},
		{"pnpm", "pnpm-lock.yaml", "lockfileVersion: '9.0'\n\npackages:\n\n  left@1.0.0:\n    resolution: {}\n", "lockfileVersion: '9.0'\n\npackages:\n\n  left@1.0.0:\n    resolution: {}\n\n  '@acme/right@1.1.0':\n    resolution: {}\n",
			"--ignore-scripts", "@acme/right@1.1.0", "@acme/right 1.1.0 (indirect)"},
	} {
		list, err := FindLocks(edit(map[string]string{"package.json": `{"dependencies":{"left":"1.0.0"}}`, tt.file: tt.old},
			map[string]string{"package.json": `{"dependencies":{"left":"1.0.0","right":"^1"}}`, tt.file: "as an agent likes it"}), host)
		if err != nil || len(list) != 1 || list[0].Manager != tt.manager {
			t.Fatalf("found %v, %v", list, err)
		}
		at := path.Join("node/top", tt.file)
		f := &taker{staged: map[string]string{}, writes: []map[string]string{{at: strings.ReplaceAll(tt.wrote, "GATEWAY", gateway)}}}
		made, err := list[0].Make(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		text := string(made.Files[tt.file])
		_, came, _ := strings.Cut(strings.Join((&lock.Update{Packages: made.Packages}).Lines(), "; "), ": ")
		if !strings.Contains(text, tt.has) || strings.Contains(text, gateway) || came != tt.came {
			t.Errorf("%s: came in %q, want %q; the lock file has not %s, or the gateway:\n%s", tt.manager, came, tt.came, tt.has, text)
		}
		if all := strings.Join(slices.Concat(f.ran[0].Args, f.ran[0].Env), " "); !strings.Contains(all, tt.off) {
			t.Errorf("%s: scripts are not off: %s", tt.manager, all)
		}
		if tt.manager == "npm" && (!strings.Contains(text, "https://npm.acme.example/root/left/-/left-1.0.0.tgz") || !slices.Contains(f.ran[0].Args, "--lockfile-version=2")) {
			t.Errorf("npm: what was locked has moved (%q):\n%s", f.ran[0].Args, text)
		}
	}
}

// What is elsewhere than in the registry cannot be named in a lock file.
func TestNodeLockWithAddressOfTheGateway(t *testing.T) {
	t.Parallel()
	list, err := FindLocks(edit(map[string]string{"package.json": "{}", "package-lock.json": lockOne}, map[string]string{"package.json": `{"dependencies":{"right":"1"}}`}), whole)
	if err != nil || len(list) != 1 {
		t.Fatalf("found %v, %v", list, err)
	}
	f := &taker{staged: map[string]string{}, writes: []map[string]string{{"node/top/package-lock.json": fmt.Sprintf(`{"resolved":%q}`, whole.Registry["npm"]+"/-/file/0123/right.tgz")}}}
	if made, err := list[0].Make(t.Context(), f); err != nil || !strings.Contains(made.Why, "an archive is not where the server's registry has its packages") {
		t.Errorf("made %+v, %v", made, err)
	}
}

// Covers D1: which registries of an .npmrc are not asked, and which lock files are not
// read, is said before anything fails.
func TestNodeUnasked(t *testing.T) {
	t.Parallel()
	const npmrc = "registry=https://npm.corp.example/\n@acme:registry=https://me:secret@npm.acme.example\n@other:registry=https://npm.other.example\n@pub:registry=https://registry.npmjs.org/\n"
	files := map[string]string{".npmrc": npmrc, "package.json": `{"dependencies":{"@acme/left":"1","@pub/right":"1"}}`, "bun.lock": "{}", "web/package.json": `{"dependencies":{"left":"1"}}`, "web/bun.lockb": "",
		"web/package-lock.json": lockOne}
	const (
		bun   = "bun.lock of Bun is not read: npm installs what package.json asks for, in versions of its own choice"
		rc    = "the server's registry is asked (npm), and not what the repository names: https://npm.corp.example/"
		scope = ", https://npm.acme.example for @acme"
	)
	if got := find(t, files, whole).Unasked(); !slices.Equal(got, []string{bun, rc + scope}) {
		t.Errorf("Unasked = %q", got)
	}
	listed := whole
	listed.Lists = func(kind, name string) bool { return kind == "npm" && name == "@acme" }
	if got := find(t, files, listed).Unasked(); !slices.Equal(got, []string{bun, rc}) {
		t.Errorf("Unasked, where a registry is listed for it = %q", got)
	}
}

// What came from registries is said once, by ecosystem.
func TestFetchedIsSaid(t *testing.T) {
	t.Parallel()
	tree := Tree{Projects: []string{"go", "npm"}, Fetched: "go 1 request, 12.0 kB; npm 3 requests, 1.5 MB"}
	want := []string{"installed dependencies (go, npm)", "fetched from registries: " + tree.Fetched}
	if got := tree.Summary(); !slices.Equal(got, want) {
		t.Errorf("Summary = %q, want %q", got, want)
	}
	tree.Fetched = ""
	if got := tree.Summary(); !slices.Equal(got, want[:1]) {
		t.Errorf("Summary of a tree that was there = %q", got)
	}
}
