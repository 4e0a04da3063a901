package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline/needs"
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

// install makes a small environment.
func install(t *testing.T, w *Workspace, key string) {
	t.Helper()
	err := w.Install(t.Context(), workspace.Installation{
		Key: key, Sockets: sockets(t, "served "), Routes: []workspace.Route{{Port: 4801, Socket: "go.sock"}},
		Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
			if err := in.Stage(ctx, "etc/settings", []byte("ours")); err != nil {
				return nil, err
			}
			for _, c := range []struct{ script, want string }{
				{"cat /work/README.md $HOME/etc/settings", "readmeours"},
				{"cat /proc/net/dev | grep -vc lo: ; exit 3", "2"},
				{"mkdir -p web/node_modules/left && echo left > web/node_modules/left/index.js && echo 1 > version.gen && echo x > stray && echo edited > README.md", ""},
				{"mkdir -p /deps/bin && printf '#!/bin/sh\necho tool' > /deps/bin/tool && chmod 4755 /deps/bin/tool && ln -s /etc/passwd /deps/link && mkfifo /deps/pipe", ""},
			} {
				if got := says(t, in.Run, script(c.script)); got != c.want {
					t.Errorf("%q printed %q, want %q", c.script, got, c.want)
				}
			}
			if _, err := exec.LookPath("python3"); err == nil {
				if got := says(t, in.Run, workspace.Command{Args: []string{"/usr/bin/python3", "-c", fetchOne}}); got != "served /list" {
					t.Errorf("a registry says %q", got)
				}
			}
			if left, err := in.Keep(ctx, nil); err != nil || !slices.Equal(left, []string{"README.md", "stray"}) {
				t.Errorf("left %v, %v", left, err)
			}
			return []byte("about"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

var ignoring = map[string]string{"README.md": "readme", ".gitignore": "node_modules/\n*.gen\n", "web/package.json": "{}"}

// Covers D1, S9: what a set-up left is there for all later commands of the repository, each
// of which may write it, and none of which changes it for another.
func TestEnvironment(t *testing.T) {
	needBwrap(t)
	for _, overlays := range []bool{true, false} {
		t.Run(fmt.Sprintf("overlays %v", overlays), func(t *testing.T) {
			f := newFixture(t, ignoring)
			m := newManager(t, Options{})
			m.setup.NoOverlay = !overlays
			if _, ok := f.open(t, m, f.head).Installed("lock1"); ok {
				t.Fatal("nothing is installed yet")
			}
			install(t, f.open(t, m, f.head), "lock1")
			w := f.open(t, m, f.head)
			if about, ok := w.Installed("lock1"); !ok || string(about) != "about" {
				t.Fatalf("installed: %q %v", about, ok)
			}
			check := func(w *Workspace) {
				t.Helper()
				if err := w.Use(t.Context(), "lock1", []string{"PATH=/deps/bin", "A=env"}); err != nil {
					t.Fatal(err)
				}
				for _, c := range []struct {
					command workspace.Command
					want    string
				}{
					{script("cat web/node_modules/left/index.js version.gen web/package.json README.md; tool; echo $A $HOME"), "left\n1\n{}readmetool\nenv /deps"},
					{workspace.Command{Args: []string{"/bin/sh", "-c", "echo $A"}, Env: []string{"A=own"}}, "own"},
					{script("ls -ld /deps/bin/tool | cut -c1-10; ls stray 2>/dev/null; ls /run /run/forge 2>/dev/null"), "-rwxr-xr-x"},
					{script("echo bad > web/node_modules/left/index.js; echo bad > /deps/bin/tool; rm version.gen 2>/dev/null || echo >version.gen; echo new > web/node_modules/new; cat web/node_modules/left/index.js version.gen 2>/dev/null"), "bad"},
				} {
					if got := says(t, w.Run, c.command); got != c.want {
						t.Errorf("%q printed %q, want %q", c.command.Args, got, c.want)
					}
				}
				if changes, err := w.Changes(t.Context()); err != nil || len(changes) != 0 {
					t.Errorf("changes: %v, %v", changes, err)
				}
				if names, err := w.List(t.Context(), ""); err != nil || overlays && !slices.Equal(names, []string{".gitignore", "README.md", "web/"}) {
					t.Errorf("listed: %v, %v", names, err)
				}
			}
			check(w)
			if err := w.Checkout(t.Context(), f.head); err != nil {
				t.Fatal(err)
			}
			check(w)
			other := f.open(t, m, f.head)
			err := other.Install(t.Context(), workspace.Installation{Key: "lock1", Make: func(context.Context, workspace.Installer) ([]byte, error) {
				t.Error("installed again")
				return nil, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			check(other)
			if err := other.Use(t.Context(), "", nil); err != nil {
				t.Fatal(err)
			}
			if err := other.Checkout(t.Context(), f.head); err != nil {
				t.Fatal(err)
			}
			if got := says(t, other.Run, script("ls /deps 2>/dev/null; ls web/node_modules 2>/dev/null; echo $A")); got != "" {
				t.Errorf("an environment that was taken away: %q", got)
			}
			stranger, err := m.open(t.Context(), workspace.OpenOptions{Name: "run/2", GitDir: f.gateway.Dir(f.repo), Commit: f.head, Cache: "acme/other"})
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()
			if _, ok := stranger.Installed("lock1"); ok {
				t.Error("another repository's environment is found")
			}
		})
	}
}

// Covers D1: an environment that begins as another has what that has, and changes it for
// nobody else.
func TestEnvironmentOverAnother(t *testing.T) {
	needBwrap(t)
	for _, overlays := range []bool{true, false} {
		t.Run(fmt.Sprintf("overlays %v", overlays), func(t *testing.T) {
			f := newFixture(t, ignoring)
			m := newManager(t, Options{})
			m.setup.NoOverlay = !overlays
			install(t, f.open(t, m, f.head), "base")
			err := f.open(t, m, f.head).Install(t.Context(), workspace.Installation{Key: "more", From: "base",
				Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
					if got := says(t, in.Run, script("cat web/node_modules/left/index.js; /deps/bin/tool")); got != "left\ntool" {
						t.Errorf("it begins with %q", got)
					}
					says(t, in.Run, script("rm -r web/node_modules/left; echo right > web/node_modules/right; echo 2 > version.gen; echo more > /deps/more"))
					_, err := in.Keep(ctx, nil)
					return []byte("{}"), err
				}})
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]string{"base": "left\n1\nbin link", "more": "right\n2\nbin link more"} {
				w := f.open(t, m, f.head)
				if err := w.Use(t.Context(), key, nil); err != nil {
					t.Fatal(err)
				}
				if got := says(t, w.Run, script("ls web/node_modules; cat version.gen; echo $(cd /deps; ls -d bin link more 2>/dev/null)")); got != want {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
			m.maxDeps = 1
			if err := m.pruneDeps(time.Time{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Covers D1: what one user of the worker has made is not another one's, which could not read all of it; and
// the mirror is given to the group of the one that there is now.
func TestInstalledByAnotherUser(t *testing.T) {
	needBwrap(t)
	needs.Root(t)
	f := newFixture(t, ignoring)
	m := newManager(t, Options{})
	install(t, f.open(t, m, f.head), "k")
	other := newManager(t, Options{Dir: m.dir, UID: 12345, GID: 12345})
	f.gateway.gid = 12345
	if err := errors.Join(f.gateway.prepare(), f.gateway.Fetch(t.Context(), f.repo, "", "main")); err != nil {
		t.Fatal(err)
	}
	w := f.open(t, other, f.head)
	if _, ok := w.Installed("k"); ok {
		t.Error("it is used by another user")
	}
	install(t, w, "k")
	if _, ok := w.Installed("k"); !ok {
		t.Error("another user cannot make its own")
	}
}

func TestInstallationThatFails(t *testing.T) { // D1
	needBwrap(t)
	f := newFixture(t, ignoring)
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

func TestOldDependenciesGoFirst(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, ignoring)
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	install(t, w, "k1")
	if err := w.Checkout(t.Context(), f.head); err != nil {
		t.Fatal(err)
	}
	install(t, w, "k2")
	if err := w.Use(t.Context(), "k1", nil); err != nil { // the older one is in use
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
