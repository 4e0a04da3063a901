package incidents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/rollout"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// fakeHands is a GitHub: what has a key is there once. It can be told to die before or
// after something, as a server does.
type fakeActions struct {
	settings config.Production
	files    []string // that a roll-back changes
	fails    error    // of all that has an effect

	issues, runs, reverts, asked, taught, comments, rollouts map[string]string // by repository and key
	deployed                                                 map[string][]fakeDeployment
	reads                                                    int
	at                                                       func(point string) error // dies there
}

type fakeDeployment struct {
	id  int64
	key string // "": a human's
	sha string
}

func newFakeActions(p config.Production) *fakeActions {
	m := func() map[string]string { return map[string]string{} }
	return &fakeActions{settings: p, issues: m(), runs: m(), reverts: m(), asked: m(), taught: m(), comments: m(), rollouts: m(), deployed: map[string][]fakeDeployment{}, at: func(string) error { return nil }}
}

func (h *fakeActions) Settings(context.Context, string) (config.Production, error) {
	h.reads++
	return h.settings, nil
}

func (h *fakeActions) Changed(context.Context, string, ...string) ([]string, error) {
	return h.files, h.at("changed")
}

// once has an effect, or finds it.
func (h *fakeActions) once(in map[string]string, repo, key, what string) (Created, error) {
	if err := errors.Join(h.fails, h.at("before "+key)); err != nil {
		return Created{}, err
	}
	if in[repo+" "+key] == "" {
		in[repo+" "+key] = what
	}
	return Created{Number: int64(100 + len(in))}, h.at("after " + key)
}

func (h *fakeActions) OpenIssue(_ context.Context, repo, title, body, key string) (Created, error) {
	return h.once(h.issues, repo, key, title+"\n"+body)
}

func (h *fakeActions) StartRun(_ context.Context, repo string, issue int, key, by string) (Created, error) {
	return h.once(h.runs, repo, key, fmt.Sprint(issue, by))
}

func (h *fakeActions) Revert(_ context.Context, repo string, r Revert) (Created, error) {
	return h.once(h.reverts, repo, fmt.Sprint("revert/", r.Incident), fmt.Sprint(r.Pull))
}

func (h *fakeActions) Teach(_ context.Context, i *production.Incident, l production.Lesson) error {
	_, err := h.once(h.taught, i.Repo, fmt.Sprint("taught/", i.ID, "/", l), string(l))
	return err
}

func (h *fakeActions) Released(_ context.Context, run int64, r rollout.Status) error {
	_, err := h.once(h.rollouts, "", fmt.Sprintf("%d/%d/%s/%s", run, r.Deployment, r.State, r.Changed.Format(time.TimeOnly)), r.String())
	return err
}

func (h *fakeActions) RollBack(_ context.Context, repo string, r Rollback) (Created, error) {
	if err := errors.Join(h.fails, h.at("before rollback")); err != nil {
		return Created{}, err
	}
	list := h.deployed[repo]
	for _, d := range list {
		if d.key == r.Key {
			return Created{Number: d.id}, h.at("after rollback")
		}
	}
	if r.After < 0 || list[len(list)-1].id != r.After {
		return Created{}, &pipeline.Fault{Class: pipeline.FaultGitHub, Final: true, Message: "another deployment was made in the meantime"}
	}
	id := list[len(list)-1].id + 1
	h.deployed[repo] = append(list, fakeDeployment{id, r.Key, r.Commit})
	return Created{Number: id}, h.at("after rollback")
}

func (h *fakeActions) Tell(_ context.Context, repo string, number int, words, key string) error {
	_, err := h.once(h.comments, repo, fmt.Sprint(key, " #", number), words)
	return err
}

func (h *fakeActions) Ask(_ context.Context, repo string, number int, q command.Question, key string) error {
	_, err := h.once(h.asked, repo, fmt.Sprint(key, " #", number), q.String())
	return err
}

// Facts implements Code: each deployment brought one commit, of a pull request with its
// number and 40.
func (h *fakeActions) Facts(_ context.Context, _ string, list []production.Deployment, _ []production.Frame) (out []production.Facts, err error) {
	for _, d := range list {
		c := production.Commit{ID: d.Commit, Files: []string{"a.go"}, Pull: int(40 + d.ID), Run: d.ID, Issue: int(10 + d.ID)}
		out = append(out, production.Facts{Deployment: d, Commits: []production.Commit{c}})
	}
	return out, nil
}

