package pipeline

import (
	"forge/pipeline/command"
	"forge/pipeline/config"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// verified returns a run that is, of a local repository or of one on GitHub.
func verified(local bool) *Run {
	r := &Run{ID: 7, State: StateVerified, Ended: "review and tests passed on h1", Config: config.Default(), Base: "b0", Head: "h1", Branch: "forge/x", Repo: Repo{ID: 1, Name: "shop"}}
	r.Iterations = []Iteration{{Number: 1, Result: ResultPassed, Impl: &Implementation{Parent: "b0", Head: "h1"},
		Review: &Review{Head: "h1", Ruled: true}, Tests: &TestReport{Head: "h1", Total: 1, Passed: 1}}}
	r.Published.Head, r.Published.Pull = "h1", &PullRef{Number: 3}
	if local {
		r.Repo.ID, r.Published.Pull = 0, nil
	}
	return r
}

// Covers T9: what makes a run go on that has ended, and what does not.
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()
	ann, at := Actor{ID: 5, Login: "ann"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	says := func(r *Run, cmd command.Line, via, want string, events int) []Event {
		t.Helper()
		got, text := r.Answer(cmd, ann, via, 0, at)
		if len(got) != events || !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("Answer(%+v) = %d events, %q; want %d, %q", cmd, len(got), text, events, want)
		}
		return got
	}
	r := verified(true)
	says(r, command.Line{Name: "stop"}, "cli", "`/forge continue` with words makes it go on.", 0)
	says(r, command.Line{Name: "retry"}, "button", "", 1)
	r.Gates = []Gate{{ID: "gate/1", Closed: true, Answers: []Answer{{Choice: "accept", By: ann, At: at}}}}
	says(r, command.Line{Name: "continue", Gate: "gate/1"}, "button", "that question was answered already: ann said `accept`", 0)
	r.Gates = nil
	for _, e := range says(r, command.Line{Name: "continue", Args: "2", Text: "name it"}, "cli", "the work goes back with your words", 1) {
		r.Apply(e)
	}
	if r.State != StateRunning || len(r.Requested) != 1 || r.Counters.GrantedUntil != 3 || r.Iterations[0].Review == nil {
		t.Errorf("continued: %s, %v, %+v", r.State, r.Requested, r.Counters)
	}
	r.State = StateCancelled
	says(r, command.Line{Name: "continue"}, "cli", "Start a new run for what is left to do.", 0)

	r = verified(false)
	before := *r
	for _, n := range []Notice{{Kind: NoticePush, Branch: "forge/y", Head: "h2"}, {Kind: NoticePush, Branch: "forge/x", Head: "h1"}, {Kind: NoticeBranchDeleted, Branch: "forge/x"}} {
		if events, _ := r.Notice(n, at); len(events) > 0 {
			t.Errorf("Notice(%+v) = %v", n, events)
		}
	}
	r.State = StateRunning
	r.Apply(Event{Type: EventRunReopened, Data: Data{Note: "nothing to reopen"}})
	if r.State = StateVerified; len(r.Reopened) > 0 {
		t.Errorf("reopened %q", r.Reopened)
	}
	r.Closed = "merged"
	r.Apply(Event{Type: EventRunReopened})
	if r.State != StateVerified || before.State != StateVerified {
		t.Errorf("a closed run is %s again", r.State)
	}
}

