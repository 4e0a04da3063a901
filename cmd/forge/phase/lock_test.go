package phase

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/deps"
)

// A registry that refuses a name is not away; one that cannot be asked is.
func TestRefusedNameIsNotAway(t *testing.T) {
	for why, want := range map[string]bool{
		"go /x/@v/list: proxy.golang.org answered 403 Forbidden": false, "npm /x: registry answered 400 Bad Request": false,
		"npm /x: registry answered 429 Too Many Requests": true, "npm /x: registry answered 503 Service Unavailable": true, "npm /x: dial tcp: no such host": true,
	} {
		if got := away([]string{"go /y: r answered 404 Not Found", why}); got != want {
			t.Errorf("away(%s) = %v", why, got)
		}
	}
	if away(nil) {
		t.Error("nothing failed, and a registry is away")
	}
}

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
