package pipeline

import (
	"fmt"

	"forge/pipeline/config"
)

// ActionKind says who carries an action out.
type ActionKind string

// The kinds of actions.
const (
	ActionRecord  ActionKind = "record"  // nothing but events: a phase is entered, a bounce, a gate, an end
	ActionWork    ActionKind = "work"    // carry out the active phase
	ActionPublish ActionKind = "publish" // bring GitHub in line with the run
	ActionSpawn   ActionKind = "spawn"   // begin the run that builds a module
	ActionTell    ActionKind = "tell"    // tell such a run what is wanted of it
)

// Action is what should happen next. Its key is derived from the run and the
// step, so that a repeat is seen as one. Events are appended when it is carried
// out; they have ID, Type, Source and Data.
type Action struct {
	Key    string
	Kind   ActionKind
	Phase  *PhaseRef // of work
	Events []Event   // of record; of spawn and tell, what is recorded when it is done

	Start *Start  // of spawn; the key is that of the run
	To    int64   // of tell: the run
	Tell  []Event // what is appended there
}

// Decide says what should happen next, as a function of the run alone; nil when the
// run waits for an event: it has ended, is stopped, a gate is open, or a phase waits
// for a machine elsewhere; Alarm says for how long. Deciding again before the action
// was carried out gives the same one.
func Decide(r *Run) *Action {
	if r.State == "" {
		return nil
	}
	if act := r.tell(); act != nil {
		return act
	}
	if r.State == StateRunning {
		if act := r.ownerFailed(); act != nil {
			return act
		}
		if g := r.guard(); g != nil {
			return r.stopAt(*g)
		}
		if r.Active == nil {
			if act := r.next(); act != await {
				return act
			}
		}
	}
	// People see a phase's result and what follows from it at once, and before the
	// next phase works on what they have not seen.
	if r.Rev > r.Published.Rev && !r.publishRefused() {
		return &Action{Key: fmt.Sprintf("run/%d/publish/%d", r.ID, r.Rev), Kind: ActionPublish}
	}
	if r.State != StateRunning || r.Active == nil || r.Await != nil && !r.Await.Woken {
		return nil
	}
	return &Action{Key: r.Key(*r.Active), Kind: ActionWork, Phase: r.Active}
}

// publishRefused reports that GitHub refuses to show the run, or that the server ends while it
// does so, and that trying again is of no use: it has ended, or refused even the question about it. The end of
// a module is shown all the same: its parent hears of it with that.
func (r *Run) publishRefused() bool {
	if r.Part != nil && r.State.Ended() {
		return false
	}
	return r.Fault != nil && (r.Fault.Class == FaultGitHub || r.Fault.Class == FaultSecret || r.Fault.Class == FaultCrash) && r.Fault.Final && (r.State.Ended() || r.Counters.PublishFaults > 1)
}

// begin enters a phase. The run's Seq makes the event's ID unique and keeps it
// the same as long as nothing else has happened. In manual mode a human lets each
// step begin (R7); the first plan has the label's word.
func (r *Run) begin(p PhaseRef, before ...Event) *Action {
	detail := fmt.Sprintf("The next step waits for your word: %s, iteration %d.", p.Phase, p.Iteration)
	switch {
	case p.Phase == PhaseMerge && p.Part != "":
		detail = fmt.Sprintf("The next step waits for your word: the module %s is merged.", p.Part)
	case len(r.Iterations) == 0:
		detail = "The plan waits for your word before work begins."
	}
	if g := r.unapproved(p.Phase, r.Key(p), detail); g != nil && r.Plan != nil && p != (PhaseRef{Phase: PhasePlan}) {
		return r.stopAt(*g, before...)
	}
	p.Attempt = r.Attempts[attemptKey(p)] + 1
	p.Resumed = r.Last.resumable(p, r.Head)
	return r.record(append(before, Event{Type: EventPhaseEntered, Data: Data{Phase: &p, Head: r.Head}})...)
}

// everyStep is what a human has let begin who approved all.
const everyStep = "*"

// unapproved asks for a human's word before a step in manual mode; nil where it has it.
func (r *Run) unapproved(p Phase, step, detail string) *Guard {
	if r.Config.Mode != config.ModeManual || r.ApprovedStep == everyStep || r.ApprovedStep == step {
		return nil
	}
	return &Guard{Name: GuardManual, Phase: p, Detail: detail, Step: step}
}

// record makes an action of events, with IDs.
func (r *Run) record(events ...Event) *Action {
	key := fmt.Sprintf("run/%d/seq/%d", r.ID, r.Seq)
	for i := range events {
		events[i].ID = fmt.Sprintf("%s/%d/%s", key, i, events[i].Type)
		events[i].Source = "forge"
	}
	return &Action{Key: key, Kind: ActionRecord, Events: events}
}

// bounce sends the work back to the phase that must act, or stops at the guard
// that says that going on does not help.
func (r *Run) bounce(it *Iteration, from Phase, findings []Finding, failures []Failure) *Action {
	b := Bounce{Phase: from, Iteration: it.Number, Count: len(findings) + len(failures), Number: 1}
	for _, f := range findings {
		b.Issues = append(b.Issues, f.Fingerprint)
		b.Weight += weight(f.Severity)
	}
	for _, f := range failures {
		b.Issues = append(b.Issues, f.Fingerprint)
		b.Weight += weight(SeverityError)
	}
	for _, past := range r.Bounces {
		if past.Phase == from && past.Iteration > r.Counters.ResetAt {
			b.Number++
		}
	}
	if g := r.loopGuard(it, &b); g != nil {
		return r.stopAt(*g)
	}
	var asked Target
	if it.Review != nil {
		asked = it.Review.SendTo
	}
	if b.Target = route(findings, failures, asked); r.Replan {
		b.Target = TargetPlan
	}
	if b.Target == TargetImplement {
		if b.Parts = r.owners(findings, failures); b.Parts != nil {
			return r.toParts(&b)
		}
	}
	return r.begin(r.back(&b, it), Event{Type: EventBounce, Data: Data{Bounce: &b}})
}

// stopAt stops the loop: by a gate, or as the circuit breaker is told to.
func (r *Run) stopAt(g Guard, before ...Event) *Action {
	t := EventGuardFired
	if g.Name == GuardDiminishing {
		t = EventDiminishing
	}
	g.Detail = r.named(g)
	fired := Event{Type: t, Data: Data{Guard: &g}}
	if g.Name == GuardBreaker {
		switch r.Config.Breaker.OnMax {
		case "error":
			return r.record(fired, Event{Type: EventRunFailed, Data: Data{Guard: &g}})
		case "skip":
			return r.record(fired, Event{Type: EventRunSkipped, Data: Data{Guard: &g}})
		}
	}
	gate := Gate{ID: fmt.Sprintf("gate/%d", len(r.Gates)+1), Kind: r.gateKind(g), Guard: &g, Question: question(g), For: r.By}
	gate.Choices = r.choices(gate.Kind, g)
	if g.Name == GuardManual { // waiting for a word is no guard that fired
		return r.record(append(before, Event{Type: EventGateRequested, Data: Data{Gate: &gate}})...)
	}
	return r.record(append(before, fired, Event{Type: EventGateRequested, Data: Data{Gate: &gate}})...)
}
