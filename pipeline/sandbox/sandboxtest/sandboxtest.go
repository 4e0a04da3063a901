// Package sandboxtest builds the program that the sandbox starts, small and without the
// race detector: a test binary in its place takes several times as long to start.
package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
