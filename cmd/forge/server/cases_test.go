package server_test

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
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 1 || run.Published.Calls > 25 {
		t.Errorf("%d iterations, %d calls; want one, at most 25", len(run.Iterations), run.Published.Calls)
	}
	pulls, _ := ts.GitHub.Pulls(servertest.Repo)
	if len(pulls) != 1 || pulls[0].Draft {
		t.Fatalf("pull requests: %+v", pulls)
	}
	if text, err := ts.GitHub.File(servertest.Repo, pulls[0].Head, "greet.sh"); err != nil || text != "echo hello, $1\n" {
		t.Errorf("greet.sh = %q, %v", text, err)
	}
}

// Covers S19: only people with write access start anything; others get an answer.
func TestLabelWithoutWriteAccess(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	if err := ts.GitHub.SetPermission(servertest.Repo, "tess", "triage"); err != nil {
		t.Fatal(err)
	}
	ts.Label("tess")
	ts.Says("tess")
	ts.Outcome("issues", "write")
	if pulls, _ := ts.GitHub.Pulls(servertest.Repo); len(pulls) != 0 {
		t.Errorf("there is a pull request: %+v", pulls)
	}
}

func TestIssueWithoutText(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Title: "Fix it"})
	ts.Label("acme")
	ts.Says("says too little to work on")
}

func TestDefaultBranchIsGone(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.GitHub.AddFault(githubtest.Fault{Operation: "git/get-ref", Kind: githubtest.FaultErrorBefore, Status: http.StatusNotFound})
	ts.Label("acme")
	ts.Says("`main`, the default branch of acme/greet, has no commit")
}

// Covers lessons 21.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": "loop:\n  max_iteration: 3\n"}})
	ts.Label("acme")
	ts.Says("max_iterations")
	if text := ts.Comments(); !strings.Contains(text, "2:3") && !strings.Contains(text, "line 2") {
		t.Errorf("the answer names no line:\n%s", text)
	}
}

// Covers R6, lessons 5: nonsense is never an approval, and costs no attempt.
func TestModelAnswersNonsense(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "summary: Small and right.\nrisk: 1", "verdict: LGTM\nrisk: 1000", 1)
	tape += "-- quality */2 --\nI said LGTM.\n-- quality */3 --\nLGTM!\n-- quality */4 --\nLGTM!\n"
	ts := servertest.New(t, servertest.Options{Tape: tape})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardFaults || len(run.Iterations) != 1 {
		t.Errorf("guard %+v in iteration %d", g, len(run.Iterations))
	}
	ts.Comment("acme", "/forge cancel")
	ts.UntilState(pipeline.StateCancelled)
}

// A push that a ruleset refuses is told with GitHub's words, once.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	if err := ts.GitHub.SetRules(servertest.Repo, githubtest.Rule{Type: "creation", Pattern: "forge/**"}); err != nil {
		t.Fatal(err)
	}
	ts.Label("acme")
	ts.Says("GitHub refuses what Forge must publish")
	ts.Says("or change what the commit does") // the whole of why, and what helps
	run := ts.Until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
	if g := run.Gate().Guard; g.Name != pipeline.GuardPublish {
		t.Errorf("guard %+v", g)
	}
	if strings.Contains(ts.Comments(), "/commit/"+run.Head) {
		t.Errorf("a commit that GitHub does not have is linked")
	}
	if slices.ContainsFunc(run.Gate().Choices, func(c pipeline.Choice) bool { return c.Name == "accept" }) {
		t.Error("what GitHub does not have can be accepted")
	}
	if err := ts.GitHub.SetRules(servertest.Repo); err != nil {
		t.Fatal(err)
	}
	ts.Comment("acme", "/forge continue")
	ts.UntilState(pipeline.StateVerified)
}

// Covers lessons 14, S18: a human who pushes in the middle loses nothing, and what
// is verified is the head with their commit.
func TestHumanPushes(t *testing.T) {
	t.Parallel()
	var once sync.Once
	ts := servertest.New(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved {
			once.Do(func() {
				if _, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: run.Branch, Message: "Say why", Files: map[string]*string{"WHY.md": new("because\n")}}); err != nil {
					ts.T.Error(err)
				}
			})
		}
	}})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if text, err := ts.GitHub.File(servertest.Repo, run.Head, "WHY.md"); err != nil || text != "because\n" {
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
	ts := servertest.New(t, servertest.Options{Tape: tape, On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventBounce {
			once.Do(func() {
				ts.Push(run.Branch, "Quote it", map[string]string{"greet.sh": "echo \"hello, $1\"\n"})
				ts.Outcome("push", "the run goes on from")
			})
		}
	}})
	ts.Label("acme")
	run := ts.Until("verified", func(r *pipeline.Run) bool { return r.State == pipeline.StateVerified || r.Gate() != nil })
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || run.Iterations[1].Impl == nil || !run.Iterations[1].Impl.Anew {
		t.Errorf("%s: %s", run.Summary(), run.Head)
	}
}

