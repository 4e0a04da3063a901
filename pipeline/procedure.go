package pipeline

import (
	"fmt"
	"strings"

	"forge/pipeline/text"
)

// procedure is the order in which a run goes through its stations. Each says what it
// still wants done on the head as it is, nil for nothing; the first that wants
// something is heard. When none does, the run is verified.
type procedure []func(r *Run, it *Iteration) *Action

// procedures has a row for each kind of run.
var procedures = map[Kind]procedure{
	KindIssue: {(*Run).wantsRoles, (*Run).wantsPlan, (*Run).wantsParts,
		(*Run).wantsBack, (*Run).wantsWork, (*Run).wantsMerge, (*Run).wantsReview, (*Run).wantsTests, (*Run).wantsRework, (*Run).wantsUpdate},

	// What was merged since is taken in before the work on it is judged.
	KindModule: {(*Run).wantsPlan, (*Run).wantsContract, (*Run).wantsBack, (*Run).wantsWork, (*Run).wantsMerge, (*Run).wantsUpdate, (*Run).wantsAsked, (*Run).wantsReview, (*Run).wantsTests, (*Run).wantsRework},
}

// next finds the next step of a run that is running and in no phase. One of a kind
// that this version does not know waits for a version that does.
func (r *Run) next() *Action {
	stations, known := procedures[r.Kind]
	if !known {
		return nil
	}
	it := r.Current()
	if act := r.wantsDecision(it, false); act != nil {
		return act
	}
	for _, wants := range stations {
		if act := wants(r, it); act != nil {
			return act
		}
	}
	if act := r.wantsDecision(it, true); act != nil {
		return act
	}
	ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}
	return r.record(
		Event{Type: EventPhasePassed, Data: Data{Phase: &ref}},
		Event{Type: EventRunVerified, Data: Data{Head: r.Head}})
}

// wantsPlan is done when there is a plan without an open question, for what is wanted now.
func (r *Run) wantsPlan(it *Iteration) *Action {
	switch {
	case r.Plan == nil && r.Baseline != nil && r.Baseline.None != "" && !r.Untested: // before planning is paid for
		return r.stopAt(Guard{Name: GuardNoTests, Phase: PhasePlan, Detail: "Nothing can be verified without tests: " + r.Baseline.None})
	case r.Plan == nil:
		return r.begin(PhaseRef{Phase: PhasePlan})
	case r.Plan.Question != "" && !r.Approved:
		return r.stopAt(Guard{Name: GuardPlan, Phase: PhasePlan, Detail: r.Plan.Question})
	case len(r.Without) > 0 && !r.Edited:
		if act := r.partFailed(); act != nil { // it goes in one
			return act
		}
		return r.begin(PhaseRef{Phase: PhasePlan, Iteration: len(r.Iterations), Mode: ModeWithout})
	case r.Plan.Question != "", r.Edited: // answered, with the answer in the notes, or something else is wanted: plan again
		ref := PhaseRef{Phase: PhasePlan}
		if it != nil {
			ref.Iteration, ref.Mode = r.PlanIteration, ModeReplan
			if r.Edited {
				ref.Iteration = it.Number
			}
		}
		return r.begin(ref)
	}
	return nil
}

// wantsContract is done when a module has the contract that it wants. Its parent has it
// revised; then it is taken in.
func (r *Run) wantsContract(it *Iteration) *Action {
	if it == nil || it.Impl == nil || it.Impl.Contract == "" || len(r.Part.Contract) == 0 || r.Refused != "" {
		return nil
	}
	if act := r.wantsMerge(it); act != nil {
		return act
	}
	if r.BaseHead == "" {
		return await
	}
	return r.wantsUpdate(it)
}

// wantsBack is done unless words for the work have let an ended run go on: it goes back
// with them, and with what failed, before anything is asked or judged again.
func (r *Run) wantsBack(it *Iteration) *Action {
	if !r.Counters.Back || len(r.Requested) == 0 || it.Result == ResultFailed {
		return nil
	}
	if t := it.Tests; t != nil && len(t.Failures)+len(t.Tampered) > 0 {
		return r.bounce(it, PhaseTest, t.Tampered, t.Failures)
	}
	return r.bounce(it, PhaseReview, r.unresolved(), nil)
}

