package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
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
		report, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: run.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
		if err != nil {
			return pipeline.Data{}, x.explain(run.ID, planned(run), err)
		}
		baseline = &report
		baseline.Setup = x.told(run.ID, planned(run))
		if err := ws.Checkout(ctx, run.Base); err != nil { // without what the tests left behind
			return pipeline.Data{}, err
		}
	}
	if baseline.None != "" && run.Plan == nil && !run.Untested && !run.Config.Tests.Checks {
		return pipeline.Data{Tests: baseline}, nil // a human is asked before planning is paid for
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace, job.Baseline = ws, baseline
	if err := x.o.Memory.Recall(ctx, &job, "planner", job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	plan, _, err := x.o.Planner.Plan(ctx, job)
	return pipeline.Data{Plan: &plan, Tests: baseline, Instructions: job.InstructionsUsed()}, err
}

// planned is the commit that a plan is made for.
func planned(run *pipeline.Run) string {
	if run.Current() != nil { // it is made again, for the work as it stands
		return run.Head
	}
	return run.Base
}
