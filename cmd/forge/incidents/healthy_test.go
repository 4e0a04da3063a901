package incidents_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Verified work is merged and deployed, and watched: the comment on its issue says that it
// is in production, and that it is healthy only when it was measured for its whole time;
// its pull request is told so once. A roll-back by somebody takes that back. Covers V12.
func TestHealthyInProduction(t *testing.T) {
	t.Parallel()
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer shop.Close()
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	check := settings.HealthCheck{Name: "shop", URL: shop.URL, Repo: servertest.Repo, Expect: 200, Every: time.Hour, Fails: 3, Private: true}
	ts, pull, _, _ := answering(t, servertest.Options{Deployments: true, Now: now,
		Wire: func(o *server.Options) { o.Config.HealthChecks = []settings.HealthCheck{check} }}, "documents: comment\nproduction:\n  bake_minutes: 2\n")
	run := ts.UntilState(pipeline.StateVerified)
	says := func(want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		status := func() string {
			i, err := ts.GitHub.Issue(servertest.Repo, run.Task.Issue)
			ts.Must(err)
			for _, c := range i.Comments {
				if strings.Contains(c.Body, "Done: reviewed and tested") {
					return c.Body
				}
			}
			return ""
		}
		if err := ts.GitHub.Wait(ctx, func() bool { return strings.Contains(status(), want) }); err != nil {
			t.Fatalf("the status never says %q:\n%s", want, status())
		}
	}
	minute := func() {
		t.Helper()
		later.Add(int64(time.Minute))
		ts.Must(ts.Forge.Incidents.Bake(t.Context()))
	}
	minute()
	says("; in production since ")
	minute()
	minute()
	says("; in production, healthy since ")
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	n := slices.IndexFunc(pulls, func(p githubtest.Pull) bool { return p.Number == pull })
	told := 0
	for _, c := range pulls[n].Comments {
		if strings.Contains(c.Body, "**In production, healthy since ") && strings.Contains(c.Body, "- shop: passed 3 of 3 looks") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the pull request is told %d times", told)
	}
	recorded := func() bool { // V11
		pulls, err := ts.GitHub.Pulls(servertest.Repo)
		ts.Must(err)
		return slices.ContainsFunc(pulls[n].Comments, func(c githubtest.Comment) bool {
			return strings.Contains(c.Body, "Deployment to production") && strings.Contains(c.Body, "it runs in production, healthy since ")
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ts.GitHub.Wait(ctx, recorded); err != nil {
		t.Error("no document records the deployment")
	}
	before := ts.GitHub.Deployments(servertest.Repo)[0]
	id, err := ts.GitHub.As("acme").Deploy(servertest.Repo, "production", before.SHA)
	ts.Must(err)
	ts.Must(ts.GitHub.As("acme").DeploymentStatus(servertest.Repo, id, "success", "as before"))
	ts.Deployed(3)
	minute()
	says("; not in production any more: deployment ")
}
