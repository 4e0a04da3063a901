package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// family is what Drive advances: a run, and those that build its modules.
type family struct {
	mu     sync.Mutex
	called []int64
	wake   chan struct{}
}

// call has a run of the family looked at.
func (f *family) call(run int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.called, run) {
		f.called = append(f.called, run)
	}
	signal(f.wake)
}

// take returns the runs that were called since the last time.
func (f *family) take() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.called
	f.called = nil
	return out
}

// Drive advances a run, and those that build its modules, without jobs, until all of
// them have ended or wait for a human. It waits where publishing has to wait. A run
// that another worker has the lease of is left to it.
func (e *Engine) Drive(ctx context.Context, id int64) error {
	run, err := e.store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("drive run %d: %w", id, err)
	}
	if run.Part != nil { // what comes of it is its parent's to see
		if run, err = e.store.Load(ctx, run.Part.Run); err != nil {
			return fmt.Errorf("drive run %d: %w", id, err)
		}
	}
	members := []int64{run.ID}
	for i := range run.Parts {
		if p := &run.Parts[i]; p.Run != 0 {
			members = append(members, p.Run)
		}
	}
	fam := &family{wake: make(chan struct{}, 1)}
	for _, m := range members {
		e.driven.Store(m, fam)
		fam.call(m)
	}
	defer e.driven.Range(func(run, f any) bool {
		if f == fam {
			e.driven.Delete(run)
		}
		return true
	})
	return e.driveAll(ctx, fam)
}

func (e *Engine) driveAll(ctx context.Context, fam *family) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		run int64
		err error
	}
	ended := make(chan end)
	working, again := map[int64]bool{}, map[int64]bool{}
	var errs []error
	begin := func(run int64) {
		working[run] = true
		go func() { ended <- end{run, e.driveOne(ctx, run)} }()
	}
	for {
		for _, run := range fam.take() {
			switch {
			case len(errs) > 0:
			case working[run]:
				again[run] = true
			default:
				begin(run)
			}
		}
		if len(working) == 0 {
			return errors.Join(errs...)
		}
		select {
		case <-fam.wake:
		case d := <-ended:
			delete(working, d.run)
			if d.err != nil {
				errs = append(errs, d.err)
				cancel()
			} else if again[d.run] && len(errs) == 0 {
				begin(d.run)
			}
			delete(again, d.run)
		}
	}
}

// driveOne advances one run until it has ended or waits.
func (e *Engine) driveOne(ctx context.Context, run int64) error {
	for {
		v, err := e.advance(ctx, run, false)
		if err != nil {
			return fmt.Errorf("drive run %d: %w", run, err)
		}
		if !v.due {
			return nil
		}
		if err := e.sleep(ctx, v.after); err != nil {
			return fmt.Errorf("drive run %d: %w", run, err)
		}
	}
}
