package github

import (
	"context"
	"fmt"
	"net/http"

	"forge/pipeline"
	"forge/pipeline/mergeable"

	gh "github.com/google/go-github/v62/github"
)

// Mergeable says how a pull request stands to its base branch, now. GitHub tells nobody
// when this changes, and works out whether a pull request merges only when it is asked:
// ask after a push to the base, and once more later. GitHub's own word "behind" needs a
// rule that demands up-to-date branches, so commits are compared.
func (a *App) Mergeable(ctx context.Context, repo pipeline.Repo, pull int) (mergeable.State, error) {
	var none mergeable.State
	s, err := a.session(repo)
	if err != nil {
		return none, err
	}
	op := fmt.Sprintf("ask whether %s#%d can be merged", repo.FullName(), pull)
	p, _, err := s.rest.PullRequests.Get(ctx, repo.Owner, repo.Name, pull)
	if err = explain(op, "pull_requests: read", err); err != nil {
		return none, err
	}
	if p.GetState() != "open" {
		return mergeable.State{Unknown: true}, nil
	}
	c, _, err := s.rest.Repositories.CompareCommits(ctx, repo.Owner, repo.Name, p.GetBase().GetRef(), p.GetHead().GetSHA(), &gh.ListOptions{PerPage: 1})
	if err = explain(op, "contents: read", err); status(err) == http.StatusNotFound && p.Mergeable != nil && !p.GetMergeable() {
		base, err := a.BranchHead(ctx, repo, p.GetBase().GetRef())
		return mergeable.State{Base: base, Conflict: true}, err // no history in common: there is nothing to compare
	}
	if err != nil {
		return none, err
	}
	return mergeable.State{
		Base: c.GetBaseCommit().GetSHA(), Behind: c.GetBehindBy(), Unknown: p.Mergeable == nil,
		Conflict: p.Mergeable != nil && !p.GetMergeable(), Required: p.GetMergeableState() == "behind",
	}, nil
}

// PullState reports whether a pull request is open, and whether it was merged. One that
// is gone with its repository is neither.
func (a *App) PullState(ctx context.Context, repo pipeline.Repo, pull int) (open, merged bool, err error) {
	s, err := a.session(repo)
	if err != nil {
		return false, false, err
	}
	p, _, err := s.rest.PullRequests.Get(ctx, repo.Owner, repo.Name, pull)
	err = explain(fmt.Sprintf("ask whether %s#%d is open", repo.FullName(), pull), "pull_requests: read", err)
	if status(err) == http.StatusNotFound {
		return false, false, nil
	}
	return err == nil && p.GetState() == "open", err == nil && p.GetMerged(), err
}
