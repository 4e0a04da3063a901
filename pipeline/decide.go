package pipeline

import (
	"fmt"
	"strings"
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

// staleLimit is how many rounds in a row may end without a commit, and
// movedLimit how often the branch may move under a run, before a human is asked.
const (
	staleLimit = 2
	movedLimit = 5
)

// Decide says what should happen next, as a function of the run alone. Nothing
// means that the run waits for an event: it has ended, is stopped, or a gate is
// open. There is at most one action at a time; deciding again before it was
// carried out gives the same one.
func Decide(r *Run) []Action {
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
		return []Action{{Key: fmt.Sprintf("run/%d/publish/%d", r.ID, r.Rev), Kind: ActionPublish}}
	}
	if r.State != StateRunning {
		return nil
	}
	return []Action{{Key: r.Key(*r.Active), Kind: ActionWork, Phase: r.Active}}
}

// publishRefused reports that GitHub refuses to show the run and that trying
// again is of no use: it has ended, or refused even the question about it.
func (r *Run) publishRefused() bool {
	return r.Fault != nil && r.Fault.Class == FaultGitHub && r.Fault.Final && (r.State.Ended() || r.Counters.PublishFaults > 1)
}

// guard checks what may fire at any moment: faults, the budget, the working time.
func (r *Run) guard() *Guard {
	c, cost, tokens := r.Counters, r.Usage.MicroUSD, r.Usage.Input+r.Usage.Output
	fault := ""
	if r.Fault != nil {
		fault = oneLine(r.Fault.Message)
	}
	switch {
	case c.PublishFaults > 0 && r.Fault != nil && r.Fault.Final:
		return &Guard{Name: GuardPublish, Value: int64(c.PublishFaults), Limit: 1, Detail: "GitHub refuses what Forge must publish: " + fault}
	case r.Fault != nil && r.Fault.Class == FaultBudget && c.Faults > 0:
		return &Guard{Name: GuardBudget, Value: cost, Limit: r.CostLimit(), Unit: "micro-USD", Detail: fault}
	case c.Faults > 0 && r.Fault != nil && r.Fault.Final:
		return &Guard{Name: GuardFaults, Value: int64(c.Faults), Limit: 1, Detail: "trying again cannot help: " + fault}
	case c.Faults >= r.Config.Loop.Faults && c.Faults > 0:
		return &Guard{Name: GuardFaults, Value: int64(c.Faults), Limit: int64(r.Config.Loop.Faults), Detail: fmt.Sprintf("broke down %d times in a row, last with: %s", c.Faults, fault)}
	case cost > 0 && cost >= r.CostLimit():
		return &Guard{Name: GuardBudget, Value: cost, Limit: r.CostLimit(), Unit: "micro-USD", Detail: fmt.Sprintf("the run has cost $%.2f of its $%.2f", float64(cost)/1e6, float64(r.CostLimit())/1e6)}
	case r.TokenLimit() > 0 && tokens >= r.TokenLimit():
		return &Guard{Name: GuardBudget, Value: tokens, Limit: r.TokenLimit(), Unit: "tokens", Detail: fmt.Sprintf("the run has used %d of its %d tokens", tokens, r.TokenLimit())}
	case r.wallLimit() > 0 && r.Worked() >= r.wallLimit():
		return &Guard{Name: GuardWall, Value: r.Worked() / 60_000, Limit: r.wallLimit() / 60_000, Unit: "minutes", Detail: fmt.Sprintf("the run has worked %d of its %d minutes", r.Worked()/60_000, r.wallLimit()/60_000)}
	case c.Moved >= movedLimit:
		return &Guard{Name: GuardMoved, Value: int64(c.Moved), Limit: movedLimit, Detail: fmt.Sprintf("the branch moved %d times under the run: somebody is working on it", c.Moved)}
	}
	return nil
}

// next finds the next step of a run that is running and in no phase.
func (r *Run) next() []Action {
	it := r.Current()
	switch {
	case r.Plan == nil:
		return r.begin(PhaseRef{Phase: PhasePlan})
	case r.Approved && r.Plan.Question != "": // answered: plan again, with the answer in the notes
		return r.begin(PhaseRef{Phase: PhasePlan})
	case r.Plan.Question != "":
		return r.stopAt(Guard{Name: GuardPlan, Phase: PhasePlan, Detail: r.Plan.Question})
	case !r.Approved && r.Config.Mode == "manual":
		return r.stopAt(Guard{Name: GuardPlan, Phase: PhasePlan, Detail: "The plan waits for your word before work begins."})
	case it == nil:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: 1, Mode: ModeFresh})
	case it.Result == "failed": // bounced; normally entered together with the bounce
		return r.begin(r.rework())
	case it.Impl == nil:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Impl.Unable != "":
		return r.stopAt(Guard{Name: GuardUnable, Phase: PhaseImplement, Detail: "The implementer needs a clarification: " + it.Impl.Unable})
	case it.Impl.Head == it.Impl.Parent && it.Impl.Head == r.Head && r.Counters.Stale >= staleLimit:
		return r.stopAt(Guard{Name: GuardNoProgress, Phase: PhaseImplement, Value: int64(r.Counters.Stale), Limit: staleLimit, Detail: "The implementer changed nothing, twice."})
	case it.Impl.Head == it.Impl.Parent && it.Impl.Head == r.Head:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Review == nil:
		return r.begin(PhaseRef{Phase: PhaseReview, Iteration: it.Number})
	case it.Tests == nil:
		return r.afterReview(it)
	}
	return r.afterTests(it)
}

