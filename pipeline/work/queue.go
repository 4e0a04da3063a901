package work

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"forge/pipeline/panics"
)

// The lanes say why a run has a job.
const (
	laneNew  = "new"  // it begins
	laneWake = "wake" // something happened to it
	laneNext = "next" // it goes on: a next iteration, a retry, a take-over
)

// tries is how often a job may break down, or a delivery be handled in vain,
// before it is a dead letter.
const tries = 5

// keepDead is how long dead letters stay: until someone cares. River's -1 for
// "for ever" deletes them at once on SQLite, whose driver (v0.31.0) does not look
// at JobDeleteBeforeParams.DiscardedDoDelete.
const keepDead = 20 * 365 * 24 * time.Hour

// partQueue is the queue of the runs that build modules: they have workers of their own,
// so that a run with many modules does not keep others waiting.
const partQueue = "parts"

// advance is the one kind of job.
type advance struct {
	Run  int64  `json:"run"`
	Lane string `json:"lane"`
	Part bool   `json:"part,omitempty"` // it builds a module
}

func (advance) Kind() string { return "advance" }

// insertOpts gives rework priority over new runs. A run has at most one job in
// the lane that the ticker uses, so that the queue does not grow while runs wait
// for a worker. A discarded one counts: a dead letter is not tried again by itself.
// What people do has jobs without such a limit: one that has looked at the run but
// is not marked as done yet must not swallow the next.
func (a advance) insertOpts() *river.InsertOpts {
	o := &river.InsertOpts{MaxAttempts: tries, Priority: 1}
	if a.Part {
		o.Queue = partQueue
	}
	switch a.Lane {
	case laneNew:
		o.Priority = 3
	case laneNext:
		o.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled, rivertype.JobStateDiscarded,
		}}
	}
	return o
}

// queue is River's driver that jobs are fetched with, whatever its transactions are.
type queue interface {
	DatabaseName() string
	SupportsListener() bool
	GetExecutor() riverdriver.Executor
	client(*river.Config) (client, error)
	migrator(*rivermigrate.Config) (migrator, error)
}

// client is River's client that works on jobs.
type client interface {
	Start(context.Context) error
	Stop(context.Context) error
	StopAndCancel(context.Context) error
	Insert(context.Context, river.JobArgs, *river.InsertOpts) (*rivertype.JobInsertResult, error)
	InsertMany(context.Context, []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
}

type migrator interface {
	Migrate(context.Context, rivermigrate.Direction, *rivermigrate.MigrateOpts) (*rivermigrate.MigrateResult, error)
	ExistingVersions(context.Context) ([]rivermigrate.Migration, error)
}

// driver is a queue whose driver has transactions of type W.
type driver[W any] struct{ riverdriver.Driver[W] }

func (d driver[W]) client(c *river.Config) (client, error) { return river.NewClient(d.Driver, c) }

func (d driver[W]) migrator(c *rivermigrate.Config) (migrator, error) {
	return rivermigrate.New(d.Driver, c)
}

// Migrate brings River's tables up to date. Start does it too.
func (e *Engine) Migrate(ctx context.Context) error {
	m, err := e.queue.migrator(&rivermigrate.Config{Logger: quiet(e.Logger)})
	if err != nil {
		return fmt.Errorf("migrate job tables: %w", err)
	}
	for done := -1; ; {
		_, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err == nil {
			return nil
		}
		// Several commands on a new database collide. As long as the others get on with it, so does this one.
		there, look := m.ExistingVersions(ctx)
		if look != nil || len(there) <= done {
			return fmt.Errorf("migrate job tables: %w", err)
		}
		done = len(there)
	}
}

// soleOwner reports whether the database is a file, with this process as its one owner.
func (e *Engine) soleOwner() bool { return e.queue.DatabaseName() == "sqlite" }

func (e *Engine) startWorker(ctx context.Context) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &advancer{engine: e})
	poll := time.Second // a fallback: PostgreSQL notifies
	if !e.queue.SupportsListener() {
		poll = 200 * time.Millisecond // each look costs about 1 ms of CPU, also while nothing is to do
	}
	client, err := e.queue.client(&river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: e.Workers}, partQueue: {MaxWorkers: e.PartWorkers}},
		Workers:                     workers,
		FetchCooldown:               20 * time.Millisecond,
		FetchPollInterval:           poll,
		JobTimeout:                  -1,             // phases have limits of their own
		RescueStuckJobsAfter:        24 * time.Hour, // the lease is what counts
		CompletedJobRetentionPeriod: time.Hour,      // nothing is looked up in them, but one must not go before its worker says that it is done
		DiscardedJobRetentionPeriod: keepDead,
		RetryPolicy:                 retryPolicy(e.retry),
		Logger:                      quiet(e.Logger),
	})
	if err != nil {
		return fmt.Errorf("working client: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("working client: %w", err)
	}
	e.worker = client
	return nil
}

// retryDelay spaces the tries of a job that broke down: 1, 4, 16, 64 s.
func retryDelay(try int) time.Duration { return time.Second << (2 * (min(max(try, 1), 10) - 1)) }

type retryPolicy func(try int) time.Duration

func (p retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(p(job.Attempt)) // River compares it with the machine's clock
}

// advancer is River's view of the engine.
type advancer struct {
	river.WorkerDefaults[advance]
	engine *Engine
}