// goesBad has two deployments of a repository, and then something critical after the
// second.
func (b *bench) goesBad(h *fakeActions, repo string) {
	b.t.Helper()
	for n, minutes := range []int{300, 3} {
		at := b.now.Add(-time.Duration(minutes) * time.Minute)
		b.send("deployment_status", strings.ReplaceAll(deployment(int64(n+1), "success", fmt.Sprint(n+1), at), "acme/shop", repo))
		h.deployed[repo] = append(h.deployed[repo], fakeDeployment{id: int64(n + 1)})
	}
	b.observe(repo, "errors", production.StatusFiring)
}

func (b *bench) observe(repo, group string, status production.Status, change ...func(*production.Observation)) {
	b.t.Helper()
	low, high := 0.004, 0.07
	o := production.Observation{Kind: production.KindAnomaly, Source: "test", Repo: repo, Environment: "production", Group: group, Severity: production.SeverityCritical, Status: status,
		At: b.now, Title: "Errors are high", Text: "Too many of them.", Anomaly: &production.Anomaly{Metric: "error_rate", Baseline: &low, Current: &high}}
	for _, c := range change {
		c(&o)
	}
	body, err := json.Marshal(o)
	b.must(err)
	b.send("check/test", string(body))
}

// restart is the same server after a restart: what is in the database is all that it
// knows.
func (b *bench) restart(h *fakeActions) {
	b.Service = New(Options{DB: b.DB, Hooks: b.Hooks, Log: b.Log, Now: func() time.Time { return b.now }, Code: h, Teller: h, Actions: h})
	b.changed.Store(true)
}

func (b *bench) live(h *fakeActions) {
	b.t.Helper()
	b.restart(h)
	b.must(b.Follow(b.t.Context()))
	b.must(b.Act(b.t.Context()))
	b.must(b.Follow(b.t.Context()))
}

func acts(i *production.Incident) string {
	var out []string
	for _, a := range i.Acts {
		out = append(out, fmt.Sprintf("%s %s", a.Answer, a.State))
	}
	return strings.Join(out, ", ")
}

// What the settings let happen is done, once, and people are told; without them nothing
// is.
func TestAnswersBySettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                 string
		settings             config.Production
		want                 string
		issues, runs, drafts int
		deployments, asked   int
	}{
		{"none", config.Production{}, "", 0, 0, 0, 2, 0},
		{"another environment", config.Production{Environments: []string{"staging"}, Issue: true, RollBack: true, Ask: true}, "", 0, 0, 0, 2, 0},
		{"tell", config.Production{Tell: true}, "", 0, 0, 0, 2, 0},
		{"ask", config.Production{Ask: true}, "ask done", 0, 0, 0, 2, 1},
		{"issue and run", config.Production{Issue: true, Run: true}, "issue done, run done", 1, 1, 0, 2, 0},
		{"revert", config.Production{Revert: true}, "revert done", 0, 0, 1, 2, 0},
		{"roll back", config.Production{RollBack: true}, "rollback done", 0, 0, 0, 3, 0},
		{"all", config.Production{Ask: true, Issue: true, Run: true, Revert: true, RollBack: true}, "issue done, rollback done, revert done, run done, ask done", 1, 1, 1, 3, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, h := newBench(t), newFakeActions(tt.settings)
			b.goesBad(h, "acme/shop")
			for range 3 {
				b.live(h)
				b.now = b.now.Add(time.Minute)
			}
			if got := acts(b.incident(1)); got != tt.want {
				t.Errorf("acts %q, want %q", got, tt.want)
			}
			if len(h.issues) != tt.issues || len(h.runs) != tt.runs || len(h.reverts) != tt.drafts || len(h.asked) != tt.asked || len(h.deployed["acme/shop"]) != tt.deployments {
				t.Errorf("made %d issues, %d runs, %d reverts, %d questions, %v", len(h.issues), len(h.runs), len(h.reverts), len(h.asked), h.deployed)
			}
			log, err := Log(t.Context(), b.DB, 1)
			b.must(err)
			again := &production.Incident{ID: 1}
			for _, e := range log {
				again.Apply(e)
			}
			if got := acts(again); got != tt.want {
				t.Errorf("the log folds to %q", got)
			}
		})
	}
}

