package incidents

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// A service that fails its check is an incident after some failures in a row, with what
// it answered; well again, it recovers. Covers P1.
func TestHealthCheckBecomesIncident(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var status atomic.Int64
	var cut atomic.Bool
	status.Store(200)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if cut.Load() {
			w.Header().Set("Content-Length", "1000")
		}
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, "all is ok")
	}))
	defer shop.Close()
	c := settings.HealthCheck{Name: "shop", URL: shop.URL + "/healthz", Repo: "acme/shop", Expect: 200, Contains: "ok",
		Every: 30 * time.Second, Fails: 2, Private: true}
	p := &Poller{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
		Take: func(ctx context.Context, guid, event string, payload []byte) error {
			return b.DB.KeepDeliveries(ctx, []record.Delivery{{GUID: guid, Event: event, Received: b.now, Payload: payload, Lane: Lane}})
		}}
	w := &production.Watch{Check: production.Check{Name: c.Name, URL: c.URL, Repo: c.Repo, Expect: c.Expect, Fails: c.Fails}}
	look := func(s int64) {
		t.Helper()
		status.Store(s)
		b.now = b.now.Add(c.Every)
		b.must(p.look(t.Context(), p.client(c), c, w))
		b.must(b.Round(t.Context()))
	}
	look(200)
	look(503)
	if rows, _ := b.DB.Incidents(t.Context(), store.IncidentFilter{}); len(rows) != 0 {
		t.Fatalf("%d incidents after one failure", len(rows))
	}
	look(503)
	look(503)
	i := b.incident(1)
	if i.Kind != production.KindHealth || i.Title != "shop answers 503, not 200" || i.First.Health.Actual != 503 || i.Count != 2 || i.FirstSeen.Equal(i.First.At) {
		t.Errorf("%+v", i)
	}
	cut.Store(true) // well by its status, and it breaks off
	look(200)
	if i := b.incident(1); i.State != production.StateOpen || i.Last.Text != "its answer was cut short" {
		t.Errorf("it is %s: %+v", i.State, i.Last)
	}
	cut.Store(false)
	look(200)
	if i := b.incident(1); i.State != production.StateRecovering {
		t.Errorf("it is %s", i.State)
	}
	c.Contains = "nothing like it"
	if probe := p.probe(t.Context(), p.client(c), c); probe.Lacks == "" || probe.Status != 200 {
		t.Errorf("%+v", probe)
	}
	shop.Close()
	if probe := p.probe(t.Context(), p.client(c), c); probe.Why == "" || probe.Unknown != "" || strings.Contains(probe.Why, "127.0.0.1") {
		t.Errorf("%+v", probe)
	}
}

// A check reaches no address within, whatever its name says, follows no redirect
// there, and shows nothing then: it neither passes nor fails. Covers S9.
func TestHealthChecksStayOutside(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	port := inside.Listener.Addr().(*net.TCPAddr).Port
	p := &Poller{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for _, host := range []string{"127.0.0.1", "127.9.9.9", "localhost", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "10.0.0.1",
		"172.16.0.1", "192.168.1.1", "169.254.169.254",
		"100.100.100.200", "[fd00:ec2::254]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"} {
		c := settings.HealthCheck{Name: "x", URL: fmt.Sprintf("http://%s:%d/", host, port)}
		probe := p.probe(t.Context(), p.client(c), c)
		if probe.Unknown == "" || probe.Status != 0 {
			t.Errorf("%s: %+v", host, probe)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("what is within was asked %d times", n)
	}
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer redirect.Close()
	c := settings.HealthCheck{Name: "x", URL: redirect.URL, Private: true}
	if probe := p.probe(t.Context(), p.client(c), c); probe.Status != http.StatusFound || asked.Load() != 0 {
		t.Errorf("a redirect was followed: %+v", probe)
	}
}
