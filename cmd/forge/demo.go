package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
)

// demoFiles are the demo's repository, its issue, and the tape that stands in for
// the model. app.yml is the App's manifest; a test holds it equal to the one at
// the top of the tree, which go:embed cannot reach.
//
//go:embed demo/repo.txtar demo/issue.md demo/tape.txtar app.yml
var demoFiles embed.FS

func embedded(name string) []byte {
	data, err := demoFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return data
}

func demoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole loop on this machine: no account, no key, no network", Args: noArgs,
		Long: "Starts a GitHub and Forge on this machine, opens an issue, labels it, and shows what\n" +
			"happens: plan, draft pull request, review findings, a failing test, two rounds of\n" +
			"rework, verification. Everything but the model is real; the model is a tape.",
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd, keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave everything running, so that you can look at the pages and click, until interrupted")
	return cmd
}

// demo runs the demo from start to end.
func demo(cmd *cobra.Command, keep bool) (err error) {
	ctx := cmd.Context()
	d := newDisplay(cmd.OutOrStdout(), time.Now())
	d.links = true
	dir, err := tempDir()
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

	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: embedded("app.yml"), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	issue, err := demoRepository(gh)
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
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		err = errors.Join(err, s.stop(stop))
	}()
	gh.SetHook(s.url + "/webhook")
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
		d.say("\nForge's pages %s/runs/%d", s.pagesURL, id)
		d.say("Everything keeps running; press Ctrl-C to end.")
		<-ctx.Done()
	}
	return nil
}

// tempDir makes a directory that the worker's user may pass through but not read.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "forge-demo-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}

// demoRepository puts the demo's repository on the local GitHub and opens its issue.
func demoRepository(gh *githubtest.Server) (issue int, err error) {
	files := map[string]string{}
	for _, f := range txtar.Parse(embedded("demo/repo.txtar")).Files {
		files[f.Name] = string(f.Data)
	}
	repo, err := gh.AddRepo("acme", "cart", files)
	if err != nil {
		return 0, err
	}
	if _, err := gh.Install(repo); err != nil {
		return 0, err
	}
	title, body, _ := strings.Cut(string(embedded("demo/issue.md")), "\n")
	return gh.As("acme").OpenIssue(repo, title, strings.TrimSpace(body))
}

// startDemoServer starts the real server against the local GitHub. The repository
// is the demo's own, so a machine without bubblewrap may run its tests without.
func startDemoServer(ctx context.Context, d *display, dir string, gh *githubtest.Server, log *slog.Logger, onEnd func(*pipeline.Run)) (*server, error) {
	env, err := labEnv(gh, dir, embedded("demo/tape.txtar"))
	if err != nil {
		return nil, err
	}
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		return nil, err
	}
	o := wireOptions{config: cfg, log: log, onEvents: func(run *pipeline.Run, events []pipeline.Event) {
		d.onEvents(run, events)
		if run.State != pipeline.StateRunning && run.Published.Rev >= run.Rev {
			onEnd(run)
		}
	}}
	d.say("Forge %s: a GitHub at %s, the model is a tape written by hand.", version(), gh.URL)
	if err := probeSandbox(ctx, o); err != nil {
		o.config.UnsafeNoSandbox = true
		d.say("No sandbox here (%s): the demo runs its own repository's tests without one.", firstLine(err.Error()))
	}
	return startServer(ctx, o)
}

// demoSummary says what came of it, and fails unless the run was verified.
func demoSummary(ctx context.Context, d *display, s *server, gh *githubtest.Server, id int64) error {
	run, err := s.db.Load(ctx, id)
	if err != nil {
		return err
	}
	events, err := s.db.Events(ctx, id, 0)
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
