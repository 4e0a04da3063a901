package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/store"
)

// readyz asks a server whether it is ready, without its HTTP listener.
func readyz(t *testing.T, s *Server) (int, readiness) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	var v readiness
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, w.Body.String())
	}
	return w.Code, v
}

// Readiness says what is wrong: a server that cannot keep webhooks is not ready,
// one that cannot work on them is degraded.
func TestReadiness(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := newTestServer(t, testOptions{now: c.now})
	good := map[string]condition{"database": {OK: true}, "disk": {OK: true}, "draining": {OK: true}, "engine": {OK: true}, "github": {OK: true}, "sandbox": {OK: true}, "work": {OK: true}}
	_, v := readyz(t, ts.s)
	eventually(t, func() bool { // the engine's first look and the App's name come in their own time
		_, v = readyz(t, ts.s)
		return v.Status == "ready"
	}, func() string { return fmt.Sprintf("it is never ready: %+v", v) })
	resp, err := http.Get(ts.s.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	const want = `{
  "status": "ready",
  "checks": {
    "database": {
      "ok": true
    },
    "disk": {
      "ok": true
    },
    "draining": {
      "ok": true
    },
    "engine": {
      "ok": true
    },
    "github": {
      "ok": true
    },
    "sandbox": {
      "ok": true
    },
    "work": {
      "ok": true
    }
  }
}
`
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || string(body) != want {
		t.Errorf("GET /readyz: %s %s", resp.Status, body)
	}

	broken := func(code int, status, name, why string) {
		t.Helper()
		want := readiness{Status: status, Checks: map[string]condition{}}
		for k, v := range good {
			want.Checks[k] = v
		}
		want.Checks[name] = condition{Why: why}
		got, v := readyz(t, ts.s)
		if diff := cmp.Diff(want, v); diff != "" || got != code {
			t.Errorf("%s: status %d (-want +got)\n%s", name, got, diff)
		}
	}
	ts.s.health.sandbox.Store(false)
	broken(http.StatusOK, "degraded", "sandbox", "commands cannot be run; see the log")
	ts.s.health.sandbox.Store(true)
	bot := ts.s.github.bot.Swap(nil)
	broken(http.StatusOK, "degraded", "github", "GitHub has not yet said who the App is; see the log")
	ts.s.github.bot.Store(bot)
	for _, paused := range []bool{true, false} {
		if err := ts.s.DB.SetPaused(t.Context(), store.Pause{Paused: paused}); err != nil {
			t.Fatal(err)
		}
		if paused {
			broken(http.StatusOK, "degraded", "work", "all work is paused; `forge unpause` lets it go on")
		}
	}
	ts.s.health.draining.Store(true)
	broken(http.StatusServiceUnavailable, "not ready", "draining", "the server ends; another one goes on")
	ts.s.health.draining.Store(false)

	beat := ts.s.beat
	ts.s.beat = func() time.Time { return time.Time{} }
	broken(http.StatusServiceUnavailable, "not ready", "engine", "it has not looked for work for a minute; see the log")
	ts.s.beat = beat
	ts.s.health.wrote = io.ErrUnexpectedEOF // as the database's last answer
	ts.s.health.looked = ts.s.now()
	broken(http.StatusServiceUnavailable, "not ready", "database", "it cannot be written; see the log")
	if err := ts.s.DB.Writable(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
