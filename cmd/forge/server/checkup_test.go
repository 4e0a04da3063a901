package server_test

import (
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Covers D2: the page has the probes of /readyz as they are now, and all that the doctor
// looks at, which looks again after five minutes and not before.
func TestCheckupPage(t *testing.T) {
	t.Parallel()
	c := &clock{}
	ts := servertest.New(t, servertest.Options{Now: c.now})
	v := ts.Forge.Checkup(t.Context())
	areas := map[string]bool{}
	for _, f := range v.All {
		areas[f.Area] = true
	}
	for _, a := range []string{"settings", "disk", "database", "git", "sandbox", "model", "github", "installations"} {
		if !areas[a] {
			t.Errorf("the page says nothing of %s: %+v", a, v.All)
		}
	}
	_, now := readyz(t, ts.Forge)
	if len(v.Now) != len(now.Checks) {
		t.Errorf("the page has %+v, /readyz %+v", v.Now, now.Checks)
	}

	if err := ts.GitHub.Suspend("acme", true); err != nil {
		t.Fatal(err)
	}
	suspended := func() bool {
		resp, err := ts.Page("/doctor")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET /doctor: %s %v", resp.Status, err)
		}
		return strings.Contains(string(body), "acme has suspended the App")
	}
	if suspended() {
		t.Error("it looked again at once")
	}
	ts.Forge.SetDraining(true) // what is asked now is not kept
	if v := ts.Forge.Checkup(t.Context()); v.Status != "not ready" {
		t.Errorf("a server that ends is %s", v.Status)
	}
	ts.Forge.SetDraining(false)
	c.advance(server.CheckedFor + time.Second)
	if !suspended() {
		t.Error("it did not look again after five minutes")
	}
}