func (a *advancer) Work(ctx context.Context, job *river.Job[advance]) (err error) {
	e, run := a.engine, job.Args.Run
	defer panics.AsError(ctx, e.Logger.With(logRun, run), &err, "advancing a run")
	v, err := e.advance(ctx, run, true)
	if err != nil {
		return fmt.Errorf("advance run %d: %w", run, err)
	}
	if !v.due || v.after > 0 { // what is postponed is found when its time has come
		return nil
	}
	if job.Args.Lane == laneNext || e.draining() {
		return river.JobSnooze(0)
	}
	next := advance{Run: run, Lane: laneNext, Part: job.Args.Part}
	if _, err := e.worker.Insert(ctx, next, next.insertOpts()); err != nil {
		return fmt.Errorf("advance run %d: insert its next job: %w", run, err)
	}
	return nil
}

// enqueue adds a job to the store's transaction. Who drives a run also goes on with
// it, and needs none: a store that no server has used has no tables for jobs.
func (e *Engine) enqueue(ctx context.Context, tx *Tx, run int64, lane string, part bool) error {
	if _, driven := e.driven.Load(run); e.adder == nil || driven {
		return nil
	}
	job := advance{Run: run, Lane: lane, Part: part}
	if _, err := e.adder.InsertTx(ctx, tx, job, job.insertOpts()); err != nil {
		return fmt.Errorf("insert job for run %d: %w", run, err)
	}
	return nil
}

// tick looks for due runs without a job, again and again. The first time it takes
// all of them.
func (e *Engine) tick(ctx context.Context) {
	t := time.NewTicker(e.Tick)
	defer t.Stop()
	limit := 100_000
	for {
		if err := e.wakeAnswered(ctx); err != nil && ctx.Err() == nil {
			e.Logger.WarnContext(ctx, "looking for runs whose provider answers", logError, err)
		}
		if err := e.sweep(ctx, limit); err != nil && ctx.Err() == nil {
			e.Logger.WarnContext(ctx, "looking for due runs", logError, err)
		} else {
			limit = 200
			e.beat.Store(e.now().UnixMicro())
		}
		select {
		case <-e.drain:
			return
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// sweep gives every due run that nobody works on a job.
func (e *Engine) sweep(ctx context.Context, limit int) error {
	now := e.now()
	ids, parts, err := e.store.Due(ctx, now, limit)
	if err != nil {
		return fmt.Errorf("list due runs: %w", err)
	}
	var params []river.InsertManyParams
	for i, id := range slices.Concat(ids, parts) {
		job := advance{Run: id, Lane: laneNext, Part: i >= len(ids)}
		params = append(params, river.InsertManyParams{Args: job, InsertOpts: job.insertOpts()})
	}
	const batch = 250 // the one writer of SQLite has others to serve
	for len(params) > 0 && !e.draining() {
		n := min(batch, len(params))
		res, err := e.worker.InsertMany(ctx, params[:n])
		if err != nil {
			return fmt.Errorf("insert jobs of %d due runs: %w", n, err)
		}
		e.freeDeadWorkers(ctx, res, now)
		params = params[n:]
	}
	return nil
}

// freeDeadWorkers looks at jobs that stood in the way of new ones. One that is
// "running" although nobody has had the run's lease for so long belongs to a
// worker that died. One whose worker is this engine's own is alive, however late it
// renews its lease: done twice, the job could be gone when the first one ends, which
// River's driver for SQLite (v0.31.0) does not survive.
func (e *Engine) freeDeadWorkers(ctx context.Context, res []*rivertype.JobInsertResult, now time.Time) {
	for _, r := range res {
		j := r.Job
		if !r.UniqueSkippedAsDuplicate || j.State != rivertype.JobStateRunning || j.AttemptedAt == nil || now.Sub(*j.AttemptedAt) < e.LeaseTTL {
			continue
		}
		var args advance
		if err := json.Unmarshal(j.EncodedArgs, &args); err != nil {
			e.Logger.WarnContext(ctx, "reading a job", "job", j.ID, logError, err)
			continue
		}
		if _, alive := e.active.Load(args.Run); alive {
			continue
		}
		if err := e.free(ctx, j); err != nil { // it may have ended this moment
			e.Logger.DebugContext(ctx, "freeing the job of a dead worker", "job", j.ID, logError, err)
		}
	}
}

// freeJobs makes the jobs available again that an earlier process was working on.
// River itself would wait for them to grow old.
func (e *Engine) freeJobs(ctx context.Context) error {
	jobs, err := e.queue.GetExecutor().JobGetStuck(ctx, &riverdriver.JobGetStuckParams{Max: 10_000, StuckHorizon: e.Now().Add(24 * time.Hour)})
	if err != nil {
		return fmt.Errorf("list jobs of an earlier process: %w", err)
	}
	for _, j := range jobs {
		if err := e.free(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// free takes a job from its worker. A death of the worker is no try of the job.
func (e *Engine) free(ctx context.Context, j *rivertype.JobRow) error {
	_, err := e.queue.GetExecutor().JobUpdateFull(ctx, &riverdriver.JobUpdateFullParams{
		ID: j.ID, AttemptDoUpdate: true, Attempt: max(0, j.Attempt-1), StateDoUpdate: true, State: rivertype.JobStateAvailable,
	})
	if err != nil {
		return fmt.Errorf("free job %d: %w", j.ID, err)
	}
	return nil
}

// quiet keeps River's own news out of the log; its warnings stay.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(warnings{l.Handler()}) }

type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
func (w warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(a)} }
func (w warnings) WithGroup(n string) slog.Handler      { return warnings{w.Handler.WithGroup(n)} }
