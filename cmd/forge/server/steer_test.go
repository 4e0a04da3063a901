package server_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/phase"
	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers V4: what is accepted as a known limitation is an issue of its own.
func TestKnownLimitation(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Tape: servertest.FailingTape})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate(); g.Kind != pipeline.GateStuck || g.Guard.Name != pipeline.GuardNoFix {
		t.Fatalf("it waits for %+v", g)
	}
	ts.Comment("acme", "/forge accept")
	ts.UntilState(pipeline.StateAccepted)
	ts.Says("kept as technical debt in #")
	i, err := ts.GitHub.Issue(servertest.Repo, ts.Issue+2) // the pull request is in between
	if err != nil || !strings.Contains(i.Body, "Failing test") || !strings.Contains(i.Body, "`greets`") || strings.Join(i.Labels, " ") != "technical-debt" {
		t.Errorf("the issue for what is left: %+v, %v", i, err)
	}
}

// Covers R4: front matter sets limits, and what is wrong with it is said.
func TestFrontMatter(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Title: "The greeting lacks its comma", Body: "---\nmax_refinement_attempts: 5\nlimits:\n  cost_usd: 2.5\n---\nIt prints `hello Ann`."})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if run.Config.Breaker.MaxIterations != 5 || run.Config.Limits.CostUSD != 2.5 || run.Task.Body != "It prints `hello Ann`." {
		t.Errorf("configuration %+v, text %q", run.Config, run.Task.Body)
	}
	wrong := servertest.New(t, servertest.Options{Title: "The greeting lacks its comma", Body: "---\nmax_refinement_attemps: 5\n---\nIt prints `hello Ann`."})
	wrong.Label("acme")
	wrong.Says("did you mean \"max_refinement_attempts\"")
}

// once calls f at the first event of the type.
func once(t pipeline.EventType, f func(*servertest.Server, *pipeline.Run)) func(*servertest.Server, *pipeline.Run, pipeline.Event) {
	var did sync.Once
	return func(ts *servertest.Server, r *pipeline.Run, e pipeline.Event) {
		if e.Type == t {
			did.Do(func() { f(ts, r) })
		}
	}
}

// A branch that somebody has replaced by one commit without a history, while its base has moved on,
// is merged by its trees, and what GitHub could not compare can be merged again.
func TestBranchBegunAnew(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, r *pipeline.Run) {
		ts.Push("main", "Say why", map[string]string{"WHY.md": "because\n"})
		ts.Outcome("push", "taken in before the run is verified")
		whole := map[string]*string{}
		for name, text := range servertest.Greeter() {
			whole[name] = &text
		}
		whole["greet.sh"] = new("echo hello, $1\n")
		_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: r.Branch, Message: "All in one", Orphan: true, Files: whole})
		ts.Must(err)
		ts.Outcome("push", "the run goes on from")
	})})
	ts.Label("acme")
	run := ts.Until("ends or asks", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	why, err := ts.GitHub.File(servertest.Repo, run.Head, "WHY.md")
	greet, err2 := ts.GitHub.File(servertest.Repo, run.Head, "greet.sh")
	if run.State != pipeline.StateVerified || err != nil || err2 != nil || why != "because\n" || greet != "echo hello, $1\n" {
		t.Errorf("it is %s: %+v; WHY.md %q, %v; greet.sh %q, %v", run.State, run.Gate(), why, err, greet, err2)
	}
	ts.Must(ts.GitHub.As("acme").Merge(servertest.Repo, run.Published.Pull.Number))
}

// Covers lessons 14: a base branch that moved is taken in, and what is verified is
// the merge; where it does not merge, the implementer does it by hand.
func TestBaseMoved(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, _ *pipeline.Run) {
		ts.Push("main", "Say why", map[string]string{"WHY.md": "because\n"})
		ts.Outcome("push", "taken in before the run is verified")
	})})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	why, err := ts.GitHub.File(servertest.Repo, run.Head, "WHY.md")
	greet, err2 := ts.GitHub.File(servertest.Repo, run.Head, "greet.sh")
	if err != nil || err2 != nil || why != "because\n" || greet != "echo hello, $1\n" || run.Counters.Updates != 1 {
		t.Errorf("WHY.md %q, %v; greet.sh %q, %v; %d updates", why, err, greet, err2, run.Counters.Updates)
	}
	french := func(tape string) *servertest.Server {
		ts := servertest.New(t, servertest.Options{Tape: servertest.GreeterTape + tape, On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, _ *pipeline.Run) {
			ts.Push("main", "Say it in French", map[string]string{"greet.sh": "echo bonjour $1\n"})
			ts.Outcome("push", "taken in before the run is verified")
		})})
		ts.Label("acme")
		return ts
	}
	t.Run("resolved", func(t *testing.T) {
		ts := french("-- merge 1/1 --\n@expect echo bonjour $1\n@expect greet.sh\n>>> read\npath: greet.sh\n-- merge 1/2 --\n@expect =======\n>>> submit\nsummary: Leave it\n" +
			"-- merge 1/3 --\n@expect greet.sh has a conflict marker in line 1\n>>> write\npath: greet.sh\ncontent: \"echo hello, $1 # bonjour\\n\"\n-- merge 1/4 --\n>>> submit\nsummary: Keep the comma, and the French as a remark\n")
		run := ts.UntilState(pipeline.StateVerified)
		greet, err := ts.GitHub.File(servertest.Repo, run.Head, "greet.sh")
		if err != nil || greet != "echo hello, $1 # bonjour\n" || run.Counters.Updates != 1 || len(run.Gates) != 0 {
			t.Errorf("greet.sh %q, %v; %d updates, %d questions", greet, err, run.Counters.Updates, len(run.Gates))
		}
		if pulls, err := ts.GitHub.Pulls(servertest.Repo); err != nil || len(pulls) != 1 || pulls[0].Draft {
			t.Errorf("pull requests %+v, %v", pulls, err)
		}
	})
}

