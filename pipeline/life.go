package pipeline

import "forge/pipeline/text"

// applyLife handles the events that start and end a run.
func (r *Run) applyLife(e Event) bool {
	switch e.Type {
	case EventRunStarted:
		s := e.Data.Start
		if r.State != "" || s == nil {
			return true
		}
		*r = Run{
			ID: e.Run, Kind: s.Kind, Trace: e.Trace, Seq: e.Seq, State: StateRunning, Started: e.Time, Updated: e.Time,
			Repo: s.Repo, Task: s.Task, By: s.By, Config: s.Config, Base: s.Base, Branch: s.Branch, Slug: s.Slug, Head: s.Base,
			Consent: Consent{Untested: s.Part != nil && s.Part.Untested},
			Part:    s.Part, Given: s.Plan, Baseline: s.Baseline, Holdout: s.Holdout, Track: s.Track, Fit: s.Fit, Notes: s.Notes,
		}
	case EventRunVerified:
		if r.Feedback() != nil { // no decision was taken yet
			return true
		}
		why := "review and tests passed on " + text.ShortSHA(r.Head)
		if r.Unread() {
			why = "tests passed on " + text.ShortSHA(r.Head) + ", and nobody has reviewed it"
		}
		if who := r.letPass(); who != "" {
			why += "; " + who
		}
		r.end(StateVerified, why)
	case EventRunReopened:
		r.reopen(e)
	case EventRunClosed:
		if r.Reopenable() || e.Data.Note == "" {
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
		r.givenUp(e.Data.Answer)
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
	if it := r.Current(); it != nil && it.Result == ResultInProgress {
		it.Result, it.Ended = ResultFailed, r.Updated
		if s == StateVerified {
			it.Result = ResultPassed
		}
	}
}