// Covers T9: the issue's end is that of the run only where no pull request goes on.
func TestIssueAfterTheEnd(t *testing.T) {
	t.Parallel()
	ann, at := Actor{ID: 5, Login: "ann"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	apply := func(r *Run, kind NoticeKind) (said string) {
		events, said := r.Notice(Notice{Kind: kind, Actor: ann}, at)
		for _, e := range events {
			r.Apply(e)
		}
		return said
	}
	r := verified(false)
	if said := apply(r, NoticeIssueClosed); !r.Reopenable() || !strings.Contains(said, "until its pull request #3 is merged or closed") {
		t.Errorf("with an open pull request: %q, closed %q", said, r.Closed)
	}
	apply(r, NoticePullClosed)
	if apply(r, NoticeIssueReopened); r.Reopenable() {
		t.Error("the issue of a closed pull request reopens its run")
	}
	local := verified(true)
	apply(local, NoticeIssueClosed)
	if apply(local, NoticeIssueReopened); local.Reopenable() {
		t.Error("without a pull request, a run outlives its issue")
	}
}

// Covers T9: the budget of a reopened run is a fresh one; a limit that is none stays none.
func TestFreshBudget(t *testing.T) {
	t.Parallel()
	r := verified(false)
	r.Usage, r.Millis = Usage{MicroUSD: 9_500_000, Input: 4_000_000, Output: 900_000}, map[Phase]int64{PhaseTest: 119 * 60_000}
	r.Counters.Raised, r.Counters.ReviewBounces = 1_000_000, 3
	if got := r.CostLimit(); got != 11_000_000 {
		t.Errorf("CostLimit before = %d", got)
	}
	r.Apply(Event{Type: EventRunReopened, Data: Data{Head: "h2", Actor: &Actor{Login: "ann"}, Note: "ann pushed h2"}})
	if got := []int64{r.CostLimit(), r.TokenLimit(), r.WallLimit()}; !cmp.Equal(got, []int64{19_500_000, 9_900_000, 239 * 60_000}) || r.guard() != nil || r.Counters.ReviewBounces != 0 {
		t.Errorf("limits %v, guard %+v, counters %+v", got, r.guard(), r.Counters)
	}
	r.Config.Limits.Tokens, r.Config.Limits.WallMinutes = 0, 0
	if r.TokenLimit() != 0 || r.WallLimit() != 0 {
		t.Errorf("no limits became %d and %d", r.TokenLimit(), r.WallLimit())
	}
}

// Covers T8: what is unread stops a run also where it was found out after the review.
func TestUnreadAfterTests(t *testing.T) {
	t.Parallel()
	r := verified(false)
	r.State, r.Ended, r.Plan = StateRunning, "", &Plan{}
	r.Iterations[0].Review.NotReviewed = []Skipped{{Path: "logo.png", Why: "binary"}}
	r.Iterations[0].Result = "in_progress"
	act := Decide(r)
	if act == nil || act.Events[1].Data.Gate == nil || act.Events[1].Data.Gate.Guard.Name != GuardUnread {
		t.Errorf("Decide = %+v", act)
	}
}

// Covers V3, T8: who let what pass is said at the end, whatever way it came about.
func TestLetPass(t *testing.T) {
	t.Parallel()
	r := verified(false)
	failure := func(name, by string) Failure { return Failure{Test: name, KnownBy: by} }
	r.Iterations[0].Tests.Before = []Failure{failure("TestA", "settings"), failure("TestB", "dora"), failure("TestC", "ann"), failure("TestD", "dora")}
	r.Known = map[string]string{"TestC": "ann"}
	ann := Actor{Login: "ann"}
	r.Waivers = []Waiver{
		{Guard: GuardKnown, What: "1 test failed before", By: ann, Head: "h0"},
		{Guard: GuardUnread, What: "long ago", By: ann, Head: "h0"},
		{Guard: GuardDispute, What: "no longer", By: ann, Head: "h0"},
		{Guard: GuardAccepted, What: "no longer, either", By: ann, Head: "h0"},
		{Guard: GuardHuman, What: "on another head", By: ann, Head: "h0"},
		{Guard: GuardHuman, What: "it looks odd", By: Actor{Login: "bob"}, Head: "h1"},
	}
	r.Findings = []Issue{
		{Phase: PhaseReview, State: "dismissed", By: Actor{Login: "eve"}, Finding: &Finding{Severity: SeverityCritical, Message: "it leaks"}},
		{Phase: PhaseReview, State: "dismissed", By: Actor{Login: "eve"}, Finding: &Finding{Severity: SeverityInfo, Message: "a nit"}},
	}
	want := "allowed by the settings: 1 test failed before this work and still fails: TestA; let pass by @ann: 1 test failed before; let pass by @bob: it looks odd; " +
		"let pass by @dora: 2 tests failed before this work and still fail: TestB, TestD; let pass by @eve: a finding (critical), dismissed: it leaks"
	if got := r.letPass(); got != want {
		t.Errorf("letPass = %q, want %q", got, want)
	}
	if got := listed([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Errorf("listed = %q", got)
	}
}

// Covers T8: with the settings read again for an answer, the tests are found by them.
func TestAnswerWithSettings(t *testing.T) {
	t.Parallel()
	r := &Run{State: StateWaiting, Config: config.Default(), Baseline: &TestReport{None: "nothing was found"}}
	r.Gates = []Gate{{ID: "gate/1", Guard: &Guard{Name: GuardNoTests, Phase: PhasePlan}}}
	cfg := config.Default()
	cfg.Tests.Commands, cfg.Loop.MaxIterations = []string{"make test"}, 99
	r.Apply(Event{Type: EventGateAnswered, Data: Data{Answer: &Answer{Gate: "gate/1", Choice: "continue"}, Config: &cfg}})
	if !cmp.Equal(r.Config.Tests.Commands, cfg.Tests.Commands) || r.Config.Loop.MaxIterations != 5 || r.Baseline != nil {
		t.Errorf("config %+v, baseline %+v", r.Config, r.Baseline)
	}
}

// Covers I4: whoever tries again is told why the attempt before failed, where that
// was the agent's doing; what was cut off from outside goes on instead.
func TestLastFault(t *testing.T) {
	t.Parallel()
	r := &Run{State: StateRunning, Config: config.Default(), Plan: &Plan{}, Head: "h1"}
	enter := func(attempt int, head string) {
		r.Apply(Event{Type: EventPhaseEntered, Data: Data{Phase: &PhaseRef{Phase: PhaseImplement, Iteration: 1, Attempt: attempt}, Head: head}})
	}
	fail := func(class FaultClass, message string) {
		r.Apply(Event{Type: EventPhaseFailed, Data: Data{Phase: r.Active, Fault: &Fault{Class: class, Message: message}}})
	}
	resumed := func() bool { return r.Last.resumable(PhaseRef{Phase: PhaseImplement, Iteration: 1}, r.Head) }
	var got []any
	enter(1, "h1")
	got = append(got, r.LastFault())
	fail(FaultAgent, "it stagnated")
	got = append(got, resumed())
	enter(2, "h1")
	got = append(got, r.LastFault())
	fail(FaultProvider, "HTTP 500")
	got = append(got, resumed(), r.LastFault())
	enter(3, "h1")
	got = append(got, r.LastFault())
	fail(FaultEnvironment, "the disk is full")
	got = append(got, resumed())
	if want := []any{"", false, "it stagnated", true, "", "it stagnated", false}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	enter(4, "h1")
	fail(FaultBudget, "spent")
	if r.Head = "h2"; resumed() {
		t.Error("it is resumed on another head")
	}
	r.Apply(Event{Type: EventPhaseEntered, Data: Data{Phase: &PhaseRef{Phase: PhaseImplement, Iteration: 1, Attempt: 5}}})
	if r.LastFault() != "" {
		t.Errorf("where nothing is known of the head: %q", r.LastFault())
	}
}

// A provider that was waited for in vain is named with its own words.
func TestWaitedInVain(t *testing.T) {
	t.Parallel()
	r := &Run{State: StateRunning, Config: config.Default(), Loop: Loop{Counters: Counters{Faults: 1}},
		Execution: Execution{Fault: &Fault{Class: FaultProvider, Final: true, RetryAt: time.Unix(1, 0), Message: "the model's provider has not answered for 2 h"}}}
	if g := r.guard(); g == nil || g.Name != GuardFaults || g.Detail != r.Fault.Message {
		t.Errorf("guard = %+v", g)
	}
}

// Signals of something else do nothing to a run's gates.
func TestDismissalsOnly(t *testing.T) {
	t.Parallel()
	r := verified(false)
	if got := r.Dismissals([]Event{{Type: EventCommentAdded, Data: Data{Signal: &Signal{}}}, {Type: EventDismissed}}, time.Time{}); got != nil {
		t.Errorf("Dismissals = %v", got)
	}
}

// A failure from before the work gets its identity when it becomes a part of it, and a
// waiver the time of its event where the answer has none.
func TestClaimed(t *testing.T) {
	t.Parallel()
	r := verified(false)
	r.State, r.Updated = StateWaiting, time.Unix(5, 0)
	r.Iterations[0].Tests.Before = []Failure{{Test: "TestA", Error: "boom"}}
	g := Guard{Name: GuardKnown, About: []string{"TestA"}}
	r.claim(g)
	if f := r.Iterations[0].Tests.Failures; len(f) != 1 || f[0].Fingerprint == "" || len(r.Failures) != 1 {
		t.Errorf("failures %+v, followed %+v", f, r.Failures)
	}
	r.waive(g, "x", &Answer{})
	if !r.Waivers[0].At.Equal(r.Updated) {
		t.Errorf("waiver at %v", r.Waivers[0].At)
	}
	r.Iterations = nil
	r.claim(g)
}

// A finding that is contested is asked about also when nobody knows any more what the
// implementer said of it.
func TestDisagreement(t *testing.T) {
	t.Parallel()
	r := &Run{Loop: Loop{Findings: []Issue{{Phase: PhaseReview, State: "open", Upheld: 2, Finding: &Finding{Severity: SeverityError, Message: "it leaks."}}}}}
	if g := r.disagreement(&Iteration{}); g == nil || g.Detail != "implementer and reviewer disagree about 1 finding: it leaks" {
		t.Errorf("guard = %+v", g)
	}
}

// Covers V3, T8: a finding that blocks and is held back because of a dismissal elsewhere
// passes in that person's name, with the place where they said so.
func TestHeldBackIsNamed(t *testing.T) {
	t.Parallel()
	r := verified(false)
	r.Published.Pull = &PullRef{Number: 8, URL: "https://github.com/acme/shop/pull/8"}
	r.Iterations[0].Review.Suppressed = []SuppressedFinding{
		{Finding: Finding{Severity: SeverityError, Message: "it loses the sign"}, By: Actor{Login: "ann"}, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Pull: 46, Comment: 5},
		{Finding: Finding{Severity: SeverityWarning, Message: "a nit"}, By: Actor{Login: "ann"}},
		{Finding: Finding{Severity: SeverityError, Message: "by what was learnt"}},
	}
	got := r.Exceptions()
	want := "1 error held back, dismissed by @ann on 2026-01-02 in https://github.com/acme/shop/pull/46#discussion_r5 : it loses the sign"
	if len(got) != 1 || got[0].What != want || got[0].By.Login != "ann" {
		t.Errorf("exceptions %+v, want %q by ann", got, want)
	}
}

// A question shows the whole of why GitHub refuses a push. What GitHub did not take cannot
// be accepted: the run would end with work that nobody can get at.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	r := &Run{State: StateRunning, Config: config.Default(), Base: "a", Head: "b", Loop: Loop{Counters: Counters{PublishFaults: 1}}}
	r.Fault = &Fault{Class: FaultGitHub, Final: true, Message: strings.Repeat("rule ", 240) + "and what helps"}
	g := r.guard()
	if g == nil || g.Name != GuardPublish || !strings.HasSuffix(g.Detail, "and what helps") {
		t.Fatalf("guard = %+v", g)
	}
	for published, want := range map[string]bool{"": false, "a": false, "b": true} {
		r.Published.Head = published
		if got := r.acceptable(*g); got != want {
			t.Errorf("with %q on GitHub, acceptable = %v, want %v", published, got, want)
		}
	}
}