// What the source names and Forge does not know bars all that is done by itself: people
// are asked, with the reason. Once it is known, by GitHub or by the source, the incident
// is correlated again.
func TestSourceNamesWhatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	names := func(o *production.Observation) { o.Deployment = 3 }
	for _, later := range []bool{false, true} { // the alert overtakes the deployment's webhook, or names it in the end
		b, h := newBench(t), newFakeActions(config.Production{RollBack: true, Ask: true})
		at := b.now.Add(-3 * time.Minute)
		b.send("deployment_status", deployment(1, "success", "1", b.now.Add(-5*time.Hour)), deployment(2, "success", "2", at))
		h.deployed["acme/shop"] = []fakeDeployment{{id: 1}, {id: 2}, {id: 3}}
		third := deployment(3, "success", "3", at.Add(2*time.Minute))
		if later {
			h.settings = config.Production{}
			b.observe("acme/shop", "errors", production.StatusFiring)
			b.send("deployment_status", third)
			b.live(h)
			b.restart(h)
			b.observe("acme/shop", "errors", production.StatusFiring, names)
		} else {
			b.observe("acme/shop", "errors", production.StatusFiring, names)
			b.live(h)
			if i := b.incident(1); acts(i) != "ask done" || i.Suspects[0].Deployment != 2 ||
				!strings.Contains(h.asked["acme/shop incident/1/ask #42"], "the source names deployment 3, which is not known") {
				t.Errorf("%s, %+v, %q", acts(i), i.Suspects, h.asked)
			}
			b.send("deployment_status", third)
		}
		h.settings = config.Production{RollBack: true, Ask: true}
		b.live(h)
		i := b.incident(1)
		if back := i.Act(production.AnswerRollBack); i.Suspects[0].Deployment != 3 || i.Suspects[0].Against != "" || back == nil || back.Aim.Deployment != 3 {
			t.Errorf("later %t: %s, %+v", later, acts(i), i.Suspects)
		}
		log, err := Log(t.Context(), b.DB, 1)
		b.must(err)
		again, n := &production.Incident{ID: 1}, 0
		for _, e := range log {
			again.Apply(e)
			if e.Type == production.EventCorrelated {
				n++
			}
		}
		if diff := cmp.Diff(b.incident(1), again, cmpopts.IgnoreUnexported(production.Suspect{})); diff != "" || n != 2 {
			t.Errorf("%d correlations; the log folds to something else:\n%s", n, diff)
		}
	}
}

// What was done by itself is told at the pull request and at the issue of the run that it
// came from, though nothing else is switched on.
func TestPeopleAreToldOfRollBacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings config.Production
		want     string
	}{
		{config.Production{RollBack: true}, "Incident 1: deployment 3 of 1111111111, which ran in production before, was asked for."},
		{config.Production{Revert: true}, "Incident 1: #101 takes back what it may come from."},
	} {
		b, h := newBench(t), newFakeActions(tt.settings)
		b.goesBad(h, "acme/shop")
		for range 3 {
			b.live(h)
		}
		at := map[string]int{}
		for key, words := range h.comments {
			if strings.HasPrefix(words, tt.want) {
				at[key[strings.LastIndex(key, "#"):]]++
			}
		}
		if len(at) != 2 || at["#42"] != 1 || at["#12"] != 1 {
			t.Errorf("told at %v: %q", at, h.comments)
		}
	}
}

