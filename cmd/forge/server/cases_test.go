package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

func TestCleanRun(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	if len(run.Iterations) != 1 || run.Published.Calls > 25 {
		t.Errorf("%d iterations, %d calls; want one, at most 25", len(run.Iterations), run.Published.Calls)
	}
	pulls, _ := ts.gh.Pulls(greetRepo)
	if len(pulls) != 1 || pulls[0].Draft {
		t.Fatalf("pull requests: %+v", pulls)
	}
	if text, err := ts.gh.File(greetRepo, pulls[0].Head, "greet.sh"); err != nil || text != "echo hello, $1\n" {
		t.Errorf("greet.sh = %q, %v", text, err)
	}
}

// Covers S19: only people with write access start anything; others get an answer.
func TestLabelWithoutWriteAccess(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	if err := ts.gh.SetPermission(greetRepo, "tess", "triage"); err != nil {
		t.Fatal(err)
	}
	ts.label("tess")
	ts.says("tess")
	ts.outcome("issues", "write")
	if pulls, _ := ts.gh.Pulls(greetRepo); len(pulls) != 0 {
		t.Errorf("there is a pull request: %+v", pulls)
	}
}

func TestIssueWithoutText(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{title: "Fix it"})
	ts.label("acme")
	ts.says("says too little to work on")
}

func TestDefaultBranchIsGone(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.gh.AddFault(githubtest.Fault{Operation: "git/get-ref", Kind: githubtest.FaultErrorBefore, Status: http.StatusNotFound})
	ts.label("acme")
	ts.says("`main`, the default branch of acme/greet, has no commit")
}

// Covers lessons 21.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{files: map[string]string{".github/forge.yml": "loop:\n  max_iteration: 3\n"}})
	ts.label("acme")
	ts.says("max_iterations")
	if text := ts.comments(); !strings.Contains(text, "2:3") && !strings.Contains(text, "line 2") {
		t.Errorf("the answer names no line:\n%s", text)
	}
}

// Covers R6, lessons 5: nonsense is never an approval, and costs no attempt.
func TestModelAnswersNonsense(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "summary: Small and right.\nrisk: 1", "verdict: LGTM\nrisk: 1000", 1)
	tape += "-- quality */2 --\nI said LGTM.\n-- quality */3 --\nLGTM!\n-- quality */4 --\nLGTM!\n"
	ts := newTestServer(t, testOptions{tape: tape})
	ts.label("acme")
	run := ts.untilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardFaults || len(run.Iterations) != 1 {
		t.Errorf("guard %+v in iteration %d", g, len(run.Iterations))
	}
	ts.comment("acme", "/forge cancel")
	ts.untilState(pipeline.StateCancelled)
}

// A push that a ruleset refuses is told with GitHub's words, once.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	if err := ts.gh.SetRules(greetRepo, githubtest.Rule{Type: "creation", Pattern: "forge/**"}); err != nil {
		t.Fatal(err)
	}
	ts.label("acme")
	ts.says("GitHub refuses what Forge must publish")
	ts.says("or change what the commit does") // the whole of why, and what helps
	run := ts.until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
	if g := run.Gate().Guard; g.Name != pipeline.GuardPublish {
		t.Errorf("guard %+v", g)
	}
	if strings.Contains(ts.comments(), "/commit/"+run.Head) {
		t.Errorf("a commit that GitHub does not have is linked")
	}
	if slices.ContainsFunc(run.Gate().Choices, func(c pipeline.Choice) bool { return c.Name == "accept" }) {
		t.Error("what GitHub does not have can be accepted")
	}
	if err := ts.gh.SetRules(greetRepo); err != nil {
		t.Fatal(err)
	}
	ts.comment("acme", "/forge continue")
	ts.untilState(pipeline.StateVerified)
}

