package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// databases run a test on all that an engine has to work with. With the tag e2e,
// PostgreSQL is one.
var databases = map[string]func(*testing.T, databaseTest){
	"sqlite": func(t *testing.T, test databaseTest) {
		inBubble(t, func(t *testing.T, k *keeper) {
			test(t, k, func(o Options) *Engine { return newEngine(t, k, o) })
		})
	},
}

type databaseTest func(t *testing.T, k *keeper, mk func(Options) *Engine)

func onEach(t *testing.T, test databaseTest) {
	for name, on := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, test)
		})
	}
}

// Covers T1, lessons 12: from the label's delivery through the queue to the end,
// with a stop and a resume by comment in between.
func TestFromDeliveryToVerified(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		opts.Tick = time.Hour // the queue alone must do
		opts.Hub, opts.Read = &fakeGitHub{}, readWords
		begun := make(chan struct{}, 16)
		var stopped atomic.Bool
		opts.Executor = &fakePhases{do: func(ctx context.Context, _ *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if act.Phase.Phase == pipeline.PhaseReview && !stopped.Load() {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		}}
		w := watchEvents(&opts)
		m := mk(opts)
		start(t, m)
		deliver(t, k, "g1", "start 7")
		m.Wake()
		<-begun
		deliver(t, k, "g2", "command 7 stop")
		m.Wake()
		w.untilState(t, k, 1, pipeline.StateStopped)
		w.until(t, "nobody works on it", func() bool { return idle(t, k, 1) })
		stopped.Store(true)
		deliver(t, k, "g3", "command 7 resume")
		m.Wake()
		w.untilState(t, k, 1, pipeline.StateVerified)
		if types := eventTypes(t, k, 1); count(types, pipeline.EventPhaseFailed) > 0 {
			t.Errorf("events: %v", types)
		}
	})
}

// idle reports whether a run's lease is free, by trying it.
func idle(t testing.TB, k *keeper, run int64) bool {
	t.Helper()
	ok, err := k.Lease(t.Context(), run, "idle?", time.Now(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		if err := k.Drop(t.Context(), run, "idle?"); err != nil {
			t.Fatal(err)
		}
	}
	return ok
}

// Two servers share the work: every phase is executed once.
func TestTwoEngines(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		c := &fakePhases{}
		opts.Executor = c
		w := watchEvents(&opts)
		for range 2 {
			start(t, mk(opts))
		}
		var ids []int64
		for i := range 12 {
			ids = append(ids, newRun(t, k, i+1))
		}
		for _, id := range ids {
			w.untilState(t, k, id, pipeline.StateVerified)
		}
		seen := map[string]bool{}
		for _, key := range c.did() {
			if seen[key] {
				t.Errorf("%s was executed twice", key)
			}
			seen[key] = true
		}
		if len(seen) != 4*len(ids) {
			t.Errorf("%d phases, want %d", len(seen), 4*len(ids))
		}
	})
}