// While work is paused nothing is done and nobody is told; then both, once.
func TestPausedIncidents(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{Tell: true, Ask: true, Issue: true, Run: true})
	pause := func(repo string, paused bool) {
		t.Helper()
		b.must(b.DB.SetPaused(t.Context(), store.Pause{At: b.now, Actor: "mia", Repo: repo, Paused: paused}))
	}
	for n, tt := range []struct {
		repo   string // that is paused
		traced bool   // what it comes from is known before that
		holds  bool
	}{{"acme/shop0", false, true}, {"acme/other", false, false}, {"acme/shop2", true, true}} {
		repo := fmt.Sprintf("acme/shop%d", n)
		b.goesBad(h, repo)
		if tt.traced {
			b.restart(h)
			b.must(b.Follow(t.Context()))
		}
		pause(tt.repo, true)
		before := len(h.issues) + len(h.runs) + len(h.asked) + len(h.comments)
		for range 3 {
			b.live(h)
			b.now = b.now.Add(time.Minute)
		}
		if made := len(h.issues) + len(h.runs) + len(h.asked) + len(h.comments) - before; made == 0 != tt.holds {
			t.Errorf("with a pause of %q, %d things were made for %s", tt.repo, made, repo)
		}
		pause(tt.repo, false)
		for range 3 {
			b.live(h)
		}
		if got := acts(b.incident(int64(n + 1))); got != "issue done, run done, ask done" {
			t.Errorf("after a pause of %q: %s", tt.repo, got)
		}
	}
	if len(h.issues) != 3 || len(h.runs) != 3 || len(h.asked) != 3 {
		t.Errorf("made %d issues, %d runs, %d questions", len(h.issues), len(h.runs), len(h.asked))
	}
}

// A migration in the way, or anything that GitHub refuses, becomes a question, and is
// not tried again by itself.
func TestRefusedRollBackAsks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeActions){
		"a migration": func(h *fakeActions) { h.files = []string{"db/migrations/7.sql"} },
		"no permission": func(h *fakeActions) {
			h.at = func(point string) error {
				if point == "before rollback" {
					return &pipeline.Fault{Class: pipeline.FaultGitHub, Final: true, Message: "the App needs deployments: write"}
				}
				return nil
			}
		},
	} {
		b, h := newBench(t), newFakeActions(config.Production{RollBack: true, Ask: true})
		change(h)
		b.goesBad(h, "acme/shop")
		for range 3 {
			b.live(h)
		}
		i := b.incident(1)
		question := h.asked["acme/shop incident/1/ask #42"]
		if acts(i) != "rollback refused, ask done" || len(h.deployed["acme/shop"]) != 2 || len(h.asked) != 1 || !strings.Contains(question, "No roll-back was made") {
			t.Errorf("%s: %s, %v, %q", name, acts(i), h.deployed, question)
		}
	}
}

// An answer that fails is tried again after a while, however much comes in meanwhile and
// whatever restarts; what else is due is not held up. After an hour it is given up, and
// people are asked.
func TestAnswerThatFails(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{Issue: true, Revert: true, Ask: true})
	var tries []time.Duration
	began := b.now
	h.at = func(point string) error {
		if point == "before revert/1" {
			tries = append(tries, b.now.Sub(began).Truncate(time.Minute))
			return errors.New("GitHub answered 502")
		}
		return nil
	}
	b.goesBad(h, "acme/shop")
	for b.now.Sub(began) < 50*time.Minute {
		b.observe("acme/shop", fmt.Sprint("errors", len(tries)%3), production.StatusFiring)
		b.live(h)
		b.now = b.now.Add(30 * time.Second)
	}
	if got := fmt.Sprint(tries); got != "[0s 1m0s 3m0s 7m0s 15m0s 30m0s 45m0s]" {
		t.Errorf("tried after %s", got)
	}
	if got := acts(b.incident(1)); got != "issue done, revert begun" {
		t.Errorf("in between: %s", got)
	}
	for range 15 {
		b.now = b.now.Add(time.Minute)
		b.live(h)
	}
	i := b.incident(1)
	question := h.asked["acme/shop incident/1/ask #101"]
	if acts(i) != "issue done, revert refused, ask done" || len(tries) != 8 ||
		!strings.Contains(question, "No revert was made: it could not be done within an hour: GitHub answered 502") {
		t.Errorf("%s, %d tries, %q", acts(i), len(tries), question)
	}
	log, err := Log(t.Context(), b.DB, 1)
	b.must(err)
	again := &production.Incident{ID: 1}
	for _, e := range log {
		again.Apply(e)
	}
	if diff := cmp.Diff(i, again, cmpopts.IgnoreUnexported(production.Suspect{})); diff != "" {
		t.Errorf("the log folds to something else:\n%s", diff)
	}
}