// Covers lessons 14, S18: a human who pushes in the middle loses nothing, and what
// is verified is the head with their commit.
func TestHumanPushes(t *testing.T) {
	t.Parallel()
	var once sync.Once
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved {
			once.Do(func() {
				if _, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: run.Branch, Message: "Say why", Files: map[string]*string{"WHY.md": ptr("because\n")}}); err != nil {
					ts.t.Error(err)
				}
			})
		}
	}})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	if text, err := ts.gh.File(greetRepo, run.Head, "WHY.md"); err != nil || text != "because\n" {
		t.Errorf("the human's file is %q, %v", text, err)
	}
	if run.Counters.Moved != 1 {
		t.Errorf("the branch moved %d times, want once", run.Counters.Moved)
	}
}

// A human who pushes what was asked for while the implementer is at it has it looked at: nobody is asked
// why there is nothing left to change.
func TestHumanMends(t *testing.T) {
	t.Parallel()
	tape := servertest.GreeterTape + `
-- quality 1/1 --
>>> submit
summary: Nearly.
risk: 1
findings: [{severity: error, category: correctness, file: greet.sh, line: 1, confidence: 0.9, message: "It is not quoted", fixable: true, fix: {description: "Quote it"}}]
-- implementer 2@2/1 --
@expect somebody else has pushed to the branch
>>> submit
summary: It is done already
addressed: [{id: F1, what: somebody else has done it}]
-- quality 2/1 --
>>> submit
summary: Right.
risk: 1
findings: []
rulings: [{id: F1, verdict: fixed, why: it is quoted}]
`
	var once sync.Once
	ts := newTestServer(t, testOptions{tape: tape, on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventBounce {
			once.Do(func() {
				ts.push(run.Branch, "Quote it", map[string]string{"greet.sh": "echo \"hello, $1\"\n"})
				ts.outcome("push", "the run goes on from")
			})
		}
	}})
	ts.label("acme")
	run := ts.until("verified", func(r *pipeline.Run) bool { return r.State == pipeline.StateVerified || r.Gate() != nil })
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || run.Iterations[1].Impl == nil || !run.Iterations[1].Impl.Anew {
		t.Errorf("%s: %s", run.Summary(), run.Head)
	}
}

func ptr(s string) *string { return &s }

// Covers T7, S19, S20: commands by those who may, answers to those who may not or
// who mistype, silence for bots.
func TestCommands(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "risk: 1\nfindings: []", "risk: 90\nneeds_human: it greets people\nfindings: []", 1)
	ts := newTestServer(t, testOptions{tape: tape})
	ts.label("acme")
	ts.untilState(pipeline.StateWaiting)
	ts.says("it greets people")
	if err := ts.gh.SetPermission(greetRepo, "rita", "read"); err != nil {
		t.Fatal(err)
	}
	ts.comment("rita", "/forge accept")
	ts.outcome("issue_comment", "rita")
	ts.comment("acme", "/forge contineu 2")
	ts.says("`/forge continue")
	ts.comment("acme", "/forge continue lots")
	ts.says("a number from 1 to 20")
	ts.comment("acme", "I quote:\n\n> /forge cancel")
	ts.comment("acme", "/forge status")
	ts.says("waits for a human")
	ts.comment("acme", "/forge history")
	ts.says("Iteration 1")
	ts.comment("acme", "/forge stop")
	ts.untilState(pipeline.StateStopped)
	ts.comment("acme", "/forge resume")
	ts.untilState(pipeline.StateWaiting)
	ts.comment("acme", "/forge approve\nGreeting people is fine.")
	run := ts.untilState(pipeline.StateVerified)
	if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "Greeting people is fine.") {
		t.Errorf("notes %q", run.Notes)
	}
	ts.comment("acme", "/forge stop")
	ts.says("has ended")
}

// A maintainer who ticks a box of the question answers it; one who may not, not.
func TestTickedBox(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{files: map[string]string{".github/forge.yml": "", "test.sh": ""}})
	ts.label("acme")
	ts.untilState(pipeline.StateWaiting)
	ts.says("Nothing can be verified without tests")
	id, box := ts.box("/forge approve")
	if err := ts.gh.As("acme").TickBox(greetRepo, id, box); err != nil {
		t.Fatal(err)
	}
	run := ts.until("goes on", func(r *pipeline.Run) bool { return r.Gates[0].Closed })
	if a := run.Gates[0].Answers; len(a) != 1 || a[0].By.Login != "acme" || a[0].Via != "box" {
		t.Errorf("answers %+v", a)
	}
}

