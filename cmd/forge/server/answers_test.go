package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
)

// answering is a server with a hook and what a repository lets happen about incidents,
// whose verified work was merged and deployed, over something that was deployed before.
// It returns the pull request and the two deployed commits.
func answering(t *testing.T, o testOptions, production string) (ts *testServer, pull int, before, after githubtest.Deployed) {
	t.Helper()
	o.files = maps.Clone(o.files)
	if o.files == nil {
		o.files = map[string]string{}
	}
	o.files[".github/forge.yml"] = servertest.Greeter()[".github/forge.yml"] + production
	also := o.wire
	o.wire = func(w *Options) {
		if also != nil {
			also(w)
		}
		w.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 10_000}}
	}
	ts = newTestServer(t, o)
	acme := ts.gh.As("acme")
	deploy := func() {
		id, err := acme.Deploy(greetRepo, "production", "main")
		ts.must(err)
		ts.must(acme.DeploymentStatus(greetRepo, id, "success", "it runs"))
	}
	deploy()
	ts.deployed(1)
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	pull = run.Published.Pull.Number
	ts.must(acme.Merge(greetRepo, pull))
	deploy()
	ts.deployed(2)
	list := ts.gh.Deployments(greetRepo)
	return ts, pull, list[0], list[1]
}

// alerts says by the hook that greetings fail in the line that the run changed.
func (ts *testServer) alerts(group, status, title, text string, at time.Time) {
	ts.t.Helper()
	body := fmt.Sprintf(`{"version":"4","groupKey":%q,"alerts":[{"status":%q,"labels":{"alertname":"Errors","severity":"critical","forge_kind":"error"},
		"annotations":{"summary":%q,"description":%q,"stack":"Error: boom\n    at greet (/srv/greet.sh:1:2)"},"startsAt":%q}]}`, group, status, title, text, at.UTC().Format(time.RFC3339Nano))
	if code, words := hookTo(ts.t, ts, "prom", promToken, body); code != http.StatusAccepted {
		ts.t.Fatalf("%d %s", code, words)
	}
}

// done waits until an answer to an incident was carried out, or refused.
func (ts *testServer) done(a production.Answer) production.Act {
	ts.t.Helper()
	i := ts.incident(1, func(i *production.Incident) bool { return i.Act(a) != nil && i.Act(a).State != production.ActBegun })
	return *i.Act(a)
}

