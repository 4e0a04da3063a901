package phase

import (
	"context"
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
	"forge/pipeline/needs"
	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

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
	b := &bench{t: t, now: time.Now(), dir: t.TempDir()}
	b.Executor, b.run, b.shas = commitsIn(t, b.dir, sets...)
	b.o.Log, b.o.Now = slog.New(slog.DiscardHandler), func() time.Time { return b.now }
	b.o.Spaces = workspacetest.New(t, nil)
	b.o.Known = func(context.Context, pipeline.Repo) (map[string]pipeline.KnownFailure, error) { return nil, nil }
	return b
}

// newBench has commits whose commands run in the sandbox, with a registry.
func newBench(t *testing.T, sets ...map[string]string) *bench {
	t.Helper()
	needs.Sandbox(t)
	needs.Tools(t, "python3")
	b := &bench{t: t, now: time.Now()}
	var err error
	if b.dir, err = os.MkdirTemp("/tmp", "forge-setup-"); err != nil { // the worker's user must reach it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", b.dir).Run(); _ = os.RemoveAll(b.dir) })
	if err := os.Chmod(b.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	b.Executor, b.run, b.shas = commitsIn(t, b.dir, sets...)
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
	b.o.Log, b.o.Now = slog.New(slog.NewTextHandler(b, nil)), func() time.Time { return b.now }
	b.o.Dependencies.Registries = func(context.Context) (*registry.Gateway, string, error) { return gateway, "", nil }
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
	ws, err := b.o.Spaces.Open(b.t.Context(), workspace.OpenOptions{Name: "test", GitDir: b.o.Gateway.Dir(b.run.Repo), Commit: sha, Cache: cacheKey(b.run.Repo)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { ws.Close() })
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
		".gitignore": "build/\n.venv/\n*.o\n", "scripts/setup.sh": "set -e\n. scripts/lib.sh\nmkdir -p build .venv/bin pool\n" + ask(listed) + " > build/out\necho $LIB > .venv/bin/lib\necho 1 > pool/x; echo o > a.o; echo n > new.txt\n",
		"scripts/lib.sh": "LIB=one\n", "Gemfile.lock": "left 1\n", "main.txt": "1", "web/a.txt": "a",
	}
	b := newBench(t, files, map[string]string{"main.txt": "2"}, map[string]string{"Gemfile.lock": "left 2\n"},
		map[string]string{"scripts/lib.sh": "LIB=evil\n"}, map[string]string{"pool/mine": "x\n"})
	b.run.Config.Setup = config.Setup{Commands: []string{"sh scripts/setup.sh", "cp Gemfile.lock build/lock"}, Cache: []string{"pool"}, Inputs: []string{"Gemfile.lock"}}
	ws := b.open(b.shas[0])
	const look = "cat build/out build/lock .venv/bin/lib pool/x; ls"
	want := "served " + listed + "\nleft 1\none\n1\nGemfile.lock\nbuild\nmain.txt\npool\nscripts\nweb"
	if got := b.sees(ws, look); got != want {
		t.Fatalf("tests see %q, want %q; told: %s", got, want, b.toldOf(b.shas[0]))
	}
	if told := b.toldOf(b.shas[0]); told != "set up by 2 commands, which left pool, .venv, build\nsetup also changed a.o, new.txt: files outside of ignored directories are not kept\n"+
		"fetched from registries: go 1 request, 32 bytes" {
		t.Errorf("told: %s", told)
	}
	if got := b.sees(ws, "(echo x > build/out) 2>&1; echo 2 > pool/x && cat pool/x; ls /run; "+ask(listed)+" 2>&1 | tail -n 1"); !strings.Contains(got, "Read-only") ||
		!strings.Contains(got, "\n2\n") || !strings.Contains(got, "No such file") || strings.Contains(got, "served") {
		t.Errorf("writing and asking in tests: %s", got)
	}
	if changes, err := ws.Changes(t.Context()); err != nil || len(changes) != 0 {
		t.Errorf("changes: %+v, %v", changes, err)
	}
	// The next commit, and another run, find it; what tests wrote is gone.
	if got := b.sees(b.open(b.shas[1]), look); got != want {
		t.Errorf("another commit's tests see %q", got)
	}
	if asked := b.requests(); len(asked) != 1 || b.setups() != 1 {
		t.Errorf("requests: %q, set up %d times", asked, b.setups())
	}
	// An input of the change counts; the base's script runs, whatever the change makes of it.
	for i, tt := range []struct{ lock, told string }{
		2: {"left 2", "the change edits what setup takes in: Gemfile.lock"}, 3: {"left 2", "the change edits what setup runs; it ran as on the base branch: scripts/lib.sh"},
	} {
		if tt.lock == "" {
			continue
		}
		got := b.sees(b.open(b.shas[i]), "cat build/lock .venv/bin/lib")
		if told := b.toldOf(b.shas[i]); got != tt.lock+"\none" || !strings.Contains(told, tt.told) {
			t.Errorf("commit %d: tests see %q, told %s", i, got, told)
		}
	}
	// What the change adds where setup left something is not hidden by it.
	got := b.sees(b.open(b.shas[4]), "cat pool/mine; ls pool build")
	if told := b.toldOf(b.shas[4]); got != "x\nbuild:\nlock\nout\n\npool:\nmine" || !strings.Contains(told, "could not set up pool: the change adds pool/mine there") {
		t.Errorf("tests see %q, told %s", got, told)
	}
}

// Covers D1: what was set up without it is seen, or is not made at all.
func TestSetupInstead(t *testing.T) {
	b := newBench(t, map[string]string{".gitignore": "out/\n", "go.mod": "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.0.0\n"})
	b.run.Config.Setup = config.Setup{Commands: []string{"mkdir out; ls /deps > out/deps 2>&1; echo $GOMODCACHE $GOPROXY >> out/deps"}}
	b.open(b.shas[0])
	if told := b.toldOf(b.shas[0]); !strings.Contains(told, "could not install dependencies (go)") || !strings.Contains(told, "set up by 1 command, which left out") {
		t.Errorf("told: %s", told)
	}
	asked := len(b.requests())
	b.run.Config.Setup.Instead = true
	ws := b.open(b.shas[0])
	if got := b.sees(ws, "cat out/deps"); !strings.Contains(got, "No such file") || !strings.HasSuffix(got, "http://127.0.0.1:4801") || len(b.requests()) != asked {
		t.Errorf("tests see %q, told %s, asked %q", got, b.toldOf(b.shas[0]), b.requests())
	}
	b.o.Dependencies.Registries = nil
	b.open(b.shas[0])
	if told := b.toldOf(b.shas[0]); !strings.Contains(told, "setup.commands were not run") {
		t.Errorf("told: %s", told)
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
		{"fails with its last lines", []string{"for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3"}, nil,
			"could not set up (setup.commands[0]): `for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3` ended with 3: line 3\nline 4", "ls", "main.txt"},
		{"how to put it right", []string{"exit 3"}, nil, "then correct it in .github/forge.yml there", "ls", "main.txt"},
		{"a tool that is not there", []string{"true", "protoc-gen-nothing --go_out=."}, nil, "(setup.commands[1]): `protoc-gen-nothing --go_out=.` ended with 127", "ls", "main.txt"},
		{"a tool by name", []string{"protoc-gen-nothing"}, nil, "It needs protoc-gen-nothing on the server: install it there", "ls", "main.txt"},
		{"the network", []string{"getent hosts example.com || (echo Could not resolve host: example.com >&2; exit 6)"}, nil, "It reaches the server's registries alone", "ls", "main.txt"},
		{"nothing of one that fails is kept", []string{"mkdir build; echo half > build/x", "exit 1"}, nil, "(setup.commands[1])", "ls", "main.txt"},
		{"writes outside", []string{"mkdir build; for f in /etc/x /usr/x /bin/x /run/x /x /seed/x /deps/x /run/registries/x /home/x; do (echo x > $f) 2>/dev/null && echo $f >> build/wrote; done; echo tried > build/x"}, nil,
			"which left build", "cat build/*", "tried"},
		{"reads the host", []string{"mkdir build; cat " + secret + " /etc/shadow /proc/1/environ > build/x 2>/dev/null; env >> build/x; true"}, nil, "which left build",
			"grep -c s3cret build/x; grep -c '^root:' build/x", "0\n0"},
		{"leaves a process behind", []string{"(sleep 300; echo late > build/late) & mkdir build; echo on > build/x", "ls /proc | grep -c '^[0-9]' > build/n"}, nil, "which left build",
			"ls build; [ $(cat build/n) -lt 12 ] && echo few", "n\nx\nfew"},
		{"a link out of the tree as cache", []string{"ln -s /etc pool"}, []string{"pool"}, "setup.cache names pool, but pool is a symbolic link", "ls", "main.txt"},
		{"a link above a cache", []string{"mkdir -p other/pool; ln -s other up"}, []string{"up/pool"}, "setup.cache names up/pool, but up is a symbolic link", "ls", "main.txt"},
		{"a file as cache", []string{"echo x > pool"}, []string{"pool"}, "it must be a directory", "ls", "main.txt"},
		{"a cache over the repository's files", []string{"true"}, []string{"src"}, "setup.cache names src, which holds files of the repository, such as src/", "ls", "main.txt"},
		{"links in what is kept", []string{"mkdir build; ln -s /etc/shadow build/shadow; ln -s ../main.txt build/main; ln -s / build/root; mkfifo build/pipe"}, nil, "which left build",
			"cat build/shadow 2>&1; cat build/main; ls build", "cat: build/shadow: No such file or directory\n1\nmain\nroot\nshadow"},
		{"links in a cache", []string{"mkdir pool; ln -s /etc/shadow pool/shadow; ln -s / pool/root; mkfifo pool/pipe; chmod 000 pool"}, []string{"pool"}, "which left pool",
			"cat pool/shadow 2>&1; ls pool; touch pool/new && ls pool | wc -l", "cat: pool/shadow: No such file or directory\nroot\nshadow\n3"},
		{"rights of others", []string{"mkdir build; cp /bin/true build/true; chmod 6777 build/true build"}, nil, "which left build", "stat -c %A build/true build; build/true && echo runs", "-r-xr-xr-x\ndrwxr-xr-x\nruns"},
		{"changes the repository's files", []string{"echo evil > main.txt; rm src/a.txt; echo x > src/b.txt; mkdir build"}, nil, "setup also changed main.txt, src/b.txt", "cat main.txt src/a.txt; ls src", "1\na\na.txt"},
		{"ignores all", []string{"echo '*' > .gitignore; mkdir -p src/x; echo x > src/x/y"}, nil, "setup also changed .gitignore", "ls src/x; ls src", "y\na.txt\nx"},
		{"a git directory", []string{"mkdir -p .git/hooks build sub/.git; echo x > .git/hooks/post-checkout; echo x > build/x"}, nil, "which left build", "ls -a", ".\n..\n.gitignore\nbuild\nmain.txt\nsrc"},
		{"a git directory as it is written elsewhere", []string{"mkdir -p build .GIT/hooks; echo x > build/x"}, nil, "which left build", "ls -a", ".\n..\n.gitignore\nbuild\nmain.txt\nsrc"},
		{"many directories", []string{"for i in $(seq 70); do mkdir -p d$i/build; echo x > d$i/build/x; done"}, nil, "70 ignored directories were made, more than 64", "ls", "main.txt"},
		{"processes without end", []string{"python3 -c '\nimport os\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    os._exit(5)\n'; exit 1"}, nil, "could not set up", "ls", "main.txt"},
		{"output without end", []string{"yes"}, nil, "was ended: output", "ls", "main.txt"},
		{"memory without end", []string{"python3 -c 'x = [bytearray(1 << 26) for _ in range(1000)]'"}, nil, "could not set up", "ls", "main.txt"},
		{"the disk", []string{"mkdir build; for i in $(seq 40); do head -c 30000000 /dev/zero > build/$i; done"}, nil, "was ended: disk", "ls", "main.txt"},
		{"time", []string{"sleep 100"}, nil, "Give it longer by setup.timeout_minutes", "ls", "main.txt"},
		{"what no registry has", []string{strings.ReplaceAll(ask(listed), "/@v/list", "/secret?data=1")}, nil, "could not set up", "ls", "main.txt"},
		{"a body to a registry", []string{`python3 -c 'import os, urllib.request; urllib.request.urlopen(os.environ["FORGE_REGISTRY_GO"] + "` + listed + `", data=b"leak", timeout=5)'`}, nil, "HTTP Error 405", "ls", "main.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string]string{"main.txt": "1\n", "src/a.txt": "a\n", ".gitignore": "build/\n"})
			b.spec.Limits = sandbox.Limits{Wall: 20 * time.Second, Memory: 1 << 30, TreeBytes: 200 << 20, Processes: 64}
			if tt.name == "time" {
				b.spec.Limits.Wall = time.Second
			}
			b.spaces()
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
			if want == "main.txt" {
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
	b := newBench(t, map[string]string{"main.txt": "1\n", ".gitignore": "build/\npool/\n"})
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
	kept, err := filepath.Glob(filepath.Join(b.dir, "work", "deps", "*", "setup-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	if _, ok := ws.Installed(filepath.Base(kept[0])); ok {
		t.Error("another repository's setup is found")
	}
	if err := ws.Use(t.Context(), "", workspace.Use{Layer: workspace.Layer{Key: filepath.Base(kept[0]), Mounts: []workspace.Mount{{From: "0", To: "build"}}}}); err == nil {
		t.Error("another repository's setup can be used")
	}
}

// A setup that fails is tried again after a while; one that a crash cut off leaves
// nothing, and is done when the server is back.
func TestSetupIsTriedAgain(t *testing.T) {
	b := newBench(t, map[string]string{"main.txt": "1\n", ".gitignore": "build/\n"})
	b.run.Config.Setup = config.Setup{Commands: []string{"mkdir build; echo half > build/x; exit 1"}}
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			b.now = b.now.Add(againAfter + time.Minute)
		}
		b.open(b.shas[0])
		if left, _ := filepath.Glob(filepath.Join(b.dir, "work", "trees", "setup-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if told := b.toldOf(b.shas[0]); b.setups() != want || !strings.Contains(told, "could not set up") {
			t.Errorf("tried %d times, want %d; told: %s", b.setups(), want, told)
		}
	}
	// The server is killed while a command runs.
	b.run.Config.Setup = config.Setup{}
	ctx, kill := context.WithCancel(t.Context())
	ws := b.open(b.shas[0])
	b.run.Config.Setup.Commands = []string{"mkdir -p build; echo half > build/x; sleep 30; echo whole > build/x"}
	ended := make(chan error)
	go func() { ended <- b.provide(ctx, b.run, ws, b.shas[0]) }()
	for running := false; !running; { // until the command has begun to write
		found, _ := filepath.Glob(filepath.Join(b.dir, "work", "trees", "setup-*", "tree", "build", "x"))
		running = len(found) > 0
	}
	kill()
	if err := <-ended; err == nil {
		t.Error("a setup that was cut off is no error")
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "work", "deps", "new-killed", "tree"), 0o755); err != nil { // as a kill leaves it
		t.Fatal(err)
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
