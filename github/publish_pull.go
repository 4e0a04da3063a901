package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

const permPulls = "pull_requests: write"

// pull makes the draft pull request once there is a commit, and keeps its title,
// text and state.
func (p *publisher) pull(ctx context.Context) error {
	r := p.run
	if r.Published.Pull == nil {
		if !p.hasCommit() || r.Published.Head == "" || r.State == pipeline.StateCancelled {
			return nil
		}
		return p.openPull(ctx)
	}
	if r.Retargeted != "" {
		if _, _, err := p.followBase(ctx, r.Retargeted); err != nil {
			return err
		}
	}
	title, body, state := p.v.PullTitle(), p.v.PullBody(), p.pullState()
	want := render.Hash(title, body, state)
	if p.artefact("pull").Hash == want {
		return nil
	}
	edit := &gh.PullRequest{Title: &title, Body: &body}
	if state == "closed" {
		edit.State = &state
	}
	n := r.Published.Pull.Number
	pr, _, err := p.s.rest.PullRequests.Edit(ctx, r.Repo.Owner, r.Repo.Name, n, edit)
	if err = explain(fmt.Sprintf("edit pull request %s#%d", r.Repo.FullName(), n), permPulls, err); err != nil {
		return missing(err, "the App lost its access to the pull request")
	}
	p.keepPull(pr, want)
	if r.Retargeted != "" || state == "closed" {
		return nil
	}
	return p.repoint(ctx, pr)
}

// pullState is "closed" when Forge closes it; else it is left as people have it.
func (p *publisher) pullState() string {
	if p.run.State == pipeline.StateCancelled {
		return "closed"
	}
	return "open"
}

func (p *publisher) openPull(ctx context.Context) error {
	r := p.run
	if p.opts.Again {
		if ok, err := p.adoptPull(ctx); ok || err != nil {
			return err
		}
	}
	title, body := p.v.PullTitle(), p.v.PullBody()
	pr, err := p.createPull(ctx, title, body)
	err = explain(fmt.Sprintf("open a pull request from %s in %s", r.Branch, r.Repo.FullName()), permPulls, err)
	if status(err) == http.StatusUnprocessableEntity {
		if strings.Contains(err.Error(), "already exists") {
			if ok, look := p.adoptPull(ctx); ok || look != nil {
				return look
			}
		}
		now, look := p.app.Repo(ctx, r.Repo.Installation, r.Repo.Owner, r.Repo.Name)
		if look != nil {
			return look
		}
		followed, why, look := p.followBase(ctx, now.DefaultBranch)
		switch {
		case look != nil:
			return look
		case why != "":
			return final("%v: %s.", err, why)
		case followed:
			return p.openPull(ctx)
		}
		return final("%v. See whether %s can be merged into %s at all, and whether the repository allows draft pull requests.", err, r.Branch, r.Repo.DefaultBranch)
	}
	if err != nil {
		return missing(err, "the repository was deleted, or the App lost its access")
	}
	p.keepPull(pr, render.Hash(title, body, "open"))
	return nil
}

func (p *publisher) createPull(ctx context.Context, title, body string) (*gh.PullRequest, error) {
	r := p.run
	pr, _, err := p.s.rest.PullRequests.Create(ctx, r.Repo.Owner, r.Repo.Name, &gh.NewPullRequest{
		Title: &title, Body: &body, Head: &r.Branch, Base: &r.Repo.DefaultBranch, Draft: gh.Bool(true)})
	return pr, err
}

// keepPull records the pull request. One that has left draft and is a draft again was made one by a
// person, and is left so.
func (p *publisher) keepPull(pr *gh.PullRequest, h string) {
	ref := &pipeline.PullRef{Number: pr.GetNumber(), Node: pr.GetNodeID(), URL: pr.GetHTMLURL(), Ready: !pr.GetDraft()}
	if was := p.run.Published.Pull; was != nil && was.Number == ref.Number && was.Ready {
		ref.Ready = true
	}
	p.run.Published.Pull, p.pub.Pull = ref, ref
	p.made("pull", pipeline.Artefact{ID: int64(ref.Number), Node: ref.Node, URL: ref.URL, Hash: h})
}

