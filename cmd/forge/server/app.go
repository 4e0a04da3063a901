// Package server is a Forge put together. New opens the database and builds an App:
// store, agents, workspaces, GitHub, memory, executor and engine; serve, demo, run,
// replay and the tests all start one. Listen starts an App that takes webhooks in,
// shows the web pages, and does its upkeep, until it is stopped. The other files are
// the adapters between the parts, which do not know each other.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/dashboard"
	"forge/cmd/forge/incidents"
	"forge/cmd/forge/memory"
	"forge/cmd/forge/phase"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shipping"
	"forge/cmd/forge/tracing"
	"forge/github/delivery"
	"forge/github/feedback"
	"forge/learn/impact"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/image"
	"forge/pipeline/module"
	"forge/pipeline/sandbox"
	"forge/pipeline/store"
	"forge/pipeline/work"
	"forge/pipeline/workspace"
)

// Options are what the commands differ in.
type Options struct {
	Config     settings.Config
	Log        *slog.Logger
	Local      bool                                                          // a local repository and no GitHub
	Attended   bool                                                          // somebody sees at once what is wrong with a model: nothing waits until it is mended
	Silent     bool                                                          // nothing is published: a replay
	Alone      bool                                                          // the process is this server and nothing else: how it ends is kept in the state directory
	Database   string                                                        // instead of the configured one
	Worker     string                                                        // the program that works on repositories, an absolute path; empty: this one
	Workspaces workspace.Workspaces                                          // nil: processes of that program, in the sandbox
	HostTool   func(ctx context.Context, name string, args ...string) string // asks a tool of this machine; nil: sandbox.HostTool
	OnEvents   func(*pipeline.Run, []pipeline.Event)
	Settle     time.Duration // how long after a push "no check" or "all passed" is not believed yet; 0: 20 s

	Now         func() time.Time                     // the clock; nil: time.Now
	After       func(time.Duration) <-chan time.Time // how calls of models wait; nil: time.After
	TestTimeout time.Duration                        // of one test command, instead of the run's tests.timeout_minutes; 0: that
	Withhold    float64                              // share of recalled learnings that is left out; 0: impact.DefaultRate, under 0: none
	PollEvery   time.Duration                        // see work.Options
	HookEvery   time.Duration                        // how often deliveries are asked for where they are read; 0: 10 s

	pages bool // show the web pages
}

// clock is the time as it is to be seen.
func (o Options) clock() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// App is a Forge put together. Nothing runs in it by itself.
type App struct {
	DB      *store.DB
	Engine  *work.Engine
	Gateway *sandbox.Gateway // git
	Learner *memory.Learner

	log    *slog.Logger
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time
	local  bool          // a local repository, which nobody sends deliveries of
	news   atomic.Bool   // something was seen in it
	base   config.Config // of runs, before what repositories set
	slug   string        // of commands and branches
	exec   *phase.Executor
	GitHub *githubClient    // nil without GitHub
	pages  *dashboard.Pages // nil unless it listens
	spaces workspace.Workspaces
	traces *tracing.Exporter // nil without a collector
	bus    *bus.Service      // nil without subscribers

	streams *bus.Streams

	Incidents *incidents.Service
	Shipping  *shipping.Service // nil without GitHub
	providers *agent.Providers  // of models
}

