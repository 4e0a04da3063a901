package github

import (
	"context"
	"fmt"
	"net/http"

	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// Mergeable says how a pull request stands to its base branch, now:
//
//	clean     it merges, and has all commits of the base
//	behind    it merges, and the base has commits that it lacks
//	conflict  it does not merge
//	unknown   GitHub is still working it out, or the pull request is closed: ask again later
//
// GitHub tells nobody when this changes: ask after a push to the base. Its own word
// "behind" needs a rule that demands up-to-date branches, so commits are compared.
func (a *App) Mergeable(ctx context.Context, repo pipeline.Repo, pull int) (string, error) {
	s, err := a.session(repo)
	if err != nil {
		return "", err
	}
	op := fmt.Sprintf("ask whether %s#%d can be merged", repo.FullName(), pull)
	p, _, err := s.rest.PullRequests.Get(ctx, repo.Owner, repo.Name, pull)
	if err = explain(op, "pull_requests: read", err); err != nil {
		return "", err
	}
	switch {
	case p.GetState() != "open" || p.Mergeable == nil:
		return "unknown", nil
	case !p.GetMergeable():
		return "conflict", nil
	case p.GetMergeableState() == "behind":
		return "behind", nil
	}
	c, _, err := s.rest.Repositories.CompareCommits(ctx, repo.Owner, repo.Name, p.GetBase().GetRef(), p.GetHead().GetSHA(), &gh.ListOptions{PerPage: 1})
	if err = explain(op, "contents: read", err); err != nil {
		return "", err
	}
	if c.GetBehindBy() > 0 {
		return "behind", nil
	}
	return "clean", nil
}

// PullOpen reports whether a pull request is neither merged nor closed. One that is
// gone with its repository is not open.
func (a *App) PullOpen(ctx context.Context, repo pipeline.Repo, pull int) (bool, error) {
	s, err := a.session(repo)
	if err != nil {
		return false, err
	}
	p, _, err := s.rest.PullRequests.Get(ctx, repo.Owner, repo.Name, pull)
	err = explain(fmt.Sprintf("ask whether %s#%d is open", repo.FullName(), pull), "pull_requests: read", err)
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil && p.GetState() == "open", err
}
