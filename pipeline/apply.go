package pipeline

import (
	"fmt"
	"slices"
	"time"

	"forge/pipeline/text"
)

// Apply folds one event into the run. It never fails: an event that does not fit
// the run's state changes nothing but Seq, and types that this version does not
// know are passed over, so that an older program can read a newer log.
func (r *Run) Apply(e Event) {
	r.Seq = e.Seq
	r.Updated = e.Time
	if r.State == "" && e.Type != EventRunStarted {
		return
	}
	if r.applyLife(e) || r.applyHuman(e) || r.applyElsewhere(e) || r.applyPublish(e) {
		return
	}
	switch e.Type {
	case EventPhaseEntered:
		r.enter(e)
	case EventPhaseCompleted:
		r.complete(e)
	case EventPhaseFailed:
		r.fail(e)
	case EventPhaseWaiting:
		if w := e.Data.Await; w != nil && r.active(e.Data.Phase) {
			await := *w
			r.Await = &await
			if w.Model && w.Next.Sub(e.Time) >= time.Minute { // people see what it waits for, and until when
				r.Rev = e.Seq
			}
		}
	case EventPhaseWoken:
		if r.Await != nil {
			await := *r.Await
			await.Woken = true
			r.Await = &await
		}
	case EventPhaseApproved:
		r.Counters.ReviewInARow = 0
	case EventPhasePassed:
		r.Counters.TestInARow = 0
	case EventBounce:
		r.bounced(e)
	case EventAgentIteration:
		if s := e.Data.Step; s != nil {
			count(&r.Steps, s.Phase, 1)
			r.spend(s.Phase, s.Usage)
		}
	case EventToolExecuted:
		if t := e.Data.Tool; t != nil {
			st := r.Tools[t.Tool]
			st.Calls++
			st.Millis += t.Millis
			if t.OK {
				st.OK++
			}
			put(&r.Tools, t.Tool, st)
		}
	}
}

// applyLife handles the events that start and end a run.
func (r *Run) applyLife(e Event) bool {
	switch e.Type {
	case EventRunStarted:
		s := e.Data.Start
		if r.State != "" || s == nil {
			return true
		}
		*r = Run{
			ID: e.Run, Trace: e.Trace, Seq: e.Seq, State: StateRunning, Started: e.Time, Updated: e.Time,
			Repo: s.Repo, Task: s.Task, By: s.By, Config: s.Config, Base: s.Base, Branch: s.Branch, Head: s.Base,
		}
	case EventRunVerified:
		why := "review and tests passed on " + short(r.Head)
		if who := r.letPass(); who != "" {
			why += "; " + who
		}
		r.end(StateVerified, why)
	case EventRunReopened:
		r.reopen(e)
	case EventRunClosed:
		if r.Reopenable() {
			r.Closed = e.Data.Note
		}
		return true // nobody looks for it on GitHub
	case EventRunAccepted:
		r.end(StateAccepted, "accepted with its known issues"+by(e.Data.Answer))
		for i := range r.Findings {
			accept(&r.Findings[i])
		}
		for i := range r.Failures {
			accept(&r.Failures[i])
		}
	case EventRunCancelled:
		why := "cancelled" + by(e.Data.Answer)
		if e.Data.Note != "" {
			why += ": " + e.Data.Note
		}
		r.end(StateCancelled, why)
	case EventRunFailed, EventRunSkipped:
		state := StateFailed
		if e.Type == EventRunSkipped {
			state = StateSkipped
		}
		why := string(state)
		if g := e.Data.Guard; g != nil {
			why = g.Detail
		}
		r.end(state, why)
	default:
		return false
	}
	r.Rev = e.Seq
	return true
}

// end closes the run; a run ends once.
func (r *Run) end(s State, why string) {
	if r.State.Ended() {
		return
	}
	r.State, r.Ended, r.Active, r.Await = s, why, nil, nil
	if g := r.Gate(); g != nil {
		g.Closed = true
	}
	if it := r.Current(); it != nil && it.Result == "in_progress" {
		it.Result, it.Ended = "failed", r.Updated
		if s == StateVerified {
			it.Result = "passed"
		}
	}
}

