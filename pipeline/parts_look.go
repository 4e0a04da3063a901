package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"forge/pipeline/module"
	"forge/pipeline/text"
)

// LostHead is the data of the event that the run's branch was moved, where nobody pushed: the
// run's head was not pushed, and went with the machine that made it.
func (r *Run) LostHead() Data {
	return Data{Head: cmp.Or(r.Published.Head, r.Base), Lost: r.Head, Note: "the commit " + r.Head + " was lost with the machine that made it"}
}

// unsure notes that merged modules may not be on the branch any more, which somebody moved: that is
// looked at before anything goes on.
func (r *Run) unsure(d Data) {
	why, by := d.Note, ""
	if d.Actor != nil {
		by = d.Actor.Login
		why = fmt.Sprintf("%s pushed %s", d.Actor.Login, text.ShortSHA(d.Head))
	}
	if why == "" {
		why = "somebody pushed " + text.ShortSHA(d.Head)
	}
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Merged != "" {
			p.Doubt, p.DoubtBy = why, by
		}
	}
}

// wantsLook is done when no merged module may have been taken off the branch.
func (r *Run) wantsLook(at int) *Action {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Doubt != "" {
			ref := PhaseRef{Phase: PhaseMerge, Iteration: at, Mode: ModeLook, Part: p.ID}
			ref.Attempt = r.Attempts[attemptKey(ref)] + 1
			return r.record(Event{Type: EventPhaseEntered, Data: Data{Phase: &ref, Head: r.Head}}) // nothing changes: nobody has to let it begin
		}
	}
	return nil
}

// lookedAtParts takes in which merged modules are not on the branch any more. They are merged
// again, as if they had not been before. One whose content somebody took back by a commit of
// their own, as a revert does, is left out: that was their decision.
func (r *Run) lookedAtParts(u *Update, tests *TestReport) {
	r.Tried = tests
	for i := range r.Parts {
		p := &r.Parts[i]
		why, by := p.Doubt, p.DoubtBy
		p.Doubt, p.DoubtBy = "", ""
		if slices.Contains(u.Gone, p.ID) || slices.Contains(u.Reverted, p.ID) {
			p.Off, p.Merged, p.As, p.Clashes = why, "", "", 0
		}
		if slices.Contains(u.Reverted, p.ID) {
			r.leaveOut(&module.Part{ID: p.ID, Left: "its content was taken back: " + why, By: by})
		}
	}
}
