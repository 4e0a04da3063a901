package sandbox

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// The test binary is the worker too: the manager starts it with these arguments.
const workerArg = "-act-as-worker"

// bridgeArg makes it the bridge in a sandbox.
const bridgeArg = "-act-as-bridge"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		err := actAsWorker(os.Args[2:])
		leaveCover(m, os.Args[len(os.Args)-1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == bridgeArg {
		os.Exit(Bridge(os.Args[2:]))
	}
	flag.Parse()
	if testing.CoverMode() != "" {
		var err error
		if coverDir, err = os.MkdirTemp("/tmp", "forge-sandbox-cover-"); err != nil {
			panic(err)
		}
		if err := os.Chmod(coverDir, 0o777); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if coverDir != "" {
		_ = os.RemoveAll(coverDir)
	}
	os.Exit(code)
}

// coverDir is where workers leave what they covered: most of this package runs in
// them. Empty when coverage is not measured.
var coverDir string

// leaveCover makes the worker's process write what it covered, by running no test.
func leaveCover(m *testing.M, arg string) {
	dir, ok := strings.CutPrefix(arg, "cover=")
	if !ok || dir == "" {
		return
	}
	os.Stdout, _ = os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err := flag.CommandLine.Parse([]string{"-test.run=^$", "-test.gocoverdir=" + dir}); err == nil {
		m.Run()
	}
}

// takeCover hands what workers covered to the test that runs, which counts it.
func takeCover(t testing.TB) {
	t.Helper()
	dir := flag.Lookup("test.gocoverdir")
	if coverDir == "" || dir == nil || dir.Value.String() == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(coverDir, "covcounters.*"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir.Value.String(), filepath.Base(file)), content, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
		_ = os.Remove(file)
	}
}

// actAsWorker is Worker, or with "nofilter" one whose seccomp program is empty.
func actAsWorker(args []string) error {
	if args[0] == "peek" {
		return peek(args[1:4])
	}
	if args[0] == "nofilter" {
		if err := harden(); err != nil {
			return err
		}
		return serve(&worker{setup: setup{noFilter: true}}, os.Stdin, os.Stdout)
	}
	return Worker(os.Stdin, os.Stdout)
}

// openDir is a temporary directory that the worker's user can pass.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "forge-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newManager returns a manager whose workers are this very binary.
func newManager(t testing.TB, o Options) *Manager {
	t.Helper()
	if runtime.GOOS == "linux" {
		needs.Tools(t, "prlimit")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Exe = exe
	if o.Dir == "" {
		o.Dir = openDir(t)
	}
	if o.Args == nil {
		o.Args = []string{workerArg}
	}
	o.Args = append(o.Args, "cover="+coverDir)
	o.Bridge = []string{bridgeArg}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// open opens a workspace on the fixture's commit.
func (f *fixture) open(t testing.TB, m *Manager, commit string) *Workspace {
	t.Helper()
	w, err := m.open(t.Context(), workspace.OpenOptions{Name: "run/1", GitDir: f.gateway.Dir(f.repo), Commit: commit, Cache: "acme/widgets"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		takeCover(t)
	})
	return w
}

// needBwrap skips where there is no bubblewrap, and only there: one that is broken
// is a failure.
func needBwrap(t testing.TB) {
	t.Helper()
	needs.Sandbox(t)
}

// fixture is a repository "on GitHub", as a path, with a gateway that knows it.
type fixture struct {
	remote  string // a bare repository
	repo    pipeline.Repo
	gateway *Gateway
	head    string // of main, with the files of newFixture
}

var fixedTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newFixture makes the remote, puts files into it, and fetches it.
func newFixture(t testing.TB, files map[string]string) *fixture {
	t.Helper()
	dir := openDir(t)
	f := &fixture{remote: filepath.Join(dir, "remote.git")}
	gitIn(t, "/", nil, "init", "-q", "--bare", "-b", "main", f.remote)
	f.repo = pipeline.Repo{ID: 7, Owner: "acme", Name: "widgets", DefaultBranch: "main", CloneURL: f.remote}
	f.head = f.commitTo(t, "main", files)
	g, err := NewGateway(GatewayOptions{Dir: filepath.Join(dir, "git"), AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	f.gateway = g
	if err := g.Fetch(t.Context(), f.repo, "", "main"); err != nil {
		t.Fatal(err)
	}
	return f
}

// commitTo commits files to a branch of the remote, as a human would. A name that
// starts with "!" is executable, one with "@" is a symbolic link.
func (f *fixture) commitTo(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	tree := t.TempDir()
	git := func(stdin string, args ...string) string {
		return gitIn(t, tree, []string{"GIT_DIR=" + f.remote, "GIT_WORK_TREE=" + tree, "GIT_INDEX_FILE=" + tree + ".index", "STDIN=" + stdin}, args...)
	}
	parent := gitMay(f.remote, "rev-parse", "-q", "--verify", "refs/heads/"+branch)
	if parent != "" {
		git("", "read-tree", parent)
	}
	var info strings.Builder
	for name, content := range files {
		mode := "100644"
		switch name[0] {
		case '!':
			mode, name = "100755", name[1:]
		case '@':
			mode, name = "120000", name[1:]
		}
		oid := git(content, "hash-object", "-w", "--stdin")
		fmt.Fprintf(&info, "%s %s\t%s\n", mode, oid, name)
	}
	git(info.String(), "update-index", "--index-info")
	args := []string{"commit-tree", git("", "write-tree"), "-m", "by a human"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	sha := git("", args...)
	git("", "update-ref", "refs/heads/"+branch, sha)
	_ = os.Remove(tree + ".index")
	return sha
}

func gitIn(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=human", "GIT_AUTHOR_EMAIL=h@example.com", "GIT_AUTHOR_DATE=@1700000000 +0000",
		"GIT_COMMITTER_NAME=human", "GIT_COMMITTER_EMAIL=h@example.com", "GIT_COMMITTER_DATE=@1700000000 +0000",
	}, env...)
	for _, kv := range env {
		if s, ok := strings.CutPrefix(kv, "STDIN="); ok {
			cmd.Stdin = strings.NewReader(s)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		msg := ""
		if e, ok := err.(*exec.ExitError); ok {
			msg = string(e.Stderr)
		}
		t.Fatalf("git %v: %v: %s", args, err, msg)
	}
	return strings.TrimSpace(string(out))
}

func gitMay(dir string, args ...string) string {
	out, _ := exec.Command("git", append([]string{"--git-dir=" + dir}, args...)...).Output()
	return strings.TrimSpace(string(out))
}

// mustRun runs a shell script in the workspace.
func mustRun(ctx context.Context, t testing.TB, w *Workspace, script string) workspace.Result {
	t.Helper()
	r, err := w.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", script}})
	if err != nil {
		t.Fatalf("run %q: %v", script, err)
	}
	return r
}