// applyHuman handles what people say: stop, resume, answer, ask for changes.
func (r *Run) applyHuman(e Event) bool {
	switch e.Type {
	case EventRunStopped:
		if r.State == StateRunning || r.State == StateWaiting {
			r.State, r.Stopped, r.StoppedBy = StateStopped, e.Time, Actor{}
			if a := e.Data.Answer; a != nil {
				r.StoppedBy = a.By
			}
		}
	case EventRunResumed:
		if r.State == StateStopped {
			r.State, r.Stopped, r.StoppedBy = StateRunning, time.Time{}, Actor{}
			if r.Gate() != nil {
				r.State = StateWaiting
			}
		}
	case EventRunReset:
		r.reset(e.Data.Answer)
	case EventGateRequested:
		if g := e.Data.Gate; g != nil && r.State == StateRunning {
			opened := *g
			opened.Opened = e.Time
			r.Gates = append(r.Gates, opened)
			r.State, r.Active, r.Await = StateWaiting, nil, nil
		}
	case EventGateReminded:
		if g := r.Gate(); g != nil {
			g.Reminded = e.Time
		}
	case EventGateAnswered:
		r.answered(e.Data.Answer, e.Data.Config)
	case EventChangesAsked:
		if v := e.Data.Review; v != nil && !r.State.Ended() {
			r.changesAsked(v, e.Data.Actor)
		}
	default:
		return false
	}
	r.Rev = e.Seq
	return true
}

// applyElsewhere handles what happens to the branch, its base, the issue, and what
// people do with findings. What does not show on GitHub leaves Rev alone.
func (r *Run) applyElsewhere(e Event) bool {
	switch e.Type {
	case EventBranchMoved:
		r.moved(e)
	case EventBranchDeleted:
		r.BranchDeleted = !r.State.Ended()
	case EventBaseMoved:
		r.BaseHead = e.Data.Head
		return true
	case EventIssueEdited:
		if t := e.Data.Task; t != nil {
			r.Task.Title = t.Title
			_, r.Task.Body = text.FrontMatter(t.Body) // the snapshot of the settings stays (R4)
			r.wishChanged(e.Data.Actor)
		}
		return true
	case EventDismissed:
		r.dismiss(e.Data.Signal, e.Data.Actor)
		return true
	default:
		return false
	}
	r.Rev = e.Seq
	return true
}

// reset lets the guards count from here (R9). A gate that a guard of the loop
// opened is answered by it.
func (r *Run) reset(a *Answer) {
	r.Counters = Counters{Granted: r.Counters.Granted, Raised: r.Counters.Raised, ResetAt: len(r.Iterations), DoubtsAckedAt: len(r.Iterations)}
	for _, list := range [][]Issue{r.Findings, r.Failures} {
		for i := range list {
			list[i].Times = 0
		}
	}
	if g := r.Gate(); g != nil && (g.Kind == GateEscalation || g.Kind == GateStuck) {
		answer := Answer{Choice: "reset", Gate: g.ID}
		if a != nil {
			answer.By, answer.Via, answer.At = a.By, a.Via, a.At
		}
		g.Answers, g.Closed = append(g.Answers, answer), true
		if g.Guard != nil {
			r.grant(*g.Guard, 1, &answer)
		}
		if r.State == StateWaiting {
			r.State = StateRunning
		}
	}
}

// changesAsked takes in what a human's review wants changed. The loop may go on
// for it, whatever its guards say.
func (r *Run) changesAsked(v *Review, by *Actor) {
	for _, f := range v.Findings {
		if r.ask(f) && by != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, in a review%s: %s", by.Login, at(f.File, f.Line), text.Clip(text.OneLine(f.Message), 200)))
		}
	}
	r.Counters.GrantedUntil = max(r.Counters.GrantedUntil, len(r.Iterations)+1)
}

