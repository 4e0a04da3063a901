package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/text"
)

func demoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole loop on this machine: no account, no key, no network", Args: noArgs,
		Long: "Starts a GitHub and Forge on this machine, opens an issue, labels it, and shows what\n" +
			"happens: plan, draft pull request, review findings, a failing test, two rounds of\n" +
			"rework, verification. Everything but the model is real; the model is a tape.",
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave everything running, so that you can look at the pages and click, until interrupted")
	return cmd
}

// runDemo runs the demo from start to end.
func runDemo(cmd *cobra.Command, keep bool) (err error) {
	ctx := cmd.Context()
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	d.links = true
	dir, err := demo.TempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	logFile, err := os.Create(filepath.Join(dir, "forge.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	log := slog.New(slog.NewTextHandler(logFile, nil))
	if v, _ := cmd.Flags().GetBool("verbose"); v {
		log = logger(cmd)
	}

	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest(), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	issue, err := demo.Repository(gh)
	if err != nil {
		return err
	}
	ended := make(chan *pipeline.Run, 1)
	s, err := startDemoServer(ctx, d, dir, gh, log, func(run *pipeline.Run) {
		select {
		case ended <- run:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.DrainTime)
		defer cancel()
		err = errors.Join(err, s.Stop(stop))
	}()
	gh.SetHook(s.URL + "/webhook")
	d.say("The first test run compiles Go's standard library for the demo's own cache: up to a minute.")
	d.say("%8s  %-10s  issue #%d is opened and labelled: %s/acme/cart/issues/%d\n", "", "github", issue, gh.URL, issue)
	if err := gh.As("acme").Label("acme/cart", issue, "forge"); err != nil {
		return err
	}
	var id int64
	select {
	case run := <-ended:
		d.done()
		if err := demoSummary(ctx, d, s, gh, run.ID); err != nil {
			return err
		}
		id = run.ID
	case <-ctx.Done():
		return ctx.Err()
	}
	if keep {
		d.say("\nForge's pages %s/runs/%d", s.PagesURL, id)
		d.say("Everything keeps running; press Ctrl-C to end.")
		<-ctx.Done()
	}
	return nil
}

// startDemoServer starts the real server against the local GitHub. The repository
// is the demo's own, so a machine without bubblewrap may run its tests without.
func startDemoServer(ctx context.Context, d *display, dir string, gh *githubtest.Server, log *slog.Logger, onEnd func(*pipeline.Run)) (*server.Server, error) {
	env, err := demo.Environment(gh, dir, demo.Tape())
	if err != nil {
		return nil, err
	}
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		return nil, err
	}
	o := server.Options{Config: cfg, Log: log, OnEvents: func(run *pipeline.Run, events []pipeline.Event) {
		d.onEvents(run, events)
		if run.State != pipeline.StateRunning && run.Published.Rev >= run.Rev {
			onEnd(run)
		}
	}}
	d.say("Forge %s: a GitHub at %s, the model is a tape written by hand.", server.Version(), gh.URL)
	if err := server.Sandbox(o).Check(ctx); err != nil {
		o.Config.UnsafeNoSandbox = true
		d.say("No sandbox here (%s): the demo runs its own repository's tests without one.", text.Clip(text.FirstLine(err.Error()), 100))
	}
	return server.Listen(ctx, o)
}

// demoSummary says what came of it, and fails unless the run was verified.
func demoSummary(ctx context.Context, d *display, s *server.Server, gh *githubtest.Server, id int64) error {
	run, err := s.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	events, err := s.DB.Events(ctx, id, 0)
	if err != nil {
		return err
	}
	d.say("\n%s", run.Summary())
	d.say("%d iterations, %d bounces, %d events, %d GitHub calls, %d model calls.", len(run.Iterations), len(run.Bounces), len(events), run.Published.Calls, run.Usage.Calls)
	if p := run.Published.Pull; p != nil {
		d.say("pull request  %s", p.URL)
	}
	d.say("issue         %s", run.Task.URL)
	if run.State != pipeline.StateVerified {
		return fmt.Errorf("the demo's run ended as %s: %s", run.State, run.Summary())
	}
	return nil
}
