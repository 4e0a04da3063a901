package github

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// Deploying is a deployment that Forge asks for. Who deploys is the repository's own
// workflow or program, which follows deployments.
type Deploying struct {
	Environment string
	Commit      string // full SHA
	Task        string
	After       int64  // the deployment that must be the environment's newest; under 0: none is made any more
	Any         bool   // it may be after whatever deployment
	Key         string // names the deployment: with it there is at most one
	Description string
}

// Deploy makes a deployment, unless the one with that key is there. When another one
// than After is the newest of the environment, it is a final fault: somebody was
// quicker.
func (a *App) Deploy(ctx context.Context, repo pipeline.Repo, d Deploying) (id int64, err error) {
	s, err := a.sessionFor(repo, scopeDeploy)
	if err != nil {
		return 0, err
	}
	doing := fmt.Sprintf("deploy %s to %s of %s", text.ShortSHA(d.Commit), d.Environment, repo.FullName())
	list, _, err := s.rest.Repositories.ListDeployments(ctx, repo.Owner, repo.Name,
		&gh.DeploymentsListOptions{Environment: d.Environment, ListOptions: gh.ListOptions{PerPage: 100}})
	if err = lasting(explain(doing, "deployments: write", err)); err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, o := range list {
		if keyOfDeployment(o) == d.Key {
			return o.GetID(), nil
		}
		newest = max(newest, o.GetID())
	}
	if d.After < 0 {
		return 0, final("%s: it could not be done in time, and by now it is not known what it would do.", doing)
	}
	if !d.Any {
		// Letter case does not count in names of environments, but that list may go by it.
		all, _, err := s.rest.Repositories.ListDeployments(ctx, repo.Owner, repo.Name, &gh.DeploymentsListOptions{ListOptions: gh.ListOptions{PerPage: 100}})
		if err = lasting(explain(doing, "deployments: write", err)); err != nil {
			return 0, err
		}
		for _, o := range all {
			if strings.EqualFold(o.GetEnvironment(), d.Environment) {
				newest = max(newest, o.GetID())
			}
		}
		if newest != d.After {
			return 0, final("%s: deployment %d was made in the meantime, so nothing was deployed.", doing, newest)
		}
	}
	words := render.Line(d.Description, a.web.Host, 140)
	merge, contexts := false, []string{}
	made, _, err := s.rest.Repositories.CreateDeployment(ctx, repo.Owner, repo.Name, &gh.DeploymentRequest{
		Ref: &d.Commit, Task: &d.Task, AutoMerge: &merge, RequiredContexts: &contexts, Payload: map[string]string{"forge": d.Key},
		Environment: &d.Environment, Description: &words})
	if err = lasting(explain(doing, "deployments: write", err)); err != nil {
		return 0, err
	}
	return made.GetID(), nil
}

// keyOfDeployment is the key that a deployment of Forge's was made with. GitHub gives a
// payload back as JSON, or as a text that holds it.
func keyOfDeployment(d *gh.Deployment) string {
	raw := []byte(d.Payload)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	var p struct {
		Forge string `json:"forge"`
	}
	_ = json.Unmarshal(raw, &p) // others hold anything
	return p.Forge
}

// incidentLabel marks issues about incidents. GitHub makes the label when there is none
// of that name.
const incidentLabel = "incident"

// OpenIssue opens an issue, unless the one with that key is there, and returns its
// number and address.
func (a *App) OpenIssue(ctx context.Context, repo pipeline.Repo, title, body, key string) (int, string, error) {
	s, err := a.session(repo)
	if err != nil {
		return 0, "", err
	}
	bot, err := a.self(ctx)
	if err != nil {
		return 0, "", err
	}
	mark := render.Marker("", key)
	list, _, err := s.rest.Issues.ListByRepo(ctx, repo.Owner, repo.Name, &gh.IssueListByRepoOptions{
		State: "all", Labels: []string{incidentLabel}, Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: 100}})
	if err = lasting(explain("list issues labelled "+incidentLabel, "issues: read", err)); err != nil {
		return 0, "", err
	}
	for _, i := range list {
		if i.GetUser().GetID() == bot.ID && strings.HasPrefix(i.GetBody(), mark) {
			return i.GetNumber(), i.GetHTMLURL(), nil
		}
	}
	title = render.Line(title, a.web.Host, 200)
	body = mark + "\n" + render.Block(body, a.web.Host, render.MaxText)
	made, _, err := s.rest.Issues.Create(ctx, repo.Owner, repo.Name, &gh.IssueRequest{Title: &title, Body: &body, Labels: &[]string{incidentLabel}})
	if err = lasting(explain("open an issue in "+repo.FullName(), "issues: write", err)); err != nil {
		return 0, "", err
	}
	return made.GetNumber(), made.GetHTMLURL(), nil
}

// MergedPull is a pull request that was merged.
type MergedPull struct {
	Title string
	Head  string // SHA of what was merged
	SHA   string // that it was merged as
}

// MergedPull reads a pull request that was merged; one that was not is a final fault.
func (a *App) MergedPull(ctx context.Context, repo pipeline.Repo, n int) (MergedPull, error) {
	s, err := a.session(repo)
	if err != nil {
		return MergedPull{}, err
	}
	var q struct {
		Repository struct {
			PullRequest struct {
				Title       string
				HeadRefOid  string
				MergeCommit *struct{ Oid string } // REST has it no more
			} `graphql:"pullRequest(number: $number)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	vars := map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name), "number": githubv4.Int(n)}
	if err := explain(fmt.Sprintf("read #%d of %s", n, repo.FullName()), "pull_requests: read", s.gql.Query(ctx, &q, vars)); err != nil {
		return MergedPull{}, err
	}
	pr := q.Repository.PullRequest
	if pr.MergeCommit == nil {
		return MergedPull{}, final("#%d of %s is not merged.", n, repo.FullName())
	}
	return MergedPull{Title: pr.Title, Head: pr.HeadRefOid, SHA: pr.MergeCommit.Oid}, nil
}

// OpenDraft opens a draft pull request from a branch to the default one, unless there
// is or was one from it, and returns its number and address.
func (a *App) OpenDraft(ctx context.Context, repo pipeline.Repo, branch, title, body string) (int, string, error) {
	s, err := a.session(repo)
	if err != nil {
		return 0, "", err
	}
	list, _, err := s.rest.PullRequests.List(ctx, repo.Owner, repo.Name,
		&gh.PullRequestListOptions{State: "all", Head: repo.Owner + ":" + branch, ListOptions: gh.ListOptions{PerPage: 100}})
	if err = lasting(explain("list pull requests of "+branch, "pull_requests: read", err)); err != nil {
		return 0, "", err
	}
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch {
			return pr.GetNumber(), pr.GetHTMLURL(), nil
		}
	}
	title, body = render.Line(title, a.web.Host, 200), render.Block(body, a.web.Host, render.MaxText)
	pr, _, err := s.rest.PullRequests.Create(ctx, repo.Owner, repo.Name,
		&gh.NewPullRequest{Title: &title, Body: &body, Head: &branch, Base: &repo.DefaultBranch, Draft: gh.Bool(true)})
	if err = lasting(explain(fmt.Sprintf("open a draft from %s in %s", branch, repo.FullName()), permPulls, err)); err != nil {
		return 0, "", err
	}
	return pr.GetNumber(), pr.GetHTMLURL(), nil
}