// Another label than "forge" starts runs; branches and commands keep their names.
func TestOtherLabel(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{env: map[string]string{"FORGE_LABEL": "robot: go"}})
	ts.label("acme")
	ts.outcome("issues", "forge")
	if err := ts.gh.As("acme").Label(greetRepo, ts.issue, "robot: go"); err != nil {
		t.Fatal(err)
	}
	if run := ts.untilState(pipeline.StateVerified); !strings.HasPrefix(run.Branch, "forge/issue-1-") {
		t.Errorf("branch %s", run.Branch)
	}
}

// With another slug, the server leaves /forge to others: its commands, branches, check and
// texts are named by its own.
func TestOtherSlug(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{env: map[string]string{"FORGE_LABEL": "bob", "FORGE_SLUG": "bob"},
		files: map[string]string{".github/forge.yml": "mode: manual\nbranch_name: forge/work-{issue}\ntests:\n  commands: [sh test.sh]\n"}})
	for _, c := range []string{"/forge run", "/forge help"} {
		ts.comment("acme", c)
		ts.outcome("issue_comment", "without a command")
	}
	ts.comment("acme", "/bob memory")
	ts.says("`/bob remember WORDS` tells it something")
	ts.comment("acme", "/bob status")
	ts.says("The label, or `/bob run`, starts one.")
	ts.must(ts.gh.As("acme").Label(greetRepo, ts.issue, "bob"))
	ts.says("/bob approve all")
	ts.comment("acme", "/forge approve all")
	ts.comment("acme", "/bob simplify it")
	ts.says("They are: `/bob approve`")
	if run := ts.untilState(pipeline.StateWaiting); len(run.Gates) != 1 || run.Gates[0].Closed {
		t.Errorf("gates after /forge approve all: %+v", run.Gates)
	}
	ts.comment("acme", "/bob approve all")
	run := ts.untilState(pipeline.StateVerified)
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	if len(pulls) != 1 || run.Branch != "bob/work-1" || pulls[0].Branch != run.Branch || run.Slug != "bob" {
		t.Fatalf("branch %s, slug %q, pull requests %+v", run.Branch, run.Slug, pulls)
	}
	if c := pulls[0].Checks; len(c) != 1 || c[0].Name != "bob" {
		t.Errorf("checks %+v", c)
	}
	ts.comment("acme", "/bob help")
	ts.says("| `/bob stop` · `/bob resume` | pause it, let it go on |")
	for line := range strings.SplitSeq(ts.comments(), "\n") {
		if strings.Contains(line, "/forge") && !strings.HasPrefix(line, "acme: ") {
			t.Errorf("it says %q", line)
		}
	}
}

// A default branch that is not named main, with slashes: settings are read from it, the
// pull request goes into it, and what moves on there is taken in.
func TestDefaultBranchOfAnotherName(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved && run.Counters.Updates == 0 {
			if _, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "dev/trunk", Message: "Other work", Files: map[string]*string{"OTHER.md": ptr("x\n")}}); err != nil {
				ts.t.Error(err)
			}
		}
	}})
	ts.must(ts.gh.SetDefaultBranch(greetRepo, "dev/trunk"))
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	if len(pulls) != 1 || pulls[0].Base != "dev/trunk" || run.Counters.Updates != 1 {
		t.Errorf("pull requests %+v, %d updates", pulls, run.Counters.Updates)
	}
}

