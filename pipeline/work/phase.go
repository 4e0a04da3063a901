package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/panics"
)

// phase executes the run's active phase and writes down how it ended.
func (e *Engine) phase(ctx context.Context, f *leased, act pipeline.Action) error {
	if act.Phase == nil {
		return errors.New("an action of kind work without a phase")
	}
	if len(act.Events) > 0 {
		if err := e.append(ctx, f.run, act.Events, nil); err != nil {
			return err
		}
	}
	ref := *act.Phase
	wanted := func(r *pipeline.Run) bool { return wants(r, ref) }
	changed, forget := e.watch(f.id) // before the look, so that nothing falls in between
	defer forget()
	// The executor gets a copy of its own: f.run goes on changing while it works.
	shown, err := e.store.Load(ctx, f.id)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if !wanted(shown) { // something has happened since
		return e.catchUp(ctx, f)
	}
	log := e.Logger.With(logRun, f.id, logRepo, shown.Repo.FullName(), logPhase, string(ref.Phase), logAction, act.Key)
	log.InfoContext(ctx, "phase begins", "iteration", ref.Iteration, "attempt", ref.Attempt)

	inner, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { e.guard(inner, cancel, f, changed, wanted) })
	started := e.now()
	events, err := e.do(inner, shown, act, e.emitter(inner, cancel, f, wanted))
	cause := context.Cause(inner)
	cancel(nil)
	watcher.Wait()

	ref.Millis = e.now().Sub(started).Milliseconds()
	switch {
	case err == nil:
	case cause == nil:
		if e.relocated(ctx, shown, err) { // the run has been told: another try is of use
			err = retryable(err)
		}
		public := err // the log has all of it
		if f := (*pipeline.Fault)(nil); errors.As(err, &f) {
			public = f.Shown(shown)
		}
		ev, waits := e.awaitModel(shown, f.latest(), act, ref, public)
		if !waits {
			ev, waits = e.awaitGitHub(shown, f.latest(), act, ref, err)
		}
		if !waits {
			ev = phaseFailed(act, ref, public)
		}
		log.WarnContext(ctx, "phase broke down", logError, err, "waits", ev.Type == pipeline.EventPhaseWaiting)
		events = append(events, ev)
	case errors.Is(cause, errDropped):
		log.InfoContext(ctx, "phase dropped: the run was stopped or has moved on")
		f.mu.Lock()
		defer f.mu.Unlock()
		return e.catchUp(ctx, f)
	default:
		log.InfoContext(ctx, "phase interrupted", logError, cause)
		return cause
	}
	for i := range events {
		if events[i].ID == "" {
			events[i].ID = fmt.Sprintf("%s/%d/%s", act.Key, i, events[i].Type)
		}
	}
	done, err := e.appendResult(ctx, f, events, wanted)
	if err != nil {
		return fmt.Errorf("write down the result of %s: %w", act.Key, err)
	}
	log.InfoContext(ctx, "phase ended", "ms", ref.Millis, "dropped", !done)
	return nil
}

// wants reports whether the run is still in this execution of the phase.
func wants(r *pipeline.Run, ref pipeline.PhaseRef) bool {
	a := r.Active
	return r.State == pipeline.StateRunning && a != nil && a.Phase == ref.Phase && a.Iteration == ref.Iteration && a.Part == ref.Part && a.Attempt == ref.Attempt
}

// do calls the executor; a panic is its error.
func (e *Engine) do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) (events []pipeline.Event, err error) {
	defer panics.AsError(ctx, e.Logger.With(logRun, run.ID, logAction, act.Key), &err, "the phase")
	return e.Executor.Do(ctx, run, act, emit)
}

func phaseFailed(act pipeline.Action, ref pipeline.PhaseRef, err error) pipeline.Event {
	return pipeline.Event{
		ID: act.Key + "/failed", Type: pipeline.EventPhaseFailed, Source: "forge",
		Data: pipeline.Data{Phase: &ref, Fault: fault(err, pipeline.FaultEnvironment)},
	}
}

// fault returns the fault that err is, or makes one of the class.
func fault(err error, class pipeline.FaultClass) *pipeline.Fault {
	var f *pipeline.Fault
	if errors.As(err, &f) {
		return f
	}
	return &pipeline.Fault{Class: class, Message: err.Error()}
}

// emitter appends the events of the loop inside a phase. Between two of its steps
// is where a phase ends when the engine stops.
func (e *Engine) emitter(inner context.Context, cancel context.CancelCauseFunc, f *leased, wanted func(*pipeline.Run) bool) Emit {
	return func(ctx context.Context, events ...pipeline.Event) error {
		if inner.Err() != nil {
			return context.Cause(inner)
		}
		ok, err := e.appendResult(ctx, f, events, wanted)
		switch {
		case err != nil:
			return fmt.Errorf("append events of the phase: %w", err)
		case !ok:
			cancel(errDropped)
			return errDropped
		case e.draining():
			cancel(errDrain)
			return errDrain
		}
		return nil
	}
}

// guard ends a phase that the run does not want any more — it was stopped,
// cancelled, or its branch moved — and, after the grace period, one that goes on
// while the engine stops. It looks when it is told that something happened, and
// at intervals, because it may have happened in another process.
func (e *Engine) guard(ctx context.Context, cancel context.CancelCauseFunc, f *leased, changed <-chan struct{}, wanted func(*pipeline.Run) bool) {
	t := time.NewTicker(e.Watch)
	defer t.Stop()
	drain, grace := e.drain, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-drain:
			drain, grace = nil, time.After(e.Grace)
			continue
		case <-grace:
			cancel(errDrain)
			return
		case <-changed:
		case <-t.C:
		}
		f.mu.Lock()
		err := e.catchUp(ctx, f)
		ok := wanted(f.run)
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.Logger.WarnContext(ctx, "looking whether a phase may go on", logRun, f.id, logError, err)
		case !ok:
			cancel(errDropped)
			return
		}
	}
}
