package setup

import (
	"fmt"
	"os"
	"testing"

	"forge/pipeline/sandbox"
)

// TestMain lets the test binary stand in for the program as a worker, which the
// sandbox starts, and as the bridge in one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := sandbox.Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "bridge" {
		os.Exit(sandbox.Bridge(os.Args[2:]))
	}
	os.Exit(m.Run())
}