// What a roll-back would change cannot be looked up: that is tried again after a while,
// too, and stands against it in the end.
func TestRollBackOfUnknownFiles(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{RollBack: true, Ask: true})
	looked := 0
	h.at = func(point string) error {
		if point == "changed" {
			looked++
			return errors.New("GitHub answered 502")
		}
		return nil
	}
	b.goesBad(h, "acme/shop")
	b.restart(h)
	for range 31 * 2 {
		b.observe("acme/shop", "errors", production.StatusFiring)
		b.must(b.Follow(t.Context()))
		_ = b.Act(t.Context())
		b.now = b.now.Add(30 * time.Second)
	}
	i := b.incident(1)
	if acts(i) != "rollback refused, ask done" || looked != 6 || len(h.deployed["acme/shop"]) != 2 ||
		!strings.Contains(i.Act(production.AnswerRollBack).Why, "could not be looked up: GitHub answered 502") {
		t.Errorf("%s, looked %d times: %+v", acts(i), looked, i.Acts)
	}
}

// The server dies again and again around roll-backs, and people deploy in between:
// there is one deployment, or one question, never two, and none over a human's.
func TestKillsAroundRollBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := rand.New(rand.NewPCG(14, 1))
	kills, rolled, asked := 0, 0, 0
	for n := 0; kills < 20; n++ {
		repo := fmt.Sprintf("acme/shop%d", n)
		h := newFakeActions(config.Production{RollBack: true, Ask: true})
		b.restart(h)
		b.goesBad(h, repo)
		b.must(b.Follow(t.Context()))
		human, humanAt := r.IntN(2) == 0, r.IntN(2)
		for try := range 8 {
			ctx, die := context.WithCancel(t.Context())
			left := r.IntN(3)
			h.at = func(point string) error {
				if !strings.Contains(point, "rollback") && !strings.Contains(point, "changed") || try > 5 {
					return nil
				}
				if left--; left >= 0 {
					return nil
				}
				kills++
				die() // what comes after it is lost: nothing can be written any more
				if strings.HasPrefix(point, "after") {
					return nil
				}
				return ctx.Err()
			}
			if human && try == humanAt {
				list := h.deployed[repo]
				h.deployed[repo] = append(list, fakeDeployment{id: list[len(list)-1].id + 1})
			}
			b.restart(h)
			_ = b.Act(ctx)
			die()
		}
		byForge, overHuman := 0, false
		for k, d := range h.deployed[repo] {
			if d.key != "" {
				byForge++
				overHuman = slices.ContainsFunc(h.deployed[repo][2:k], func(o fakeDeployment) bool { return o.key == "" })
			}
		}
		rows, err := b.DB.Incidents(t.Context(), store.IncidentFilter{Repo: repo})
		b.must(err)
		i, err := Folded(&rows[0])
		b.must(err)
		a := i.Act(production.AnswerRollBack)
		if a == nil || a.State == production.ActBegun || byForge > 1 || overHuman || (byForge == 1) != (a.State == production.ActDone) || byForge == 0 && len(h.asked) != 1 {
			t.Errorf("%s: %d deployments by Forge of %v, %d questions, %+v", repo, byForge, h.deployed[repo], len(h.asked), a)
		}
		rolled += byForge
		if byForge == 0 {
			asked++
		}
	}
	t.Logf("%d kills: rolled back %d times, asked %d times", kills, rolled, asked)
	if rolled == 0 || asked == 0 {
		t.Error("the story is not told")
	}
}

// A roll-back that was begun long ago is looked for, and not made any more.
func TestLateRollBack(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		b, h := newBench(t), newFakeActions(config.Production{RollBack: true, Ask: true})
		b.goesBad(h, "acme/shop")
		ctx, die := context.WithCancel(t.Context())
		h.at = func(point string) error {
			if point == "before rollback" && !made || point == "after rollback" {
				die()
				return ctx.Err()
			}
			return nil
		}
		b.restart(h)
		b.must(b.Follow(t.Context()))
		if err := b.Act(ctx); err == nil {
			t.Fatal("it did not die")
		}
		h.at = func(string) error { return nil }
		b.now = b.now.Add(time.Hour)
		b.live(h)
		want := map[bool]string{false: "rollback refused, ask done", true: "rollback done, ask done"}[made]
		if got := acts(b.incident(1)); got != want || len(h.deployed["acme/shop"]) != map[bool]int{false: 2, true: 3}[made] {
			t.Errorf("made %t: %s, %v", made, got, h.deployed)
		}
	}
}