// Covers lessons 13: with tests.checks the repository's own CI is a tester: what it
// finds is sent back like what local tests find, and its silence is no pass.
func TestChecksAsTester(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "-- implementer */1 --", `-- tester 1/1 --
>>> submit
failures: [{id: T1, cause: logic, analysis: The linter wants quotes., confidence: 0.9, fix: {description: quote it}}]
-- implementer 2/1 --
>>> edit
path: greet.sh
old: "echo hello, $1"
new: "echo \"hello, $1\""
-- implementer 2/2 --
>>> submit
summary: Quote it
addressed: [{id: T1, what: quoted}]
-- implementer */1 --`, 1)
	var act *githubtest.CI
	heads := map[string]bool{}
	ts := servertest.New(t, servertest.Options{
		Files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\n  checks: true\n"}, Tape: tape,
		On: func(ts *servertest.Server, r *pipeline.Run, e pipeline.Event) {
			if e.Type != pipeline.EventPhaseWaiting || heads[r.Head] {
				return
			}
			heads[r.Head] = true
			job := githubtest.Job{Name: "lint", Conclusion: "success"}
			if len(r.Iterations) == 1 {
				job.Conclusion, job.Annotations = "failure", []githubtest.Annotation{{Path: "greet.sh", Line: 1, Message: "Double quote to prevent globbing."}}
			}
			if _, err := act.Run(r.Head, githubtest.Workflow{Name: "CI", Jobs: []githubtest.Job{job}}); err != nil {
				ts.T.Error(err)
			}
		}})
	var err error
	if act, err = ts.GitHub.CI(servertest.Repo, githubtest.ActionsSlug); err != nil {
		t.Fatal(err)
	}
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 2 {
		t.Fatalf("%d iterations, want 2", len(run.Iterations))
	}
	first, last := run.Iterations[0].Tests, run.Iterations[1].Tests
	if len(first.Failures) != 1 || first.Failures[0].File != "greet.sh" || !strings.Contains(first.Failures[0].Error, "Double quote") {
		t.Errorf("what CI found: %+v", first.Failures)
	}
	if last.Passed != 2 || len(last.Suites) != 2 {
		t.Errorf("the last report: %d passed in %+v; want the local test and the check", last.Passed, last.Suites)
	}
}

// Covers lessons 13: that no check started is not a pass, and is said.
func TestNoCheckStarts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	ts := servertest.New(t, servertest.Options{
		Files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\n  checks: true\n"}, Now: clock,
		On: once(pipeline.EventPhaseWaiting, func(*servertest.Server, *pipeline.Run) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(phase.NoneLimit)
		})})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardNoTests || !strings.Contains(g.Detail, "no check started") {
		t.Errorf("it waits for %+v", g)
	}
}

// Covers S19, lessons 1: what looks like a command and is none — by a bot, in an
// edited comment, in a code block, indented, quoted — changes nothing; and of two
// answers at once one is carried out, and the other gets a polite line.
func TestCommandsThatAreNone(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "risk: 1\nfindings: []", "risk: 90\nneeds_human: it greets people\nfindings: []", 1)
	ts := servertest.New(t, servertest.Options{Tape: tape})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	for _, login := range []string{"bob", "helper[bot]"} {
		if err := ts.GitHub.SetPermission(servertest.Repo, login, "write"); err != nil {
			t.Fatal(err)
		}
	}
	ts.Comment("helper[bot]", "/forge cancel")
	ts.Outcome("issue_comment", "bot")
	id, err := ts.GitHub.As("acme").Comment(servertest.Repo, ts.Issue, "I think about it.")
	if err != nil {
		t.Fatal(err)
	}
	if err := ts.GitHub.As("acme").EditComment(servertest.Repo, id, "/forge cancel"); err != nil {
		t.Fatal(err)
	}
	ts.Outcome("issue_comment", "only new comments are read")
	for _, text := range []string{"```\n/forge cancel\n```", "    /forge cancel", "> /forge cancel", "Please /forge cancel", "/forgery cancel"} {
		ts.Comment("acme", text)
	}
	ts.Comment("acme", "/forge status")
	ts.Says("is waiting")

	var at sync.WaitGroup
	at.Go(func() { ts.Comment("acme", "/forge approve") })
	at.Go(func() { ts.Comment("bob", "/forge accept") })
	at.Wait()
	run := ts.Until("answered", func(r *pipeline.Run) bool { return r.State.Ended() })
	answers := run.Gates[0].Answers
	if len(run.Gates) != 1 || len(answers) != 1 {
		t.Fatalf("gates %+v", run.Gates)
	}
	if answers[0].Choice == "approve" {
		ts.Outcome("issue_comment", "answered:") // the other one came too late, and is told so
	}
	pull := run.Published.Pull.Number
	if _, err := ts.GitHub.As("bob").Comment(servertest.Repo, pull, "/forge continue 2"); err != nil {
		t.Fatal(err)
	}
	ts.Says("is reviewed and tested again")
	if err := ts.GitHub.As("acme").Close(servertest.Repo, pull); err != nil {
		t.Fatal(err)
	}
	if _, err := ts.GitHub.As("acme").Comment(servertest.Repo, pull, "/forge stop"); err != nil {
		t.Fatal(err)
	}
	ts.Says("so `stop` changes nothing")
}
