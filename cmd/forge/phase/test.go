package phase

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/workspace"
)

// test judges the change by its tests and by the base's own, looks at the
// repository's own checks where it is told to, and asks for an analysis of what
// failed. What it has to wait for is returned in place of a result.
func (x *Executor) test(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, *pipeline.Await, error) {
	if err := x.fetch(ctx, run, run.Head); err != nil {
		return pipeline.Data{}, nil, err
	}
	patch, err := x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return pipeline.Data{}, nil, err
	}
	job.Diff = patch
	var report pipeline.TestReport
	if w := run.Await; w != nil && w.Tests != nil {
		report = *w.Tests // known since before the waiting
	} else if report, err = x.verify(ctx, run, job); err != nil {
		return pipeline.Data{}, nil, err
	} else if report.Measures != nil {
		// All that follows was done before a model was asked, and laid down with it.
	} else if err := x.tiers(ctx, run, job, &report); err != nil {
		return pipeline.Data{}, nil, err
	} else if err := x.recogniseTests(ctx, run, &report); err != nil {
		return pipeline.Data{}, nil, err
	} else if err := x.quality(ctx, run, job, &report); err != nil {
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
		if job.Workspace, err = x.at(ctx, run, run.Head); err != nil {
			return pipeline.Data{}, nil, err
		}
		job.Failures = report.Failures
		if err := x.orient(ctx, run, &job); err != nil {
			return pipeline.Data{}, nil, err
		}
		if err := x.o.Memory.Recall(ctx, &job, config.RoleTester, job.Emit); err != nil {
			return pipeline.Data{}, nil, err
		}
		if report.Failures, _, err = x.o.Tester.Analyse(ctx, job); err != nil {
			return pipeline.Data{}, nil, err
		}
		rooted(report.Failures, report.Measures)
	}
	report.Add(&pipeline.TestReport{Failures: run.Unproved(&report)})
	return pipeline.Data{Tests: &report}, nil, nil
}

// verify returns what the tests show, with the reviewer's reasons for those that had to
// change. Before a model is asked about it, it is laid down: when the model breaks down,
// or is away, the same commit must not pass by luck the next time.
func (x *Executor) verify(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.TestReport, error) {
	var report pipeline.TestReport
	if t := run.Tested; t != nil && t.Head == run.Head {
		report = *t
	} else {
		var err error
		if report, err = x.judge(ctx, run, job); err != nil {
			return report, err
		}
		if len(report.Failures)+len(report.Changed) > 0 {
			kept := report
			if err := job.Emit(ctx, pipeline.Event{ID: job.Key + "/tested", Type: pipeline.EventPhaseTested, Source: "agent:" + string(config.RoleTester),
				Data: pipeline.Data{Phase: &job.Ref, Tests: &kept}}); err != nil {
				return report, fmt.Errorf("lay down what the tests of %s show: %w", run.Head, err)
			}
		}
	}
	if len(report.Changed) == 0 {
		return report, nil
	}
	var err error
	if job.Workspace, err = x.at(ctx, run, run.Head); err != nil {
		return report, err
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return report, err
	}
	reasons, _, err := x.o.Tester.JustifyTests(ctx, job, report.Changed)
	if err != nil {
		return report, err
	}
	check.Justify(&report, reasons)
	return report, nil
}

// judge runs the tests in trees that no agent works in.
func (x *Executor) judge(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.TestReport, error) {
	opts, err := x.judged(ctx, run, job)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	trees := &trees{x: x, run: run}
	defer trees.close()
	report, err := check.Verify(ctx, trees.open, opts)
	if err == nil {
		err = x.keepsModules(ctx, run, trees, opts, &report)
	}
	report.Setup = x.told(run.ID, run.Head)
	setPending(run, &report)
	return report, x.explain(run.ID, run.Head, x.brokenInstalling(run, &report, err))
}

// judged is what a run's head is judged by.
func (x *Executor) judged(ctx context.Context, run *pipeline.Run, job agent.Job) (check.Options, error) {
	opts := check.Options{
		Config: run.Config.Tests, Base: run.Base, Head: run.Head, Iteration: job.Ref.Iteration, PlanIteration: run.PlanIteration, Patch: job.Diff, Baseline: run.Baseline,
		MayBeEmpty: run.Part != nil && len(run.Reopened) > 0, // a module may dispute what it was sent
		Task:       check.Task{Text: run.Task.Title + "\n" + run.Task.Body, Tests: run.Fix}, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout,
	}
	if run.Plan != nil {
		opts.Task.Tests = slices.Concat(run.Plan.Tests, run.Fix)
	}
	opts.Proofs = namedProofs(run)
	for _, it := range run.Iterations {
		if it.Number < job.Ref.Iteration && it.Tests != nil {
			opts.Earlier = append(opts.Earlier, check.Past{Iteration: it.Number, Report: it.Tests})
		}
	}
	var err error
	opts.Known, err = x.o.Known(ctx, run.Repo) // what was said in this run, the run knows
	return opts, err
}

// namedProofs are the tests that are named for the criteria, where loop.proofs wants them.
func namedProofs(run *pipeline.Run) (out []string) {
	if it := run.Current(); it != nil && run.Config.Loop.Proofs.On() {
		now := *it
		now.Tests = &pipeline.TestReport{}
		for _, row := range run.Proofs(&now) {
			for _, t := range row.Tests {
				out = append(out, t.Name)
			}
		}
	}
	return out
}

// trees lends the trees of a verdict: one workspace, which no agent has worked in
// and which protects no paths, checked out anew each time.
type trees struct {
	x    *Executor
	run  *pipeline.Run
	name string // of the workspace; "": the run's verdict
	ws   workspace.Workspace
}

func (t *trees) open(ctx context.Context, sha string) (check.Tree, error) {
	if err := t.x.fetch(ctx, t.run, sha); err != nil {
		return nil, err
	}
	if t.ws != nil {
		if err := t.ws.Checkout(ctx, sha); err != nil {
			return nil, err
		}
		return lent{t.ws}, t.x.provide(ctx, t.run, t.ws, sha)
	}
	var err error
	t.ws, err = t.x.space(ctx, t.run, workspace.OpenOptions{Name: cmp.Or(t.name, fmt.Sprintf("verdict-%d", t.run.ID)), Commit: sha})
	if err != nil {
		return nil, err
	}
	return lent{t.ws}, t.x.provide(ctx, t.run, t.ws, sha)
}

func (t *trees) close() {
	if t.ws == nil {
		return
	}
	if err := t.ws.Close(); err != nil {
		t.x.o.Log.Warn("close workspace", "run", t.run.ID, "error", err)
	}
}

// lent is a workspace that is closed when the verdict is done.
type lent struct{ workspace.Workspace }

func (lent) Close() error { return nil }