// wantsWork is done when the implementer has made a commit, or left the head to the
// reviewer.
func (r *Run) wantsWork(it *Iteration) *Action {
	settled := r.dismissedAll(it)
	if it == nil || it.Result == ResultFailed {
		if act := r.assembled(it); act != nil {
			return act
		}
	}
	switch {
	case it == nil:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: 1, Mode: ModeFresh})
	case it.Result == ResultFailed: // bounced; normally entered together with the bounce
		return r.begin(r.rework())
	case it.Redo:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Impl == nil && !settled && (it.Review == nil || !it.Review.Ruled || it.Review.Head != r.Head):
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	case it.Impl != nil && it.Impl.Unable != "" && !(settled && it.Impl.Head == it.Impl.Parent):
		return r.stopAt(Guard{Name: GuardUnable, Phase: PhaseImplement, Detail: "The implementer needs a clarification: " + it.Impl.Unable})
	case it.Impl != nil && it.Impl.Contract != "": // there is none, or it is not revised
		why := "The implementer needs another contract: " + it.Impl.Contract
		if r.Refused != "" {
			why += " (" + r.Refused + ")"
		}
		return r.stopAt(Guard{Name: GuardUnable, Phase: PhaseImplement, Detail: why})
	case r.nothingDone(it) && !settled && r.disputedTests() != nil:
		return r.stopAt(*r.disputedTests())
	case r.nothingDone(it) && !settled && r.Counters.EmptyRounds >= staleLimit:
		return r.stopAt(Guard{Name: GuardNoProgress, Phase: PhaseImplement, Value: int64(r.Counters.EmptyRounds), Limit: staleLimit,
			Detail: fmt.Sprintf("The implementer changed nothing, %s.", map[bool]string{true: "twice", false: "again and again"}[r.Counters.EmptyRounds == staleLimit])})
	case r.nothingDone(it) && !settled:
		return r.begin(PhaseRef{Phase: PhaseImplement, Iteration: it.Number, Mode: it.Mode})
	}
	return nil
}

// Anew reports whether the head is another one than the work was sent back with: somebody else has
// pushed since, who may have done what is asked for.
func (r *Run) Anew() bool {
	n := len(r.Iterations)
	if n < 2 || r.Iterations[n-1].Update != nil {
		return false
	}
	sent := ""
	switch back := &r.Iterations[n-2]; {
	case back.Tests != nil:
		sent = back.Tests.Head
	case back.Review != nil:
		sent = back.Review.Head
	}
	return sent != "" && r.Head != sent
}

// nothingDone reports that the implementer left the head as it was, with nothing that
// the reviewer has to rule on.
func (r *Run) nothingDone(it *Iteration) bool {
	return it.Impl != nil && it.Mode != ModeWire && it.Review == nil && !it.Disputed && !it.Impl.Anew && it.Impl.Head == it.Impl.Parent && it.Impl.Head == r.Head &&
		!r.doneBefore(it)
}

// dismissedAll reports that a human has dismissed what an iteration was to mend, so that
// nothing of it is left: the head is reviewed as it is.
func (r *Run) dismissedAll(it *Iteration) bool {
	return it != nil && (it.Mode == ModeFixFindings || it.Mode == ModeFixFailures && len(r.aboutTests()) == 0 && !r.failing()) && len(r.dismissals()) > 0 && len(r.unresolved()) == 0
}

// wantsMerge is done unless the base branch conflicts with the work. The implementer
// resolves that, or a human whom it asks.
func (r *Run) wantsMerge(it *Iteration) *Action {
	u := it.Update
	switch {
	case u == nil || len(u.Conflicts) == 0:
		return nil
	case u.Markers != "" && u.Unable == "":
		return r.begin(PhaseRef{Phase: PhaseUpdate, Iteration: it.Number, Mode: ModeConflict})
	}
	return r.stopAt(*r.conflict(u, u.Unable))
}

// conflict asks about a merge of the base branch that neither git nor the implementer does.
func (r *Run) conflict(u *Update, unable string) *Guard {
	detail := fmt.Sprintf("%s has moved on to %s and does not merge by itself; conflicts in %s",
		r.Repo.DefaultBranch, text.ShortSHA(u.Base), text.Clip(text.OneLine(strings.Join(u.Conflicts, ", ")), 200))
	if unable != "" {
		detail += ". The implementer could not resolve them: " + text.Clip(text.OneLine(unable), 300)
	}
	return &Guard{Name: GuardConflict, Phase: PhaseUpdate, Value: int64(len(u.Conflicts)), Detail: detail}
}

