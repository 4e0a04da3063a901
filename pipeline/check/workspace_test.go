package check

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/workspace"

	"golang.org/x/tools/txtar"
)

// dirWorkspace runs commands for real in a directory of the test.
type dirWorkspace struct {
	dir   string
	path  string                          // PATH of the commands
	limit int                             // most bytes that Read hands out; 0: any
	after func(c workspace.Command)       // called after each command
	hook  func(*workspace.Result)         // changes what a command that tests returned
	ran   []string                        // the commands, in order
	fail  func(c workspace.Command) error // makes Run fail
	env   []string                        // of every command
}

func (w *dirWorkspace) List(_ context.Context, dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(w.dir, dir))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out, nil
}

func (w *dirWorkspace) Read(_ context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err == nil && w.limit > 0 && len(data) > w.limit {
		return nil, errors.New("over the limit")
	}
	return data, err
}

func (w *dirWorkspace) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	w.ran = append(w.ran, strings.Join(c.Args, " "))
	if w.fail != nil {
		if err := w.fail(c); err != nil {
			return workspace.Result{}, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, "/usr/bin/env", c.Args...)
	cmd.Dir = filepath.Join(w.dir, c.Dir)
	cmd.Env = append(append([]string{"PATH=" + w.path, "HOME=" + os.Getenv("HOME"), "GOPROXY=off", "GOFLAGS=-mod=mod -vet=off -ldflags=-w", "GOTOOLCHAIN=local", "RUSTUP_HOME=" + os.Getenv("RUSTUP_HOME")}, w.env...), c.Env...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	res := workspace.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return res, ctx.Err()
	case limited.Err() != nil:
		res.Exit, res.Class = -1, "timeout"
	case errors.As(err, &exit):
		res.Exit = exit.ExitCode()
	case err != nil:
		return res, err
	}
	if w.hook != nil && isTesting(c) {
		w.hook(&res)
	}
	if w.after != nil {
		w.after(c)
	}
	return res, nil
}

// isTesting tells a suite from the check's own small commands.
func isTesting(c workspace.Command) bool {
	line := strings.Join(c.Args, " ")
	return !strings.Contains(line, "rm -rf") && !strings.HasPrefix(line, "find ") && !strings.Contains(line, "find_spec") && !strings.Contains(line, "sort -u") && !strings.Contains(line, "tail -c")
}

// newWorkspace writes the files of a txtar archive into a directory.
func newWorkspace(t *testing.T, archive string) *dirWorkspace {
	t.Helper()
	w := &dirWorkspace{dir: t.TempDir(), path: os.Getenv("PATH")}
	w.write(t, archive)
	return w
}

func (w *dirWorkspace) write(t *testing.T, archive string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(w.dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func need(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("needs %s: apt-get install %s", tool, tool)
	}
}

// commit makes everything in the directory a commit and returns its name.
func (w *dirWorkspace) commit(t *testing.T) string {
	t.Helper()
	w.git(t, "init", "-q")
	w.git(t, "add", "-A")
	w.git(t, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x", "--allow-empty")
	return strings.TrimSpace(w.git(t, "rev-parse", "HEAD"))
}

func (w *dirWorkspace) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// diff returns the patch from a commit to the files as they are now.
func (w *dirWorkspace) diff(t *testing.T, base string) string {
	t.Helper()
	w.git(t, "add", "-A")
	return w.git(t, "diff", "--cached", "-M", base)
}

var defaults = config.Default().Tests

func run(t *testing.T, w *dirWorkspace, o Options) pipeline.TestReport {
	t.Helper()
	if o.Config.TimeoutMinutes == 0 {
		reruns, commands := o.Config.Reruns, o.Config.Commands
		o.Config = defaults
		o.Config.Reruns, o.Config.Commands = reruns, commands
	}
	r, err := Run(t.Context(), w, o)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if r.Total != r.Passed+r.Failed+r.Skipped+len(r.Before) || r.Failed != len(r.Failures) {
		t.Errorf("the counts do not add up: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.dir, scratch)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind (%v)", scratch, err)
	}
	return r
}