// New opens the database and puts everything together. Close ends what it opens.
func New(ctx context.Context, o Options) (_ *App, err error) {
	a := &App{log: o.Log, now: o.clock(), after: o.After, local: o.Local && !o.Silent, base: o.Config.Run, slug: o.Config.Slug}
	if a.after == nil {
		a.after = time.After
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.DB, err = openStore(ctx, o); err != nil {
		return nil, err
	}
	if !o.Silent && tracing.Enabled(os.Getenv) {
		if a.traces, err = tracing.New(ctx, tracing.Options{Events: a.DB.Events, Version: Version(), Log: o.Log, Now: o.clock()}); err != nil {
			return nil, err
		}
	}
	if a.spaces, a.Gateway, err = newWorkspaces(o); err != nil {
		return nil, err
	}
	if !o.Silent && !o.Local {
		if a.GitHub, err = newGitHubClient(o, a.DB, a.Gateway); err != nil {
			return nil, err
		}
	}
	if a.bus, err = newBus(o, a.DB); err != nil {
		return nil, err
	}
	if a.streams, err = newStreams(o, a.DB); err != nil {
		return nil, err
	}
	a.providers = agent.NewProviders(agent.ProviderOptions{Credentials: o.Config.Credentials(), Log: o.Log, Now: o.clock(), After: o.After, Attended: o.Local || o.Attended})
	agents, err := newAgent(o, a.providers, a.DB)
	if err != nil {
		return nil, err
	}
	learner := memory.Options{
		DB: a.DB, Reflector: agents, Record: a.record, File: a.Gateway.File, Log: o.Log, Now: o.clock(),
		Reflection: o.Config.Reflection && !o.Silent, Withhold: max(0, cmp.Or(o.Withhold, impact.DefaultRate)),
	}
	if a.GitHub != nil {
		learner.Weight = a.GitHub.App.Weight
	}
	a.Learner = memory.New(learner)
	a.exec = phase.New(a.executorOptions(o, agents))
	a.Incidents = newIncidents(a, o)
	if a.GitHub != nil {
		a.Shipping = shipping.NewService(shipping.Options{DB: a.DB, GitHub: a.GitHub.App, Log: o.Log, Now: o.clock(), Name: rand.Text(),
			Record: func(ctx context.Context, run int64, events []pipeline.Event) error {
				return a.record(ctx, run, events, nil)
			},
			Has: deployedCode{a.GitHub.App, a.Gateway, a.DB}.has})
	}
	if o.pages {
		a.pages = NewPages(a, o)
	}
	a.Engine, err = newEngine(a.DB, a.engineOptions(o))
	return a, err
}

// record appends events to a run. The engine, which does so, is made last.
func (a *App) record(ctx context.Context, run int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error {
	return a.Engine.Record(ctx, run, events, also)
}

// executorOptions chooses what carries phases out.
func (a *App) executorOptions(o Options, agents *agent.Agent) phase.Options {
	x := phase.Options{
		Planner: agents, Drafter: agents, Implementer: agents, Reviewers: []phase.Reviewer{agents}, Viewer: agents, Tester: agents, Memory: a.Learner,
		Spaces: a.spaces, Gateway: a.Gateway, Log: o.Log, Now: o.clock(), TestTimeout: o.TestTimeout,
		Token: func(context.Context, pipeline.Repo) (string, error) { return "", nil }, Known: a.DB.KnownFailures, Readings: a.DB,
		Identity: func(context.Context) (phase.Identity, error) {
			return phase.Identity{Name: "forge", Email: "forge@localhost"}, nil
		},
	}
	x.Dependencies = phase.Dependencies{Compile: !o.Config.UnsafeNoSandbox && o.Workspaces == nil, Scripts: o.Config.InstallScripts, Toolchains: o.Config.Toolchains}
	if o.Config.Dependencies && !o.Config.UnsafeNoSandbox {
		x.Dependencies.Registries = newRegistries(o)
		if o.Workspaces == nil {
			x.Images = image.New(image.Options{Dir: filepath.Join(o.Config.StateDir, "images"), Hosts: o.Config.ImageRegistries, Now: o.clock(), Log: o.Log}).Get
		}
	}
	if a.GitHub != nil {
		x.Token, x.Identity = a.GitHub.App.Token, a.GitHub.identity
		x.Comments, x.Related, x.Commit = a.GitHub.comments, a.GitHub.App.Related, a.GitHub.signer.commit
		x.CI = &phase.CI{Checks: a.GitHub.App.Checks, Now: o.clock(), Settle: cmp.Or(o.Settle, 20*time.Second), Poll: time.Minute}
	}
	return x
}

// engineOptions chooses what the engine works with.
func (a *App) engineOptions(o Options) work.Options {
	opts := work.Options{
		Paused: a.DB.Paused, Name: processName(), Executor: a.exec, Slug: o.Config.Slug, Logger: o.Log, Settle: o.Config.CallTimeout, Now: o.Now, PollEvery: o.PollEvery, ModelPatience: o.Config.ModelPatience, PartWorkers: o.Config.Parallel.Parts,
		Answers: o.Config.Answers, ThreadAnswers: o.Config.ThreadAnswers, Remarks: o.Config.Remarks, Idle: feedback.Idle, Answered: a.providers.Answered,
		OnEvents: func(run *pipeline.Run, events []pipeline.Event) { a.onEvents(run, events, o.OnEvents) },
	}
	if a.local {
		opts.Executor = lookingExecutor{a.exec, a.look}
	}
	switch {
	case o.Silent:
		opts.Publisher = noopPublisher{}
	case a.GitHub == nil:
		opts.Publisher = localPublisher{a.Gateway}
	default:
		opts.Queue = mergeGroups{a.GitHub.App, a.exec.Group}
		opts.Publisher, opts.Hub, opts.Read, opts.Locate = a.GitHub, a.GitHub, a.reader(o.Config), a.GitHub.App.Locate
		opts.Observer, opts.Settings = otherPulls{a.GitHub.App, a.GitHub.config, a.DB}, a.GitHub.settings
		opts.Outside = map[string]work.Outside{"incident": a.Incidents, "ship": a.Shipping}
		opts.Memory = &memory.Commands{DB: a.DB, Weight: a.GitHub.App.Weight, Now: o.clock(), Record: a.record, Slug: o.Config.Slug}
	}
	return opts
}

// onEvents tells everybody what has happened in a run.
func (a *App) onEvents(run *pipeline.Run, events []pipeline.Event, more func(*pipeline.Run, []pipeline.Event)) {
	waits := run.Active == nil && slices.ContainsFunc(run.Parts, func(p module.Part) bool { return !p.Done() })
	if run.State != pipeline.StateRunning || waits { // a run that waits holds no process, and a stop ends what it started
		a.exec.Close(run.ID)
	}
	a.Learner.OnEvents(run, events)
	if a.pages != nil {
		refreshPages(a.pages, run, events)
	}
	a.traces.OnEvents(run.ID, events)
	a.bus.OnEvents()
	a.streams.OnEvents()
	if a.Shipping != nil && run.Config.Ship.Enabled && run.Part == nil {
		a.Shipping.Wake(run.ID, run.State.Ended())
	}
	if more != nil {
		more(run, events)
	}
}

// reader reads deliveries as the configuration says.
func (a *App) reader(cfg settings.Config) func(string, []byte) (pipeline.Notice, error) {
	return func(event string, payload []byte) (pipeline.Notice, error) {
		return delivery.Read(event, payload, delivery.Options{Label: cfg.Label, Slug: cfg.Slug, BotID: a.GitHub.botID(), AppID: cfg.AppID, Other: true})
	}
}

// listed says by what a delivery is listed, and why nothing follows from it, "" where
// something may. What people tick counts only in Forge's own comments, so nothing is
// settled before the App's user is known.
func (a *App) listed(cfg settings.Config) func(string, []byte) (action, repo, outcome string) {
	read := a.reader(cfg)
	return func(event string, payload []byte) (action, repo, outcome string) {
		defer func() { _ = recover() }() // the engine reads it again, and reports it
		n, err := read(event, payload)
		if err != nil {
			return "", "", ""
		}
		if n.Repo.Name != "" {
			repo = n.Repo.FullName()
		}
		if n.Kind == pipeline.NoticeNone && a.GitHub.botID() != 0 && !incidents.Concerns(event) {
			outcome = n.Why
		}
		return n.Action, repo, outcome
	}
}

// Close ends everything that is open, workspaces first.
func (a *App) Close() error {
	var errs []error
	if a.exec != nil {
		a.exec.CloseAll()
	}
	a.traces.Close(context.Background()) // for a few seconds at most
	if a.DB != nil {
		errs = append(errs, a.DB.Close())
	}
	return errors.Join(errs...)
}
