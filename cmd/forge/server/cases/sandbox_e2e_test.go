//go:build e2e

package cases_test

import (
	"testing"

	"forge/pipeline/needs"
)

// Covers D1, S1: what the double of a workspace cannot show.
func TestInSandbox(t *testing.T) {
	t.Run("tests of Python", func(t *testing.T) {
		needs.Tools(t, "pytest")
		playCases(t, "testdata/pytest/*.txtar")
	})
	t.Run("restart in mid-phase", TestRolesSurviveARestart)
	t.Run("modules", func(t *testing.T) { playCases(t, "testdata/modules.txtar") })
	t.Run("compiled", func(t *testing.T) { playCases(t, "testdata/compiled/*.txtar") })
}

// The cases that take long: most of modules.
func TestSlowCases(t *testing.T) { playCases(t, "testdata/slow/*.txtar") }
