package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/store"
)

// greeter is a repository whose tests take no time: a script that prints TAP.
var greeter = map[string]string{
	"greet.sh":          "echo hello $1\n",
	"test.sh":           "echo TAP version 13\necho 1..1\nif [ \"$(sh greet.sh Ann)\" = \"hello, Ann\" ] || [ \"$(sh greet.sh Ann)\" = \"hello Ann\" ]; then echo ok 1 - greets; else echo not ok 1 - greets; fi\n",
	".github/forge.yml": "tests:\n  commands: [sh test.sh]\n",
}

// greeterTape does what the greeter's issue asks for, at the first attempt.
const greeterTape = `
-- planner 0/1 --
>>> submit
summary: Put a comma after hello
steps: [Edit greet.sh]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer */1 --
>>> edit
path: greet.sh
old: "echo hello $1"
new: "echo hello, $1"
-- implementer */2 --
>>> submit
summary: Put a comma after hello
-- compliance */1 --
>>> submit
criteria: [{id: AC1, met: true, evidence: test.sh}]
-- quality */1 --
>>> submit
summary: Small and right.
risk: 1
findings: []
`

// office is a Forge in this process and a GitHub, with one repository and one
// issue: small enough to try out what can go wrong.
type office struct {
	t     *testing.T
	gh    *githubtest.Server
	s     *server
	issue int

	mu      sync.Mutex
	changed chan struct{} // closed at each event
	run     *pipeline.Run
	on      func(*pipeline.Run, pipeline.Event)
}

type officeOptions struct {
	files map[string]string // over the greeter's; an empty text removes
	tape  string            // default: greeterTape
	body  string            // of the issue
	title string
	on    func(*office, *pipeline.Run, pipeline.Event) // called at each event
	env   map[string]string                            // of the server, on top
}

const officeRepo = "acme/greet"

func newOffice(t *testing.T, o officeOptions) *office {
	t.Helper()
	dir, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: embedded("app.yml")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	files := maps.Clone(greeter)
	maps.Copy(files, o.files)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	if _, err := gh.AddRepo("acme", "greet", files); err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Install(officeRepo); err != nil {
		t.Fatal(err)
	}
	of := &office{t: t, gh: gh, changed: make(chan struct{})}
	if o.title == "" {
		o.title, o.body = "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right."
	}
	if of.issue, err = gh.As("acme").OpenIssue(officeRepo, o.title, o.body); err != nil {
		t.Fatal(err)
	}
	if o.on != nil {
		of.on = func(r *pipeline.Run, e pipeline.Event) { o.on(of, r, e) }
	}
	if o.tape == "" {
		o.tape = greeterTape
	}
	of.startServer(dir, o.tape, o.env)
	return of
}

func (of *office) startServer(dir, tape string, more map[string]string) {
	of.t.Helper()
	key, model := filepath.Join(dir, "app.pem"), filepath.Join(dir, "tape.txtar")
	if err := errors.Join(os.WriteFile(key, of.gh.PrivateKey, 0o600), os.WriteFile(model, []byte(tape), 0o600)); err != nil {
		of.t.Fatal(err)
	}
	env := map[string]string{
		"FORGE_APP_ID": fmt.Sprint(of.gh.AppID), "FORGE_PRIVATE_KEY_FILE": key, "FORGE_WEBHOOK_SECRET": of.gh.WebhookSecret,
		"FORGE_STATE_DIR": filepath.Join(dir, "state"), "FORGE_LISTEN": "127.0.0.1:0", "FORGE_GITHUB_URL": of.gh.URL,
		"FORGE_WRITE_INTERVAL": "0s", "FORGE_CALL_TIMEOUT": "1s", "FORGE_MODEL": "tape:" + model,
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		env["FORGE_UNSAFE_NO_SANDBOX"] = "true"
	}
	maps.Copy(env, more)
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		of.t.Fatal(err)
	}
	of.s, err = startServer(of.t.Context(), wireOptions{config: cfg, log: slog.New(slog.DiscardHandler), onEvents: of.onEvents})
	if err != nil {
		of.t.Fatal(err)
	}
	of.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if err := of.s.stop(ctx); err != nil {
			of.t.Errorf("stop: %v", err)
		}
	})
	of.gh.SetHook(of.s.url + "/webhook")
}

