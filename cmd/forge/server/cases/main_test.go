// Package cases has no code: it plays cases that are written as text on a whole server.
package cases_test

import (
	"testing"

	"forge/pipeline/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { sandboxtest.Waiting(m, 8) }
