//go:build e2e

package server_test

import "testing"

const e2e = true

// Covers D1, S1, S18: what the double of a workspace cannot show. The same tests once more,
// with a worker process for each work tree and each command in bubblewrap.
func TestInSandbox(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"issue to verified":     TestCleanRun,
		"a person pushes":       TestHumanPushes,
		"CI is red":             TestChecksAsTester,
		"the base moves":        TestBaseMoved,
		"commits by the API":    TestRunWithSignedCommits,
		"ten thousand webhooks": TestTenThousandDeliveries,
	} {
		t.Run(name, test)
	}
}