// Wake-ups that race with the end of the work are not lost.
func TestHammer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		w := watchEvents(&opts)
		m := mk(opts)
		start(t, m)
		id := newRun(t, k, 7)
		w.untilState(t, k, id, pipeline.StateVerified)
		var writers sync.WaitGroup
		for n := range 4 {
			writers.Go(func() {
				for i := range 10 {
					for {
						run := load(t, k, id)
						ev := pipeline.Event{ID: fmt.Sprintf("%d/%d", n, i), Type: pipeline.EventGateReminded, Source: "test", Time: time.Now()}
						if err := k.Append(context.Background(), run, []pipeline.Event{ev}, nil); err == nil {
							break
						} else if !isConflict(err) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		writers.Wait()
		w.until(t, "all is shown, and nothing is due", func() bool {
			run := load(t, k, id)
			due, _, err := k.Due(t.Context(), time.Now(), 1)
			return err == nil && len(due) == 0 && reminders(t, k, id) == 40 && run.Published.Rev == run.Rev && idle(t, k, id)
		})
	})
}

// Covers reliability 15: an engine that stops lets phases end at their next step,
// cancels those that have none, keeps the runs due, and the next one goes on.
func TestDrain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		opts.Tick = 10 * time.Millisecond
		begun := make(chan struct{}, 16)
		ends := make(chan error, 16)
		opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
			begun <- struct{}{}
			if run.Task.Issue == 1 { // it has no steps
				<-ctx.Done()
				ends <- context.Cause(ctx)
				return nil, ctx.Err()
			}
			for i := 0; ; i++ {
				ev := pipeline.Event{ID: fmt.Sprintf("%s/%d/%s", act.Key, i, newTrace()), Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &pipeline.Step{Phase: act.Phase.Phase, Number: i + 1}}}
				if err := emit(ctx, ev); err != nil {
					ends <- err
					return nil, err
				}
			}
		}}
		m := mk(opts)
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		one, two := newRun(t, k, 1), newRun(t, k, 2)
		<-begun
		<-begun
		stop(t, m)
		for range 2 {
			if err := <-ends; !errors.Is(err, errDrain) {
				t.Errorf("a phase ended with %v, want %v", err, errDrain)
			}
		}
		due, _, err := k.Due(t.Context(), time.Now(), 10)
		if err != nil || len(due) != 2 {
			t.Errorf("due runs %v, %v; want both, with no lease", due, err)
		}
		opts.Executor = &fakePhases{}
		w := watchEvents(&opts)
		start(t, mk(opts))
		w.untilState(t, k, one, pipeline.StateVerified)
		w.untilState(t, k, two, pipeline.StateVerified)
		if types := eventTypes(t, k, one); count(types, pipeline.EventPhaseFailed) > 0 || count(types, pipeline.EventPhaseEntered) != 4 {
			t.Errorf("events: %v", types)
		}
	})
}

// Rework goes ahead of new work, and a run yields between its iterations.
func TestReworkFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		opts := options(t)
		opts.Workers = 1
		var yields atomic.Int32
		gate := make(chan struct{})
		c := &fakePhases{}
		c.do = func(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if run.Task.Issue == 1 && act.Phase.Phase == pipeline.PhasePlan {
				<-gate
			}
			if run.Task.Issue == 1 && act.Phase.Phase == pipeline.PhaseReview && act.Phase.Iteration == 1 {
				f := pipeline.Finding{ID: "F1", Fingerprint: "f", Severity: pipeline.SeverityError, Message: "wrong"}
				return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: act.Phase, Review: &pipeline.Review{Head: run.Head, Findings: []pipeline.Finding{f}}}}}, nil
			}
			return nil, nil
		}
		opts.Executor, opts.Hub, opts.Read, opts.Tick = c, &fakeGitHub{}, readWords, time.Hour
		opts.Logger = nil
		w := watchEvents(&opts)
		e := newEngine(t, k, opts)
		inner := e.decide
		e.decide = func(r *pipeline.Run) *pipeline.Action {
			act := inner(r)
			if act != nil && bounced(*act) {
				yields.Add(1)
			}
			return act
		}
		start(t, e)
		deliver(t, k, "g1", "start 1")
		e.Wake()
		w.until(t, "run 1 is being planned", func() bool { return len(c.did()) == 1 })
		deliver(t, k, "g2", "start 2")
		e.Wake()
		w.until(t, "run 2 waits", func() bool { s, _ := outcome(t, k, "g2"); return s == record.DeliveryDone })
		close(gate)
		w.untilState(t, k, 2, pipeline.StateVerified)
		w.untilState(t, k, 1, pipeline.StateVerified)
		want := []string{
			"run/1/iter/0/plan", "run/1/iter/1/implement", "run/1/iter/1/review",
			"run/1/iter/2/implement", "run/1/iter/2/review", "run/1/iter/2/test",
			"run/2/iter/0/plan", "run/2/iter/1/implement", "run/2/iter/1/review", "run/2/iter/1/test",
		}
		if diff := cmp.Diff(want, c.did()); diff != "" || yields.Load() != 1 {
			t.Errorf("phases, with %d yields (-want +got):\n%s", yields.Load(), diff)
		}
		jobs := listJobs(t, e)
		if jobs[laneNext] != 1 {
			t.Errorf("jobs by lane: %v; want one that goes on after the bounce", jobs)
		}
	})
}

