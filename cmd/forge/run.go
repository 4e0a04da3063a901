package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

func runCommand() *cobra.Command {
	var repo, model string
	cmd := &cobra.Command{
		Use:   "run ISSUE-URL | TASK…",
		Short: "Work on an issue, or on a task in words in a local git repository",
		Example: "  forge run https://github.com/acme/shop/issues/12\n" +
			"  forge run --repo ./shop \"Sum must not overflow: return an error instead\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return shell.Usage("run takes an issue's URL, or a task in words: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			task := strings.Join(args, " ")
			if owner, name, n, ok := issueURL(task); ok {
				return runIssue(cmd, owner, name, n)
			}
			return runLocal(cmd, repo, model, task)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", ".", "the local git repository that a task in words is about")
	cmd.Flags().StringVar(&model, "model", "", "the model, as PROVIDER/MODEL, instead of the configured one")
	return cmd
}

// issueURL takes https://HOST/OWNER/NAME/issues/N apart.
func issueURL(s string) (owner, name string, n int, ok bool) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return "", "", 0, false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 4 || parts[2] != "issues" {
		return "", "", 0, false
	}
	n, err = strconv.Atoi(parts[3])
	return parts[0], parts[1], n, err == nil && n > 0
}

// runIssue works on an issue right here, as the App, without a webhook.
func runIssue(cmd *cobra.Command, owner, name string, n int) error {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	if err := cfg.Ready(); err != nil {
		return shell.Usage("%w", err)
	}
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	d.links = true
	ctx := cmd.Context()
	a, err := server.New(ctx, wired(ctx, server.Options{Config: cfg, Log: log, OnEvents: d.onEvents}))
	if err != nil {
		return err
	}
	defer a.Close()
	start, err := a.IssueStart(ctx, owner, name, n, server.OSUser())
	if err != nil {
		return err
	}
	return createAndDrive(ctx, a, d, cfg, start)
}

// runLocal works on a task in words. The branch that comes of it is put into the
// repository; nothing else in it is touched.
func runLocal(cmd *cobra.Command, dir, model, words string) error {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	if model != "" {
		cfg.Run.Models = map[config.Role]string{"": model}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", dir, err)
	}
	if _, err := os.Stat(abs); err != nil {
		return shell.Usage("--repo: %w", err)
	}
	ctx := cmd.Context()
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	a, err := server.New(ctx, wired(ctx, server.Options{Config: cfg, Log: log, Local: true, OnEvents: d.onEvents}))
	if err != nil {
		return err
	}
	defer a.Close()
	title, _, _ := strings.Cut(words, "\n")
	task := pipeline.Task{Title: text.Clip(text.FirstLine(title), 100), Body: words, Author: server.OSUser()}
	branch := fmt.Sprintf("%s/%s-%s", cfg.Slug, text.Slug(title, 40), time.Now().Format("20060102-150405"))
	start, err := a.LocalStart(ctx, abs, branch, task)
	if err != nil {
		return err
	}
	return createAndDrive(ctx, a, d, cfg, start)
}

// wiring is the key of a context's func(*server.Options), by which tests change what a
// command starts.
type wiring struct{}

func wired(ctx context.Context, o server.Options) server.Options {
	if change, ok := ctx.Value(wiring{}).(func(*server.Options)); ok {
		change(&o)
	}
	return o
}

