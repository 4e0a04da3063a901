package phase

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
)

// tiers runs the commands of the second and third tier of validation on the head, which
// the settings name: those of the integration beside the tests, those of the system once
// nothing else fails. A module's run has neither.
func (x *Executor) tiers(ctx context.Context, run *pipeline.Run, job agent.Job, report *pipeline.TestReport) error {
	t := run.Config.Tests
	if run.Part != nil || len(t.Integration)+len(t.System) == 0 {
		return nil
	}
	opts, err := x.judged(ctx, run, job)
	if err != nil {
		return err
	}
	for _, tier := range []struct {
		name     string
		commands []string
	}{{pipeline.TierIntegration, t.Integration}, {pipeline.TierSystem, t.System}} {
		broken := len(report.Failures) > 0 || len(report.Tampered) > 0 || report.Unclean != ""
		if len(tier.commands) == 0 || tier.name == pipeline.TierSystem && broken {
			continue
		}
		got, err := x.tier(ctx, run, opts, tier.commands)
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

// tier judges the head by commands, with the base's own beside them, as it is judged by its
// tests: an end that shows nothing is no pass there either. For a test that passes only as
// the change edits it, a reviewer's reason is not enough. What the change itself says is
// told with the tests.
func (x *Executor) tier(ctx context.Context, run *pipeline.Run, opts check.Options, commands []string) (pipeline.TestReport, error) {
	opts.Config.Commands, opts.Beside = commands, true
	opts.Earlier, opts.Proofs = nil, nil
	base, err := x.tierBase(ctx, run, opts)
	if err != nil {
		return pipeline.TestReport{}, err
	}
	opts.Baseline = base
	trees := &trees{x: x, run: run}
	defer trees.close()
	report, err := check.Verify(ctx, trees.open, opts)
	return report, x.explain(run.ID, run.Head, err)
}

// tierBase runs the commands of a tier at the base, once for as long as the run's workspace
// is kept. What cannot run there, such as a script that the change brings, fails nothing.
func (x *Executor) tierBase(ctx context.Context, run *pipeline.Run, opts check.Options) (*pipeline.TestReport, error) {
	key := run.Base + "\n" + strings.Join(opts.Config.Commands, "\n")
	x.mu.Lock()
	known := x.tiersAt[run.ID][key]
	x.mu.Unlock()
	if known != nil {
		return known, nil
	}
	trees := &trees{x: x, run: run}
	defer trees.close()
	tree, err := trees.open(ctx, run.Base)
	if err != nil {
		return nil, err
	}
	report, err := check.Run(ctx, tree, check.Options{Config: opts.Config, Head: run.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	var fault *pipeline.Fault
	if errors.As(err, &fault) && fault.Class == pipeline.FaultEnvironment {
		report, err = pipeline.TestReport{Head: run.Base}, nil
	}
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tiersAt[run.ID] == nil {
		x.tiersAt[run.ID] = map[string]*pipeline.TestReport{}
	}
	x.tiersAt[run.ID][key] = &report
	return &report, nil
}