// A deployment of Forge's work goes wrong: an issue is opened, what ran before is
// deployed again, people are asked, and who may choose has the cause reverted and
// another run started. Each is made once. Once it is over, the run behind it has learnt
// what escaped it, until somebody says that it was nothing. Covers P2.
func TestIncidentIsAnswered(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	ts, pull, before, after := answering(t, testOptions{deploys: true, now: now}, "production:\n  ask: true\n  issue: true\n  roll_back: true\n")
	ts.alerts("g", "firing", "Greetings fail @everyone", "all of them, closes #1", time.Now().Add(time.Second))
	back := ts.done(production.AnswerRollBack)
	list := ts.gh.Deployments(greetRepo)
	if len(list) != 3 || back.State != production.ActDone || back.Number != list[2].ID || list[2].SHA != before.SHA || list[2].Task != "rollback" || list[2].Creator != "forge[bot]" || before.SHA == after.SHA {
		t.Fatalf("rolled back: %+v by %+v", list, back)
	}
	ts.done(production.AnswerAsk)
	issue, err := ts.gh.Issue(greetRepo, int(ts.done(production.AnswerIssue).Number))
	ts.must(err)
	if issue.Author != "forge[bot]" || !slices.Contains(issue.Labels, "incident") || !strings.Contains(issue.Body, "> all of them") || strings.Contains(issue.Title+issue.Body, "@everyone") || strings.Contains(issue.Body, "closes #1") {
		t.Errorf("issue %+v", issue)
	}
	say := func(who, words string) {
		t.Helper()
		_, err := ts.gh.As(who).Comment(greetRepo, issue.Number, words)
		ts.must(err)
	}
	talk := func() string {
		i, err := ts.gh.Issue(greetRepo, issue.Number)
		ts.must(err)
		var all strings.Builder
		for _, c := range i.Comments {
			fmt.Fprintf(&all, "%s: %s\n", c.Author, c.Body)
		}
		return all.String()
	}
	say("stranger", "/forge incident 1 revert")
	ts.outcome("issue_comment", "stranger may not command Forge")
	say("acme", "/forge incident 1 revert")
	revert := ts.done(production.AnswerRevert)
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	n := slices.IndexFunc(pulls, func(p githubtest.Pull) bool { return int64(p.Number) == revert.Number })
	if n < 0 || !pulls[n].Draft || pulls[n].Branch != fmt.Sprintf("forge/revert-%d-incident-1", pull) || !strings.HasPrefix(pulls[n].Title, "Revert ") || len(pulls) != 2 {
		t.Fatalf("reverted by %+v: %+v", revert, pulls)
	}
	if text, err := ts.gh.File(greetRepo, pulls[n].Head, "greet.sh"); err != nil || text != servertest.Greeter()["greet.sh"] {
		t.Errorf("the revert has %q, %v", text, err)
	}
	say("acme", "/forge incident 1 rollback")
	ts.outcome("issue_comment", "there is no roll-back now: it was done before")
	say("acme", "/forge incident 1 run")
	if run := ts.done(production.AnswerRun); run.State != production.ActDone || run.By != "acme" {
		t.Errorf("%+v", run)
	} else if r, err := ts.s.DB.Load(t.Context(), run.Number); err != nil || r.Task.Issue != issue.Number ||
		r.Branch != fmt.Sprintf("forge/issue-%d-incident-1", issue.Number) {
		t.Errorf("run %+v, %v", r, err)
	}
	ts.must(ts.gh.As("acme").DeploymentStatus(greetRepo, list[2].ID, "success", "as before"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ts.gh.Wait(ctx, func() bool { return strings.Contains(talk(), "the roll-back is deployed: success") }); err != nil {
		t.Errorf("nobody says that the roll-back is deployed:\n%s", talk())
	}
	escaped := func(list []pipeline.Learning) bool {
		return slices.ContainsFunc(list, func(l pipeline.Learning) bool {
			return l.Source == pipeline.SourceGap && l.State == pipeline.LearningActive && strings.Contains(l.Content, fmt.Sprintf("A defect in greet.sh reached production with pull request #%d", pull))
		})
	}
	ts.alerts("g", "resolved", "Greetings fail", "", time.Now())
	ts.outcome("hook/prom", "over, as it seems")
	later.Store(int64(11 * time.Minute))
	ts.must(ts.s.incidents.Tick(t.Context()))
	ts.s.incidents.Wake()
	ts.learnings("what escaped", escaped)
	later.Add(int64(time.Minute))
	say("acme", "/forge incident 1 dismiss the monitor was wrong")
	ts.learnings("that is taken back", func(list []pipeline.Learning) bool { return !escaped(list) })
	if made := ts.gh.Mutations(); made["issues/create"] != 1 || made["repos/create-deployment"] != 1 || made["pulls/create"] != 2 {
		t.Errorf("made %v", made)
	}
}

// What GitHub or git refuses for good is tried once, however many alerts come in, and
// the next answer comes: issues are switched off in the repository, and the first commit
// has nothing before it.
func TestAnswersThatCannotBe(t *testing.T) {
	t.Parallel()
	again := func(ts *testServer) {
		ts.t.Helper()
		for n := range 5 {
			ts.alerts(fmt.Sprint("again", n), "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
			ts.incident(1, func(i *production.Incident) bool { return len(i.Joined) == n+1 })
		}
	}
	ts, _, _, _ := answering(t, testOptions{deployments: true}, "production:\n  issue: true\n  ask: true\n")
	ts.gh.AddFault(githubtest.Fault{Operation: "issues/list-for-repo", Kind: githubtest.FaultErrorBefore, Status: http.StatusGone})
	ts.alerts("g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
	if x := ts.done(production.AnswerIssue); x.State != production.ActRefused || !strings.Contains(x.Why, "410") {
		t.Errorf("%+v", x)
	}
	ts.says("No issue was made: list issues labelled incident: GitHub answered 410")
	again(ts)
	n := 0
	for _, c := range ts.gh.Calls() {
		if c.Operation == "issues/list-for-repo" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("issues were asked for %d times", n)
	}

	o := testOptions{deployments: true}
	o.files = map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production:\n  issue: true\n  revert: true\n  ask: true\n"}
	o.wire = func(w *Options) {
		w.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 10_000}}
	}
	ts = newTestServer(t, o)
	id, err := ts.gh.As("acme").Deploy(greetRepo, "production", "main")
	ts.must(err)
	ts.must(ts.gh.As("acme").DeploymentStatus(greetRepo, id, "success", "it runs"))
	ts.deployed(1)
	ts.alerts("g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
	if x := ts.done(production.AnswerRevert); x.State != production.ActRefused || !strings.Contains(x.Why, "is the first commit") {
		t.Errorf("%+v", x)
	}
	ts.done(production.AnswerAsk)
	again(ts)
	if i := ts.incident(1, func(*production.Incident) bool { return true }); len(i.Acts) != 3 || i.Act(production.AnswerRevert).Tries != 0 {
		t.Errorf("%+v", i.Acts)
	}
}

// Without settings an incident changes nothing but what people of Forge's own pull
// request are told, and asks for no permission; with them and without the permission,
// people are told what is missing.
func TestAnswersAreOff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, want string }{{"", ""}, {"production:\n  roll_back: true\n  ask: true\n", "deployments: write"}} {
		ts, _, _, _ := answering(t, testOptions{deployments: true}, tt.settings)
		made := ts.gh.Mutations()
		ts.alerts("g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
		ts.says("this pull request is most likely what it comes from")
		if tt.want != "" {
			if x := ts.done(production.AnswerRollBack); x.State != production.ActRefused || !strings.Contains(x.Why, tt.want) {
				t.Errorf("%+v", x)
			}
			ts.says("No roll-back was made")
			continue
		}
		ts.must(ts.s.incidents.Act(t.Context()))
		now := ts.gh.Mutations()
		maps.DeleteFunc(now, func(op string, n int) bool {
			return n == made[op] || op == "apps/create-installation-access-token" // to look up what was deployed
		})
		if len(now) != 1 || now["issues/create-comment"] != made["issues/create-comment"]+1 {
			t.Errorf("without settings: %v", now)
		}
		if i := ts.incident(1, func(*production.Incident) bool { return true }); len(i.Acts) != 0 {
			t.Errorf("%+v", i.Acts)
		}
	}
}
