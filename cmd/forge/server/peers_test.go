package server_test

import (
	"net/http"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
	"forge/pipeline/store"
)

// A server is on the list while it runs. Drained, it begins nothing, keeps what comes in
// and is not ready; what it left goes on when it is started again.
func TestDrainedServer(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	report := func() {
		t.Helper()
		ts.Must(ts.Forge.Report(t.Context()))
	}
	listed := func() string {
		t.Helper()
		list, err := ts.Forge.DB.Peers(t.Context(), ts.Forge.Now())
		ts.Must(err)
		if len(list) != 1 {
			t.Fatalf("%d servers are listed, want 1", len(list))
		}
		return list[0].ID
	}
	report()
	id := listed()
	ts.Must(ts.Forge.DB.Drain(t.Context(), id))
	report()
	if code, _ := readyz(t, ts.Forge); code != http.StatusServiceUnavailable {
		t.Errorf("a drained server is ready: %d", code)
	}
	ts.Label("acme")
	ts.Must(ts.GitHub.Settle(t.Context()))
	servertest.Kept(t, ts.GitHub, ts.Forge.DB.Delivery)
	list, err := ts.Forge.DB.WaitingDeliveries(t.Context(), ts.Forge.Now(), 10)
	if err != nil || len(list) == 0 {
		t.Fatalf("a drained server keeps nothing for others: %v", err)
	}
	ts.Restart()
	report()
	if again := listed(); again == id {
		t.Errorf("the new server has the old one's ID %s", id)
	}
	ts.UntilState(pipeline.StateVerified)
}

// A server whose database a newer Forge has upgraded begins nothing any more: it would not
// know what the newer one writes. It keeps what comes in, for that one.
func TestOlderServerOfTwo(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Must(ts.Forge.Report(t.Context()))
	for ts.Forge.Beat().IsZero() { // it has not looked for work yet
		<-time.After(5 * time.Millisecond)
	}
	if code, is := readyz(t, ts.Forge); code != http.StatusOK {
		t.Fatalf("a server that is not outdated is not ready: %d: %+v", code, is)
	}
	if _, err := ts.Forge.DB.SQL().Exec("INSERT INTO forge_schema (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	ts.Must(ts.Forge.Report(t.Context()))
	if code, _ := readyz(t, ts.Forge); code != http.StatusServiceUnavailable {
		t.Errorf("an outdated server is ready: %d", code)
	}
	ts.Label("acme")
	ts.Must(ts.GitHub.Settle(t.Context()))
	servertest.Kept(t, ts.GitHub, ts.Forge.DB.Delivery)
	if list, err := ts.Forge.DB.WaitingDeliveries(t.Context(), ts.Forge.Now(), 10); err != nil || len(list) == 0 {
		t.Errorf("an outdated server keeps nothing for others: %v", err)
	}
	if runs, err := ts.Forge.DB.Runs(t.Context(), store.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("an outdated server began %d runs, %v", len(runs), err)
	}
}

// What runs beside the engine may end its work in order: the database is closed after it.
func TestStopWaitsForUpkeep(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	s, left := ts.Forge, make(chan error, 1)
	s.Beside(func() {
		for { // until webhooks are taken in no more, which is the last thing before
			resp, err := http.Get(s.URL + "/healthz")
			if err != nil {
				break
			}
			resp.Body.Close()
		}
		var err error
		for late := time.Now().Add(300 * time.Millisecond); err == nil && time.Now().Before(late); {
			err = s.DB.Leave(t.Context(), s.Engine.ID())
		}
		left <- err
	})
	ts.Stop()
	if err := <-left; err != nil {
		t.Errorf("a server could not leave the list: %v", err)
	}
}