// begin enters a phase. The run's Seq makes the event's ID unique and keeps it
// the same as long as nothing else has happened.
func (r *Run) begin(p PhaseRef, before ...Event) []Action {
	p.Attempt = r.Attempts[attemptKey(p.Iteration, p.Phase)] + 1
	return r.record(append(before, Event{Type: EventPhaseEntered, Data: Data{Phase: &p}})...)
}

// record makes an action of events, with IDs.
func (r *Run) record(events ...Event) []Action {
	key := fmt.Sprintf("run/%d/seq/%d", r.ID, r.Seq)
	for i := range events {
		events[i].ID = fmt.Sprintf("%s/%d/%s", key, i, events[i].Type)
		events[i].Source = "forge"
	}
	return []Action{{Key: key, Kind: ActionRecord, Events: events}}
}

// afterReview judges a review (B3, T3).
func (r *Run) afterReview(it *Iteration) []Action {
	if why := it.Review.NeedsHuman; why != "" && !it.Forced {
		return r.stopAt(Guard{Name: GuardHuman, Phase: PhaseReview, Detail: "The reviewer asks for a human: " + why})
	}
	if blocking := it.Review.Blocking(); len(blocking) > 0 {
		return r.bounce(it, PhaseReview, blocking, nil)
	}
	test, ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}, PhaseRef{Phase: PhaseReview, Iteration: it.Number}
	if r.Attempts[attemptKey(it.Number, PhaseTest)] > 0 {
		return r.begin(test) // approved before a fault
	}
	return r.begin(test, Event{Type: EventPhaseApproved, Data: Data{Phase: &ref}})
}

// afterTests judges a test report. Verified means: something ran, nothing failed,
// and the review passed on this very head.
func (r *Run) afterTests(it *Iteration) []Action {
	t := it.Tests
	switch {
	case len(t.Failures) > 0 || len(t.Tampered) > 0:
		return r.bounce(it, PhaseTest, t.Tampered, t.Failures)
	case !t.OK():
		why := t.None
		if why == "" {
			why = "the tests ran, but none passed"
		}
		return r.stopAt(Guard{Name: GuardNoTests, Phase: PhaseTest, Detail: "Nothing can be verified without tests: " + why})
	}
	ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}
	return r.record(
		Event{Type: EventPhasePassed, Data: Data{Phase: &ref}},
		Event{Type: EventRunVerified, Data: Data{Head: r.Head}})
}

// rework names the implementer's next execution after a bounce.
func (r *Run) rework() PhaseRef {
	mode := ModeFixFailures
	if b := r.Bounces[len(r.Bounces)-1]; b.Phase == PhaseReview {
		mode = ModeFixFindings
	}
	return PhaseRef{Phase: PhaseImplement, Iteration: r.Current().Number + 1, Mode: mode}
}

// bounce sends the work back to the implementer, or stops at the guard that says
// that going on does not help.
func (r *Run) bounce(it *Iteration, from Phase, findings []Finding, failures []Failure) []Action {
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
		if past.Phase == from {
			b.Number++
		}
	}
	if g := r.loopGuard(it, &b, failures); g != nil {
		return r.stopAt(*g)
	}
	mode := ModeFixFailures
	if from == PhaseReview {
		mode = ModeFixFindings
	}
	return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number + 1, Mode: mode}, Event{Type: EventBounce, Data: Data{Bounce: &b}})
}

