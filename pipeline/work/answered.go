package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forge/pipeline"
)

// forProvider is what a run waits for whose model's provider is away, as people read it and as
// the store finds it.
const forProvider = "the model's provider"

// How long a run is left alone after its provider refused it again although it had answered others.
const (
	leastLeft = 30 * time.Second
	mostLeft  = 15 * time.Minute
)

// waiter is what is known of a run that waits for a model's provider.
type waiter struct {
	seq     int64     // of the run's last event
	service string    // "": not known
	refused time.Time // when it was last refused
	from    time.Time // not to be tried before
}

// wakeAnswered has the runs tried again that wait for a provider which has meanwhile answered a call
// that began later, whichever run's, and whatever they were told to wait. Where several servers
// share a database, each tells what it was answered.
func (e *Engine) wakeAnswered(ctx context.Context) error {
	if e.Answered("").IsZero() {
		return nil
	}
	now := e.now()
	rows, err := e.store.PutOff(ctx, now, forProvider)
	if err != nil {
		return err
	}
	known, errs := e.waiters, []error(nil)
	e.waiters = make(map[int64]waiter, len(rows))
	for _, row := range rows {
		id, seq := row[0], row[1]
		w, ok := known[id]

		if !ok || w.seq != seq {
			if w, err = e.waiter(ctx, id); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		e.waiters[id] = w
		if at := e.Answered(w.service); w.service != "" && at.After(w.refused) && !now.Before(w.from) {
			errs = append(errs, e.wakeOne(ctx, id, at))
		}
	}
	return errors.Join(errs...)
}

// waiter reads what a run waits for.
func (e *Engine) waiter(ctx context.Context, id int64) (waiter, error) {
	run, err := e.store.Load(ctx, id)

	if err != nil {
		return waiter{}, fmt.Errorf("load run %d: %w", id, err)
	}
	out := waiter{seq: run.Seq}
	if w := run.Await; w != nil && w.Model && !w.Woken {
		out.service, out.refused, out.from = w.Service, w.Refused, w.Refused
		if w.Looks > 1 { // what answers others may go on refusing this one
			out.from = w.Refused.Add(min(mostLeft, leastLeft<<min(w.Looks-2, 10)))
		}
	}
	return out, nil
}

// wakeOne tells a run that its provider has answered a call that began then.
func (e *Engine) wakeOne(ctx context.Context, id int64, began time.Time) error {
	run, err := e.store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("load run %d: %w", id, err)
	}
	if w := run.Await; w == nil || !w.Model || w.Woken {
		return nil
	}
	err = e.append(ctx, run, []pipeline.Event{{ID: fmt.Sprintf("run/%d/woken/%d", id, run.Seq), Type: pipeline.EventPhaseWoken, Source: "forge",
		Data: pipeline.Data{Note: forProvider + " answers again", Await: &pipeline.Await{Model: true, Back: began.UTC()}}}}, nil)
	if isConflict(err) { // something has happened to it: the next look sees what
		return nil
	}
	if err != nil {
		return fmt.Errorf("wake run %d: %w", id, err)
	}
	e.Logger.InfoContext(ctx, "a run goes on: its model's provider answers", logRun, id, logRepo, run.Repo.FullName())
	e.Notify(id)
	return nil
}
