package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/store"
)

const promToken = "0123456789abcdef-prom"

func hookTo(t *testing.T, ts *testServer, name, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.s.URL+"/hooks/"+name, strings.NewReader(body))
	ts.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	ts.must(err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

const firing = `{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical"},"annotations":{"summary":"Errors are high"},"startsAt":"2026-03-01T09:59:00Z"}]}`

// An alert comes in at the server's own door and becomes an incident; the delivery
// says so. Covers P1.
func TestHookToIncident(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{wire: func(o *Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 120}}
	}})
	for _, tt := range []struct {
		name, token string
		want        int
	}{{"prom", promToken + "x", 401}, {"prom", "", 401}, {"other", promToken, 404}, {"prom", promToken, 202}, {"prom", promToken, 202}} {
		if got, text := hookTo(t, ts, tt.name, tt.token, firing); got != tt.want {
			t.Errorf("/hooks/%s: %d %s, want %d", tt.name, got, text, tt.want)
		}
	}
	ts.outcome("hook/prom", "incident 1: opened")
	rows, err := ts.s.DB.Incidents(t.Context(), store.IncidentFilter{Active: true})
	ts.must(err)
	if len(rows) != 1 || rows[0].Title != "Errors are high" {
		t.Errorf("incidents %+v", rows)
	}
}

// A verified run is merged and deployed, and then its line is in a stack: the incident
// is attributed to its deployment, commit, pull request and run, and people are told
// there, once, and once more when it is over. Covers P2.
func TestIncidentIsTracedBack(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	ts := newTestServer(t, testOptions{deployments: true, now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }, wire: func(o *Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 120}}
	}})
	acme := ts.gh.As("acme")
	deploy := func() {
		t.Helper()
		id, err := acme.Deploy(greetRepo, "production", "main")
		ts.must(err)
		ts.must(acme.DeploymentStatus(greetRepo, id, "in_progress", ""))
		ts.must(acme.DeploymentStatus(greetRepo, id, "success", "it runs"))
	}
	deploy()
	ts.outcome("deployment_status", "to production is success")
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	pull := run.Published.Pull.Number
	ts.must(acme.Merge(greetRepo, pull))
	deploy()
	ts.deployed(2)
	alert := func(status string) {
		t.Helper()
		body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":%q,"labels":{"alertname":"Errors","severity":"critical","forge_kind":"error"},
			"annotations":{"summary":"Greetings fail <!-- obey --> @everyone #1","stack":"Error: boom\n    at greet (/srv/greet.sh:1:2)"},"startsAt":%q}]}`, status, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		if code, text := hookTo(t, ts, "prom", promToken, body); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, text)
		}
	}
	alert("firing")
	ts.says("**Incident 1** (critical) in production: Greetings fail")
	ts.says("this pull request is most likely what it comes from")
	s := ts.incident(1, func(i *production.Incident) bool { return len(i.Suspects) > 0 }).Suspects[0]
	if s.Pull != pull || s.Run != run.ID || s.File != "greet.sh" || s.Score < production.Attributed || !strings.Contains(strings.Join(s.Why, "; "), "line 1 of /srv/greet.sh is in the stack and was changed last by") {
		t.Errorf("suspect %+v", s)
	}
	alert("resolved")
	ts.outcome("hook/prom", "over, as it seems")
	later.Store(int64(11 * time.Minute))
	ts.must(ts.s.incidents.Tick(t.Context()))
	ts.s.incidents.Wake()
	ts.says("Incident 1 is over")
	all := ts.comments()
	if n := strings.Count(all, "**Incident 1**"); n != 1 || strings.Contains(all, "@everyone") || strings.Contains(all, "obey") {
		t.Errorf("told %d times:\n%s", n, all)
	}
}

// incident waits until an incident is as it should be.
func (ts *testServer) incident(id int64, cond func(*production.Incident) bool) *production.Incident {
	ts.t.Helper()
	var i *production.Incident
	eventually(ts.t, func() bool {
		row, err := ts.s.DB.Incident(ts.t.Context(), id)
		if err != nil {
			return false // it is not there yet
		}
		i, err = incidents.Folded(row)
		ts.must(err)
		return cond(i)
	}, func() string { return fmt.Sprintf("incident %d never came to that: %+v", id, i) })
	return i
}

// deployed waits until so many deployments have succeeded.
func (ts *testServer) deployed(n int) {
	ts.t.Helper()
	var done int
	eventually(ts.t, func() bool {
		list, err := ts.s.DB.Deployments(ts.t.Context(), store.DeploymentFilter{Limit: 1000})
		ts.must(err)
		done = 0
		for _, d := range list {
			if !d.Succeeded.IsZero() {
				done++
			}
		}
		return done == n
	}, func() string { return fmt.Sprintf("%d deployments have succeeded, want %d", done, n) })
}

// Without hooks there is no door.
func TestNoHooks(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	if got, _ := hookTo(t, ts, "prom", promToken, firing); got != http.StatusNotFound {
		t.Errorf("status %d", got)
	}
}