// Covers T7, S19, S20: commands by those who may, answers to those who may not or
// who mistype, silence for bots.
func TestCommands(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "risk: 1\nfindings: []", "risk: 90\nneeds_human: it greets people\nfindings: []", 1)
	ts := servertest.New(t, servertest.Options{Tape: tape})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	ts.Says("it greets people")
	if err := ts.GitHub.SetPermission(servertest.Repo, "rita", "read"); err != nil {
		t.Fatal(err)
	}
	ts.Comment("rita", "/forge accept")
	ts.Outcome("issue_comment", "rita")
	ts.Comment("acme", "/forge contineu 2")
	ts.Says("`/forge continue")
	ts.Comment("acme", "/forge continue lots")
	ts.Says("a number from 1 to 20")
	ts.Comment("acme", "I quote:\n\n> /forge cancel")
	ts.Comment("acme", "/forge status")
	ts.Says("waits for a human")
	ts.Comment("acme", "/forge history")
	ts.Says("Iteration 1")
	ts.Comment("acme", "/forge stop")
	ts.UntilState(pipeline.StateStopped)
	ts.Comment("acme", "/forge resume")
	ts.UntilState(pipeline.StateWaiting)
	ts.Comment("acme", "/forge approve\nGreeting people is fine.")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "Greeting people is fine.") {
		t.Errorf("notes %q", run.Notes)
	}
	ts.Comment("acme", "/forge stop")
	ts.Says("has ended")
}

// A maintainer who ticks a box of the question answers it; one who may not, not.
func TestTickedBox(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": "", "test.sh": ""}})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	ts.Says("Nothing can be verified without tests")
	id, box := ts.Box("/forge approve")
	if err := ts.GitHub.As("acme").TickBox(servertest.Repo, id, box); err != nil {
		t.Fatal(err)
	}
	run := ts.Until("goes on", func(r *pipeline.Run) bool { return r.Gates[0].Closed })
	if a := run.Gates[0].Answers; len(a) != 1 || a[0].By.Login != "acme" || a[0].Via != "box" {
		t.Errorf("answers %+v", a)
	}
}

// Another label than "forge" starts runs; branches and commands keep their names.
func TestOtherLabel(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Env: map[string]string{"FORGE_LABEL": "robot: go"}})
	ts.Label("acme")
	ts.Outcome("issues", "forge")
	if err := ts.GitHub.As("acme").Label(servertest.Repo, ts.Issue, "robot: go"); err != nil {
		t.Fatal(err)
	}
	if run := ts.UntilState(pipeline.StateVerified); !strings.HasPrefix(run.Branch, "forge/issue-1-") {
		t.Errorf("branch %s", run.Branch)
	}
}

// With another slug, the server leaves /forge to others: its commands, branches, check and
// texts are named by its own.
func TestOtherSlug(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Env: map[string]string{"FORGE_LABEL": "bob", "FORGE_SLUG": "bob"},
		Files: map[string]string{".github/forge.yml": "mode: manual\nbranch_name: forge/work-{issue}\ntests:\n  commands: [sh test.sh]\n"}})
	for _, c := range []string{"/forge run", "/forge help"} {
		ts.Comment("acme", c)
		ts.Outcome("issue_comment", "without a command")
	}
	ts.Comment("acme", "/bob memory")
	ts.Says("`/bob remember WORDS` tells it something")
	ts.Comment("acme", "/bob status")
	ts.Says("The label, or `/bob run`, starts one.")
	ts.Must(ts.GitHub.As("acme").Label(servertest.Repo, ts.Issue, "bob"))
	ts.Says("/bob approve all")
	ts.Comment("acme", "/forge approve all")
	ts.Comment("acme", "/bob simplify it")
	ts.Says("They are: `/bob approve`")
	if run := ts.UntilState(pipeline.StateWaiting); len(run.Gates) != 1 || run.Gates[0].Closed {
		t.Errorf("gates after /forge approve all: %+v", run.Gates)
	}
	ts.Comment("acme", "/bob approve all")
	run := ts.UntilState(pipeline.StateVerified)
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	if len(pulls) != 1 || run.Branch != "bob/work-1" || pulls[0].Branch != run.Branch || run.Slug != "bob" {
		t.Fatalf("branch %s, slug %q, pull requests %+v", run.Branch, run.Slug, pulls)
	}
	if c := pulls[0].Checks; len(c) != 1 || c[0].Name != "bob" {
		t.Errorf("checks %+v", c)
	}
	ts.Comment("acme", "/bob help")
	ts.Says("| `/bob stop` · `/bob resume` | pause it, let it go on |")
	for line := range strings.SplitSeq(ts.Comments(), "\n") {
		if strings.Contains(line, "/forge") && !strings.HasPrefix(line, "acme: ") {
			t.Errorf("it says %q", line)
		}
	}
}

