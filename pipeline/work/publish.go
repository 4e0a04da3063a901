package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forge/pipeline"
	"forge/pipeline/panics"
)

// maxBackoff is the longest that a publication waits for its next try, unless
// GitHub itself asks for more.
const maxBackoff = 5 * time.Minute

// What could not be published with the rest, or was refused, is tried so often by itself,
// over half a day, and waits no longer than this for the next time.
const (
	maxLate        = 10
	maxLateBackoff = 6 * time.Hour
)

// publish brings GitHub in line with the run. wait is how long it must wait
// before it may try.
//
// That it begins is an event, with an ID that stays the same until an attempt is
// known to have ended. Finding that event there already means that an attempt has
// begun whose end nobody saw: it may have landed, and may still be landing.
func (e *Engine) publish(ctx context.Context, f *leased, act pipeline.Action) (wait time.Duration, err error) {
	run, now := f.run, e.now()
	until, seen := e.heldUntil(f.id)
	if wait := until.Sub(now); seen && wait > 0 {
		return wait, nil
	}
	seq, rev, faults := run.Seq, run.Rev, run.Counters.PublishFaults
	// What began before the run's last event is not under way any more after this.
	settle := run.Updated.Add(e.Settle).Sub(now)
	if faults > 0 && !seen && settle > 0 { // it failed in another process: nobody knows how
		return settle, nil
	}
	err = e.append(ctx, run, []pipeline.Event{{
		ID:   fmt.Sprintf("run/%d/publish/after/%d/%d/started", f.id, run.Published.Rev, faults),
		Type: pipeline.EventPublishStarted,
		Data: pipeline.Data{Publication: &pipeline.Publication{Rev: rev}},
	}}, nil)
	if err != nil {
		return 0, err
	}
	open := run.Seq == seq
	if open && settle > 0 {
		return settle, nil
	}
	inner, cancel := context.WithCancelCause(ctx)
	go e.graceful(inner, cancel)
	pub, events, err := e.show(inner, run, open || faults > 0 || run.Published.Late != "")
	cause := context.Cause(inner)
	cancel(nil)
	if before := run.Seq; err != nil && cause == nil && e.relocated(ctx, run, err) {
		if err := e.catchUp(ctx, f); err != nil || run.Seq > before {
			return 0, err
		}
	}
	if run.Part != nil && cause == nil {
		err = e.partShown(ctx, run, err)
	}
	if err != nil && cause != nil {
		return 0, cause // whether it landed is not known: the next one looks
	}
	return 0, e.published(ctx, f, act, rev, pub, events, err)
}

// published writes down how an attempt ended.
func (e *Engine) published(ctx context.Context, f *leased, act pipeline.Action, rev int64, pub pipeline.Publication, events []pipeline.Event, failed error) error {
	key := fmt.Sprintf("run/%d/publish/seq/%d", f.id, f.run.Seq)
	pub.Rev = rev
	var cause *pipeline.Fault
	refused := false // perhaps for now: what was archived or suspended comes back
	if failed != nil {
		cause = fault(failed, pipeline.FaultGitHub)
		refused = cause.Final && cause.Class == pipeline.FaultGitHub
	}
	if pub.Late != "" || refused {
		pub.Tries = f.run.Published.Tries + 1
		if pub.Tries < maxLate || refused && f.run.State == pipeline.StateWaiting { // else nobody would be asked what the run waits for
			pub.Next = e.now().Add(min(time.Minute<<min(pub.Tries-1, 10), maxLateBackoff))
		}
	}
	first := pipeline.Event{ID: key + "/completed", Type: pipeline.EventPublishCompleted, Data: pipeline.Data{Publication: &pub}}
	if failed != nil {
		first = pipeline.Event{ID: key + "/failed", Type: pipeline.EventPublishFailed, Data: pipeline.Data{Fault: cause}}
		if refused || len(pub.Artefacts) > 0 || pub.Pull != nil || pub.Head != "" { // what was made before it failed
			first.Data.Publication = &pub
		}
	}
	all := []pipeline.Event{first}
	for i, ev := range events {
		if ev.ID == "" {
			ev.ID = fmt.Sprintf("%s/%d/%s", key, i, ev.Type)
		}
		all = append(all, ev)
	}
	if _, err := e.appendResult(ctx, f, all, func(*pipeline.Run) bool { return true }); err != nil {
		return fmt.Errorf("write down a publication: %w", err)
	}
	if failed == nil {
		e.hold(f.id, 0)
		return nil
	}
	delay := e.backoff(f.run.Counters.PublishFaults, failed)
	if ambiguous(failed) {
		delay = max(delay, e.Settle)
	}
	e.hold(f.id, delay)
	e.Logger.WarnContext(ctx, "publishing failed", logRun, f.id, logAction, act.Key, logError, failed, "retry_in", delay.String())
	return nil
}

// show calls the publisher; a panic is its error.
func (e *Engine) show(ctx context.Context, run *pipeline.Run, again bool) (pub pipeline.Publication, events []pipeline.Event, err error) {
	defer panics.AsError(ctx, e.Logger.With(logRun, run.ID), &err, "publishing")
	ctx, done := Working(ctx, fmt.Sprint(labelRun, run.ID, labelPublish))
	defer done()
	return e.Publisher.Publish(ctx, run, again)
}

// graceful cancels work that has no steps, the grace period after the engine
// began to stop.
func (e *Engine) graceful(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-e.drain:
	}
	t := time.NewTimer(e.Grace)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
		cancel(errDrain)
	}
}

// retryAfter returns how long an error asks to wait, 0 when it does not ask.
func retryAfter(err error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		return asks.RetryAfter()
	}
	return 0
}

// ambiguous reports whether a publication that failed may have landed, or may
// still land: unless its error says otherwise, or that GitHub turned it down.
func ambiguous(err error) bool {
	var a interface{ Ambiguous() bool }
	if errors.As(err, &a) {
		return a.Ambiguous()
	}
	return retryAfter(err) == 0
}

// backoff is how long to wait after the nth failure in a row: 1 s, doubled each
// time, with a fifth of jitter, and never less than the error itself asks for. The engine's
// clock knows no part of a microsecond: a wait with one would be waited for again and again.
func (e *Engine) backoff(n int, err error) time.Duration {
	d := min(time.Second<<min(max(n-1, 0), 20), maxBackoff)
	d += time.Duration((e.Rand() - 0.5) * 0.4 * float64(d))
	return max(d, retryAfter(err)).Round(time.Millisecond)
}

// hold keeps a run from publishing for d; 0 forgets that it failed.
func (e *Engine) hold(run int64, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d <= 0 {
		delete(e.held, run)
		return
	}
	e.held[run] = e.now().Add(d)
}

func (e *Engine) heldUntil(run int64) (until time.Time, seen bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	until, seen = e.held[run]
	return until, seen
}
