package deps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/config"
	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// everything is a machine that has all.
func everything() Host {
	h := Host{Compile: true, Tools: map[string]string{}, Registry: map[string]string{}}
	for _, tool := range []string{"go", "npm", "node", "python3", "pip", "cargo", "mvn", "gradle", "bundle", "ruby", "php", "composer"} {
		h.Tools[tool] = "1"
	}
	for i, kind := range []string{"go", "npm", "pypi", "cargo", "maven", "rubygems", "composer"} {
		h.Registry[kind] = fmt.Sprintf("http://127.0.0.1:%d", 4801+i)
	}
	return h
}

func commit(files map[string]string) Commit {
	c := Commit{Read: func(paths []string) (map[string][]byte, error) {
		out := map[string][]byte{}
		for _, name := range paths {
			if text, ok := files[name]; ok {
				out[name] = []byte(text)
			}
		}
		return out, nil
	}}
	for name := range files {
		c.Files = append(c.Files, name)
	}
	return c
}

func find(t *testing.T, files map[string]string, set config.Setup, h Host) *Plan {
	t.Helper()
	c := commit(files)
	c.Tests = []string{"make", "go test -v -race -tags 'a,b' ./...", "go test --tags=c -tags=$(id)", "pytest -race"}
	p, err := Find(c, set, h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const npmNeeds = `{"dependencies":{"left":"1"}}`

// Covers D1: what repositories of each ecosystem look like, and what installs them.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string // projects, and a part of their commands
	}{
		{"nothing", map[string]string{"README.md": "", "main.c": ""}, nil},
		{"a Go module", map[string]string{"go.mod": "module m\n\nrequire x v1.0.0\n", "testdata/m/go.mod": "require y v1"}, []string{"go: go mod download"}},
		{"modules beside each other", map[string]string{"go.mod": "module m\n", "tools/go.mod": "require x v1"}, []string{"go: ", "go in tools: go mod download"}},
		{"a vendored module", map[string]string{"go.mod": "require x v1", "vendor/modules.txt": ""}, []string{"go: "}},
		{"tests with flags", map[string]string{"go.mod": "module m\n"}, []string{"go: in '' ' -race -tags a,b' ' --tags=c'; do"}},
		{"a workspace", map[string]string{"go.work": "use ./a", "a/go.mod": "require x v1"}, []string{"go: go mod download"}},
		{"npm", map[string]string{"package.json": npmNeeds, "package-lock.json": "{}"}, []string{"npm: npm ci"}},
		{"npm without a lock file", map[string]string{"package.json": npmNeeds}, []string{"npm: npm install --no-package-lock"}},
		{"npm without needs", map[string]string{"package.json": `{"scripts":{"test":"node --test"}}`}, nil},
		{"pnpm with a version", map[string]string{"package.json": `{"packageManager":"pnpm@10.2.1+sha512.x","devDependencies":{"a":"1"}}`, "pnpm-lock.yaml": "lockfileVersion: '9.0'\n"}, []string{"pnpm: pnpm@10.2.1"}},
		{"pnpm of some years ago", map[string]string{"package.json": npmNeeds, "pnpm-lock.yaml": "lockfileVersion: '6.0'\n"}, []string{"pnpm: pnpm@8"}},
		{"yarn", map[string]string{"package.json": npmNeeds, "yarn.lock": "# yarn lockfile v1\n"}, []string{"yarn: yarn install --non-interactive"}},
		{"berry", map[string]string{"package.json": npmNeeds, "yarn.lock": "__metadata:\n  version: 8\n"}, []string{"yarn: yarn install --immutable"}},
		{"workspaces and an example", map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "package-lock.json": "{}", "packages/a/package.json": npmNeeds, "examples/x/package.json": npmNeeds, "examples/x/package-lock.json": "{}"}, []string{"npm: npm ci"}},
		{"a Go and npm monorepo", map[string]string{"go.mod": "require x v1", "web/package.json": npmNeeds, "web/package-lock.json": "{}"}, []string{"go: go mod", "npm in web: npm ci"}},
		{"pyproject", map[string]string{"pyproject.toml": "[project]\nname='x'\n", "docs/requirements.txt": "sphinx\n"}, []string{"pip: python.sh"}},
		{"Python beneath", map[string]string{"api/setup.py": "", "main.c": ""}, []string{"pip in api: python.sh"}},
		{"Rust without a lock file", map[string]string{"Cargo.toml": "[package]", "crates/a/Cargo.toml": ""}, []string{"cargo: cargo generate-lockfile"}},
		{"Maven", map[string]string{"pom.xml": "<project/>", "core/pom.xml": "<project/>"}, []string{"maven: sh /deps/forge/maven.sh"}},
		{"Gradle", map[string]string{"settings.gradle.kts": "", "app/build.gradle.kts": ""}, []string{"gradle: gradle --no-daemon"}},
		{"Ruby", map[string]string{"Gemfile": "", "x.gemspec": ""}, []string{"bundler: bundle install"}},
		{"PHP", map[string]string{"composer.json": `{"require":{"a/b":"1"}}`}, []string{"composer: composer update"}},
		{"agents' own steps", map[string]string{"package.json": npmNeeds, ".github/workflows/copilot-setup-steps.yml": "jobs:\n  copilot-setup-steps:\n    steps:\n      - uses: actions/checkout@v4\n      - run: make deps\n        working-directory: web\n"},
			[]string{"setup: cd 'web' && {\nmake deps\n}", "npm: npm install"}},
	} {
		var got []string
		p := find(t, tt.files, config.Setup{}, everything())
		for _, one := range slices.Concat(p.Own, p.Projects) {
			got = append(got, one.String()+": "+strings.Join(one.steps, "; ")+one.ahead)
		}
		for i := range max(len(got), len(tt.want)) {
			if i >= len(got) || i >= len(tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
				break
			}
			who, what, _ := strings.Cut(tt.want[i], ": ")
			if !strings.HasPrefix(got[i], who+": ") || !strings.Contains(got[i], what) {
				t.Errorf("%s: %q, want %q", tt.name, got[i], tt.want[i])
			}
		}
	}
}

