package simulate

import (
	"strconv"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
)

// beyond is how many more iterations a run that was stopped is played on, to see
// whether stopping was right.
const beyond = 10

// most is where the policy "none" ends: a loop has to end somewhere.
const most = 25

// toGate is the last iteration of a run that is played until a guard stops it.
const toGate = -1

// unlimited is a limit that no run reaches.
const unlimited = 1 << 30

// policy is a loop: its configuration, and whether it hears when the implementer
// says that it cannot. A loop that knows rounds alone does not.
type policy struct {
	config  config.Config
	deaf    bool // it does not hear when the implementer says that it cannot, or doubts it
	unasked bool // it does not ask outright about what has come back
}

// fixed returns a loop that knows nothing but a limit on its iterations: every
// other guard is off.
func fixed(iterations int) policy {
	cfg := config.Default()
	cfg.Loop = config.Loop{
		MaxIterations: iterations, ReviewBounces: unlimited, TestBounces: unlimited, SameFinding: unlimited, SameFailure: unlimited,
		DiminishingFrom: unlimited, Doubts: unlimited, Faults: unlimited,
	}
	cfg.Limits = config.Limits{CostUSD: 1e6}
	cfg.Breaker.Enabled = false
	return policy{config: cfg, deaf: true}
}

// trajectory is how a run went: what it had cost after each iteration, which of them
// were useful, and how it ended.
type trajectory struct {
	useful   []bool // see world
	improved []bool
	micro    []int64 // by iteration: the cost of the run when it ended
	verified int     // the iteration that was verified; 0 for none
	sound    bool    // nothing was wrong with what was verified

	guard   pipeline.GuardName // that opened the first gate; "" for none
	stopped int                // the iteration in which it did
	cost    int64              // micro-dollars, when it was stopped or verified

	allMicro, allMillis int64 // what it cost and how long it worked, to its last iteration
}

// since counts the iterations up to the n-th that came after the last good one.
func since(good []bool, n int) int {
	count := 0
	for i := n - 1; i >= 0 && !(i < len(good) && good[i]); i-- {
		count++
	}
	return count
}

// player carries a run from action to action, as the engine does.
type player struct {
	run  pipeline.Run
	w    *world
	now  time.Time
	seq  int64
	size float64 // of the task; 1 is a middling one
	last int     // the iteration after which it ends; 0 while that is open
	policy
	said *pipeline.Implementation // what it did when it said so last
	made trajectory
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// play plays a run until it is verified or has had its last iteration. Where a
// gate opens, the answer is to continue: what the policy decided is in
// trajectory.stopped, and what would have become of the run in trajectory.verified.
// With last 0, the last iteration is the one that is beyond the first gate; with
// toGate, the run ends there.
func play(pol policy, m *Model, seed, run uint64, last int) trajectory {
	return playSized(pol, m, 1, seed, run, last)
}

// playSized is play for a task of a size: what is written grows with it, and what is
// read by half of it.
func playSized(pol policy, m *Model, size float64, seed, run uint64, last int) trajectory {
	p := &player{w: newWorld(m, seed, run), now: epoch, last: last, policy: pol, size: size}
	p.apply(pipeline.Event{ID: "start", Type: pipeline.EventRunStarted, Data: pipeline.Data{Start: &pipeline.Start{
		Repo: pipeline.Repo{Name: "simulated", DefaultBranch: "main"}, Task: pipeline.Task{Title: "a task"}, Config: pol.config, Base: "base", Branch: "forge/task",
	}}})
	for p.run.State != pipeline.StateVerified && (p.last <= 0 || len(p.run.Iterations) <= p.last) {
		if p.run.State == pipeline.StateWaiting {
			p.stop()
			if last == toGate {
				break
			}
			p.answer()
		}
		p.step()
	}
	c := &p.made
	c.useful, c.improved = p.w.useful, p.w.improved
	if p.run.State == pipeline.StateVerified {
		c.verified, c.sound = p.run.Current().Number, p.w.left() == 0
		p.note(c.verified)
		c.useful[c.verified-1], c.improved[c.verified-1] = true, true
	}
	if c.guard == "" {
		c.cost = p.run.Usage.MicroUSD
	}
	c.allMicro, c.allMillis = p.run.Usage.MicroUSD, p.run.Worked()
	return *c
}

// note keeps what the run has cost by now, as the cost of an iteration's end.
func (p *player) note(iteration int) {
	for len(p.made.micro) < iteration {
		p.made.micro = append(p.made.micro, 0)
	}
	p.made.micro[iteration-1] = p.run.Usage.MicroUSD
}

// stop notes that a run waits, and the first time that it was stopped.
func (p *player) stop() {
	c, now := &p.made, len(p.run.Iterations)
	if now > 0 {
		p.note(now)
	}
	if c.guard == "" {
		c.stopped, c.guard, c.cost = now, p.run.Gate().Guard.Name, p.run.Usage.MicroUSD
	}
}

// answer lets a run that waits go on.
func (p *player) answer() {
	gate, now := p.run.Gate(), len(p.run.Iterations)
	if p.last == 0 {
		p.last = now + beyond
	}
	choice := command.Line{Name: "continue", Args: strconv.Itoa(min(20, max(1, p.last-now)))}
	switch gate.Kind {
	case pipeline.GateClarification:
		choice = command.Line{Name: "choose", Args: "try all the same"}
	case pipeline.GateBudget:
		choice = command.Line{Name: "raise", Args: "1000"}
	}
	events, reply := p.run.Answer(choice, pipeline.Actor{Login: "simulate"}, "cli", 0, p.now)
	if len(events) == 0 {
		panic("simulate: a gate does not take continue: " + reply)
	}
	p.apply(events...)
}

func (p *player) apply(events ...pipeline.Event) {
	for _, e := range events {
		p.seq++
		e.Run, e.Seq, e.Time = 1, p.seq, p.now
		p.run.Apply(e)
	}
}

// step carries out the one action that Decide asks for.
func (p *player) step() {
	a := pipeline.Decide(&p.run)
	if a == nil {
		panic("simulate: nothing to do for " + p.run.Summary())
	}
	switch a.Kind {
	case pipeline.ActionRecord:
		if it := p.run.Current(); it != nil && a.Events[0].Type == pipeline.EventBounce {
			p.note(it.Number)
		}
		p.apply(a.Events...)
	case pipeline.ActionPublish:
		p.apply(pipeline.Event{Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pipeline.Publication{Rev: p.run.Rev, Head: p.run.Head}}})
	case pipeline.ActionWork:
		p.work(*a.Phase)
	}
}

