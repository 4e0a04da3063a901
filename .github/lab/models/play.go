package models

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/sandbox"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Play is what came of a task.
type Play struct {
	Model    string         `json:"model"`
	Form     string         `json:"form"`
	Task     string         `json:"task"`
	State    pipeline.State `json:"state"`
	Ended    string         `json:"ended"` // why, or what a person is asked
	Verified bool           `json:"verified"`
	Handed   bool           `json:"handed"` // its tests pass, and a person is asked to read it
	Hidden   bool           `json:"hidden"` // the hidden tests pass
	Lost     int            `json:"lost"`   // attempts that ended in a fault
	Calls    int            `json:"calls"`
	Tokens   int64          `json:"tokens"`
	MicroUSD int64          `json:"micro_usd"`
	Seconds  float64        `json:"seconds"`
}

// longest is how long a task may take.
const longest = 30 * time.Minute

// play works on a task as `forge run` does.
func (b *bench) play(ctx context.Context, model, form string, t task) (out Play, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	out = Play{Model: model, Form: form, Task: t.Name}
	dir, err := demo.TempDir()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repo := filepath.Join(dir, "repo")
	if err := commit(ctx, repo, t.Repo); err != nil {
		return out, err
	}
	cfg, stop, err := b.settings(dir, model, form, t)
	if err != nil {
		return out, err
	}
	defer stop()
	log := slog.New(slog.DiscardHandler)
	app, err := server.New(ctx, server.Options{Config: cfg, Log: log, Local: true, Worker: b.exe, OnEvents: func(_ *pipeline.Run, events []pipeline.Event) {
		for _, e := range events {
			if e.Type == pipeline.EventPhaseFailed {
				out.Lost++
			}
		}
	}})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	begun := time.Now()
	start, err := app.LocalStart(ctx, repo, "forge/"+t.Name, pipeline.Task{Title: t.Title, Body: t.Title + "\n" + t.Text, Author: server.OSUser()})
	if err != nil {
		return out, err
	}
	run, err := app.DB.CreateRun(ctx, "lab/"+t.Name, start, begun.UTC().Truncate(time.Microsecond), strings.Repeat("7", 32), nil)
	if err != nil {
		return out, err
	}
	if _, err := app.Drive(ctx, run.ID, func(string, ...any) {}); err != nil {
		return out, err
	}
	if run, err = app.DB.Load(ctx, run.ID); err != nil {
		return out, err
	}
	u := run.Total()
	out.State, out.Verified, out.Seconds = run.State, run.State == pipeline.StateVerified, time.Since(begun).Seconds()
	out.Calls, out.Tokens, out.MicroUSD = u.Calls, u.Input+u.Output, u.MicroUSD
	if out.Ended = run.Ended; run.Gate() != nil {
		out.Ended = run.Gate().Question
		out.Handed = run.Unread() && run.Current().Tests != nil && run.Current().Tests.OK()
	}
	out.Ended = text.Clip(text.OneLine(out.Ended), 300)
	out.Hidden, err = b.judge(ctx, filepath.Join(dir, "judge"), filepath.Join(repo, ".git"), run, t, log)
	return out, err
}

// settings are the program's, with a state directory of their own, for one model.
func (b *bench) settings(dir, model, form string, t task) (cfg settings.Config, stop func(), err error) {
	env := map[string]string{"FORGE_STATE_DIR": filepath.Join(dir, "state"), "FORGE_MODEL": model}
	stop = func() {}
	switch {
	case b.replay != "":
		if env["OPENAI_BASE_URL"], stop, err = replay(filepath.Join(b.replay, t.Name)); err != nil {
			return cfg, stop, err
		}
	case b.record != "":
		if env["OPENAI_BASE_URL"], stop, err = record(os.Getenv("OPENAI_BASE_URL"), filepath.Join(b.record, t.Name)); err != nil {
			return cfg, stop, err
		}
	}
	if cfg, err = settings.Server("", func(name string) string {
		if v, set := env[name]; set {
			return v
		}
		return os.Getenv(name)
	}); err != nil {
		stop()
		return cfg, func() {}, err
	}
	cfg.Reflection = false
	if form != "" {
		limits := maps.Clone(cfg.ModelLimits)
		if limits == nil {
			limits = map[string]settings.ModelLimits{}
		}
		l := limits[model]
		l.Form = form
		limits[model] = l
		cfg.ModelLimits = limits
	}
	return cfg, stop, nil
}

// judge runs the hidden tests on the work, in the sandbox.
func (b *bench) judge(ctx context.Context, dir, git string, run *pipeline.Run, t task, log *slog.Logger) (passed bool, err error) {
	head := run.Base // where nothing was published, nothing was done
	if out, err := exec.CommandContext(ctx, "git", "--git-dir", git, "rev-parse", "--verify", "--quiet", run.Branch+"^{commit}").Output(); err == nil {
		head = strings.TrimSpace(string(out))
	}
	spaces, err := sandbox.New(sandbox.Options{Dir: dir, Exe: b.exe, Log: log, Shown: []string{git}})
	if err != nil {
		return false, err
	}
	ws, err := spaces.Open(ctx, workspace.OpenOptions{Name: t.Name, GitDir: git, Commit: head, Cache: t.Name})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ws.Close()) }()
	for _, file := range slices.Sorted(maps.Keys(t.Hidden)) {
		if err := ws.Write(ctx, file, []byte(t.Hidden[file])); err != nil {
			return false, err
		}
	}
	cfg, err := settings.Repository(t.Name, []byte(t.Repo[".github/forge.yml"]), config.Default())
	if err != nil {
		return false, err
	}
	report, err := check.Run(ctx, ws, check.Options{Config: cfg.Tests, Head: head, Log: log, Clock: time.Now})
	return err == nil && report.OK() && len(report.Before) == 0, err
}

// commit makes a repository of files.
func commit(ctx context.Context, dir string, files map[string]string) error {
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=lab", "-c", "user.email=lab@example.com", "commit", "--quiet", "--message=Start"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
