//go:build e2e

package main

import "testing"

// Covers D1, S1: what the double of a workspace cannot show. The same commands once more,
// with a worker process for each work tree and each command in bubblewrap.
func TestInSandbox(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a task in words":    TestLocalRun,
		"an issue":           TestRunIssue,
		"interrupted":        TestResume,
		"taken over":         TestLocalTakeOver,
		"modules that ask":   TestLocalModuleAsks,
		"somebody's modules": TestLocalModuleTakeOver,
	} {
		t.Run(name, test)
	}
}
