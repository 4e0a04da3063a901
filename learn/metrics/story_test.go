package metrics

import (
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
)

// start is the time at which stories begin.
var start = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

// teller makes up the log of a run, choice by choice: pick returns a number from 0
// to n-1, the small ones being the ordinary ones. What it tells follows the loop, so that every result is taken in; how
// much time passes is open, so that runs cross the ends of days.
type teller struct {
	pick   func(n int) int
	run    pipeline.Run
	events []pipeline.Event
	now    time.Time
	heads  int
	steps  int // most turns of an agent in a phase
	given  map[pipeline.Phase][]int64
}

func newTeller(pick func(n int) int, repo string, at time.Time, steps int) *teller {
	g := &teller{pick: pick, now: at, steps: steps, given: map[pipeline.Phase][]int64{}}
	g.add(pipeline.EventRunStarted, pipeline.Data{Start: &pipeline.Start{
		Repo: pipeline.Repo{Name: repo, DefaultBranch: "main"}, Task: pipeline.Task{Title: "Do it"}, Config: config.Default(), Base: "base", Branch: "forge/it"}})
	return g
}

func (g *teller) wait(most time.Duration) {
	g.now = g.now.Add(time.Duration(g.pick(1000)) * most / 1000).Truncate(time.Millisecond)
}

func (g *teller) add(typ pipeline.EventType, data pipeline.Data) {
	n := len(g.events) + 1
	e := pipeline.Event{ID: fmt.Sprint("e", n), Run: 1, Seq: int64(n), Type: typ, Source: "forge", Time: g.now, Data: data}
	g.events = append(g.events, e)
	g.run.Apply(e)
}

// tell tells a run up to its end, or to some moment before.
func (g *teller) tell() []pipeline.Event {
	ref := &pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
	if !g.phase(ref, pipeline.Data{Plan: &pipeline.Plan{Summary: "so"}}) {
		return g.events
	}
	for i := 1; i <= 4 && g.run.State == pipeline.StateRunning; i++ {
		if !g.iteration(i) {
			break
		}
	}
	g.people()
	return g.events
}

// phase tells an execution; it reports false when the story breaks off.
func (g *teller) phase(ref *pipeline.PhaseRef, data pipeline.Data) bool {
	for attempt := 1; ; attempt++ {
		r := *ref
		r.Attempt = attempt
		g.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &r})
		g.recall(r)
		g.agent(r)
		if g.pick(40) == 39 {
			return false
		}
		r.Millis = int64(g.pick(40 * 60_000))
		g.wait(40 * time.Minute)
		if g.pick(10) == 9 && attempt < 3 {
			g.add(pipeline.EventPhaseFailed, pipeline.Data{Phase: &r, Fault: &pipeline.Fault{Class: pipeline.FaultAgent, Message: "no"}})
			continue
		}
		data.Phase = &r
		g.add(pipeline.EventPhaseCompleted, data)
		g.add([]pipeline.EventType{pipeline.EventPublishCompleted, pipeline.EventPublishFailed}[g.pick(5)/4],
			pipeline.Data{Fault: &pipeline.Fault{Class: pipeline.FaultGitHub}})
		return true
	}
}

func (g *teller) recall(ref pipeline.PhaseRef) {
	if g.pick(2) == 0 {
		return
	}
	r := &pipeline.Recall{Phase: ref.Phase, Iteration: ref.Iteration, Role: config.Role(ref.Phase)}
	for id := range int64(4) {
		switch g.pick(3) {
		case 0:
			r.Given = append(r.Given, id)
		case 1:
			r.Withheld = append(r.Withheld, id)
		}
	}
	g.add(pipeline.EventRecalled, pipeline.Data{Recall: r})
	if len(r.Given) > 0 && g.pick(2) == 0 {
		g.wait(30 * time.Hour)
		g.add(pipeline.EventUsed, pipeline.Data{Recall: &pipeline.Recall{Phase: r.Phase, Iteration: r.Iteration, Role: r.Role, Used: r.Given[:1]}})
	}
}

func (g *teller) agent(ref pipeline.PhaseRef) {
	if ref.Phase == pipeline.PhaseTest {
		return
	}
	for step := 1; step <= g.pick(g.steps+1); step++ {
		s := &pipeline.Step{Phase: ref.Phase, Iteration: ref.Iteration, Number: step, Usage: pipeline.Usage{Calls: 1, MicroUSD: int64(g.pick(50_000))}}
		if g.pick(12) == 0 {
			s.Advice = "look elsewhere"
		}
		first := g.pick(2) == 0 // tools may be told before their turn
		if first {
			g.add(pipeline.EventAgentIteration, pipeline.Data{Step: s})
		}
		for range g.pick(4) {
			tool := []string{"read", "edit", "run", "No Such Tool"}[g.pick(4)]
			g.add(pipeline.EventToolExecuted, pipeline.Data{
				Tool: &pipeline.ToolUse{Phase: ref.Phase, Iteration: ref.Iteration, Step: step, Tool: tool, OK: g.pick(4) > 0,
					Millis: int64(g.pick(3000))}})
		}
		if !first {
			g.add(pipeline.EventAgentIteration, pipeline.Data{Step: s})
		}
	}
}

