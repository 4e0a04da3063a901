// Package sandboxtest lets a test binary stand in for the program where the sandbox
// starts it.
package sandboxtest

import (
	"fmt"
	"os"
	"testing"

	"forge/pipeline/sandbox"
)

// Main is a TestMain: the binary is a worker, or the bridge in a sandbox, when it is
// started as one; else it runs its tests.
func Main(m *testing.M) {
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