// applyPublish records what GitHub shows.
func (r *Run) applyPublish(e Event) bool {
	switch e.Type {
	case EventPublishCompleted, EventPublishFailed:
		if p := e.Data.Publication; p != nil {
			if p.Head != "" {
				r.Published.Head = p.Head
			}
			if p.Pull != nil {
				r.Published.Pull = p.Pull
			}
			for k, a := range p.Artefacts {
				put(&r.Published.Artefacts, k, a)
			}
			r.Published.Calls += p.Calls
		}
		if e.Type == EventPublishCompleted {
			r.Counters.PublishFaults = 0
			if p := e.Data.Publication; p != nil {
				r.Published.Rev = p.Rev
			}
			if r.Fault != nil && r.Fault.Class == FaultGitHub {
				r.Fault = nil
			}
			return true
		}
		r.Counters.PublishFaults++
		r.Fault = e.Data.Fault
		return true
	}
	return false
}

// enter marks a phase as begun.
func (r *Run) enter(e Event) {
	p := e.Data.Phase
	if p == nil || r.State != StateRunning {
		return
	}
	if p.Phase == PhaseImplement && p.Iteration == len(r.Iterations)+1 {
		r.Iterations = append(r.Iterations, Iteration{Number: p.Iteration, Mode: p.Mode, Started: e.Time, Result: "in_progress"})
	}
	if p.Phase != PhasePlan && (len(r.Iterations) == 0 || p.Iteration != len(r.Iterations)) {
		return
	}
	ref := *p
	r.Active, r.Await = &ref, nil
	count(&r.Attempts, attemptKey(p.Iteration, p.Phase), 1)
	if e.Data.Head != "" {
		r.Last = r.Last.next(ref, e.Data.Head)
	}
	r.Rev = e.Seq
}

// complete takes a phase's result in. A result of a phase that is not active, or
// of another head than the run's, is stale and changes nothing (lessons 14).
func (r *Run) complete(e Event) {
	p := e.Data.Phase
	if !r.active(p) {
		return
	}
	it := r.Current()
	r.Await = nil
	switch d := e.Data; {
	case p.Phase == PhasePlan && d.Plan != nil:
		r.planned(p, d)
	case p.Phase == PhasePlan && d.Tests != nil && r.Plan == nil: // nothing to test with: it was not planned
		r.Baseline = d.Tests
	case p.Phase == PhaseImplement && d.Implementation != nil:
		it.Impl = d.Implementation
		r.implemented(it)
	case p.Phase == PhaseReview && d.Review != nil && d.Review.Head == r.Head:
		it.Review = d.Review
		r.reviewed(it)
	case p.Phase == PhaseTest && d.Tests != nil && d.Tests.Head == r.Head:
		it.Tests = d.Tests
		r.tested(it)
	case p.Phase == PhaseUpdate && d.Update != nil && d.Update.Parent == r.Head:
		r.updated(it, d)
	default: // no result, or one of another head
		r.Active, r.Last = nil, nil
		r.Counters.Faults++
		return
	}
	for _, path := range e.Data.Instructions {
		if !slices.Contains(r.Instructions, path) {
			r.Instructions = append(r.Instructions, path)
		}
	}
	count(&r.Millis, p.Phase, p.Millis)
	r.Active, r.Last, r.Fault, r.Counters.Faults, r.Rev = nil, nil, nil, 0, e.Seq
}

// active reports whether the run is in this execution of the phase.
func (r *Run) active(p *PhaseRef) bool {
	a := r.Active
	return p != nil && a != nil && p.Phase == a.Phase && p.Iteration == a.Iteration && p.Attempt == a.Attempt
}

// planned takes a plan in. One that replaces another keeps it for the history (R1).
func (r *Run) planned(p *PhaseRef, d Data) {
	if r.Plan != nil && r.Plan.Question == "" {
		r.Former = append(r.Former, *r.Plan)
	}
	r.Plan, r.Approved, r.Replan, r.PlanIteration = d.Plan, false, false, p.Iteration
	if it := r.Current(); r.Edited && it != nil { // what was judged was held against another plan
		it.Review, it.Tests, it.Forced = nil, nil, false
	}
	r.Edited = false
	if d.Tests != nil {
		r.Baseline = d.Tests
	}
}

