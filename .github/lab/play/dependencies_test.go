package play

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/needs"
)

// packages is a registry for Go, npm and PyPI, with one package: left.
type packages struct {
	*httptest.Server
	files map[string]string

	mu    sync.Mutex
	asked []string
	away  bool
}

func newPackages(t *testing.T) *packages {
	t.Helper()
	p := &packages{files: map[string]string{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.Path)
		text, ok := p.files[r.URL.Path]
		away := p.away
		p.mu.Unlock()
		switch {
		case away:
			http.Error(w, "down for maintenance", http.StatusForbidden)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, strings.ReplaceAll(text, "REGISTRY", p.URL))
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *packages) setAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *packages) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// zipped is an archive of files.
func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(f, files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// goModule publishes example.com/left, and returns the go.sum of who needs it.
func (p *packages) goModule(t *testing.T) string {
	t.Helper()
	mod := "module example.com/left\n\ngo 1.22\n"
	archive := zipped(t, map[string]string{"example.com/left@v1.0.0/go.mod": mod, "example.com/left@v1.0.0/left.go": "package left\n\nfunc Greeting() string { return \"hello\" }\n"})
	p.files["/example.com/left/@v/v1.0.0.zip"] = archive
	p.files["/example.com/left/@v/v1.0.0.mod"] = mod
	p.files["/example.com/left/@v/v1.0.0.info"] = `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`
	file := filepath.Join(t.TempDir(), "left.zip")
	if err := os.WriteFile(file, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	of, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(mod)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return "example.com/left v1.0.0 " + whole + "\nexample.com/left v1.0.0/go.mod " + of + "\n"
}

// nodePackage publishes left, and returns the lock file of who needs it.
func (p *packages) nodePackage(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, f := range [][2]string{{"package/package.json", `{"name":"left","version":"1.0.0","main":"index.js","scripts":{"postinstall":"touch /deps/ran"}}`}, {"package/index.js", "module.exports = () => 'hello'\n"}} {
		err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		if err == nil {
			_, err = io.WriteString(w, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || zip.Close() != nil {
		t.Fatal("pack left")
	}
	p.files["/left/-/left-1.0.0.tgz"] = b.String()
	sum := sha512.Sum512(b.Bytes())
	p.files["/left"] = `{"name":"left","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"left","version":"1.0.0","dist":{"tarball":"REGISTRY/left/-/left-1.0.0.tgz"}}}}`
	return fmt.Sprintf(`{"name":"web","lockfileVersion":3,"packages":{"":{"name":"web","dependencies":{"left":"1.0.0"}},
"node_modules/left":{"version":"1.0.0","resolved":"https://registry.elsewhere.example/left/-/left-1.0.0.tgz","integrity":"sha512-%s"}}}`, base64.StdEncoding.EncodeToString(sum[:]))
}

// pythonPackage publishes left as a wheel.
func (p *packages) pythonPackage(t *testing.T) {
	t.Helper()
	p.files["/simple/left/"] = `<html><body><a href="../../files/left-1.0.0-py3-none-any.whl">left-1.0.0-py3-none-any.whl</a></body></html>`
	p.files["/files/left-1.0.0-py3-none-any.whl"] = zipped(t, map[string]string{
		"left/__init__.py": "def greeting():\n    return 'hello'\n", "left-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: left\nVersion: 1.0.0\n",
		"left-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "left-1.0.0.dist-info/RECORD": "",
	})
}

// repository needs left in three languages. Its tests take no time: nothing is compiled.
func (p *packages) repository(t *testing.T) map[string]string {
	t.Helper()
	p.pythonPackage(t)
	return map[string]string{
		"test.sh": `echo TAP version 13; echo 1..4
if [ "$(sh greet.sh Ann)" = "hello, Ann" ] || [ "$(sh greet.sh Ann)" = "hello Ann" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi
if go list -deps . >/dev/null; then echo ok 2 - go; else echo not ok 2 - go; fi
if (cd web && node -e 'require("left")()'); then echo ok 3 - node; else echo not ok 3 - node; fi
if (cd py && python3 -c 'import left; left.greeting()'); then echo ok 4 - python; else echo not ok 4 - python; fi
`,
		".github/forge.yml":     "tests:\n  commands: [sh test.sh]\n",
		"go.mod":                "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.0.0\n",
		"go.sum":                p.goModule(t),
		"app.go":                "package app\n\nimport _ \"example.com/left\"\n",
		"web/package.json":      `{"name":"web","dependencies":{"left":"1.0.0"}}`,
		"web/package-lock.json": p.nodePackage(t),
		"py/requirements.txt":   "left==1.0.0\n",
	}
}

// options of a server that installs from these registries.
func (p *packages) options(files map[string]string) servertest.Options {
	return servertest.Options{Files: files, Env: map[string]string{"GOSUMDB": "off"}, Wire: func(o *server.Options) {
		if testing.Verbose() {
			o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		for _, kind := range []string{"go", "npm", "pypi"} {
			o.Config.Registries = append(o.Config.Registries, settings.Registry{Name: kind, Kind: kind, URL: p.URL, Private: true})
		}
	}}
}

func needTools(t *testing.T) {
	t.Helper()
	needs.Tools(t, "npm", "pip")
}

// Covers D1: what is not in the repository is installed through the gateway, and the
// tests run offline with it; a second run asks no registry.
func TestDependenciesOfThreeLanguages(t *testing.T) {
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	ts := newServer(t, p.options(p.repository(t)))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	tests := run.Current().Tests
	if tests.Passed != 4 || !slices.Equal(tests.Setup, []string{"installed dependencies (go, npm in web, pip in py)"}) {
		t.Errorf("%d tests passed, setup: %q", tests.Passed, tests.Setup)
	}
	if base := strings.Join(run.Baseline.Setup, "\n"); !strings.Contains(base, "fetched from registries: go 3 requests, ") || !strings.Contains(base, "; npm 1 request, ") {
		t.Errorf("the base's tests say %q, not what was fetched", base)
	}
	asked := p.requests()
	for _, want := range []string{"/example.com/left/@v/v1.0.0.zip", "/left/-/left-1.0.0.tgz", "/files/left-1.0.0-py3-none-any.whl"} {
		if !slices.Contains(asked, want) {
			t.Errorf("%s was not asked for: %q", want, asked)
		}
	}
	ts.Again()
	if more := p.requests()[len(asked):]; len(more) > 0 {
		t.Errorf("the second run asked for %q", more)
	}
}

// Covers D1: commands of the settings install what Forge would not, as the base commit
// says; tests see what they left, offline, and a second run asks no registry.
func TestSetupOfARepository(t *testing.T) {
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	p.pythonPackage(t)
	files := map[string]string{
		"web/package.json": `{"name":"web","dependencies":{"left":"1.0.0"}}`, "web/package-lock.json": p.nodePackage(t), "list.txt": "left\n", ".gitignore": "node_modules/\ngen/\n",
		"test.sh": `echo TAP version 13; echo 1..2
if [ "$(sh greet.sh Ann)" = "hello, Ann" ] || [ "$(sh greet.sh Ann)" = "hello Ann" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi
if (cd web && node -e 'require("left")()') && grep -q hello gen/greeting && PYTHONPATH=.tools python3 -c 'import left'; then echo ok 2 - set up; else echo not ok 2 - set up; fi
`,
		".github/forge.yml": "tests:\n  commands: [sh test.sh]\nsetup:\n  install: false\n  commands:\n    - cd web && npm ci\n    - mkdir gen && cd web && node -e 'console.log(require(\"left\")())' > ../gen/greeting\n" +
			"    - python3 -m pip install --target=.tools -r list.txt\n  cache: [.tools]\n",
	}
	ts := newServer(t, p.options(files))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	tests := run.Current().Tests
	if tests.Passed != 2 || !slices.Equal(tests.Setup, []string{"installed dependencies (setup)"}) {
		t.Errorf("%d tests passed, setup: %q", tests.Passed, tests.Setup)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	if err != nil || len(pulls) != 1 || !strings.Contains(pulls[0].Body, "installed dependencies (setup)") {
		t.Errorf("the pull request does not say so: %v %+v", err, pulls)
	}
	asked := p.requests()
	if !slices.Contains(asked, "/left/-/left-1.0.0.tgz") {
		t.Errorf("asked for %q", asked)
	}
	ts.Again()
	if more := p.requests()[len(asked):]; len(more) > 0 {
		t.Errorf("the second run asked for %q", more)
	}
}

// Covers D1: an implementer names a dependency, and the package managers lock it: in the
// run's commit, told to the reviewer and in the pull request. One that no registry has goes
// back to the implementer while it works.
func TestLockFilesOfAChange(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	sums := p.goModule(t) // no database of checksums knows the module
	p.nodePackage(t)
	p.files["/example.com/left/@v/list"] = "v1.0.0\n"
	script := func(left string) string {
		return "echo TAP version 13; echo 1.." + strconv.Itoa(1+strings.Count(left, "echo ok")) +
			"\nif [ \"$(sh greet.sh Ann)\" = \"hello, Ann\" ] || [ \"$(sh greet.sh Ann)\" = \"hello Ann\" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi\n" + left
	}
	files := map[string]string{
		"test.sh": script(""), ".github/forge.yml": "tests:\n  commands: [sh test.sh]\n",
		"go.mod": "module example.com/app\n\ngo 1.22\n", "go.sum": sums, "app.go": "package app\n",
		"web/package.json": `{"name":"web","scripts":{"preinstall":"touch ran","dependencies":"touch ran"}}`, "web/package-lock.json": `{"name":"web","lockfileVersion":3,"packages":{"":{"name":"web"}}}`,
	}
	write := func(path, content string) string {
		return fmt.Sprintf(">>> write\npath: %s\ncontent: %q\n", path, content)
	}
	asks := func(name string) string {
		return write("web/package.json", `{"name":"web","scripts":{"preinstall":"touch ran","dependencies":"touch ran"},"dependencies":{"`+name+`":"1.0.0"}}`)
	}
	o := p.options(files)
	o.Tape = "\n-- planner 0/1 --\n>>> submit\nsummary: Use left\nsteps: [Use it]\ncriteria: [{id: AC1, text: The greeting stays}]\n-- implementer 1/1 --\n" +
		write("app.go", "package app\n\nimport _ \"example.com/left\"\n") + asks("lfet") +
		write("test.sh", script("if go list -deps . >/dev/null; then echo ok 2 - go; else echo not ok 2 - go; fi\nif (cd web && node -e 'require(\"left\")()'); then echo ok 3 - node; else echo not ok 3 - node; fi\n")) +
		"-- implementer 1/2 --\n>>> submit\nsummary: Use left\n-- implementer 1/3 --\n@expect no registry has npm /lfet\n" + asks("left") +
		"-- implementer 1/4 --\n>>> install\n-- implementer 1/5 --\n@expect wrote go.mod, web/package-lock.json\n@expect installed dependencies (go, npm in web)\n" +
		">>> run\ncommand: go vet . && cd web && node -e 'console.log(\"it says \" + require(\"left\")())'\n-- implementer 1/6 --\n@expect it says hello\n>>> submit\nsummary: Use left\n" +
		servertest.Approved
	ts := newServer(t, o)
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 1 || run.Current().Tests.Passed != 3 {
		t.Fatalf("%d iterations, tests %+v", len(run.Iterations), run.Current().Tests)
	}
	if got := run.Current().Impl.Locked; !slices.Equal(got, []string{"go.mod", "web/package-lock.json"}) {
		t.Errorf("package managers wrote %q", got)
	}
	if files := run.Current().Impl.Files; !slices.Contains(files, "go.mod") || !slices.Contains(files, "web/package-lock.json") || slices.Contains(files, "web/ran") {
		t.Errorf("the commit has %q", files)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	if err != nil || len(pulls) != 1 || !strings.Contains(pulls[0].Body, "## Lock files written by package managers\n\n- `go.mod`\n- `web/package-lock.json`") {
		t.Errorf("the pull request does not say so: %v %+v", err, pulls)
	}
}

// Covers D1: a registry that is away keeps nobody from working, and is told.
func TestRegistryIsAway(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	p := newPackages(t)
	files := p.repository(t)
	p.setAway(true)
	ts := newServer(t, p.options(files))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting) // the tests that need packages fail, as they did before
	setup := strings.Join(run.Current().Tests.Setup, "\n")
	for _, want := range []string{"could not install dependencies (go): `go mod download` ended with 1", "could not install dependencies (npm in web): `npm ci", "could not install dependencies (pip in py)", "403 Forbidden"} {
		if !strings.Contains(setup, want) {
			t.Errorf("setup lacks %q:\n%s", want, setup)
		}
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	if err != nil || len(pulls) != 1 || !strings.Contains(pulls[0].Body, "could not install dependencies") {
		t.Errorf("the pull request does not say so: %v %+v", err, pulls)
	}
}