// Covers D1: what CI runs beside the tests, how tests find it, and what of it the server lacks.
func TestServices(t *testing.T) {
	t.Parallel()
	host := everything()
	host.Tools["postgres"], host.Tools["redis-server"] = "15", "7"
	for _, tt := range []struct {
		name, file, text string
		want             []string // services and what is said of each
		use              []string
	}{
		{"by labels in a job's own container", ".github/workflows/test.yaml", `on: {pull_request: }
env: {RAILS_ENV: test}
jobs:
  rspec:
    container: ruby:3.3
    services: {postgres: {image: "postgres:16-alpine"}, redis: {image: redis}}
    env: {PGHOST: postgres, REDIS_URL: "redis://redis:6379/1", DATABASE_URL: "postgres://u:p@postgres/x"}
`, []string{"postgres ", "redis "}, []string{"RAILS_ENV=test", "DATABASE_URL=postgres://u:p@localhost/x", "PGHOST=localhost", "REDIS_URL=redis://localhost:6379/1"}},
		{"a matrix of versions", ".github/workflows/ci.yml", "on: push\njobs:\n  a:\n    services:\n      postgres:\n        image: ${{ matrix.image }}\n  b:\n    services:\n      db:\n        image: postgis/postgis:${{ matrix.v }}\n",
			[]string{"postgres "}, nil},
		{"what the server has not", ".github/workflows/ci.yml", "on: pull_request\njobs:\n  a:\n    services: {m: {image: mysql}, k: {image: 'bitnami/kafka:3'}}\n",
			[]string{"kafka .github/workflows/ci.yml runs it", "mysql .github/workflows/ci.yml runs it beside the tests, and it is not on the server: apt-get install mariadb-server"}, nil},
		{"a workflow that tests nothing", ".github/workflows/nightly.yml", "on: {schedule: [{cron: '0 0 * * *'}]}\njobs:\n  a:\n    services: {p: {image: postgres}}\n", nil, nil},
		{"compose", "docker-compose.yml", "services:\n  app: {build: .}\n  proxy: {image: nginx}\n  db: {image: postgres, environment: [POSTGRES_DB=x], ports: ['5433:5432']}\n", []string{"postgres "}, nil},
		{"no YAML", "compose.yaml", "services: [", nil, nil},
	} {
		p := find(t, map[string]string{tt.file: tt.text}, config.Setup{}, host)
		var got []string
		for _, s := range p.Services {
			got = append(got, strings.TrimPrefix(s.Manager, "the service ")+" "+s.Lacks)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(got[i], want) || strings.HasSuffix(want, " ") && got[i] != want {
				t.Errorf("%s: %q, want %q", tt.name, got[i], want)
			}
		}
		if use := p.Use(); !slices.Equal(use, tt.use) {
			t.Errorf("%s: commands see %q, want %q", tt.name, use, tt.use)
		}
		if script := p.startScript(); (script != "") != slices.ContainsFunc(tt.want, func(s string) bool { return strings.HasSuffix(s, " ") }) {
			t.Errorf("%s: before each command runs %q", tt.name, script)
		}
	}
}

