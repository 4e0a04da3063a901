package server

import (
	"context"
	"errors"
	"testing"
)

// Where the settings do without a sandbox nothing is tried; everywhere else what is
// wrong with it is told.
func TestSandboxProbe(t *testing.T) {
	broken := errors.New("no bubblewrap")
	try := func(context.Context) error { return broken }
	if err := sandboxProbe(true, try).Check(t.Context()); err != nil {
		t.Errorf("without a sandbox: %v", err)
	}
	if err := sandboxProbe(false, try).Check(t.Context()); !errors.Is(err, broken) {
		t.Errorf("with one that is broken: %v", err)
	}
}
