package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers S30: while all work is paused a label is taken in, GitHub sees no change and no
// model is asked; then the work is done, as if it had been labelled at that moment.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ctx := t.Context()
	ts.Must(ts.Forge.DB.SetPaused(ctx, store.Pause{At: time.Now(), Actor: "mia", Paused: true}))
	before := ts.GitHub.Mutations()
	ts.Label("acme")
	servertest.Eventually(t, func() bool {
		list, err := ts.Forge.DB.Deliveries(ctx, store.DeliveryFilter{State: record.DeliveryWaiting})
		ts.Must(err)
		return len(list) > 0
	}, func() string { return "the label is not taken in" })
	for range 3 {
		last := ts.Forge.Beat()
		servertest.Eventually(t, func() bool { return ts.Forge.Beat().After(last) }, func() string { return "the engine does not look for work" })
	}
	if diff := cmp.Diff(before, ts.GitHub.Mutations()); diff != "" {
		t.Errorf("while all work was paused, GitHub was changed (-before +after):\n%s", diff)
	}
	if runs, err := ts.Forge.DB.Runs(ctx, store.Filter{}); err != nil || len(runs) > 0 {
		t.Errorf("while all work was paused, runs were made: %+v, %v", runs, err)
	}
	ts.Must(ts.Forge.DB.SetPaused(ctx, store.Pause{At: time.Now(), Actor: "mia"}))
	ts.UntilState(pipeline.StateVerified)
}
