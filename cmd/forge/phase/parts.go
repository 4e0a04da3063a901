package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/module"
	"forge/pipeline/sandbox"
)

// contract lets the implementer lay down what the modules promise each other. The
// project must build with it, and its tests pass as before; what shows a promise may
// fail until its modules are there.
func (x *Executor) contract(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	data, err := x.implement(ctx, run, job)
	if err != nil || data.Implementation.Unable != "" {
		return data, err
	}
	head, split := data.Implementation.Head, run.Plan.Split
	files, err := x.o.Gateway.Files(ctx, run.Repo, head)
	if err != nil {
		return data, err
	}
	for _, name := range split.Contract {
		if !slices.Contains(files, name) {
			return data, &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf("the contract's file %s was not written", name)}
		}
	}
	report, err := x.tryHead(ctx, run, head)
	if err != nil {
		return data, err
	}
	merged := func(id string) bool { p := module.Find(run.Parts, id); return p != nil && p.Merged != "" }
	if broken := broken(run, report, merged); len(broken) > 0 {
		return data, &pipeline.Fault{Class: pipeline.FaultAgent,
			Message: "with the contract, the project does not build or its tests do not pass as before: " + failing(broken)}
	}
	data.Tests = &report
	return data, nil
}

// merge takes a module into the run's branch. Unless nothing was merged since the module
// began, so that this very tree was verified, the tests run on the merge before it
// becomes the head: what breaks them goes back to the module.
func (x *Executor) merge(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	part := module.Find(run.Parts, job.Ref.Part)
	if part == nil {
		return pipeline.Data{}, fmt.Errorf("merge %s: the run has no module of this name", job.Ref.Part)
	}
	u := pipeline.Update{Base: part.Head, Parent: run.Head}
	if err := x.fetch(ctx, run, u.Base); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.fetch(ctx, run, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	bot, err := x.o.Identity(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	merged, err := x.o.Gateway.Merge(ctx, run.Repo, u.Base, sandbox.CommitOptions{
		Parent: run.Head, Author: bot.Name, Email: bot.Email, Time: part.Ended, Signoff: run.Config.Signoff,
		Message: "Merge module " + part.ID, Run: fmt.Sprintf("%s/%d", run.Trace, job.Ref.Iteration),
	})
	if err != nil {
		return pipeline.Data{}, err
	}
	u.Head, u.Conflicts = merged.SHA, merged.Conflicts
	data := pipeline.Data{Update: &u}
	if len(u.Conflicts) > 0 {
		return data, nil
	}
	if part.Base != run.Head && u.Head != run.Head {
		report, err := x.tryHead(ctx, run, u.Head)
		if err != nil {
			return pipeline.Data{}, err
		}
		report.Failures = broken(run, report, func(id string) bool {
			p := module.Find(run.Parts, id)
			return id == part.ID || p != nil && p.Merged != ""
		})
		data.Tests = &report
	}
	if u.Head, err = x.signed(ctx, run, u.Head); err != nil {
		return pipeline.Data{}, err
	}
	return data, nil
}

// tryHead runs the tests of a commit as they are, once, to tell whether it may become
// the head of the work.
func (x *Executor) tryHead(ctx context.Context, run *pipeline.Run, sha string) (pipeline.TestReport, error) {
	ws, err := x.at(ctx, run, sha)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	report, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: sha, Baseline: run.Baseline, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	return report, x.explain(run.ID, sha, err)
}

// broken are the failures of a report that neither the base had nor the run has open,
// and that show no promise of which a side is missing. A suite that does not end well,
// and did at the base, is one.
func broken(run *pipeline.Run, report pipeline.TestReport, there func(module string) bool) []pipeline.Failure {
	failures := slices.Clone(report.Failures)
	if report.Unclean != "" && (run.Baseline == nil || run.Baseline.Unclean == "") {
		failures = append(failures, pipeline.Failure{Test: "the test suite", Error: report.Unclean})
	}
	return slices.DeleteFunc(failures, func(f pipeline.Failure) bool {
		open := slices.ContainsFunc(run.Failures, func(is pipeline.Issue) bool { return is.State == pipeline.IssueOpen && is.Failure.Test == f.Test })
		return open || slices.ContainsFunc(run.Plan.Split.Promises, func(p module.Promise) bool {
			all := there(p.From) && !slices.ContainsFunc(p.To, func(to string) bool { return !there(to) })
			return p.Probe != "" && check.SameTest(f.Test, p.Probe) && !all
		})
	})
}

// setPending takes the tests of promises out of what fails in the run of a module: their
// other side is not there. The run that planned it tests them at the merge.
func setPending(run *pipeline.Run, report *pipeline.TestReport) {
	if run.Part == nil {
		return
	}
	pending := func(f pipeline.Failure) bool {
		is := slices.ContainsFunc(run.Part.Probes, func(probe string) bool { return check.SameTest(f.Test, probe) })
		if is && !slices.Contains(report.Pending, f.Test) {
			report.Pending = append(report.Pending, f.Test)
		}
		return is
	}
	before := len(report.Failures)
	report.Failures = slices.DeleteFunc(report.Failures, pending)
	report.Failed -= before - len(report.Failures)
	report.Before = slices.DeleteFunc(report.Before, pending)
}

// failing names failures with their errors.
func failing(list []pipeline.Failure) string {
	var out []string
	for _, f := range list[:min(len(list), 5)] {
		out = append(out, fmt.Sprintf("%s: %s", f.Test, strings.TrimSpace(f.Error)))
	}
	return strings.Join(out, "\n")
}
