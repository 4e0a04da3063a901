package pipeline_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"

	"pgregory.net/rapid"
)

// outcomes are script lines that can answer a phase.
var outcomes = map[Phase][]string{
	PhaseAnalyse:   {"analyse ok", "analyse ok", "fault agent x", "fault budget x"},
	PhaseDesign:    {"design ok", "design ok", "fault agent x", "fault provider x"},
	PhasePlan:      {"plan ok", "plan which?", "fault agent x", "fault provider x", "fault budget x"},
	PhaseImplement: {"implement it", "implement it", "implement it doubts a: why", "implement nothing", "implement unable why", "fault agent x", "fault environment! x"},
	PhaseUpdate:    {"update ok", "update same", "update conflict a.go", "update markers a.go", "update resolved so", "update unable why", "fault github x"},
	PhaseReview:    {"review ok", "review ok", "review error layer @design", "review critical what @requirements > plan", "review error a", "review error b, critical c", "review warning d", "review human why", "review stale", "review odd e", "fault agent x"},
	PhaseContract:  {"contract it", "contract it", "contract unable why", "fault agent x"},
	PhaseMerge:     {"merge ok", "merge ok", "merge ok", "merge conflict go.sum", "merge fails TestX 0.9", "merge fails TestY 0.9", "merge fails TestZ 0.9", "fault github x"},
	PhaseTest:      {"test ok", "test ok", "test TestA 0.9", "test TestB 0.9, TestC 0.2", "test TestD", "test none x", "test empty", "test tampered TestE", "fault sandbox x", "wait checks"},
}

var interruptions = []string{
	"human stop", "human resume", "human continue 2", "human accept", "human cancel", "human history", "human choose x",
	"human approve", "human approve all", "human raise 3", "human take-over", "human simplify it", "human reset", "human explain",
	"human continue 2 @gate/1", "human later", "human without", "notice reviewed changes_requested more", "notice reviewed approved", "notice base_moved h%d",
	"notice branch_deleted", "notice checks", "alarm", "dismiss a", "undismiss a", "notice push h%d", "notice issue_edited x", "notice pull_closed", "refused x", "cost 4000000 100", "human status",
}

func anyConfig(t *rapid.T) config.Config {
	cfg := config.Default()
	cfg.Mode = rapid.SampledFrom([]config.Mode{"auto", "manual"}).Draw(t, "mode")
	cfg.Loop.MaxIterations = rapid.IntRange(1, 7).Draw(t, "iterations")
	cfg.Loop.ReviewBounces = rapid.IntRange(0, 5).Draw(t, "review bounces")
	cfg.Loop.TestBounces = rapid.IntRange(0, 5).Draw(t, "test bounces")
	cfg.Loop.DiminishingFrom = rapid.IntRange(1, 5).Draw(t, "diminishing")
	cfg.Loop.Doubts = rapid.IntRange(0, 3).Draw(t, "doubts")
	cfg.Loop.AutoFixOnly = rapid.Bool().Draw(t, "auto fix only")
	cfg.OnBaseMoved = rapid.SampledFrom([]string{"merge", "ask", "ignore", ""}).Draw(t, "on base moved")
	cfg.Breaker.OnMax = rapid.SampledFrom([]config.OnMax{"manual", "error", "skip"}).Draw(t, "on max")
	cfg.Breaker.MaxIterations = rapid.IntRange(1, 4).Draw(t, "breaker")
	cfg.Track = rapid.SampledFrom([]string{"", "standard", "full"}).Draw(t, "track")
	by := rapid.SampledFrom([]string{"", "agent", "off"})
	cfg.Roles = config.Roles{Analyst: by.Draw(t, "analyst"), Product: by.Draw(t, "product"), Architect: by.Draw(t, "architect"), UX: by.Draw(t, "ux")}
	return cfg
}

// Covers T1, T2, B3: whatever the outcomes and interruptions, a run that nobody
// talks to stops within its guards; what is verified passed review and tests on
// the very same head; and the log replays to the same run.
func TestEveryRunEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		p := pipelinetest.New(cfg, Task{Issue: 1, Title: "x"})
		quiet := 0 // phases carried out since anybody interfered
		// A round is at most three phases with one fault less than the limit before
		// each, and rounds without a commit; the plan comes on top.
		limit := func() int {
			return (p.Run.MaxIterations() + 1) * 3 * (cfg.Loop.Faults + 2 /* rounds without a commit */)
		}
		for n := range rapid.IntRange(1, 120).Draw(t, "length") {
			ref, working := p.Step()
			checkWaits(t, &p.Run, working)
			if p.Run.State.Ended() {
				break
			}
			if !working || rapid.IntRange(0, 9).Draw(t, "interrupt") == 0 {
				line := rapid.SampledFrom(interruptions).Draw(t, "interruption")
				if strings.HasSuffix(line, "%d") {
					line = fmt.Sprintf(line, n)
				}
				verb, rest, _ := cut(line)
				if verb == "cost" && !working {
					continue
				}
				if !p.Human(verb, rest) {
					p.Outcome(verb, rest, ref, true)
				}
				quiet = 0
				continue
			}
			verb, rest, _ := cut(rapid.SampledFrom(outcomes[ref.Phase]).Draw(t, "outcome"))
			if !p.Outcome(verb, rest, ref, true) {
				t.Fatalf("outcome %s %s does not fit %+v", verb, rest, ref)
			}
			if quiet++; quiet > limit() {
				t.Fatalf("still running after %d phases that nobody interfered with:\n%s", quiet, p.Trace.String())
			}
		}
		checkVerified(t, &p.Run)
		checkReplay(t, p.Events, &p.Run)
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

