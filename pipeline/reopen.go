package pipeline

import (
	"fmt"
	"slices"
	"time"

	"forge/pipeline/text"
)

// Reopenable reports whether the run, although it has ended, goes on when its pull
// request does: it was verified or accepted, and nobody has merged or closed that.
// Nothing ends before the pull request does (T9). A run of a local repository has a
// branch in its place.
func (r *Run) Reopenable() bool {
	return (r.State == StateVerified || r.State == StateAccepted) && r.Closed == "" && (r.Published.Pull != nil || r.Repo.ID == 0 || r.Part != nil)
}

// reopen lets a verified or accepted run go on. What the guards count begins again,
// the budget, too. What has moved, and what a person says to it, is judged anew;
// for requested changes, which follow as an event of their own, the last judgement
// stands.
func (r *Run) reopen(e Event) {
	if !r.Reopenable() {
		return
	}
	n := len(r.Iterations)
	c := Counters{ResetAt: max(0, n-1), DoubtsAckedAt: n, Millis: r.Worked()}
	c.Cost, c.Tokens = r.spent()
	if by := e.Data.Actor; by != nil && by.Bot { // bots that answer each other have a limit
		c.Moved = r.Counters.Moved + 1
	} else if by == nil { // so has the base branch
		c.Updates = r.Counters.Updates
	}
	r.Counters, r.Mergeable, r.Over, r.Apart = c, nil, false, e.Data.Apart
	r.keepAccepted(e.Data.Answer)
	r.State, r.Ended, r.Active, r.Await, r.Fault, r.Last = StateRunning, "", nil, nil, nil, nil
	r.Reopened = append(r.Reopened, e.Data.Note)
	it, a := r.Current(), e.Data.Answer
	if it != nil {
		it.Result, it.Ended, it.Update = ResultInProgress, time.Time{}, nil
	}
	switch {
	case e.Data.Head != "" && e.Data.Head != r.Head:
		r.move(e.Data.Head)
		r.unsure(Data{Head: e.Data.Head, Actor: e.Data.Actor})
		r.Foreign = r.Part != nil
	case a != nil && a.Text != "":
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", a.By.Login, a.Text))
		r.ask(Finding{Severity: SeverityError, Category: CategoryHuman, Message: askedFor(a)})
	case a != nil && it != nil:
		it.Review, it.Tests, it.Forced = nil, nil, false
	}
	if a != nil && a.Back && it != nil { // to stop before somebody has taken up the words would be to ask for them again
		r.Counters.Back, r.Counters.GrantedUntil = true, n+1
	}
	if a != nil && a.N > 0 {
		r.Counters.GrantedUntil = n + a.N
	}
}

// keepAccepted decides about what was left when the run was accepted. A command to
// go on is about that; whatever else reopens the run is not, so that it stays
// accepted, in the name of who did. Failing tests are always judged anew.
func (r *Run) keepAccepted(command *Answer) {
	var kept []string
	for i := range r.Findings {
		is := &r.Findings[i]
		is.Times = 0
		switch {
		case is.State != IssueAccepted:
		case command != nil || is.Phase == PhaseTest:
			is.State = IssueOpen
		default:
			kept = append(kept, text.Clip(text.OneLine(is.Finding.Message), 200))
		}
	}
	for i := range r.Failures {
		is := &r.Failures[i]
		is.Times = 0
		if is.State == IssueAccepted {
			is.State = IssueOpen
		}
	}
	what := fmt.Sprintf("%s left when it was accepted: %s", text.Plural(len(kept), "finding", "findings"), listed(kept))
	if len(kept) == 0 || slices.ContainsFunc(r.Waivers, func(w Waiver) bool { return w.Guard == GuardAccepted && w.What == text.Clip(text.OneLine(what), 200) }) {
		return
	}
	a := &Answer{}
	for i := range r.Gates {
		if given := r.Gates[i].Answers; len(given) > 0 && given[len(given)-1].Choice == "accept" {
			a = &given[len(given)-1]
		}
	}
	r.waive(Guard{Name: GuardAccepted}, what, a)
}

