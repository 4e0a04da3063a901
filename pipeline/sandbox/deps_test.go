package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline/workspace"
)

// sockets is a directory with one socket, which answers every request with text.
func sockets(t *testing.T, text string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "forge-sockets-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "go.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(filepath.Join(dir, "go.sock"), 0o666)); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text+r.URL.Path) })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return dir
}

func script(text string) workspace.Command {
	return workspace.Command{Args: []string{"/bin/sh", "-c", text}}
}

// says runs a script and returns what it printed.
func says(t *testing.T, run func(context.Context, workspace.Command) (workspace.Result, error), c workspace.Command) string {
	t.Helper()
	r, err := run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(r.Stdout) + string(r.Stderr))
}

const fetchOne = `import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:4801/list", timeout=5).read().decode())`

// install makes a small tree of dependencies.
func install(t *testing.T, w *Workspace, key string) {
	t.Helper()
	err := w.Install(t.Context(), workspace.Installation{
		Key: key, Sockets: sockets(t, "served "), Routes: []workspace.Route{{Port: 4801, Socket: "go.sock"}},
		Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
			if err := in.Stage(ctx, "node/package.json", []byte("{}")); err != nil {
				return nil, err
			}
			for _, c := range []struct {
				command workspace.Command
				want    string
			}{
				{workspace.Command{Args: []string{"/usr/bin/python3", "-c", fetchOne}}, "served /list"},
				{script("cat /work/README.md"), "readme"},
				{script("touch /work/x 2>&1 || true"), "touch: cannot touch '/work/x': Read-only file system"},
				{workspace.Command{Args: []string{"/bin/sh", "-c", "pwd; ls"}, Dir: workspace.DepsPath + "/node"}, "/deps/node\npackage.json"},
				{script("cat /proc/net/dev | grep -vc lo: ; exit 3"), "2"},
				{script("mkdir -p /deps/node/node_modules/left /deps/bin && echo left > /deps/node/node_modules/left/index.js && printf '#!/bin/sh\necho tool' > /deps/bin/tool && chmod +x /deps/bin/tool"), ""},
				{script("ln -s /etc/passwd /deps/link && mkfifo /deps/pipe && chmod 4777 /deps/bin/tool"), ""},
			} {
				if got := says(t, in.Run, c.command); got != c.want {
					t.Errorf("%q printed %q, want %q", c.command.Args, got, c.want)
				}
			}
			return []byte("about"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDependencies(t *testing.T) { // D1, S9
	needBwrap(t)
	f := newFixture(t, map[string]string{"README.md": "readme", "web/package.json": "{}"})
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	if _, ok := w.Installed("lock1"); ok {
		t.Fatal("nothing is installed yet")
	}
	says(t, w.Run, script("echo poison > $XDG_CACHE_HOME.poison; echo poison > /scratch/poison"))
	install(t, w, "lock1")
	if about, ok := w.Installed("lock1"); !ok || string(about) != "about" {
		t.Fatalf("installed: %q %v", about, ok)
	}
	use := workspace.Use{Mounts: []workspace.Mount{{From: "node/node_modules", To: "web/node_modules"}}, Env: []workspace.DirEnv{
		{Dir: ".", Env: []string{"PATH=/deps/bin", "A=top", "PYTHONPATH=/deps/py"}},
		{Dir: "web", Env: []string{"A=web"}},
		{Dir: "web/py", Env: []string{"A=py", "PYTHONPATH=/deps/web"}},
	}}
	check := func(w *Workspace) {
		t.Helper()
		if err := w.Use(t.Context(), "lock1", use); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			command workspace.Command
			want    string
		}{
			{script("cat web/node_modules/left/index.js; tool"), "left\ntool"},
			{script("echo $A $PYTHONPATH"), "top /deps/py:/deps/web"},
			{workspace.Command{Args: []string{"/bin/sh", "-c", "echo $A $PYTHONPATH"}, Dir: "web", Env: []string{"PYTHONPATH=src"}}, "web src:/deps/py:/deps/web"},
			{workspace.Command{Args: []string{"/bin/sh", "-c", "echo $A"}, Env: []string{"A=own"}}, "own"},
			{script("for f in /deps/new /deps/bin/tool /work/web/node_modules/left/index.js /work/web/node_modules/new; do (echo bad > $f) 2>/dev/null && echo wrote $f; done; chmod u+w /deps/bin 2>/dev/null && echo changed; rm -rf /deps/bin 2>/dev/null; ls /deps"), "bin\nlink\nnode"},
			{script("ls -ld /deps/bin/tool | cut -c1-10"), "-r-xr-xr-x"},
			{script("ls /run 2>&1 || true; /run/forge 2>&1 || true"), "ls: cannot access '/run': No such file or directory\n/bin/sh: 1: /run/forge: not found"},
			{workspace.Command{Args: []string{"/usr/bin/python3", "-c", "try:\n " + fetchOne + "\nexcept Exception as e: print(e.reason)"}},
				"[Errno 111] Connection refused"},
		} {
			if got := says(t, w.Run, c.command); got != c.want {
				t.Errorf("%q printed %q, want %q", c.command.Args, got, c.want)
			}
		}
	}
	check(w)
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) != 0 {
		t.Errorf("changes: %v, %v", changes, err)
	}
	// Another workspace finds it, and needs nothing to be installed.
	other := f.open(t, m, f.head)
	err := other.Install(t.Context(), workspace.Installation{Key: "lock1", Make: func(context.Context, workspace.Installer) ([]byte, error) {
		t.Error("installed again")
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	check(other)
	if err := other.Use(t.Context(), "", workspace.Use{}); err != nil {
		t.Fatal(err)
	}
	if got := says(t, other.Run, script("ls /deps 2>/dev/null; ls web/node_modules; echo $A")); got != "" {
		t.Errorf("dependencies that were taken away: %q", got)
	}
	// A repository does not see another one's.
	stranger, err := m.open(t.Context(), workspace.OpenOptions{Name: "run/2", GitDir: f.gateway.Dir(f.repo), Commit: f.head, Cache: "acme/other"})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, ok := stranger.Installed("lock1"); ok {
		t.Error("another repository's dependencies are found")
	}
}

func TestInstallationThatFails(t *testing.T) { // D1
	needBwrap(t)
	f := newFixture(t, map[string]string{"README.md": "readme"})
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	boom := errors.New("npm ended with 1")
	err := w.Install(t.Context(), workspace.Installation{Key: "k", Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		says(t, in.Run, script("mkdir -p /deps/a/b; chmod 0 /deps/a"))
		return nil, boom
	}})
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if _, ok := w.Installed("k"); ok {
		t.Error("what failed is installed")
	}
	left, _ := filepath.Glob(m.path("deps", "new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	install(t, w, "k")
	if _, ok := w.Installed("k"); !ok {
		t.Error("the next attempt is not installed")
	}
}

// Who waits for somebody else's installation stops at once when told to.
func TestWaitingForAnInstallationEnds(t *testing.T) { // lessons 12
	m := &Manager{}
	unlock, err := m.lockDeps(t.Context(), "tree")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.lockDeps(ctx, "tree"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	unlock()
	if _, err := m.lockDeps(t.Context(), "tree"); err != nil {
		t.Error(err)
	}
}

func TestDependenciesDoNotFollowLinks(t *testing.T) { // S9
	needBwrap(t)
	f := newFixture(t, map[string]string{"README.md": "readme", "@web/node_modules": "/tmp", "@app": "web", "file/node_modules": "x"})
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	install(t, w, "k")
	for _, to := range []string{"web/node_modules", "app/node_modules", "file/node_modules", "../x", "/etc"} {
		if err := w.Use(t.Context(), "k", workspace.Use{Mounts: []workspace.Mount{{From: "node/node_modules", To: to}}}); err == nil {
			t.Errorf("%s is taken as a place for dependencies", to)
		}
	}
}

func TestOldDependenciesGoFirst(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, map[string]string{"README.md": "readme"})
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	install(t, w, "k1")
	install(t, w, "k2")
	if err := w.Use(t.Context(), "k1", workspace.Use{}); err != nil { // the older one is in use
		t.Fatal(err)
	}
	m.maxDeps = 1
	if err := m.pruneDeps(time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, one := w.Installed("k1")
	_, two := w.Installed("k2")
	if !one || two {
		t.Errorf("in use: %v, not in use: %v", one, two)
	}
}

func TestBridgeArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"/d", "x=y", "true"}, {"/d", "80", "true"}, {"/d", "80=../x", "true"}, {"/d", "99999=x", "true"}, {"/d", "0=x"}} {
		if code := Bridge(args); code != 126 {
			t.Errorf("%q: %d", args, code)
		}
	}
	for text, want := range map[string]int{"exit 7": 7, "kill -9 $$": 137, "true": 0} {
		if code := Bridge([]string{"/d", "0=x.sock", "/bin/sh", "-c", text}); code != want {
			t.Errorf("%s: %d, want %d", text, code, want)
		}
	}
}

// Covers D1: what package managers write in a tree that is thrown away is taken out of it
// as plain files alone, and nothing of it stays.
func TestResolve(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, map[string]string{"README.md": "readme"})
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	err := w.Resolve(t.Context(), workspace.Installation{Key: "lock", Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		if err := in.Stage(ctx, "in/old.txt", []byte("old")); err != nil {
			return nil, err
		}
		if said := says(t, in.Run, workspace.Command{Dir: "/deps/in", Args: []string{"/bin/sh", "-c", "cat /work/README.md > new.txt; ln -s /etc/passwd out.txt; mkfifo pipe; echo x > /work/x 2>/dev/null; ls"}}); !strings.Contains(said, "new.txt") {
			t.Errorf("a command says %q", said)
		}
		for name, want := range map[string]string{"in/new.txt": "readme", "in/old.txt": "old"} {
			if got, err := in.Take(ctx, name); err != nil || string(got) != want {
				t.Errorf("Take(%s) = %q, %v, want %q", name, got, err, want)
			}
		}
		for _, name := range []string{"in/out.txt", "in/pipe", "../tree", "in", "none"} {
			if got, err := in.Take(ctx, name); err == nil {
				t.Errorf("Take(%s) = %q, want none", name, got)
			}
		}
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Installed("lock"); ok {
		t.Error("the tree is kept")
	}
	if left, _ := filepath.Glob(m.path("deps", "new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) > 0 {
		t.Errorf("the work tree has changed: %v, %v", changes, err)
	}
}
