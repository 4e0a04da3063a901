package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
)

const (
	hookToken  = "a-token-of-enough-length"
	hookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// a door is a receiver with one source of each kind, and a clock.
type door struct {
	*mux.Router
	r   *Receiver
	k   memory
	now time.Time
}

func newDoor(t *testing.T, change func(map[string]Source)) *door {
	t.Helper()
	d := &door{Router: mux.NewRouter(), now: now}
	sources := map[string]Source{
		"prom":   {Kind: SourceBearer, Secret: []byte(hookToken), Repo: "acme/shop"},
		"sentry": {Kind: SourceSentry, Secret: []byte(hookToken)},
		"own":    {Kind: SourceStandard, Secret: []byte(hookSecret)},
	}
	if change != nil {
		change(sources)
	}
	r, err := New(&d.k, quiet(), Options{Secret: secret, Sources: sources, Clock: func() time.Time { return d.now }})
	if err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context())
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	r.Route(d.Router)
	d.r = r
	return d
}

func hookRequest(name, body string, headers ...string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/hooks/"+name, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// standard signs a message as Standard Webhooks says.
func standard(id string, at time.Time, body string) *http.Request {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	stamp := fmt.Sprint(at.Unix())
	return hookRequest("own", body, "webhook-id", id, "webhook-timestamp", stamp,
		"webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac([]byte("other"), body))+" v1,"+
			base64.StdEncoding.EncodeToString(mac(key, id+"."+stamp+"."+body)))
}

func sentry(body string) *http.Request {
	return hookRequest("sentry", body, "Sentry-Hook-Signature", hex.EncodeToString(mac([]byte(hookToken), body)), "Sentry-Hook-Resource",
		"error", "Request-ID", "r1")
}

func bearer(body string) *http.Request {
	return hookRequest("prom", body, "Authorization", "Bearer "+hookToken)
}

// Who proves who they are is taken in, and nobody else. Covers P1, S6.
func TestSourcesProveThemselves(t *testing.T) {
	t.Parallel()
	unsigned := func(req *http.Request, header, value string) *http.Request {
		req.Header.Set(header, value)
		return req
	}
	for _, tt := range []struct {
		name string
		req  *http.Request
		want int
	}{
		{"bearer", bearer("{}"), 202},
		{"bearer, other case", unsigned(bearer("{}"), "Authorization", "bearer "+hookToken), 202},
		{"bearer, wrong token", unsigned(bearer("{}"), "Authorization", "Bearer "+hookToken+"x"), 401},
		{"bearer, none", hookRequest("prom", "{}"), 401},
		{"bearer, basic", unsigned(bearer("{}"), "Authorization", "Basic "+hookToken), 401},
		{"bearer, another source's proof", unsigned(sentry("{}"), "X", ""), 202},
		{"sentry", sentry("{}"), 202},
		{"sentry, another body", unsigned(sentry("{}"), "Sentry-Hook-Signature", hex.EncodeToString(mac([]byte(hookToken), "[]"))), 401},
		{"sentry, another secret", unsigned(sentry("{}"), "Sentry-Hook-Signature", hex.EncodeToString(mac([]byte("x"), "{}"))), 401},
		{"sentry, unsigned", hookRequest("sentry", "{}"), 401},
		{"sentry, the token itself", hookRequest("sentry", "{}", "Authorization", "Bearer "+hookToken), 401},
		{"standard", standard("m1", now, "{}"), 202},
		{"standard, 4 minutes late", standard("m2", now.Add(-4*time.Minute), "{}"), 202},
		{"standard, 6 minutes late", standard("m3", now.Add(-6*time.Minute), "{}"), 401},
		{"standard, 6 minutes early", standard("m4", now.Add(6*time.Minute), "{}"), 401},
		{"standard, other id", unsigned(standard("m5", now, "{}"), "webhook-id", "m6"), 401},
		{"standard, other time", unsigned(standard("m5", now, "{}"), "webhook-timestamp", fmt.Sprint(now.Unix()+1)), 401},
		{"standard, no time", unsigned(standard("m5", now, "{}"), "webhook-timestamp", ""), 401},
		{"standard, no id", unsigned(standard("m5", now, "{}"), "webhook-id", ""), 401},
		{"standard, an id of several words", unsigned(standard("m5 x", now, "{}"), "webhook-id", "m5 x"), 401},
		{"standard, no signature", unsigned(standard("m5", now, "{}"), "webhook-signature", ""), 401},
		{"standard, another version", unsigned(standard("m5", now, "{}"), "webhook-signature", "v2,AAAA"), 401},
		{"unknown", hookRequest("nobody", "{}", "Authorization", "Bearer "+hookToken), 404},
		{"too large", bearer(strings.Repeat("x", sourceBody+1)), 413},
		{"as large as may be", bearer(strings.Repeat("x", sourceBody)), 202},
		{"read with GET", httptest.NewRequest(http.MethodGet, "/hooks/prom", nil), 405},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(t, nil)
			w := serve(d, tt.req)
			if w.Code != tt.want {
				t.Errorf("status %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if kept := len(d.k.kept) == 1; kept != (tt.want == 202) {
				t.Errorf("kept %d", len(d.k.kept))
			}
			if strings.Contains(w.Body.String(), hookToken) {
				t.Error("the answer holds the secret")
			}
		})
	}
}

