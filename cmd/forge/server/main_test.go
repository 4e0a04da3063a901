package server

import (
	"os"
	"testing"

	"forge/pipeline/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("FORGE_CRASH_DIR"); dir != "" {
		crashing(dir)
	}
	sandboxtest.Waiting(m, 8)
}
