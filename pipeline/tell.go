package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"forge/pipeline/module"
	"forge/pipeline/text"
)

// refused is what a module is told that does not get the contract which it wants.
const refused = "refused"

// viaParent is how the run of a module is stopped, let go on and ended by its parent.
const viaParent = "parent"

// tell says what a run that builds a module has to be told: that its parent was
// stopped, goes on or has ended, or that there is work for it again.
func (r *Run) tell() *Action {
	if r.State == StateRunning {
		if act := r.tellDecided(); act != nil {
			return act
		}
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		if p.Run == 0 {
			continue
		}
		done, unneeded := partState(p).Ended(), r.wantsCancelled(p)
		answer := &Answer{Choice: "stop", By: r.StoppedBy, Via: viaParent, At: r.Updated}
		switch {
		case unneeded && !done && p.Told != "cancelled":
			answer.Choice = "cancel"
			return r.told(p, "cancelled", Event{Type: EventRunCancelled, Data: Data{Answer: answer, Note: r.partOver(p)}})
		case unneeded && !done: // it was told, and will say so: told to stop meanwhile, it would be told both without end
		case r.State == StateStopped && !done && p.Told != "stopped":
			return r.told(p, "stopped", Event{Type: EventRunStopped, Data: Data{Answer: answer}})
		case r.State != StateStopped && !r.State.Ended() && !done && (p.Told == "stopped" || p.Halted):
			answer.Choice = "resume"
			return r.told(p, "resumed", Event{Type: EventRunResumed, Data: Data{Answer: answer}})
		case r.State == StateRunning && p.Rework != nil && p.Left == "" && r.pushed() && r.room(atWork):
			return r.told(p, "", r.again(p)...)
		case r.State == StateRunning && p.Wants != "" && p.Rework == nil && p.Left == "" && partState(p) == StateRunning && p.Told != refused && r.refusal(p) != "":
			return r.told(p, refused, Event{Type: EventModuleRefused, Data: Data{Note: r.refusal(p)}})
		case r.spare(p) && p.Told != "over":
			return r.told(p, "over", Event{Type: EventModuleOver, Data: Data{Note: r.partOver(p)}})
		}
	}
	return nil
}

// wantsCancelled reports whether nobody needs what a module's run still does.
func (r *Run) wantsCancelled(p *module.Part) bool {
	return r.State.Ended() || p.Left != "" || r.Plan != nil && (r.Plan.Split == nil || r.Plan.Split.Module(p.ID) == nil)
}

func (r *Run) partOver(p *module.Part) string {
	switch {
	case r.State.Ended():
		return fmt.Sprintf("run %d has ended: %s", r.ID, r.Ended)
	case p.Left != "":
		return "it is left out: " + p.Left
	}
	return "the plan has changed"
}

// told is what a module is told. Its events are named by what they say, too: of one that
// was told and not written down before a crash, the next may be the opposite.
func (r *Run) told(p *module.Part, what string, events ...Event) *Action {
	key := fmt.Sprintf("run/%d/module/%s/tell/%d", r.ID, p.ID, p.Tells+1)
	for i := range events {
		events[i].ID, events[i].Source = fmt.Sprintf("%s/%s/%d", key, cmp.Or(what, "again"), i), "forge"
	}
	return &Action{Key: key, Kind: ActionTell, To: p.Run, Tell: events,
		Events: []Event{{ID: key, Type: EventModuleTold, Source: "forge", Data: Data{Part: &module.Part{ID: p.ID, Told: what}}}}}
}

// again are the events that send a module back to work: on what was merged since, with
// what the integration found in it.
func (r *Run) again(p *module.Part) []Event {
	events := []Event{
		{Type: EventRunReopened, Data: Data{Note: p.Rework.Why}},
		{Type: EventBaseMoved, Data: Data{Head: p.Rework.Base}},
	}
	if len(p.Rework.Issues)+len(p.Rework.Fails) == 0 {
		return events
	}
	review := &Review{Head: p.Rework.Base}
	told := "Merged with what the other modules have brought since, this test fails, and passes without this module: "
	if p.Rework.With != "" {
		told = fmt.Sprintf("Merged with the module %s, the test of what this module promises to it fails: ", p.Rework.With)
	}
	for _, fails := range p.Rework.Fails {
		review.Findings = append(review.Findings, Finding{Severity: SeverityError, Category: CategoryTests, Message: told + fails})
	}
	for _, is := range slices.Concat(r.Findings, r.Failures) {
		if !slices.Contains(p.Rework.Issues, is.Fingerprint()) {
			continue
		}
		f := Finding{Severity: SeverityError, Category: CategoryTests}
		if is.Finding != nil {
			f = *is.Finding
		} else {
			x := is.Failure
			f.Message = fmt.Sprintf("At the integration, the test %s fails: %s", x.Test, text.Clip(x.Error, 2000))
			f.File, f.Line, f.Fix = x.File, x.Line, x.Fix
		}
		review.Findings = append(review.Findings, f)
	}
	return append(events, Event{Type: EventChangesAsked, Data: Data{Review: review}})
}

func (r *Run) partTold(p, in *module.Part) {
	if p.Tells++; r.toldDecided(in.Told) {
		return
	}
	if in.Told != "" {
		p.Told, p.Halted = in.Told, false
		return
	}
	p.Rework, p.Wants, p.State = nil, "", string(StateRunning) // until it tells otherwise
	if p.Told == "over" || p.Told == refused {
		p.Told = ""
	}
}
