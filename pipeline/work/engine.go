package work

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/mergeable"
)

// The keys of the engine's log lines. They are stable: people search for them.
const (
	logDelivery = "delivery"
	logRepo     = "repo"
	logRun      = "run"
	logPhase    = "phase"
	logAction   = "action"
	logError    = "error"
)

// Executor executes phases.
type Executor interface {
	// Do executes the phase of act. run is a snapshot of the run as it stands when
	// the phase begins; it belongs to the executor. emit appends events at once and
	// for good; when it returns an error the phase has to end. The events that Do
	// returns are appended when it is done, the phase's completion among them.
	//
	// An error that is a *pipeline.Fault becomes a phase.failed with it, any other
	// one a fault of the environment. When ctx is cancelled Do returns soon; the
	// phase is then dropped, or done again later with the same act.
	Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error)
}

// Emit appends events to the run whose phase is being executed. It is safe for
// concurrent use.
type Emit = func(ctx context.Context, events ...pipeline.Event) error

// Publisher brings GitHub in line with a run.
type Publisher interface {
	// Publish makes GitHub show the run, which it must neither change nor keep. again says that an earlier attempt may have
	// landed without being recorded: it must look before it creates. The events it
	// returns are appended after the publication's own.
	//
	// After an error it is tried again: not before what its method RetryAfter()
	// time.Duration says, when it has one, and not before Options.Settle unless it
	// has a method Ambiguous() bool that says that nothing can have landed.
	Publish(ctx context.Context, run *pipeline.Run, again bool) (pipeline.Publication, []pipeline.Event, error)
}

// MergeQueue gives verdicts on what GitHub's merge queue is about to merge.
type MergeQueue interface {
	// MergeGroup shows the verdict on the notice's head, and says what it is. run is the
	// one whose pull request is in the group, nil for a pull request of others.
	MergeGroup(ctx context.Context, n pipeline.Notice, run *pipeline.Run) (string, error)
}

