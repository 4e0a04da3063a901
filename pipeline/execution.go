package pipeline

import (
	"slices"

	"forge/pipeline/module"
)

// Execution is where a run stands in carrying out its phases.
type Execution struct {
	Active   *PhaseRef      `json:"active,omitempty"`   // the phase that was entered and has no result yet
	Last     *execution     `json:"last,omitempty"`     // of a phase, the last one, until it has a result
	Await    *Await         `json:"await,omitempty"`    // what the active phase waits for outside of Forge
	Tested   *TestReport    `json:"tested,omitempty"`   // what the tests of the head showed, while the test phase has no result yet: luck gets no second try
	Fault    *Fault         `json:"fault,omitempty"`    // the last one, until something succeeds
	Attempts map[string]int `json:"attempts,omitempty"` // executions by "ITERATION/PHASE"

	Usage  Usage               `json:"usage"`            // in all
	Spent  map[Phase]Usage     `json:"spent,omitempty"`  // by phase
	Millis map[Phase]int64     `json:"millis,omitempty"` // working time by phase
	Steps  map[Phase]int       `json:"steps,omitempty"`  // agents' turns by phase (I3)
	Tools  map[string]ToolStat `json:"tools,omitempty"`  // by tool (I3)
}

// execution is one execution of a phase that has no result yet.
type execution struct {
	Phase PhaseRef `json:"phase"`
	Head  string   `json:"head"`            // of the run, when it began
	Fault *Fault   `json:"fault,omitempty"` // how it ended, when it broke down
	Why   string   `json:"why,omitempty"`   // why the attempt before it failed, where that was the agent's doing
}

// next is the execution that follows on x, nil when there was none. Why the attempt
// before it failed is for whoever tries again.
func (x *execution) next(ref PhaseRef, head string) *execution {
	out := &execution{Phase: ref, Head: head}
	if x != nil && x.Phase.Phase == ref.Phase && x.Phase.Iteration == ref.Iteration {
		if out.Why = x.Why; x.Fault != nil && x.Fault.Class == FaultAgent {
			out.Why = x.Fault.Message
		}
	}
	return out
}

func (x *execution) failed(f *Fault) *execution {
	if x == nil {
		return nil
	}
	out := *x
	out.Fault = f
	return &out
}

// resumable reports whether the phase that is about to begin is the one that was cut
// off from outside, at the same head: the model answers what it was asked before.
func (x *execution) resumable(p PhaseRef, head string) bool {
	return x != nil && x.Phase.Phase == p.Phase && x.Phase.Iteration == p.Iteration && x.Head == head &&
		(x.Fault == nil || x.Fault.Class == FaultBudget || x.Fault.Class == FaultProvider || x.Fault.Class == FaultSecret || x.Fault.Class == FaultCrash)
}

// LastFault says why the attempt before the active one failed, where that was the
// agent's own doing: stagnation, the limit on steps, a protected path, a breakdown.
// It is empty when there was none, or when it broke down for other reasons.
func (r *Run) LastFault() string {
	if x := r.Last; x != nil && r.active(&x.Phase) {
		return x.Why
	}
	return ""
}

// enter marks a phase as begun.
func (r *Run) enter(e Event) {
	p := e.Data.Phase
	if p == nil || r.State != StateRunning {
		return
	}
	if p.Phase == PhaseImplement && p.Iteration == len(r.Iterations)+1 {
		r.Iterations = append(r.Iterations, Iteration{Number: p.Iteration, Mode: p.Mode, Started: e.Time, Result: ResultInProgress})
	}
	if p.Phase == PhaseContract || p.Phase == PhaseMerge {
		if p.Iteration != len(r.Iterations) {
			return
		}
	} else if f := r.Feedback(); !p.Phase.plans() && (len(r.Iterations) == 0 && (f == nil || !f.Apart()) || p.Iteration != len(r.Iterations)) {
		return
	}
	switch it := r.Current(); {
	case p.Phase == PhaseResolve && !r.acknowledge(e.Time):
		return
	case p.Phase == PhaseImplement && it.Redo:
		it.Impl, it.Redo, r.Counters.EmptyRounds = nil, false, 0
	}
	ref := *p
	r.Active, r.Await = &ref, nil
	count(&r.Attempts, attemptKey(*p), 1)
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
		r.SkillsLeft = d.SkillsLeft
		r.planned(p, d)
	case (p.Phase == PhaseAnalyse || p.Phase == PhaseDesign) && len(d.Artefacts) > 0:
		r.wrote(d)
	case (p.Phase == PhasePlan || p.Phase == PhaseAnalyse) && d.Tests != nil && r.Plan == nil: // nothing to test with: it was not planned
		r.Baseline = d.Tests
	case p.Phase == PhaseContract && d.Implementation != nil && d.Implementation.Parent == r.Head:
		r.agreed(p, d)
	case p.Phase == PhaseMerge && d.Update != nil && d.Update.Parent == r.Head:
		r.merged(p, d)
	case p.Phase == PhaseImplement && d.Implementation != nil:
		it.Impl = d.Implementation
		r.implemented(it)
	case p.Phase == PhaseResolve && d.Upstream != nil && d.Upstream.Reply != nil:
		r.reply(d.Upstream.Reply)
	case p.Phase == PhaseReview && d.Review != nil && d.Review.Head == r.Head:
		it.Review = d.Review
		r.reviewed(it)
	case p.Phase == PhaseTest && d.Tests != nil && d.Tests.Head == r.Head:
		it.Tests, r.Tested = d.Tests, nil
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
	return p != nil && a != nil && p.Phase == a.Phase && p.Iteration == a.Iteration && p.Part == a.Part && p.Attempt == a.Attempt
}

// planned takes a plan in. One that replaces another keeps it for the history (R1).
func (r *Run) planned(p *PhaseRef, d Data) {
	if r.Plan != nil && r.Plan.Question == "" {
		r.PastPlans = append(r.PastPlans, *r.Plan)
	}
	plan := d.Plan
	if p.Mode == ModeWithout {
		plan = r.revised(plan)
	}
	if limits := r.limitations(); len(limits) > 0 && p.Mode != ModeWithout { // they are a human's
		copied := *plan
		copied.LeftOut = append(slices.Clip(copied.LeftOut), limits...)
		plan = &copied
	}
	r.Plan, r.Approved, r.Replan, r.PlanIteration = plan, false, false, p.Iteration
	if plan.Question == "" {
		r.Without = nil
	}
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
	r.met(u.Met)
	if r.BaseHead == u.Base {
		r.BaseHead = ""
	}
	r.Base, r.Apart = u.Base, false
	if d.Tests != nil {
		r.Baseline = d.Tests
	}
	if it.Impl != nil && it.Impl.Contract != "" { // it goes on with the one that it wanted
		it.Impl = nil
	}
	if u.Head != r.Head {
		r.Head, it.Review, it.Tests = u.Head, nil, nil
	}
}

// met notes the commits of people that a merge had conflicts with; of one that did before,
// what is left of it now.
func (r *Run) met(list []module.Met) {
	for _, m := range list {
		r.Met = append(slices.DeleteFunc(slices.Clone(r.Met), func(x module.Met) bool { return x.Path == m.Path && x.Commit == m.Commit }), m)
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