// reopening is the event that lets the run go on, in the fields that are always the same.
func reopening(by Actor, why string, at time.Time) Event {
	return Event{ID: string(EventRunReopened), Type: EventRunReopened, Source: "human:" + by.Login, Time: at, Data: Data{Actor: &by, Note: why}}
}

// noticeAfter is Notice for a run that has ended. What moves its head or asks for
// changes reopens it; the end of its pull request ends it for good, and that of its issue
// where it has none.
func (r *Run) noticeAfter(n Notice, ev func(EventType, Data) []Event, at time.Time) ([]Event, string) {
	over := fmt.Sprintf("run %d has ended: %s", r.ID, r.Ended)
	if n.Kind == NoticeReopened && r.Closed == pullClosed {
		return r.openedAgain(n, ev, at)
	}
	if !r.Reopenable() {
		return nil, over
	}
	switch n.Kind {
	case NoticePullClosed:
		note := pullClosed
		if n.Merged {
			note = "its pull request was merged"
		}
		return ev(EventRunClosed, Data{Note: note}), fmt.Sprintf("run %d is over for good: %s", r.ID, note)
	case NoticeIssueClosed:
		if pull := r.Published.Pull; pull != nil {
			return nil, fmt.Sprintf("noted; run %d lives on until its pull request #%d is merged or closed", r.ID, pull.Number)
		}
		return ev(EventRunClosed, Data{Note: issueClosed}), fmt.Sprintf("run %d is over for good: %s", r.ID, issueClosed)
	case NoticePush:
		if n.Branch != r.Branch || n.Head == "" || r.knows(n) {
			return nil, "a push of nothing new: " + over
		}
		e := reopening(n.Actor, n.Actor.Login+" pushed "+text.ShortSHA(n.Head), at)
		e.Data.Head = n.Head
		return []Event{e}, fmt.Sprintf("the run goes on: %s is reviewed and tested", text.ShortSHA(n.Head))
	case NoticeIssueEdited:
		return r.edits(n, ev)
	case NoticeBaseMoved:
		return r.baseAfter(n, ev, at)
	case NoticeBaseEdited:
		return r.retargeted(n, ev)
	case NoticeReviewed:
		if events, text := r.reviewedBy(n, ev, at); len(events) > 0 {
			return append([]Event{reopening(n.Actor, n.Actor.Login+" requested changes", at)}, events...), "the run goes on: " + text
		}
	}
	return nil, over
}

// Why nothing reopens a run: its pull request was closed unmerged, or its issue was where it has none.
const (
	pullClosed  = "its pull request was closed"
	issueClosed = "its issue was closed"
)

// openedAgain is Notice for a pull request that was closed unmerged and is opened again:
// what happens to it counts as before, and what was pushed in between is judged.
func (r *Run) openedAgain(n Notice, ev func(EventType, Data) []Event, at time.Time) ([]Event, string) {
	events := ev(EventRunClosed, Data{})
	if n.Head == "" || n.Head == r.Head || n.Head == r.Published.Head {
		return events, fmt.Sprintf("run %d has ended, and its pull request is open again: what is pushed to it is reviewed and tested", r.ID)
	}
	e := reopening(n.Actor, n.Actor.Login+" opened it again with "+text.ShortSHA(n.Head), at)
	e.Data.Head = n.Head
	return append(events, e), fmt.Sprintf("the run goes on: %s is reviewed and tested", text.ShortSHA(n.Head))
}

