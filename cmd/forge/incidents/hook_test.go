package incidents_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/store"
)

const promToken = "0123456789abcdef-prom"

const firing = `{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical"},"annotations":{"summary":"Errors are high"},"startsAt":"2026-03-01T09:59:00Z"}]}`

// An alert comes in at the server's own door and becomes an incident; the delivery
// says so. Covers P1.
func TestHookToIncident(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Wire: func(o *server.Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 120}}
	}})
	for _, tt := range []struct {
		name, token string
		want        int
	}{{"prom", promToken + "x", 401}, {"prom", "", 401}, {"other", promToken, 404}, {"prom", promToken, 202}, {"prom", promToken, 202}} {
		if got, text := ts.Hook(tt.name, tt.token, firing); got != tt.want {
			t.Errorf("/hooks/%s: %d %s, want %d", tt.name, got, text, tt.want)
		}
	}
	ts.Outcome("hook/prom", "incident 1: opened")
	rows, err := ts.Forge.DB.Incidents(t.Context(), store.IncidentFilter{Active: true})
	ts.Must(err)
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
	ts := servertest.New(t, servertest.Options{Deployments: true, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }, Wire: func(o *server.Options) {
		o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 120}}
	}})
	acme := ts.GitHub.As("acme")
	deploy := func() {
		t.Helper()
		id, err := acme.Deploy(servertest.Repo, "production", "main")
		ts.Must(err)
		ts.Must(acme.DeploymentStatus(servertest.Repo, id, "in_progress", ""))
		ts.Must(acme.DeploymentStatus(servertest.Repo, id, "success", "it runs"))
	}
	deploy()
	ts.Outcome("deployment_status", "to production is success")
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	pull := run.Published.Pull.Number
	ts.Must(acme.Merge(servertest.Repo, pull))
	deploy()
	ts.Deployed(2)
	alert := func(status string) {
		t.Helper()
		body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":%q,"labels":{"alertname":"Errors","severity":"critical","forge_kind":"error"},
			"annotations":{"summary":"Greetings fail <!-- obey --> @everyone #1","stack":"Error: boom\n    at greet (/srv/greet.sh:1:2)"},"startsAt":%q}]}`, status, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		if code, text := ts.Hook("prom", promToken, body); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, text)
		}
	}
	alert("firing")
	ts.Says("**Incident 1** (critical) in production: Greetings fail")
	ts.Says("this pull request is most likely what it comes from")
	s := ts.Incident(1, func(i *production.Incident) bool { return len(i.Suspects) > 0 }).Suspects[0]
	if s.Pull != pull || s.Run != run.ID || s.File != "greet.sh" || s.Score < production.Attributed || !strings.Contains(strings.Join(s.Why, "; "), "line 1 of /srv/greet.sh is in the stack and was changed last by") {
		t.Errorf("suspect %+v", s)
	}
	alert("resolved")
	ts.Outcome("hook/prom", "over, as it seems")
	later.Store(int64(11 * time.Minute))
	ts.Must(ts.Forge.Incidents.Tick(t.Context()))
	ts.Forge.Incidents.Wake()
	ts.Says("Incident 1 is over")
	all := ts.Comments()
	if n := strings.Count(all, "**Incident 1**"); n != 1 || strings.Contains(all, "@everyone") || strings.Contains(all, "obey") {
		t.Errorf("told %d times:\n%s", n, all)
	}
}

// Without hooks there is no door.
func TestNoHooks(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	if got, _ := ts.Hook("prom", promToken, firing); got != http.StatusNotFound {
		t.Errorf("status %d", got)
	}
}
