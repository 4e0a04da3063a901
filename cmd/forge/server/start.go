package server

import (
	"context"
	"path/filepath"

	"forge/cmd/forge/settings"
	"forge/pipeline"
)

// IssueStart is what a run on an issue starts with, as the App sees it.
func (a *App) IssueStart(ctx context.Context, owner, name string, issue int, by pipeline.Actor) (pipeline.Start, error) {
	app := a.github.app
	inst, err := app.FindInstallation(ctx, owner, name)
	if err != nil {
		return pipeline.Start{}, err
	}
	repo, err := app.Repo(ctx, inst, owner, name)
	if err != nil {
		return pipeline.Start{}, err
	}
	task, err := app.Issue(ctx, repo, issue)
	if err != nil {
		return pipeline.Start{}, err
	}
	return a.github.Prepare(ctx, pipeline.Notice{Kind: pipeline.NoticeStart, Repo: repo, Actor: by, Task: task, Issue: issue})
}

// LocalStart is what a run on the local repository in dir starts with: its commit, and
// the settings as they are in it.
func (a *App) LocalStart(ctx context.Context, dir, branch string, task pipeline.Task) (pipeline.Start, error) {
	repo := pipeline.Repo{Name: filepath.Base(dir), CloneURL: dir, DefaultBranch: "HEAD"}
	if err := a.Gateway.Fetch(ctx, repo, "", "HEAD"); err != nil {
		return pipeline.Start{}, err
	}
	base, err := a.Gateway.Resolve(ctx, repo, "HEAD")
	if err != nil {
		return pipeline.Start{}, err
	}
	raw, err := a.Gateway.File(ctx, repo, base, configPath)
	if err != nil {
		raw = nil // there is none
	}
	cfg, err := settings.Repository(configPath, raw, a.base)
	if err != nil {
		return pipeline.Start{}, err
	}
	return pipeline.Start{Repo: repo, By: task.Author, Config: cfg, Base: base, Task: task, Branch: branch}, nil
}

// Ended does what is to be done after a run that was driven to its end right here.
func (a *App) Ended(ctx context.Context, run int64) {
	if err := a.Learner.RunEnded(ctx, run); err != nil {
		a.log.WarnContext(ctx, "look back at a run", "run", run, "error", err)
	}
}
