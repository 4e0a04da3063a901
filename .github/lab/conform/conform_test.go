package conform

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline/workspace"
)

// conform holds workspaces to what [workspace.Workspace] promises: the same tests for the
// sandbox and for the double. dir is a directory that workers can pass.
func conform(t *testing.T, spaces workspace.Workspaces, dir string) {
	repo := repository(t, dir)
	open := func(t *testing.T, o workspace.OpenOptions) workspace.Workspace {
		t.Helper()
		o.Name, o.GitDir, o.Cache = "conform", repo.dir, "conform"
		if o.Commit == "" {
			o.Commit = repo.first
		}
		ws, err := spaces.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := ws.Close(); err != nil {
				t.Error(err)
			}
		})
		return ws
	}
	if err := spaces.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("files", func(t *testing.T) {
		conformFiles(t, open(t, workspace.OpenOptions{Protected: []string{"locked/**"}, Taken: map[string]string{"b.txt": "the module b"}}))
	})
	t.Run("changes", func(t *testing.T) {
		conformChanges(t, open(t, workspace.OpenOptions{Protected: []string{"locked/**"}}), repo)
	})
	t.Run("history", func(t *testing.T) { conformHistory(t, open(t, workspace.OpenOptions{Commit: repo.second}), repo) })
	t.Run("environments", func(t *testing.T) {
		conformEnvironments(t, func() workspace.Workspace { return open(t, workspace.OpenOptions{}) }, repo)
	})
	t.Run("commands", func(t *testing.T) { conformCommands(t, open(t, workspace.OpenOptions{})) })
}

// repo has two commits: the second one changes b.txt and adds sub/c.go.
type repo struct{ dir, first, second string }