// listJobs counts the jobs that there ever were, by lane.
func listJobs(t testing.TB, e *Engine) map[string]int {
	t.Helper()
	list, err := e.queue.GetExecutor().JobGetByKindMany(t.Context(), &riverdriver.JobGetByKindManyParams{Kind: []string{"advance"}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, j := range list {
		for _, lane := range []string{laneNew, laneNext, laneWake} {
			if strings.Contains(string(j.EncodedArgs), `"`+lane+`"`) {
				out[lane]++
			}
		}
	}
	return out
}

// A run whose advancing breaks down again and again is a dead letter: it is left
// alone, listed with its error, and can be driven again.
func TestDeadJob(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		w := watchEvents(&opts)
		m := mk(opts)
		var sick atomic.Bool
		sick.Store(true)
		var looks atomic.Int32
		broken := func(r *pipeline.Run) *pipeline.Action {
			if sick.Load() && r.Task.Issue == 13 {
				looks.Add(1)
				panic("a poisonous run")
			}
			return pipeline.Decide(r)
		}
		quick := func(int) time.Duration { return 20 * time.Millisecond }
		m.decide, m.retry = broken, quick
		start(t, m)
		bad, good := newRun(t, k, 13), newRun(t, k, 14)
		w.untilState(t, k, good, pipeline.StateVerified)
		var dead []DeadLetter
		w.until(t, "run 13 is a dead letter", func() bool {
			var err error
			if dead, err = m.Dead(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(dead) > 0
		})
		if d := dead[0]; d.Run != bad || d.Attempts != 5 || !strings.Contains(d.Error, "a poisonous run") || d.At.IsZero() || looks.Load() != 5 {
			t.Errorf("after %d looks: %+v", looks.Load(), d)
		}
		// Looking for due runs goes on, and passes it over.
		w.untilState(t, k, newRun(t, k, 15), pipeline.StateVerified)
		if n := looks.Load(); n != 5 {
			t.Errorf("the dead run was looked at %d times, want 5", n)
		}
		sick.Store(false)
		if err := m.Redrive(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		w.untilState(t, k, bad, pipeline.StateVerified)
		if dead, err := m.Dead(t.Context()); err != nil || len(dead) > 0 {
			t.Errorf("Dead = %v, %v", dead, err)
		}
		if err := m.Redrive(t.Context(), dead[0].ID); err == nil {
			t.Error("Redrive of what is not dead: no error")
		}
	})
}

// What an earlier process left behind — leases, jobs that it was working on — is
// taken over at once when a file is opened again.
func TestRestartOnSQLite(t *testing.T) {
	t.Parallel()
	k := openStore(t) // River's clock is the database's here
	opts := options(t)
	old := newEngine(t, k, opts)
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := newRun(t, k, 7)
	if err := k.Tx(t.Context(), func(ctx context.Context, tx *Tx) error { return old.enqueue(ctx, tx, id, laneNext, false) }); err != nil {
		t.Fatal(err)
	}
	// As if it had been killed with the job in its hands.
	takeJob(t, old)
	if ok, err := k.Lease(t.Context(), id, "the old process", time.Now(), time.Hour); err != nil || !ok {
		t.Fatal(ok, err)
	}
	opts.Tick = time.Hour
	w := watchEvents(&opts)
	e := start(t, newEngine(t, k, opts))
	w.untilState(t, k, id, pipeline.StateVerified)
	if jobs := listJobs(t, e); jobs[laneNext] != 1 {
		t.Errorf("jobs: %v; want the one that was there", jobs)
	}
}

// Commands that answer several questions at once, each with the file open for itself, lose none.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "forge.db")
	var engines []*Engine
	for range 6 {
		db, err := store.Open(t.Context(), address, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		engines = append(engines, newEngine(t, &keeper{DB: db}, options(t)))
	}
	errs := make(chan error)
	for _, e := range engines {
		go func() { errs <- e.Migrate(t.Context()) }()
	}
	for range engines {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// takeJob fetches the one job, as a worker that then dies.
func takeJob(t testing.TB, e *Engine) *rivertype.JobRow {
	t.Helper()

	jobs, err := e.queue.GetExecutor().JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "dead", MaxToLock: 1, MaxAttemptedBy: 10, Queue: "default"})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	return jobs[0]
}

// Where several processes share a database, the job of a worker that died is
// freed once nobody has had the run's lease for long enough.
func TestDeadWorker(t *testing.T) {
	t.Parallel()
	k := openStore(t) // River's clock is the database's here
	opts := options(t)
	opts.LeaseTTL = 10 * time.Second
	opts.Workers = 1
	e := newEngine(t, k, opts)
	if err := e.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.startWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.worker.StopAndCancel(t.Context()); err != nil { // it inserts, and fetches nothing
		t.Fatal(err)
	}
	id := newRun(t, k, 7)
	if err := e.sweep(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	job := takeJob(t, e)
	state := func() rivertype.JobState {
		j, err := e.queue.GetExecutor().JobGetByID(t.Context(), &riverdriver.JobGetByIDParams{ID: job.ID})
		if err != nil {
			t.Fatal(err)
		}
		return j.State
	}
	for _, step := range []struct {
		later time.Duration
		own   bool // the worker is this engine's, and alive
		want  rivertype.JobState
	}{
		{6 * time.Second, false, rivertype.JobStateRunning},
		{12 * time.Second, true, rivertype.JobStateRunning},
		{12 * time.Second, false, rivertype.JobStateAvailable},
	} {
		e.active.Delete(id)
		if step.own {
			e.active.Store(id, &leased{id: id})
		}
		e.Now = func() time.Time { return time.Now().Add(step.later) }
		if err := e.sweep(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if got := state(); got != step.want {
			t.Errorf("%v later the job of run %d is %s, want %s", step.later, id, got, step.want)
		}
	}
}

// Covers reliability 1: a restart with many runs is quick, and a queue of runs
// that wait for a worker does not grow.
func TestRestartWithManyRuns(t *testing.T) {
	t.Parallel()
	n := 40
	if thorough {
		n = 400
	}
	inBubble(t, func(t *testing.T, k *keeper) {
		for i := range n {
			newRun(t, k, i+1)
		}
		opts := options(t)
		opts.Workers = 1
		block := make(chan struct{})
		opts.Executor = &fakePhases{do: func(ctx context.Context, _ *pipeline.Run, _ pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			select {
			case <-block:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}}
		w := watchEvents(&opts)
		e := newEngine(t, k, opts)
		if err := e.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		start(t, e)
		if took := time.Since(began); thorough && took > time.Second {
			t.Errorf("Start took %v with %d runs, want under 1 s", took, n)
		}
		w.until(t, "every run has a job", func() bool { return listJobs(t, e)[laneNext] == n })
		for range 3 {
			if err := e.sweep(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if jobs := listJobs(t, e); jobs[laneNext] != n {
			t.Errorf("after more looks there are %d jobs for %d runs", jobs[laneNext], n)
		}
	})
}

// The engine starts once, and stops also when it never started.
func TestStartTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		e := start(t, newEngine(t, k, options(t)))
		if err := e.Start(t.Context()); err == nil {
			t.Error("second Start: no error")
		}
		idle := newEngine(t, k, options(t))
		stop(t, idle)
		stop(t, idle)
		if err := idle.Start(t.Context()); err == nil {
			t.Error("Start after Stop: no error")
		}
	})
}

// An executor that does not care about its context holds up Stop only as long as
// the caller lets it.
func TestStopInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		opts := options(t)
		begun, release := make(chan struct{}), make(chan struct{})
		opts.Executor = &fakePhases{do: func(context.Context, *pipeline.Run, pipeline.Action, Emit) ([]pipeline.Event, error) {
			close(begun)
			<-release
			return nil, errors.New("too late")
		}}
		e := newEngine(t, k, opts)
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		newRun(t, k, 7)
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop = %v, want that its time ran out", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Stop took %v", took)
		}
		close(release)
		<-e.worker.(*river.Client[*Tx]).Stopped()
	})
}
