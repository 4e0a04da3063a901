package phase

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/deps"
)

// Covers D1: an agent cannot tell a registry more and more by the names that it asks for.
func TestLocksHaveALimit(t *testing.T) {
	l := &locking{run: &pipeline.Run{}, times: maxLocks}
	if err := l.one(t.Context(), deps.Edit{}, &deps.Lock{Manager: "npm", Dir: "."}); err != nil { // there is nothing that could be run
		t.Fatal(err)
	}
	if len(l.wrong) != 1 || !strings.Contains(l.wrong[0], "asked 10 times") {
		t.Errorf("told: %q", l.wrong)
	}
}
