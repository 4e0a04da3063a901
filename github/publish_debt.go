package github

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/module"

	gh "github.com/google/go-github/v62/github"
)

// The labels of issues that Forge opens: debtLabel marks those that keep what was
// accepted, laterLabel those of modules that were left for later. GitHub makes a label
// when there is none of that name.
const (
	debtLabel  = "technical-debt"
	laterLabel = "later"
)

// debt writes what a human accepted down as an issue, so that it is not forgotten
// when the pull request is merged (T7).
func (p *publisher) debt(ctx context.Context) error {
	r := p.run
	if r.State != pipeline.StateAccepted || p.artefact("debt").Hash != "" || len(p.v.Left(1)) == 0 || r.Published.Pull == nil {
		return nil
	}
	title, body := p.v.Debt()
	return p.open(ctx, "debt", debtLabel, title, body)
}

// postponed opens an issue for each module that was left for later (V9).
func (p *publisher) postponed(ctx context.Context) error {
	r := p.run
	var family []*pipeline.Run
	for i := range r.Parts {
		part := &r.Parts[i]
		if part.Left == "" || part.How != module.Later || r.State == pipeline.StateCancelled || p.artefact(render.LaterKey(part.ID)).Hash != "" {
			continue
		}
		if family == nil && p.opts.Family != nil {
			var err error
			if family, err = p.opts.Family(ctx); err != nil {
				return fmt.Errorf("open an issue for the module %s: %w", part.ID, err)
			}
		}
		var child *pipeline.Run
		if k := slices.IndexFunc(family, func(c *pipeline.Run) bool { return c.ID == part.Run }); k >= 0 {
			child = family[k]
		}
		title, body := p.v.Later(part, child)
		if err := p.open(ctx, render.LaterKey(part.ID), laterLabel, title, body); err != nil {
			return err
		}
	}
	return nil
}

// open opens an issue, once. Where issues are switched off, there is none.
func (p *publisher) open(ctx context.Context, key, label, title, body string) error {
	r := p.run
	if p.opts.Again {
		if ok, err := p.adoptIssue(ctx, key, label, render.Hash(title, body)); ok || err != nil {
			return err
		}
	}
	issue, _, err := p.s.rest.Issues.Create(ctx, r.Repo.Owner, r.Repo.Name, &gh.IssueRequest{Title: &title, Body: &body, Labels: &[]string{label}})
	if err = explain(fmt.Sprintf("open an issue for what is left of run %d in %s", r.ID, r.Repo.FullName()), "issues: write", err); gone(err) {
		p.app.log.Warn("issues are switched off: what is left stands in the pull request alone", "run", r.ID, "repo", r.Repo.FullName())
		p.made(key, pipeline.Artefact{Hash: "issues are off"})
		return nil
	} else if err != nil {
		return err
	}
	p.made(key, pipeline.Artefact{ID: int64(issue.GetNumber()), Node: issue.GetNodeID(), URL: issue.GetHTMLURL(), Hash: render.Hash(title, body)})
	return nil
}

// adoptIssue finds the issue that an earlier attempt opened.
func (p *publisher) adoptIssue(ctx context.Context, key, label, want string) (bool, error) {
	r := p.run
	bot, err := p.app.self(ctx)
	if err != nil {
		return false, err
	}
	list, _, err := p.s.rest.Issues.ListByRepo(ctx, r.Repo.Owner, r.Repo.Name, &gh.IssueListByRepoOptions{
		State: "all", Labels: []string{label}, Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: 100}})
	if err = explain("list issues labelled "+label, "issues: read", err); err != nil {
		return false, err
	}
	for _, i := range list {
		if i.GetUser().GetID() == bot.ID && strings.Contains(i.GetBody(), render.Marker(r.Trace, key)) {
			p.made(key, pipeline.Artefact{ID: int64(i.GetNumber()), Node: i.GetNodeID(), URL: i.GetHTMLURL(), Hash: want})
			return true, nil
		}
	}
	return false, nil
}
