package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
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
	ts := servertest.New(t, servertest.Options{})
	if status, text := post(ts, "issues", "forged", "not the secret at all", labelled("")); status != http.StatusUnauthorized || !strings.Contains(text, "signature does not match") {
		t.Errorf("a wrong signature is answered %d %s", status, text)
	}
	big := append(labelled(""), bytes.Repeat([]byte(" "), 26<<20)...)
	// The server closes the connection while the body is still being sent, so that its
	// answer may not come through.
	if status, text := post(ts, "issues", "big", ts.GitHub.WebhookSecret, big); status != http.StatusRequestEntityTooLarge && status != 0 {
		t.Errorf("26 MiB are answered %d %s", status, text)
	}
	for _, guid := range []string{"forged", "big"} {
		if d, err := ts.Forge.DB.Delivery(t.Context(), guid); err == nil {
			t.Errorf("%s is kept: %+v", guid, d)
		}
	}
	ts.Label("acme") // and the server goes on as before
	ts.Says("/forge stop")
}

// clock is the real time, and what is added to it.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// dead waits until so many deliveries are dead.
func dead(ts *servertest.Server, c *clock, n int) []record.Delivery {
	ts.T.Helper()
	var list []record.Delivery
	servertest.Eventually(ts.T, func() bool {
		var err error
		list, err = ts.Forge.DB.Deliveries(ts.T.Context(), store.DeliveryFilter{State: record.DeliveryDead})
		ts.Must(err)
		if len(list) == n {
			return true
		}
		c.advance(10 * time.Second) // the next try is due
		ts.Forge.Engine.Wake()
		return false
	}, func() string { return fmt.Sprintf("%d deliveries are dead, want %d", len(list), n) })
	return list
}

// Without an installation Forge can neither look nor answer; what it was asked is
// kept, with the reason.
func TestNoInstallation(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := servertest.New(t, servertest.Options{Now: c.now})
	want := map[string]string{"none": "has no installation of the App", "unknown": "Installation 4711 is gone: the App was uninstalled"}
	for guid, more := range map[string]string{"none": "", "unknown": `"installation":{"id":4711},`} {
		if status, text := post(ts, "issues", guid, ts.GitHub.WebhookSecret, labelled(more)); status != http.StatusAccepted {
			t.Fatalf("%s is answered %d %s", guid, status, text)
		}
	}
	for _, d := range dead(ts, c, len(want)) {
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
	ts := servertest.New(t, servertest.Options{Now: c.now})
	ts.GitHub.AddFault(githubtest.Fault{Path: "/contents/.github/forge.yml", Kind: githubtest.FaultErrorBefore})
	ts.Label("acme")
	d := dead(ts, c, 1)[0]
	ts.Says("Forge could not start. It tried 5 times")
	ts.Says("502")
	ts.Says(fmt.Sprintf("forge deliveries --retry %s", d.GUID))
	ts.GitHub.ClearFaults()
	if err := ts.Forge.Engine.Redrive(t.Context(), "delivery/"+d.GUID); err != nil {
		t.Fatal(err)
	}
	ts.UntilState("verified")
	if n := strings.Count(ts.Comments(), "Forge could not start"); n != 1 {
		t.Errorf("it was told %d times", n)
	}
}