// Covers D1: what decides what is installed decides the key, and nothing else does.
func TestKey(t *testing.T) {
	t.Parallel()
	files := map[string]string{"package.json": npmNeeds, "package-lock.json": "{}", "index.js": "", "scripts/setup.sh": "1"}
	set := config.Setup{Commands: []string{"sh scripts/setup.sh"}}
	base := find(t, files, set, everything())
	with := func(name, text string) *Plan {
		other := map[string]string{name: text}
		for n, text := range files {
			if _, ok := other[n]; !ok {
				other[n] = text
			}
		}
		return find(t, other, set, everything())
	}
	newer := everything()
	newer.Tools["node"] = "2"
	for name, tt := range map[string]struct {
		plan *Plan
		same bool
	}{
		"again": {with("index.js", ""), true}, "another source": {with("index.js", "x"), true}, "a lock file": {with("package-lock.json", "[]"), false},
		"what a command names": {with("scripts/setup.sh", "2"), false}, "another tool": {find(t, files, set, newer), false},
		"other commands": {find(t, files, config.Setup{}, everything()), false},
	} {
		if (tt.plan.Key == base.Key) != tt.same {
			t.Errorf("%s: the same key: %v", name, !tt.same)
		}
	}
	if p := find(t, files, config.Setup{}, Host{}); !p.Empty() || !strings.Contains(strings.Join(p.Lacking(), ""), "npm is not installed on the server") {
		t.Errorf("a machine without npm: %q", p.Lacking())
	}
}

// installer is one that runs nothing.
type installer struct {
	ran   []string
	stage []string
	env   []string
	exit  func(step string) (int, string)
}

func (i *installer) Run(_ context.Context, c workspace.Command) (workspace.Result, error) {
	step := c.Args[len(c.Args)-1]
	i.ran, i.env = append(i.ran, step), c.Env
	r := workspace.Result{Duration: time.Second}
	if i.exit != nil {
		var said string
		r.Exit, said = i.exit(step)
		r.Stderr = []byte(said)
	}
	if !slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, "npm_config_registry=http://127.0.0.1") }) {
		return r, errors.New("no registry is named")
	}
	return r, nil
}

func (i *installer) Stage(_ context.Context, name string, _ []byte) error {
	i.stage = append(i.stage, name)
	return nil
}

func (i *installer) Keep(context.Context, []string) ([]string, error) { return nil, nil }

