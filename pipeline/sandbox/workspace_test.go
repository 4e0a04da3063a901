package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/workspace"
)

var sources = map[string]string{
	"README.md": "hello\n", "!run.sh": "#!/bin/sh\necho ran\n", "@link": "README.md", "pkg/a.go": "package pkg\n\nfunc A() {}\n",
	"pkg/deep/b.txt": "needle here\r\nand\r\n", ".gitignore": "ignored/\n*.log\n", ".gitattributes": "* text eol=crlf\n*.txt filter=evil\n",
}

// The straight path: check out, look, edit, run, see the changes, commit, push.
func TestWorkspaceEndToEnd(t *testing.T) {
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	ctx := t.Context()

	names, err := w.List(ctx, "")
	want := []string{".gitattributes", ".gitignore", "README.md", "link", "pkg/", "run.sh"}
	if diff := cmp.Diff(want, names); err != nil || diff != "" {
		t.Errorf("List: %v, -want +got:\n%s", err, diff)
	}
	if got, err := w.Read(ctx, "pkg/deep/b.txt"); err != nil || string(got) != "needle here\r\nand\r\n" {
		t.Errorf("Read = %q, %v; want the bytes as committed", got, err)
	}
	if got, err := w.Search(ctx, "needle|func", "pkg/**", 10); err != nil ||
		!cmp.Equal(got, []string{"pkg/a.go:3: func A() {}", "pkg/deep/b.txt:1: needle here"}) {
		t.Errorf("Search = %q, %v", got, err)
	}
	if got, err := w.Changes(ctx); err != nil || len(got) != 0 {
		t.Errorf("Changes right after checkout = %v, %v; want none", got, err)
	}
	if err := w.Write(ctx, "new/dir/c.txt", []byte("c\n")); err != nil {
		t.Error(err)
	}
	if err := w.Write(ctx, "run.sh", []byte("#!/bin/sh\necho again\n")); err != nil {
		t.Error(err)
	}
	if err := w.Remove(ctx, "pkg/deep"); err != nil {
		t.Error(err)
	}
	r := mustRun(ctx, t, w, "./run.sh; echo oops >&2; mkdir ignored; echo x >ignored/y; echo x >z.log; mkdir __pycache__; echo x >__pycache__/q; exit 3")
	if r.Exit != 3 || string(r.Stdout) != "again\n" || string(r.Stderr) != "oops\n" || r.Class != "" {
		t.Errorf("Run = %+v", r)
	}
	changes, err := w.Changes(ctx)
	wantChanges := []workspace.Change{
		{Path: "new/dir/c.txt", Content: []byte("c\n")},
		{Path: "pkg/deep/b.txt", Deleted: true},
		{Path: "run.sh", Exec: true, Content: []byte("#!/bin/sh\necho again\n")},
	}
	if diff := cmp.Diff(wantChanges, changes); err != nil || diff != "" {
		t.Fatalf("Changes: %v, -want +got:\n%s", err, diff)
	}
	sha, err := f.gateway.Commit(ctx, f.repo, workspace.CommitOptions{
		Parent: f.head, Message: "a change", Author: "forge[bot]", Email: "forge@example.com", Time: fixedTime, Changes: changes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.gateway.Push(ctx, f.repo, "", workspace.PushOptions{Branch: "forge/issue-1", SHA: sha}); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, f.remote, nil, "show", "forge/issue-1:run.sh"); got != "#!/bin/sh\necho again" {
		t.Errorf("pushed run.sh = %q", got)
	}
	// The work tree at the new commit has no changes; back at the old one it is as before.
	for _, c := range []string{sha, f.head} {
		if err := w.Checkout(ctx, c); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Changes(ctx); err != nil || len(got) != 0 {
			t.Errorf("Changes at %s = %v, %v; want none", c, got, err)
		}
	}
	if _, err := w.Read(ctx, "ignored/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ignored/y after Checkout: %v; want it gone", err)
	}
	if _, err := w.Read(ctx, "pkg/deep/b.txt"); err != nil {
		t.Errorf("Read after Checkout: %v", err)
	}
}

// A checkout leaves nothing of what commands did: no file, no file's time, no
// scratch file, no cache.
func TestCheckoutForgets(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{}), f.head)
	mustRun(t.Context(), t, w, "touch -d @7 README.md pkg/a.go; echo x >$GOTMPDIR/x; mkdir -p $GOCACHE $XDG_CACHE_HOME; echo x >$GOCACHE/x; echo x >$XDG_CACHE_HOME/x")
	if r := mustRun(t.Context(), t, w, "cat $GOTMPDIR/x $GOCACHE/x $XDG_CACHE_HOME/x"); string(r.Stdout) != "x\nx\nx\n" {
		t.Errorf("between two commands: %+v", r)
	}
	if err := w.Checkout(t.Context(), f.head); err != nil {
		t.Fatal(err)
	}
	r := mustRun(t.Context(), t, w, "ls $GOTMPDIR $XDG_CACHE_HOME $GOCACHE/x 2>/dev/null; find . -type f ! -newermt @8")
	if string(r.Stdout) != "/scratch:\n" {
		t.Errorf("after a checkout: %s", r.Stdout)
	}
	if got, err := w.Changes(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("Changes after a checkout = %v, %v", got, err)
	}
}

