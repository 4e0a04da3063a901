package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

func demoCommand() *cobra.Command {
	var keep, modules bool
	var model, base string
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole loop on this machine: no account, no key, no network", Args: shell.NoArgs,
		Long: "Starts a GitHub and Forge on this machine, opens an issue, labels it, and shows what\n" +
			"happens: plan, draft pull request, review findings, a failing test, two rounds of\n" +
			"rework, verification. Everything but the model is real; the model is a tape.\n" +
			"With --modules, a feature is split into three modules that are built at the same time;\n" +
			"one of them asks, and the demo answers as the maintainer.\n" +
			"With --model, a model of your own works on the same issue; its key is taken from\n" +
			"OPENAI_API_KEY or ANTHROPIC_API_KEY.",
		Example: "  forge demo\n  forge demo --model anthropic/MODEL\n  forge demo --model openai/MODEL --model-url http://127.0.0.1:8080/v1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			story := demo.Loop
			switch {
			case model != "":
				story = demo.Own
			case modules:
				story = demo.Modules
			}
			return runDemo(cmd, story, ownModel{name: model, url: base}, keep)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "provider/model that works in place of the tape")
	cmd.Flags().StringVar(&base, "model-url", "", "the address of its OpenAI-compatible server (OPENAI_BASE_URL)")
	cmd.Flags().BoolVar(&modules, "modules", false, "show a feature that is built by several modules at the same time")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave everything running, so that you can look at the pages and click, until interrupted")
	cmd.MarkFlagsMutuallyExclusive("model", "modules")
	return cmd
}

// runDemo runs the demo from start to end.
func runDemo(cmd *cobra.Command, story demo.Story, own ownModel, keep bool) (err error) {
	ctx := cmd.Context()
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	if err := own.prepare(ctx, shell.Getenv(cmd)); err != nil {
		return err
	}
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
	s, err := startDemoServer(ctx, d, dir, gh, story.Tape(), own, log, func(run *pipeline.Run) {
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
		err, id = demoSummary(ctx, d, s, run.ID), run.ID
	case <-ctx.Done():
		return ctx.Err()
	}
	if keep {
		d.say("\nForge's pages %s", access.Entry(fmt.Sprintf("%s/runs/%d", s.PagesURL, id), s.PagesKey))
		d.say("Everything keeps running; press Ctrl-C to end.")
		<-ctx.Done()
	}
	return err
}

// ownModel is a model that works in the demo in place of the tape.
type ownModel struct {
	name, url string // "" of the name: the tape
	getenv    func(string) string
	able      agent.Ability
}

// prepare tries the model once, before anything is started.
func (m *ownModel) prepare(ctx context.Context, getenv func(string) string) error {
	if m.name == "" {
		if m.url != "" {
			return errors.New("--model-url is the address of a model's server: name the model with --model openai/MODEL")
		}
		return nil
	}
	m.getenv = func(k string) string {
		switch {
		case k == "FORGE_MODEL":
			return m.name
		case k == "OPENAI_BASE_URL" && m.url != "":
			return m.url
		case k == "FORGE_MODEL_PATIENCE": // somebody sits at it
			return "1m"
		case slices.ContainsFunc(agent.ProviderNames, func(p string) bool { return strings.HasPrefix(k, strings.ToUpper(p)+"_") }), k == "FORGE_MODEL_TIMEOUT":
			return getenv(k)
		}
		return ""
	}
	cfg, err := settings.Server("", m.getenv)
	if err == nil {
		m.able, err = agent.Probe(ctx, m.name, agent.Limits{}, cfg.Credentials())
	}
	if err != nil {
		return fmt.Errorf("try %s: %w\nName its server with --model-url http://HOST/v1, or OPENAI_BASE_URL; its key is taken from OPENAI_API_KEY or ANTHROPIC_API_KEY", m.name, err)
	}
	return nil
}

// startDemoServer starts the real server against the local GitHub. The repository
// is the demo's own, so a machine without bubblewrap may run its tests without, and
// a system other than Linux is not asked for a sandbox.
func startDemoServer(ctx context.Context, d *display, dir string, gh *githubtest.Server, tape []byte, own ownModel, log *slog.Logger,
	onEnd func(*pipeline.Run)) (*server.Server, error) {
	env, err := demo.Environment(gh, dir, tape)
	if err != nil {
		return nil, err
	}
	with := "a tape written by hand"
	if own.name != "" {
		delete(env, "FORGE_MODEL")
		with = own.name + ": it " + own.able.String()
	} else {
		own.getenv = func(string) string { return "" }
	}
	cfg, err := settings.Server("", func(k string) string { return cmp.Or(env[k], own.getenv(k)) })
	if err != nil {
		return nil, err
	}
	if own.name != "" {
		cfg.ModelLimits = map[string]settings.ModelLimits{own.name: {Form: own.able.Form}}
	}
	o := server.Options{Config: cfg, Log: log, Attended: own.name != "", OnEvents: func(run *pipeline.Run, events []pipeline.Event) {
		d.onEvents(run, events)
		if run.State != pipeline.StateRunning && run.Published.Rev >= run.Rev {
			onEnd(run)
		}
	}}
	d.say("Forge %s: a GitHub at %s, the model is %s.", server.Version(), gh.URL, with)
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

// demoSummary says what came of it, and fails unless that is verified, or waits for a person to read it.
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
	if g := run.Gate(); g != nil && g.Guard != nil && g.Guard.Name == pipeline.GuardHuman {
		d.say("The rest is a person's: on GitHub, who has read the change says so with a comment `/forge approve`.")
		return nil
	}
	if run.State != pipeline.StateVerified {
		return fmt.Errorf("the demo's run ended as %s: %s", run.State, run.Summary())
	}
	return nil
}