// unmerged is the merge of the base branch that the implementer is to resolve, nil for none.
func (r *Run) unmerged() *Update {
	if it := r.Current(); it != nil && it.Update != nil && len(it.Update.Conflicts) > 0 && it.Update.Markers != "" {
		return it.Update
	}
	return nil
}

// wantsAsked sends a module back with what the integration found in it, before anybody
// reviews it as it is.
func (r *Run) wantsAsked(it *Iteration) *Action {
	if len(r.Requested) > 0 && it.Result != ResultFailed {
		return r.wantsRework(it)
	}
	return nil
}

// wantsReview is done when the head was reviewed and nothing sends it back (B3, T3),
// together with what humans asked for. What comes after the tests began is judged by
// wantsRework.
func (r *Run) wantsReview(it *Iteration) *Action {
	if it.Review == nil || it.Review.Head != r.Head {
		return r.begin(PhaseRef{Phase: PhaseReview, Iteration: it.Number})
	}
	if it.Tests != nil && it.Tests.Head == r.Head {
		return nil
	}
	if why := it.Review.NeedsHuman; why != "" && !r.looked(it) {
		return r.stopAt(Guard{Name: GuardHuman, Phase: PhaseReview, Detail: "The reviewer asks for a human: " + why})
	}
	if g := r.disagreement(it); g != nil {
		return r.stopAt(*g)
	}
	return r.wantsRework(it)
}

// wantsTests is done when the head was tested: something ran, and nothing failed.
func (r *Run) wantsTests(it *Iteration) *Action {
	t := it.Tests
	switch {
	case t == nil || t.Head != r.Head:
		test, ref := PhaseRef{Phase: PhaseTest, Iteration: it.Number}, PhaseRef{Phase: PhaseReview, Iteration: it.Number}
		if r.Attempts[attemptKey(test)] > 0 || r.ApprovedStep == r.Key(test) {
			return r.begin(test) // approved before
		}
		return r.begin(test, Event{Type: EventPhaseApproved, Data: Data{Phase: &ref}})
	case len(t.Failures) == 0 && len(t.Tampered) > 0 && r.disputedTests() != nil:
		return r.stopAt(*r.disputedTests())
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
	case len(r.unmeasured(t)) > 0:
		return r.stopAt(Guard{Name: GuardUnclean, Phase: PhaseTest, Detail: "the tests passed, but what blocks was not measured on this commit: " +
			strings.Join(r.unmeasured(t), ", ")})
	case r.Part == nil && it.Review.Unread() && !r.looked(it):
		return r.stopAt(Guard{Name: GuardHuman, Phase: PhaseTest, Detail: "The tests pass, but nobody has read the change: " +
			text.Clip(it.Review.NotReviewed[0].Why, 200) + ". Tests show a part of what a task asks for: read it before it is called verified."})
	}
	return nil
}

// wantsRework is done when nothing of the review blocks, was asked for, or taken back
// since, and all of the change was read.
func (r *Run) wantsRework(it *Iteration) *Action {
	if open := r.unresolved(); len(open) > 0 {
		return r.bounce(it, PhaseReview, open, nil)
	}
	if g := r.unread(it); g != nil {
		return r.stopAt(*g)
	}
	return nil
}

// wantsUpdate is done when the work stands on the base branch as it is, or a human
// lets it go without.
func (r *Run) wantsUpdate(it *Iteration) *Action {
	switch {
	case !r.behind() || it.Forced:
		return nil
	case r.Config.OnBaseMoved == "ask":
		detail := fmt.Sprintf("Review and tests passed, but %s has moved on to %s since.", r.Repo.DefaultBranch, text.ShortSHA(r.BaseHead))
		if r.Apart {
			detail = fmt.Sprintf("Review and tests passed, but the branch has no history in common with %s, so that it cannot be merged.", r.Repo.DefaultBranch)
		}
		return r.stopAt(Guard{Name: GuardBase, Phase: PhaseUpdate, Value: int64(r.Counters.Updates), Limit: updateLimit, Detail: detail})
	}
	return r.begin(PhaseRef{Phase: PhaseUpdate, Iteration: it.Number})
}

// behind reports that the base branch has moved on and is to be taken in.
func (r *Run) behind() bool {
	return r.BaseHead != "" && (r.BaseHead != r.Base || r.Apart) && r.Config.OnBaseMoved != "ignore" && r.Counters.Updates < updateLimit
}