func (of *office) onEvents(run *pipeline.Run, events []pipeline.Event) {
	for _, e := range events {
		if of.on != nil {
			of.on(run, e)
		}
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	copied := *run
	of.run = &copied
	close(of.changed)
	of.changed = make(chan struct{})
}

// until waits until the run is shown as it should be.
func (of *office) until(what string, cond func(*pipeline.Run) bool) *pipeline.Run {
	of.t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		of.mu.Lock()
		run, changed := of.run, of.changed
		of.mu.Unlock()
		if run != nil && run.Published.Rev >= run.Rev && cond(run) {
			return run
		}
		select {
		case <-changed:
		case <-timeout:
			stacks := make([]byte, 1<<20)
			of.t.Logf("what everybody does:\n%s", stacks[:runtime.Stack(stacks, true)])
			of.t.Fatalf("no run %s: %+v", what, run)
		}
	}
}

func (of *office) untilState(s pipeline.State) *pipeline.Run {
	of.t.Helper()
	return of.until(string(s), func(r *pipeline.Run) bool { return r.State == s })
}

// says waits until a comment on the issue or the pull request has the text.
func (of *office) says(text string) {
	of.t.Helper()
	ctx, cancel := context.WithTimeout(of.t.Context(), 60*time.Second)
	defer cancel()
	var all string
	err := of.gh.Wait(ctx, func() bool {
		all = of.comments()
		return strings.Contains(all, text)
	})
	if err != nil {
		of.t.Fatalf("nobody says %q:\n%s", text, all)
	}
}

func (of *office) comments() string {
	var b strings.Builder
	i, err := of.gh.Issue(officeRepo, of.issue)
	if err != nil {
		of.t.Fatal(err)
	}
	pulls, err := of.gh.Pulls(officeRepo)
	if err != nil {
		of.t.Fatal(err)
	}
	list := i.Comments
	for _, p := range pulls {
		list = append(list, p.Comments...)
		b.WriteString(p.Body + "\n")
	}
	for _, c := range list {
		b.WriteString(c.Author + ": " + c.Body + "\n")
	}
	return b.String()
}

func (of *office) label(who string) {
	of.t.Helper()
	if err := of.gh.As(who).Label(officeRepo, of.issue, "forge"); err != nil {
		of.t.Fatal(err)
	}
}

func (of *office) comment(who, text string) {
	of.t.Helper()
	if _, err := of.gh.As(who).Comment(officeRepo, of.issue, text); err != nil {
		of.t.Fatal(err)
	}
}

// outcome waits until the newest delivery of the kind has one.
func (of *office) outcome(event, want string) {
	of.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := of.s.db.Deliveries(of.t.Context(), deliveriesOf(officeRepo))
		if err != nil {
			of.t.Fatal(err)
		}
		var seen []string
		for _, d := range list {
			if d.Event == event {
				seen = append(seen, d.Outcome)
			}
			if d.Event == event && strings.Contains(d.Outcome, want) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			of.t.Fatalf("no %s has the outcome %q; they have %q", event, want, seen)
		}
	}
}

func TestCleanRun(t *testing.T) {
	of := newOffice(t, officeOptions{})
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	if len(run.Iterations) != 1 || run.Published.Calls > 25 {
		t.Errorf("%d iterations, %d calls; want one, at most 25", len(run.Iterations), run.Published.Calls)
	}
	pulls, _ := of.gh.Pulls(officeRepo)
	if len(pulls) != 1 || pulls[0].Draft {
		t.Fatalf("pull requests: %+v", pulls)
	}
	if text, err := of.gh.File(officeRepo, pulls[0].Head, "greet.sh"); err != nil || text != "echo hello, $1\n" {
		t.Errorf("greet.sh = %q, %v", text, err)
	}
}

// Covers S19: only people with write access start anything; others get an answer.
func TestLabelWithoutWriteAccess(t *testing.T) {
	of := newOffice(t, officeOptions{})
	if err := of.gh.SetPermission(officeRepo, "tess", "triage"); err != nil {
		t.Fatal(err)
	}
	of.label("tess")
	of.says("tess")
	of.outcome("issues", "write")
	if pulls, _ := of.gh.Pulls(officeRepo); len(pulls) != 0 {
		t.Errorf("there is a pull request: %+v", pulls)
	}
}

