//go:build e2e

package server_test

import (
	"testing"

	"forge/pipeline/needs"
)

const e2e = true

// Covers D1, S1, S18: what the double of a workspace cannot show. The same tests once more,
// with a worker process for each work tree and each command in bubblewrap.
func TestInSandbox(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"issue to verified":     TestCleanRun,
		"a person pushes":       TestHumanPushes,
		"restart in mid-phase":  TestRolesSurviveARestart,
		"CI is red":             TestChecksAsTester,
		"the base moves":        TestBaseMoved,
		"commits by the API":    TestRunWithSignedCommits,
		"ten thousand webhooks": TestTenThousandDeliveries,
	} {
		t.Run(name, test)
	}
	t.Run("tests of Python", func(t *testing.T) {
		needs.Tools(t, "pytest")
		playCases(t, "testdata/cases/pytest/*.txtar")
	})
	t.Run("modules with a conflict", func(t *testing.T) { playCases(t, "testdata/cases/modules*.txtar") })
}
