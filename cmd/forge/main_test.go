package main

import (
	"os"
	"testing"

	"forge/cmd/forge/shell"
)

// TestMain lets the test binary stand in for the program: as a worker, which the
// sandbox starts, and as the whole command, which the end-to-end tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "worker" || os.Args[1] == "bridge" || os.Getenv("FORGE_TEST_COMMAND") != "") {
		main()
		os.Exit(shell.Done)
	}
	code := m.Run()
	if dir, err := buildCache(); err == nil && os.Getenv("FORGE_E2E_CACHE") == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