// Hub is what the intake needs of GitHub.
type Hub interface {
	// Permission returns the actor's permission on the repository as it is now:
	// admin, maintain, write, triage, read or none.
	Permission(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (string, error)

	// Prepare gathers what a run needs at its beginning: the repository's
	// configuration, the head of its default branch, the issue. A *pipeline.Fault
	// means that there will be no run, and why, for people.
	Prepare(ctx context.Context, n pipeline.Notice) (pipeline.Start, error)

	// PullState reports whether the pull request is open, and whether it was merged;
	// neither when it was closed or is gone.
	PullState(ctx context.Context, repo pipeline.Repo, pull int) (open, merged bool, err error)

	// Mergeable says how the pull request stands to the branch that it goes into, now.
	Mergeable(ctx context.Context, repo pipeline.Repo, pull int) (mergeable.State, error)

	// Requested reads what a human's review of the pull request asks for, as findings.
	Requested(ctx context.Context, repo pipeline.Repo, pull int, f pipeline.Feedback) (pipeline.Review, error)

	// Reply answers where the notice comes from: in its conversation on the diff,
	// or on its issue or pull request. A reply with the same key is posted once.
	Reply(ctx context.Context, n pipeline.Notice, text, key string) error
}

// Memory answers the commands about what is remembered of a repository. What it
// is asked twice by a repeated delivery it does once. The texts are for people.
type Memory interface {
	// Memory lists what is remembered: what the words are about, or all of it.
	Memory(ctx context.Context, repo pipeline.Repo, words string) (string, error)

	// Remember keeps the words of a person.
	Remember(ctx context.Context, w Word) (string, error)

	// Forget takes a learning of the repository out of use; the words say why, and
	// may be none.
	Forget(ctx context.Context, w Word, id int64) (string, error)
}

// Outside answers a command that is not for a run's own loop, such as those about
// production.
type Outside interface {
	// Answer does what a person with write access says, or says why not. A repeat changes
	// nothing.
	Answer(ctx context.Context, w Word) (string, error)
}

// Word is what somebody says about what is remembered, or production. A change that it makes is an
// event of its run, in the same transaction.
type Word struct {
	Repo  pipeline.Repo
	Actor pipeline.Actor
	Text  string
	Was   string // of something to remember: what the comment said before it was edited or deleted
	Notes string // of a command that is answered outside: its further lines
	Run   int64  // where it was said; 0 for no run
	Issue int    // or pull request where it was said, by its number; 0 elsewhere
	Cause string // the delivery: a repeat is seen as one
}

// Options configure an engine. Executor and Publisher are needed always, Hub and
// Read for deliveries; the rest has defaults.
type Options struct {
	Executor  Executor
	Publisher Publisher
	Hub       Hub
	Queue     MergeQueue                                                  // nil: merge groups get no verdict
	Read      func(event string, payload []byte) (pipeline.Notice, error) // what a delivery means; pure
	Observer  Observer                                                    // nil: what people do with findings is not looked at
	Memory    Memory                                                      // nil: nothing is remembered here
	Outside   map[string]Outside                                          // by the command's name
	Idle      func(words string) bool                                     // whether a person's message asks for nothing, "thanks"; nil: all may ask for something
	Slug      string                                                      // what people's commands begin with; "": command.Slug

	// Settings reads what a run's repository sets by now, for an answer that asks for
	// it. A *pipeline.Fault says to people why it cannot be read. nil: a run keeps
	// what it started with.
	Settings func(ctx context.Context, run *pipeline.Run) (config.Config, error)

	// Locate asks GitHub what a repository with an id is called now, and which
	// installation may act there; not found where none may. nil: names stay what they are.
	Locate func(ctx context.Context, id int64) (repo pipeline.Repo, found bool, err error)

	// Paused reports whether people have stopped all work on a repository for now. Then
	// nothing begins, what is under way is cut off as by an end of the process, and it
	// goes on from there when they let it. nil: nobody can.
	Paused func(ctx context.Context, repo string) (bool, error)

	// Answered is when the latest call began that a model's provider has answered, by what the
	// fault of a phase names as its service; by any, of "". Zero: none was. nil: nobody knows.
	Answered func(service string) time.Time

	OnEvents func(run *pipeline.Run, events []pipeline.Event) // called after each append, from several goroutines; it must neither keep nor change them
	Logger   *slog.Logger
	Now      func() time.Time
	Rand     func() float64 // 0 to 1, for jitter
	Trace    func() string  // a new trace id: 32 hex digits

	Name        string        // of this process, for whoever waits for what it holds; may be ""
	Workers     int           // runs worked on at the same time; 4
	PartWorkers int           // besides them, runs that build modules; 4
	Intake      int           // deliveries handled at the same time; 4
	LeaseTTL    time.Duration // 15 s; a lease is renewed after a quarter of it, so that another takes over within 17
	Watch       time.Duration // how often a running phase looks whether it was stopped; 1 s
	PollEvery   time.Duration // how often pull requests are looked at for what no delivery tells; 15 min
	Tick        time.Duration // how often due runs and waiting deliveries are looked for; 1 s
	Settle      time.Duration // the longest time that a call to GitHub is under way; 15 s
	Grace       time.Duration // how long phases may go on to their next step when the engine stops; 5 s

	// In an hour; 0 is any number.
	Answers       int // of Forge in one issue or pull request
	ThreadAnswers int // and in one conversation on the diff
	Remarks       int // on one pull request that are looked at as they come; the others by the next poll

	ModelPatience time.Duration // how long a run waits for its model's provider until a human is asked; 2 h
}

func (o *Options) defaults() error {
	switch {
	case o.Executor == nil:
		return errors.New("new engine: Options.Executor is missing")
	case o.Publisher == nil:
		return errors.New("new engine: Options.Publisher is missing")
	case (o.Hub == nil) != (o.Read == nil):
		return errors.New("new engine: Options.Hub and Options.Read go together: set both, or neither for an engine without deliveries")
	}
	if o.Paused == nil {
		o.Paused = func(context.Context, string) (bool, error) { return false, nil }
	}
	if o.Answered == nil {
		o.Answered = func(string) time.Time { return time.Time{} }
	}
	if o.OnEvents == nil {
		o.OnEvents = func(*pipeline.Run, []pipeline.Event) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Trace == nil {
		o.Trace = newTrace
	}
	orInt(&o.Workers, 4)
	orInt(&o.PartWorkers, 4)
	orInt(&o.Intake, 4)
	orDuration(&o.LeaseTTL, 15*time.Second)
	orDuration(&o.Watch, time.Second)
	orDuration(&o.PollEvery, 15*time.Minute)
	orDuration(&o.Tick, time.Second)
	orDuration(&o.Settle, 15*time.Second)
	orDuration(&o.Grace, 5*time.Second)
	orDuration(&o.ModelPatience, 2*time.Hour)
	return nil
}

func orInt(v *int, def int) {
	if *v <= 0 {
		*v = def
	}
}

func orDuration(v *time.Duration, def time.Duration) {
	if *v <= 0 {
		*v = def
	}
}

func newTrace() string {
	var b [16]byte
	crand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Engine advances runs.
type Engine struct {
	Options
	store  Store
	decide func(*pipeline.Run) *pipeline.Action
	retry  func(try int) time.Duration // of a job that broke down

	queue  queue              // nil without drivers
	worker client             // of the queue; nil until Start
	adder  *river.Client[*Tx] // nil without drivers

	id      string // of this engine, for leases
	name    string // of this process and engine, likewise
	flights atomic.Int64
	beat    atomic.Int64  // when due runs were last looked for, in microseconds
	drain   chan struct{} // closed when the engine stops
	halt    context.CancelFunc
	loops   sync.WaitGroup
	wake    chan struct{} // to the intake

	mu       sync.Mutex
	state    engineState
	watchers map[int64]map[chan struct{}]bool // of phases, by run
	held     map[int64]time.Time              // runs whose publishing failed: not again before
	driven   sync.Map                         // of *family: runs that Drive goes on with; no job is needed for these
	active   sync.Map                         // of *leased, by run: what this engine works on
	awaited  sync.Map                         // by run: what has been tried since the start, and waits for a service that is away
	waiters  map[int64]waiter                 // runs that wait for a model's provider, as the ticker saw them last
	places   sync.Map                         // of place, by repository
}

type engineState int

const (
	stateNew engineState = iota
	stateStarted
	stateStopping
)

// New makes an engine. work is the driver that jobs are fetched with, insert the
// one that adds jobs to the store's transactions; both are of the same database.
// An engine that is only driven (see Drive) needs neither: pass nil.
func New[W any](work riverdriver.Driver[W], insert riverdriver.Driver[*Tx], store Store, opts Options) (*Engine, error) {
	if err := opts.defaults(); err != nil {
		return nil, err
	}
	if (work == nil) != (insert == nil) {
		return nil, errors.New("new engine: the working and the inserting driver go together: give both or none")
	}
	id := newTrace()[:12]
	e := &Engine{
		id: id, Options: opts, store: store, decide: pipeline.Decide, retry: retryDelay,
		name: strings.TrimPrefix(opts.Name+"/"+id, "/"), drain: make(chan struct{}), wake: make(chan struct{}, 1),
		watchers: map[int64]map[chan struct{}]bool{}, held: map[int64]time.Time{},
	}
	if work != nil {
		e.queue = driver[W]{work}
		adder, err := river.NewClient(insert, &river.Config{Logger: quiet(opts.Logger)})
		if err != nil {
			return nil, fmt.Errorf("new engine: inserting client: %w", err)
		}
		e.adder = adder
	}
	return e, nil
}

// Start brings River's tables up to date, takes over what an earlier process left,
// and begins to work: on runs, and on deliveries when the options have a Hub. It
// returns once jobs are being fetched. Only Stop ends it, not ctx.
func (e *Engine) Start(ctx context.Context) error {
	if e.queue == nil {
		return errors.New("start engine: it was made without database drivers and can only be driven")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != stateNew {
		return errors.New("start engine: it was started before; make a new one")
	}
	if err := e.Migrate(ctx); err != nil {
		return err
	}
	if e.soleOwner() {
		if err := e.store.ClearLeases(ctx); err != nil {
			return fmt.Errorf("start engine: clear leases: %w", err)
		}
		if err := e.freeJobs(ctx); err != nil {
			return fmt.Errorf("start engine: %w", err)
		}
	}
	if err := e.store.Hasten(ctx, e.now()); err != nil { // who waits for a service tries it: keys and models may be others now
		return fmt.Errorf("start engine: %w", err)
	}
	base, halt := context.WithCancel(context.WithoutCancel(ctx)) // only Stop ends it, so that it can end in order
	if err := e.startWorker(base); err != nil {
		halt()
		return fmt.Errorf("start engine: %w", err)
	}
	e.state, e.halt = stateStarted, halt
	e.loops.Go(func() { e.tick(base) })
	if e.Hub != nil {
		e.loops.Go(func() { e.takeIn(base) })
	}
	if e.Observer != nil {
		e.loops.Go(func() { e.poll(base) })
	}
	return nil
}

// Stop ends the engine in order: nothing new is fetched, running phases end at
// their next step, or after the grace period where they stand, and are done again
// after the next start. When ctx is done first, everything is cancelled at once.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	state := e.state
	e.state = stateStopping
	if state != stateStopping {
		close(e.drain)
	}
	e.mu.Unlock()
	if state != stateStarted {
		return nil
	}
	defer e.halt()
	err := e.worker.Stop(ctx)
	if err != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(e.Grace, 2*time.Second)) // ctx is done
		defer cancel()
		e.halt()
		err = errors.Join(fmt.Errorf("stop engine in order: %w", err), e.worker.StopAndCancel(hard))
	}
	ended := make(chan struct{})
	go func() { e.loops.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		e.halt()
		<-ended
	}
	return err
}

// ID is what this engine's leases are told by.
func (e *Engine) ID() string { return e.id }

// Wake tells the intake that a delivery has come. It never blocks.
func (e *Engine) Wake() { signal(e.wake) }

// Heartbeat is when the engine last looked for due runs; the zero time before the first
// look. It looks every Options.Tick while it works and the database answers.
func (e *Engine) Heartbeat() time.Time {
	if n := e.beat.Load(); n != 0 {
		return time.UnixMicro(n).UTC()
	}
	return time.Time{}
}

// Notify tells a phase of the run that is being executed to look at once whether it
// may go on. Call it after appending to a run from this process.
func (e *Engine) Notify(run int64) {
	if f, ok := e.driven.Load(run); ok {
		f.(*family).call(run)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.watchers[run] {
		signal(c)
	}
}

func (e *Engine) watch(run int64) (changed chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchers[run] == nil {
		e.watchers[run] = map[chan struct{}]bool{}
	}
	e.watchers[run][c] = true
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.watchers[run], c)
		if len(e.watchers[run]) == 0 {
			delete(e.watchers, run)
		}
	}
}

func (e *Engine) draining() bool {
	select {
	case <-e.drain:
		return true
	default:
		return false
	}
}

// now is the engine's clock as events keep it: UTC, microseconds.
func (e *Engine) now() time.Time { return e.Now().UTC().Truncate(time.Microsecond) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
