package work

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"forge/pipeline"
)

// Covers lessons 12: a gate that nobody answers is reminded of once, then the run
// ends, with nobody staying for it.
func TestTimeLimitOfAGate(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	now := time.Now()
	opts.Now = func() time.Time { return now }
	e := newDriven(t, k, opts)
	id := newRun(t, k, 7, func(s *pipeline.Start) { s.Config.Mode = "manual" })
	drive := func(after time.Duration, due bool, state pipeline.State, reminders int) {
		t.Helper()
		now = now.Add(after)
		list, _, err := k.Due(t.Context(), now, 10)
		if err != nil || slices.Contains(list, id) != due {
			t.Errorf("due runs %v, %v; want this one to be due: %v", list, err, due)
		}
		if err := e.Drive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if run := load(t, k, id); run.State != state || count(eventTypes(t, k, id), pipeline.EventGateReminded) != reminders {
			t.Errorf("after %s: %s, %v", after, run.State, eventTypes(t, k, id))
		}
	}
	drive(0, true, pipeline.StateWaiting, 0)
	drive(23*time.Hour, false, pipeline.StateWaiting, 0)
	drive(2*time.Hour, true, pipeline.StateWaiting, 1)
	drive(24*time.Hour, false, pipeline.StateWaiting, 1)
	drive(13*24*time.Hour, true, pipeline.StateCancelled, 1)
}

// A phase that waits for a machine elsewhere is woken by news of it, and looked at
// again without; in between there is no worker.
func TestWaitForElsewhere(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]bool{"news": true, "no news": false} {
		t.Run(name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts := options(t)
				looks := 0
				opts.Executor = &fakePhases{do: func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
					if act.Phase.Phase != pipeline.PhaseTest {
						return nil, nil
					}
					if looks++; looks > 1 {
						return nil, nil
					}
					at := time.Now()
					return []pipeline.Event{{ID: act.Key + "/waiting/1", Type: pipeline.EventPhaseWaiting, Data: pipeline.Data{Phase: act.Phase,
						Await: &pipeline.Await{What: "the check build", Since: at, Next: at.Add(time.Minute), Until: at.Add(time.Hour)}}}}, nil
				}}
				id := newRun(t, k, 7)
				begun := time.Now()
				if !news {
					if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					if waited := time.Since(begun); waited < time.Minute || waited > 2*time.Minute {
						t.Errorf("it waited %s, want a minute", waited)
					}
				} else {
					e := newDriven(t, k, opts)
					if _, err := e.advance(t.Context(), id, true); err != nil {
						t.Fatal(err)
					}
					deliver(t, k, "g1", "checks "+load(t, k, id).Head)
					intake(t, k, opts)
					if _, err := e.advance(t.Context(), id, true); err != nil {
						t.Fatal(err)
					}
					if waited := time.Since(begun); waited > 10*time.Second {
						t.Errorf("it waited %s in spite of the news", waited)
					}
				}
				if run := load(t, k, id); run.State != pipeline.StateVerified || looks != 2 {
					t.Errorf("run is %s after %d looks: %v", run.State, looks, eventTypes(t, k, id))
				}
			})
		})
	}
}

// A push to the default branch reaches every run of the repository that has not
// ended, and each takes it in before it is verified.
func TestBaseMoves(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		e := newDriven(t, k, opts)
		ended, one, two := newRun(t, k, 5), newRun(t, k, 6), newRun(t, k, 7)
		if err := e.Drive(t.Context(), ended); err != nil {
			t.Fatal(err)
		}
		deliver(t, k, "g1", "base cafe")
		intake(t, k, opts)
		if _, got := outcome(t, k, "g1"); got != "run 2: noted: it is taken in before the run is verified; run 3: noted: it is taken in before the run is verified" {
			t.Errorf("outcome %q", got)
		}
		for _, id := range []int64{one, two} {
			if err := e.Drive(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if run := load(t, k, id); run.State != pipeline.StateVerified || run.Head != "merge-cafe" || run.Base != "cafe" {
				t.Errorf("run %d is %s at %s from %s", id, run.State, run.Head, run.Base)
			}
		}
	})
}
