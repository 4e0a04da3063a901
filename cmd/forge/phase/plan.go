package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/sandbox"
)

// plan runs the tests at the base, so that later phases know what worked before
// the change, and asks the planner. Where there is nothing to run, it has no plan.
func (x *Executor) plan(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, planned(run))
	if err != nil {
		return pipeline.Data{}, err
	}
	baseline := run.Baseline // known when the plan is made again
	if baseline == nil {
		report, err := x.baseline(ctx, run, ws)
		if err != nil {
			return pipeline.Data{}, err
		}
		baseline = &report
		if err := ws.Checkout(ctx, run.Base); err != nil { // without what the tests left behind
			return pipeline.Data{}, err
		}
	}
	if baseline.None != "" && run.Plan == nil && !run.Untested && !run.Config.Tests.Checks {
		return pipeline.Data{Tests: baseline}, nil // a human is asked before planning is paid for
	}
	if run.Plan == nil && run.Given != nil { // a module is planned already
		return pipeline.Data{Plan: run.Given, Tests: baseline}, nil
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace, job.Baseline = ws, baseline
	if err := x.o.Memory.Recall(ctx, &job, config.RolePlanner, job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	plan, _, err := x.o.Planner.Plan(ctx, job)
	return pipeline.Data{Plan: &plan, Tests: baseline, Instructions: job.InstructionsUsed()}, err
}

// baseline runs the tests at the base.
func (x *Executor) baseline(ctx context.Context, run *pipeline.Run, ws *sandbox.Workspace) (pipeline.TestReport, error) {
	report, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: run.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	if err != nil {
		return report, x.explain(run.ID, planned(run), err)
	}
	report.Setup = x.told(run.ID, planned(run))
	return report, nil
}

// TryTests runs a repository's tests on a commit, without a run: what is there, and how
// does it end?
func (x *Executor) TryTests(ctx context.Context, repo pipeline.Repo, base string, cfg config.Config) (pipeline.TestReport, error) {
	run := &pipeline.Run{Repo: repo, Base: base, Config: cfg} // with the number 0, which no run has
	ws, err := x.at(ctx, run, base)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	defer x.Close(run.ID)
	return x.baseline(ctx, run, ws)
}

// planned is the commit that a plan is made for.
func planned(run *pipeline.Run) string {
	if run.Current() != nil { // it is made again, for the work as it stands
		return run.Head
	}
	return run.Base
}