// implement carries out the implementer's phase. What it did when it says that it
// cannot is kept for when it is told to go on, so that nothing is drawn twice.
func (p *player) implement(iteration int) *pipeline.Implementation {
	made := p.w.implement(iteration, p.run.Head)
	if p.deaf {
		made.Unable = ""
	}
	if p.deaf || p.unasked {
		made.Doubts = nil
	}
	if made.Unable != "" {
		rest := *made
		rest.Unable, p.said = "", &rest
	}
	return made
}

// work carries out a phase: what it cost, and its result or that it broke down.
func (p *player) work(ref pipeline.PhaseRef) {
	w, mean, minutes := p.w, 0.0, 0.0
	done := pipeline.Event{Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: &ref}}
	if p.said != nil && ref.Phase == pipeline.PhaseImplement { // it was answered, and goes on with what it has done
		done.Data.Implementation, p.said = p.said, nil
		p.apply(done)
		return
	}
	broken := w.breaksDown()
	if broken {
		done.Type = pipeline.EventPhaseFailed
		done.Data.Fault = &pipeline.Fault{Class: pipeline.FaultProvider, Message: "broke down"}
	}
	switch ref.Phase {
	case pipeline.PhasePlan:
		mean, minutes = costPlan, minutesPlan
		if !broken {
			done.Data.Plan = &pipeline.Plan{Summary: "a plan"}
		}
	case pipeline.PhaseImplement:
		mean, minutes = costRework*(1+p.size)/2, minutesImplement*(1+p.size)/2
		if ref.Mode == pipeline.ModeFresh {
			mean, minutes = costFresh*p.size, minutesImplement*p.size
		}
		if !broken {
			done.Data.Implementation = p.implement(ref.Iteration)
		}
	case pipeline.PhaseReview:
		mean, minutes = costReview*(1+p.size)/2, minutesReview*(1+p.size)/2
		if !broken {
			done.Data.Review = w.review(p.run.Head)
		}
	case pipeline.PhaseTest:
		mean, minutes = costTest, minutesTest
		if !broken {
			done.Data.Tests = w.test(p.run.Head)
		}
	}
	ref.Millis = w.millis(minutes)
	p.now = p.now.Add(time.Duration(ref.Millis) * time.Millisecond)
	step := pipeline.Step{Phase: ref.Phase, Iteration: ref.Iteration, Number: 1, Usage: w.cost(mean)}
	p.apply(pipeline.Event{Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &step}}, done)
}
