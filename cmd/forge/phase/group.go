package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/check"
)

// Group runs a run's tests on a commit that GitHub's merge queue made of its work and
// of what goes before it, in a tree that no agent works in. With a tree that the run
// has verified, the verdict is its own, and no test runs again.
func (x *Executor) Group(ctx context.Context, run *pipeline.Run, sha string) (report pipeline.TestReport, same bool, err error) {
	for _, commit := range []string{run.Head, sha} {
		if err := x.fetch(ctx, run, commit); err != nil {
			return report, false, err
		}
	}
	verified, _, _, err := x.o.Gateway.CommitAt(ctx, run.Repo, run.Head)
	if err != nil {
		return report, false, err
	}
	tree, _, _, err := x.o.Gateway.CommitAt(ctx, run.Repo, sha)
	if err != nil || tree == verified {
		return report, err == nil, err
	}
	trees := &trees{x: x, run: run, name: "group-" + sha[:12]}
	defer trees.close()
	ws, err := trees.open(ctx, sha)
	if err != nil {
		return report, false, err
	}
	report, err = check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: sha, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	if err == nil && report.OK() && len(run.Config.Quality) > 0 {
		err = x.gauge(ctx, run, sha, &report)
	}
	return report, false, err
}
