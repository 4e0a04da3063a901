package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/identity"
)

// resolve gives findings about the run's head the fingerprints under which the run
// knows them, so that what is told of them is what the run counts.
func (x *Executor) resolve(ctx context.Context, run *pipeline.Run, p pipeline.Phase, found []pipeline.Finding) ([]pipeline.Finding, error) {
	moves := map[string]identity.Moves{} // from where an issue was last seen to the head
	for i := range run.Findings {
		seen := seenAt(run, &run.Findings[i])
		if _, read := moves[seen]; read || seen == "" || seen == run.Head {
			continue
		}
		patch, err := x.o.Gateway.Diff(ctx, run.Repo, seen, run.Head)
		if err != nil {
			return nil, err
		}
		moves[seen] = identity.ReadMoves(patch)
	}
	known := identity.Known{Issues: run.Findings, Phase: p, Now: func(is *pipeline.Issue) identity.Place {
		seen := seenAt(run, is)
		if seen == "" {
			return identity.Place{File: is.Finding.File, Line: -1}
		}
		return moves[seen].At(is.Finding.File, is.Finding.Line) // seen at this head, nothing has moved
	}}
	return known.Resolve(found), nil
}

// recogniseTests gives what a report finds wrong with the tests the fingerprints under
// which the run knows it. Failures are known again by what they say, in the fold.
func (x *Executor) recogniseTests(ctx context.Context, run *pipeline.Run, report *pipeline.TestReport) (err error) {
	if len(report.Tampered) > 0 {
		report.Tampered, err = x.resolve(ctx, run, pipeline.PhaseTest, report.Tampered)
	}
	return err
}

// seenAt is the commit at which an issue was last seen; "" where that is not known.
func seenAt(run *pipeline.Run, is *pipeline.Issue) string {
	if is.Seen != "" || is.Last < 1 || is.Last > len(run.Iterations) {
		return is.Seen
	}
	if it := &run.Iterations[is.Last-1]; it.Review != nil {
		return it.Review.Head
	}
	return ""
}
