package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline"
	"forge/pipeline/fence"
)

// Why a worker's context ended.
var (
	errDrain   = errors.New("the engine is stopping")
	errLost    = errors.New("the lease was lost")
	errDropped = errors.New("the run does not want this phase any more")
	errPaused  = errors.New("work is paused")
)

// verdict says how a run was left.
type verdict struct {
	due   bool          // there is more to do
	after time.Duration // not before
}

// leased is one worker's time with one run.
type leased struct {
	id    int64
	owner string
	known atomic.Int64 // when the lease was taken, or renewed, by the clock that goes on while a machine sleeps

	mu  sync.Mutex
	run *pipeline.Run
}

// latest is the run as the lease knows it at this moment.
func (f *leased) latest() *pipeline.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := *f.run
	return &run
}

func (e *Engine) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-e.drain:
		return errDrain
	}
	return ctx.Err()
}

// advance does what is to do for a run, under its lease. With yield it stops
// between iterations, so that the queue can decide who is next.
func (e *Engine) advance(ctx context.Context, id int64, yield bool) (v verdict, err error) {
	if e.draining() {
		return verdict{due: true}, nil
	}

	ctx, done := Working(ctx, fmt.Sprint(labelRun, id))
	defer done()
	f := &leased{id: id, owner: fmt.Sprintf("%s/%d", e.name, e.flights.Add(1))}
	if _, busy := e.active.LoadOrStore(id, f); busy {
		return verdict{}, nil // its lease can only have run out by the clock, as after a machine has slept: it is renewed
	}
	defer e.active.CompareAndDelete(id, f)
	f.known.Store(int64(sinceBoot()))
	ok, err := e.store.Lease(ctx, id, f.owner, e.now(), e.LeaseTTL)
	if err != nil {
		return verdict{}, fmt.Errorf("take the lease: %w", err)
	}
	if !ok {
		return verdict{}, nil // its owner sees everything that has happened by then
	}
	held, cancel := context.WithCancelCause(ctx)
	held = fence.With(held, func() error { return e.own(held, f) })
	var keeper sync.WaitGroup
	keeper.Go(func() { e.keep(held, cancel, f) })
	released := false
	defer func() {
		cancel(nil)
		keeper.Wait()
		if !released {
			err = errors.Join(err, e.letGo(ctx, f))
		}
	}()
	if f.run, err = e.store.Load(held, id); err != nil {
		return e.interrupted(held, fmt.Errorf("load: %w", err))
	}
	repo := f.run.Repo.FullName()
	keeper.Go(func() { e.heed(held, cancel, id, repo) })
	for {
		if v, err = e.takeSteps(held, f, yield); err != nil {
			return e.interrupted(held, err)
		}
		if v.due && v.after == 0 {
			return v, nil
		}
		if released, err = e.release(held, f, v.after); err != nil {
			return e.interrupted(held, err)
		}
		if released {
			return v, nil
		}
		if err = e.catchUp(held, f); err != nil {
			return e.interrupted(held, err)
		}
	}
}

// release gives the run back, to be looked at again after a while when there is
// one. It does not when events have arrived that nobody has looked at.
func (e *Engine) release(ctx context.Context, f *leased, after time.Duration) (ok bool, err error) {
	e.active.CompareAndDelete(f.id, f) // before the lease: what arrives from then on is for whoever comes next
	if after > 0 {
		ok, err = e.store.Postpone(ctx, f.id, f.owner, f.run.Seq, e.now().Add(after))
	} else {
		ok, err = e.store.Release(ctx, f.id, f.owner, f.run.Seq)
	}
	if err != nil {
		return false, fmt.Errorf("release the lease: %w", err)
	}
	if ok {
		return true, nil
	}
	if mine, err := e.renew(ctx, f); err != nil {
		return false, fmt.Errorf("renew the lease: %w", err)
	} else if !mine {
		return false, errLost
	}
	e.active.Store(f.id, f)
	return false, nil
}