// Covers S2. The worker never runs as root, and has nothing in its environment.
func TestWorkerIsUnprivileged(t *testing.T) {
	t.Setenv("FORGE_CANARY", "canary-value")
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	r := mustRun(t.Context(), t, w, "id -u; env")
	uid, env, _ := strings.Cut(string(r.Stdout), "\n")
	if uid == "0" || uid == "" {
		t.Errorf("a command ran as uid %q", uid)
	}
	if strings.Contains(env, "canary") {
		t.Errorf("the server's environment is seen: %s", env)
	}
	if os.Geteuid() == 0 {
		if err := Worker(strings.NewReader(""), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), "refuses to run as root") {
			t.Errorf("Worker as root: %v", err)
		}
		if _, err := new(worker).runLocked(t.Context(), workspace.Command{Args: []string{"true"}}, "."); err == nil || !strings.Contains(err.Error(), "as root") {
			t.Errorf("a command as root: %v", err)
		}
	}
}

// A cancelled call ends what it runs within a second, and the workspace goes on.
func TestCancelRun(t *testing.T) {
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() {
		_, err := w.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", "echo $$ >pid; exec sleep 300"}})
		started <- err
	}()
	for { // until it runs
		if got, err := w.Read(t.Context(), "pid"); err == nil && len(got) > 0 {
			break
		}
	}
	begin := time.Now()
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v; want context.Canceled", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("cancelling took %v", took)
	}
	if r := mustRun(t.Context(), t, w, "echo on"); string(r.Stdout) != "on\n" {
		t.Errorf("after a cancelled call: %+v", r)
	}
}

// Covers S9: what a command leaves in its process group ends with it, though it holds the output open.
func TestBackgroundEnds(t *testing.T) {
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	r := mustRun(t.Context(), t, w, "sleep 300 & echo $!")
	pid, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
	if err != nil || r.Duration > 2*time.Second {
		t.Fatalf("%+v, %v", r, err)
	}
	for end := time.Now().Add(2 * time.Second); syscall.Kill(pid, 0) == nil; {
		if time.Now().After(end) {
			t.Fatal("the process is still there")
		}
	}
}

// With so many commands at the same time, another waits for its place, and no longer than
// its run wants it; when one is free it runs.
func TestCommandsAtOnce(t *testing.T) {
	f := newFixture(t, sources)
	m := newManager(t, Options{Unsafe: true, AtOnce: 1})
	w := f.open(t, m, f.head)
	back, err := m.places.Take(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Run(stopped, workspace.Command{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a command without a place: %v; want that it was stopped", err)
	}
	back()
	if r, err := w.Run(t.Context(), workspace.Command{Args: []string{"echo", "here"}}); err != nil || !strings.Contains(string(r.Stdout), "here") {
		t.Errorf("a command with a place: %+v, %v", r, err)
	}
	if n := m.places.Waiting(); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}

// A refusal says whose the path is, at the edit and at the commit; of the repository's own
// rules it names the setting.
func TestRefusedPathsNameTheirOwner(t *testing.T) {
	f := newFixture(t, sources)
	m := newManager(t, Options{Unsafe: true})
	owners := map[string]string{"pkg/**": "the module auth"}
	w, err := m.open(t.Context(), workspace.OpenOptions{Name: "run/1", GitDir: f.gateway.Dir(f.repo), Commit: f.head, Cache: "acme/widgets",
		Protected: []string{"pkg/**", "run.sh"}, Owners: owners})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for path, want := range map[string]string{"pkg/a.go": "belongs to the module auth", "run.sh": "paths.protected in the settings",
		".github/workflows/ci.yml": "built-in rule"} {
		if err := w.Write(t.Context(), path, []byte("x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("write of %s: %v; want %q", path, err, want)
		}
	}
	if err := w.Remove(t.Context(), "pkg/a.go"); err == nil || !strings.Contains(err.Error(), "the module auth") {
		t.Errorf("remove: %v", err)
	}
	o := change(f.head, "pkg/a.go", "x")
	o.Protected, o.Owners = []string{"pkg/**"}, owners
	if _, err := f.gateway.Commit(t.Context(), f.repo, o); err == nil || !strings.Contains(err.Error(), "the module auth") {
		t.Errorf("commit: %v", err)
	}
}
