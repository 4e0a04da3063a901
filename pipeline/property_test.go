package pipeline

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// outcomes are script lines that can answer a phase.
var outcomes = map[Phase][]string{
	PhasePlan:      {"plan ok", "plan which?", "fault agent x", "fault provider x", "fault budget x"},
	PhaseImplement: {"implement it", "implement it", "implement nothing", "implement unable why", "fault agent x", "fault environment! x"},
	PhaseReview:    {"review ok", "review ok", "review error a", "review error b, critical c", "review warning d", "review human why", "review stale", "review odd e", "fault agent x"},
	PhaseTest:      {"test ok", "test ok", "test TestA 0.9", "test TestB 0.9, TestC 0.2", "test TestD", "test none x", "test empty", "test tampered TestE", "fault sandbox x"},
}

var interruptions = []string{
	"human stop", "human resume", "human continue 2", "human accept", "human cancel", "human history", "human choose x",
	"human approve", "notice push h%d", "notice issue_edited x", "notice pull_closed", "refused x", "cost 4000000 100", "human status",
}

func anyConfig(t *rapid.T) Config {
	cfg := DefaultConfig()
	cfg.Mode = rapid.SampledFrom([]string{"auto", "manual"}).Draw(t, "mode")
	cfg.Loop.MaxIterations = rapid.IntRange(1, 7).Draw(t, "iterations")
	cfg.Loop.ReviewBounces = rapid.IntRange(0, 5).Draw(t, "review bounces")
	cfg.Loop.TestBounces = rapid.IntRange(0, 5).Draw(t, "test bounces")
	cfg.Loop.DiminishingFrom = rapid.IntRange(1, 5).Draw(t, "diminishing")
	cfg.Loop.AutoFixOnly = rapid.Bool().Draw(t, "auto fix only")
	cfg.Breaker.OnMax = rapid.SampledFrom([]string{"manual", "error", "skip"}).Draw(t, "on max")
	cfg.Breaker.MaxIterations = rapid.IntRange(1, 4).Draw(t, "breaker")
	return cfg
}

// Covers T1, T2, B3: whatever the outcomes and interruptions, a run that nobody
// talks to stops within its guards; what is verified passed review and tests on
// the very same head; and the log replays to the same run.
func TestEveryRunEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		p := newPlayer(cfg, Task{Issue: 1, Title: "x"})
		quiet := 0 // phases carried out since anybody interfered
		// A round is at most three phases with one fault less than the limit before
		// each, and rounds without a commit; the plan comes on top.
		limit := func() int { return (p.run.MaxIterations() + 1) * 3 * (cfg.Loop.Faults + staleLimit) }
		for n := range rapid.IntRange(1, 120).Draw(t, "length") {
			ref, working := p.step()
			if p.run.State.Ended() {
				break
			}
			if !working || rapid.IntRange(0, 9).Draw(t, "interrupt") == 0 {
				line := rapid.SampledFrom(interruptions).Draw(t, "interruption")
				if line == "notice push h%d" {
					line = fmt.Sprintf(line, n)
				}
				verb, rest, _ := cut(line)
				if verb == "cost" && !working {
					continue
				}
				if !p.human(verb, rest) {
					p.outcome(verb, rest, ref, true)
				}
				quiet = 0
				continue
			}
			verb, rest, _ := cut(rapid.SampledFrom(outcomes[ref.Phase]).Draw(t, "outcome"))
			if !p.outcome(verb, rest, ref, true) {
				t.Fatalf("outcome %s %s does not fit %+v", verb, rest, ref)
			}
			if quiet++; quiet > limit() {
				t.Fatalf("still running after %d phases that nobody interfered with:\n%s", quiet, p.trace.String())
			}
		}
		checkVerified(t, &p.run)
		checkReplay(t, p.events, &p.run)
	})
}

func cut(line string) (verb, rest string, ok bool) {
	for i := range line {
		if line[i] == ' ' {
			return line[:i], line[i+1:], true
		}
	}
	return line, "", false
}

