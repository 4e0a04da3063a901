package github

import (
	"context"
	"fmt"

	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// followBase takes the default branch that there is by now for the run's base, where the
// run's own is gone and the other one holds the commit that the run began from: then it
// was given another name. why says for people why it does not, where it is gone.
func (p *publisher) followBase(ctx context.Context, now string) (followed bool, why string, err error) {
	r := p.run
	was := r.Repo.DefaultBranch
	if now == "" || now == was || r.Part != nil {
		return false, "", nil
	}
	head, err := p.app.BranchHead(ctx, r.Repo, was)
	if err != nil || head != "" { // both are there: the work is for the one that it began from
		return false, "", err
	}
	if head, err = p.app.BranchHead(ctx, r.Repo, now); err != nil {
		return false, "", err
	}
	c, _, err := p.s.rest.Repositories.CompareCommits(ctx, r.Repo.Owner, r.Repo.Name, r.Base, now, &gh.ListOptions{PerPage: 1})
	if err = explain(fmt.Sprintf("see whether %s of %s holds what the run began from", now, r.Repo.FullName()), "contents: read", err); err != nil && !gone(err) {
		return false, "", err
	}
	if err != nil || head == "" || c.GetBehindBy() > 0 {
		return false, fmt.Sprintf("the branch %s is gone, and %s, the default branch of %s by now, does not hold %.7s, which this run began from: "+
			"cancel it and give the issue the label again, or make %[1]s again and continue", was, now, r.Repo.FullName(), r.Base), nil
	}
	r.Repo.DefaultBranch, r.BaseWas = now, was
	if r.Retargeted == now {
		r.Retargeted = ""
	}
	p.found = append(p.found, pipeline.Event{ID: "base.renamed/" + now, Type: pipeline.EventBaseRenamed, Source: "github", Data: pipeline.Data{Note: now, Head: head}})
	return true, "", nil
}

// repoint has the pull request go into the run's base, when that has got another name.
func (p *publisher) repoint(ctx context.Context, pr *gh.PullRequest) error {
	r := p.run
	followed, _, err := p.followBase(ctx, pr.GetBase().GetRepo().GetDefaultBranch())
	if err != nil || !followed || pr.GetBase().GetRef() == r.Repo.DefaultBranch {
		return err // GitHub has done so
	}
	_, _, err = p.s.rest.PullRequests.Edit(ctx, r.Repo.Owner, r.Repo.Name, pr.GetNumber(), &gh.PullRequest{Base: &gh.PullRequestBranch{Ref: &r.Repo.DefaultBranch}})
	return explain(fmt.Sprintf("point pull request %s#%d at %s", r.Repo.FullName(), pr.GetNumber(), r.Repo.DefaultBranch), permPulls, err)
}
