package phase

import (
	"context"
	"fmt"

	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/sandbox"
)

// update takes the base branch in, and runs its tests where it now stands: what
// worked there before the change is not what it was.
func (x *Executor) update(ctx context.Context, run *pipeline.Run) (pipeline.Data, error) {
	u := pipeline.Update{Base: run.BaseHead, Parent: run.Head}
	if err := x.fetch(ctx, run, u.Base); err != nil {
		return pipeline.Data{}, err
	}
	bot, err := x.o.Identity(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	u.Head, u.Conflicts, err = x.o.Gateway.Merge(ctx, run.Repo, u.Base, sandbox.CommitOptions{
		Parent: run.Head, Author: bot.Name, Email: bot.Email, Time: commitTime(run),
		Message: fmt.Sprintf("Merge %s into %s", run.Repo.DefaultBranch, run.Branch), Run: fmt.Sprintf("%s/%d", run.Trace, run.Current().Number),
	})
	if err != nil || len(u.Conflicts) > 0 || u.Head == run.Head {
		return pipeline.Data{Update: &u}, err
	}
	ws, err := x.at(ctx, run, u.Base)
	if err != nil {
		return pipeline.Data{}, err
	}
	baseline, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: u.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	return pipeline.Data{Update: &u, Tests: &baseline}, err
}
