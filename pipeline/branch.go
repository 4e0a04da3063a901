package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"forge/pipeline/rollout"
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
	case EventRetargeted:
		r.Retargeted = e.Data.Note
	case EventBaseRenamed:
		r.renamed(e)
	case EventRepositoryRenamed:
		r.moveRepository(e.Data.Repo)
	case EventBaseMoved:
		r.BaseHead = e.Data.Head
		if m := e.Data.Mergeable; m != nil && r.State.Ended() {
			if r.Mergeable, r.Rev = m, e.Seq; m.Behind == 0 && !m.Conflict {
				r.Mergeable, r.BaseHead = nil, ""
			}
		}
		return true
	case EventIssueEdited:
		if t := e.Data.Task; t != nil {
			r.Task.Title = t.Title
			_, r.Task.Body = text.FrontMatter(t.Body) // the snapshot of the settings stays (R4)
			r.wishChanged(e.Data.Actor)
		}
		return true
	case EventRollout:
		if e.Data.Rollout != nil {
			r.Rollouts, r.Rev = rollout.Put(r.Rollouts, *e.Data.Rollout), e.Seq
			r.Deployed = rollout.Keep(r.Deployed, *e.Data.Rollout)
		}
		return true
	case EventShipDeployed:
		if e.Data.Ship != nil {
			r.Shipped, r.Rev = append(r.Shipped, *e.Data.Ship), e.Seq
		}
		return true
	case EventEscaped:
		if s := e.Data.Signal; s != nil {
			out := slices.DeleteFunc(slices.Clone(r.Escaped), func(f string) bool { return f == s.File })
			if !s.Off {
				out = append(out, s.File)
			}
			r.Escaped, r.Rev = out, e.Seq
		}
		return true
	case EventShipAsked, EventShipMerged, EventShipFinished:
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

// renamed takes in that the branch that the work is for has another name. What is new on it
// is taken in as that of any base.
func (r *Run) renamed(e Event) {
	r.BaseWas, r.Repo.DefaultBranch = r.Repo.DefaultBranch, e.Data.Note
	if r.Retargeted == e.Data.Note {
		r.Retargeted = ""
	}
	if h := e.Data.Head; h != "" && h != r.Base && !r.State.Ended() {
		r.BaseHead = h
	}
}

// Behind says how what was verified or accepted stands to the base branch by now, and that
// it is to go elsewhere; "" as long as nothing is known to have moved.
func (r *Run) Behind() string {
	m, base := r.Mergeable, r.Repo.DefaultBranch
	if r.Retargeted != "" {
		return fmt.Sprintf("The pull request goes into %s now: review and tests are about %s, and say nothing about that. Point it at %s again to have the verdict back.",
			r.Retargeted, base, base)
	}
	if m == nil || !r.State.Ended() {
		return ""
	}
	words := fmt.Sprintf("It was %s on %s at %s, which is %s ahead of that by now (%s).", r.State, base, text.ShortSHA(r.Base),
		text.Plural(m.Behind, "commit", "commits"), text.ShortSHA(m.Base))
	switch {
	case m.Conflict:
		words += " The two conflict: it cannot be merged as it is."
	case m.Required:
		words += " The repository demands that these are merged in first."
	}
	if r.Config.OnBaseMoved == "ignore" {
		return words + fmt.Sprintf(" Merge %s into the branch: what is pushed there is reviewed and tested.", base)
	}
	return words + fmt.Sprintf(" %s merges %s in, and reviews and tests that.", r.typed("continue"), base)
}

// moved takes in that someone else pushed to the branch. When Forge's own commit
// had been published, the new head is judged as it is. When it had not, the
// branch has gone on without it and the work is done again on top: a human's
// commit is never lost.
func (r *Run) moved(e Event) {
	if e.Data.Head == "" || e.Data.Head == r.Head || r.State.Ended() {
		return
	}
	if r.Part == nil && len(r.Requested) > 0 && e.Data.Lost == "" { // who pushes may have done it
		r.handOver(cmp.Or(r.Published.Head, r.Head))
	}
	r.move(e.Data.Head)
	r.unsure(e.Data)
	if r.Active != nil && !r.Active.Phase.plans() {
		r.Active, r.Await = nil, nil
	}
	r.BranchDeleted = false
	if e.Data.Lost == "" {
		r.Counters.Moved++
		r.Foreign = r.Part != nil
	}
}

// move sets the head to what somebody else has made of it: it is judged as it is.
func (r *Run) move(head string) {
	if !r.pushed() {
		r.unmake()
	}
	if it := r.Current(); it != nil {
		if r.Published.Head != r.Head {
			it.Impl = nil
		}
		it.Result = ResultInProgress
	}
	r.unjudge()
	r.Head, r.Apart = head, false
	if r.Head != r.Base || r.Published.Head != "" { // else the branch is not there yet
		r.Published.Head = r.Head
	}
}