// interrupted tells an end from outside from an error.
func (e *Engine) interrupted(ctx context.Context, err error) (verdict, error) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errLost) || errors.Is(cause, errLost):
		return verdict{}, nil // whoever has it now goes on
	case errors.Is(err, errPaused) || errors.Is(cause, errPaused):
		return verdict{due: true, after: e.Watch}, nil // it stays due: whoever lets it go on has it found
	case errors.Is(err, errDrain):
		return verdict{due: true}, nil
	case cause != nil && e.draining():
		return verdict{due: true}, nil
	}
	return verdict{}, err
}

// renew renews the lease. It takes no longer than until the next time: a database that
// cannot be reached may never answer.
func (e *Engine) renew(ctx context.Context, f *leased) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(e.LeaseTTL/4, time.Second))
	defer cancel()
	asked := int64(sinceBoot())
	if ok, err = e.store.Renew(ctx, f.id, f.owner, e.now(), e.LeaseTTL); ok && err == nil {
		f.known.Store(asked)
	}
	return ok, err
}

// own returns nil while the run is this worker's: its lease has not run out, or nobody
// has taken it over by now.
func (e *Engine) own(ctx context.Context, f *leased) error {
	if sinceBoot()-time.Duration(f.known.Load()) < e.LeaseTTL {
		return nil
	}
	ok, err := e.renew(context.WithoutCancel(ctx), f)
	switch {
	case err != nil:
		return fmt.Errorf("%w: it has run out, and cannot be renewed: %w", errLost, err)
	case !ok:
		return errLost
	}
	return nil
}

// sinceBoot is the clock of leases: nobody sets it, and it goes on while a process, or a
// machine, stands still.
func sinceBoot() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(leaseClock, &now) // every system has it
	return time.Duration(now.Nano())
}

// keep renews the lease until ctx is done. When the lease is lost, or could not be
// renewed for as long as it lasts, it ends the work.
func (e *Engine) keep(ctx context.Context, cancel context.CancelCauseFunc, f *leased) {
	t := time.NewTicker(e.LeaseTTL / 4)
	defer t.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		ok, err := e.renew(ctx, f)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			missed++
			e.Logger.WarnContext(ctx, "renewing a lease", logRun, f.id, logError, err)
		case ok:
			missed = 0
		}
		if err == nil && !ok || missed >= 4 {
			e.Logger.WarnContext(ctx, "a lease was lost", logRun, f.id)
			cancel(errLost)
			return
		}
	}
}

// heed ends the work on a run when people stop it, until ctx is done.
func (e *Engine) heed(ctx context.Context, cancel context.CancelCauseFunc, run int64, repo string) {
	t := time.NewTicker(min(e.Watch, heedEvery))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		paused, err := e.Paused(ctx, repo)
		if paused {
			e.Logger.WarnContext(ctx, "work is paused", logRun, run, logRepo, repo)
			cancel(errPaused)
			return
		}
		if err != nil && ctx.Err() == nil {
			e.Logger.WarnContext(ctx, "looking whether work is paused", logRun, run, logError, err)
		}
	}
}

// heedEvery is how often it is looked whether work that is under way was paused.
const heedEvery = 500 * time.Millisecond

// letGo ends the lease early; the run stays due. It happens also when ctx is done.
func (e *Engine) letGo(ctx context.Context, f *leased) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return e.store.Drop(ctx, f.id, f.owner)
}

// takeSteps carries out one action after the other until nothing is left to do, or
// the run has to wait or yields.
func (e *Engine) takeSteps(ctx context.Context, f *leased, yield bool) (verdict, error) {
	for {
		if ctx.Err() != nil {
			return verdict{}, context.Cause(ctx)
		}
		if e.draining() {
			return verdict{}, errDrain
		}
		if paused, err := e.Paused(ctx, f.run.Repo.FullName()); err != nil {
			return verdict{}, err
		} else if paused {
			return verdict{}, errPaused
		}
		act := e.decide(f.run)
		if act == nil {
			v, over, err := e.idle(ctx, f)
			if over && err == nil {
				continue
			}
			return v, err
		}
		seq := f.run.Seq
		wait, err := e.carryOut(ctx, f, *act)
		switch {
		case isConflict(err):
			if err := e.catchUp(ctx, f); err != nil {
				return verdict{}, err
			}
			continue
		case err != nil:
			return verdict{}, fmt.Errorf("carry out %s: %w", act.Key, err)
		case wait > 0:
			return verdict{due: true, after: wait}, nil
		case f.run.Seq == seq:
			return verdict{}, fmt.Errorf("carry out %s: it changed nothing in the run at event %d, and would be decided again for ever", act.Key, seq)
		}
		if yield && bounced(*act) {
			return verdict{due: true}, nil
		}
	}
}