func repository(t *testing.T, dir string) repo {
	t.Helper()
	work, bare := filepath.Join(dir, "conform-work"), filepath.Join(dir, "conform.git")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	put := func(name, text string) {
		t.Helper()
		full := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(message string) string {
		git("-C", work, "add", "-A")
		git("-C", work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-qm", message)
		return git("-C", work, "rev-parse", "HEAD")
	}
	git("init", "-q", "-b", "main", work)
	put("a.txt", "one\ntwo\n")
	put("b.txt", "b\n")
	put(".gitignore", "*.log\n")
	if err := os.Symlink("a.txt", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	r := repo{dir: bare, first: commit("Begin")}
	put("b.txt", "b\nmore\n")
	put("sub/c.go", "package sub\n\nfunc Greet() {}\n")
	r.second = commit("Say more in b")
	git("clone", "-q", "--bare", work, bare)
	return r
}

func conformFiles(t *testing.T, ws workspace.Workspace) {
	ctx := t.Context()
	list, err := ws.List(ctx, "")
	if want := []string{".gitignore", "a.txt", "b.txt", "link"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("List = %q, %v; want %q", list, err, want)
	}
	if text, err := ws.Read(ctx, "a.txt"); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("Read = %q, %v", text, err)
	}
	if _, err := ws.Read(ctx, "nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing: %v, want fs.ErrNotExist", err)
	}
	for _, name := range []string{"../x", "/etc/passwd", ".git/config", "a/../../x"} {
		if err := ws.Write(ctx, name, []byte("x")); err == nil {
			t.Errorf("Write of %s is not refused", name)
		}
	}
	if err := ws.Write(ctx, "link", []byte("x")); err == nil {
		t.Error("Write goes through a symbolic link")
	}
	var protected *workspace.ProtectedError
	for _, name := range []string{"locked/x", ".github/workflows/x.yml"} {
		if err := ws.Write(ctx, name, []byte("x")); !errors.As(err, &protected) {
			t.Errorf("Write of %s: %v, want a *ProtectedError", name, err)
		}
	}
	if err := ws.Write(ctx, "b.txt", []byte("x")); err == nil || !strings.Contains(err.Error(), "the module b") {
		t.Errorf("Write of another's file: %v", err)
	}
	if err := ws.Remove(ctx, "b.txt"); err == nil {
		t.Error("Remove of another's file is not refused")
	}
	if err := errors.Join(ws.Write(ctx, "new/deep/x.txt", []byte("three\n")), ws.Remove(ctx, "a.txt")); err != nil {
		t.Error(err)
	}
	if lines, err := ws.Search(ctx, "^thr", "new/**", 10); err != nil || !slices.Equal(lines, []string{"new/deep/x.txt:1: three"}) {
		t.Errorf("Search = %q, %v", lines, err)
	}
	if _, err := ws.Search(ctx, "(", "", 10); err == nil {
		t.Error("Search with a broken pattern is not refused")
	}
}

func conformChanges(t *testing.T, ws workspace.Workspace, r repo) {
	ctx := t.Context()
	changed := func(want ...string) {
		t.Helper()
		list, err := ws.Changes(ctx)
		var got []string
		for _, c := range list {
			name := c.Path
			if c.Deleted {
				name = "-" + name
			} else if c.Exec {
				name = "*" + name
			}
			got = append(got, name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Changes = %q, %v; want %q", got, err, want)
		}
	}
	changed()
	run(t, ws, "rm b.txt; echo x >run.sh; chmod +x run.sh; echo x >ignored.log; mkdir -p locked; echo x >locked/y")
	if err := ws.Write(ctx, "a.txt", []byte("another\n")); err != nil {
		t.Fatal(err)
	}
	changed("a.txt", "-b.txt", "locked/y", "*run.sh")
	if err := ws.Strays(ctx); err == nil || !strings.Contains(err.Error(), "locked/y") {
		t.Errorf("Strays = %v, want locked/y", err)
	}
	if err := ws.Restore(ctx, r.second, []string{"b.txt", "sub/c.go", "run.sh"}); err != nil {
		t.Fatal(err)
	}
	changed("a.txt", "b.txt", "locked/y", "sub/c.go")
	if err := ws.Checkout(ctx, r.second); err != nil {
		t.Fatal(err)
	}
	changed()
	if text, err := ws.Read(ctx, "b.txt"); err != nil || string(text) != "b\nmore\n" {
		t.Errorf("after the checkout, b.txt = %q, %v", text, err)
	}
	run(t, ws, "mkfifo pipe")
	if _, err := ws.Changes(ctx); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("Changes with a FIFO: %v, want it refused by name", err)
	}
	run(t, ws, "rm pipe; mkdir -p in/.git; echo x >in/.git/HEAD")
	if _, err := ws.Changes(ctx); err == nil || !strings.Contains(err.Error(), "in/.git") {
		t.Errorf("Changes with a repository inside: %v, want it refused by name", err)
	}
	if err := ws.Checkout(ctx, strings.Repeat("0", 40)); err == nil {
		t.Error("Checkout of no commit is not refused")
	}
}

func conformHistory(t *testing.T, ws workspace.Workspace, r repo) {
	ctx := t.Context()
	if log, err := ws.Log(ctx, "b.txt", 5); err != nil || strings.Count(log, "\n") != 2 || !strings.Contains(log, "Ann: Say more in b") {
		t.Errorf("Log = %q, %v", log, err)
	}
	if blame, err := ws.Blame(ctx, "b.txt", 2, 2); err != nil || !strings.Contains(blame, r.second[:7]) || strings.Contains(blame, r.first[:7]) {
		t.Errorf("Blame = %q, %v", blame, err)
	}
	if err := ws.Write(ctx, "a.txt", []byte("one\n2\n")); err != nil {
		t.Fatal(err)
	}
	if diff, err := ws.Diff(ctx, "", "a.txt"); err != nil || !strings.Contains(diff, "-two\n+2\n") || strings.Contains(diff, "more") {
		t.Errorf("Diff = %q, %v", diff, err)
	}
	if diff, err := ws.Diff(ctx, r.first, ""); err != nil || !strings.Contains(diff, "+more\n") || !strings.Contains(diff, "+2\n") {
		t.Errorf("Diff from the first commit = %q, %v", diff, err)
	}
	if found, err := ws.Symbols(ctx, "greet", 5); err != nil || !strings.HasPrefix(found, "sub/c.go:3: func") {
		t.Errorf("Symbols = %q, %v", found, err)
	}
}

func conformEnvironments(t *testing.T, open func() workspace.Workspace, r repo) {
	ctx := t.Context()
	ws := open()
	if _, ok := ws.Installed("one"); ok {
		t.Error("an environment is there before it was made")
	}
	if err := ws.Use(ctx, "one", nil); err == nil {
		t.Error("Use of an environment that was never made is not refused")
	}
	made := 0
	install := func(ws workspace.Workspace, key, from, script string, wantLeft ...string) {
		t.Helper()
		err := ws.Install(ctx, workspace.Installation{Key: key, From: from, Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
			made++
			if err := in.Stage(ctx, "conf/x", []byte("staged\n")); err != nil {
				return nil, err
			}
			if r, err := in.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", script}, Env: []string{"AT=" + workspace.EnvPath}, Timeout: time.Minute}); err != nil || r.Exit != 0 {
				t.Errorf("a command of a set-up: %+v, %v", r, err)
			}
			left, err := in.Keep(ctx, []string{"pool"})
			if !slices.Equal(left, wantLeft) {
				t.Errorf("left: %q, want %q", left, wantLeft)
			}
			return []byte("about " + key), err
		}})
		if about, ok := ws.Installed(key); err != nil || !ok || string(about) != "about "+key {
			t.Errorf("Install: %v; Installed = %q, %v", err, about, ok)
		}
	}
	install(ws, "one", "", "cat $AT/conf/x >made.log; mkdir -p pool $AT/bin; echo kept >pool/x; echo no >new.txt; echo no >a.txt; "+
		"printf '#!/bin/sh\necho tool $WORD\n' >$AT/bin/tool; chmod +x $AT/bin/tool", "a.txt", "new.txt")
	ws = open()
	install(ws, "one", "", "exit 1") // it is there
	if made != 1 {
		t.Errorf("an environment was made %d times", made)
	}
	sees := func(ws workspace.Workspace, script, want string) {
		t.Helper()
		if r := run(t, ws, script); string(r.Stdout)+string(r.Stderr) != want {
			t.Errorf("%s: %+v, want %q", script, r, want)
		}
	}
	use := func(key string) {
		t.Helper()
		if err := ws.Use(ctx, key, []string{"PATH=" + workspace.EnvPath + "/bin", "WORD=hello"}); err != nil {
			t.Error(err)
		}
	}
	const look, one = "tool; cat made.log pool/x a.txt", "tool hello\nstaged\nkept\none\ntwo\n"
	use("one")
	sees(ws, look+"; echo wrong >made.log; rm -r pool", one)
	if changes, err := ws.Changes(ctx); err != nil || len(changes) != 0 {
		t.Errorf("Changes = %+v, %v; want none", changes, err)
	}
	if err := ws.Checkout(ctx, r.first); err != nil {
		t.Fatal(err)
	}
	sees(ws, look, one)
	install(ws, "two", "one", "cat made.log >more.log; echo again >pool/y")
	ws = open()
	use("two")
	sees(ws, look+" more.log pool/y", one+"staged\nagain\n")
	if err := ws.Use(ctx, "", nil); err != nil {
		t.Error(err)
	}
	sees(ws, "ls *.log pool 2>/dev/null; echo $WORD", "\n")
}

