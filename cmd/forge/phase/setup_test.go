package phase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/deps"
	"forge/pipeline/needs"
	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// bench is an executor with a sandbox and a registry, whose repository has some commits.
type bench struct {
	*Executor
	t    *testing.T
	run  *pipeline.Run
	shas []string
	dir  string
	spec sandbox.Options

	mu    sync.Mutex
	asked []string // of the registry
	now   time.Time
	log   strings.Builder
}

// Write takes the log.
func (b *bench) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

// setups is how many times commands were begun.
func (b *bench) setups() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.log.String(), `msg="setting up"`)
}

// plainBench has commits whose tests run without the sandbox.
func plainBench(t *testing.T, sets ...map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Now()}
	var err error
	if b.dir, err = os.MkdirTemp("", "forge-setup-"); err != nil { // the worker's user must reach it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", b.dir).Run(); _ = os.RemoveAll(b.dir) })
	if err := os.Chmod(b.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	b.Executor, b.run, b.shas = commitsIn(t, b.dir, sets...)
	b.o.Log, b.o.Now = slog.New(slog.DiscardHandler), func() time.Time { return b.now }
	b.o.Spaces = workspacetest.New(t, nil)
	b.o.Known = func(context.Context, pipeline.Repo) (map[string]pipeline.KnownFailure, error) { return nil, nil }
	return b
}

// newBench has such commits, and a registry that commands of a set-up do not reach.
func newBench(t *testing.T, answer workspacetest.Answer, sets ...map[string]string) *bench {
	t.Helper()
	b := plainBench(t, sets...)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.asked = append(b.asked, r.URL.Path)
		b.mu.Unlock()
		_, _ = io.WriteString(w, "served "+r.URL.Path)
	}))
	t.Cleanup(web.Close)
	gateway, err := registry.New(registry.Options{Dir: filepath.Join(b.dir, "registries"), Registries: []registry.Registry{{Kind: "go", URL: web.URL, Private: true}}})
	if err != nil {
		t.Fatal(err)
	}
	b.o.Log = slog.New(slog.NewTextHandler(b, nil))
	b.o.Dependencies.Registries = func(context.Context) (*registry.Gateway, string, error) { return gateway, "", nil }
	b.o.Spaces = workspacetest.New(t, func(dir string, c workspace.Command) (workspace.Result, bool) {
		if r, ok := workspacetest.GoAlone(dir, c); ok || answer == nil {
			return r, ok
		}
		return answer(dir, c)
	})
	return b
}

// sandboxed has commits whose commands run in the sandbox, from which those of a set-up reach
// the registry.
func sandboxed(t *testing.T, sets ...map[string]string) *bench {
	t.Helper()
	needs.Sandbox(t)
	needs.Tools(t, "python3")
	b := newBench(t, nil, sets...)
	b.spec = sandbox.Options{Dir: filepath.Join(b.dir, "work"), Exe: sandboxtest.Worker(t), Log: b.o.Log}
	b.spaces()
	return b
}

// spaces begins anew with what is on the disk, as a server that starts does.
func (b *bench) spaces() {
	b.t.Helper()
	var err error
	if b.o.Spaces, err = sandbox.New(b.spec); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// open opens a workspace on a commit, with all that it is provided with.
func (b *bench) open(sha string) workspace.Workspace {
	b.t.Helper()
	ws, err := b.space(b.t.Context(), b.run, workspace.OpenOptions{Name: "test", Commit: sha})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { ws.Close() })
	delete(b.plans, b.run.ID) // tests change the settings of a run
	if err := b.provide(b.t.Context(), b.run, ws, sha); err != nil {
		b.t.Fatal(err)
	}
	return ws
}

