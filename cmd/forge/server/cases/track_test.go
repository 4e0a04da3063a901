package cases_test

import (
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

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
	ar, err := txtar.ParseFile("testdata/track_full.txtar")
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
