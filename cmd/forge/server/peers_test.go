package server

import (
	"net/http"
	"testing"
	"time"

	"forge/pipeline"
)

// A server is on the list while it runs. Drained, it begins nothing, keeps what comes in
// and is not ready; what it left goes on when it is started again.
func TestDrainedServer(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	on := func(what string, cond func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("not " + what)
			}
		}
	}
	listed := func() int {
		list, err := ts.s.DB.Peers(t.Context(), time.Now())
		ts.must(err)
		return len(list)
	}
	on("listed", func() bool { return listed() == 1 })
	id := ts.s.Engine.ID()
	ts.must(ts.s.DB.Drain(t.Context(), id))
	on("drained", func() bool { code, _ := readyz(t, ts.s); return code == http.StatusServiceUnavailable })
	ts.label("acme")
	on("kept", func() bool {
		list, err := ts.s.DB.WaitingDeliveries(t.Context(), time.Now(), 10)
		ts.must(err)
		return len(list) > 0
	})
	ts.restart()
	on("listed anew", func() bool {
		list, err := ts.s.DB.Peers(t.Context(), time.Now())
		ts.must(err)
		return len(list) == 1 && list[0].ID != id
	})
	ts.untilState(pipeline.StateVerified)
}
