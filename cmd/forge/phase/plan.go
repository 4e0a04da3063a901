package phase

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// plan runs the tests at the base, so that later phases know what worked before
// the change, and asks the planner. Where there is nothing to run, it has no plan.
func (x *Executor) plan(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, baseline, err := x.based(ctx, run)
	if err != nil {
		return pipeline.Data{}, err
	}
	if untestable(run, baseline) {
		return pipeline.Data{Tests: baseline}, nil
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
	if x.o.Related != nil && run.Task.Issue != 0 {
		if job.Related, err = x.o.Related(ctx, run.Repo, run.Task.Issue); err != nil {
			return pipeline.Data{}, err
		}
	}
	plan, _, err := x.o.Planner.Plan(ctx, job)
	plan.Related = job.Related
	return pipeline.Data{Plan: &plan, Tests: baseline, Instructions: job.InstructionsUsed(), SkillsLeft: job.SkillsLeft}, err
}

// based is a work tree of the commit that a plan is made for, and how the tests go at the base.
func (x *Executor) based(ctx context.Context, run *pipeline.Run) (workspace.Workspace, *pipeline.TestReport, error) {
	ws, err := x.at(ctx, run, planned(run))
	if err != nil || run.Baseline != nil { // it is known when the plan is made again
		return ws, run.Baseline, err
	}
	report, err := x.baseline(ctx, run, ws)
	if err != nil {
		return nil, nil, err
	}
	return ws, &report, ws.Checkout(ctx, run.Base) // without what the tests left behind
}

// untestable reports that there is nothing to test with, so that a human is asked before
// planning is paid for.
func untestable(run *pipeline.Run, baseline *pipeline.TestReport) bool {
	return baseline.None != "" && run.Plan == nil && !run.Untested && !run.Config.Tests.Checks
}

// baseline runs the tests at the base, once for all runs whose base it is: when all went well,
// what they showed is kept, by the set-up and the settings that they ran with.
func (x *Executor) baseline(ctx context.Context, run *pipeline.Run, ws workspace.Workspace) (pipeline.TestReport, error) {
	plan, err := x.setupOf(ctx, run, ws, run.Base)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	tests, err := json.Marshal(run.Config.Tests)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	keep := kept{x, cacheKey(run.Repo)}
	key := fmt.Sprintf("tests %s %s %x", run.Base, plan.Key, sha256.Sum256(tests))
	var report pipeline.TestReport
	if x.o.Readings != nil && planned(run) == run.Base && keep.read(ctx, key, &report) {
		report.Setup = x.told(run.ID, run.Base)
		return report, nil
	}
	report, err = check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: run.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	if err != nil {
		return report, x.explain(run.ID, planned(run), err)
	}
	report.Setup = x.told(run.ID, planned(run))
	if x.o.Readings != nil && planned(run) == run.Base && report.None == "" && report.Unclean == "" && len(report.Failures) == 0 {
		keep.write(ctx, key, &report)
	}
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
