package server_test

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

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/pipeline/store"
	"strings"
)

// readyz asks a server whether it is ready, without its HTTP listener.
func readyz(t *testing.T, s *server.Server) (int, server.Readiness) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	var v server.Readiness
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
	ts := servertest.New(t, servertest.Options{Now: c.now})
	good := map[string]server.Condition{"database": {OK: true}, "disk": {OK: true}, "draining": {OK: true}, "engine": {OK: true}, "github": {OK: true}, "sandbox": {OK: true}, "work": {OK: true}}
	_, v := readyz(t, ts.Forge)
	servertest.Eventually(t, func() bool { // the engine's first look and the App's name come in their own time
		_, v = readyz(t, ts.Forge)
		return v.Status == "ready"
	}, func() string { return fmt.Sprintf("it is never ready: %+v", v) })
	resp, err := http.Get(ts.Forge.URL + "/readyz")
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
		want := server.Readiness{Status: status, Checks: map[string]server.Condition{}}
		for k, v := range good {
			want.Checks[k] = v
		}
		want.Checks[name] = server.Condition{Why: why}
		got, v := readyz(t, ts.Forge)
		if diff := cmp.Diff(want, v); diff != "" || got != code {
			t.Errorf("%s: status %d (-want +got)\n%s", name, got, diff)
		}
	}
	ts.Forge.SetSandbox(false)
	broken(http.StatusOK, "degraded", "sandbox", "commands cannot be run; see the log")
	ts.Forge.SetSandbox(true)
	named := ts.Forge.Nameless()
	broken(http.StatusOK, "degraded", "github", "GitHub has not yet said who the App is; see the log")
	named()
	for _, paused := range []bool{true, false} {
		if err := ts.Forge.DB.SetPaused(t.Context(), store.Pause{Paused: paused}); err != nil {
			t.Fatal(err)
		}
		if paused {
			broken(http.StatusOK, "degraded", "work", "all work is paused; `forge unpause` lets it go on")
		}
	}
	ts.Forge.SetDraining(true)
	broken(http.StatusServiceUnavailable, "not ready", "draining", "the server ends; another one goes on")
	ts.Forge.SetDraining(false)

	beats := ts.Forge.SetBeat(func() time.Time { return time.Time{} })
	broken(http.StatusServiceUnavailable, "not ready", "engine", "it has not looked for work for a minute; see the log")
	beats()
	ts.Forge.SetWrote(io.ErrUnexpectedEOF) // as the database's last answer
	broken(http.StatusServiceUnavailable, "not ready", "database", "it cannot be written; see the log")
	if err := ts.Forge.DB.Writable(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// Covers M2: the server serves them to a monitor on this machine.
func TestServerScrape(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	resp, err := http.Get(ts.Forge.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `forge_runs{state="running"} 0`) {
		t.Errorf("GET /metrics: %d %s", resp.StatusCode, body)
	}
}