// checkWaits wants a run to be moving, or to wait for a person who has a name or a
// machine, with a time limit, or to have ended: nothing lies there for ever
// (lessons 12).
// Covers T1, V6, V9: whatever the outcomes and interruptions in a run and in those of
// its modules, none waits for nobody, and one that is verified has each module merged as
// it is or left out. All logs replay to the same runs.
func TestEveryFamilyEnds(t *testing.T) {
	t.Parallel()
	plans := []string{"split a, b", "split a, b needs a; contract api.go", "split a, b, c needs a b; unwired", "split a, b, c; contract api.go; unwired",
		"split a, b; unwired; promise a b TestX; promise b a TestY", "split a, b, c; promise a b TestX; promise a c TestY; promise c a TestZ"}
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		cfg.Modules = config.Modules{
			Mode: rapid.SampledFrom([]config.ModuleMode{"auto", "auto", "ask"}).Draw(t, "modules"), Max: 6,
			Parallel: rapid.IntRange(1, 3).Draw(t, "parallel"), Iterations: 2,
			Rounds: rapid.IntRange(1, 2).Draw(t, "rounds"), OnFailure: rapid.SampledFrom([]string{"ask", "passed", "without"}).Draw(t, "on failure"),
		}
		cfg.Upstream = config.Upstream{Enabled: rapid.Bool().Draw(t, "upstream"), Same: rapid.IntRange(0, 3).Draw(t, "same")}
		p := pipelinetest.New(cfg, Task{Issue: 1, Title: "x"})
		for n := range rapid.IntRange(1, 150).Draw(t, "length") {
			busy := p.Busy()
			all := []*pipelinetest.Player{p}
			for _, id := range slices.Sorted(maps.Keys(p.Parts)) {
				all = append(all, p.Parts[id])
			}
			who := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			ref, working := busy[who]
			if !working || rapid.IntRange(0, 9).Draw(t, "interrupt") == 0 {
				line := rapid.SampledFrom(interruptions).Draw(t, "interruption")
				if strings.HasSuffix(line, "%d") {
					line = fmt.Sprintf(line, n)
				}
				verb, rest, _ := cut(line)
				if verb != "cost" && !who.Human(verb, rest) {
					who.Outcome(verb, rest, ref, true)
				}
				continue
			}
			list := outcomes[ref.Phase]
			if cfg.Upstream.Enabled {
				list = append(told[ref.Phase], list...)
			}
			line := rapid.SampledFrom(list).Draw(t, "outcome")
			switch {
			case ref.Phase == PhasePlan && who != p && ref.Iteration == 0:
				line = "plan given"
			case ref.Phase == PhaseImplement && who != p && rapid.IntRange(0, 7).Draw(t, "contract") == 0:
				line = "implement contract of another kind"
			case ref.Phase == PhasePlan && rapid.IntRange(0, 2).Draw(t, "split") > 0:
				line = "plan " + rapid.SampledFrom(plans).Draw(t, "plan")
			}
			verb, rest, _ := cut(line)
			if !who.Outcome(verb, rest, ref, true) {
				t.Fatalf("outcome %s does not fit %+v", line, ref)
			}
		}
		checkFamily(t, p)
	})
}

// checkFamily wants nobody to wait for nobody, and what is verified to be whole.
func checkFamily(t *rapid.T, p *pipelinetest.Player) {
	busy := p.Busy()
	run := &p.Run
	waits := run.State == StateRunning && run.Active == nil
	working := false
	for id, part := range p.Parts {
		_, busy := busy[part]
		if f := part.Run.Feedback(); f != nil && (busy || part.Run.State == StateVerified) {
			t.Fatalf("the module %s is at work, or verified, with %s open:\n%s", id, f.ID, p.Trace.String())
		}
		working = working || busy || part.Run.State == StateWaiting || part.Run.State == StateStopped || part.Run.Await != nil
		if !slices.ContainsFunc(part.Run.Findings, func(is Issue) bool { return is.State == IssueAccepted }) { // these stay accepted, in a person's name
			checkVerified(t, &part.Run)
		}
		checkReplay(t, part.Events, &part.Run)
		if run.State.Ended() && !part.Run.State.Ended() {
			t.Fatalf("the run is %s, its module %s is %s:\n%s", run.State, id, part.Run.State, p.Trace.String())
		}
	}
	if waits && !working {
		t.Fatalf("the run waits for nobody:\n%s", p.Trace.String())
	}
	checkVerified(t, run)
	if run.State == StateVerified && run.Plan.Split != nil {
		for i := range run.Plan.Split.Modules {
			id := run.Plan.Split.Modules[i].ID
			if k := slices.IndexFunc(run.Parts, func(part module.Part) bool { return part.ID == id }); k < 0 || !run.Parts[k].Done() && run.Parts[k].Merged == "" { // somebody may reopen one after the end
				t.Fatalf("verified without the module %s:\n%s", id, p.Trace.String())
			}
		}
	}
	checkReplay(t, p.Events, run)
}

