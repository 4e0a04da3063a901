package pipeline

import (
	"fmt"
	"strings"

	"forge/pipeline/text"
)

// ActionKind says who carries an action out.
type ActionKind string

// The kinds of actions.
const (
	ActionRecord  ActionKind = "record"  // nothing but events: a phase is entered, a bounce, a gate, an end
	ActionWork    ActionKind = "work"    // carry out the active phase
	ActionPublish ActionKind = "publish" // bring GitHub in line with the run
)

// Action is what should happen next. Its key is derived from the run and the
// step, so that a repeat is seen as one. Events are appended when it is carried
// out; they have ID, Type, Source and Data.
type Action struct {
	Key    string
	Kind   ActionKind
	Phase  *PhaseRef // of work
	Events []Event   // of record
}

// Decide says what should happen next, as a function of the run alone; nil when the
// run waits for an event: it has ended, is stopped, a gate is open, or a phase waits
// for a machine elsewhere; Alarm says for how long. Deciding again before the action
// was carried out gives the same one.
func Decide(r *Run) *Action {
	if r.State == "" {
		return nil
	}
	if r.State == StateRunning {
		if g := r.guard(); g != nil {
			return r.stopAt(*g)
		}
		if r.Active == nil {
			return r.next()
		}
	}
	// People see a phase's result and what follows from it at once, and before the
	// next phase works on what they have not seen.
	if r.Rev > r.Published.Rev && !r.publishRefused() {
		return &Action{Key: fmt.Sprintf("run/%d/publish/%d", r.ID, r.Rev), Kind: ActionPublish}
	}
	if r.State != StateRunning || r.Await != nil && !r.Await.Woken {
		return nil
	}
	return &Action{Key: r.Key(*r.Active), Kind: ActionWork, Phase: r.Active}
}

// publishRefused reports that GitHub refuses to show the run and that trying
// again is of no use: it has ended, or refused even the question about it.
func (r *Run) publishRefused() bool {
	return r.Fault != nil && (r.Fault.Class == FaultGitHub || r.Fault.Class == FaultSecret) && r.Fault.Final && (r.State.Ended() || r.Counters.PublishFaults > 1)
}

// next finds the next step of a run that is running and in no phase.
func (r *Run) next() *Action {
	it := r.Current()
	settled := r.dismissedAll(it)
	switch {
	case r.Plan == nil && r.Baseline != nil && r.Baseline.None != "" && !r.Untested: // before planning is paid for
		return r.stopAt(Guard{Name: GuardNoTests, Phase: PhasePlan, Detail: "Nothing can be verified without tests: " + r.Baseline.None})
	case r.Plan == nil:
		return r.begin(PhaseRef{Phase: PhasePlan})
	case r.Plan.Question != "" && !r.Approved:
		return r.stopAt(Guard{Name: GuardPlan, Phase: PhasePlan, Detail: r.Plan.Question})
	case r.Plan.Question != "", r.Edited: // answered, with the answer in the notes, or something else is wanted: plan again
		ref := PhaseRef{Phase: PhasePlan}
		if it != nil {
			ref.Iteration, ref.Mode = r.PlanIteration, ModeReplan
			if r.Edited {
				ref.Iteration = it.Number
			}
		}
		return r.begin(ref)
	case it == nil:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: 1, Mode: ModeFresh})
	case it.Result == "failed": // bounced; normally entered together with the bounce
		return r.begin(r.rework())
	case it.Impl == nil && !settled && (it.Review == nil || !it.Review.Ruled || it.Review.Head != r.Head):
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Impl != nil && it.Impl.Unable != "" && !(settled && it.Impl.Head == it.Impl.Parent):
		return r.stopAt(Guard{Name: GuardUnable, Phase: PhaseImplement, Detail: "The implementer needs a clarification: " + it.Impl.Unable})
	case r.nothingDone(it) && !settled && r.Counters.EmptyRounds >= staleLimit:
		return r.stopAt(Guard{Name: GuardNoProgress, Phase: PhaseImplement, Value: int64(r.Counters.EmptyRounds), Limit: staleLimit,
			Detail: fmt.Sprintf("The implementer changed nothing, %s.", map[bool]string{true: "twice", false: "again and again"}[r.Counters.EmptyRounds == staleLimit])})
	case r.nothingDone(it) && !settled:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Update != nil && len(it.Update.Conflicts) > 0:
		return r.stopAt(Guard{Name: GuardConflict, Phase: PhaseUpdate, Value: int64(len(it.Update.Conflicts)), Limit: 0,
			Detail: fmt.Sprintf("%s has moved on and does not merge by itself; conflicts in %s", r.Repo.DefaultBranch, text.Clip(text.OneLine(strings.Join(it.Update.Conflicts, ", ")), 200))})
	case it.Review == nil:
		return r.begin(PhaseRef{Phase: PhaseReview, Iteration: it.Number})
	case it.Tests == nil:
		return r.afterReview(it)
	}
	return r.afterTests(it)
}

