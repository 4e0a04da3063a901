package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers S30: while all work is paused a label is taken in, GitHub sees no change and no
// model is asked; then the work is done, as if it had been labelled at that moment.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ctx := t.Context()
	ts.must(ts.s.DB.SetPaused(ctx, store.Pause{At: time.Now(), Actor: "mia", Paused: true}))
	before := ts.gh.Mutations()
	ts.label("acme")
	eventually(t, func() bool {
		list, err := ts.s.DB.Deliveries(ctx, store.DeliveryFilter{State: record.DeliveryWaiting})
		ts.must(err)
		return len(list) > 0
	}, func() string { return "the label is not taken in" })
	for range 3 {
		last := ts.s.beat()
		eventually(t, func() bool { return ts.s.beat().After(last) }, func() string { return "the engine does not look for work" })
	}
	if diff := cmp.Diff(before, ts.gh.Mutations()); diff != "" {
		t.Errorf("while all work was paused, GitHub was changed (-before +after):\n%s", diff)
	}
	if runs, err := ts.s.DB.Runs(ctx, store.Filter{}); err != nil || len(runs) > 0 {
		t.Errorf("while all work was paused, runs were made: %+v, %v", runs, err)
	}
	ts.must(ts.s.DB.SetPaused(ctx, store.Pause{At: time.Now(), Actor: "mia"}))
	ts.untilState(pipeline.StateVerified)
}
