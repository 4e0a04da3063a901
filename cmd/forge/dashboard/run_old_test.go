package dashboard

import (
	"net/http"
	"testing"
)

// A run whose log another version wrote is shown: events of types that this one
// does not know, fields that it does not know, and events that lack what it expects.
func TestRunOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "two_bounces")
	for _, q := range []string{
		`UPDATE events SET type = 'phase.begun', data = '{"stage":{"name":"review","at":7}}' WHERE type = 'phase.approved'`,
		`UPDATE events SET data = json_set(data, '$.phase.colour', 'red', '$.gone', json('[1, {"a": null}]')) WHERE type = 'phase.entered'`,
		`UPDATE events SET data = '{}' WHERE type = 'bounce' OR type = 'phase.passed'`,
		`UPDATE events SET data = json_remove(data, '$.review', '$.tests') WHERE type = 'phase.completed' AND seq % 3 = 0`,
	} {
		if _, err := s.db.SQL().Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	has(t, s.get(t, "/runs/1", http.StatusOK), "Sum is wrong", "Events")
	has(t, s.get(t, "/runs/1/events", http.StatusOK), "phase.begun", "stage", "colour")
	has(t, s.get(t, "/", http.StatusOK), "Runs")
}