// createAndDrive makes the run, unless its models cannot be used, and carries it on.
func createAndDrive(ctx context.Context, a *server.App, d *display, cfg settings.Config, start pipeline.Start) error {
	if len(start.Config.Models) > 0 {
		cfg.Run.Models = start.Config.Models
	}
	if err := server.Models(cfg).Check(ctx); err != nil {
		return fmt.Errorf("no run was made: %s", plain(err))
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	run, err := a.DB.CreateRun(ctx, fmt.Sprintf("cli/%d", now.UnixNano()), start, now, trace(), nil)
	if err != nil {
		return err
	}
	events, err := a.DB.Events(ctx, run.ID, 0)
	if err != nil {
		return err
	}
	d.onEvents(run, events)
	return drive(ctx, a, d, run.ID)
}

// plain leaves out what a fault says for programs.
func plain(err error) string {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range all.Unwrap() {
			lines = append(lines, plain(e))
		}
		return strings.Join(lines, "\n")
	}
	var f *pipeline.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// drive carries the run on until it ends or waits.
func drive(ctx context.Context, a *server.App, d *display, id int64) error {
	elsewhere, err := a.Drive(ctx, id, d.say)
	d.done()
	if ctx.Err() != nil {
		d.say("Interrupted; nothing is lost. Go on with `forge resume %d`.", id)
		return &shell.ExitError{Code: shell.Failed}
	}
	if err != nil || elsewhere {
		return err
	}
	run, err := a.DB.Load(context.WithoutCancel(ctx), id)
	if err != nil {
		return err
	}
	if run.Part != nil { // the one that planned it went on, too
		id = run.Part.Run
		if run, err = a.DB.Load(context.WithoutCancel(ctx), id); err != nil {
			return err
		}
	}
	if run.State.Ended() {
		a.Ended(ctx, id)
	}
	d.say("\n%s", summary(run))
	if run.State.Ended() && run.Repo.ID == 0 && run.BaseHead != "" && run.BaseHead != run.Base {
		d.say("%s has moved on to %.7s since: that is not in it.", run.Repo.DefaultBranch, run.BaseHead)
	}
	for _, kept := range keptLater(run) {
		d.say("%s", kept)
	}
	for _, line := range waitingParts(run) {
		d.say("%s", line)
	}
	switch {
	case run.State == pipeline.StateVerified || run.State == pipeline.StateAccepted:
		d.say("The work is on the branch %s (%.12s).", run.Branch, run.Head)
		return nil
	case run.State.Ended():
		return &shell.ExitError{Code: shell.Failed}
	}
	if run.Gate() != nil {
		d.say("Answer with `forge answer %d CHOICE`.", id)
	}
	return &shell.ExitError{Code: shell.Waiting}
}

// keptLater says of modules that are left for later where they stay: a run that is not on
// GitHub opens no issues.
func keptLater(run *pipeline.Run) (out []string) {
	if run.Repo.ID != 0 {
		return nil
	}
	for i := range run.Parts {
		p := &run.Parts[i]
		if p.Left == "" || p.How != module.Later {
			continue
		}
		work := "there is no work of it yet"
		if p.Head != p.Base {
			work = "its work is on the branch " + p.Branch
		}
		why := "(" + p.Left + ")"
		if p.By != "" {
			why = "by " + p.By
		}
		out = append(out, fmt.Sprintf("The module %s is left for later %s. No issue is opened for it here: %s; `forge show %d` has its report.", p.ID, why, work, p.Run))
	}
	return out
}

// resumeCommand goes on with a run that was stopped, or whose command was interrupted.
func resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume RUN[/MODULE]", Short: "Go on with a run that was stopped or interrupted", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, part, err := runOrModule(args[0])
			if err != nil {
				return err
			}
			var run *pipeline.Run
			if err := shell.WithStore(cmd, func(db *store.DB) error { run, err = loadRunOrPart(cmd.Context(), db, id, part); return err }); err != nil {
				return err
			}
			id = run.ID
			if run.State == pipeline.StateVerified { // another review and test are paid for: they are asked for by name
				fmt.Fprintf(cmd.OutOrStdout(), "Run %d is verified: %s. There is nothing to resume; `forge answer %d continue` has it reviewed and tested again.\n", id, run.Ended, id)
				return nil
			}
			if run.State != pipeline.StateRunning {
				return answer(cmd, id, command.Line{Name: "resume"})
			}
			if run.Repo.ID == 0 {
				return driveLocal(cmd, id)
			}
			return driveIssue(cmd, id)
		},
	}
}

// driveIssue goes on with a run on an issue right here, unless a server does.
func driveIssue(cmd *cobra.Command, id int64) error {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	if err := cfg.Ready(); err != nil {
		return shell.Usage("%w", err)
	}
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	d.links = true
	a, err := server.New(cmd.Context(), wired(cmd.Context(), server.Options{Config: cfg, Log: log, OnEvents: d.onEvents}))
	if err != nil {
		return err
	}
	defer a.Close()
	return drive(cmd.Context(), a, d, id)
}

// driveLocal goes on with a run on a local repository after an answer.
func driveLocal(cmd *cobra.Command, id int64) error {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	a, err := server.New(cmd.Context(), wired(cmd.Context(), server.Options{Config: cfg, Log: log, Local: true, OnEvents: d.onEvents}))
	if err != nil {
		return err
	}
	defer a.Close()
	return drive(cmd.Context(), a, d, id)
}

// trace makes a run's trace id: 32 hex digits.
func trace() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
