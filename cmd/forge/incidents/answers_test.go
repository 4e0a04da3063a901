package incidents_test

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

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
)

// answering is a server with a hook and what a repository lets happen about incidents,
// whose verified work was merged and deployed, over something that was deployed before.
// It returns the pull request and the two deployed commits.
func answering(t *testing.T, o servertest.Options, production string) (ts *servertest.Server, pull int, before, after githubtest.Deployed) {
	t.Helper()
	o.Files = maps.Clone(o.Files)
	if o.Files == nil {
		o.Files = map[string]string{}
	}
	o.Files[".github/forge.yml"] = servertest.Greeter()[".github/forge.yml"] + production
	also := o.Wire
	o.Wire = func(w *server.Options) {
		if also != nil {
			also(w)
		}
		w.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 10_000}}
	}
	ts = servertest.New(t, o)
	acme := ts.GitHub.As("acme")
	deploy := func() {
		id, err := acme.Deploy(servertest.Repo, "production", "main")
		ts.Must(err)
		ts.Must(acme.DeploymentStatus(servertest.Repo, id, "success", "it runs"))
	}
	deploy()
	ts.Deployed(1)
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	pull = run.Published.Pull.Number
	ts.Must(acme.Merge(servertest.Repo, pull))
	deploy()
	ts.Deployed(2)
	list := ts.GitHub.Deployments(servertest.Repo)
	return ts, pull, list[0], list[1]
}

// alerts says by the hook that greetings fail in the line that the run changed.
func alerts(ts *servertest.Server, group, status, title, text string, at time.Time) {
	ts.T.Helper()
	body := fmt.Sprintf(`{"version":"4","groupKey":%q,"alerts":[{"status":%q,"labels":{"alertname":"Errors","severity":"critical","forge_kind":"error"},
		"annotations":{"summary":%q,"description":%q,"stack":"Error: boom\n    at greet (/srv/greet.sh:1:2)"},"startsAt":%q}]}`, group, status, title, text, at.UTC().Format(time.RFC3339Nano))
	if code, words := ts.Hook("prom", promToken, body); code != http.StatusAccepted {
		ts.T.Fatalf("%d %s", code, words)
	}
}

