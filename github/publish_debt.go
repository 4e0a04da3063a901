package github

import (
	"context"
	"fmt"
	"strings"

	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// debtLabel marks the issues that keep what was accepted. GitHub makes the label
// when there is none of that name.
const debtLabel = "technical-debt"

// debt writes what a human accepted down as an issue, so that it is not forgotten
// when the pull request is merged (T7).
func (p *publisher) debt(ctx context.Context) error {
	r := p.run
	if r.State != pipeline.StateAccepted || p.artefact("debt").Hash != "" || len(p.v.Left(1)) == 0 || r.Published.Pull == nil {
		return nil
	}
	title, body := p.v.Debt()
	if p.opts.Again {
		if ok, err := p.adoptDebt(ctx, render.Hash(title, body)); ok || err != nil {
			return err
		}
	}
	issue, _, err := p.s.rest.Issues.Create(ctx, r.Repo.Owner, r.Repo.Name, &gh.IssueRequest{Title: &title, Body: &body, Labels: &[]string{debtLabel}})
	if err = explain(fmt.Sprintf("open an issue for what is left of run %d in %s", r.ID, r.Repo.FullName()), "issues: write", err); gone(err) {
		p.app.log.Warn("issues are switched off: what is left stands in the pull request alone", "run", r.ID, "repo", r.Repo.FullName())
		p.made("debt", pipeline.Artefact{Hash: "issues are off"})
		return nil
	} else if err != nil {
		return err
	}
	p.made("debt", pipeline.Artefact{ID: int64(issue.GetNumber()), Node: issue.GetNodeID(), URL: issue.GetHTMLURL(), Hash: render.Hash(title, body)})
	return nil
}

// adoptDebt finds the issue that an earlier attempt opened.
func (p *publisher) adoptDebt(ctx context.Context, want string) (bool, error) {
	r := p.run
	bot, err := p.app.self(ctx)
	if err != nil {
		return false, err
	}
	list, _, err := p.s.rest.Issues.ListByRepo(ctx, r.Repo.Owner, r.Repo.Name, &gh.IssueListByRepoOptions{
		State: "all", Labels: []string{debtLabel}, Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: 100}})
	if err = explain("list issues labelled "+debtLabel, "issues: read", err); err != nil {
		return false, err
	}
	for _, i := range list {
		if i.GetUser().GetID() == bot.ID && strings.Contains(i.GetBody(), render.Marker(r.Trace, "debt")) {
			p.made("debt", pipeline.Artefact{ID: int64(i.GetNumber()), Node: i.GetNodeID(), URL: i.GetHTMLURL(), Hash: want})
			return true, nil
		}
	}
	return false, nil
}
