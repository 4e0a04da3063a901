package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/sandbox"
)

// test runs the tests, looks at the repository's own checks where it is told to,
// and asks for an analysis of what failed. What it has to wait for is returned in
// place of a result.
func (x *Executor) test(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, *pipeline.Await, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, nil, err
	}
	patch, err := x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return pipeline.Data{}, nil, err
	}
	var report pipeline.TestReport
	if w := run.Await; w != nil && w.Tests != nil {
		report = *w.Tests // known since before the waiting
	} else if report, err = x.runTests(ctx, run, ws, job.Ref.Iteration, patch); err != nil {
		return pipeline.Data{}, nil, err
	}
	// What fails here is sent back at once; CI would only say it again. What failed
	// before the work may pass on a human's word.
	here := len(report.Failures) == 0 && len(report.Tampered) == 0 && report.Unclean == "" && report.Passed > 0
	if x.o.CI != nil && run.Config.Tests.Checks && (here || report.None != "") {
		await, err := x.o.CI.add(ctx, run, &report)
		if err != nil || await != nil {
			return pipeline.Data{}, await, err
		}
	}
	if len(report.Failures) > 0 {
		if err := ws.Checkout(ctx, run.Head); err != nil {
			return pipeline.Data{}, nil, err
		}
		job.Workspace, job.Diff, job.Failures = ws, patch, report.Failures
		if err := x.orient(ctx, run, &job); err != nil {
			return pipeline.Data{}, nil, err
		}
		if err := x.o.Memory.Recall(ctx, &job, "tester", job.Emit); err != nil {
			return pipeline.Data{}, nil, err
		}
		if report.Failures, _, err = x.o.Tester.Analyse(ctx, job); err != nil {
			return pipeline.Data{}, nil, err
		}
	}
	return pipeline.Data{Tests: &report}, nil, nil
}

// runTests runs the repository's tests in the workspace.
func (x *Executor) runTests(ctx context.Context, run *pipeline.Run, ws *sandbox.Workspace, iteration int, patch string) (pipeline.TestReport, error) {
	opts := check.Options{Config: run.Config.Tests, Head: run.Head, Iteration: iteration, Patch: patch, Baseline: run.Baseline, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout}
	for _, it := range run.Iterations {
		if it.Number < iteration && it.Tests != nil {
			opts.Earlier = append(opts.Earlier, check.Past{Iteration: it.Number, Report: it.Tests})
		}
	}
	return check.Run(ctx, ws, opts)
}