func run(t *testing.T, ws workspace.Workspace, script string) workspace.Result {
	t.Helper()
	r, err := ws.Run(t.Context(), workspace.Command{Args: []string{"sh", "-c", script}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func conformCommands(t *testing.T, ws workspace.Workspace) {
	ctx := t.Context()
	if r := run(t, ws, "cat a.txt; echo no >&2; exit 3"); r.Exit != 3 || r.Class != "" || string(r.Stdout) != "one\ntwo\n" || string(r.Stderr) != "no\n" {
		t.Errorf("Run = %+v", r)
	}
	if r := run(t, ws, "echo $CI $LANG $GOPROXY; id -u"); !strings.HasPrefix(string(r.Stdout), "true C.UTF-8 off\n") || strings.HasSuffix(string(r.Stdout), "\n0\n") {
		t.Errorf("the environment, and the user: %q; want CI and the rest, and never root", r.Stdout)
	}
	r, err := ws.Run(ctx, workspace.Command{Args: []string{"sh", "-c", "pwd; echo $WORD"}, Dir: "sub/dir", Env: []string{"WORD=hello"}, Timeout: time.Minute})
	if err == nil {
		t.Errorf("Run in a directory that is not there = %+v, want an error", r)
	}
	run(t, ws, "mkdir -p sub/dir")
	r, err = ws.Run(ctx, workspace.Command{Args: []string{"sh", "-c", "pwd; echo $WORD"}, Dir: "sub/dir", Env: []string{"WORD=hello"}, Timeout: time.Minute})
	if err != nil || !strings.HasSuffix(string(r.Stdout), "/sub/dir\nhello\n") {
		t.Errorf("Run in a directory = %q, %v", r.Stdout, err)
	}
	if r, err := ws.Run(ctx, workspace.Command{Args: []string{"no-such-program"}}); err != nil || r.Exit != 127 {
		t.Errorf("Run of no program = %+v, %v; want exit 127", r, err)
	}
	if _, err := ws.Run(ctx, workspace.Command{}); err == nil {
		t.Error("Run of nothing is not refused")
	}
	begun := time.Now()
	r, err = ws.Run(ctx, workspace.Command{Args: []string{"sh", "-c", "echo begun; sleep 60 & sleep 60"}, Timeout: 300 * time.Millisecond})
	if err != nil || r.Exit != -1 || r.Class != "timeout" || string(r.Stdout) != "begun\n" {
		t.Errorf("Run over its time = %+v, %v", r, err)
	}
	stopped, stop := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, stop)
	if _, err := ws.Run(stopped, workspace.Command{Args: []string{"sleep", "60"}, Timeout: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run that was stopped: %v, want context.Canceled", err)
	}
	if r := run(t, ws, "(sleep 60; echo late >late.txt) & echo done"); string(r.Stdout) != "done\n" {
		t.Errorf("Run that leaves a process = %+v", r)
	}
	if d := time.Since(begun); d > 30*time.Second {
		t.Errorf("what was to be ended took %s", d)
	}
}
