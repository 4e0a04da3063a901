package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"forge/cmd/forge/dashboard"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/tracing"
	"forge/github"
	"forge/learn/recall"
	"forge/learn/worth"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/sandbox"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// slug is the word of the App's commands and the prefix of its branches.
const slug = "forge"

// engine is work.Engine without its type parameters.
type engine interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Drive(ctx context.Context, run int64) error
	Wake()
	Migrate(ctx context.Context) error
	Tell(ctx context.Context, run int64, id string, cmd pipeline.SlashCommand, by pipeline.Actor, via string) (string, error)
	Redrive(ctx context.Context, id string) error
}

// record appends events to a run; see work.Engine.Record.
type record = func(ctx context.Context, run int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error

// inner is what only the wiring needs of an engine.
type inner struct {
	record record
	beat   func() time.Time // see work.Engine.Beat
}

// wiring is a Forge put together: what serve, demo and run start.
type wiring struct {
	db     *store.DB
	engine engine
	beat   func() time.Time // when the engine last looked for work
	exec   *executor
	hub    *hub // nil without GitHub
	memory *memory
	pages  *dashboard.Pages // nil unless it serves
	spaces *sandbox.Manager
	traces *tracing.Exporter // nil without a collector
}

// wireOptions are what the commands differ in.
type wireOptions struct {
	config   settings.Config
	log      *slog.Logger
	local    bool   // a local repository and no GitHub
	silent   bool   // nothing is published: a replay
	database string // instead of the configured one
	onEvents func(*pipeline.Run, []pipeline.Event)
	settle   time.Duration // how long after a push "no check" or "all passed" is not believed yet; 0: 20 s

	now         func() time.Time // the clock; nil: time.Now
	testTimeout time.Duration    // of one test command, instead of the run's tests.timeout_minutes; 0: that
	withhold    float64          // share of recalled learnings that is left out; 0: worth.DefaultRate, under 0: none
	pollEvery   time.Duration    // see work.Options
}

// clock is the time as it is to be seen.
func (o wireOptions) clock() func() time.Time {
	if o.now == nil {
		return time.Now
	}
	return o.now
}

// wire opens the database and puts everything together. Nothing runs yet.
func wire(ctx context.Context, o wireOptions) (_ *wiring, err error) {
	cfg := o.config
	w := &wiring{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := makeStateDir(cfg.StateDir); err != nil {
		return nil, err
	}
	if w.db, err = store.Open(ctx, cmp.Or(o.database, cfg.DatabaseURL.Reveal()), o.log); err != nil {
		return nil, err
	}
	if !o.silent && tracing.Enabled(os.Getenv) {
		if w.traces, err = tracing.New(ctx, tracing.Options{Events: w.db.Events, Version: version(), Log: o.log, Now: o.clock()}); err != nil {
			return nil, err
		}
	}
	if w.exec, err = newExecutor(o, w); err != nil {
		return nil, err
	}
	w.spaces = w.exec.spaces
	w.memory = newMemory(o, w)
	w.exec.memory = w.memory
	var words *memoryHub
	opts := work.Options{
		Executor: w.exec, Publisher: local{w.exec.gateway}, Logger: o.log, Settle: cfg.CallTimeout,
		Now: o.now, PollEvery: o.pollEvery,
		OnEvents: func(run *pipeline.Run, events []pipeline.Event) {
			if run.State != pipeline.StateRunning { // a run that waits holds no process, and a stop ends what it started
				w.exec.drop(run.ID)
			}
			w.memory.onEvents(run, events)
			if w.pages != nil {
				notify(w.pages, run, events)
			}
			w.traces.OnEvents(run.ID, events)
			if o.onEvents != nil {
				o.onEvents(run, events)
			}
		},
	}
	if o.silent {
		opts.Publisher = nowhere{}
	} else if !o.local {
		if w.hub, err = newHub(o, w.exec.gateway); err != nil {
			return nil, err
		}
		w.exec.token, w.exec.bot = w.hub.app.Token, w.hub.identity
		w.exec.ci = &ciReader{checks: w.hub.app.Checks, now: o.clock(), settle: o.settle, poll: time.Minute}
		if o.settle == 0 {
			w.exec.ci.settle = 20 * time.Second
		}
		opts.Publisher, opts.Hub, opts.Read, opts.Observer = w.hub, w.hub, w.reader(cfg), observer{w.hub.app, w.hub.config, w.db}
		words = &memoryHub{db: w.db, weight: w.hub.app.Weight, now: o.clock()}
		opts.Memory = words
	}
	e, in, err := newEngine(w.db, opts)
	w.engine, w.beat, w.memory.record = e, in.beat, in.record
	if words != nil {
		words.record = w.memory.record
	}
	return w, err
}

func newMemory(o wireOptions, w *wiring) *memory {
	m := &memory{db: w.db, agent: w.exec.agent, log: o.log, now: o.clock(), index: recall.New(), wake: make(chan struct{}, 1),
		reflection: o.config.Reflection && !o.silent, withhold: max(0, cmp.Or(o.withhold, worth.DefaultRate))}
	return m
}

// makeStateDir makes the directory that holds everything. The worker's user may
// pass through it, and read nothing in it.
func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return nil
}

// reader reads deliveries as the configuration says.
func (w *wiring) reader(cfg settings.Config) func(string, []byte) (pipeline.Notice, error) {
	return func(event string, payload []byte) (pipeline.Notice, error) {
		return github.Read(event, payload, github.ReadOptions{Label: cfg.Label, Slug: slug, BotID: w.hub.botID(), AppID: cfg.AppID, Other: true})
	}
}

// newEngine chooses River's drivers. On both databases jobs are added within the
// store's own transactions; on PostgreSQL they are fetched by pgx, which hears of
// new ones at once.
func newEngine(db *store.DB, opts work.Options) (engine, inner, error) {
	st := storeAdapter{db}
	if pool := db.Pool(); pool != nil {
		e, err := work.New(riverpgxv5.New(pool), riverdatabasesql.New(nil), st, opts)
		if err != nil {
			return nil, inner{}, err
		}
		return e, inner{e.Record, e.Beat}, nil
	}
	e, err := work.New(riversqlite.New(db.SQL()), riversqlite.New(nil), st, opts)
	if err != nil {
		return nil, inner{}, err
	}
	return e, inner{e.Record, e.Beat}, nil
}

func newHub(o wireOptions, gateway *sandbox.Gateway) (*hub, error) {
	cfg := o.config
	key, err := os.ReadFile(cfg.PrivateKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the App's private key: %w", err)
	}
	app, err := github.New(github.Options{
		BaseURL: cfg.GitHubURL, AppID: cfg.AppID, PrivateKey: key, Slug: slug, LogHosts: cfg.LogHosts,
		MinWriteInterval: cfg.WriteInterval, Timeout: cfg.CallTimeout, Log: o.log, UserAgent: "forge/" + version(), Gaps: true,
	})
	if err != nil {
		return nil, err
	}
	return &hub{app: app, gateway: gateway, base: cfg.Run}, nil
}

func newExecutor(o wireOptions, w *wiring) (*executor, error) {
	cfg := o.config
	uid, gid, err := workerUser(cfg.WorkerUser)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	spaces, err := sandbox.New(sandbox.Options{
		Dir: filepath.Join(cfg.StateDir, "work"), Exe: exe, Unsafe: cfg.UnsafeNoSandbox, UID: uid, GID: gid, ModCache: modCache(), Log: o.log,
		Limits: sandbox.Limits{Wall: time.Duration(cfg.Run.Tests.TimeoutMinutes)*time.Minute + time.Minute}, // a suite's own limit fires first
	})
	if err != nil {
		return nil, err
	}
	var hosts []string
	if cfg.GitHubURL != "" {
		hosts = append(hosts, cfg.GitHubURL)
	}
	gateway, err := sandbox.NewGateway(sandbox.GatewayOptions{
		Dir: filepath.Join(cfg.StateDir, "git"), Hosts: hosts, AllowLocal: o.local, Prefix: slug + "/", GID: gid, Log: o.log,
	})
	if err != nil {
		return nil, err
	}
	creds := agent.Credentials{AnthropicKey: cfg.AnthropicKey.Reveal(), OpenAIKey: cfg.OpenAIKey.Reveal(), AnthropicURL: cfg.AnthropicURL, OpenAIURL: cfg.OpenAIURL, Timeout: cfg.ModelTimeout}
	a, err := agent.New(agent.Options{
		Open:   func(name string) (agent.Model, error) { return agent.Open(name, creds) },
		Models: cfg.Run.Models, Tape: w.db, Scratchpad: pipeline.Scratchpad, Log: o.log,
		Purse: &purse{day: int64(cfg.DayUSD * 1e6), month: int64(cfg.MonthUSD * 1e6), spent: w.db.Spent, now: o.clock()},
	})
	if err != nil {
		return nil, err
	}
	return &executor{
		agent: a, spaces: spaces, gateway: gateway, log: o.log, now: o.clock(), testTimeout: o.testTimeout,
		token: func(context.Context, pipeline.Repo) (string, error) { return "", nil },
		bot:   func(context.Context) (identity, error) { return identity{"forge", "forge@localhost"}, nil },
	}, nil
}

// close ends everything that is open, workspaces first.
func (w *wiring) close() error {
	var errs []error
	if w.exec != nil {
		w.exec.close()
	}
	w.traces.Close(context.Background()) // for a few seconds at most
	if w.db != nil {
		errs = append(errs, w.db.Close())
	}
	return errors.Join(errs...)
}

// workerUser finds the user that works on repositories when this process is root;
// zeros let the sandbox choose.
func workerUser(name string) (uid, gid int, err error) {
	if name == "" {
		return 0, 0, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("find the worker's user: %w", err)
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, nil
}

// modCache is where modules lie that are already on this machine. The sandbox has
// no network, so that what a repository needs must be there.
func modCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	return ""
}

// probeSandbox reports whether commands can run in a sandbox here.
func probeSandbox(ctx context.Context, o wireOptions) error {
	w := &wiring{}
	x, err := newExecutor(o, w)
	if err != nil {
		return err
	}
	return x.spaces.Probe(ctx)
}
