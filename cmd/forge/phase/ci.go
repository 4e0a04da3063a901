package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/github"
	"forge/pipeline"
)

// CI makes the repository's own checks a part of the test report.
type CI struct {
	Checks func(ctx context.Context, repo pipeline.Repo, sha string, since time.Time) (github.Checks, error)
	Now    func() time.Time
	Settle time.Duration // after a push, until "none" or "all passed" is believed: checks start one after the other
	Poll   time.Duration // between two looks, when nothing is heard
}

// NoneLimit is how long a check may take to start at all.
const NoneLimit = 5 * time.Minute

// add looks at the checks of the run's head. It adds what they say to the report, or
// returns what there is to wait for. "No check started" is not "all passed"
// (lessons 13).
func (c *CI) add(ctx context.Context, run *pipeline.Run, report *pipeline.TestReport) (*pipeline.Await, error) {
	now := c.Now()
	w := pipeline.Await{Since: now, Until: now.Add(time.Duration(run.Config.Tests.ChecksMinutes) * time.Minute)}
	if run.Await != nil && !run.Await.Away() {
		w = *run.Await
	}
	got, err := c.Checks(ctx, run.Repo, run.Head, w.Since)
	if err != nil {
		return nil, err
	}
	waiting := ""
	switch running := got.Of(github.ChecksRunning); got.State {
	case github.ChecksRunning:
		waiting = "the checks " + strings.Join(running, ", ")
	case github.ChecksNone:
		if now.Before(earlier(w.Since.Add(NoneLimit), w.Until)) {
			waiting = "the repository's checks to start"
		}
	case github.ChecksPassed, github.ChecksSkipped:
		if now.Before(w.Since.Add(c.Settle)) {
			waiting = "further checks that may start"
		}
	}
	if waiting != "" && now.Before(w.Until) {
		local := *report
		w.What, w.Tests, w.Woken = waiting, &local, false
		w.Looks, w.Next = w.Looks+1, now.Add(c.Poll)
		if got.State != github.ChecksRunning && c.Settle < c.Poll {
			w.Next = now.Add(c.Settle)
		}
		return &w, nil
	}
	merge(report, got.Report(run.Head))
	if got.State == github.ChecksRunning {
		report.None = fmt.Sprintf("%s did not end within %s", waiting, w.Until.Sub(w.Since))
	}
	return nil, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// merge adds the report of CI to that of the local tests. Where only one of them
// found something to run, that one counts; CI that said nothing is never passed over.
func merge(local, ci *pipeline.TestReport) {
	if local.None != "" {
		none := local.None
		*local = *ci
		if ci.None != "" {
			local.None = none + "; " + ci.None
		}
		return
	}
	local.None = ci.None
	local.Suites = append(slices.Clone(local.Suites), ci.Suites...)
	local.Failures = append(slices.Clone(local.Failures), ci.Failures...)
	local.Names = append(slices.Clone(local.Names), ci.Names...)
	slices.Sort(local.Names)
	local.Total += ci.Total
	local.Passed += ci.Passed
	local.Failed += ci.Failed
	local.Skipped += ci.Skipped
}
