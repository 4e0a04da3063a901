package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

func demoCommand() *cobra.Command {
	var keep, modules bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole loop on this machine: no account, no key, no network", Args: shell.NoArgs,
		Long: "Starts a GitHub and Forge on this machine, opens an issue, labels it, and shows what\n" +
			"happens: plan, draft pull request, review findings, a failing test, two rounds of\n" +
			"rework, verification. Everything but the model is real; the model is a tape.\n" +
			"With --modules, a feature is split into three modules that are built at the same time;\n" +
			"one of them asks, and the demo answers as the maintainer.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			story := demo.Loop
			if modules {
				story = demo.Modules
			}
			return runDemo(cmd, story, keep)
		},
	}
	cmd.Flags().BoolVar(&modules, "modules", false, "show a feature that is built by several modules at the same time")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave everything running, so that you can look at the pages and click, until interrupted")
	return cmd
}

// runDemo runs the demo from start to end.
func runDemo(cmd *cobra.Command, story demo.Story, keep bool) (err error) {
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
		log = shell.Logger(cmd)
	}

	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest(), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	issue, err := story.Repository(gh)
	if err != nil {
		return err
	}
	ended := make(chan *pipeline.Run, 1)
	var asked sync.Map
	s, err := startDemoServer(ctx, d, dir, gh, story.Tape(), log, func(run *pipeline.Run) {
		if of := run.Part; of != nil {
			if _, before := asked.LoadOrStore(run.ID, true); !before && run.Gate() != nil {
				go answerDemo(d, gh, issue, of.Module.ID, story.Answers[of.Module.ID])
			}
			return
		}
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
		if err := demoSummary(ctx, d, s, run.ID); err != nil {
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
// is the demo's own, so a machine without bubblewrap may run its tests without, and
// a system other than Linux is not asked for a sandbox.
func startDemoServer(ctx context.Context, d *display, dir string, gh *githubtest.Server, tape []byte, log *slog.Logger,
	onEnd func(*pipeline.Run)) (*server.Server, error) {
	env, err := demo.Environment(gh, dir, tape)
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
	if why := whyBare(runtime.GOOS, func() error { return server.Sandbox(o).Check(ctx) }); why != "" {
		o.Config.UnsafeNoSandbox = true
		d.say("No sandbox here (%s): the demo runs its own repository's tests without one.", why)
	}
	return server.Listen(ctx, o)
}

// whyBare says why commands run without a sandbox; "" where there is one.
func whyBare(system string, try func() error) string {
	if system != "linux" {
		return "only Linux has what it is made of"
	}
	if err := try(); err != nil {
		return text.Clip(text.FirstLine(err.Error()), 100)
	}
	return ""
}

// answerDemo says to a module's question what a maintainer would, as a comment.
func answerDemo(d *display, gh *githubtest.Server, issue int, module, words string) {
	said := command.Write("", module+" "+words)
	d.say("%8s  %-10s  acme answers in the issue: %s", "", "human", said)
	if _, err := gh.As("acme").Comment("acme/cart", issue, said); err != nil {
		d.say("The answer could not be given: %v", err)
	}
}

// demoSummary says what came of it, and fails unless the run was verified.
func demoSummary(ctx context.Context, d *display, s *server.Server, id int64) error {
	run, err := s.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	events, err := s.DB.Events(ctx, id, 0)
	if err != nil {
		return err
	}
	d.say("\n%s", run.Summary())
	d.say("%d iterations, %d bounces, %d events, %d GitHub calls, %d model calls.", len(run.Iterations), len(run.Bounces), len(events),
		run.Published.Calls, run.Usage.Calls)
	for i := range run.Parts {
		p := &run.Parts[i]
		d.say("module %-10s run %d, merged at %.7s; %s", p.ID, p.Run, p.Merged, p.Tests)
	}
	if p := run.Published.Pull; p != nil {
		d.say("pull request  %s", p.URL)
	}
	d.say("issue         %s", run.Task.URL)
	if run.State != pipeline.StateVerified {
		return fmt.Errorf("the demo's run ended as %s: %s", run.State, run.Summary())
	}
	return nil
}
