package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deepen makes directories below dir, too deep to be named by one path, and shuts the last.
func deepen(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Close(fd) }()
	for range depth {
		if err := unix.Mkdirat(fd, "deep", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "deep", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	if err := unix.Fchmod(fd, 0); err != nil {
		t.Fatal(err)
	}
}

// A tree is removed however deep it is, with few descriptors, and nothing that a link in
// it leads to.
func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	tree, other := filepath.Join(dir, "tree"), filepath.Join(dir, "other")
	for _, d := range []string{tree, other, filepath.Join(tree, "shut")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": other, "shut/link": other, "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(other, "kept"), filepath.Join(tree, "a"), filepath.Join(tree, "shut/b")} {
		if err := writeFile(name, "x", 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(tree, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	deepen(t, tree, 5000)
	var was, few unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few = was
	few.Cur = 128
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err := removeTree(tree)
	if back := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil || back != nil {
		t.Fatal(err, back)
	}
	if _, err := os.Lstat(tree); !os.IsNotExist(err) {
		t.Errorf("the tree is there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "kept")); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
	if err := removeTree(tree); err != nil {
		t.Errorf("what is gone: %v", err)
	}
}

// At the start the work trees go that an earlier process left, and nothing that one uses;
// environments go when nothing has used them for a month.
func TestSweep(t *testing.T) {
	f := newFixture(t, sources)
	m := newManager(t, Options{Unsafe: true})
	w := f.open(t, m, f.head)
	now := time.Now()
	m.now = func() time.Time { return now }
	left, begun := m.path("trees", "run-9-x"), m.path("trees", making+"y")
	half, old, idle := m.path("deps", making+"z"), m.path("deps", "x", "old"), m.path("deps", "x", "idle")
	for i, d := range []string{left, begun, half, old, idle} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		about := filepath.Join(d, aboutFile)
		if err := writeFile(about, "{}", 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-[]time.Duration{0, 0, 0, keepDeps + time.Hour, time.Hour}[i])
		if err := os.Chtimes(about, at, at); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want map[string]bool) {
		t.Helper()
		for dir, there := range want {
			if _, err := os.Stat(dir); (err == nil) != there {
				t.Errorf("%s: %v, want it there: %v", dir, err, there)
			}
		}
	}
	sweep := func(m *Manager) {
		t.Helper()
		if err := m.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := newManager(t, Options{Unsafe: true, Dir: m.dir}) // of another process: it knows nothing of what this one uses
	other.now = m.now
	sweep(other)
	is(map[string]bool{w.dir: true, w.goCache: true, left: false, begun: true, half: true, old: false, idle: true})
	now = now.Add(2 * keepDeps)
	sweep(other)
	is(map[string]bool{w.dir: true, w.goCache: false, idle: false, begun: false, half: false})
	if err := w.Write(t.Context(), "new.txt", []byte("x")); err != nil {
		t.Errorf("the work tree that is in use: %v", err)
	}
}

// A mirror that is in use is packed, and keeps what may be asked for; one that is not goes,
// and comes back when it is.
func TestCollect(t *testing.T) {
	f := newFixture(t, sources)
	sha, err := f.gateway.Commit(t.Context(), f.repo, change(f.head, "b.txt", "x\n")) // nothing leads to it yet
	if err != nil {
		t.Fatal(err)
	}
	loose := func() int {
		dirs, err := filepath.Glob(filepath.Join(f.gateway.Dir(f.repo), "objects", "??"))
		if err != nil {
			t.Fatal(err)
		}
		return len(dirs)
	}
	if err := f.gateway.Collect(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	packs, _ := filepath.Glob(filepath.Join(f.gateway.Dir(f.repo), "objects/pack/*.pack"))
	if len(packs) == 0 || !f.gateway.has(t.Context(), f.repo, f.head) || !f.gateway.has(t.Context(), f.repo, sha) {
		t.Errorf("packs %q; the head, and a commit that nothing leads to, must be there", packs)
	}
	few := loose()
	if _, err := f.gateway.Commit(t.Context(), f.repo, change(f.head, "c.txt", "y\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.gateway.Collect(t.Context(), time.Now()); err != nil || loose() == few {
		t.Errorf("it was packed again so soon (%v)", err)
	}
	if err := f.gateway.Collect(t.Context(), time.Now().Add(keepMirrors+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.gateway.Dir(f.repo)); !os.IsNotExist(err) {
		t.Errorf("the mirror that nothing uses: %v", err)
	}
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "main"); err != nil || !f.gateway.has(t.Context(), f.repo, f.head) {
		t.Errorf("fetched again: %v", err)
	}
}

// What is emptied is the directory that was seen, never what a link leads to.
func TestOpenToRemove(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if f, err := openToRemove(int(at.Fd()), "link"); err == nil {
		f.Close()
		t.Error("a link was opened")
	}
}
