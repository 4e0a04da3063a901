package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
)

// Work that was merged by rebasing has no pull request in its title: the run is found by
// what its commits say. What ran before may be gone from GitHub, or not be of the branch.
func TestDeployedCode(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	base, err := ts.GitHub.Head(servertest.Repo, "main")
	ts.Must(err)
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	text, err := ts.GitHub.File(servertest.Repo, run.Head, "greet.sh")
	ts.Must(err)
	merged, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Put a comma\n\nForge-Run: " + run.Trace + "/1", Files: map[string]*string{"greet.sh": &text}})
	ts.Must(err)
	code := ts.Forge.Code()
	for name, previous := range map[string]string{"the commit before": base, "nothing": "", "a commit that is gone": strings.Repeat("7", 40), "the head of the branch": run.Head} {
		facts, err := code.Facts(t.Context(), servertest.Repo, []production.Deployment{{ID: 1, Commit: merged, Previous: previous}}, nil)
		if err != nil || len(facts) != 1 || len(facts[0].Commits) == 0 {
			t.Errorf("after %s: %+v, %v", name, facts, err)
			continue
		}
		if c := facts[0].Commits[0]; c.Run != run.ID || c.Pull != run.Published.Pull.Number || c.Issue != run.Task.Issue || !slices.Contains(c.Files, "greet.sh") {
			t.Errorf("after %s: %+v; want run %d", name, c, run.ID)
		}
	}
	other, err := ts.Forge.MadeBy(t.Context(), run.Repo, "x\n\nForge-Run: ffff/1\n")
	if other != nil || err != nil {
		t.Errorf("of another: %+v, %v", other, err)
	}
}

// People often roll back by an ordinary deployment of what ran before. An alert that comes
// late, after it, is not answered by deploying what they took back.
func TestPeopleRolledBack(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Deploys: true,
		Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production: {ask: true, issue: true, roll_back: true, revert: true}\n"},
		Wire: func(o *server.Options) {
			o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret("0123456789abcdef-prom"), Repo: servertest.Repo, PerMinute: 10_000}}
		}})
	acme := ts.GitHub.As("acme")
	good, err := ts.GitHub.Head(servertest.Repo, "main")
	ts.Must(err)
	more := "more\n"
	bad, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
	ts.Must(err)
	last := int64(0)
	for n, sha := range []string{bad, good} { // the good one never ran there by itself
		id, err := acme.Deploy(servertest.Repo, "production", sha)
		ts.Must(err)
		ts.Must(acme.DeploymentStatus(servertest.Repo, id, "success", ""))
		ts.Deployed(n + 1)
		last = id
	}
	body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","deployment_id":"%d"},
		"annotations":{"metric":"m","baseline":"0","value":"9"},"startsAt":%q}]}`, last, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
	if code, words := ts.Hook("prom", "0123456789abcdef-prom", body); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, words)
	}
	i := ts.Incident(1, func(i *production.Incident) bool {
		return i.Act(production.AnswerAsk) != nil && i.Act(production.AnswerAsk).State == production.ActDone
	})
	if i.Act(production.AnswerRollBack) != nil || i.Act(production.AnswerRevert) != nil || len(ts.GitHub.Deployments(servertest.Repo)) != 2 {
		t.Errorf("answered by %+v, suspects %+v", i.Acts, i.Suspects)
	}
	h := ts.Forge.Actions()
	if files, err := h.Changed(t.Context(), servertest.Repo, good, bad); err != nil || !slices.Equal(files, []string{"more.txt"}) {
		t.Errorf("back from the bad one: %q, %v", files, err)
	}
	gone, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say it otherwise", Files: map[string]*string{"more.txt": nil, "other.txt": &more}})
	ts.Must(err)
	if files, err := h.Changed(t.Context(), servertest.Repo, good, bad, gone); err != nil || !slices.Equal(files, []string{"more.txt", "other.txt"}) {
		t.Errorf("what is gone by now ran there: %q, %v", files, err)
	}
	var fault *pipeline.Fault
	if files, err := h.Changed(t.Context(), servertest.Repo, bad, good); !errors.As(err, &fault) || !fault.Final {
		t.Errorf("forward to the bad one: %q, %v", files, err)
	}
}
