package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// quality measures the gates of quality on a head whose tests passed, as the base's
// settings have them. A module's run has none: they are of the whole. What they come to is
// laid down before a model is asked about it, so that luck gets no second try.
func (x *Executor) quality(ctx context.Context, run *pipeline.Run, job agent.Job, report *pipeline.TestReport) error {
	passed := report.None == "" && report.Unclean == "" && report.Passed > 0 && len(report.Failures)+len(report.Tampered) == 0
	if len(run.Config.Quality) == 0 || run.Part != nil || !passed {
		return nil
	}
	if err := x.gauge(ctx, run, run.Head, report); err != nil {
		return err
	}
	if len(report.Failures) == 0 {
		return nil
	}
	kept := *report
	if err := job.Emit(ctx, pipeline.Event{ID: job.Key + "/measured", Type: pipeline.EventPhaseTested, Source: "agent:" + string(config.RoleTester),
		Data: pipeline.Data{Phase: &job.Ref, Tests: &kept}}); err != nil {
		return fmt.Errorf("lay down what the quality gates of %s show: %w", run.Head, err)
	}
	return nil
}

// gauge measures the gates on a commit, each side in a tree of its own.
func (x *Executor) gauge(ctx context.Context, run *pipeline.Run, sha string, report *pipeline.TestReport) error {
	patch, err := x.o.Gateway.Diff(ctx, run.Repo, run.Base, sha)
	if err != nil {
		return err
	}
	o := check.GateOptions{
		Gates: run.Config.Quality, Base: run.Base, Head: sha, Patch: patch, Baseline: run.Baseline, Tests: run.Config.Tests,
		Timeout: x.o.TestTimeout, Kept: kept{x, cacheKey(run.Repo)}, Log: x.o.Log, Clock: x.o.Now,
	}
	if o.Known, err = x.o.Known(ctx, run.Repo); err != nil {
		return err
	}
	for _, it := range run.Iterations {
		if it.Tests != nil && it.Tests.Head != sha {
			o.Earlier = append(o.Earlier, check.Past{Iteration: it.Number, Report: it.Tests})
		}
	}
	head := &trees{x: x, run: run, name: fmt.Sprintf("quality-%d", run.ID)}
	defer head.close()
	if _, err := head.open(ctx, sha); err != nil {
		return err
	}
	tools, err := x.hostTools(ctx, run, head.ws)
	if err != nil {
		return err
	}
	o.Tools = fmt.Sprint(tools) // by name
	base := &trees{x: x, run: run, name: fmt.Sprintf("quality-base-%d", run.ID)}
	defer base.close()
	return x.explain(run.ID, sha, check.Measure(ctx, head.open, base.open, report, o))
}

// rooted puts what was measured before what the tester thinks of it.
func rooted(failures []pipeline.Failure, measures []measure.Result) {
	for i := range failures {
		f := &failures[i]
		name, is := strings.CutPrefix(f.Test, "quality/")
		at := slices.IndexFunc(measures, func(m measure.Result) bool { return m.Name == name })
		if !is || at < 0 {
			continue
		}
		f.Cause = pipeline.CauseQuality
		if cause := measures[at].Cause(); cause != "" {
			f.Analysis = text.Clip(strings.TrimSuffix(text.FirstLine(cause)+". "+f.Analysis, ". "), 1000)
		}
	}
}

// Readings keep what tests and gates of quality came to at bases, by how it was measured, for
// all runs and beyond the server's life. They read into a pointer what [encoding/json] writes.
type Readings interface {
	Reading(ctx context.Context, repo, key string, v any) (there bool, err error)
	KeepReading(ctx context.Context, repo, key string, v any, now time.Time) error
}

// kept are those of a repository. What cannot be read is measured once more.
type kept struct {
	x    *Executor
	repo string
}

func (k kept) Get(ctx context.Context, key string) *measure.Reading {
	if r := (&measure.Reading{}); k.read(ctx, key, r) {
		return r
	}
	return nil
}

func (k kept) Put(ctx context.Context, key string, r *measure.Reading) { k.write(ctx, key, r) }

func (k kept) read(ctx context.Context, key string, v any) bool {
	there, err := k.x.o.Readings.Reading(ctx, k.repo, key, v)
	if err != nil {
		k.x.o.Log.Warn("measure a base once more", "error", err)
	}
	return there
}

func (k kept) write(ctx context.Context, key string, v any) {
	if err := k.x.o.Readings.KeepReading(ctx, k.repo, key, v, k.x.o.Now()); err != nil {
		k.x.o.Log.Warn("keep what was measured at a base", "error", err)
	}
}
