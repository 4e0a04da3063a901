package phase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// Covers R6: a work tree that is deleted while a phase uses it is nobody's change: the phase
// ends with what happened, and the next attempt has a new tree on the last commit.
func TestDeletedTree(t *testing.T) {
	t.Parallel()
	b := sandboxed(t, map[string]string{"README.md": "1", "a/x.go": "1"})
	trees := filepath.Join(b.dir, "work", "trees")
	for name, deleted := range map[string]func(run string) string{
		"the tree":      func(run string) string { return filepath.Join(run, "tree") },
		"the workspace": func(run string) string { return run },
		"all of them":   func(string) string { return trees },
	} {
		ws, err := b.at(t.Context(), b.run, b.shas[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := ws.Write(t.Context(), "a/y.go", []byte("2")); err != nil {
			t.Fatal(err)
		}
		mine, err := filepath.Glob(filepath.Join(trees, "run-7-*"))
		if err != nil || len(mine) != 1 {
			t.Fatalf("work trees %v, %v", mine, err)
		}
		if err := os.RemoveAll(deleted(mine[0])); err != nil {
			t.Fatal(err)
		}
		for call, f := range map[string]func() error{
			"write":   func() error { return ws.Write(t.Context(), "a/z.go", []byte("2")) },
			"read":    func() error { _, err := ws.Read(t.Context(), "README.md"); return err },
			"run":     func() error { _, err := ws.Run(t.Context(), command("true")); return err },
			"changes": func() error { _, err := ws.Changes(t.Context()); return asAgentFault(err) },
		} {
			var fault *pipeline.Fault
			if err := f(); !errors.As(err, &fault) || fault.Class != pipeline.FaultSandbox || !strings.Contains(fault.Message, "was deleted while it was in use") {
				t.Errorf("%s deleted: %s says %v", name, call, err)
			}
		}
		next, err := b.at(t.Context(), b.run, b.shas[0])
		if err != nil {
			t.Fatalf("%s deleted: the next attempt: %v", name, err)
		}
		if text, err := next.Read(t.Context(), "README.md"); string(text) != "1" || next == ws {
			t.Errorf("%s deleted: the next attempt reads %q, %v", name, text, err)
		}
		if changes, err := next.Changes(t.Context()); len(changes) > 0 || err != nil {
			t.Errorf("%s deleted: the next attempt begins with %v, %v", name, changes, err)
		}
		b.Close(b.run.ID)
	}
}

func command(args ...string) workspace.Command {
	return workspace.Command{Args: args, Timeout: time.Minute}
}
