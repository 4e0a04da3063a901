// Package conform holds the sandbox and the double of workspaces to the same tests.
package conform

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace/workspacetest"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "forge-conform-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDouble(t *testing.T) {
	t.Parallel()
	conform(t, workspacetest.New(t, nil), passable(t))
}

// Covers D1: what most tests run on does as the sandbox does.
func TestSandbox(t *testing.T) {
	t.Parallel()
	needs.Sandbox(t)
	dir := passable(t)
	spaces, err := sandbox.New(sandbox.Options{Dir: filepath.Join(dir, "work"), Exe: sandboxtest.Worker(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	conform(t, spaces, dir)
}