// iteration tells a round of the loop; false when there is none after it.
func (g *teller) iteration(n int) bool {
	parent := g.run.Head
	g.heads++
	head := fmt.Sprint("head", g.heads)
	if !g.phase(&pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: n, Mode: pipeline.ModeFresh},
		pipeline.Data{Implementation: &pipeline.Implementation{Parent: parent, Head: head}}) {
		return false
	}
	review := &pipeline.Review{Head: head}
	var issues []string
	for i := range 5 {
		if g.pick(4) < 3 {
			continue
		}
		f := pipeline.Finding{Severity: pipeline.SeverityError, Category: []pipeline.Category{"style", "security", "nonsense"}[i%3],
			Rule: fmt.Sprint("rule", i), Message: fmt.Sprint("words of their own ", i), File: fmt.Sprint("file", i, ".go"), Line: 1,
			Code: fmt.Sprint("code", i)}
		f.Fingerprint = f.Digest()
		review.Findings = append(review.Findings, f)
		issues = append(issues, f.Fingerprint)
	}
	if !g.phase(&pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: n}, pipeline.Data{Review: review}) {
		return false
	}
	if len(issues) > 0 {
		return g.back(pipeline.PhaseReview, n, issues)
	}
	g.add(pipeline.EventPhaseApproved, pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: n}})
	tests := &pipeline.TestReport{Head: head, Total: 3, Passed: 3}
	for i := range 3 {
		if g.pick(5) == 4 {
			fp := fmt.Sprint("failure", i)
			tests.Failures = append(tests.Failures, pipeline.Failure{Fingerprint: fp, Test: fp})
			issues = append(issues, fp)
		}
	}
	if !g.phase(&pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: n}, pipeline.Data{Tests: tests}) {
		return false
	}
	if len(issues) > 0 {
		return g.back(pipeline.PhaseTest, n, issues)
	}
	g.add(pipeline.EventRunVerified, pipeline.Data{})
	return false
}

// back sends the work back, or asks a human.
func (g *teller) back(p pipeline.Phase, n int, issues []string) bool {
	if n > 1 && g.pick(3) == 2 || g.pick(8) == 7 {
		guard := &pipeline.Guard{Name: pipeline.GuardIterations, Phase: p}
		g.add([]pipeline.EventType{pipeline.EventDiminishing, pipeline.EventGuardFired}[g.pick(2)], pipeline.Data{Guard: guard})
		if !g.ask(guard) {
			return false
		}
	}
	g.add(pipeline.EventBounce, pipeline.Data{Bounce: &pipeline.Bounce{Number: 1, Phase: p, Iteration: n, Count: len(issues),
		Weight: len(issues), Issues: issues}})
	if g.pick(15) == 14 {
		g.add(pipeline.EventRunCancelled, pipeline.Data{Note: "enough"})
		return false
	}
	return true
}

// ask tells a question to a human; false when the run does not go on.
func (g *teller) ask(guard *pipeline.Guard) bool {
	kinds := []pipeline.GateKind{pipeline.GateEscalation, pipeline.GateStuck, pipeline.GateBudget, pipeline.GateHuman, pipeline.GateApproval,
		pipeline.GateClarification}
	id := fmt.Sprintf("gate/%d", len(g.run.Gates)+1)
	g.add(pipeline.EventGateRequested, pipeline.Data{Gate: &pipeline.Gate{ID: id, Kind: kinds[g.pick(len(kinds))], Guard: guard}})
	answer := func(choice string) *pipeline.Answer {
		return &pipeline.Answer{Gate: id, Choice: choice, N: 1, By: pipeline.Actor{ID: 1, Login: "ann"}, At: g.now}
	}
	g.wait(50 * time.Hour)
	switch g.pick(6) {
	case 0:
		return false // nobody answers
	case 1:
		g.add(pipeline.EventRunCancelled, pipeline.Data{Note: "nobody has answered"})
		return false
	case 2:
		a := answer("accept")
		g.add(pipeline.EventGateAnswered, pipeline.Data{Answer: a})
		g.add(pipeline.EventGateOverride, pipeline.Data{Answer: a})
		g.add(pipeline.EventRunAccepted, pipeline.Data{Answer: a})
		return false
	case 3:
		g.add(pipeline.EventGateAnswered, pipeline.Data{Answer: answer("history")})
		g.wait(5 * time.Hour)
	}
	g.add(pipeline.EventGateAnswered, pipeline.Data{Answer: answer("continue")})
	return true
}

// people tells what people do with the findings, and what is learnt.
func (g *teller) people() {
	for range g.pick(2) {
		g.add(pipeline.EventReflection, pipeline.Data{Reflection: &pipeline.Reflection{Trigger: "run_ended", Learnings: slices.Repeat([]int64{1}, g.pick(4))}})
	}
	for i, is := range g.run.Findings {
		for off := range g.pick(3) {
			g.wait(60 * time.Hour)
			g.add(pipeline.EventDismissed, pipeline.Data{
				Signal: &pipeline.Signal{Key: fmt.Sprint("dismissed/", i), Kind: pipeline.SignalDismissed, At: g.now, Off: off == 1,
					Finding: is.Fingerprint()}})
		}
	}
}