// Covers D1: a project that fails does not keep the others from being installed, and is told
// with the lines that say why.
func TestMake(t *testing.T) {
	t.Parallel()
	files := map[string]string{"go.mod": "require x v1", "package.json": npmNeeds, "package-lock.json": "{}", "Cargo.toml": "[package]"}
	in := &installer{exit: func(step string) (int, string) {
		if strings.HasPrefix(step, "npm ci") {
			return 1, "npm warn old lockfile\nnpm error code E404\nnpm error 404 Not Found - GET http://127.0.0.1:4802/left\nnpm error A complete log of this run can be found in: /x\n"
		}
		return 0, ""
	}}
	tree, err := find(t, files, config.Setup{}, everything()).Make(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	tree.Explain(nil, []string{"npm /left"})
	said := strings.Join(tree.Summary(), "\n")
	if want := "installed dependencies (go, cargo)\ncould not install dependencies (npm): `npm ci || npm ci --ignore-scripts || npm_config_replace_registry_host=npmjs npm…` ended with 1: npm error code E404\n" +
		"npm error 404 Not Found - GET http://127.0.0.1:4802/left\n(no registry has npm /left)"; said != want {
		t.Errorf("said\n%s\nwant\n%s", said, want)
	}
	if !slices.Contains(tree.Env, "CARGO_HOME=/deps/cargo") || !slices.Contains(in.stage, "cargo/config.toml") {
		t.Errorf("used with %q, staged %q", tree.Env, in.stage)
	}
}

// Covers D1, S9: a change's manifests are installed by commands that run no script, and those
// that are programs not at all.
func TestUpdate(t *testing.T) {
	t.Parallel()
	before := map[string]string{"package.json": npmNeeds, "package-lock.json": "{}", "pom.xml": "<project/>"}
	after := map[string]string{"package.json": `{"dependencies":{"right":"1"}}`, "package-lock.json": "{}", "pom.xml": "<project>x</project>"}
	now := find(t, after, config.Setup{}, everything())
	projects, err := now.Changed(now.Edits(find(t, before, config.Setup{}, everything())), nil)
	if err != nil || len(projects) != 2 {
		t.Fatalf("changed: %v, %v", projects, err)
	}
	in := &installer{}
	tree, err := now.Update(t.Context(), in, projects)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.ran) != 2 || in.ran[0] != "npm install --ignore-scripts" || tree.Broken() || !slices.Contains(in.env, "npm_config_ignore_scripts=true") || !slices.Contains(in.env, "PIP_ONLY_BINARY=:all:") {
		t.Errorf("ran %q; %q", in.ran, tree.Summary())
	}
	if said := strings.Join(tree.Summary(), "\n"); !strings.Contains(said, "the change edits pom.xml, and maven would run what it says") {
		t.Errorf("said %s", said)
	}
	if got := Locks(projects); !slices.Equal(got, []string{"package-lock.json"}) {
		t.Errorf("lock files: %q", got)
	}
}

// Covers D1: what pip is told for the ways in which Python projects name what their tests need.
func TestPython(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "python3")
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
		names string
	}{
		{"groups", map[string]string{"pyproject.toml": "[project]\nname='x'\ndependencies=['a>=1']\n[dependency-groups]\ndev=[{include-group='tests'}]\ntests=['pytest','b[c]~=2.0']\ndocs=['sphinx']\n"},
			"-e . pytest b[c]~=2.0", "a>=1 pytest b[c]~=2.0"},
		{"extras", map[string]string{"pyproject.toml": "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest','c @ https://evil/c.tar.gz']\nspeed=['d']\n"}, "-e .[test]", "pytest"},
		{"Poetry", map[string]string{"pyproject.toml": "[tool.poetry]\nname='x'\npackage-mode=false\n[tool.poetry.dependencies]\npython='^3.9'\na='^1.2'\nb={version='~2.1.0',extras=['z']}\nc={path='../c'}\n[tool.poetry.group.test.dependencies]\npytest='*'\n"},
			"a>=1.2,<2 b[z]>=2.1.0,<2.2 pytest", "a>=1.2,<2 b[z]>=2.1.0,<2.2 pytest"},
		{"lists", map[string]string{"requirements.txt": "a==1 # why\n-r base.txt\n./local\n--index-url http://evil\n", "base.txt": "b\n", "requirements-dev.txt": "c\n", "requirements-docs.txt": "d\n"},
			"-r requirements-dev.txt -r requirements.txt", "c a==1 b"},
		{"Pipenv", map[string]string{"Pipfile": "[packages]\na='*'\nb={version='>=2', extras=['z']}\n[dev-packages]\npytest='==8.1'\n"}, "a b[z]>=2 pytest==8.1", "a b[z]>=2 pytest==8.1"},
		{"setup.cfg", map[string]string{"setup.cfg": "[metadata]\nname=x\n[options]\ninstall_requires=\n  a\n[options.extras_require]\ntests =\n  b\n"}, "-e .[tests]", "a b"},
		{"setup.py and tox", map[string]string{"setup.py": "", "tox.ini": "[testenv]\ndeps =\n  pytest\n  py3: mock>=1\n  {toxinidir}\n"}, "-e . pytest mock>=1", "pytest mock>=1"},
	} {
		dir := t.TempDir()
		for name, text := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for mode, want := range map[string]string{"": tt.want, "names": tt.names} {
			cmd := exec.Command("/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-c", pythonScript) // the one that needs looks for
			if mode != "" {
				cmd.Args = append(cmd.Args, mode)
			}
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
				t.Errorf("%s, %q: %s, %v, want %s", tt.name, mode, got, err, want)
			}
		}
	}
}