func checkWaits(t *rapid.T, r *Run, working bool) {
	at, events := r.Alarm()
	switch {
	case working || r.State.Ended():
		return
	case at.IsZero() || len(events) == 0:
		t.Fatalf("a run that is %s, with %+v, waits without an end", r.State, r.Active)
	case r.State == StateWaiting && r.Gate().For.Login == "", r.State == StateStopped && r.StoppedBy.Login == "",
		r.State == StateRunning && r.Await.What == "":
		t.Fatalf("a run that is %s waits for nobody", r.State)
	}
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
	case len(r.Blocking(it.Review)) > 0 || !it.Tests.OK() || len(r.Requested) > 0:
		t.Fatalf("verified although something blocks")
	case r.Head == r.Base:
		t.Fatalf("verified without a commit")
	}
}

// Events in any order, fitting or not, never break the fold, and what is verified
// by an event of Decide's stays so.
func TestAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	types := []EventType{
		EventRunStarted, EventRunStopped, EventRunResumed, EventRunVerified, EventRunAccepted, EventRunCancelled, EventRunFailed, EventRunSkipped,
		EventPhaseEntered, EventPhaseCompleted, EventPhaseApproved, EventPhasePassed, EventPhaseFailed, EventAgentIteration, EventToolExecuted,
		EventFinding, EventBounce, EventDiminishing, EventGuardFired, EventGateRequested, EventGateAnswered, EventGateOverride,
		EventPublishStarted, EventPublishCompleted, EventPublishFailed, EventBranchMoved, EventIssueEdited, "of.the_future",
		EventRunReset, EventPhaseWaiting, EventPhaseWoken, EventGateReminded, EventBranchDeleted, EventBaseMoved, EventChangesAsked, EventDismissed,
	}
	for range 8 { // the ones with most to break come more often
		types = append(types, EventPhaseEntered, EventPhaseCompleted, EventGateRequested, EventGateAnswered)
	}
	phases := []Phase{PhasePlan, PhaseImplement, PhaseReview, PhaseTest, PhaseUpdate}
	rapid.Check(t, func(t *rapid.T) {
		p := pipelinetest.New(config.Default(), Task{Issue: 1, Title: "x"})
		if rapid.Bool().Draw(t, "unstarted") {
			p.Run, p.Events = Run{}, nil
		}
		for range rapid.IntRange(0, 60).Draw(t, "length") {
			head := rapid.SampledFrom([]string{"", "base000", "base000", "h1"}).Draw(t, "head")
			ref := &PhaseRef{Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Iteration: rapid.IntRange(0, 1).Draw(t, "iteration"), Attempt: 1}
			d := Data{Phase: ref, Head: head}
			if rapid.Bool().Draw(t, "full") {
				d.Plan, d.Implementation = &Plan{}, &Implementation{Head: head, Parent: "base000"}
				d.Review, d.Tests = pipelinetest.Review(head, "error x"), pipelinetest.Tests(head, "TestA 0.9")
				d.Fault, d.Bounce, d.Guard = &Fault{Class: FaultAgent}, &Bounce{Phase: ref.Phase}, &Guard{Name: rapid.SampledFrom([]GuardName{GuardNoTests, GuardUnable, GuardDoubts, GuardHuman, GuardMoved, GuardWall, GuardPublish, GuardPlan, GuardGone, GuardConflict, GuardBase, GuardManual, GuardBudget}).Draw(t, "guard"), Detail: "x"}
				d.Gate, d.Answer = &Gate{ID: "gate/1", Guard: d.Guard}, &Answer{Gate: "gate/1", Choice: rapid.SampledFrom([]string{"continue", "history", "accept", "raise", "approve", "take-over", "simplify"}).Draw(t, "choice")}
				d.Publication, d.Task = &Publication{Rev: 3, Pull: &PullRef{Number: 2}, Artefacts: map[string]Artefact{"status": {ID: 1}}}, &Task{Title: "y"}
				d.Await, d.Update, d.Actor = &Await{What: "checks"}, &Update{Base: "b2", Parent: head, Head: "h3"}, &Actor{Login: "ann"}
				d.Signal = &Signal{Finding: d.Review.Findings[0].Fingerprint, Off: rapid.Bool().Draw(t, "off")}
				d.Step, d.Tool = &Step{Phase: ref.Phase}, &ToolUse{Tool: "read", OK: true}
			}
			p.Append(Event{Type: rapid.SampledFrom(types).Draw(t, "type"), Data: d})
			Decide(&p.Run)
			p.Run.Progress()
			p.Run.Scratchpad()
			p.Run.Report(1)
			p.Run.Explain()
		}
		checkReplay(t, p.Events, &p.Run)
	})
}
