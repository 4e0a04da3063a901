package pipeline

import (
	"fmt"
	"time"
)

// Apply folds one event into the run. It never fails: an event that does not fit
// the run's state changes nothing but Seq.
func (r *Run) Apply(e Event) {
	r.Seq = e.Seq
	r.Updated = e.Time
	if r.State == "" && e.Type != EventRunStarted {
		return
	}
	if r.applyLife(e) || r.applyHuman(e) || r.applyElsewhere(e) || r.applyParts(e) || r.applyPublish(e) || r.applyUpstream(e) {
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
			if w.Away() && w.Next.Sub(e.Time) >= time.Minute { // people see what it waits for, and until when
				r.Rev = e.Seq
			}
		}
	case EventPhaseTested:
		if r.active(e.Data.Phase) {
			r.Tested = e.Data.Tests
		}
	case EventPhaseWoken:
		if r.Await != nil {
			await := *r.Await
			await.Woken, await.Asked = true, e.Data.Actor != nil
			if w := e.Data.Await; w != nil {
				await.Back = w.Back
			}
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
				r.skill(t)
			}
			put(&r.Tools, t.Tool, st)
		}
	}
}

// applyPublish records what GitHub shows.
func (r *Run) applyPublish(e Event) bool {
	switch e.Type {
	case EventPublishDue:
		r.Rev, r.Published.Next = e.Seq, time.Time{}
		if e.Data.Note != "" { // it was refused
			r.Fault = nil
		}
		return true
	case EventPublishCompleted, EventPublishFailed:
		if p := e.Data.Publication; p != nil {
			if p.Head != "" {
				r.Published.Head = p.Head
			}
			if p.Deleted {
				r.Published.Head = ""
			}
			if p.Pull != nil {
				r.Published.Pull = p.Pull
			}
			for k, a := range p.Artefacts {
				put(&r.Published.Artefacts, k, a)
			}
			r.Published.Calls += p.Calls
			if e.Type == EventPublishFailed && p.Late == "" && !p.Next.IsZero() {
				r.Published.Tries, r.Published.Next = p.Tries, p.Next
			}
		}
		if e.Type == EventPublishCompleted {
			r.Counters.PublishFaults = 0
			if p := e.Data.Publication; p != nil {
				r.Published.Rev = p.Rev
				r.Published.Late, r.Published.Tries, r.Published.Next = p.Late, p.Tries, p.Next
			}
			if f := r.Fault; f != nil && (f.Class == FaultGitHub || f.Class == FaultCrash && r.Counters.Faults == 0) {
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

func by(a *Answer) string {
	if a == nil || a.By.Login == "" {
		return ""
	}
	return " by " + a.By.Login
}

// attemptKey names a phase of an iteration, whichever attempt it is.
func attemptKey(p PhaseRef) string {
	key := fmt.Sprintf("%d/%s", p.Iteration, p.Phase)
	if p.Part != "" {
		key += "/" + p.Part
	}
	return key
}

// put writes to a map that may not exist yet.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

func count[K comparable, N int | int64](m *map[K]N, k K, n N) { put(m, k, (*m)[k]+n) }