// A default branch that gets another name while a run works is followed: before there is a
// pull request, and when there is one, which is pointed at it.
func TestDefaultBranchIsRenamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		when func(*pipeline.Run) bool
	}{
		{"before the pull request", func(r *pipeline.Run) bool { return r.Plan != nil }},
		{"after it", func(r *pipeline.Run) bool { return r.Published.Pull != nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
				if tt.when(run) {
					once.Do(func() { ts.must(ts.gh.SetDefaultBranch(greetRepo, "trunk")) })
				}
			}})
			ts.label("acme")
			run := ts.untilState(pipeline.StateVerified)
			if e := ts.event(run.ID, pipeline.EventBaseRenamed); e.Data.Note != "trunk" || e.Data.Head == "" {
				t.Errorf("event %+v", e.Data)
			}
			var pulls []githubtest.Pull
			eventually(t, func() bool {
				var err error
				pulls, err = ts.gh.Pulls(greetRepo)
				ts.must(err)
				return len(pulls) == 1 && pulls[0].Base == "trunk" && !pulls[0].Draft && strings.Contains(pulls[0].Body, "was renamed from `main` to `trunk`")
			}, func() string { return fmt.Sprintf("pull requests: %+v", pulls) })
			if run := ts.untilState(pipeline.StateVerified); run.Repo.DefaultBranch != "trunk" || run.Retargeted != "" {
				t.Errorf("it is for %s, and its pull request goes into %q", run.Repo.DefaultBranch, run.Retargeted)
			}
		})
	}
}

// Another default branch while the run's own is still there changes nothing: the work is for
// the one that it began from.
func TestDefaultBranchIsSwitched(t *testing.T) {
	t.Parallel()
	var once sync.Once
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if run.Plan != nil {
			once.Do(func() {
				ts.must(ts.gh.SetDefaultBranch(greetRepo, "trunk"))
				_, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "main", Message: "Stay", Files: map[string]*string{"A.md": ptr("x\n")}})
				ts.must(err)
			})
		}
	}})
	ts.label("acme")
	var pulls []githubtest.Pull
	eventually(t, func() bool { // its text has been written anew, and with that its base was looked at
		var err error
		pulls, err = ts.gh.Pulls(greetRepo)
		ts.must(err)
		return len(pulls) == 1 && !pulls[0].Draft
	}, func() string { return fmt.Sprintf("pull requests: %+v", pulls) })
	if run := ts.untilState(pipeline.StateVerified); pulls[0].Base != "main" || run.Repo.DefaultBranch != "main" || run.BaseWas != "" {
		t.Errorf("it is for %s, once %q, and its pull request goes into %s", run.Repo.DefaultBranch, run.BaseWas, pulls[0].Base)
	}
}

// A default branch that does not hold what the run began from is none that it could go on
// for: it is named as what it is, with what helps.
func TestDefaultBranchIsAnother(t *testing.T) {
	t.Parallel()
	var once sync.Once
	ts := newTestServer(t, testOptions{on: func(ts *testServer, run *pipeline.Run, e pipeline.Event) {
		if run.Plan != nil {
			once.Do(func() {
				ts.must(ts.gh.SetDefaultBranch(greetRepo, "trunk"))
				_, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "trunk", Message: "Begin anew", Orphan: true, Files: map[string]*string{"A.md": ptr("x\n")}})
				ts.must(err)
			})
		}
	}})
	ts.label("acme")
	ts.says("does not hold")
	run := ts.until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
	if g := run.Gate(); g.Guard.Name != pipeline.GuardPublish || !strings.Contains(g.Question, "cancel it and give the issue the label again, or make main again and continue") {
		t.Errorf("gate %+v", g)
	}
}

// Another base for the pull request, as in a stack of them, is said and changes nothing
// else: the verdict stays one about the default branch.
func TestStackedBase(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	_, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "stack", Message: "Below", Files: map[string]*string{"B.md": ptr("x\n")}})
	ts.must(err)
	ts.must(ts.gh.As("acme").Retarget(greetRepo, run.Published.Pull.Number, "stack"))
	ts.outcome("pull_request", "the verdict is about main, not about stack")
	if after := ts.untilState(pipeline.StateVerified); after.Head != run.Head || after.Repo.DefaultBranch != "main" {
		t.Errorf("the run went on to %s for %s", after.Head, after.Repo.DefaultBranch)
	}
}
