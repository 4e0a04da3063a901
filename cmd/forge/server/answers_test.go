package server

import (
	"context"
	"errors"
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
	number := int(ts.done(production.AnswerIssue).Number)
	issue, err := ts.gh.Issue(greetRepo, number)
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
	if asked := talk(); !strings.Contains(asked, "- `/forge incident 1 rollback` — deploy what ran before again — not now: it was done before") || !strings.Contains(asked, "\n- `/forge incident 1 dismiss WHY`") {
		t.Errorf("asked %s", asked)
	}
	ts.must(ts.gh.Wait(t.Context(), func() bool { return strings.Contains(talk(), "[ ] `/forge incident 1 revert`") }))
	issue, err = ts.gh.Issue(greetRepo, number)
	ts.must(err)
	comment, nth := ts.boxIn(issue.Comments, "incident 1 revert")
	ts.must(ts.gh.As("acme").TickBox(greetRepo, comment, nth))
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
		ts.comment("acme", "/forge incident 1 issue") // a person may choose it all the same
		if x := ts.done(production.AnswerIssue); x.State != production.ActDone || x.By != "acme" {
			t.Errorf("%+v", x)
		}
	}
}

// Work that was merged by rebasing has no pull request in its title: the run is found by
// what its commits say. What ran before may be gone from GitHub, or not be of the branch.
func TestDeployedCode(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	base, err := ts.gh.Head(greetRepo, "main")
	ts.must(err)
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	text, err := ts.gh.File(greetRepo, run.Head, "greet.sh")
	ts.must(err)
	merged, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "main", Message: "Put a comma\n\nForge-Run: " + run.Trace + "/1", Files: map[string]*string{"greet.sh": &text}})
	ts.must(err)
	code := deployedCode{ts.s.github.app, ts.s.Gateway, ts.s.DB}
	for name, previous := range map[string]string{"the commit before": base, "nothing": "", "a commit that is gone": strings.Repeat("7", 40), "the head of the branch": run.Head} {
		facts, err := code.Facts(t.Context(), greetRepo, []production.Deployment{{ID: 1, Commit: merged, Previous: previous}}, nil)
		if err != nil || len(facts) != 1 || len(facts[0].Commits) == 0 {
			t.Errorf("after %s: %+v, %v", name, facts, err)
			continue
		}
		if c := facts[0].Commits[0]; c.Run != run.ID || c.Pull != run.Published.Pull.Number || c.Issue != run.Task.Issue || !slices.Contains(c.Files, "greet.sh") {
			t.Errorf("after %s: %+v; want run %d", name, c, run.ID)
		}
	}
	other, err := code.madeBy(t.Context(), run.Repo, "x\n\nForge-Run: ffff/1\n")
	if other != nil || err != nil {
		t.Errorf("of another: %+v, %v", other, err)
	}
}

