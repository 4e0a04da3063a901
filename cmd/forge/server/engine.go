package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// Control is what gives orders to runs, also to those that another process on the
// same database works on.
type Control interface {
	Migrate(ctx context.Context) error
	Addressed(ctx context.Context, run int64, cmd command.Line) (to int64, words string, err error)
	Tell(ctx context.Context, run int64, id string, cmd command.Line, by pipeline.Actor, via string) (string, error)
	Redrive(ctx context.Context, id string) error
}

// newEngine chooses River's drivers. On both databases jobs are added within the
// store's own transactions; on PostgreSQL they are fetched by pgx, which hears of
// new ones at once.
func newEngine(db *store.DB, opts work.Options) (*work.Engine, error) {
	if pool := db.Pool(); pool != nil {
		return work.New(riverpgxv5.New(pool), riverdatabasesql.New(nil), storeAdapter{db}, opts)
	}
	return work.New(riversqlite.New(db.SQL()), riversqlite.New(nil), storeAdapter{db}, opts)
}

// OpenControl opens the configured database with an engine that takes orders and
// carries nothing out: a server on the same database does, or a local run.
func OpenControl(ctx context.Context, cfg settings.Config, log *slog.Logger) (*store.DB, Control, error) {
	db, err := cfg.OpenStore(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	e, err := newEngine(db, work.Options{Executor: noopExecutor{}, Publisher: noopPublisher{}, Logger: log})
	if err == nil {
		err = e.Migrate(ctx)
	}
	a := &App{DB: db, Engine: e, log: log, now: time.Now, local: true}
	gid := 0
	if err == nil {
		_, gid, err = workerUser(cfg.WorkerUser)
	}
	if err == nil {
		a.Gateway, err = newGateway(Options{Config: cfg, Log: log, Local: true}, gid)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, control{e, a}, nil
}

// control sees what was committed in the local repository of a run before it answers it.
type control struct {
	*work.Engine
	app *App
}

// Tell implements Control.
func (c control) Tell(ctx context.Context, run int64, id string, cmd command.Line, by pipeline.Actor, via string) (string, error) {
	r, err := c.app.DB.Load(ctx, run)
	if err == nil && r.Repo.ID == 0 && !r.State.Ended() {
		if err := c.app.look(ctx, run); err != nil { // the folder may be gone: that must not keep anybody from giving the run up
			c.app.log.WarnContext(ctx, "look at a local repository", "run", run, "error", err)
		}
	}
	return c.Engine.Tell(ctx, run, id, cmd, by, via)
}

// noopExecutor executes no phase: it is never asked to.
type noopExecutor struct{}

// Do implements work.Executor.
func (noopExecutor) Do(_ context.Context, _ *pipeline.Run, act pipeline.Action, _ work.Emit) ([]pipeline.Event, error) {
	return nil, fmt.Errorf("execute %s: this command carries nothing out", act.Key)
}