func TestIssueWithoutText(t *testing.T) {
	of := newOffice(t, officeOptions{title: "Fix it"})
	of.label("acme")
	of.says("says too little to work on")
}

// Covers lessons 21.
func TestUnknownKey(t *testing.T) {
	of := newOffice(t, officeOptions{files: map[string]string{".github/forge.yml": "loop:\n  max_iteration: 3\n"}})
	of.label("acme")
	of.says("max_iterations")
	if text := of.comments(); !strings.Contains(text, "2:3") && !strings.Contains(text, "line 2") {
		t.Errorf("the answer names no line:\n%s", text)
	}
}

func TestRepositoryWithoutTests(t *testing.T) {
	of := newOffice(t, officeOptions{files: map[string]string{".github/forge.yml": "", "test.sh": ""}})
	of.label("acme")
	run := of.untilState(pipeline.StateWaiting)
	if run.Gate().Guard.Name != pipeline.GuardNoTests {
		t.Fatalf("it waits for %+v", run.Gate())
	}
	of.says("Nothing can be verified without tests")
	of.comment("acme", "/forge accept\nWe test by hand.")
	of.untilState(pipeline.StateAccepted)
}

// Covers R6, lessons 5: nonsense is never an approval, and costs no attempt.
func TestModelAnswersNonsense(t *testing.T) {
	tape := strings.Replace(greeterTape, "summary: Small and right.\nrisk: 1", "verdict: LGTM\nrisk: 1000", 1)
	tape += "-- quality */2 --\nI said LGTM.\n-- quality */3 --\nLGTM!\n-- quality */4 --\nLGTM!\n"
	of := newOffice(t, officeOptions{tape: tape})
	of.label("acme")
	run := of.untilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardFaults || len(run.Iterations) != 1 {
		t.Errorf("guard %+v in iteration %d", g, len(run.Iterations))
	}
	of.comment("acme", "/forge cancel")
	of.untilState(pipeline.StateCancelled)
}

func TestModelRefusesOrFails(t *testing.T) {
	for name, section := range map[string]string{"refuses": "@stop refusal\nI would rather not.\n", "overloaded": "@error 529 overloaded\n"} {
		t.Run(name, func(t *testing.T) {
			of := newOffice(t, officeOptions{tape: "-- planner 0/1 --\n" + section + "-- planner 0/2 --\n" + section})
			of.label("acme")
			run := of.untilState(pipeline.StateWaiting)
			if g := run.Gate().Guard; g.Name != pipeline.GuardFaults {
				t.Errorf("guard %+v", g)
			}
			of.says("`/forge continue 3`")
		})
	}
}

// A push that a ruleset refuses is told with GitHub's words, once.
func TestPushRefused(t *testing.T) {
	of := newOffice(t, officeOptions{})
	if err := of.gh.SetRules(officeRepo, githubtest.Rule{Type: "creation", Pattern: "forge/**"}); err != nil {
		t.Fatal(err)
	}
	of.label("acme")
	of.says("GitHub refuses what Forge must publish")
	run := of.until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
	if g := run.Gate().Guard; g.Name != pipeline.GuardPublish {
		t.Errorf("guard %+v", g)
	}
	if err := of.gh.SetRules(officeRepo); err != nil {
		t.Fatal(err)
	}
	of.comment("acme", "/forge continue")
	of.untilState(pipeline.StateVerified)
}

// Covers lessons 14, S18: a human who pushes in the middle loses nothing, and what
// is verified is the head with their commit.
func TestHumanPushes(t *testing.T) {
	var once sync.Once
	of := newOffice(t, officeOptions{on: func(of *office, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved {
			once.Do(func() {
				if _, err := of.gh.As("acme").PushFiles(officeRepo, githubtest.Push{Branch: run.Branch, Message: "Say why", Files: map[string]*string{"WHY.md": ptr("because\n")}}); err != nil {
					of.t.Error(err)
				}
			})
		}
	}})
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	if text, err := of.gh.File(officeRepo, run.Head, "WHY.md"); err != nil || text != "because\n" {
		t.Errorf("the human's file is %q, %v", text, err)
	}
	if run.Counters.Moved != 1 {
		t.Errorf("the branch moved %d times, want once", run.Counters.Moved)
	}
}

