package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"forge/cmd/forge/incidents"
	"forge/learn/production"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// What runs where and what goes wrong there is shown to who sees the repository, and
// what alerts say does nothing on the page. Covers P2, S24.
func TestProductionPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/production", 200), "No deployment is known", "No incident was ever seen")
	hooks := map[string]production.Hook{"shop": {Name: "shop", Kind: production.HookAlertmanager, Repo: "acme/shop"},
		"secret": {Name: "secret", Kind: production.HookAlertmanager, Repo: "acme/secret"}}
	service := incidents.New(incidents.Options{DB: s.db, Hooks: hooks, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return today }})
	var list []record.Delivery
	for n, repo := range []string{"shop", "secret"} {
		at := today.Add(-10 * time.Minute).Format(time.RFC3339)
		list = append(list, record.Delivery{GUID: fmt.Sprint("d", n), Event: "deployment_status", Received: today, Lane: incidents.Lane, Payload: fmt.Appendf(nil,
			`{"deployment":{"id":%d,"sha":"%040d","ref":"main","environment":"production","created_at":%q,"creator":{"login":"ann"}},"deployment_status":{"state":"success","created_at":%q},"repository":{"full_name":"acme/%s"}}`, n+1, n+1, at, at, repo)},
			record.Delivery{GUID: fmt.Sprint("a", n), Event: "hook/" + repo, Received: today, Lane: incidents.Lane, Payload: fmt.Appendf(nil,
				`{"alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","forge_kind":"error"},"annotations":{"summary":"<script>alert(1)</script> of %s","stack":"    at f (/x/<b>.js:3:1)"},"startsAt":%q}]}`, repo, today.Add(-time.Minute).Format(time.RFC3339))})
	}
	if err := s.db.KeepDeliveries(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(context.Context) error{service.Round, service.Follow} {
		if err := f(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for n, repo := range []string{"shop", "secret"} {
		ship := &store.Ship{Run: int64(71 + n), Repo: "acme/" + repo, Active: true, Data: fmt.Appendf(nil,
			`{"run":%d,"pull":12,"state":"asking","since":%q,"why":"a person is asked about <script>alert</script>"}`, 71+n, today.Format(time.RFC3339))}
		if err := s.db.SaveShip(t.Context(), ship); err != nil {
			t.Fatal(err)
		}
	}
	page := s.get(t, "/production", 200)
	has(t, page, "On its way", "/runs/71", "acme/secret#12", "asking", "production", "acme/shop", "acme/secret", "critical", "by ann", "/production/incidents/1", "-<script>alert", "The last 30 days")
	one := s.get(t, "/production/incidents/2", 200) // repositories are written down in the order of their names
	has(t, one, "What was done about it", "Nothing yet", "/forge incident 2 rollback", "/x/&lt;b&gt;.js:3")
	has(t, one, "Incident 2", "of shop", "-<script>alert", "-<b>.js", "deployment 1", "it was the last deployment to production", "production.error_detected")
	s.viewer.repos = []string{"acme/shop"}
	has(t, s.get(t, "/production", 200), "acme/shop", "/runs/71", "-acme/secret", "-of secret", "-/runs/72")
	s.get(t, "/production/incidents/1", 404)
	s.get(t, "/production/incidents/99", 404)
	s.get(t, "/production/incidents/x", 404)
}