// A default branch that is not named main, with slashes: settings are read from it, the
// pull request goes into it, and what moves on there is taken in.
func TestDefaultBranchOfAnotherName(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved && run.Counters.Updates == 0 {
			if _, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "dev/trunk", Message: "Other work", Files: map[string]*string{"OTHER.md": new("x\n")}}); err != nil {
				ts.T.Error(err)
			}
		}
	}})
	ts.Must(ts.GitHub.SetDefaultBranch(servertest.Repo, "dev/trunk"))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
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
			ts := servertest.New(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
				if tt.when(run) {
					once.Do(func() { ts.Must(ts.GitHub.SetDefaultBranch(servertest.Repo, "trunk")) })
				}
			}})
			ts.Label("acme")
			run := ts.UntilState(pipeline.StateVerified)
			if e := ts.Event(run.ID, pipeline.EventBaseRenamed); e.Data.Note != "trunk" || e.Data.Head == "" {
				t.Errorf("event %+v", e.Data)
			}
			var pulls []githubtest.Pull
			servertest.Eventually(t, func() bool {
				var err error
				pulls, err = ts.GitHub.Pulls(servertest.Repo)
				ts.Must(err)
				return len(pulls) == 1 && pulls[0].Base == "trunk" && !pulls[0].Draft && strings.Contains(pulls[0].Body, "was renamed from `main` to `trunk`")
			}, func() string { return fmt.Sprintf("pull requests: %+v", pulls) })
			if run := ts.UntilState(pipeline.StateVerified); run.Repo.DefaultBranch != "trunk" || run.Retargeted != "" {
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
	ts := servertest.New(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if run.Plan != nil {
			once.Do(func() {
				ts.Must(ts.GitHub.SetDefaultBranch(servertest.Repo, "trunk"))
				_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Stay", Files: map[string]*string{"A.md": new("x\n")}})
				ts.Must(err)
			})
		}
	}})
	ts.Label("acme")
	var pulls []githubtest.Pull
	servertest.Eventually(t, func() bool { // its text has been written anew, and with that its base was looked at
		var err error
		pulls, err = ts.GitHub.Pulls(servertest.Repo)
		ts.Must(err)
		return len(pulls) == 1 && !pulls[0].Draft
	}, func() string { return fmt.Sprintf("pull requests: %+v", pulls) })
	if run := ts.UntilState(pipeline.StateVerified); pulls[0].Base != "main" || run.Repo.DefaultBranch != "main" || run.BaseWas != "" {
		t.Errorf("it is for %s, once %q, and its pull request goes into %s", run.Repo.DefaultBranch, run.BaseWas, pulls[0].Base)
	}
}

// A default branch that does not hold what the run began from is none that it could go on
// for: it is named as what it is, with what helps.
func TestDefaultBranchIsAnother(t *testing.T) {
	t.Parallel()
	for name, trunk := range map[string]githubtest.Push{"begun anew": {Orphan: true}, "behind": {Force: true, From: "older"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			push := func(ts *servertest.Server, p githubtest.Push) {
				_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, p)
				ts.Must(err)
			}
			ts := servertest.New(t, servertest.Options{On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
				if run.Plan != nil {
					once.Do(func() {
						ts.Must(ts.GitHub.SetDefaultBranch(servertest.Repo, "trunk"))
						trunk.Branch, trunk.Message, trunk.Files = "trunk", "Go another way", map[string]*string{"A.md": new("x\n")}
						push(ts, trunk)
					})
				}
			}})
			push(ts, githubtest.Push{Branch: "older", Message: "Begin", Files: map[string]*string{"B.md": new("x\n")}})
			push(ts, githubtest.Push{Branch: "main", Message: "Go on", Files: map[string]*string{"B.md": new("x\n")}})
			ts.Label("acme")
			ts.Says("does not hold")
			run := ts.Until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
			if g := run.Gate(); g.Guard.Name != pipeline.GuardPublish || !strings.Contains(g.Question, "cancel it and give the issue the label again, or make main again and continue") {
				t.Errorf("gate %+v", g)
			}
		})
	}
}

// Another base for the pull request, as in a stack of them, is said and changes nothing
// else: the verdict stays one about the default branch.
func TestStackedBase(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "stack", Message: "Below", Files: map[string]*string{"B.md": new("x\n")}})
	ts.Must(err)
	ts.Must(ts.GitHub.As("acme").Retarget(servertest.Repo, run.Published.Pull.Number, "stack"))
	ts.Outcome("pull_request", "the verdict is about main, not about stack")
	if after := ts.UntilState(pipeline.StateVerified); after.Head != run.Head || after.Repo.DefaultBranch != "main" {
		t.Errorf("the run went on to %s for %s", after.Head, after.Repo.DefaultBranch)
	}
}
