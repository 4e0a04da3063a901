package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Notice turns what happened on GitHub into events of the run, and into the
// outcome of its delivery in words.
func (r *Run) Notice(n Notice, at time.Time) ([]Event, string) {
	ev := func(t EventType, d Data) []Event {
		return []Event{{ID: string(t), Type: t, Source: "human:" + n.Actor.Login, Time: at, Data: d}}
	}
	who := &Answer{By: n.Actor, Via: string(n.Kind), At: at}
	if r.State.Ended() {
		return r.noticeAfter(n, ev, at)
	}
	switch n.Kind {
	case NoticeUnlabelled:
		who.Choice = "cancel"
		return ev(EventRunCancelled, Data{Answer: who, Note: "the label was taken away"}), "run cancelled"
	case NoticeIssueClosed, NoticePullClosed:
		who.Choice = "cancel"
		note := "the pull request was closed"
		if n.Kind == NoticeIssueClosed {
			note = "the issue was closed"
		}
		if n.Merged {
			who.Choice, note = "accept", "the pull request was merged before it was verified"
			return append(ev(EventRunAccepted, Data{Answer: who, Note: note}), ev(EventRunClosed, Data{Note: "its pull request was merged"})...), note
		}
		return ev(EventRunCancelled, Data{Answer: who, Note: note}), "run cancelled"
	case NoticePush:
		if n.Branch != r.Branch {
			return nil, "push to " + n.Branch + ": not the branch of the run"
		}
		if r.knows(n) {
			return nil, "push of what the run knows already"
		}
		if a := r.Active; n.Own && n.Made != "" && n.Made == r.Trace && a != nil && slices.Contains([]Phase{PhaseImplement, PhaseUpdate, PhaseContract, PhaseMerge}, a.Phase) {
			return nil, "push of what the run is making" // were it not, the next commit would find the branch moved
		}
		actor := n.Actor
		events := ev(EventBranchMoved, Data{Head: n.Head, Actor: &actor})
		if g := r.Gate(); g != nil && g.Guard != nil && g.Guard.Name == GuardNoProgress && r.Part == nil && !actor.Bot { // they have done it themselves
			events = append(events, r.sentOn(actor, viaPush, at)...)
		}
		return events, "the run goes on from " + text.ShortSHA(n.Head)
	case NoticeIssueEdited:
		return r.edits(n, ev)
	case NoticeBranchDeleted:
		if n.Branch != r.Branch || r.BranchDeleted || r.Published.Head == "" {
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
		if r.Await == nil || r.Await.Away() || n.Head != r.Head {
			return nil, "the run does not wait for checks of " + text.ShortSHA(n.Head)
		}
		return ev(EventPhaseWoken, Data{Note: n.Why}), "the run looks at its checks"
	case NoticeReviewed:
		return r.reviewedBy(n, ev, at)
	case NoticeAskedAnew:
		return r.askedAnew(n, ev, at)
	case NoticeFeedback:
		return nil, "nothing that the run has to act on"
	case NoticeBaseEdited:
		return r.retargeted(n, ev)
	case NoticeDraft, NoticeReady, NoticeReopened, NoticeIssueReopened:
		return nil, "noted; Forge sets draft and ready by itself when the run ends"
	}
	return nil, fmt.Sprintf("a notice of kind %q changes nothing in a run", n.Kind)
}

// edits is Notice for a task that somebody has changed who may. A run that has ended reads it
// when something reopens it.
func (r *Run) edits(n Notice, ev func(EventType, Data) []Event) ([]Event, string) {
	task, actor := n.Task, n.Actor
	switch n.Part { // what somebody else wrote there before is not theirs
	case "title":
		task.Body = r.Task.Body
	case "body":
		task.Title = r.Task.Title
	}
	events := ev(EventIssueEdited, Data{Task: &task, Actor: &actor})
	switch {
	case sameWish(r.Task, task):
		return nil, "the task is edited, but what it asks for is the same"
	case r.State.Ended():
		return events, "noted: whatever reopens the run has it plan again"
	}
	return events, "noted: the run plans again"
}

// retargeted is Notice for a pull request that goes into another branch now.
func (r *Run) retargeted(n Notice, ev func(EventType, Data) []Event) ([]Event, string) {
	base, actor := n.Base, n.Actor
	if base == r.Repo.DefaultBranch {
		base = ""
	}
	if base == r.Retargeted {
		return nil, fmt.Sprintf("noted; the run is about %s", r.Repo.DefaultBranch)
	}
	events := ev(EventRetargeted, Data{Note: base, Actor: &actor})
	if base == "" {
		return events, "the pull request goes into " + r.Repo.DefaultBranch + " again"
	}
	return events, fmt.Sprintf("it is said that the verdict is about %s, not about %s", r.Repo.DefaultBranch, base)
}

// knows reports whether a push brings nothing that the run has not seen. What it has made or
// judged may come back late, but not from the head that it is at: that sets the branch back.
func (r *Run) knows(n Notice) bool {
	late := n.Own && r.made(n.Head) && n.Before != r.Head
	return n.Head == r.Head || n.Head == r.Published.Head || late
}

// made reports whether a commit is one that the run has made, or has judged: a delivery
// about it may come late. Whatever else is pushed with Forge's own token is somebody's.
func (r *Run) made(sha string) bool {
	if sha == "" || sha == r.Base || r.Committed(sha) {
		return true
	}
	for i := range r.Iterations {
		it := &r.Iterations[i]
		if m := it.Impl; m != nil && m.Parent == sha {
			return true
		}
		if u := it.Update; u != nil && u.Parent == sha {
			return true
		}
		if v := it.Review; v != nil && v.Head == sha {
			return true
		}
	}
	return false
}

// Committed reports whether a commit is one that Forge made for the run.
func (r *Run) Committed(sha string) bool {
	return sha != "" && (slices.Contains(r.Made, sha) || slices.ContainsFunc(r.Iterations, func(it Iteration) bool {
		m, u := it.Impl, it.Update
		return m != nil && m.Head == sha && m.Parent != sha || u != nil && u.Head == sha && u.Parent != sha
	}))
}

// reviewedBy takes in a human's review of the pull request. Requested changes are
// work: the next judgement sends the work back with them. An approval answers a
// gate that asked for a human's look, and nothing else: Forge verifies by itself.
func (r *Run) reviewedBy(n Notice, ev func(EventType, Data) []Event, at time.Time) ([]Event, string) {
	g := r.Gate()
	switch {
	case n.Verdict == "approved" && g != nil && g.Guard != nil && slices.Contains([]GuardName{GuardHuman, GuardBase, GuardUnread}, g.Guard.Name):
		a := &Answer{Gate: g.ID, Choice: "approve", By: n.Actor, Via: viaReview, At: at}
		return ev(EventGateAnswered, Data{Answer: a}), "the approval answers " + g.ID
	case n.Verdict != "changes_requested" || n.Review == nil || len(n.Review.Findings) == 0:
		return nil, "a review without requested changes: the run goes on"
	}
	actor := n.Actor
	events := append(ev(EventChangesAsked, Data{Review: n.Review, Actor: &actor}), r.sentOn(actor, viaReview, at)...)
	return events, text.Plural(len(n.Review.Findings), "change", "changes") + " requested: the work goes back with it"
}

// How an answer came that a review gives, or a push.
const (
	viaReview = "review"
	viaPush   = "push"
)

// sentOn answers a gate that asks whether going on helps: who requests changes there wants that,
// and who pushes where nothing was changed.
func (r *Run) sentOn(by Actor, via string, at time.Time) []Event {
	g := r.Gate()
	if g == nil || g.Guard == nil || !g.Guard.futile() && g.Guard.Name != GuardNoProgress {
		return nil
	}
	a := &Answer{Gate: g.ID, Choice: "continue", N: 1, By: by, Via: via, At: at}
	return []Event{{ID: string(EventGateAnswered), Type: EventGateAnswered, Source: "human:" + by.Login, Time: at, Data: Data{Answer: a}}}
}

// box is a task-list box, ticked or not.
var box = lazyregexp.New(`(?m)^(\s*[-*+]\s+)\[[ xX]\]`)

// sameWish reports whether two texts of a task ask for the same: spacing, ticked
// boxes and the settings in front do not count.
func sameWish(a, b Task) bool {
	wish := func(t Task) string {
		_, body := text.FrontMatter(t.Body)
		return strings.Join(strings.Fields(t.Title), " ") + "\n" + strings.Join(strings.Fields(box.ReplaceAllString(body, "$1[ ]")), " ")
	}
	return wish(a) == wish(b)
}

// wishChanged lets the run plan again because somebody who may has changed the task.
func (r *Run) wishChanged(by *Actor) {
	if by == nil || r.State.Ended() && !r.Reopenable() {
		return
	}
	r.Notes = append(r.Notes, by.Login+" has edited the task: what it says now is what counts")
	r.outdate()
	if r.Edited = r.Plan != nil; r.Active != nil && r.Active.Phase.plans() {
		r.Active, r.Await, r.Last = nil, nil, nil // it works on a text that is out of date
	}
}

// applyHuman handles what people say: stop, resume, answer, ask for changes.
func (r *Run) applyHuman(e Event) bool {
	switch e.Type {
	case EventRunStopped:
		if r.State == StateRunning || r.State == StateWaiting {
			r.State, r.Stopped, r.StoppedBy = StateStopped, e.Time, Actor{}
			if a := e.Data.Answer; a != nil {
				r.StoppedBy, r.Halted = a.By, a.Via == viaParent
			}
		}
	case EventRunResumed:
		if r.State == StateStopped {
			r.State, r.Stopped, r.StoppedBy, r.Halted = StateRunning, time.Time{}, Actor{}, false
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
	case EventChangesEdited:
		if v := e.Data.Review; v != nil && e.Data.Actor != nil && !r.State.Ended() {
			r.changesEdited(v, *e.Data.Actor)
		}
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
			r.Notes = append(r.Notes, by.Login+inReview(&f))
		}
	}
	r.Counters.GrantedUntil = max(r.Counters.GrantedUntil, len(r.Iterations)+1)
}

// inReview is what a note says of a finding of a person's, behind who it is.
func inReview(f *Finding) string {
	return fmt.Sprintf(", in a review%s: %s", at(f.File, f.Line), text.Clip(text.OneLine(f.Message), 200))
}
