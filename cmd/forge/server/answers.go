package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/cmd/forge/incidents"
	"forge/github"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/rollout"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// incidentActions carries out what is done about incidents.
type incidentActions struct {
	deployedCode
	app *App
}

// Settings implements incidents.Actions.
func (h incidentActions) Settings(ctx context.Context, full string) (config.Production, error) {
	repo, err := h.repo(ctx, full)
	if err != nil {
		return config.Production{}, err
	}
	cfg, err := h.app.GitHub.config(ctx, repo)
	return cfg.Production, err
}

// Changed implements incidents.Actions. Where the last commit has nothing that the first has
// not, going back to the first would bring what is newer: that is refused.
func (h incidentActions) Changed(ctx context.Context, full string, commits ...string) ([]string, error) {
	repo, err := h.fetched(ctx, full, commits...)
	if err != nil {
		return nil, err
	}
	first, last := commits[0], commits[len(commits)-1]
	if back, err := h.gateway.Shipped(ctx, repo, first, last, 1); err != nil || len(back) == 0 {
		return nil, cmp.Or(err, refuse("%s has all of %s: it would take nothing back", text.ShortSHA(first), text.ShortSHA(last)))
	}
	var all []string
	for n := range commits[1:] {
		files, err := h.gateway.Changed(ctx, repo, commits[n], commits[n+1])
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// fetched returns a repository with commits and branches of it in the mirror.
func (c deployedCode) fetched(ctx context.Context, full string, refs ...string) (pipeline.Repo, error) {
	repo, err := c.repo(ctx, full)
	if err != nil {
		return repo, err
	}
	token, err := c.github.Token(ctx, repo)
	if err != nil {
		return repo, err
	}
	return repo, c.gateway.Fetch(ctx, repo, token, refs...)
}

// OpenIssue implements incidents.Actions.
func (h incidentActions) OpenIssue(ctx context.Context, full, title, body, key string) (incidents.Created, error) {
	repo, err := h.repo(ctx, full)
	if err != nil {
		return incidents.Created{}, err
	}
	n, url, err := h.github.OpenIssue(ctx, repo, title, body, key)
	return incidents.Created{Number: int64(n), URL: url}, err
}

// StartRun implements incidents.Actions. The run is the server's own: it may have been
// nobody's word.
func (h incidentActions) StartRun(ctx context.Context, full string, issue int, key, by string) (incidents.Created, error) {
	repo, err := h.repo(ctx, full)
	if err != nil {
		return incidents.Created{}, err
	}
	task, labels, err := h.github.Issue(ctx, repo, issue)
	if err != nil {
		return incidents.Created{}, err
	}
	if _, err := h.app.GitHub.identity(ctx); err != nil {
		return incidents.Created{}, err
	}
	n := pipeline.Notice{Kind: pipeline.NoticeStart, Repo: repo, Issue: issue, Task: task, Labels: labels, Actor: *h.app.GitHub.bot.Load()}
	run, err := h.app.Engine.Begin(ctx, key, n)
	if err == nil {
		h.app.Engine.Wake()
		h.app.log.InfoContext(ctx, "a run for an incident", "run", run, "cause", key, "by", by)
	}
	return incidents.Created{Number: run}, err
}

// Teach implements incidents.Actions. What the monitor said is no part of it.
func (h incidentActions) Teach(ctx context.Context, i *production.Incident, l production.Lesson) error {
	top := i.Suspects[0]
	run, err := h.db.Load(ctx, top.Run)
	if err != nil {
		return err
	}
	s := pipeline.Signal{Key: fmt.Sprintf("incident/%d/escaped", i.ID), Kind: pipeline.SignalEscaped, Off: l == production.LessonTakenBack, At: i.Ended.UTC(), Weight: 1,
		Pull: top.Pull, File: top.File, Finding: top.Finding, Scope: run.Repo.Scope(), Run: run.ID}
	for n := range run.Findings {
		if is := &run.Findings[n]; is.Finding != nil && is.Fingerprint() == top.Finding {
			s.About, s.Line = is.Finding, is.Finding.Line
		}
	}
	return h.app.record(ctx, run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil)
}

// Released implements incidents.Teller.
func (h incidentActions) Released(ctx context.Context, run int64, r rollout.Status) error {
	e := pipeline.Event{ID: fmt.Sprintf("deployment/%d/%s/%d", r.Deployment, r.State, r.Changed.UnixMicro()), Type: pipeline.EventRollout,
		Source: "forge", Data: pipeline.Data{Rollout: &r}}
	return h.app.record(ctx, run, []pipeline.Event{e}, nil)
}

// RollBack implements incidents.Actions.
func (h incidentActions) RollBack(ctx context.Context, full string, r incidents.Rollback) (incidents.Created, error) {
	repo, err := h.repo(ctx, full)
	if err != nil {
		return incidents.Created{}, err
	}
	id, err := h.github.Deploy(ctx, repo, github.Deploying{Environment: r.Environment, Commit: r.Commit, Task: production.TaskRollBack, After: r.After, Key: r.Key, Description: r.Why})
	return incidents.Created{Number: id}, err
}

// Revert implements incidents.Actions.
func (h incidentActions) Revert(ctx context.Context, full string, r incidents.Revert) (incidents.Created, error) {
	repo, err := h.repo(ctx, full)
	if err != nil {
		return incidents.Created{}, err
	}
	what, title := "commit "+text.Head(r.Commit, 10), "Revert commit "+text.Head(r.Commit, 10)
	branch := fmt.Sprintf("%s/revert-%s-incident-%d", h.app.slug, text.Head(r.Commit, 10), r.Incident)
	var pull github.MergedPull
	if r.Pull != 0 {
		if pull, err = h.github.MergedPull(ctx, repo, r.Pull); err != nil {
			return incidents.Created{}, err
		}
		what, title = fmt.Sprintf("pull request #%d", r.Pull), fmt.Sprintf("Revert %q", pull.Title)
		branch = fmt.Sprintf("%s/revert-%d-incident-%d", h.app.slug, r.Pull, r.Incident)
	}
	head, err := h.github.BranchHead(ctx, repo, branch)
	if err != nil {
		return incidents.Created{}, err
	}
	if head == "" {
		if err := h.pushRevert(ctx, full, r, pull, branch, title); err != nil {
			return incidents.Created{}, refusedFor(err)
		}
	}
	body := fmt.Sprintf("This takes back %s, from which incident %d may come:\n\n%s\nIt is what `git revert` makes of it, and nothing else. Nobody has looked at it yet.", what, r.Incident, r.Why)
	n, url, err := h.github.OpenDraft(ctx, repo, branch, title, body)
	return incidents.Created{Number: int64(n), URL: url}, err
}

// pushRevert makes the commit that takes something back, and pushes it.
func (h incidentActions) pushRevert(ctx context.Context, full string, r incidents.Revert, pull github.MergedPull, branch, title string) error {
	refs, to := []string{r.Commit}, r.Commit
	if r.Pull != 0 {
		refs, to = []string{fmt.Sprintf("refs/pull/%d/head", r.Pull), pull.SHA}, pull.SHA
	}
	main, err := h.repo(ctx, full)
	if err != nil {
		return err
	}
	repo, err := h.fetched(ctx, full, append(refs, main.DefaultBranch)...)
	if err != nil {
		return err
	}
	parent, err := h.gateway.Resolve(ctx, repo, repo.DefaultBranch)
	if err != nil {
		return err
	}
	from := ""
	if r.Pull != 0 {
		from, err = h.gateway.Landed(ctx, repo, pull.Head, to)
	} else {
		from, err = h.gateway.Landed(ctx, repo, to, to) // before it, on the main line
	}
	if err != nil {
		return err
	}
	who, err := h.app.GitHub.identity(ctx)
	if err != nil {
		return err
	}
	m, err := h.gateway.Revert(ctx, repo, from, to, workspace.CommitOptions{Parent: parent, Message: title + "\n\nThis reverts commit " + to + ".", Author: who.Name, Email: who.Email, Time: r.At})
	switch {
	case err != nil:
		return err
	case m.SHA == "":
		return refuse("it does not come out cleanly: %s changed since", text.Clip(strings.Join(m.Conflicts, ", "), 300))
	case m.SHA == parent:
		return refuse("it was taken back already")
	}
	token, err := h.github.Token(ctx, repo)
	if err != nil {
		return err
	}
	return h.gateway.Push(ctx, repo, token, workspace.PushOptions{Branch: branch, SHA: m.SHA, Base: parent})
}

// refusedFor makes a final fault of what rules of the remote refuse.
func refusedFor(err error) error {
	var rejected interface{ Rejected() string }
	if errors.As(err, &rejected) {
		return refuse("the repository's rules refuse it: %s", text.Clip(rejected.Rejected(), 300))
	}
	return err
}
