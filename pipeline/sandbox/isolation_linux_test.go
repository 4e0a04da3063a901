package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// peek is a worker that was taken over: it looks for what is the server's, and says in
// its last words what it found.
func peek(args []string) error {
	address, server, files := args[0], args[1], strings.Split(args[2], ",")
	var found []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			found = append(found, "a file")
		}
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		found = append(found, "the network")
	}
	if pid, _ := strconv.Atoi(server); unix.Kill(pid, 0) == nil {
		found = append(found, "the server")
	}
	for _, p := range processes() {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)); err == nil && strings.Contains(string(env), "FORGE_CANARY=5e1f") {
			found = append(found, "its environment")
			break
		}
	}
	return fmt.Errorf("found: %s.", strings.Join(found, ", "))
}

// asNobody runs the test that calls it once more, as a user that is not root, when this
// one is: root gives its workers another user.
func asNobody(t *testing.T) (done bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(openDir(t), "test") // go's own place for it is root's alone
	if err := writeFile(exe, string(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/bin:/bin", "HOME=/nonexistent", "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	return true
}

// Covers S2, S4: where worker and server share a user, a worker that was taken over sees
// no key, no database, no process and no network of the server's.
func TestWorkerOfTheSameUser(t *testing.T) {
	needBwrap(t)
	if asNobody(t) {
		return
	}
	t.Setenv("FORGE_CANARY", "5e1f")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sleeper := exec.Command("sleep", "60") // git with a token is such a process
	sleeper.Env = []string{"FORGE_CANARY=5e1f"}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	state, etc := openDir(t), openDir(t)
	database, key, single := filepath.Join(state, "forge.db"), filepath.Join(etc, "app.pem"), filepath.Join("/tmp", filepath.Base(etc)+".key")
	for _, file := range []string{database, key, single} {
		if err := writeFile(file, "secret", 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(file) })
	}
	o := Options{Dir: filepath.Join(state, "work"), Secrets: []string{state, key, single, filepath.Join(state, "not-there")}, Shown: []string{filepath.Join(state, "git")}}
	look := func(o Options, change func(*Manager)) string {
		t.Helper()
		o.Args = []string{workerArg, "peek", l.Addr().String(), strconv.Itoa(os.Getpid()), strings.Join([]string{database, key, single}, ",")}
		m := newManager(t, o)
		change(m)
		_, err := m.open(t.Context(), workspace.OpenOptions{Name: "x", Cache: "x"})
		_, said, _ := strings.Cut(fmt.Sprint(err), "found: ")
		said, _, _ = strings.Cut(said, ".")
		return said
	}
	if said := look(o, func(*Manager) {}); said != "" {
		t.Errorf("a worker finds %s", said)
	}
	if said := look(o, func(m *Manager) { m.isolation = nil }); said != "a file, a file, a file, the network, the server, its environment" {
		t.Errorf("without namespaces a worker finds %q: nothing was tried", said)
	}

	// It works as any other.
	f := newFixture(t, sources)
	o.Args = nil
	o.Secrets = append(o.Secrets, filepath.Dir(f.gateway.Dir(f.repo)))
	o.Shown = append(o.Shown, filepath.Dir(f.gateway.Dir(f.repo)))
	m := newManager(t, o)
	w := f.open(t, m, f.head)
	if r := mustRun(t.Context(), t, w, "cat README.md; id -u; echo x >x"); string(r.Stdout) != "hello\n1000\n" {
		t.Errorf("a command: %s %s", r.Stdout, r.Stderr)
	}
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) != 1 || changes[0].Path != "x" {
		t.Errorf("changes: %v, %v", changes, err)
	}
	if err := m.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

// Covers S2, S4: a worker that a root server gives another user has no network and no processes
// of the server's either.
func TestWorkerOfRoot(t *testing.T) {
	needBwrap(t)
	needs.Root(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, isolated := range []bool{true, false} {
		m := newManager(t, Options{Dir: filepath.Join(openDir(t), "work"), Args: []string{workerArg, "peek", l.Addr().String(), strconv.Itoa(os.Getpid()), "/etc/shadow"}})
		if !isolated {
			m.isolation = nil
		}
		_, err := m.open(t.Context(), workspace.OpenOptions{Name: "x", Cache: "x"})
		if found := strings.Contains(fmt.Sprint(err), "found: the network."); found == isolated {
			t.Errorf("isolated %v: %v", isolated, err)
		}
	}
}

// What is started in namespaces is not killed by the end of a thread.
func TestIsolatedIsNotKilled(t *testing.T) {
	needBwrap(t)
	f := &isolation{bwrap: newManager(t, Options{Dir: filepath.Join(openDir(t), "work")}).setup.Bwrap}
	errs := make(chan error)
	for range 80 {
		go func() {
			cmd := exec.CommandContext(t.Context(), "/bin/sleep", "0.1")
			f.around(cmd)
			ended := make(chan struct{})
			err := startBare(cmd, ended)
			if err == nil {
				err = cmd.Wait()
			}
			close(ended)
			errs <- err
		}()
	}
	for range 80 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// What hides a worker from secrets hides what is around them, too, and nothing that
// everybody lives on.
func TestIsolationArguments(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"state/work", "state/git", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "etc/app.pem")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(key, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	f := &isolation{hide: []string{at("state"), at("link"), "/etc/passwd", at("gone")}, show: []string{at("state/work"), at("state/git"), "/usr/local/go"}, work: at("state/work")}
	want := []string{"--tmpfs", at("etc"), "--tmpfs", at("state"), "--bind", at("state/work"), at("state/work"), "--ro-bind-try", at("state/git"), at("state/git"),
		"--ro-bind", "/dev/null", "/etc/passwd", "--"}
	args := f.args()
	if got := args[slices.Index(args, "/proc")+1:]; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	f.bwrap = "/nonexistent"
	if err := f.works(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without bubblewrap: %v", err)
	}
}
