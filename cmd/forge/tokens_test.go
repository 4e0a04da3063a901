package main

import (
	"testing"

	"forge/pipeline/agent/agenttest"
)

// checkTokens says what the models of a run were sent, by role, and how much of it a
// provider's cache serves, and holds it under a limit: context is not free.
func checkTokens(t *testing.T, models *agenttest.Server, limit int64) {
	t.Helper()
	calls, err := agenttest.Meter(models.Requests())
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, c := range calls {
		total += c.Input
	}
	t.Logf("sent to the models:\n%s", agenttest.Table(calls))
	if total > limit || total == 0 {
		t.Errorf("the models were sent %d tokens, over %d", total, limit)
	}
}
