package work

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/fence"
)

// Covers T1, M4: a run goes through its phases to its end, every step an event.
func TestDriveToVerified(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	c, b := &fakePhases{}, &billboard{}
	opts.Executor, opts.Publisher = c, b
	var seen []int64
	opts.OnEvents = func(run *pipeline.Run, events []pipeline.Event) {
		for _, ev := range events {
			seen = append(seen, ev.Seq)
		}
	}
	id := newRun(t, k, 7)
	if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	run := load(t, k, id)
	if run.State != pipeline.StateVerified || run.Published.Rev != run.Rev {
		t.Errorf("run is %s, shown at %d of %d", run.State, run.Published.Rev, run.Rev)
	}
	want := []string{"run/1/iter/0/plan", "run/1/iter/1/implement", "run/1/iter/1/review", "run/1/iter/1/test"}
	if diff := cmp.Diff(want, c.did()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	for _, s := range b.all() {
		if s.again {
			t.Errorf("revision %d was published as if an attempt were open", s.rev)
		}
	}
	for i, seq := range seen {
		if seq != int64(i)+2 {
			t.Fatalf("OnEvents saw the numbers %v, want 2, 3, 4, …", seen)
		}
	}
	if due, _, err := k.Due(t.Context(), time.Now(), 10); err != nil || len(due) > 0 {
		t.Errorf("Due = %v, %v; want none", due, err)
	}
}

// Covers R6: what breaks down is a fault of its class and is tried again.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		panic bool
		want  pipeline.FaultClass
	}{
		"fault": {err: &pipeline.Fault{Class: pipeline.FaultProvider, Message: "no answer"}, want: pipeline.FaultProvider},
		"error": {err: errors.New("disk full"), want: pipeline.FaultEnvironment},
		"panic": {panic: true, want: pipeline.FaultEnvironment},
		// A time limit of the executor's own is not the engine's stop.
		"timeout": {err: context.DeadlineExceeded, want: pipeline.FaultEnvironment},
	} {
		t.Run(name, func(t *testing.T) {
			k := openStore(t)
			opts := options(t)
			first := true
			opts.Executor = &fakePhases{do: func(context.Context, *pipeline.Run, pipeline.Action, Emit) ([]pipeline.Event, error) {
				if !first {
					return nil, nil
				}
				first = false
				if tc.panic {
					panic("oh no")
				}
				return nil, tc.err
			}}
			id := newRun(t, k, 7)
			if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if run := load(t, k, id); run.State != pipeline.StateVerified {
				t.Errorf("run is %s", run.State)
			}
			var got []pipeline.FaultClass
			events, _ := k.Events(t.Context(), id, 0)
			for _, ev := range events {
				if ev.Type == pipeline.EventPhaseFailed {
					got = append(got, ev.Data.Fault.Class)
				}
			}
			if diff := cmp.Diff([]pipeline.FaultClass{tc.want}, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// A gate holds no worker: Drive returns, and goes on after the answer.
func TestDriveStopsAtGate(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	e := newDriven(t, k, opts)
	id := newRun(t, k, 7, func(s *pipeline.Start) { s.Config.Mode = "manual" })
	if err := e.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if run := load(t, k, id); run.State != pipeline.StateWaiting {
		t.Fatalf("run is %s", run.State)
	}
	text, err := e.Tell(t.Context(), id, "x", command.Line{Name: "continue"}, maintainer, "cli")
	if err != nil || !strings.Contains(text, "approve") {
		t.Errorf("Tell(continue) = %q, %v; want the choices", text, err)
	}
	for range 2 { // the second one is the same command again
		if _, err := e.Tell(t.Context(), id, "y", command.Line{Name: "approve", Args: "all"}, maintainer, "cli"); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if run := load(t, k, id); run.State != pipeline.StateVerified {
		t.Errorf("run is %s", run.State)
	}
	if n := count(eventTypes(t, k, id), pipeline.EventGateAnswered); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// An event that arrives between the last look and the end of the lease is not lost.
func TestNoLostWakeUp(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	e := newDriven(t, k, options(t))
	id := newRun(t, k, 7)
	left := 20
	k.onRelease = func() {
		if left == 0 {
			return
		}
		left--
		run := load(t, k, id)
		ev := pipeline.Event{ID: newTrace(), Type: pipeline.EventGateReminded, Source: "test", Time: time.Now()}
		if err := k.Append(t.Context(), run, []pipeline.Event{ev}, nil); err != nil {
			t.Error(err)
		}
	}
	if err := e.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	run := load(t, k, id)
	if n := reminders(t, k, id); n != 20 || run.Published.Rev != run.Rev {
		t.Errorf("%d reminders, shown at %d of %d; want 20, all shown", n, run.Published.Rev, run.Rev)
	}
	if due, _, err := k.Due(t.Context(), time.Now(), 10); err != nil || len(due) > 0 {
		t.Errorf("Due = %v, %v; want none", due, err)
	}
}

// Others append while phases work and emit: every result stays, on top of theirs.
func TestConflicts(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	id := newRun(t, k, 7)
	other := func(n string) {
		for {
			run := load(t, k, id)
			ev := pipeline.Event{ID: n, Type: pipeline.EventIssueEdited, Source: "test", Time: time.Now(), Data: pipeline.Data{Task: &pipeline.Task{Title: n}}}
			err := k.Append(t.Context(), run, []pipeline.Event{ev}, nil)
			if err == nil {
				return
			}
			if !isConflict(err) {
				t.Error(err)
				return
			}
		}
	}
	opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
		other(act.Key + "/a")
		step := pipeline.Event{ID: act.Key + "/step", Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &pipeline.Step{Phase: act.Phase.Phase, Number: 1}}}
		if err := emit(ctx, step); err != nil {
			return nil, err
		}
		other(act.Key + "/b")
		return nil, nil
	}}
	opts.Publisher = &billboard{publish: func(context.Context, *pipeline.Run, bool) error { other(newTrace()); return nil }}
	if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	run := load(t, k, id)
	if run.State != pipeline.StateVerified || run.Steps[pipeline.PhaseReview] != 1 {
		t.Errorf("run is %s, steps %v", run.State, run.Steps)
	}
	types := eventTypes(t, k, id)
	if n := count(types, pipeline.EventPhaseCompleted); n != 4 {
		t.Errorf("%d phases completed, want 4: %v", n, types)
	}
}

// Covers lessons 12: a stop ends a running phase, whether this process is told
// of it or another one wrote it down; its result is dropped, and the phase is
// done again after the resume.
func TestStopEndsPhase(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{true, false} {
		t.Run(map[bool]string{true: "told", false: "found"}[told], func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *keeper) {
				opts := options(t)
				if told {
					opts.Watch = time.Hour
				}
				begun, blocking := make(chan struct{}, 1), true
				c := &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
					if act.Phase.Phase != pipeline.PhaseImplement || !blocking {
						return nil, nil
					}
					begun <- struct{}{}
					<-ctx.Done()
					return nil, nil // a result that nobody wants
				}}
				opts.Executor = c
				e := newDriven(t, k, opts)
				id := newRun(t, k, 7)
				ended := make(chan error, 1)
				go func() { ended <- e.Drive(t.Context(), id) }()
				<-begun
				if told {
					if _, err := e.Tell(t.Context(), id, "x", command.Line{Name: "stop"}, maintainer, "cli"); err != nil {
						t.Fatal(err)
					}
				} else {
					other := newDriven(t, k, options(t))
					if _, err := other.Tell(t.Context(), id, "x", command.Line{Name: "stop"}, maintainer, "cli"); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case err := <-ended:
					if err != nil {
						t.Fatal(err)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a stop took longer than 5 s")
				}
				run := load(t, k, id)
				if run.State != pipeline.StateStopped || run.Current().Impl != nil {
					t.Fatalf("run is %s, implementation %v", run.State, run.Current().Impl)
				}
				blocking = false
				if _, err := e.Tell(t.Context(), id, "y", command.Line{Name: "resume"}, maintainer, "cli"); err != nil {
					t.Fatal(err)
				}
				if err := e.Drive(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if run := load(t, k, id); run.State != pipeline.StateVerified {
					t.Errorf("run is %s", run.State)
				}
				want := []string{"run/1/iter/0/plan", "run/1/iter/1/implement", "run/1/iter/1/implement", "run/1/iter/1/review", "run/1/iter/1/test"}
				if diff := cmp.Diff(want, c.did()); diff != "" {
					t.Errorf("phases (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// emit refuses once the run does not want the phase any more, with no need of a look.
func TestEmitAfterStop(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	opts.Watch = time.Hour
	other := newDriven(t, k, options(t))
	id := newRun(t, k, 7)
	var got error
	opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
		if _, err := other.Tell(t.Context(), id, "x", command.Line{Name: "cancel"}, maintainer, "cli"); err != nil {
			t.Error(err)
		}
		got = emit(ctx, pipeline.Event{ID: "late", Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &pipeline.Step{}}})
		return nil, got
	}}
	if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got, errDropped) {
		t.Errorf("emit = %v, want %v", got, errDropped)
	}
	run := load(t, k, id)
	if run.State != pipeline.StateCancelled || run.Published.Rev != run.Rev {
		t.Errorf("run is %s, shown at %d of %d", run.State, run.Published.Rev, run.Rev)
	}
	if types := eventTypes(t, k, id); count(types, pipeline.EventAgentIteration)+count(types, pipeline.EventPhaseFailed) > 0 {
		t.Errorf("events after the cancel: %v", types)
	}
}

// A run that another worker has the lease of is left alone; when that worker
// dies, its lease runs out and the run is taken over.
func TestLeaseTakeOver(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	c := &fakePhases{}
	opts.Executor = c
	id := newRun(t, k, 7)
	at := time.Now()
	opts.Now = func() time.Time { return at }
	if ok, err := k.Lease(t.Context(), id, "a dead worker", at, 20*time.Second); err != nil || !ok {
		t.Fatal(ok, err)
	}
	e := newDriven(t, k, opts)
	at = at.Add(19 * time.Second)
	if err := e.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if did := c.did(); len(did) > 0 {
		t.Fatalf("worked without the lease: %v", did)
	}
	at = at.Add(2 * time.Second)
	if err := e.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if run := load(t, k, id); run.State != pipeline.StateVerified {
		t.Errorf("run is %s", run.State)
	}
}

// A worker that has lost its lease stops, and writes nothing more.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	opts.LeaseTTL = 40 * time.Millisecond
	id := newRun(t, k, 7)
	opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
		if ok, err := k.Lease(t.Context(), id, "a thief", time.Now().Add(time.Hour), time.Hour); err != nil || !ok {
			t.Error("Lease:", ok, err)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	types := eventTypes(t, k, id)
	if n := count(types, pipeline.EventPhaseFailed); n > 0 {
		t.Errorf("events: %v", types)
	}
	if ok, err := k.Renew(t.Context(), id, "a thief", time.Now(), time.Hour); err != nil || !ok {
		t.Errorf("the thief's lease is gone: %v, %v", ok, err)
	}
}

// Covers reliability 16: whoever stood still for longer than their lease asks before they
// write, and writes nothing when another has taken over, or when that cannot be told.
func TestStoodStill(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	e := newDriven(t, k, options(t))
	id := newRun(t, k, 7)
	f := &leased{id: id, owner: "me", run: load(t, k, id)}
	ctx := fence.With(t.Context(), func() error { return e.own(t.Context(), f) })
	take := func(who string, at time.Time) {
		t.Helper()
		if ok, err := k.Lease(t.Context(), id, who, at, e.LeaseTTL); err != nil || !ok {
			t.Fatal(who, ok, err)
		}
	}
	note := func(id string) error {
		return e.append(ctx, f.run, []pipeline.Event{{ID: id, Type: pipeline.EventBaseMoved, Data: pipeline.Data{Head: "abc"}}}, nil)
	}
	take("me", time.Now())
	if err := note("1"); err != nil || f.known.Load() == 0 {
		t.Errorf("after a stop in which nobody came: %v; it was renewed at %d", err, f.known.Load())
	}
	take("a thief", time.Now().Add(time.Hour))
	if err := note("2"); err != nil {
		t.Errorf("within the time of its lease it asks nobody: %v", err)
	}
	f.known.Store(int64(sinceBoot() - e.LeaseTTL))
	if err := note("3"); !errors.Is(err, errLost) {
		t.Errorf("after another took over: %v", err)
	}
	if _, err := e.appendResult(ctx, f, []pipeline.Event{{ID: "4", Type: pipeline.EventBaseMoved}}, func(*pipeline.Run) bool { return true }); !errors.Is(err, errLost) {
		t.Errorf("a result after another took over: %v", err)
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	e.store = unreachable{e.store}
	if err := e.own(away, f); !errors.Is(err, errLost) {
		t.Errorf("without a database: %v", err)
	}
	if n := count(eventTypes(t, k, id), pipeline.EventBaseMoved); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// unreachable is a store that never answers who has a lease.
type unreachable struct{ Store }

func (unreachable) Renew(ctx context.Context, _ int64, _ string, _ time.Time, _ time.Duration) (bool, error) {
	if _, ok := ctx.Deadline(); !ok {
		return false, errors.New("it would be waited for without end")
	}
	return false, context.DeadlineExceeded
}

// A lease is renewed for as long as the work takes.
func TestLeaseIsKept(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		opts.Watch = time.Hour
		id := newRun(t, k, 7)
		opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
			time.Sleep(90 * time.Second) // of the bubble's clock
			if ok, err := k.Lease(ctx, id, "a thief", time.Now(), time.Hour); err != nil || ok {
				t.Errorf("Lease after 90 s = %v, %v; want it to be taken", ok, err)
			}
			return nil, nil
		}}
		if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if run := load(t, k, id); run.State != pipeline.StateVerified {
			t.Errorf("run is %s", run.State)
		}
	})
}

// An action that changes nothing would be decided for ever: it is an error.
func TestEndlessDecision(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	e := newDriven(t, k, options(t))
	id := newRun(t, k, 7)
	for name, act := range map[string]pipeline.Action{
		"changes nothing": {Key: "x", Kind: pipeline.ActionRecord, Events: []pipeline.Event{{ID: "issue-7", Type: pipeline.EventRunStarted}}},
		"unknown kind":    {Key: "x", Kind: "dance"},
		"without a phase": {Key: "x", Kind: pipeline.ActionWork},
	} {
		e.decide = func(*pipeline.Run) *pipeline.Action { return &act }
		if err := e.Drive(t.Context(), id); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// The run is free for others.
	if ok, err := k.Lease(t.Context(), id, "other", time.Now(), time.Second); err != nil || !ok {
		t.Errorf("Lease = %v, %v", ok, err)
	}
}

func TestOptionsThatAreMissing(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	good := options(t)
	for name, change := range map[string]func(*Options){
		"Executor":  func(o *Options) { o.Executor = nil },
		"Publisher": func(o *Options) { o.Publisher = nil },
		"Hub":       func(o *Options) { o.Read = readWords },
	} {
		opts := good
		change(&opts)
		if _, err := New[struct{}](nil, nil, k, opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New without %s: %v", name, err)
		}
	}
	if err := newDriven(t, k, good).Start(t.Context()); err == nil {
		t.Error("Start without drivers: no error")
	}
}

// A clock that jumps, as after a machine has slept, makes a lease run out under whoever
// works, or last too long: nobody of the same engine works beside them, and the run comes
// to its end. Covers reliability 14.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"an hour": time.Hour, "ten minutes back": -10 * time.Minute, "a day": 24 * time.Hour, "it stands still": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openStore(t)
			opts := options(t)
			var ahead atomic.Int64
			stands := time.Now()
			opts.Now = func() time.Time {
				if jump == 0 {
					return stands
				}
				return time.Now().Add(time.Duration(ahead.Load()))
			}
			id := newRun(t, k, 7)
			var e *Engine
			var inside, beside atomic.Int64
			opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
				if inside.Add(1) > 1 {
					beside.Add(1)
				}
				defer inside.Add(-1)
				ahead.Add(int64(jump))
				if beside.Load() == 0 {
					if v, err := e.advance(t.Context(), id, false); err != nil || v.due {
						t.Errorf("beside it: %+v, %v", v, err)
					}
				}
				return nil, nil
			}}
			e = newDriven(t, k, opts)
			if err := e.Drive(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if n := beside.Load(); n > 0 {
				t.Errorf("%d phases began beside another of the same run", n)
			}
			if run := load(t, k, id); run.State != pipeline.StateVerified {
				t.Errorf("run is %s", run.State)
			}
		})
	}
}