// A repeat has the id of what it repeats; what goes on has another.
func TestSourceIDs(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	id := func(req *http.Request) string {
		t.Helper()
		if w := serve(d, req); w.Code != 202 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		return d.k.kept[len(d.k.kept)-1].GUID
	}
	d.now = now.Truncate(time.Minute)
	first := id(bearer(`{"a":1}`))
	d.now = d.now.Add(40 * time.Second)
	if again := id(bearer(`{"a":1}`)); again != first {
		t.Errorf("a retry has the id %s, not %s", again, first)
	}
	if other := id(bearer(`{"a":2}`)); other == first {
		t.Error("another body has the same id")
	}
	d.now = d.now.Add(time.Minute)
	if later := id(bearer(`{"a":1}`)); later == first {
		t.Error("what goes on is taken for a repeat")
	}
	replay := sentry(`{"b":1}`)
	one := id(sentry(`{"b":1}`))
	replay.Header.Set("Request-ID", "another") // which is not signed
	if two := id(replay); one != two {
		t.Errorf("a replay has the id %s, not %s", two, one)
	}
	if got := id(standard("m1", d.now, `{}`)); got != "hook:own:m1" {
		t.Errorf("id %s", got)
	}
	if got := id(standard("a/b", d.now, `{}`)); strings.Contains(got, "/") || got == id(standard("a/c", d.now, `{}`)) {
		t.Errorf("id %s", got)
	}
}

func TestSourceDelivery(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	serve(d, bearer(`{"action":"x","repository":{"full_name":"evil/other"}}`))
	serve(d, sentry(`{}`))
	if got := d.k.kept[0]; got.Event != "hook/prom" || got.Repo != "acme/shop" || got.Action != "" || !got.Received.Equal(now) {
		t.Errorf("%+v", got)
	}
	if got := d.k.kept[1]; got.Event != "hook/sentry" || got.Action != "error" {
		t.Errorf("%+v", got)
	}
}

// The binary mode of CloudEvents is kept as the structured one.
func TestCloudEventsInHeaders(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	for i, body := range []string{`{"metric":"x"}`, `not JSON "`} {
		req := standard(fmt.Sprint("m", i), now, body)
		for k, v := range map[string]string{"ce-specversion": "1.0", "ce-type": "production.anomaly_detected", "ce-source": "/m", "ce-id": "7"} {
			req.Header.Set(k, v)
		}
		if w := serve(d, req); w.Code != 202 {
			t.Fatal(w.Body)
		}
	}
	want := []string{`{"data":{"metric":"x"},"id":"7","source":"/m","specversion":"1.0","type":"production.anomaly_detected"}`,
		`{"data":"not JSON \"","id":"7","source":"/m","specversion":"1.0","type":"production.anomaly_detected"}`}
	for i := range want {
		if got := string(d.k.kept[i].Payload); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

// What is too much now is answered so that monitors send it again. Who proves
// nothing takes nothing from the rate.
func TestSourceRate(t *testing.T) {
	t.Parallel()
	full := false
	d := newDoor(t, func(m map[string]Source) {
		s := m["prom"]
		s.PerMinute, s.Full = 6, func() bool { return full }
		m["prom"] = s
	})
	send := func() int { return serve(d, bearer("{}")).Code }
	for range 50 {
		serve(d, hookRequest("prom", "{}"))
	}
	for i := range 6 {
		if code := send(); code != 202 {
			t.Fatalf("delivery %d: %d", i, code)
		}
	}
	w := serve(d, bearer("{}"))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	d.now = d.now.Add(10 * time.Second)
	if a, b := send(), send(); a != 202 || b != 503 {
		t.Errorf("ten seconds later: %d, %d", a, b)
	}
	d.now, full = d.now.Add(time.Hour), true
	if code := send(); code != 503 {
		t.Errorf("with too many that wait: %d", code)
	}
	full = false
	if code := send(); code != 202 {
		t.Errorf("after that: %d", code)
	}
	if code := serve(d, request("g", []byte(labeled))).Code; code != 202 {
		t.Errorf("GitHub's delivery: %d", code)
	}
	want := []Passed{{Name: "own"}, {Name: "prom", Taken: 8, Unproven: 50, Busy: 3}, {Name: "sentry"}}
	if got := d.r.Sources(); !slices.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// What GitHub signs cannot pass for what a source or a check says: the event's name is
// not signed.
func TestEventOfAnotherDoor(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	for _, event := range []string{"hook/prom", "check/shop"} {
		req := request("g", []byte(labeled))
		req.Header.Set("X-GitHub-Event", event)
		if w := serve(d, req); w.Code != 400 {
			t.Errorf("%s: status %d", event, w.Code)
		}
	}
}

// Without sources there is no route besides GitHub's.
func TestNoSources(t *testing.T) {
	t.Parallel()
	m := mux.NewRouter()
	started(t, &memory{}, Options{}).Route(m)
	if w := serve(m, bearer("{}")); w.Code != 404 {
		t.Errorf("status %d", w.Code)
	}
}

func TestSourcesThatCannotBe(t *testing.T) {
	t.Parallel()
	good := Source{Kind: SourceBearer, Secret: []byte(hookToken)}
	for name, s := range map[string]Source{
		"": good, "a/b": good, "a b": good, "short": {Kind: SourceBearer, Secret: []byte("x")}, "kind": {Kind: "hmac", Secret: []byte(hookToken)},
	} {
		if _, err := New(&memory{}, quiet(), Options{Secret: secret, Sources: map[string]Source{name: s}}); err == nil ||
			bytes.Contains([]byte(err.Error()), s.Secret) && len(s.Secret) > 1 {
			t.Errorf("%q: %v", name, err)
		}
	}
}
