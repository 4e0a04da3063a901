package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/track"
)

// IssueStart is what a run on an issue starts with, as the App sees it.
func (a *App) IssueStart(ctx context.Context, owner, name string, issue int, by pipeline.Actor) (pipeline.Start, error) {
	app := a.GitHub.App
	inst, err := app.FindInstallation(ctx, owner, name)
	if err != nil {
		return pipeline.Start{}, err
	}
	repo, err := app.Repo(ctx, inst, owner, name)
	if err != nil {
		return pipeline.Start{}, err
	}
	task, labels, err := app.Issue(ctx, repo, issue)
	if err != nil {
		return pipeline.Start{}, err
	}
	return a.GitHub.Prepare(ctx, pipeline.Notice{Kind: pipeline.NoticeStart, Repo: repo, Actor: by, Task: task, Labels: labels, Issue: issue})
}

// LocalStart is what a run on the local repository in dir starts with: its commit, and
// the settings as they are in it.
func (a *App) LocalStart(ctx context.Context, dir, branch string, task pipeline.Task) (pipeline.Start, error) {
	repo := pipeline.Repo{Name: filepath.Base(dir), CloneURL: dir, DefaultBranch: "HEAD"}
	if err := gitRepository(dir); err != nil {
		return pipeline.Start{}, err
	}
	err := a.Gateway.Fetch(ctx, repo, "", "HEAD")
	if err != nil {
		help := ""
		if strings.Contains(err.Error(), "couldn't find remote ref HEAD") {
			help = "\nAn empty repository needs a first commit: git -C " + dir + " commit --allow-empty -m Start"
		}
		return pipeline.Start{}, fmt.Errorf("read the commit that is checked out in %s: %w%s", dir, err, help)
	}
	if repo.DefaultBranch, err = localBranch(ctx, a.Gateway, repo); err != nil {
		return pipeline.Start{}, err
	}
	base, err := a.Gateway.Resolve(ctx, repo, "HEAD")
	if err != nil {
		return pipeline.Start{}, err
	}
	raw, err := a.Gateway.File(ctx, repo, base, configPath)
	if err != nil {
		raw = nil // there is none
		if _, err := a.Gateway.File(ctx, repo, base, misnamedPath); err == nil {
			return pipeline.Start{}, fmt.Errorf("the settings are in %s, which is not read: rename it to %s, and commit that", misnamedPath, configPath)
		}
	}
	cfg, err := settings.Repository(configPath, raw, a.base)
	if err != nil {
		return pipeline.Start{}, err
	}
	files := func() ([]string, error) { return a.Gateway.Files(ctx, repo, base) }
	chosen, err := track.Choose(track.Track(cfg.Track), "", task.Title, task.Body, files)
	if err != nil {
		return pipeline.Start{}, err
	}
	start := pipeline.Start{Repo: repo, By: task.Author, Config: cfg, Base: base, Task: task, Branch: branch, Slug: keptSlug(a.slug), Track: chosen}
	return start, fit(&start, files)
}

// fit gives a small task a share of its limits, where the settings want that.
func fit(start *pipeline.Start, files func() ([]string, error)) error {
	cfg := &start.Config
	if !cfg.Limits.Adapt {
		return nil
	}
	tree, err := files()
	if err != nil {
		return err
	}
	f := track.FitOf(start.Task.Title, start.Task.Body, tree)
	start.Fit = f
	cfg.Limits.CostUSD = float64(f.Of(int64(cfg.Limits.CostUSD*1e6))) / 1e6
	cfg.Limits.Tokens, cfg.Limits.WallMinutes = f.Of(cfg.Limits.Tokens), int(f.Of(int64(cfg.Limits.WallMinutes)))
	cfg.Loop.MaxIterations = min(cfg.Loop.MaxIterations, max(2, int(f.Of(int64(cfg.Loop.MaxIterations)))))
	return nil
}

// gitRepository says in plain words what is wrong with a folder that work is to be done in.
func gitRepository(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("open the repository: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file; name the folder of a git repository", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil { // a bare one
		return nil
	}
	return fmt.Errorf("%s is not the top folder of a git repository: there is no .git in it. Make one with git init and a first commit, or name another with --repo", dir)
}

// Ended does what is to be done after a run that was driven to its end right here.
func (a *App) Ended(ctx context.Context, run int64) {
	if err := a.Learner.RunEnded(ctx, run); err != nil {
		a.log.WarnContext(ctx, "look back at a run", "run", run, "error", err)
	}
}
