package server_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline/store"
)

// listedAfter is how long the sending of a delivery takes at most: GitHub lists it then.
const listedAfter = 10 * time.Second

// Covers reliability 6: a delivery that did not arrive is there within two minutes.
func TestMissedDeliveryWithinTwoMinutes(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := servertest.New(t, servertest.Options{Now: c.now, HubNow: c.now})
	settled := func() { ts.Must(ts.GitHub.Settle(t.Context())) }
	settled()
	first, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ts.Must(ts.GitHub.Wait(first, func() bool { // the server's own first sweep has its list
		return slices.ContainsFunc(ts.GitHub.Calls(), func(c githubtest.Call) bool { return c.Operation == "apps/list-webhook-deliveries" })
	}))
	c.advance(time.Second)
	ts.GitHub.SetHook("http://gone.invalid/webhook")
	settled()
	ts.Comment("acme", "nothing to do")
	settled()
	log := ts.GitHub.Deliveries()
	lost := log[len(log)-1]
	if lost.StatusCode != 0 || lost.Event != "issue_comment" {
		t.Fatalf("the comment was not lost: %+v", lost)
	}
	ts.GitHub.SetHook(ts.Forge.URL + "/webhook")
	there := func() bool {
		settled()
		_, err := ts.Forge.DB.Delivery(t.Context(), lost.GUID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		return err == nil
	}
	if there() {
		t.Fatal("the delivery is there without being asked for")
	}
	// A sweep has just ended when the delivery gets lost: time passes as the loop asks for.
	begun, again := c.now(), false
	ts.Forge.Sweep(t.Context(), func(_ context.Context, d time.Duration) bool {
		if again && (there() || c.now().Sub(begun) > 10*time.Minute) {
			return false
		}
		again = true
		c.advance(d)
		return true
	})
	if took := c.now().Sub(begun); !there() || took+listedAfter > 2*time.Minute {
		t.Errorf("a lost delivery is there: %v, after %v", there(), took+listedAfter)
	}
}
