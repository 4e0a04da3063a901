package incidents_test

import (
	"testing"

	"forge/pipeline/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { sandboxtest.Waiting(m, 8) }