// sees is what a script prints in a workspace.
func (b *bench) sees(ws workspace.Workspace, script string) string {
	b.t.Helper()
	r, err := ws.Run(b.t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", script}, Timeout: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(r.Stdout) + string(r.Stderr))
}

func (b *bench) toldOf(sha string) string { return strings.Join(b.told(b.run.ID, sha), "\n") }

// ask fetches a path from the first registry.
func ask(path string) string {
	return `python3 -c 'import os, urllib.request; print(urllib.request.urlopen(os.environ["FORGE_REGISTRY_GO"] + "` + path + `", timeout=5).read().decode())'`
}

const listed = "/example.com/left/@v/list"

// Covers D1: commands of the settings run once, with a way to the registries; what they
// leave is there for tests, which have none. Only what decides it makes them run again.
func TestSetupCommands(t *testing.T) {
	files := map[string]string{
		".gitignore": "build/\n.venv/\n*.o\n", "scripts/setup.sh": "set -e\nmkdir -p build .venv/bin pool\n" + ask(listed) + " > build/out\necho one > .venv/bin/lib\necho 1 > pool/x; echo o > a.o; echo n > new.txt\n",
		"main.txt": "1", "web/a.txt": "a",
	}
	b := sandboxed(t, files, map[string]string{"main.txt": "2"}, map[string]string{"scripts/setup.sh": "mkdir build; echo evil > build/out\n"}, map[string]string{"pool/mine": "x\n"})
	b.run.Base = b.shas[0]
	b.run.Config.Setup = config.Setup{Commands: []string{"sh scripts/setup.sh", "cp main.txt build/main"}, Cache: []string{"pool"}}
	ws := b.open(b.shas[0])
	const look = "cat build/out build/main; echo; cat .venv/bin/lib pool/x; ls"
	want := "served " + listed + "\n1\none\n1\na.o\nbuild\nmain.txt\npool\nscripts\nweb"
	if got := b.sees(ws, look); got != want {
		t.Fatalf("tests see %q, want %q; told: %s", got, want, b.toldOf(b.shas[0]))
	}
	if told := b.toldOf(b.shas[0]); told != "installed dependencies (setup)\nfetched from registries: go 1 request, 32 bytes\n"+
		"setup also changed new.txt: files that the repository does not ignore are not kept" {
		t.Errorf("told: %s", told)
	}
	if got := b.sees(ws, "echo x > build/out; echo 2 > pool/x && cat pool/x; ls /run; "+ask(listed)+" 2>&1 | tail -n 1"); !strings.Contains(got, "2\n") ||
		!strings.Contains(got, "No such file") || strings.Contains(got, "served") {
		t.Errorf("writing and asking in tests: %s", got)
	}
	if changes, err := ws.Changes(t.Context()); err != nil || len(changes) != 0 {
		t.Errorf("changes: %+v, %v", changes, err)
	}
	// The next commits, and other workspaces, find it; what tests wrote is gone. The base's script
	// ran, whatever the change makes of it, and what the change adds is there.
	for i, sha := range b.shas {
		if got := b.sees(b.open(sha), "cat build/out; cat pool/mine 2>/dev/null"); got != "served "+listed+map[int]string{3: "\nx"}[i] {
			t.Errorf("the tests of commit %d see %q; told %s", i, got, b.toldOf(sha))
		}
	}
	if asked := b.requests(); len(asked) != 1 || b.setups() != 1 {
		t.Errorf("requests: %q, set up %d times", asked, b.setups())
	}
}

// Covers D1: settings choose whether anything is installed besides their commands.
func TestSetupWithoutInstalling(t *testing.T) {
	b := newBench(t, nil, map[string]string{".gitignore": "out/\n", "go.mod": "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.0.0\n"})
	b.run.Base = b.shas[0]
	b.run.Config.Setup = config.Setup{Commands: []string{"mkdir out; echo $GOPROXY >> out/env"}}
	b.open(b.shas[0])
	if told := b.toldOf(b.shas[0]); !strings.Contains(told, "could not install dependencies (go)") || !strings.Contains(told, "installed dependencies (setup)") {
		t.Errorf("told: %s", told)
	}
	asked, no := len(b.requests()), false
	b.run.Config.Setup.Install = &no
	ws := b.open(b.shas[0])
	if got := b.sees(ws, "cat out/env"); got != "http://127.0.0.1:4801" || len(b.requests()) != asked || strings.Contains(b.toldOf(b.shas[0]), "(go)") {
		t.Errorf("tests see %q, told %s, asked %q", got, b.toldOf(b.shas[0]), b.requests())
	}
	b.o.Dependencies.Registries = nil
	b.open(b.shas[0])
	if told := b.toldOf(b.shas[0]); !strings.Contains(told, "setup.commands were not run") {
		t.Errorf("told: %s", told)
	}
}

// Covers D1: a development container says how it is set up; where that does not work here,
// what the ecosystem has is installed all the same.
func TestSetupOfContainers(t *testing.T) {
	b := newBench(t, nil, map[string]string{".gitignore": "out/\n", ".devcontainer/devcontainer.json": `{"postCreateCommand": ["sh", "-c", "mkdir out; echo made > out/x"], /* why */ "image": "x:1",}`})
	b.run.Base = b.shas[0]
	if got := b.sees(b.open(b.shas[0]), "cat out/x"); got != "made" {
		t.Errorf("tests see %q, told %s", got, b.toldOf(b.shas[0]))
	}
}

// Covers D1 and S7: what commands of the settings can do ends with them, and with the
// work tree that they ran in. Each is tried on a commit of its own repository.
func TestAttacksOfSetupCommands(t *testing.T) {
	needs.Sandbox(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FORGE_TEST_TOKEN", "s3cret-token")
	for _, tt := range []struct {
		name     string
		commands []string
		cache    []string
		told     string // in what is told
		look     string // in tests
		want     string // of that, as a whole
	}{
		{"fails with what it said", []string{"for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3"}, nil,
			"could not install dependencies (setup.commands, command 1): `for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3` ended with 3: line 3\nline 4", "ls", "main.txt"},
		{"how to put it right", []string{"exit 3"}, nil, "name what does it here under setup.commands in .github/forge.yml", "ls", "main.txt"},
		{"a tool that is not there", []string{"true", "protoc-gen-nothing --go_out=."}, nil, "(setup.commands, command 2): `protoc-gen-nothing --go_out=.` ended with 127", "ls", "main.txt"},
		{"a tool by name", []string{"protoc-gen-nothing"}, nil, "protoc-gen-nothing: not found\nA program that it needs is not on the server", "ls", "main.txt"},
		{"the network", []string{"getent hosts example.com || (echo Could not resolve host: example.com >&2; exit 6)"}, nil, "Nothing but the server's registries is reached", "ls", "main.txt"},
		{"writes outside", []string{"mkdir build; for f in /etc/x /usr/x /bin/x /run/x /x /run/registries/x /home/x; do (echo x > $f) 2>/dev/null && echo $f >> build/wrote; done; echo tried > build/x"}, nil,
			"installed dependencies (setup)", "cat build/*", "tried"},
		{"reads the host", []string{"mkdir build; cat " + secret + " /etc/shadow /proc/1/environ > build/x 2>/dev/null; env >> build/x; true"}, nil, "installed dependencies (setup)",
			"grep -c s3cret build/x; grep -c '^root:' build/x", "0\n0"},
		{"leaves a process behind", []string{"(sleep 300; echo late > build/late) & mkdir build; echo on > build/x", "ls /proc | grep -c '^[0-9]' > build/n"}, nil, "installed dependencies (setup)",
			"ls build; [ $(cat build/n) -lt 12 ] && echo few", "n\nx\nfew"},
		{"links in what is kept", []string{"mkdir build; ln -s /etc/shadow build/shadow; ln -s ../main.txt build/main; ln -s / build/root; mkfifo build/pipe"}, nil, "installed dependencies (setup)",
			"cat build/shadow 2>&1; cat build/main; ls build", "cat: build/shadow: No such file or directory\n1\nmain\nroot\nshadow"},
		{"a link out of the tree in its place", []string{"ln -s /etc build"}, nil, "installed dependencies (setup)", "ls build/shadow 2>/dev/null; ls -d main.txt", "main.txt"},
		{"rights of others", []string{"mkdir build; cp /bin/true build/true; chmod 6777 build/true"}, nil, "installed dependencies (setup)", "stat -c %A build/true; build/true && echo runs", "-rwxrwxrwx\nruns"},
		{"changes the repository's files", []string{"echo evil > main.txt; rm src/a.txt; echo x > src/b.txt; mkdir build"}, nil, "setup also changed main.txt, src/b.txt", "cat main.txt src/a.txt; ls src", "1\na\na.txt"},
		{"ignores all", []string{"echo '*' > .gitignore; mkdir -p src/x; echo x > src/x/y; rm .gitignore"}, nil, "setup also changed", "cat src/a.txt", "a"},
		{"a git directory", []string{"mkdir -p .git/hooks build sub/.git; echo x > .git/hooks/post-checkout; echo x > build/x"}, nil, "setup also changed", "ls -a", ".\n..\n.gitignore\nbuild\nmain.txt\nsrc"},
		{"a git directory as it is written elsewhere", []string{"mkdir -p build .GIT/hooks; echo x > build/x"}, nil, "setup also changed", "ls -a", ".\n..\n.gitignore\nbuild\nmain.txt\nsrc"},
		{"processes without end", []string{"python3 -c '\nimport os\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    os._exit(5)\n'; exit 1"}, nil, deps.CannotInstall, "ls", "main.txt"},
		{"output without end", []string{"yes"}, nil, "was ended: output", "ls", "main.txt"},
		{"memory without end", []string{"python3 -c 'x = [bytearray(1 << 26) for _ in range(1000)]'"}, nil, deps.CannotInstall, "ls", "main.txt"},
		{"the disk", []string{"mkdir build; for i in $(seq 40); do head -c 30000000 /dev/zero > build/$i; done"}, nil, "was ended: disk", "ls main.txt", "main.txt"},
		{"the disk beside the tree", []string{"for i in $(seq 40); do head -c 30000000 /dev/zero > /deps/$i; done"}, nil, "was ended: disk", "ls main.txt", "main.txt"},
		{"time", []string{"sleep 100"}, nil, "tests.timeout_minutes gives it longer", "ls", "main.txt"},
		{"what no registry has", []string{strings.ReplaceAll(ask(listed), "/@v/list", "/secret?data=1")}, nil, deps.CannotInstall, "ls", "main.txt"},
		{"a body to a registry", []string{`python3 -c 'import os, urllib.request; urllib.request.urlopen(os.environ["FORGE_REGISTRY_GO"] + "` + listed + `", data=b"leak", timeout=5)'`}, nil, "HTTP Error 405", "ls", "main.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := sandboxed(t, map[string]string{"main.txt": "1\n", "src/a.txt": "a\n", ".gitignore": "build/\n"})
			b.spec.Limits = sandbox.Limits{Wall: 20 * time.Second, Memory: 1 << 30, TreeBytes: 200 << 20, Processes: 64}
			if tt.name == "time" {
				b.spec.Limits.Wall = time.Second
			}
			b.spaces()
			b.run.Base = b.shas[0]
			b.run.Config.Setup = config.Setup{Commands: tt.commands, Cache: tt.cache}
			ws := b.open(b.shas[0])
			told := b.toldOf(b.shas[0])
			if !strings.Contains(told, tt.told) {
				t.Errorf("told: %s\nwant: %s", told, tt.told)
			}
			if strings.Contains(told, "s3cret") {
				t.Errorf("a secret is told: %s", told)
			}
			want := tt.want
			if want == "main.txt" && tt.look == "ls" {
				want = "main.txt\nsrc"
			}
			if got := b.sees(ws, tt.look); got != want {
				t.Errorf("tests see %q, want %q; told: %s", got, want, told)
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "s3cret" {
				t.Errorf("the host's file is %q, %v", text, err)
			}
			if asked := b.requests(); strings.Contains(strings.Join(asked, " "), "secret") {
				t.Errorf("asked: %q", asked)
			}
		})
	}
}

// Covers D1 and S9: what agents' commands write reaches no verdict, and no other
// repository's tests see what was set up.
func TestSetupBelongsToOneRepository(t *testing.T) {
	b := sandboxed(t, map[string]string{"main.txt": "1\n", ".gitignore": "build/\npool/\n"})
	b.run.Base = b.shas[0]
	b.run.Config.Setup = config.Setup{Commands: []string{"mkdir build pool; echo right > build/x; echo right > pool/x"}, Cache: []string{"pool"}}
	agent := b.open(b.shas[0])
	b.sees(agent, "chmod -R u+w build pool; echo wrong > build/x; echo wrong > pool/x; rm -rf build; mkdir -p build; ln -sf /etc/passwd pool/x; echo wrong > /scratch/x; true")
	verdict := b.open(b.shas[0])
	if got := b.sees(verdict, "cat build/x pool/x"); got != "right\nright" {
		t.Errorf("a verdict sees %q", got)
	}
	if err := agent.Checkout(t.Context(), b.shas[0]); err != nil {
		t.Fatal(err)
	}
	if got := b.sees(agent, "cat build/x pool/x"); got != "right\nright" {
		t.Errorf("after a checkout, an agent sees %q", got)
	}
	// A directory in the place of one that is shown, made by an agent's command.
	b.sees(verdict, "true")
	other := *b.run
	other.Repo.ID = 8
	if cacheKey(other.Repo) == cacheKey(b.run.Repo) {
		t.Fatal("both repositories have one cache")
	}
	ws, err := b.o.Spaces.Open(t.Context(), workspace.OpenOptions{Name: "other", GitDir: b.o.Gateway.Dir(b.run.Repo), Commit: b.shas[0], Cache: cacheKey(other.Repo)})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	plan, err := b.setupOf(t.Context(), b.run, ws, b.shas[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := verdict.Installed(plan.Key); !ok {
		t.Error("what was set up is not found")
	}
	if _, ok := ws.Installed(plan.Key); ok {
		t.Error("another repository's setup is found")
	}
	if err := ws.Use(t.Context(), plan.Key, nil); err == nil {
		t.Error("another repository's setup can be used")
	}
}

// A setup that fails is tried again after a while; one that a crash cut off leaves
// nothing, and is done when the server is back.
func TestSetupIsTriedAgain(t *testing.T) {
	b := sandboxed(t, map[string]string{"main.txt": "1\n", ".gitignore": "build/\n"})
	b.run.Base = b.shas[0]
	b.run.Config.Setup = config.Setup{Commands: []string{"mkdir build; echo half > build/x; exit 1"}}
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			b.now = b.now.Add(againAfter + time.Minute)
		}
		b.open(b.shas[0])
		if left, _ := filepath.Glob(filepath.Join(b.dir, "work", "trees", "setup-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if told := b.toldOf(b.shas[0]); b.setups() != want || !strings.Contains(told, deps.CannotInstall) {
			t.Errorf("tried %d times, want %d; told: %s", b.setups(), want, told)
		}
	}
	// The server is killed while a command runs.
	b.run.Config.Setup = config.Setup{}
	ctx, kill := context.WithCancel(t.Context())
	ws := b.open(b.shas[0])
	b.run.Config.Setup.Commands = []string{"mkdir -p build; echo half > build/x; sleep 30; echo whole > build/x"}
	ended := make(chan error)
	delete(b.plans, b.run.ID)
	go func() { ended <- b.provide(ctx, b.run, ws, b.shas[0]) }()
	for running := false; !running; { // until the command has begun to write
		found, _ := filepath.Glob(filepath.Join(b.dir, "work", "trees", "setup-*", "tree", "build", "x"))
		running = len(found) > 0
	}
	kill()
	if err := <-ended; err == nil {
		t.Error("a setup that was cut off is no error")
	}
	b.spaces()
	b.run.Config.Setup.Commands = []string{"mkdir -p build; echo whole > build/x"}
	if got := b.sees(b.open(b.shas[0]), "cat build/x"); got != "whole" {
		t.Errorf("after the kill, tests see %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "work", "deps", "new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Covers D1: where a change's dependencies cannot be installed, its tests do not see those
// of the commit before: they would pass with what the change no longer asks for.
func TestFailedUpdateLeavesNoEnvironment(t *testing.T) {
	mod := "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.%d.0\n"
	b := newBench(t, nil, map[string]string{"go.mod": fmt.Sprintf(mod, 0), ".gitignore": "out\n"}, map[string]string{"go.mod": fmt.Sprintf(mod, 1)})
	b.run.Base = b.shas[0]
	b.run.Config.Setup.Commands = []string{"echo made > out"}
	ws := b.open(b.shas[0])
	plan, err := b.setupOf(t.Context(), b.run, ws, b.shas[0])
	if err != nil || plan.Empty() {
		t.Fatalf("the plan of the first commit: %+v, %v", plan, err)
	}
	if got := b.sees(ws, "cat out"); got != "made" {
		t.Errorf("commands on the first commit see %q", got)
	}
	works := 1 // to read the second commit
	gateway := b.o.Dependencies.Registries
	b.o.Dependencies.Registries = func(ctx context.Context) (*registry.Gateway, string, error) {
		if works--; works < 0 {
			return nil, "", errors.New("no gateway")
		}
		return gateway(ctx)
	}
	if err := b.provide(t.Context(), b.run, ws, b.shas[1]); err != nil {
		t.Fatal(err)
	}
	if got := b.sees(ws, "cat out"); !strings.Contains(got, "No such file") {
		t.Errorf("commands on the second commit see %q", got)
	}
	if told := b.toldOf(b.shas[1]); !strings.Contains(told, "could not install dependencies: no gateway") {
		t.Errorf("told: %s", told)
	}
}

// Covers D1: a change that edits what is installed has it installed over what the base has, by
// the ecosystem's own commands, which run for the base and for the change once each. What was
// there before a failure is tried again later.
func TestSetupOfChange(t *testing.T) {
	t.Parallel()
	mod := "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.%d.0\n"
	var mu sync.Mutex
	var ran []string
	fails := false
	b := newBench(t, func(dir string, c workspace.Command) (workspace.Result, bool) {
		script := c.Args[len(c.Args)-1]
		if !strings.HasPrefix(script, "go ") && !strings.HasPrefix(script, "find ") {
			return workspace.Result{}, false
		}
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, script)
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Error(err)
		}
		if fails {
			return workspace.Result{Exit: 1, Stderr: []byte("go: example.com/left@v1.1.0: no such version\n")}, true
		}
		_, version, _ := strings.Cut(string(text), "left ")
		if err := os.WriteFile(filepath.Join(dir, "vendored"), []byte(version), 0o600); err != nil {
			t.Error(err)
		}
		return workspace.Result{Duration: time.Second}, true
	}, map[string]string{"go.mod": fmt.Sprintf(mod, 0), ".gitignore": "vendored\n", "a.go": "package app\n"}, map[string]string{"a.go": "package app // edited\n"},
		map[string]string{"go.mod": fmt.Sprintf(mod, 1)})
	b.run.Base = b.shas[0]
	took := func(want int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(ran) != want {
			t.Errorf("ran %q, want %d commands", ran, want)
		}
		ran = nil
	}
	sees := func(sha int, want string, told ...string) {
		t.Helper()
		if got := b.sees(b.open(b.shas[sha]), "cat vendored"); got != want {
			t.Errorf("commit %d sees %q, want %q", sha, got, want)
		}
		for _, line := range told {
			if !strings.Contains(b.toldOf(b.shas[sha]), line) {
				t.Errorf("of commit %d is told %q, want %q", sha, b.toldOf(b.shas[sha]), line)
			}
		}
	}
	sees(0, "v1.0.0", "installed dependencies (go)")
	took(2)
	sees(1, "v1.0.0", "installed dependencies (go)")
	took(0)
	fails = true
	sees(2, "v1.0.0", breaksInstalling, "no such version")
	took(1)
	sees(2, "v1.0.0", breaksInstalling)
	took(0)
	if err := b.provide(t.Context(), b.run, b.open(b.shas[2]), b.shas[2]); err != nil {
		t.Fatal(err)
	}
	report := pipeline.TestReport{Setup: b.told(b.run.ID, b.shas[2])}
	if err := b.brokenInstalling(b.run, &report, &pipeline.Fault{Class: pipeline.FaultEnvironment}); err != nil || len(report.Failures) != 1 {
		t.Errorf("the report: %+v, %v", report, err)
	}
	fails = false
	b.now = b.now.Add(againAfter + time.Minute)
	sees(2, "v1.1.0", "the change edits what is installed: go.mod")
	took(1)
}

// Covers D1: what CI runs beside the tests runs beside each command here, from what the server
// has; what it does not have is told with the command that installs it.
func TestServicesOfCI(t *testing.T) {
	needs.Tools(t, "initdb")
	b := sandboxed(t, map[string]string{".gitignore": "out\n", ".github/workflows/ci.yml": `on: [push, pull_request]
jobs:
  test:
    services:
      db:
        image: postgres:16
        env: {POSTGRES_USER: shop, POSTGRES_PASSWORD: "secret words", POSTGRES_DB: shop_test}
        ports: ["5433:5432"]
      cache: {image: "redis:7"}
      sql: {image: "mariadb:11", env: {MARIADB_ROOT_PASSWORD: "a b", MARIADB_DATABASE: shop-test, MARIADB_USER: shop, MARIADB_PASSWORD: secret}}
      bag: {image: "memcached"}
      search: {image: "docker.elastic.co/elasticsearch/elasticsearch:8"}
    steps:
      - run: make test
        env: {DATABASE_URL: "postgres://shop:secret@localhost:${{ job.services.db.ports[5432] }}/shop_test", TOKEN: "${{ secrets.TOKEN }}"}
`})
	b.run.Base = b.shas[0]
	const psql = `$(ls /usr/lib/postgresql/*/bin/psql | tail -n 1) "$DATABASE_URL" -qtAc `
	b.run.Config.Setup.Commands = []string{psql + "'create table carts as select 1 as id'"}
	ws := b.open(b.shas[0])
	if got := b.sees(ws, psql+"'insert into carts values (2); select count(*) from carts'; echo [$TOKEN]"); got != "2\n[]" {
		t.Errorf("a command sees %q; told %s", got, b.toldOf(b.shas[0]))
	}
	// What one wrote is there for the next, as on a machine of CI, and not after a checkout.
	if got := b.sees(ws, psql+"'select count(*) from carts'"); got != "2" {
		t.Errorf("the next command sees %q", got)
	}
	if err := ws.Checkout(t.Context(), b.shas[0]); err != nil {
		t.Fatal(err)
	}
	if got := b.sees(ws, psql+"'select count(*) from carts'"); got != "1" {
		t.Errorf("after a checkout, a command sees %q", got)
	}
	if r, err := ws.Run(t.Context(), workspace.Command{Args: []string{"no-such-program"}, Timeout: time.Minute}); err != nil || r.Exit != 127 {
		t.Errorf("a program that is not there: %+v, %v", r, err)
	}
	told := b.toldOf(b.shas[0])
	for _, want := range []string{"the service postgres", ", setup)", "(the service elasticsearch): .github/workflows/ci.yml runs it beside the tests; Forge starts memcached, mysql, postgres, redis"} {
		if !strings.Contains(told, want) {
			t.Errorf("told %s, want %s", told, want)
		}
	}
	for tool, c := range map[string]struct{ pkg, look, want string }{
		"redis-server": {"redis-server", `bash -c 'exec 3<>/dev/tcp/127.0.0.1/6379; echo PING >&3; head -n 1 <&3'`, "+PONG"},
		"memcached":    {"memcached", `bash -c 'exec 3<>/dev/tcp/127.0.0.1/11211; echo flush_all >&3; head -n 1 <&3'`, "OK"},
		"mariadbd":     {"mariadb-server", "mysql -h127.0.0.1 -ushop -psecret shop-test -Ne 'select 1+1'; mysql -h127.0.0.1 -uroot '-pa b' -Ne 'select 3'", "2\n3"},
	} {
		if _, err := exec.LookPath(tool); err != nil {
			if !strings.Contains(told, "it is not on the server: apt-get install "+c.pkg) {
				t.Errorf("without %s is told %s", tool, told)
			}
		} else if got := b.sees(ws, c.look); got != c.want {
			t.Errorf("%s says %q", tool, got)
		}
	}
}

// Covers D1: what cannot be installed is the change's fault where the registries answered.
func TestWhoseFaultAnInstallationIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		failure deps.Failure
		want    string
	}{
		{"it fails", deps.Failure{Project: "npm", Why: "ended with 1"}, breaksInstalling + " (npm): ended with 1"},
		{"a registry is away", deps.Failure{Project: "npm", Why: "ended with 1", Away: true}, deps.CannotInstall + " (npm): ended with 1"},
		{"the server has no such program", deps.Failure{Project: "npm", Why: "needs npm", Lacks: true}, deps.CannotInstall + " (npm): needs npm"},
	} {
		if got := strings.Join(came(&deps.Tree{Failed: []deps.Failure{c.failure}}), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for why, want := range map[string]bool{
		"go /x/@v/list: proxy.golang.org answered 403 Forbidden": false, "npm /x: registry answered 400 Bad Request": false,
		"npm /x: registry answered 429 Too Many Requests": true, "npm /x: registry answered 503 Service Unavailable": true, "npm /x: dial tcp: no such host": true,
	} {
		if got := away(why); got != want {
			t.Errorf("away(%s) = %v", why, got)
		}
	}
}

// Covers D1: an agent cannot tell a registry more and more by the names that it asks for.
func TestLocksHaveALimit(t *testing.T) {
	b := newBench(t, nil, map[string]string{"go.mod": "module example.com/app\n\ngo 1.22\n"})
	b.run.Base, b.run.Head = b.shas[0], b.shas[0]
	l := &locking{x: b.Executor, run: b.run, ws: b.open(b.shas[0]), times: maxLocks}
	if err := l.ws.Write(t.Context(), "go.mod", []byte("module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.0.0\n")); err != nil {
		t.Fatal(err)
	}
	told, err := l.bring(t.Context())
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "asked 10 times") || len(b.requests()) > 0 {
		t.Errorf("told %q, %v; asked %q", told, err, b.requests())
	}
}

// What could not be installed comes before what else was tried in its place.
func TestWhyTestsCouldNotRun(t *testing.T) {
	t.Parallel()
	x, run := New(Options{}), &pipeline.Run{ID: 1}
	x.tell(run, "abc", []string{"could not build wheels", deps.Otherwise + ", since .devcontainer.json failed: mise: not found", deps.CannotInstall + " (pnpm): npm.jsr.io is not reached."})
	err := x.explain(1, "abc", &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: "`pnpm test` could not run: vitest: not found"})
	if want := "Forge could not install dependencies (pnpm): npm.jsr.io is not reached. Without that, `pnpm test` could not run"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