// baseAfter is Notice for a base branch that has gone on since the run was verified or
// accepted. That is said. What was verified is not judged again for it, unless it cannot
// be merged as it is: it conflicts, or the repository demands that it has all of the base.
func (r *Run) baseAfter(n Notice, ev func(EventType, Data) []Event, at time.Time) ([]Event, string) {
	m := n.Mergeable
	if m == nil || !m.News(r.Mergeable) {
		return nil, fmt.Sprintf("run %d has ended, and nothing is new about how it stands to %s", r.ID, r.Repo.DefaultBranch)
	}
	events := ev(EventBaseMoved, Data{Head: m.Base, Mergeable: m})
	events[0].Source = "github"
	why, apart := fmt.Sprintf("%s has moved on to %s and conflicts with it", r.Repo.DefaultBranch, text.ShortSHA(m.Base)), m.Conflict && m.Base == r.Base
	switch {
	case apart:
		why = fmt.Sprintf("somebody has begun the branch anew, with no history in common with %s, which is merged in for that", r.Repo.DefaultBranch)
	case !m.Conflict:
		why = fmt.Sprintf("%s has moved on to %s, and the repository demands that it is merged in first", r.Repo.DefaultBranch, text.ShortSHA(m.Base))
	}
	it := r.Current()
	if r.State != StateVerified || !m.Conflict && !m.Required || it.Forced || r.Config.OnBaseMoved == "ignore" || r.Counters.Updates >= updateLimit {
		return events, fmt.Sprintf("run %d has ended: that %s has moved on is said", r.ID, r.Repo.DefaultBranch)
	}
	again := Event{ID: string(EventRunReopened), Type: EventRunReopened, Source: "github", Time: at, Data: Data{Note: why, Apart: apart}}
	return append(events, again), "the run goes on: " + why
}

// Dismissals returns what follows in the run from the dismissals that events hold, or
// from taking them back: a gate that has lost its last reason opens, and a verified
// run with a finding that blocks again goes on.
func (r *Run) Dismissals(events []Event, at time.Time) []Event {
	open, back := r.openIssues(), false
	var by Actor
	for _, e := range events {
		s := e.Data.Signal
		if s == nil || e.Type != EventDismissed {
			continue
		}
		if !s.Off {
			if s.Weight > 0 {
				by = s.Actor
				delete(open, s.Finding)
			}
			continue
		}
		by = s.Actor
		for i := range r.Findings {
			is := &r.Findings[i]
			back = back || is.Fingerprint() == s.Finding && is.Phase == PhaseReview && is.State == IssueDismissed && is.Finding.Severity.Blocks()
		}
	}
	switch {
	case back && r.Reopenable():
		return []Event{reopening(by, "a dismissal was taken back", at)}
	case !back:
		return r.lastGone(open, by, at)
	}
	return nil
}

// openIssues are the identities of all that keeps the run from being verified.
func (r *Run) openIssues() map[string]bool {
	open := map[string]bool{}
	for _, f := range r.unresolved() {
		open[f.Fingerprint] = true
	}
	for _, is := range r.aboutTests() {
		open[is.Fingerprint()] = true
	}
	for i := range r.Failures { // nobody dismisses these
		if r.Failures[i].State == IssueOpen {
			open[r.Failures[i].Fingerprint()] = true
		}
	}
	return open
}

// lastGone opens a gate that asks because of findings once a person has let the last of them go.
func (r *Run) lastGone(open map[string]bool, by Actor, at time.Time) []Event {
	g := r.Gate()
	if g == nil || !g.aboutFindings() || len(open) > 0 || len(r.openIssues()) == 0 {
		return nil
	}
	a := &Answer{Gate: g.ID, Choice: "dismiss", By: by, Via: "dismissal", At: at}
	return []Event{{ID: string(EventGateAnswered), Type: EventGateAnswered, Source: "human:" + by.Login, Time: at, Data: Data{Answer: a}}}
}

// aboutFindings reports whether the gate asks because of findings, of a review or about the tests.
func (g *Gate) aboutFindings() bool {
	switch {
	case g.Guard == nil, g.Guard.Name == GuardSameFailure, g.Guard.Name == GuardNoFix: // these are about failures alone
		return false
	case g.Guard.Name == GuardNoProgress:
		return true
	}
	return (g.Guard.futile() || g.Guard.Name == GuardDispute) && (g.Guard.Phase == PhaseReview || g.Guard.Phase == PhaseTest)
}