// done waits until an answer to an incident was carried out, or refused.
func done(ts *servertest.Server, a production.Answer) production.Act {
	ts.T.Helper()
	i := ts.Incident(1, func(i *production.Incident) bool { return i.Act(a) != nil && i.Act(a).State != production.ActBegun })
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
	ts, pull, before, after := answering(t, servertest.Options{Deploys: true, Now: now}, "production:\n  ask: true\n  issue: true\n  roll_back: true\n")
	alerts(ts, "g", "firing", "Greetings fail @everyone", "all of them, closes #1", time.Now().Add(time.Second))
	back := done(ts, production.AnswerRollBack)
	list := ts.GitHub.Deployments(servertest.Repo)
	if len(list) != 3 || back.State != production.ActDone || back.Number != list[2].ID || list[2].SHA != before.SHA || list[2].Task != "rollback" || list[2].Creator != "forge[bot]" || before.SHA == after.SHA {
		t.Fatalf("rolled back: %+v by %+v", list, back)
	}
	done(ts, production.AnswerAsk)
	number := int(done(ts, production.AnswerIssue).Number)
	issue, err := ts.GitHub.Issue(servertest.Repo, number)
	ts.Must(err)
	if issue.Author != "forge[bot]" || !slices.Contains(issue.Labels, "incident") || !strings.Contains(issue.Body, "> all of them") || strings.Contains(issue.Title+issue.Body, "@everyone") || strings.Contains(issue.Body, "closes #1") {
		t.Errorf("issue %+v", issue)
	}
	say := func(who, words string) {
		t.Helper()
		_, err := ts.GitHub.As(who).Comment(servertest.Repo, issue.Number, words)
		ts.Must(err)
	}
	talk := func() string {
		i, err := ts.GitHub.Issue(servertest.Repo, issue.Number)
		ts.Must(err)
		var all strings.Builder
		for _, c := range i.Comments {
			fmt.Fprintf(&all, "%s: %s\n", c.Author, c.Body)
		}
		return all.String()
	}
	say("stranger", "/forge incident 1 revert")
	ts.Outcome("issue_comment", "stranger may not command Forge")
	if asked := talk(); !strings.Contains(asked, "- `/forge incident 1 rollback` — deploy what ran before again — not now: it was done before") || !strings.Contains(asked, "\n- `/forge incident 1 dismiss WHY`") {
		t.Errorf("asked %s", asked)
	}
	ts.Must(ts.GitHub.Wait(t.Context(), func() bool { return strings.Contains(talk(), "[ ] `/forge incident 1 revert`") }))
	issue, err = ts.GitHub.Issue(servertest.Repo, number)
	ts.Must(err)
	comment, nth := ts.BoxIn(issue.Comments, "incident 1 revert")
	ts.Must(ts.GitHub.As("acme").TickBox(servertest.Repo, comment, nth))
	revert := done(ts, production.AnswerRevert)
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	n := slices.IndexFunc(pulls, func(p githubtest.Pull) bool { return int64(p.Number) == revert.Number })
	if n < 0 || !pulls[n].Draft || pulls[n].Branch != fmt.Sprintf("forge/revert-%d-incident-1", pull) || !strings.HasPrefix(pulls[n].Title, "Revert ") || len(pulls) != 2 {
		t.Fatalf("reverted by %+v: %+v", revert, pulls)
	}
	if text, err := ts.GitHub.File(servertest.Repo, pulls[n].Head, "greet.sh"); err != nil || text != servertest.Greeter()["greet.sh"] {
		t.Errorf("the revert has %q, %v", text, err)
	}
	say("acme", "/forge incident 1 rollback")
	ts.Outcome("issue_comment", "there is no roll-back now: it was done before")
	say("acme", "/forge incident 1 run")
	if run := done(ts, production.AnswerRun); run.State != production.ActDone || run.By != "acme" {
		t.Errorf("%+v", run)
	} else if r, err := ts.Forge.DB.Load(t.Context(), run.Number); err != nil || r.Task.Issue != issue.Number ||
		r.Branch != fmt.Sprintf("forge/issue-%d-incident-1", issue.Number) {
		t.Errorf("run %+v, %v", r, err)
	}
	ts.Must(ts.GitHub.As("acme").DeploymentStatus(servertest.Repo, list[2].ID, "success", "as before"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ts.GitHub.Wait(ctx, func() bool { return strings.Contains(talk(), "the roll-back is deployed: success") }); err != nil {
		t.Errorf("nobody says that the roll-back is deployed:\n%s", talk())
	}
	escaped := func(list []pipeline.Learning) bool {
		return slices.ContainsFunc(list, func(l pipeline.Learning) bool {
			return l.Source == pipeline.SourceGap && l.State == pipeline.LearningActive && strings.Contains(l.Content, fmt.Sprintf("A defect in greet.sh reached production with pull request #%d", pull))
		})
	}
	alerts(ts, "g", "resolved", "Greetings fail", "", time.Now())
	ts.Outcome("hook/prom", "over, as it seems")
	later.Store(int64(11 * time.Minute))
	ts.Must(ts.Forge.Incidents.Tick(t.Context()))
	ts.Forge.Incidents.Wake()
	ts.Learnings("what escaped", escaped)
	later.Add(int64(time.Minute))
	say("acme", "/forge incident 1 dismiss the monitor was wrong")
	ts.Learnings("that is taken back", func(list []pipeline.Learning) bool { return !escaped(list) })
	if made := ts.GitHub.Mutations(); made["issues/create"] != 1 || made["repos/create-deployment"] != 1 || made["pulls/create"] != 2 {
		t.Errorf("made %v", made)
	}
}

// What GitHub or git refuses for good is tried once, however many alerts come in, and
// the next answer comes: issues are switched off in the repository, and the first commit
// has nothing before it.
func TestAnswersThatCannotBe(t *testing.T) {
	t.Parallel()
	again := func(ts *servertest.Server) {
		ts.T.Helper()
		for n := range 5 {
			alerts(ts, fmt.Sprint("again", n), "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
			ts.Incident(1, func(i *production.Incident) bool { return len(i.Joined) == n+1 })
		}
	}
	ts, _, _, _ := answering(t, servertest.Options{Deployments: true}, "production:\n  issue: true\n  ask: true\n")
	ts.GitHub.AddFault(githubtest.Fault{Operation: "issues/list-for-repo", Kind: githubtest.FaultErrorBefore, Status: http.StatusGone})
	alerts(ts, "g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
	if x := done(ts, production.AnswerIssue); x.State != production.ActRefused || !strings.Contains(x.Why, "410") {
		t.Errorf("%+v", x)
	}
	ts.Says("No issue was made: list issues labelled incident: GitHub answered 410")
	again(ts)
	n := 0
	for _, c := range ts.GitHub.Calls() {
		if c.Operation == "issues/list-for-repo" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("issues were asked for %d times", n)
	}

	o := servertest.Options{Deployments: true}
	o.Files = map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production:\n  issue: true\n  revert: true\n  ask: true\n"}
	o.Wire = func(w *server.Options) {
		w.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 10_000}}
	}
	ts = servertest.New(t, o)
	id, err := ts.GitHub.As("acme").Deploy(servertest.Repo, "production", "main")
	ts.Must(err)
	ts.Must(ts.GitHub.As("acme").DeploymentStatus(servertest.Repo, id, "success", "it runs"))
	ts.Deployed(1)
	alerts(ts, "g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
	if x := done(ts, production.AnswerRevert); x.State != production.ActRefused || !strings.Contains(x.Why, "is the first commit") {
		t.Errorf("%+v", x)
	}
	done(ts, production.AnswerAsk)
	again(ts)
	if i := ts.Incident(1, func(*production.Incident) bool { return true }); len(i.Acts) != 3 || i.Act(production.AnswerRevert).Tries != 0 {
		t.Errorf("%+v", i.Acts)
	}
}

// Without settings an incident changes nothing but what people of Forge's own pull
// request are told, and asks for no permission; with them and without the permission,
// people are told what is missing.
func TestAnswersAreOff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, want string }{{"", ""}, {"production:\n  roll_back: true\n  ask: true\n", "deployments: write"}} {
		ts, _, _, _ := answering(t, servertest.Options{Deployments: true}, tt.settings)
		made := ts.GitHub.Mutations()
		alerts(ts, "g", "firing", "Greetings fail", "all of them", time.Now().Add(time.Second))
		ts.Says("this pull request is most likely what it comes from")
		if tt.want != "" {
			if x := done(ts, production.AnswerRollBack); x.State != production.ActRefused || !strings.Contains(x.Why, tt.want) {
				t.Errorf("%+v", x)
			}
			ts.Says("No roll-back was made")
			continue
		}
		ts.Must(ts.Forge.Incidents.Act(t.Context()))
		now := ts.GitHub.Mutations()
		maps.DeleteFunc(now, func(op string, n int) bool {
			return n == made[op] || op == "apps/create-installation-access-token" // to look up what was deployed
		})
		if len(now) != 1 || now["issues/create-comment"] != made["issues/create-comment"]+1 {
			t.Errorf("without settings: %v", now)
		}
		if i := ts.Incident(1, func(*production.Incident) bool { return true }); len(i.Acts) != 0 {
			t.Errorf("%+v", i.Acts)
		}
		ts.Comment("acme", "/forge incident 1 issue") // a person may choose it all the same
		if x := done(ts, production.AnswerIssue); x.State != production.ActDone || x.By != "acme" {
			t.Errorf("%+v", x)
		}
	}
}

// People often take back by a revert, too: by GitHub's button, or by hand with more beside it.
// Nothing deploys again what they took back.
func TestPeopleReverted(t *testing.T) {
	t.Parallel()
	more, other := "more\n", "other\n"
	for _, tt := range []struct {
		name, message string
		files         map[string]*string
		branch        string // cut before the bad commit
		why           string // in what stands against it, or what it takes back
	}{
		{"by its files alone", "Say it as before", map[string]*string{"more.txt": nil}, "main", "it brought back what ran there before, as "},
		{"with more beside it", "Revert \"Say more\"", map[string]*string{"more.txt": nil, "other.txt": &other}, "main", "it takes back “Say more” and does nothing else"},
		{"with a commit that changes no file", "Say it again", map[string]*string{"more.txt": &more}, "main", "it brought nothing that did not run there before"},
		{"by a hotfix of a release branch", "Fix it", map[string]*string{"other.txt": &other}, "release", "what ran there as "},
	} {
		ts := servertest.New(t, servertest.Options{Deploys: true,
			Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production: {ask: true, issue: true, roll_back: true, revert: true}\n"},
			Wire: func(o *server.Options) {
				o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: servertest.Repo, PerMinute: 10_000}}
			}})
		acme := ts.GitHub.As("acme")
		good, err := ts.GitHub.Head(servertest.Repo, "main")
		ts.Must(err)
		_, err = acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "release", Message: "Cut it", Files: map[string]*string{"version.txt": &other}})
		ts.Must(err)
		bad, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
		ts.Must(err)
		back, err := acme.PushFiles(servertest.Repo, githubtest.Push{Branch: tt.branch, Message: tt.message, Files: tt.files})
		ts.Must(err)
		last := int64(0)
		for n, sha := range []string{good, bad, back} {
			last, err = acme.Deploy(servertest.Repo, "production", sha)
			ts.Must(err)
			ts.Must(acme.DeploymentStatus(servertest.Repo, last, "success", ""))
			ts.Deployed(n + 1)
		}
		body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","deployment_id":"%d"},
			"annotations":{"metric":"m","baseline":"0","value":"9"},"startsAt":%q}]}`, last, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		if code, words := ts.Hook("prom", promToken, body); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, words)
		}
		i := ts.Incident(1, func(i *production.Incident) bool {
			return i.Act(production.AnswerAsk) != nil && i.Act(production.AnswerAsk).State == production.ActDone
		})
		if i.Act(production.AnswerRollBack) != nil || i.Act(production.AnswerRevert) != nil || len(ts.GitHub.Deployments(servertest.Repo)) != 3 ||
			!strings.Contains(i.Suspects[0].Against+i.Suspects[0].Undoes, tt.why) || tt.branch == "main" && i.Suspects[0].Score >= production.Attributed {
			t.Errorf("%s: answered by %+v, suspects %+v", tt.name, i.Acts, i.Suspects)
		}
	}
}