func checkVerified(t *rapid.T, r *Run) {
	if r.State != StateVerified {
		return
	}
	it := r.Current()
	switch {
	case it.Review == nil || it.Tests == nil:
		t.Fatalf("verified without a review and tests")
	case it.Review.Head != r.Head || it.Tests.Head != r.Head:
		t.Fatalf("verified %s, reviewed %s, tested %s", r.Head, it.Review.Head, it.Tests.Head)
	case len(it.Review.Blocking()) > 0 || !it.Tests.OK():
		t.Fatalf("verified although something blocks")
	case r.Head == r.Base:
		t.Fatalf("verified without a commit")
	}
}

// Events in any order, fitting or not, never break the fold, and what is verified
// by an event of Decide's stays so.
func TestAnyOrderOfEvents(t *testing.T) {
	types := []EventType{
		EventRunStarted, EventRunStopped, EventRunResumed, EventRunVerified, EventRunAccepted, EventRunCancelled, EventRunFailed, EventRunSkipped,
		EventPhaseEntered, EventPhaseCompleted, EventPhaseApproved, EventPhasePassed, EventPhaseFailed, EventAgentIteration, EventToolExecuted,
		EventFinding, EventBounce, EventDiminishing, EventGuardFired, EventGateRequested, EventGateAnswered, EventGateOverride,
		EventPublishStarted, EventPublishCompleted, EventPublishFailed, EventBranchMoved, EventIssueEdited, EventReplyWanted, "of.the_future",
	}
	for range 8 { // the ones with most to break come more often
		types = append(types, EventPhaseEntered, EventPhaseCompleted, EventGateRequested, EventGateAnswered)
	}
	phases := []Phase{PhasePlan, PhaseImplement, PhaseReview, PhaseTest}
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(DefaultConfig(), Task{Issue: 1, Title: "x"})
		if rapid.Bool().Draw(t, "unstarted") {
			p.run, p.events = Run{}, nil
		}
		for range rapid.IntRange(0, 60).Draw(t, "length") {
			head := rapid.SampledFrom([]string{"", "base000", "base000", "h1"}).Draw(t, "head")
			ref := &PhaseRef{Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Iteration: rapid.IntRange(0, 1).Draw(t, "iteration"), Attempt: 1}
			d := Data{Phase: ref, Head: head}
			if rapid.Bool().Draw(t, "full") {
				d.Plan, d.Implementation = &Plan{}, &Implementation{Head: head, Parent: "base000"}
				d.Review, d.Tests = scriptedReview(head, "error x"), scriptedTests(head, "TestA 0.9")
				d.Fault, d.Bounce, d.Guard = &Fault{Class: FaultAgent}, &Bounce{Phase: ref.Phase}, &Guard{Name: rapid.SampledFrom([]GuardName{GuardNoTests, GuardUnable, GuardHuman, GuardMoved, GuardWall, GuardPublish, GuardPlan}).Draw(t, "guard"), Detail: "x"}
				d.Gate, d.Answer = &Gate{ID: "gate/1", Guard: d.Guard}, &Answer{Gate: "gate/1", Choice: rapid.SampledFrom([]string{"continue", "history", "accept"}).Draw(t, "choice")}
				d.Publication, d.Task, d.Reply = &Publication{Rev: 3, Pull: &PullRef{Number: 2}, Artefacts: map[string]Artefact{"status": {ID: 1}}}, &Task{Title: "y"}, &Reply{To: 1}
				d.Step, d.Tool = &Step{Phase: ref.Phase}, &ToolUse{Tool: "read", OK: true}
			}
			p.append(Event{Type: rapid.SampledFrom(types).Draw(t, "type"), Data: d})
			Decide(&p.run)
			ProgressOf(&p.run)
			Scratchpad(&p.run)
			Report(&p.run, 1)
		}
		checkReplay(t, p.events, &p.run)
	})
}
