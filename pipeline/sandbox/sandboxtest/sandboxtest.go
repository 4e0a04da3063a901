// Package sandboxtest builds the program that the sandbox starts, small and without the
// race detector: a test binary in its place takes several times as long to start.
package sandboxtest

import (
	"context"
	"flag"
	"fmt"
	"forge/pipeline/sandbox"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// Main is a TestMain that removes what Worker built.
func Main(m *testing.M) {
	code := m.Run()
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// Waiting is Main for tests that mostly wait, for each other's processes and for GitHub: so
// many run at the same time, unless -parallel says how many.
func Waiting(m *testing.M, parallel int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	Main(m)
}

// Worker returns the program's path, built once for all tests of the process.
func Worker(t testing.TB) string {
	t.Helper()
	exe, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

var dir string // set by build

var build = sync.OnceValues(func() (exe string, err error) {
	if dir, err = os.MkdirTemp("", "forge-worker-"); err != nil {
		return "", err
	}
	exe = filepath.Join(dir, "worker")
	if out, err := exec.Command("go", "build", "-o", exe, "forge/pipeline/sandbox/sandboxtest/worker").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the worker: %w\n%s", err, out)
	}
	return exe, nil
})

// GoAndGit is a machine without other tools: to ask Maven, npm and the rest for their
// settings takes seconds, and what they say is another thing on each machine.
func GoAndGit(ctx context.Context, name string, args ...string) string {
	if name != "git" && name != "go" {
		return ""
	}
	return sandbox.HostTool(ctx, name, args...)
}