// nothingDone reports that the implementer left the head as it was, with nothing that
// the reviewer has to rule on.
func (r *Run) nothingDone(it *Iteration) bool {
	return it.Impl != nil && it.Review == nil && !it.Disputed && it.Impl.Head == it.Impl.Parent && it.Impl.Head == r.Head
}

// dismissedAll reports that a human has dismissed what an iteration was to mend, so that
// nothing of it is left: the head is reviewed as it is.
func (r *Run) dismissedAll(it *Iteration) bool {
	return it != nil && it.Mode == ModeFixFindings && len(r.dismissals()) > 0 && len(r.unresolved()) == 0
}

// begin enters a phase. The run's Seq makes the event's ID unique and keeps it
// the same as long as nothing else has happened. In manual mode a human lets each
// step begin (R7); the first plan has the label's word.
func (r *Run) begin(p PhaseRef, before ...Event) *Action {
	step := r.Key(p)
	if r.Config.Mode == "manual" && r.Plan != nil && r.ApprovedStep != "*" && r.ApprovedStep != step && p != (PhaseRef{Phase: PhasePlan}) {
		detail := fmt.Sprintf("The next step waits for your word: %s, iteration %d.", p.Phase, p.Iteration)
		if len(r.Iterations) == 0 {
			detail = "The plan waits for your word before work begins."
		}
		return r.stopAt(Guard{Name: GuardManual, Phase: p.Phase, Detail: detail, Step: step}, before...)
	}
	p.Attempt = r.Attempts[attemptKey(p.Iteration, p.Phase)] + 1
	p.Resumed = r.Last.resumable(p, r.Head)
	return r.record(append(before, Event{Type: EventPhaseEntered, Data: Data{Phase: &p, Head: r.Head}})...)
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

// afterReview judges a review (B3, T3), together with what humans asked for.
func (r *Run) afterReview(it *Iteration) *Action {
	if why := it.Review.NeedsHuman; why != "" && !r.looked(it) {
		return r.stopAt(Guard{Name: GuardHuman, Phase: PhaseReview, Detail: "The reviewer asks for a human: " + why})
	}
	if g := r.disagreement(it); g != nil {
		return r.stopAt(*g)
	}
	if open := r.unresolved(); len(open) > 0 {
		return r.bounce(it, PhaseReview, open, nil)
	}
	if g := r.unread(it); g != nil {
		return r.stopAt(*g)
	}
	test, ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}, PhaseRef{Phase: PhaseReview, Iteration: it.Number}
	if r.Attempts[attemptKey(it.Number, PhaseTest)] > 0 || r.ApprovedStep == r.Key(test) {
		return r.begin(test) // approved before
	}
	return r.begin(test, Event{Type: EventPhaseApproved, Data: Data{Phase: &ref}})
}

// afterTests judges a test report. Verified means: something ran, nothing failed,
// and the review passed on this very head.
func (r *Run) afterTests(it *Iteration) *Action {
	t := it.Tests
	switch {
	case len(t.Failures) > 0 || len(t.Tampered) > 0:
		return r.bounce(it, PhaseTest, t.Tampered, t.Failures)
	case t.Unclean != "" && t.None == "":
		return r.stopAt(Guard{Name: GuardUnclean, Phase: PhaseTest, Detail: "no test failed, but the tests did not end well: " + text.Clip(text.OneLine(t.Unclean), 200)})
	case r.known(it) != nil:
		return r.stopAt(*r.known(it))
	case !t.OK():
		why := t.None
		if why == "" {
			why = "the tests ran, but none passed"
		}
		return r.stopAt(Guard{Name: GuardNoTests, Phase: PhaseTest, Detail: "Nothing can be verified without tests: " + why})
	case len(r.unresolved()) > 0: // asked for, or taken back, since the review
		return r.bounce(it, PhaseReview, r.unresolved(), nil)
	case r.unread(it) != nil:
		return r.stopAt(*r.unread(it))
	case r.behind() && r.Config.OnBaseMoved == "ask" && !it.Forced:
		return r.stopAt(Guard{Name: GuardBase, Phase: PhaseUpdate, Value: int64(r.Counters.Updates), Limit: updateLimit,
			Detail: fmt.Sprintf("Review and tests passed, but %s has moved on to %s since.", r.Repo.DefaultBranch, short(r.BaseHead))})
	case r.behind() && !it.Forced:
		return r.begin(PhaseRef{Phase: PhaseUpdate, Iteration: it.Number})
	}
	ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}
	return r.record(
		Event{Type: EventPhasePassed, Data: Data{Phase: &ref}},
		Event{Type: EventRunVerified, Data: Data{Head: r.Head}})
}

// behind reports that the base branch has moved on and is to be taken in.
func (r *Run) behind() bool {
	return r.BaseHead != "" && r.BaseHead != r.Base && r.Config.OnBaseMoved != "ignore" && r.Counters.Updates < updateLimit
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
	return r.begin(r.back(&b, it), Event{Type: EventBounce, Data: Data{Bounce: &b}})
}

// stopAt stops the loop: by a gate, or as the circuit breaker is told to.
func (r *Run) stopAt(g Guard, before ...Event) *Action {
	t := EventGuardFired
	if g.Name == GuardDiminishing {
		t = EventDiminishing
	}
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