// adoptPull finds a pull request that an earlier attempt opened from this branch.
// The branch is the run's own, so an open one from it is the run's.
func (p *publisher) adoptPull(ctx context.Context) (bool, error) {
	r := p.run
	list, _, err := p.s.rest.PullRequests.List(ctx, r.Repo.Owner, r.Repo.Name, &gh.PullRequestListOptions{
		State: "all", Head: r.Repo.Owner + ":" + r.Branch, ListOptions: gh.ListOptions{PerPage: 100}})
	if err = explain("list pull requests of "+r.Branch, "pull_requests: read", err); err != nil {
		return false, err
	}
	mark := render.Marker(r.Trace, "pull")
	i := slices.IndexFunc(list, func(pr *gh.PullRequest) bool {
		return pr.GetHead().GetRef() == r.Branch && (pr.GetState() == "open" || strings.Contains(pr.GetBody(), mark))
	})
	if i < 0 {
		return false, nil
	}
	p.keepPull(list[i], "")
	return true, p.pull(ctx)
}

// handOver tells who started the run, by GitHub's own means, that the pull request is
// ready, once: both calls may be made again. Somebody who cannot be asked is not.
func (p *publisher) handOver(ctx context.Context) error {
	r, want := p.run, p.run.Config.Ready
	if !(want.Assign || want.Review) || r.Published.Pull == nil || !r.Published.Pull.Ready || p.artefact("handover").Hash != "" || r.By.Login == "" || r.By.Bot {
		return nil
	}
	n, who := r.Published.Pull.Number, []string{r.By.Login}
	if want.Assign {
		_, _, err := p.s.rest.Issues.AddAssignees(ctx, r.Repo.Owner, r.Repo.Name, n, who)
		if err = explain(fmt.Sprintf("assign #%d to %s", n, who[0]), "issues: write", err); err != nil && !unfit(err) {
			return err
		}
	}
	if want.Review {
		_, _, err := p.s.rest.PullRequests.RequestReviewers(ctx, r.Repo.Owner, r.Repo.Name, n, gh.ReviewersRequest{Reviewers: who})
		if err = explain(fmt.Sprintf("ask %s to review #%d", who[0], n), permPulls, err); err != nil && !unfit(err) {
			return err
		}
	}
	p.made("handover", pipeline.Artefact{Hash: render.Hash(who[0])})
	return nil
}

// unfit reports whether GitHub does not take somebody for that: who has left is not found.
func unfit(err error) bool { return gone(err) || status(err) == http.StatusUnprocessableEntity }

// ready takes the pull request out of draft, which only GraphQL can. GitHub refuses where
// that was done before: by a person, or by a server that died before it could say so.
func (p *publisher) ready(ctx context.Context) error {
	r := p.run
	done := r.State == pipeline.StateVerified && p.v.Check().Conclusion == "success" || r.State == pipeline.StateAccepted
	if !done || r.Published.Pull == nil || r.Published.Pull.Ready {
		return nil
	}
	var m struct {
		Mark struct {
			PullRequest struct {
				IsDraft bool
			}
		} `graphql:"markPullRequestReadyForReview(input: $input)"`
	}
	err := p.s.gql.Mutate(ctx, &m, githubv4.MarkPullRequestReadyForReviewInput{PullRequestID: r.Published.Pull.Node}, nil)
	if err = explain(fmt.Sprintf("take pull request #%d out of draft", r.Published.Pull.Number), "contents: write and pull_requests: write", err); err != nil {
		now, _, look := p.s.rest.PullRequests.Get(ctx, r.Repo.Owner, r.Repo.Name, r.Published.Pull.Number)
		if look != nil || now.GetDraft() {
			return err
		}
	}
	ref := *r.Published.Pull
	ref.Ready = true
	r.Published.Pull, p.pub.Pull = &ref, &ref
	return nil
}
