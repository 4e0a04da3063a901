package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// Covers U1: without settings a run has no track, and what it does is what it does on the
// quick one, call for call and event for event.
func TestQuickTrackIsAsItWas(t *testing.T) {
	t.Parallel()
	played := func(settings string) (events []string, start string, usage pipeline.Usage) {
		ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\n" + settings}})
		ts.Label("acme")
		run := ts.UntilState(pipeline.StateVerified)
		log, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
		ts.Must(err)
		for _, e := range log {
			if e.Type == pipeline.EventRunVerified { // what comes after it has no order
				break
			}
			events = append(events, fmt.Sprintf("%s %s %s", e.ID, e.Type, e.Source))
		}
		text, err := json.Marshal(log[0].Data.Start)
		ts.Must(err)
		return events, string(text), run.Usage
	}
	events, start, usage := played("")
	if strings.Contains(start, "track") {
		t.Errorf("a run that nobody chose a track for keeps one: %s", start)
	}
	quick, _, same := played("track: quick\n")
	if diff := cmp.Diff(events, quick); diff != "" || usage != same || usage.Calls != 5 {
		t.Errorf("track: quick: %+v against %+v, events (-without +with):\n%s", same, usage, diff)
	}
}
