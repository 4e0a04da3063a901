// Package workspacetest holds the workspace that most tests use. A suite of the laboratory holds it and the one of
// package sandbox to the same.
//
// A [Spaces] opens work trees in a temporary directory: real files and real git, by the code that a worker runs, but in
// the test's own process. Commands are the tests' own: they are answered by a function or run directly, with neither
// bubblewrap nor limits. Environments are made and kept for as long as the test, and copied to where they are used. What
// only the sandbox can show (isolation, limits, the way to registries) is not here.
package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"
)

// Answer answers a command in the work tree dir in place of running it; false: it is run.
type Answer func(dir string, c workspace.Command) (workspace.Result, bool)

// Spaces are workspaces in a temporary directory.
type Spaces struct {
	dir    string
	answer Answer

	installing sync.Mutex
}

// New returns workspaces that go with the test. answer may be nil.
func New(t testing.TB, answer Answer) *Spaces {
	t.Helper()
	dir, err := os.MkdirTemp("", "forge-workspaces-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // whoever commands run as passes it
		t.Fatal(err)
	}
	return &Spaces{dir: dir, answer: answer}
}

// Open makes a work tree.
func (s *Spaces) Open(ctx context.Context, o workspace.OpenOptions) (workspace.Workspace, error) {
	dir, err := os.MkdirTemp(s.dir, "workspace-")
	if err != nil {
		return nil, err
	}
	tree, err := sandbox.OpenTree(ctx, dir, runAs(), o)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return &space{Tree: tree, of: s, dir: dir, cache: o.Cache}, nil
}

// Probe says that commands can run.
func (s *Spaces) Probe(context.Context) error { return nil }

// Sweep does nothing: what is left goes with the test.
func (s *Spaces) Sweep(context.Context) error { return nil }

// space is one workspace.
type space struct {
	*sandbox.Tree
	of    *Spaces
	dir   string
	cache string

	command sync.Mutex // one command at a time
	used    []string   // variables of the environment that is used
	shown   string     // its directory, "" for none
}

// Checkout is [workspace.Workspace.Checkout].
func (w *space) Checkout(ctx context.Context, sha string) error {
	w.command.Lock()
	defer w.command.Unlock()
	if err := w.Tree.Checkout(ctx, sha); err != nil {
		return err
	}
	return w.show()
}

func (w *space) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	w.command.Lock()
	defer w.command.Unlock()
	if w.of.answer != nil {
		if r, ok := w.of.answer(w.Dir(), c); ok {
			return r, nil
		}
	}
	r, err := w.run(ctx, c)
	r.Outside = w.FilledSubmodules()
	return r, err
}

func (w *space) run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	if err := ctx.Err(); err != nil {
		return workspace.Result{}, err
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		return workspace.Result{}, errors.New("run: the command is empty")
	}
	dir := filepath.Join(w.Dir(), filepath.FromSlash(c.Dir))
	if info, err := os.Stat(dir); err != nil {
		return workspace.Result{}, err
	} else if !info.IsDir() {
		return workspace.Result{}, errors.New(c.Dir + " is not a directory")
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultLimits().Wall
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	env := w.env(slices.Concat(w.used, c.Env))
	program := find(dir, c.Args[0], env)
	if program == "" {
		return workspace.Result{Exit: 127, Stderr: []byte(c.Args[0] + ": not found\n")}, nil
	}
	cmd := exec.CommandContext(limited, program, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.unprivileged(cmd); err != nil {
		return workspace.Result{}, err
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	r := workspace.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Duration: time.Since(begun)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return workspace.Result{}, ctx.Err()
	case limited.Err() != nil:
		r.Exit, r.Class = -1, "timeout"
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		r.Exit, r.Class = -1, "signal"
	case errors.As(err, &exit):
		r.Exit = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
	case err != nil:
		return r, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "start command: " + err.Error()}
	}
	return r, nil
}

// nobody is who runs commands where the tests run as root.
const nobody = 65534

func runAs() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return nobody
}

// unprivileged has a command, and all files that it may write, belong to nobody where this
// process is root: no test runs a command as root, whatever a model was told to try.
func (w *space) unprivileged(cmd *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	return filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
}

// env is a command's environment: what the sandbox would tell it, with this machine's build cache, and more variables.
func (w *space) env(more []string) []string {
	tmp := filepath.Join(w.dir, "tmp")
	_ = os.MkdirAll(tmp, 0o755)
	env := []string{"PATH=" + path(), "HOME=" + tmp, "TMPDIR=" + tmp, "LANG=C.UTF-8", "GOPATH=" + filepath.Join(tmp, "go"),
		"GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "GOENV=off", "CI=true"}
	if os.Geteuid() != 0 { // root's cache is not for others
		env = append(env, "GOCACHE="+goCache())
	} else {
		env = append(env, "GOCACHE="+filepath.Join(tmp, "go-build"))
	}
	if mods := os.Getenv("GOMODCACHE"); mods != "" {
		env = append(env, "GOMODCACHE="+mods)
	}
	for _, kv := range w.places(w.home(), more) {
		if key, _, _ := strings.Cut(kv, "="); key == "PATH" || key == "PYTHONPATH" { // they come before what is there
			for _, before := range slices.Backward(env) {
				if old, ok := strings.CutPrefix(before, key+"="); ok {
					kv += ":" + old
					break
				}
			}
		}
		env = append(env, kv)
	}
	return env
}

// goCache is the build cache of whoever runs the tests, so that the standard library is
// not compiled anew for each work tree.
var goCache = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return filepath.Join(os.TempDir(), "forge-test-gocache")
	}
	return strings.TrimSpace(string(out))
})

// find is where a command is in the PATH that it will have itself; "" where it is nowhere.
func find(dir, name string, env []string) string {
	places := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			places = value
		}
	}
	if strings.Contains(name, "/") {
		places = "/"
		if !filepath.IsAbs(name) {
			places = dir
		}
	}
	for at := range strings.SplitSeq(places, ":") {
		if full := filepath.Join(at, name); isProgram(full) {
			return full
		}
	}
	return ""
}

func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// path finds Go and what the system has, as the sandbox does; no tool of a version manager in somebody's home.
var path = sync.OnceValue(func() string {
	const system = "/usr/local/bin:/usr/bin:/bin"
	if bin, err := exec.LookPath("go"); err == nil {
		return filepath.Dir(bin) + ":" + system
	}
	return system
})

func (w *space) Close() error { return errors.Join(w.Tree.Close(), os.RemoveAll(w.dir)) }

// GoAlone answers what tools there are, which takes a second where there are many.
func GoAlone(_ string, c workspace.Command) (workspace.Result, bool) {
	if slices.Contains(c.Args, deps.ToolScript(nil)) {
		return workspace.Result{Stdout: []byte("go\tgo1.26\n")}, true
	}
	return workspace.Result{}, false
}
