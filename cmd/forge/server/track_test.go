package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

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

// settling names the side that has just said whose words hold; "" for other events.
func settling(e pipeline.Event) string {
	if s := e.Data.Step; s != nil && s.Phase == pipeline.PhaseResolve && s.Number == 2 {
		return "settle.ux"
	}
	return ""
}

// Covers U1: a server that stops while roles write goes on with what was paid for: each model
// is called once for each turn, and each phase has one result.
func TestRolesSurviveARestart(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile("testdata/cases/track_full.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"agent:analyst", "agent:product", "agent:architect", "agent:ux", "upstream.raised", "upstream.notified", "agent:settle.ux", "upstream.resolved"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			o, _ := s.read(t, ar)
			reached := make(chan struct{})
			once := sync.OnceFunc(func() { close(reached) })
			o.On = func(_ *servertest.Server, _ *pipeline.Run, e pipeline.Event) {
				if e.Source == source || string(e.Type) == source || "agent:"+settling(e) == source {
					once()
				}
			}
			ts := servertest.New(t, o)
			ts.Label("acme")
			<-reached
			ts.Restart()
			run := ts.UntilState(pipeline.StateVerified)
			log, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
			ts.Must(err)
			results := map[pipeline.Phase]int{}
			for _, e := range log {
				if e.Type == pipeline.EventPhaseCompleted {
					results[e.Data.Phase.Phase]++
				}
			}
			if run.Usage.Calls != 13 || results[pipeline.PhaseAnalyse] != 1 || results[pipeline.PhaseDesign] != 1 || results[pipeline.PhaseResolve] != 1 || len(run.Upstream) != 1 {
				t.Errorf("%d calls, results %v; want 13, and one of each phase", run.Usage.Calls, results)
			}
		})
	}
}
