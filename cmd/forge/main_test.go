package main

import (
	"fmt"
	"os"
	"testing"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/shell"
)

// scratch is for what tests share; it is removed at the end.
var scratch string

// TestMain lets the test binary stand in for the program: as a worker, which the
// sandbox starts, and as the whole command, which the end-to-end tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "worker" || os.Args[1] == "bridge" || os.Getenv("FORGE_TEST_COMMAND") != "") {
		main()
		os.Exit(shell.Done)
	}
	dir, err := demo.TempDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(shell.Failed)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
