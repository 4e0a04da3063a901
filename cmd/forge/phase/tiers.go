package phase

import (
	"cmp"
	"context"
	"slices"

	"forge/pipeline"
	"forge/pipeline/check"
)

// tiers runs the commands of the second and third tier of validation on the head, which
// the settings name: those of the integration beside the tests, those of the system once
// nothing else fails. A module's run has neither.
func (x *Executor) tiers(ctx context.Context, run *pipeline.Run, report *pipeline.TestReport) error {
	if run.Part != nil {
		return nil
	}
	t := run.Config.Tests
	for _, tier := range []struct {
		name     string
		commands []string
	}{{pipeline.TierIntegration, t.Integration}, {pipeline.TierSystem, t.System}} {
		broken := len(report.Failures) > 0 || len(report.Tampered) > 0 || report.Unclean != ""
		if len(tier.commands) == 0 || tier.name == pipeline.TierSystem && broken {
			continue
		}
		got, err := x.tier(ctx, run, tier.commands)
		if err != nil {
			return err
		}
		for i := range got.Suites {
			got.Suites[i].Tier = tier.name
		}
		if got.None != "" {
			got.Unclean, got.None = cmp.Or(got.Unclean, tier.name+": "+got.None), ""
		}
		merge(report, &got)
		report.Before = append(slices.Clone(report.Before), got.Before...)
		report.Tampered = append(slices.Clone(report.Tampered), got.Tampered...)
		report.Flaky = append(slices.Clone(report.Flaky), got.Flaky...)
		report.Unclean = cmp.Or(report.Unclean, got.Unclean)
	}
	return nil
}

// tier runs commands on the head. What failed of it at the base, too, is told for itself.
// Where the change touches what a command names, it is judged as the base has it, like the
// tests; for that a reviewer's reason is not enough.
func (x *Executor) tier(ctx context.Context, run *pipeline.Run, commands []string) (pipeline.TestReport, error) {
	trees := &trees{x: x, run: run}
	defer trees.close()
	cfg := run.Config.Tests
	cfg.Commands = commands
	at := func(sha string, base *pipeline.TestReport) (pipeline.TestReport, error) {
		tree, err := trees.open(ctx, sha)
		if err != nil {
			return pipeline.TestReport{}, err
		}
		report, err := check.Run(ctx, tree, check.Options{Config: cfg, Head: sha, Baseline: base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
		return report, x.explain(run.ID, sha, err)
	}
	patch, err := x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	if check.Named(commands, patch) {
		base, err := at(run.Base, nil)
		if err != nil {
			return base, err
		}
		report, err := check.Verify(ctx, trees.open, check.Options{Config: cfg, Base: run.Base, Head: run.Head, Patch: patch, Baseline: &base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
		return report, x.explain(run.ID, run.Head, err)
	}
	got, err := at(run.Head, nil)
	if err != nil || len(got.Failures) == 0 {
		return got, err
	}
	base, err := at(run.Base, nil)
	if err != nil || len(base.Failures) == 0 {
		return got, err
	}
	return at(run.Head, &base)
}
