package pipeline

import (
	"fmt"
	"time"
)

// Notice turns what happened on GitHub into events of the run, and into the
// outcome of its delivery in words.
func (r *Run) Notice(n Notice, at time.Time) ([]Event, string) {
	ev := func(t EventType, d Data) []Event {
		return []Event{{ID: string(t), Type: t, Source: "human:" + n.Actor.Login, Time: at, Data: d}}
	}
	who := &Answer{By: n.Actor, Via: string(n.Kind), At: at}
	if r.State.Ended() {
		return nil, fmt.Sprintf("run %d has ended: %s", r.ID, r.Ended)
	}
	switch n.Kind {
	case NoticeUnlabelled:
		who.Choice = "cancel"
		return ev(EventRunCancelled, Data{Answer: who, Note: "the label was taken away"}), "run cancelled"
	case NoticeIssueClosed:
		who.Choice = "cancel"
		return ev(EventRunCancelled, Data{Answer: who, Note: "the issue was closed"}), "run cancelled"
	case NoticePullClosed:
		who.Choice = "cancel"
		note := "the pull request was closed"
		if n.Merged {
			who.Choice, note = "accept", "the pull request was merged before it was verified"
			return ev(EventRunAccepted, Data{Answer: who, Note: note}), note
		}
		return ev(EventRunCancelled, Data{Answer: who, Note: note}), "run cancelled"
	case NoticePush:
		if n.Branch != r.Branch {
			return nil, "push to " + n.Branch + ": not the branch of the run"
		}
		if n.Head == r.Head || n.Head == r.Published.Head {
			return nil, "push of what the run knows already"
		}
		actor := n.Actor
		return ev(EventBranchMoved, Data{Head: n.Head, Actor: &actor}), "the run goes on from " + short(n.Head)
	case NoticeIssueEdited:
		task := n.Task
		return ev(EventIssueEdited, Data{Task: &task}), "noted for the next attempt"
	case NoticeBranchDeleted:
		if n.Branch != r.Branch || r.Gone || r.Published.Head == "" {
			return nil, "branch " + n.Branch + " was deleted: not one that the run needs"
		}
		actor := n.Actor
		return ev(EventBranchDeleted, Data{Actor: &actor}), "the branch is gone: a human is asked"
	case NoticeBaseMoved:
		if n.Branch != r.Repo.DefaultBranch || n.Head == r.Base || n.Head == r.BaseHead {
			return nil, "push to " + n.Branch + ": nothing new for the run"
		}
		return ev(EventBaseMoved, Data{Head: n.Head}), "noted: it is taken in before the run is verified"
	case NoticeChecks:
		if r.Await == nil || n.Head != r.Head {
			return nil, "the run does not wait for checks of " + short(n.Head)
		}
		return ev(EventPhaseWoken, Data{Note: n.Why}), "the run looks at its checks"
	case NoticeReviewed:
		return r.reviewedBy(n, ev)
	case NoticeFeedback:
		return nil, "nothing that the run has to act on"
	case NoticeBaseEdited:
		return nil, fmt.Sprintf("noted; the run goes on for %s", r.Repo.DefaultBranch)
	case NoticeDraft, NoticeReady, NoticeReopened, NoticeIssueReopened:
		return nil, "noted; Forge sets draft and ready by itself when the run ends"
	}
	return nil, fmt.Sprintf("a notice of kind %q changes nothing in a run", n.Kind)
}

// reviewedBy takes in a human's review of the pull request. Requested changes are
// work: the next judgement sends the work back with them. An approval answers a
// gate that asked for a human's look, and nothing else: Forge verifies by itself.
func (r *Run) reviewedBy(n Notice, ev func(EventType, Data) []Event) ([]Event, string) {
	g := r.Gate()
	switch {
	case n.Verdict == "approved" && g != nil && g.Kind == GateHuman:
		a := &Answer{Gate: g.ID, Choice: "approve", By: n.Actor, Via: "review"}
		return ev(EventGateAnswered, Data{Answer: a}), "the approval answers " + g.ID
	case n.Verdict != "changes_requested" || n.Review == nil || len(n.Review.Findings) == 0:
		return nil, "a review without requested changes: the run goes on"
	}
	actor := n.Actor
	return ev(EventChangesAsked, Data{Review: n.Review, Actor: &actor}), plural(len(n.Review.Findings), "change", "changes") + " requested: the work goes back with it"
}
