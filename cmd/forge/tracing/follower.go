package tracing

import (
	"context"
	"time"

	"forge/pipeline"
)

const (
	maxFolds = 128         // runs that are followed in memory; others are read again when they move
	heal     = time.Minute // what others finished so short a time ago may have been lost with them
)

// follower keeps up with runs in the log. It is not safe for concurrent use.
type follower struct {
	events func(ctx context.Context, run, after int64) ([]pipeline.Event, error)
	emit   func(Span)
	folds  map[int64]*followed
	tick   int64 // orders folds by use
}

type followed struct {
	fold Fold
	used int64
}

// catchUp exports what a run's new events finish: those from first on, which this
// process has appended. Those before are for who appended them to export, but for
// the last ones, which may have been lost when it ended.
func (w *follower) catchUp(ctx context.Context, run, first int64) error {
	f := w.folds[run]
	if f == nil {
		f = &followed{}
		w.folds[run] = f
		w.forget()
	}
	w.tick++
	f.used = w.tick
	events, err := w.events(ctx, run, f.fold.Seq())
	if err != nil {
		return err // the fold stands where it stood
	}
	var before time.Time // the last event of before
	for _, e := range events {
		if e.Seq < first {
			before = e.Time
		}
	}
	for _, e := range events {
		for _, s := range f.fold.Apply(e) {
			if e.Seq >= first || before.Sub(s.End) < heal {
				w.emit(s)
			}
		}
	}
	return nil
}

// forget gives up the run that has not moved for longest, when there are too many.
func (w *follower) forget() {
	if len(w.folds) <= maxFolds {
		return
	}
	oldest, used := int64(0), w.tick+1
	for id, f := range w.folds {
		if f.used > 0 && f.used < used {
			oldest, used = id, f.used
		}
	}
	delete(w.folds, oldest)
}
