package github

import (
	"context"
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// Shipping is how a pull request stands that is to be merged.
type Shipping struct {
	Node   string
	Head   string // SHA
	Base   string // branch that it is for
	Merged string // SHA that it was merged as; "": it is not
	Closed bool   // without being merged
	Queue  bool   // its base merges by a queue alone
	Queued bool   // it is in that
}

// Shipping reads how a pull request stands.
func (a *App) Shipping(ctx context.Context, repo pipeline.Repo, n int) (Shipping, error) {
	s, err := a.session(repo)
	if err != nil {
		return Shipping{}, err
	}
	var q struct {
		Repository struct {
			PullRequest struct {
				ID                  string
				State               string
				HeadRefOid          string
				BaseRefName         string
				IsMergeQueueEnabled bool
				IsInMergeQueue      bool
				MergeCommit         *struct{ Oid string }
			} `graphql:"pullRequest(number: $number)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	vars := map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name), "number": githubv4.Int(n)}
	if err := explain(fmt.Sprintf("read #%d of %s", n, repo.FullName()), "pull_requests: read", s.gql.Query(ctx, &q, vars)); err != nil {
		return Shipping{}, err
	}
	pr := q.Repository.PullRequest
	out := Shipping{Node: pr.ID, Head: pr.HeadRefOid, Base: pr.BaseRefName, Closed: pr.State == "CLOSED", Queue: pr.IsMergeQueueEnabled, Queued: pr.IsInMergeQueue}
	if pr.MergeCommit != nil && pr.State == "MERGED" {
		out.Merged = pr.MergeCommit.Oid
	}
	return out, nil
}

// MergeAt merges a pull request, at that head alone. That its rules or its state refuse
// it is a final fault.
func (a *App) MergeAt(ctx context.Context, repo pipeline.Repo, n int, head, method string) error {
	s, err := a.session(repo)
	if err != nil {
		return err
	}
	_, _, err = s.rest.PullRequests.Merge(ctx, repo.Owner, repo.Name, n, "", &gh.PullRequestOptions{SHA: head, MergeMethod: method})
	doing := fmt.Sprintf("merge #%d of %s at %s", n, repo.FullName(), text.ShortSHA(head))
	return lasting(explain(doing, "contents: write", err))
}

// Enqueue puts a pull request into its base's merge queue, at that head alone. What the
// queue refuses is a final fault.
func (a *App) Enqueue(ctx context.Context, repo pipeline.Repo, pull Shipping) error {
	s, err := a.session(repo)
	if err != nil {
		return err
	}
	var m struct {
		EnqueuePullRequest struct {
			MergeQueueEntry struct{ ID string }
		} `graphql:"enqueuePullRequest(input: $input)"`
	}
	head := githubv4.GitObjectID(pull.Head)
	in := githubv4.EnqueuePullRequestInput{PullRequestID: githubv4.ID(pull.Node), ExpectedHeadOid: &head}
	return explain("put a pull request of "+repo.FullName()+" into the merge queue", "pull_requests: write", s.gql.Mutate(ctx, &m, in, nil))
}

// Dequeue takes a pull request out of its base's merge queue.
func (a *App) Dequeue(ctx context.Context, repo pipeline.Repo, pull Shipping) error {
	s, err := a.session(repo)
	if err != nil {
		return err
	}
	var m struct {
		DequeuePullRequest struct {
			MergeQueueEntry struct{ ID string }
		} `graphql:"dequeuePullRequest(input: $input)"`
	}
	in := githubv4.DequeuePullRequestInput{ID: githubv4.ID(pull.Node)}
	return explain("take a pull request of "+repo.FullName()+" out of the merge queue", "pull_requests: write", s.gql.Mutate(ctx, &m, in, nil))
}

// Status is what a deployer has said of a deployment.
type Status struct {
	State       string
	Description string
	At          time.Time
}

// Statuses lists what was said of a deployment, oldest first.
func (a *App) Statuses(ctx context.Context, repo pipeline.Repo, deployment int64) (out []Status, err error) {
	s, err := a.sessionFor(repo, scopeDeploy)
	if err != nil {
		return nil, err
	}
	list, _, err := s.rest.Repositories.ListDeploymentStatuses(ctx, repo.Owner, repo.Name, deployment, &gh.ListOptions{PerPage: 100})
	if err = explain(fmt.Sprintf("see the statuses of deployment %d of %s", deployment, repo.FullName()), "deployments: write", err); err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(list) {
		out = append(out, Status{d.GetState(), d.GetDescription(), d.GetCreatedAt().UTC()})
	}
	return out, nil
}

// MayDeploy is nil when the App may make deployments; that it may not is a final fault.
func (a *App) MayDeploy(ctx context.Context, repo pipeline.Repo) error {
	s, err := a.sessionFor(repo, scopeDeploy)
	if err != nil {
		return err
	}
	_, _, err = s.rest.Repositories.ListDeployments(ctx, repo.Owner, repo.Name, &gh.DeploymentsListOptions{ListOptions: gh.ListOptions{PerPage: 1}})
	return explain("see the deployments of "+repo.FullName(), "deployments: write", err)
}