// afresh reports whether a run waits for a model's provider that this server has not asked
// for it: the key or the model may be another one than when it began to wait.
func (e *Engine) afresh(run *pipeline.Run) bool {
	_, tried := e.awaited.Load(run.ID)
	return run.Await != nil && run.Await.Model && !run.Await.Woken && !tried
}

// idle is for a run that has nothing to do. When the time is over for which it
// waits, what then happens is written down, and over is true.
func (e *Engine) idle(ctx context.Context, f *leased) (v verdict, over bool, err error) {
	at, events := f.run.Alarm()
	if at.IsZero() {
		return verdict{}, false, nil
	}
	if wait := at.Sub(e.now()); wait > 0 && !e.afresh(f.run) {
		return verdict{due: f.run.Await != nil, after: wait}, false, nil // for a human nobody stays
	}
	err = e.append(ctx, f.run, events, nil)
	if isConflict(err) {
		err = e.catchUp(ctx, f)
	}
	return verdict{}, true, err
}

func bounced(act pipeline.Action) bool {
	for _, ev := range act.Events {
		if ev.Type == pipeline.EventBounce {
			return true
		}
	}
	return false
}

// carryOut does one action. wait is how long the run has to wait before it.
func (e *Engine) carryOut(ctx context.Context, f *leased, act pipeline.Action) (wait time.Duration, err error) {
	e.Logger.DebugContext(ctx, "action", logRun, f.id, logRepo, f.run.Repo.FullName(), logAction, act.Key)
	switch act.Kind {
	case pipeline.ActionRecord:
		return 0, e.append(ctx, f.run, act.Events, nil)
	case pipeline.ActionWork:
		return 0, e.phase(ctx, f, act)
	case pipeline.ActionPublish:
		return e.publish(ctx, f, act)
	case pipeline.ActionSpawn:
		return 0, e.spawn(ctx, f, act)
	case pipeline.ActionTell:
		return 0, e.tell(ctx, f, act)
	}
	return 0, fmt.Errorf("unknown kind of action %q", act.Kind)
}

// append writes events to the run. run is changed; on a conflict it is stale.
func (e *Engine) append(ctx context.Context, run *pipeline.Run, events []pipeline.Event, also func(context.Context, *Tx) error) error {
	if err := fence.Check(ctx); err != nil {
		return err
	}
	now, seq := e.now(), run.Seq
	own := make([]pipeline.Event, len(events))
	for i, ev := range events {
		if ev.Time.IsZero() {
			ev.Time = now
		}
		if ev.Source == "" {
			ev.Source = "forge"
		}
		own[i] = dated(ev)
	}
	if err := e.store.Append(ctx, run, own, also); err != nil {
		return err // with the store's own words; conflicts are told from it
	}
	if run.Seq > seq {
		for i := range own { // right but for repeats, which come with a crash
			own[i].Run, own[i].Seq, own[i].Trace = run.ID, seq+int64(i)+1, run.Trace
		}
		e.OnEvents(run, own)
	}
	return nil
}

// appendResult appends events that are results, on top of whatever has happened
// meanwhile, as long as the run still wants them. It reports whether it did. The
// end of ctx does not keep it from writing down what was done.
func (e *Engine) appendResult(ctx context.Context, f *leased, events []pipeline.Event, wanted func(*pipeline.Run) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	for wanted(f.run) {
		err := e.append(ctx, f.run, events, nil)
		if err == nil || !isConflict(err) {
			return err == nil, err
		}
		if err := e.catchUp(ctx, f); err != nil {
			return false, err
		}
	}
	return false, nil
}

// catchUp takes in the events that others have appended.
func (e *Engine) catchUp(ctx context.Context, f *leased) error {
	events, err := e.store.Events(ctx, f.id, f.run.Seq)
	if err != nil {
		return fmt.Errorf("read new events: %w", err)
	}
	for _, ev := range events {
		f.run.Apply(ev)
	}

	return nil
}