// What people say is done if it may be, and answered if not; those of another
// repository have no say.
func TestChoicesOfPeople(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{Ask: true})
	b.goesBad(h, "acme/shop")
	b.live(h)
	say := func(repo, words string) string {
		t.Helper()
		owner, name, _ := strings.Cut(repo, "/")
		got, err := b.Answer(t.Context(), work.Word{Repo: pipeline.Repo{Owner: owner, Name: name}, Actor: pipeline.Actor{Login: "ann"}, Text: words, Issue: 77})
		b.must(err)
		return got
	}
	for _, tt := range []struct{ repo, words, want string }{
		{"acme/other", "1 rollback", `There is no incident "1" in this repository`},
		{"acme/shop", "2 rollback", "There is no incident"},
		{"acme/shop", "rollback", "There is no incident"},
		{"acme/shop", "1", "Say what you choose about incident 1"},
		{"acme/shop", "1 explode", "is no answer"},
		{"acme/shop", "1 ask", "is no answer"},
		{"acme/shop", "1 run", "it has no issue that a run could work on"},
		{"acme/shop", "1 mute", "Say for how long"},
		{"acme/shop", "1 mute 9000h", "is no time"},
		{"acme/shop", "1 dismiss", "Say why"},
		{"acme/shop", "1 issue noch nicht", "the line goes on after `/forge incident 1 issue`"},
		{"acme/shop", "#1 issue", "open an issue for it, as ann chose"},
	} {
		if got := say(tt.repo, tt.words); !strings.Contains(got, tt.want) {
			t.Errorf("%s %q: %q, want %q", tt.repo, tt.words, got, tt.want)
		}
	}
	b.live(h)
	say("acme/shop", "1 run")
	b.live(h)
	if got := say("acme/shop", "1 rollback"); !strings.Contains(got, "deploy what ran before again, 1111111111") {
		t.Errorf("%q", got)
	}
	h.deployed["acme/shop"] = append(h.deployed["acme/shop"], fakeDeployment{id: 3}) // a human is quicker
	b.live(h)
	if got := acts(b.incident(1)); got != "ask done, issue done, run done, rollback refused" || len(h.deployed["acme/shop"]) != 3 {
		t.Errorf("acts %q, %v", got, h.deployed)
	}
	told := ""
	for key, words := range h.comments {
		if told += words + "\n"; strings.Contains(words, "there is no roll-back") {
			told += key + "\n"
		}
	}
	for _, want := range []string{"rollback/refused/at/77 #77", "run 101 works on this (ann)", "there is no roll-back: another deployment was made in the meantime"} {
		if !strings.Contains(told, want) {
			t.Errorf("people were not told %q:\n%s", want, told)
		}
	}
	if got := say("acme/shop", "1 dismiss it was a test"); !strings.Contains(got, "was dismissed") {
		t.Errorf("%q", got)
	}
	if got := say("acme/shop", "1 revert"); !strings.Contains(got, "the incident is dismissed") {
		t.Errorf("%q", got)
	}
	if i := b.incident(1); i.State != production.StateDismissed || i.Why != "it was a test" || i.By != "ann" {
		t.Errorf("%+v", i)
	}
}

