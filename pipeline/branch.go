package pipeline

import (
	"forge/pipeline/text"
)

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
		it.Result = ResultInProgress
	}
	r.Head = head
	if r.Head != r.Base || r.Published.Head != "" { // else the branch is not there yet
		r.Published.Head = r.Head
	}
}
