package phase

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/identity"
)

// review shows the whole change to the reviewer.
func (x *Executor) review(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	if job.Diff, err = x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	if err := x.o.Memory.Recall(ctx, &job, "reviewer", job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	review, err := x.reviews(ctx, job)
	if err != nil {
		return pipeline.Data{}, err
	}
	if review.Findings, err = x.resolve(ctx, run, pipeline.PhaseReview, review.Findings); err != nil {
		return pipeline.Data{}, err
	}
	review.Identity = identity.Version
	x.o.Memory.Filter(ctx, run, &review)
	return pipeline.Data{Review: &review}, nil
}

// reviews asks every reviewer and makes one review of theirs.
func (x *Executor) reviews(ctx context.Context, job agent.Job) (pipeline.Review, error) {
	var all pipeline.Review
	if len(x.o.Reviewers) == 0 {
		return all, fmt.Errorf("review %s: there is no reviewer, and what nobody reviewed is not approved", job.Key)
	}
	for i, r := range x.o.Reviewers {
		one, _, err := r.Review(ctx, job)
		if err != nil {
			return pipeline.Review{}, err
		}
		if i == 0 {
			all = one
			continue
		}
		addReview(&all, one)
	}
	return all, nil
}

// addReview adds what a further reviewer says of the same head. The first one's word
// holds for where the work goes; the greater risk counts.
func addReview(all *pipeline.Review, more pipeline.Review) {
	all.Summary = strings.TrimSpace(all.Summary + "\n\n" + more.Summary)
	all.Compliance = append(slices.Clone(all.Compliance), more.Compliance...)
	all.Findings = append(slices.Clone(all.Findings), more.Findings...)
	all.Risk = max(all.Risk, more.Risk)
	all.NeedsHuman = cmp.Or(all.NeedsHuman, more.NeedsHuman)
	all.SendTo = cmp.Or(all.SendTo, more.SendTo)
	all.Reviewed = append(slices.Clone(all.Reviewed), more.Reviewed...)
	slices.Sort(all.Reviewed)
	all.Reviewed = slices.Compact(all.Reviewed)
	all.NotReviewed = append(slices.Clone(all.NotReviewed), more.NotReviewed...)
	all.NotReviewed = slices.DeleteFunc(all.NotReviewed, func(s pipeline.Skipped) bool { return slices.Contains(all.Reviewed, s.Path) })
}