// What a server that died has taught is taken back by a dismissal, although nobody has
// written down that it was taught.
func TestDismissedWhileTaught(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{RollBack: true})
	b.goesBad(h, "acme/shop")
	b.live(h)
	b.observe("acme/shop", "errors", production.StatusResolved)
	b.now = b.now.Add(11 * time.Minute)
	b.must(b.Tick(t.Context()))
	h.at = func(point string) error {
		if strings.HasPrefix(point, "after taught/") {
			return errors.New("the server dies")
		}
		return nil
	}
	b.restart(h)
	if err := b.Act(t.Context()); err == nil || len(h.taught) != 1 || b.incident(1).Taught {
		t.Fatalf("taught %v, %v", h.taught, err)
	}
	b.must(Dismiss(t.Context(), b.DB, 1, "ann", "a test", b.now.Add(time.Minute)))
	h.at = func(string) error { return nil }
	for range 3 {
		b.live(h)
	}
	if h.taught["acme/shop taught/1/taken back"] == "" || len(h.taught) != 2 || b.incident(1).Taught {
		t.Errorf("taught %v", h.taught)
	}
}

// Who has write access says what goes wrong, as a monitor would: it is looked up what it may
// come from, and people are asked; by itself nothing is done. Said again it is the same.
func TestPeopleOpenIncidents(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newFakeActions(config.Production{Ask: true, RollBack: true, Revert: true, Environments: []string{"production"}})
	for n, minutes := range []int{300, 3} {
		b.send("deployment_status", deployment(int64(n+1), "success", fmt.Sprint(n+1), b.now.Add(-time.Duration(minutes)*time.Minute)))
		h.deployed["acme/shop"] = append(h.deployed["acme/shop"], fakeDeployment{id: int64(n + 1)})
	}
	b.live(h)
	say := func(words, cause string) string {
		t.Helper()
		got, err := b.Answer(t.Context(), work.Word{Repo: pipeline.Repo{Owner: "acme", Name: "shop"}, Actor: pipeline.Actor{Login: "ann"}, Text: words, Notes: "Nobody can pay.", Cause: cause})
		b.must(err)
		return got
	}
	if got := say("open", "a"); !strings.Contains(got, "Say what goes wrong") {
		t.Errorf("%q", got)
	}
	for range 2 {
		if got := say("open The shop is down", "b"); !strings.HasPrefix(got, "Incident 1 in production: ") {
			t.Errorf("%q", got)
		}
	}
	b.live(h)
	i := b.incident(1)
	if i.Severity != production.SeverityCritical || i.Title != "The shop is down" || i.First.Text != "Nobody can pay." || i.First.Source != "ann" ||
		len(i.Suspects) == 0 || i.Suspects[0].Deployment != 2 || acts(i) != "ask done" {
		t.Errorf("%+v", i)
	}
	if rows, err := b.DB.Incidents(t.Context(), store.IncidentFilter{}); err != nil || len(rows) != 1 {
		t.Errorf("%d incidents, %v", len(rows), err)
	}
}

// Whoever is asked about something critical that goes on is reminded once, a quarter of an
// hour later, unless somebody has said something by then.
func TestQuestionIsReminded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(b *bench)
		want   int
	}{
		{"nobody says anything", func(*bench) {}, 1},
		{"somebody chose", func(b *bench) {
			_, err := b.Answer(t.Context(), work.Word{Repo: pipeline.Repo{Owner: "acme", Name: "shop"}, Actor: pipeline.Actor{Login: "ann"}, Text: "1 issue"})
			b.must(err)
		}, 0},
		{"muted", func(b *bench) { b.must(Mute(t.Context(), b.DB, 1, "ann", 2*time.Hour, b.now)) }, 0},
		{"dismissed", func(b *bench) { b.must(Dismiss(t.Context(), b.DB, 1, "ann", "a test", b.now)) }, 0},
	} {
		b, h := newBench(t), newFakeActions(config.Production{Ask: true})
		b.goesBad(h, "acme/shop")
		b.live(h)
		b.now = b.now.Add(14 * time.Minute)
		b.live(h)
		tt.change(b)
		reminded := func() (n int) {
			for key := range h.comments {
				if strings.Contains(key, "incident/1/reminded") {
					n++
				}
			}
			return n
		}
		if n := reminded(); n != 0 {
			t.Errorf("%s: reminded after 14 minutes", tt.name)
		}
		for range 3 {
			b.now = b.now.Add(2 * time.Minute)
			b.restart(h)
			b.must(b.Follow(t.Context()))
		}
		if n := reminded(); n != tt.want {
			t.Errorf("%s: reminded %d times, want %d: %v", tt.name, n, tt.want, h.comments)
		}
	}
}