func ptr(s string) *string { return &s }

// Covers T7, S19, S20: commands by those who may, answers to those who may not or
// who mistype, silence for bots.
func TestCommands(t *testing.T) {
	tape := strings.Replace(greeterTape, "risk: 1\nfindings: []", "risk: 90\nneeds_human: it greets people\nfindings: []", 1)
	of := newOffice(t, officeOptions{tape: tape})
	of.label("acme")
	of.untilState(pipeline.StateWaiting)
	of.says("it greets people")
	if err := of.gh.SetPermission(officeRepo, "rita", "read"); err != nil {
		t.Fatal(err)
	}
	of.comment("rita", "/forge accept")
	of.outcome("issue_comment", "rita")
	of.comment("acme", "/forge contineu 2")
	of.says("`/forge continue")
	of.comment("acme", "/forge continue lots")
	of.says("a number from 1 to 20")
	of.comment("acme", "I quote:\n\n> /forge cancel")
	of.comment("acme", "/forge status")
	of.says("waits for a human")
	of.comment("acme", "/forge history")
	of.says("Iteration 1")
	of.comment("acme", "/forge stop")
	of.untilState(pipeline.StateStopped)
	of.comment("acme", "/forge resume")
	of.untilState(pipeline.StateWaiting)
	of.comment("acme", "/forge approve\nGreeting people is fine.")
	run := of.untilState(pipeline.StateVerified)
	if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "Greeting people is fine.") {
		t.Errorf("notes %q", run.Notes)
	}
	of.comment("acme", "/forge stop")
	of.says("has ended")
}

func deliveriesOf(repo string) store.DeliveryFilter { return store.DeliveryFilter{Repo: repo} }

// A maintainer who ticks a box of the question answers it; one who may not, not.
func TestTickedBox(t *testing.T) {
	of := newOffice(t, officeOptions{files: map[string]string{".github/forge.yml": "", "test.sh": ""}})
	of.label("acme")
	of.untilState(pipeline.StateWaiting)
	of.says("Nothing can be verified without tests")
	id, box := of.box("/forge accept")
	if err := of.gh.As("acme").TickBox(officeRepo, id, box); err != nil {
		t.Fatal(err)
	}
	run := of.untilState(pipeline.StateAccepted)
	if a := run.Gates[0].Answers; len(a) != 1 || a[0].By.Login != "acme" {
		t.Errorf("answers %+v", a)
	}
}

// box finds the box of a choice in the question: its comment, and which one it is.
func (of *office) box(choice string) (comment int64, nth int) {
	of.t.Helper()
	pulls, err := of.gh.Pulls(officeRepo)
	if err != nil {
		of.t.Fatal(err)
	}
	i, err := of.gh.Issue(officeRepo, of.issue)
	if err != nil {
		of.t.Fatal(err)
	}
	list := i.Comments
	for _, p := range pulls {
		list = append(list, p.Comments...)
	}
	for _, c := range list {
		n := 0
		for line := range strings.SplitSeq(c.Body, "\n") {
			if !strings.HasPrefix(line, "- [ ] ") {
				continue
			}
			if strings.Contains(line, choice) {
				return c.ID, n
			}
			n++
		}
	}
	of.t.Fatalf("no box for %q", choice)
	return 0, 0
}

// Another label than "forge" starts runs; branches and commands keep their names.
func TestOtherLabel(t *testing.T) {
	of := newOffice(t, officeOptions{env: map[string]string{"FORGE_LABEL": "robot: go"}})
	of.label("acme")
	of.outcome("issues", "forge")
	if err := of.gh.As("acme").Label(officeRepo, of.issue, "robot: go"); err != nil {
		t.Fatal(err)
	}
	if run := of.untilState(pipeline.StateVerified); !strings.HasPrefix(run.Branch, "forge/issue-1-") {
		t.Errorf("branch %s", run.Branch)
	}
}