// People often roll back by an ordinary deployment of what ran before. An alert that comes
// late, after it, is not answered by deploying what they took back.
func TestPeopleRolledBack(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{deploys: true,
		files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production: {ask: true, issue: true, roll_back: true, revert: true}\n"},
		wire: func(o *Options) {
			o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 10_000}}
		}})
	acme := ts.gh.As("acme")
	good, err := ts.gh.Head(greetRepo, "main")
	ts.must(err)
	more := "more\n"
	bad, err := acme.PushFiles(greetRepo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
	ts.must(err)
	last := int64(0)
	for n, sha := range []string{bad, good} { // the good one never ran there by itself
		id, err := acme.Deploy(greetRepo, "production", sha)
		ts.must(err)
		ts.must(acme.DeploymentStatus(greetRepo, id, "success", ""))
		ts.deployed(n + 1)
		last = id
	}
	body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","deployment_id":"%d"},
		"annotations":{"metric":"m","baseline":"0","value":"9"},"startsAt":%q}]}`, last, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
	if code, words := hookTo(t, ts, "prom", promToken, body); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, words)
	}
	i := ts.incident(1, func(i *production.Incident) bool {
		return i.Act(production.AnswerAsk) != nil && i.Act(production.AnswerAsk).State == production.ActDone
	})
	if i.Act(production.AnswerRollBack) != nil || i.Act(production.AnswerRevert) != nil || len(ts.gh.Deployments(greetRepo)) != 2 {
		t.Errorf("answered by %+v, suspects %+v", i.Acts, i.Suspects)
	}
	h := incidentActions{deployedCode{ts.s.github.app, ts.s.Gateway, ts.s.DB}, ts.s.App}
	if files, err := h.Changed(t.Context(), greetRepo, good, bad); err != nil || !slices.Equal(files, []string{"more.txt"}) {
		t.Errorf("back from the bad one: %q, %v", files, err)
	}
	gone, err := acme.PushFiles(greetRepo, githubtest.Push{Branch: "main", Message: "Say it otherwise", Files: map[string]*string{"more.txt": nil, "other.txt": &more}})
	ts.must(err)
	if files, err := h.Changed(t.Context(), greetRepo, good, bad, gone); err != nil || !slices.Equal(files, []string{"more.txt", "other.txt"}) {
		t.Errorf("what is gone by now ran there: %q, %v", files, err)
	}
	var fault *pipeline.Fault
	if files, err := h.Changed(t.Context(), greetRepo, bad, good); !errors.As(err, &fault) || !fault.Final {
		t.Errorf("forward to the bad one: %q, %v", files, err)
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
		ts := newTestServer(t, testOptions{deploys: true,
			files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "production: {ask: true, issue: true, roll_back: true, revert: true}\n"},
			wire: func(o *Options) {
				o.Config.Hooks = []settings.Hook{{Name: "prom", Kind: "alertmanager", Secret: settings.NewSecret(promToken), Repo: greetRepo, PerMinute: 10_000}}
			}})
		acme := ts.gh.As("acme")
		good, err := ts.gh.Head(greetRepo, "main")
		ts.must(err)
		_, err = acme.PushFiles(greetRepo, githubtest.Push{Branch: "release", Message: "Cut it", Files: map[string]*string{"version.txt": &other}})
		ts.must(err)
		bad, err := acme.PushFiles(greetRepo, githubtest.Push{Branch: "main", Message: "Say more", Files: map[string]*string{"more.txt": &more}})
		ts.must(err)
		back, err := acme.PushFiles(greetRepo, githubtest.Push{Branch: tt.branch, Message: tt.message, Files: tt.files})
		ts.must(err)
		last := int64(0)
		for n, sha := range []string{good, bad, back} {
			last, err = acme.Deploy(greetRepo, "production", sha)
			ts.must(err)
			ts.must(acme.DeploymentStatus(greetRepo, last, "success", ""))
			ts.deployed(n + 1)
		}
		body := fmt.Sprintf(`{"version":"4","groupKey":"g","alerts":[{"status":"firing","labels":{"alertname":"Errors","severity":"critical","deployment_id":"%d"},
			"annotations":{"metric":"m","baseline":"0","value":"9"},"startsAt":%q}]}`, last, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		if code, words := hookTo(t, ts, "prom", promToken, body); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, words)
		}
		i := ts.incident(1, func(i *production.Incident) bool {
			return i.Act(production.AnswerAsk) != nil && i.Act(production.AnswerAsk).State == production.ActDone
		})
		if i.Act(production.AnswerRollBack) != nil || i.Act(production.AnswerRevert) != nil || len(ts.gh.Deployments(greetRepo)) != 3 ||
			!strings.Contains(i.Suspects[0].Against+i.Suspects[0].Undoes, tt.why) || tt.branch == "main" && i.Suspects[0].Score >= production.Attributed {
			t.Errorf("%s: answered by %+v, suspects %+v", tt.name, i.Acts, i.Suspects)
		}
	}
}

func TestRevertOf(t *testing.T) {
	for message, want := range map[string]string{
		"Revert \"Change A\" (#2)":                                                              "“Change A”",
		"Revert \"Revert \"Change A\"\" (#3)":                                                   "",
		"Revert \"Revert \"Revert \"A\"\"\"":                                                    "“A”",
		"Reapply \"Change A\"\n\nThis reverts commit 0123456789.":                               "",
		"Merge pull request #2 from acme/revert-1-feat\n\nRevert \"Change A\"":                  "“Change A”",
		"Merge pull request #2 from acme/revert-1-feat":                                         "Merge pull request #2 from acme/revert-1-feat",
		"Merge pull request #2 from acme/feat\n\nChange A":                                      "",
		"Take it back\n\nThis reverts commit 0123456789abcdef0123456789abcdef01234567.":         "by “Take it back”",
		"Change A\n\nIt would be wrong to say that this reverts commit 0123456789 of long ago.": "",
		"Revert to the older library":                                                           "",
		"":                                                                                      "",
	} {
		if got := revertOf(message); got != want {
			t.Errorf("revertOf(%q) = %q, want %q", message, got, want)
		}
	}
}