// updated takes in that the base branch was merged: what passed before is to pass
// again, on the merge.
func (r *Run) updated(it *Iteration, d Data) {
	u := *d.Update
	it.Update = &u
	if len(u.Conflicts) > 0 {
		return
	}
	r.Counters.Updates++
	if r.BaseHead == u.Base {
		r.BaseHead = ""
	}
	r.Base = u.Base
	if d.Tests != nil {
		r.Baseline = d.Tests
	}
	if u.Head != r.Head {
		r.Head, it.Review, it.Tests = u.Head, nil, nil
	}
}

// fail takes a breakdown in: no result, no attempt, but a limit of its own (R6).
func (r *Run) fail(e Event) {
	if r.Active == nil || e.Data.Fault == nil {
		return
	}
	if p := e.Data.Phase; p != nil {
		count(&r.Millis, p.Phase, p.Millis)
	}
	r.Active, r.Await, r.Fault, r.Rev = nil, nil, e.Data.Fault, e.Seq
	r.Last = r.Last.failed(e.Data.Fault)
	r.Counters.Faults++
}

// bounced closes the current iteration; the next one begins when its implementer
// is entered.
func (r *Run) bounced(e Event) {
	b := e.Data.Bounce
	if b == nil {
		return
	}
	rec := *b
	rec.At = e.Time
	r.Bounces = append(r.Bounces, rec)
	if b.Phase == PhaseReview {
		r.Counters.ReviewBounces++
	} else {
		r.Counters.TestBounces++
	}
	if it := r.Current(); it != nil {
		it.Result, it.Ended = "failed", e.Time
		seen := ""
		if it.Review != nil && it.Review.Ruled {
			seen = it.Review.Head
		}
		for i := range r.Asked { // from here on they are findings like others
			f := r.Asked[i]
			r.wanted(f.Fingerprint)
			r.Findings = sight(r.Findings, Issue{Finding: &f, Phase: PhaseReview, Seen: seen}, it.Number)
		}
	}
	r.Asked, r.Rev = nil, e.Seq
}

// moved takes in that someone else pushed to the branch. When Forge's own commit
// had been published, the new head is judged as it is. When it had not, the
// branch has gone on without it and the work is done again on top: a human's
// commit is never lost.
func (r *Run) moved(e Event) {
	if e.Data.Head == "" || e.Data.Head == r.Head || r.State.Ended() {
		return
	}
	r.move(e.Data.Head)
	if r.Active != nil && r.Active.Phase != PhasePlan {
		r.Active, r.Await = nil, nil
	}
	r.BranchDeleted = false
	r.Counters.Moved++
}

// move sets the head to what somebody else has made of it: it is judged as it is.
func (r *Run) move(head string) {
	if it := r.Current(); it != nil {
		if r.Published.Head != r.Head {
			it.Impl = nil
		}
		it.Review, it.Tests, it.Update, it.Forced = nil, nil, nil, false
		it.Result = "in_progress"
	}
	r.Head = head
	if r.Head != r.Base || r.Published.Head != "" { // else the branch is not there yet
		r.Published.Head = r.Head
	}
}

// spend books what a model call cost.
func (r *Run) spend(p Phase, u Usage) {
	r.Usage.Add(u)
	s := r.Spent[p]
	s.Add(u)
	put(&r.Spent, p, s)
	if it := r.Current(); it != nil && p != PhasePlan {
		it.Usage.Add(u)
	}
}

func by(a *Answer) string {
	if a == nil || a.By.Login == "" {
		return ""
	}
	return " by " + a.By.Login
}

func short(sha string) string {
	if len(sha) > 7 {
		return sha[:7]
	}
	return sha
}

func attemptKey(iteration int, p Phase) string { return fmt.Sprintf("%d/%s", iteration, p) }

// put writes to a map that may not exist yet.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

func count[K comparable, N int | int64](m *map[K]N, k K, n N) { put(m, k, (*m)[k]+n) }
