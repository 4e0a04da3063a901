package play

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline/store"
)

// The server is killed before and after it makes the deployment of a roll-back, and in
// half of the cases a person deploys in between: there is one deployment, or a question,
// never two, and none over a person's. FORGE_KILLS sets how often. Covers P2.
func TestRollBackIsKilled(t *testing.T) {
	long(t)
	t.Parallel()
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("FORGE_KILLS")); err == nil {
		kills = n
	}
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	var names []string
	for n := range 20 { // settings take no more
		names = append(names, fmt.Sprint("e", n))
	}
	ts := newServer(t, servertest.Options{Deploys: true, Now: now, Env: map[string]string{"FORGE_CALL_TIMEOUT": "30s"},
		Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] +
			fmt.Sprintf("production: {ask: true, issue: true, roll_back: true, environments: [%s]}\n", strings.Join(names, ", "))},
		Wire: func(o *server.Options) {
			o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 10_000}}
		}})
	acme := ts.GitHub.As("acme")
	first, err := ts.GitHub.Head(servertest.Repo, "main")
	ts.Must(err)
	more := "more\n"
	second, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
	ts.Must(err)
	rolled, refused, succeeded := 0, 0, 0
	for n := range kills {
		later.Add(int64(8 * time.Minute)) // a repository has so many incidents an hour
		if n > 0 && n%len(names) == 0 {   // and an environment one roll-back a day; what ran there before is no news
			later.Add(int64(25 * time.Hour))
			more += "more\n"
			first = second
			second, err = acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
			ts.Must(err)
		}
		env, suspect := names[n%len(names)], int64(0)
		for _, sha := range []string{first, second} {
			id, err := acme.Deploy(servertest.Repo, env, sha)
			ts.Must(err)
			suspect = id
			ts.Must(acme.DeploymentStatus(servertest.Repo, id, "success", ""))
			succeeded++
			ts.Deployed(succeeded)
		}
		before := len(ts.GitHub.Deployments(servertest.Repo))
		kind := []githubtest.FaultKind{githubtest.FaultHangBefore, githubtest.FaultHangAfter}[n%2]
		ts.GitHub.AddFault(githubtest.Fault{Operation: "repos/create-deployment", Kind: kind, Times: 1})
		body := fmt.Sprintf(`{"version":"4","groupKey":"g%d","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","environment":%q,"deployment_id":"%d"},
			"annotations":{"metric":"m","baseline":"0","value":"9"},"startsAt":%q}]}`, n, env, suspect, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		if code, words := ts.Hook("prom", promToken, body); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, words)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := ts.GitHub.Wait(ctx, ts.GitHub.Hanging); err != nil {
			all, _ := incidents.Read(t.Context(), ts.Forge.DB, store.IncidentFilter{Repo: servertest.Repo, Limit: 1})
			t.Fatalf("kill %d: no deployment is made, the newest incident is %+v", n, all[0])
		}
		cancel()
		person := n/2%2 == 1
		if person {
			spelled := env
			if n/4%2 == 1 { // letter case does not count at GitHub
				spelled = strings.ToUpper(env)
			}
			_, err := acme.Deploy(servertest.Repo, spelled, second)
			ts.Must(err)
		}
		later.Add(int64(2 * time.Minute)) // what failed is tried again after one
		ts.Restart()
		i := ts.Incident(int64(n+1), func(i *production.Incident) bool {
			a := i.Act(production.AnswerRollBack)
			asked := n >= 10 || i.Act(production.AnswerAsk) != nil && i.Act(production.AnswerAsk).State == production.ActDone // ten issues are opened a day
			return a != nil && a.State != production.ActBegun && asked
		})
		made, over := 0, false
		for k, d := range ts.GitHub.Deployments(servertest.Repo)[before:] {
			if d.Task == "rollback" {
				made++
				over = over || k > 0
			}
		}
		act := i.Act(production.AnswerRollBack)
		if want := kind == githubtest.FaultHangAfter || !person; made > 1 || over || (made == 1) != want || (act.State == production.ActDone) != want {
			t.Errorf("kill %d (%s, a person deployed: %t): %d roll-backs, over a person's: %t, %+v", n, kind, person, made, over, act)
		}
		if rolled += made; made == 0 {
			refused++
		}
	}
	t.Logf("%d kills: rolled back %d times, asked %d times", kills, rolled, refused)
	if rolled == 0 || refused == 0 {
		t.Error("the story is not told")
	}
}
