package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"forge/github"
	"forge/pipeline"
	"forge/pipeline/text"
)

// mergeGroups gives the verdict on what GitHub's merge queue is about to merge. Where
// Forge's check is required, the queue waits for one on each group.
type mergeGroups struct {
	app   *github.App
	tests func(ctx context.Context, run *pipeline.Run, sha string) (report pipeline.TestReport, same bool, err error)
}

// MergeGroup implements work.MergeQueue.
func (m mergeGroups) MergeGroup(ctx context.Context, n pipeline.Notice, run *pipeline.Run) (string, error) {
	v, err := m.verdict(ctx, n, run)
	if err != nil {
		return "", err
	}
	v.SHA, v.Key = n.Head, "group/"+n.Head
	if err := m.app.ShowVerdict(ctx, n.Repo, v); err != nil {
		return "", err
	}
	return fmt.Sprintf("merge group %.9s: %s: %s", n.Head, v.Conclusion, v.Title), nil
}

func (m mergeGroups) verdict(ctx context.Context, n pipeline.Notice, run *pipeline.Run) (github.Verdict, error) {
	say := func(conclusion, title, format string, args ...any) (github.Verdict, error) {
		return github.Verdict{Conclusion: conclusion, Title: title, Summary: fmt.Sprintf(format, args...)}, nil
	}
	switch {
	case run == nil:
		return say("neutral", "Not Forge's work", "Pull request #%d is not one of Forge's, so there is nothing to verify.", n.Pull)
	case run.State == pipeline.StateAccepted:
		return say("neutral", "Accepted with known issues, not verified", "A human accepted #%d as it is.", n.Pull)
	case run.State != pipeline.StateVerified || run.Published.Head != run.Head:
		return say("failure", "Not verified", "Forge has not verified the newest commit of #%d: its run is %s.", n.Pull, run.State)
	}
	report, same, err := m.tests(ctx, run, n.Head)
	var fault *pipeline.Fault
	switch {
	case errors.As(err, &fault) && fault.Final:
		return say("failure", "The tests could not be run", "%s", text.Scrub(fault.Shown(run).Error()))
	case err != nil:
		return github.Verdict{}, err
	case same:
		return say("success", "Verified", "This group has the very files of %.9s, which Forge verified.", run.Head)
	case report.OK():
		return say("success", fmt.Sprintf("Verified: %d tests passed", report.Passed), "Forge verified %.9s; on this group, with what is merged before it, its tests pass, too.", run.Head)
	}
	words := cmp.Or(report.None, report.Unclean, "nothing passed")
	if len(report.Failures) > 0 {
		words = ""
		for _, f := range report.Failures[:min(len(report.Failures), 20)] {
			words += "- " + text.Clip(text.OneLine(f.Test+": "+f.Error), 300) + "\n"
		}
	}
	return say("failure", fmt.Sprintf("%s on this group", text.Plural(len(report.Failures), "test fails", "tests fail")),
		"Forge verified %.9s; together with what is merged before it, it does not pass:\n\n%s", run.Head, text.Scrub(words))
}
