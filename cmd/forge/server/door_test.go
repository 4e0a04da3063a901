package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// labelled is a delivery by which acme gives issue 1 of a repository the label;
// more is what else stands in it.
func labelled(more string) []byte {
	return []byte(`{"action":"labeled","label":{"name":"forge"},"sender":{"id":5,"login":"acme","type":"User"},` + more +
		`"repository":{"id":77,"name":"lost","full_name":"acme/lost","default_branch":"main","owner":{"id":5,"login":"acme"}},` +
		`"issue":{"number":1,"title":"It does not work","body":"It should.","user":{"id":5,"login":"acme"}}}`)
}

// Covers S1: what GitHub did not sign, and what is larger than GitHub sends, leaves
// nothing behind.
func TestTurnedAway(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	if status, text := ts.post("issues", "forged", "not the secret at all", labelled("")); status != http.StatusUnauthorized || !strings.Contains(text, "signature does not match") {
		t.Errorf("a wrong signature is answered %d %s", status, text)
	}
	big := append(labelled(""), bytes.Repeat([]byte(" "), 26<<20)...)
	// The server closes the connection while the body is still being sent, so that its
	// answer may not come through.
	if status, text := ts.post("issues", "big", ts.gh.WebhookSecret, big); status != http.StatusRequestEntityTooLarge && status != 0 {
		t.Errorf("26 MiB are answered %d %s", status, text)
	}
	for _, guid := range []string{"forged", "big"} {
		if d, err := ts.s.DB.Delivery(t.Context(), guid); err == nil {
			t.Errorf("%s is kept: %+v", guid, d)
		}
	}
	ts.label("acme") // and the server goes on as before
	ts.says("/forge stop")
}

// clock is the real time, and what is added to it.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// dead waits until so many deliveries are dead.
func (ts *testServer) dead(c *clock, n int) []record.Delivery {
	ts.t.Helper()
	var list []record.Delivery
	eventually(ts.t, func() bool {
		var err error
		list, err = ts.s.DB.Deliveries(ts.t.Context(), store.DeliveryFilter{State: record.DeliveryDead})
		ts.must(err)
		if len(list) == n {
			return true
		}
		c.advance(10 * time.Second) // the next try is due
		ts.s.Engine.Wake()
		return false
	}, func() string { return fmt.Sprintf("%d deliveries are dead, want %d", len(list), n) })
	return list
}

// Without an installation Forge can neither look nor answer; what it was asked is
// kept, with the reason.
func TestNoInstallation(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := newTestServer(t, testOptions{now: c.now})
	want := map[string]string{"none": "has no installation of the App", "unknown": "Installation 4711 is gone: the App was uninstalled"}
	for guid, more := range map[string]string{"none": "", "unknown": `"installation":{"id":4711},`} {
		if status, text := ts.post("issues", guid, ts.gh.WebhookSecret, labelled(more)); status != http.StatusAccepted {
			t.Fatalf("%s is answered %d %s", guid, status, text)
		}
	}
	for _, d := range ts.dead(c, len(want)) {
		if !strings.Contains(d.Error, want[d.GUID]) {
			t.Errorf("%s: %s; want %q", d.GUID, d.Error, want[d.GUID])
		}
	}
}

// Covers lessons 18: a start that cannot be carried out is told on the issue, once,
// with what happened; handled again it goes well.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := newTestServer(t, testOptions{now: c.now})
	ts.gh.AddFault(githubtest.Fault{Path: "/contents/.github/forge.yml", Kind: githubtest.FaultErrorBefore})
	ts.label("acme")
	d := ts.dead(c, 1)[0]
	ts.says("Forge could not start. It tried 5 times")
	ts.says("502")
	ts.says(fmt.Sprintf("forge deliveries --retry %s", d.GUID))
	ts.gh.ClearFaults()
	if err := ts.s.Engine.Redrive(t.Context(), "delivery/"+d.GUID); err != nil {
		t.Fatal(err)
	}
	ts.untilState("verified")
	if n := strings.Count(ts.comments(), "Forge could not start"); n != 1 {
		t.Errorf("it was told %d times", n)
	}
}
