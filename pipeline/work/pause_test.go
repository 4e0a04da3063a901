package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// pausable are options with the store's own pauses, as the program's wiring has them.
func pausable(t *testing.T, k *keeper) Options {
	opts := options(t)
	opts.Paused = k.Paused
	return opts
}

func pause(t *testing.T, k *keeper, repo string, on bool) {
	t.Helper()
	if err := k.SetPaused(t.Context(), store.Pause{At: time.Now(), Actor: "mia", Repo: repo, Paused: on, Reason: "an incident"}); err != nil {
		t.Fatal(err)
	}
}

// looks waits until the engine has looked for due runs so many times.
func looks(t *testing.T, w *watcher, e *Engine, n int) {
	t.Helper()
	for range n {
		last := e.Heartbeat()
		w.until(t, "the engine looks for work", func() bool { return e.Heartbeat().After(last) })
	}
}

// Covers S30: while all is paused nothing begins, also after a restart; deliveries wait.
// Then everything happens once, as it would have without.
func TestPauseHoldsEverything(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		plain := newRun(t, k, 1)
		start(t, newEngine(t, k, options(t)))
		w := watchEvents(&Options{})
		w.untilState(t, k, plain, pipeline.StateVerified)
		want := eventTypes(t, k, plain)

		k = openStore(t)
		pause(t, k, "", true)
		run := newRun(t, k, 1)
		deliver(t, k, "g1", "start 2")
		board, phases := &billboard{}, &fakePhases{}
		opts := pausable(t, k)
		opts.Executor, opts.Publisher, opts.Hub, opts.Read = phases, board, &fakeGitHub{}, readWords
		w = watchEvents(&opts)
		e := start(t, newEngine(t, k, opts))
		looks(t, w, e, 3)
		stop(t, e)
		e = start(t, newEngine(t, k, opts))
		looks(t, w, e, 3)
		if did, shown := phases.did(), board.all(); len(did)+len(shown) > 0 {
			t.Errorf("while all is paused, phases %v began and %v was published", did, shown)
		}
		if state, _ := outcome(t, k, "g1"); state != record.DeliveryWaiting {
			t.Errorf("while all is paused, a delivery is %s; want it to wait", state)
		}
		if err := newDriven(t, k, opts).Drive(waitAWhile(t), run); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drive while all is paused = %v; want it to wait", err)
		}
		pause(t, k, "", false)
		w.untilState(t, k, run, pipeline.StateVerified)
		if got := eventTypes(t, k, run); !slices.Equal(got, want) {
			t.Errorf("a run that was paused has the events %v, without a pause %v", got, want)
		}
		w.until(t, "the delivery is handled", func() bool { state, _ := outcome(t, k, "g1"); return state == record.DeliveryDone })
		if did := phases.did(); len(slices.Compact(slices.Sorted(slices.Values(did)))) != len(did) {
			t.Errorf("a phase was done twice: %v", did)
		}
	})
}

func waitAWhile(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Covers S30: a pause of one repository holds that alone, by whatever letters it is named.
func TestPauseOfARepository(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		pause(t, k, "ACME/Shop", true)
		held := newRun(t, k, 1)
		free := newRun(t, k, 2, func(s *pipeline.Start) { s.Repo.ID, s.Repo.Name = 43, "site" })
		opts := pausable(t, k)
		w := watchEvents(&opts)
		e := start(t, newEngine(t, k, opts))
		w.untilState(t, k, free, pipeline.StateVerified)
		looks(t, w, e, 2)
		if run := load(t, k, held); run.Seq != 1 {
			t.Errorf("the run of the paused repository has %d events", run.Seq)
		}
		pause(t, k, "acme/shop", false)
		w.untilState(t, k, held, pipeline.StateVerified)
		if err := k.SetPaused(t.Context(), store.Pause{Repo: "acme/shop"}); !errors.Is(err, store.ErrNoChange) {
			t.Errorf("what is not paused is let go: %v", err)
		}
	})
}

// Covers S30: a phase during which all is paused is the last that begins.
func TestPauseBetweenPhases(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		run := newRun(t, k, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var paused sync.Once
		phases := &fakePhases{do: func(context.Context, *pipeline.Run, pipeline.Action, Emit) ([]pipeline.Event, error) {
			paused.Do(func() {
				pause(t, k, "", true)
				time.AfterFunc(200*time.Millisecond, cancel) // long enough for the next phase to begin
			})
			return nil, nil
		}}
		opts := pausable(t, k)
		opts.Executor, opts.Watch = phases, time.Hour // nothing else looks
		if err := newDriven(t, k, opts).Drive(ctx, run); !errors.Is(err, context.Canceled) {
			t.Errorf("Drive = %v; want it to wait", err)
		}
		if did := phases.did(); len(did) != 1 {
			t.Errorf("the phases %v began; want the first alone", did)
		}
	})
}

// Covers S30: what is under way is cut off within a second, a phase and a publication, and
// done again afterwards: the phase as the same action, the publication as one that may
// have landed. No try of it is counted as failed.
func TestPauseCutsOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		opts := pausable(t, k)
		begun, cut := make(chan string, 10), make(chan time.Time, 10)
		block := func(ctx context.Context, what string) error {
			begun <- what
			<-ctx.Done()
			cut <- time.Now()
			return ctx.Err()
		}
		var blocks [2]bool // guarded by the order of the channels
		phases := &fakePhases{do: func(ctx context.Context, _ *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if act.Phase.Phase == pipeline.PhaseImplement && !blocks[0] {
				blocks[0] = true
				return nil, block(ctx, act.Key)
			}
			return nil, nil
		}}
		board := &billboard{publish: func(ctx context.Context, run *pipeline.Run, _ bool) error {
			if run.State == pipeline.StateVerified && !blocks[1] {
				blocks[1] = true
				return block(ctx, "publication")
			}
			return nil
		}}
		opts.Executor, opts.Publisher = phases, board
		run := newRun(t, k, 1)
		w := watchEvents(&opts)
		e := start(t, newEngine(t, k, opts))
		for range 2 {
			what := <-begun
			at := time.Now()
			pause(t, k, "", true)
			if took := (<-cut).Sub(at); took > time.Second {
				t.Errorf("%s went on for %v after the pause", what, took)
			}
			looks(t, w, e, 2)
			before := load(t, k, run).Seq
			looks(t, w, e, 2)
			if after := load(t, k, run).Seq; after != before {
				t.Errorf("while paused, the run went from event %d to %d", before, after)
			}
			pause(t, k, "", false)
		}
		w.untilState(t, k, run, pipeline.StateVerified)
		events := eventTypes(t, k, run)
		if n := count(events, pipeline.EventPhaseFailed) + count(events, pipeline.EventPublishFailed); n > 0 {
			t.Errorf("the pauses count as %d failures: %v", n, events)
		}
		if did := phases.did(); len(did) != len(slices.Compact(slices.Clone(did)))+1 {
			t.Errorf("the phase that was cut off is not done once more as the same action: %v", did)
		}
		shown := board.all()
		if last := shown[len(shown)-1]; !last.again {
			t.Errorf("the publication that was cut off is not taken as one that may have landed: %+v", shown)
		}
	})
}