// loopGuard returns the guard that forbids the bounce b, or nil. Those that say
// most about why come first.
func (r *Run) loopGuard(it *Iteration, b *Bounce, failures []Failure) *Guard {
	cfg, c := r.Config.Loop, r.Counters
	bounces, limit, inARow := c.ReviewBounces, cfg.ReviewBounces, c.ReviewInARow
	if b.Phase == PhaseTest {
		bounces, limit, inARow = c.TestBounces, cfg.TestBounces, c.TestInARow
	}
	if it.Number < c.Until {
		return nil // a human said so
	}
	if g := r.sameAgain(b); g != nil {
		return g
	}
	last := r.lastBounce(b.Phase)
	onlyFailures := b.Phase == PhaseTest && len(failures) == b.Count
	switch {
	case last != nil && b.Number >= cfg.DiminishingFrom && b.Count >= last.Count:
		return &Guard{Name: GuardDiminishing, Phase: b.Phase, Value: int64(b.Count), Limit: int64(last.Count),
			Detail: fmt.Sprintf("after %s of %s there are still %d to fix (%d the time before): going on does not help", plural(b.Number-1, "rework", "reworks"), b.Phase, b.Count, last.Count)}
	case it.Number >= r.MaxIterations():
		return &Guard{Name: GuardIterations, Phase: b.Phase, Value: int64(it.Number), Limit: int64(r.MaxIterations()),
			Detail: fmt.Sprintf("iteration %d of %d did not pass the %s", it.Number, r.MaxIterations(), b.Phase)}
	case bounces >= limit:
		return &Guard{Name: GuardBounces, Phase: b.Phase, Value: int64(bounces), Limit: int64(limit),
			Detail: fmt.Sprintf("the %s has sent the work back %s, its limit", b.Phase, plural(bounces, "time", "times"))}
	case r.Config.Breaker.Enabled && inARow > r.Config.Breaker.MaxIterations:
		return &Guard{Name: GuardBreaker, Phase: b.Phase, Value: int64(inARow), Limit: int64(r.Config.Breaker.MaxIterations),
			Detail: fmt.Sprintf("the circuit breaker opened: %d times in a row without a pass of the %s", inARow, b.Phase)}
	case onlyFailures && cfg.AutoFixOnly && !confident(failures, cfg.AutoFixConfidence):
		return &Guard{Name: GuardNoFix, Phase: b.Phase, Value: int64(b.Count), Limit: int64(cfg.AutoFixConfidence * 100), Unit: "per cent",
			Detail: fmt.Sprintf("none of the %s has a suggested fix with a confidence over %.2f", plural(b.Count, "failure", "failures"), cfg.AutoFixConfidence)}
	}
	return nil
}

// sameAgain finds a finding or failure of the bounce that came back too often (T2).
func (r *Run) sameAgain(b *Bounce) *Guard {
	for _, fp := range b.Issues {
		for _, is := range append(r.Findings[:len(r.Findings):len(r.Findings)], r.Failures...) {
			if is.Fingerprint() != fp || is.Phase != b.Phase {
				continue
			}
			name, limit, what := GuardSameFailure, r.Config.Loop.SameFailure, ""
			if is.Finding != nil {
				name, limit, what = GuardSameFinding, r.Config.Loop.SameFinding, is.Finding.Message
			} else {
				what = is.Failure.Test
			}
			if is.Times >= limit {
				return &Guard{Name: name, Phase: b.Phase, Value: int64(is.Times), Limit: int64(limit),
					Detail: fmt.Sprintf("the same came back %s: %s", plural(is.Times, "time", "times"), oneLine(what))}
			}
		}
	}
	return nil
}

// lastBounce returns the phase's last bounce, or nil.
func (r *Run) lastBounce(p Phase) *Bounce {
	for i := len(r.Bounces) - 1; i >= 0; i-- {
		if r.Bounces[i].Phase == p {
			return &r.Bounces[i]
		}
	}
	return nil
}

func confident(failures []Failure, over float64) bool {
	for _, f := range failures {
		if f.Fix != nil && f.Confidence > over {
			return true
		}
	}
	return false
}

func weight(s Severity) int {
	switch s {
	case SeverityInfo:
		return 1
	case SeverityWarning:
		return 2
	case SeverityError:
		return 4
	}
	return 8
}

// stopAt stops the loop: by a gate, or as the circuit breaker is told to.
func (r *Run) stopAt(g Guard) []Action {
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
	gate := Gate{ID: fmt.Sprintf("gate/%d", len(r.Gates)+1), Kind: GateEscalation, Guard: &g, Question: g.Detail}
	gate.Choices = r.choices(g, &gate.Kind)
	return r.record(fired, Event{Type: EventGateRequested, Data: Data{Gate: &gate}})
}

// choices lists what a human can say to a guard, and sets the kind of its gate.
func (r *Run) choices(g Guard, kind *GateKind) []Choice {
	cancel := Choice{Name: "cancel", Label: "give it up"}
	history := Choice{Name: "history", Label: "show everything that was tried"}
	switch {
	case g.Name == GuardPlan && r.Plan.Question == "":
		*kind = GateApproval
		return []Choice{{Name: "approve", Label: "start the work"}, cancel}
	case g.Name == GuardPlan, g.Name == GuardUnable:
		*kind = GateClarification
		out := []Choice{{Name: "choose", Arg: "ANSWER", Label: "answer in your own words"}}
		if g.Name == GuardPlan {
			for _, o := range r.Plan.Options {
				out = append(out, Choice{Name: "choose", Arg: oneLine(o), Label: oneLine(o)})
			}
		}
		return append(out, history, cancel)
	}
	label := "go on for N more iterations; words on further lines go along"
	if g.Name == GuardFaults || g.Name == GuardPublish || g.Name == GuardNoTests {
		label = "try again, once what is named above is mended"
	}
	out := []Choice{{Name: "continue", Arg: "N", Label: label}}
	if r.Head != r.Base {
		out = append(out, Choice{Name: "accept", Label: "take it as it is; what is left is written down as known issues"})
	}
	return append(out, history, cancel)
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:199]) + "…"
	}
	return s
}
