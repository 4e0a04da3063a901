//go:build !linux

package sandbox

import (
	"errors"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

func peek([]string) error { return errors.New("there is nothing to look into") }

// Covers S1: without the server's own leave no command runs, and the fault says why.
func TestNeedsLinux(t *testing.T) {
	f := newFixture(t, sources)
	m := newManager(t, Options{})
	w := f.open(t, m, f.head)
	_, ran := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", "echo ran >ran"}})
	for _, err := range []error{ran, m.Probe(t.Context())} {
		var fault *pipeline.Fault
		if !errors.As(err, &fault) || fault.Class != pipeline.FaultSandbox || !strings.Contains(fault.Message, "needs Linux") {
			t.Errorf("%v; want a fault that says that it needs Linux", err)
		}
	}
	if _, err := w.Read(t.Context(), "ran"); err == nil {
		t.Error("the command ran")
	}
	if err := newManager(t, Options{Unsafe: true}).Probe(t.Context()); err != nil {
		t.Errorf("with leave to do without: %v", err)
	}
}
