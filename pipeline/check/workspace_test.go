package check

import (
	"bytes"
	"context"
	"errors"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	machine "forge/pipeline/needs"
	"forge/pipeline/workspace"

	"golang.org/x/tools/txtar"
)

// dirWorkspace is a directory of the test. A tape answers its commands.
type dirWorkspace struct {
	dir   string
	tape  *tape
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
	if ctx.Err() != nil {
		return workspace.Result{}, ctx.Err()
	}
	more := w.env
	if w.path != systemPath {
		more = append([]string{"PATH=" + w.path}, w.env...)
	}
	res, err := w.tape.run(w, c, more, func() (workspace.Result, error) { return w.live(ctx, c) })
	if err != nil {
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

// live runs a command for real.
func (w *dirWorkspace) live(ctx context.Context, c workspace.Command) (workspace.Result, error) {
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
	return res, nil
}

// place is the directory that it lies in, on this machine.
func (w *dirWorkspace) place() string { return filepath.Dir(w.dir) }

func (w *dirWorkspace) snapshot() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && passing[d.Name()] {
			return filepath.SkipDir
		}
		short := strings.TrimPrefix(name, w.dir+"/")
		switch {
		case err != nil || name == w.dir:
		case d.IsDir():
			files[short+"/"] = ""
		case d.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(name)
			files[short] = plainText(data)
		}
		return err
	})
	return files, err
}

// passing are folders that say nothing of a tree's state.
var passing = map[string]bool{".git": true, "__pycache__": true, ".pytest_cache": true}

func (w *dirWorkspace) change(files map[string]*string) error {
	names := slices.Sorted(maps.Keys(files)) // a folder before what is in it
	for _, name := range slices.Backward(names) {
		if files[name] == nil {
			if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		at := filepath.Join(w.dir, name)
		var err error
		switch text := files[name]; {
		case text == nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(*text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isTesting tells a suite from the check's own small commands.
func isTesting(c workspace.Command) bool {
	line := strings.Join(c.Args, " ")
	return !strings.Contains(line, "rm -rf") && !strings.HasPrefix(line, "find ") && !strings.Contains(line, "find_spec") && !strings.Contains(line, "sort -u") && !strings.Contains(line, "tail -c")
}

// newWorkspace writes the files of a txtar archive into a directory.
func newWorkspace(t *testing.T, archive string) *dirWorkspace {
	t.Helper()
	w := workspaceIn(t)
	w.write(t, archive)
	return w
}

// systemPath has what the sandbox sees, and this Go.
var systemPath = filepath.Join(build.Default.GOROOT, "bin") + ":/usr/local/bin:/usr/bin:/bin"

func workspaceIn(t *testing.T) *dirWorkspace {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		dir = filepath.Join(dir, "tree")
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, _, _ := strings.Cut(t.Name(), "/")
	return &dirWorkspace{dir: dir, path: systemPath, tape: tapeOf(t, file, t.Name(), onTape())}
}

func (w *dirWorkspace) write(t *testing.T, archive string) {
	t.Helper()
	if err := w.put(filesOf(archive)); err != nil {
		t.Fatal(err)
	}
}

func (w *dirWorkspace) put(files map[string]string) error { return writeFiles(w.dir, files) }

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// need skips a test that runs its commands for real and lacks a tool.
func need(t *testing.T, tools ...string) {
	t.Helper()
	if !onTape() {
		machine.Tools(t, tools...)
	}
}

// filesOf are the files of archives; one of a later archive stands for that of an earlier.
func filesOf(archives ...string) map[string]string {
	files := map[string]string{}
	for _, a := range archives {
		for _, f := range txtar.Parse([]byte(a)).Files {
			files[f.Name] = string(f.Data)
		}
	}
	return files
}

// patchOf is git's patch from some files to others.
func patchOf(t testing.TB, before, after map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for at, files := range map[string]map[string]string{"0before": before, "0after": after} {
		at = filepath.Join(dir, at)
		if err := errors.Join(os.Mkdir(at, 0o755), writeFiles(at, files)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "-M", "0before", "0after")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // it is 1 where they differ
		t.Fatalf("git diff: %v", err)
	}
	return strings.NewReplacer("0before/", "", "0after/", "").Replace(string(out))
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