// A tool's own lines say what is wrong, wherever they stand.
func TestErrorLines(t *testing.T) {
	t.Parallel()
	said := "[INFO] Scanning\n[ERROR] COMPILATION ERROR :\n[INFO] 1 error\n[INFO] BUILD FAILURE\n[INFO] Total time: 2 s\n"
	if got := errorLines(said); got != "[ERROR] COMPILATION ERROR :" {
		t.Errorf("Maven: %q", got)
	}
	said = "[WARNING] Tests run: 21, Failures: 0, Errors: 0\n[ERROR] Failed to execute goal\n"
	if got := errorLines(said); got != "[ERROR] Failed to execute goal" {
		t.Errorf("Maven's tests: %q", got)
	}
	if got := errorLines("one\ntwo\n"); got != "one\ntwo" {
		t.Errorf("no word for it: %q", got)
	}
}

// Covers D1: what is found, and why, is told before anything is run.
func TestLines(t *testing.T) {
	t.Parallel()
	steps := "jobs: {copilot-setup-steps: {steps: [{run: make tools}]}}\n"
	files := map[string]string{"go.mod": "module m\n\nrequire x v1.0.0\n", "web/package.json": npmNeeds, ".github/workflows/copilot-setup-steps.yml": steps}
	bare := everything()
	delete(bare.Tools, "npm")
	for _, tt := range []struct {
		set  config.Setup
		host Host
		want []string
	}{
		{config.Setup{}, everything(), []string{".github/workflows/copilot-setup-steps.yml says how: make tools (where that fails, as follows)",
			"go installs what go.mod asks for", "npm in web installs what web/package.json asks for"}},
		{config.Setup{Commands: []string{"make a", "make b"}}, bare, []string{"setup.commands says how: make a; make b", "go installs what go.mod asks for"}},
	} {
		if diff := cmp.Diff(tt.want, find(t, files, tt.set, tt.host).Lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Of what a lock file says, packages with checksums are told from those without, whatever
// the program that said it writes around them.
func TestLocked(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "python3")
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-c", pythonScript, "locked")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("# by a tool\n--index-url https://pypi.org/simple\n-i https://pypi.org/simple\n" +
		"left==1.0 ; python_version >= \"3.9\" \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via app\n-e ./libs/own\nright @ git+https://git.example/right@abc\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for _, name := range []string{"held.txt", "held/0.txt", "free/0.txt", "free/1.txt"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		got[name] = strings.Join(strings.Fields(string(text)), " ")
	}
	held := `left==1.0 ; python_version >= "3.9" --hash=sha256:aa --hash=sha256:bb`
	if diff := cmp.Diff(map[string]string{"held.txt": held, "held/0.txt": held, "free/0.txt": "-e ./libs/own", "free/1.txt": "right @ git+https://git.example/right@abc"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
