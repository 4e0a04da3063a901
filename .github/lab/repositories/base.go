package repositories

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"forge/cmd/forge/phase"
	"forge/cmd/forge/settings"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
)

// tester sets commits up and runs their tests, without a run.
type tester struct {
	x  *phase.Executor
	at map[string]string // clones with commits of the laboratory, by project
}

func (p *player) tester() (*tester, error) {
	log := slog.New(slog.DiscardHandler)
	limits := sandbox.DefaultLimits()
	limits.Memory, limits.TreeFiles, limits.Wall, limits.CPU = 6<<30, 300_000, 20*time.Minute, 40*time.Minute
	spaces, err := sandbox.New(sandbox.Options{Dir: p.spaces(), Exe: p.exe, Log: log, Toolchains: p.toolchains, Limits: limits})
	if err != nil {
		return nil, err
	}
	gateway, err := registry.New(registry.Options{Dir: filepath.Join(p.state, "registries"), Registries: registry.Defaults(), Log: log})
	if err != nil {
		return nil, err
	}
	git, err := sandbox.NewGateway(sandbox.GatewayOptions{Dir: filepath.Join(p.state, "mirrors"), AllowLocal: true, Log: log})
	if err != nil {
		return nil, err
	}
	return &tester{at: map[string]string{}, x: phase.New(phase.Options{Spaces: spaces, Gateway: git, Log: log, Now: time.Now, TestTimeout: 20 * time.Minute,
		Token: func(context.Context, pipeline.Repo) (string, error) { return "", nil },
		Dependencies: phase.Dependencies{Compile: true, Toolchains: p.toolchains, Registries: func(context.Context) (*registry.Gateway, string, error) {
			return gateway, "sum.golang.org", nil
		}}})}, nil
}

// failing are the tests that fail when a commit is made on what was before it, and how many pass.
func (t *tester) failing(ctx context.Context, dir, clone string, id int64, c commit) (failed map[string]bool, passed int, err error) {
	at := t.at[clone]
	if at == "" {
		at = filepath.Join(dir, "clones", project(clone))
		if err := os.RemoveAll(at); err != nil { // of another time
			return nil, 0, err
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, 0, err
		}
		if _, err := git(ctx, clone, "clone", "--quiet", "--no-checkout", clone, at); err != nil {
			return nil, 0, err
		}
		t.at[clone] = at
	}
	if _, err := git(ctx, at, "checkout", "--quiet", "--force", "--detach", c.SHA+"^"); err != nil {
		return nil, 0, err
	}
	for name, text := range c.Change {
		file := filepath.Join(at, filepath.FromSlash(name))
		if text == nil {
			err = os.Remove(file)
		} else if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, []byte(*text), 0o644)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	if _, err := git(ctx, at, "add", "--all", "--force"); err != nil {
		return nil, 0, err
	}
	if _, err := git(ctx, at, "-c", "user.name=lab", "-c", "user.email=lab@localhost", "commit", "--quiet", "--allow-empty", "--no-verify", "--message", c.Subject); err != nil {
		return nil, 0, err
	}
	head, err := gitOutput(ctx, at, "rev-parse", "HEAD")
	if err != nil {
		return nil, 0, err
	}
	cfg, err := settingsOf(ctx, at)
	if err != nil {
		return nil, 0, err
	}
	report, err := t.x.TryTests(ctx, pipeline.Repo{ID: id, Owner: "acme", Name: project(clone), CloneURL: at}, head, cfg)
	if err != nil {
		return nil, 0, ctx.Err() // it cannot be tested: no test sees anything
	}
	failed = map[string]bool{}
	for _, f := range report.Failures {
		failed[f.Test] = true
	}
	return failed, report.Passed, nil
}

// settingsOf are what a clone's newest commit says, else the defaults.
func settingsOf(ctx context.Context, clone string) (config.Config, error) {
	const name = ".github/forge.yml"
	raw, err := git(ctx, clone, "show", "HEAD:"+name)
	if err != nil {
		return config.Default(), ctx.Err() // there is none
	}
	return settings.Repository(name, raw, config.Default())
}

// base sets a clone's newest commit up and runs its tests as they stand, twice: the second
// time finds what the first has left.
func (t *tester) base(ctx context.Context, clone string, out io.Writer) error {
	cfg, err := settingsOf(ctx, clone)
	if err != nil {
		return err
	}
	head, err := gitOutput(ctx, clone, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	repo := pipeline.Repo{Owner: "acme", Name: project(clone), CloneURL: clone}
	for range 2 {
		begun := time.Now()
		report, err := t.x.TryTests(ctx, repo, head, cfg)
		seconds := time.Since(begun).Seconds()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(out, "%s %.10s %5.1fs cannot be tested: %v\n", repo.Name, head, seconds, err)
		case report.None != "":
			fmt.Fprintf(out, "%s %.10s %5.1fs has no tests: %s\n", repo.Name, head, seconds, report.None)
		default:
			fmt.Fprintf(out, "%s %.10s %5.1fs %d passed, %d failed\n", repo.Name, head, seconds, report.Passed, len(report.Failures))
		}
		for _, f := range report.Failures[:min(3, len(report.Failures))] {
			fmt.Fprintf(out, "    failed: %s: %.200s\n", f.Test, strings.Join(strings.Fields(f.Error), " "))
		}
		if report.Unclean != "" {
			fmt.Fprintf(out, "    not all was tested: %s\n", report.Unclean)
		}
		for _, line := range report.Setup {
			fmt.Fprintf(out, "    %s\n", strings.ReplaceAll(line, "\n", "\n      "))
		}
	}
	return nil
}

func gitOutput(ctx context.Context, clone string, args ...string) (string, error) {
	out, err := git(ctx, clone, args...)
	return strings.TrimSpace(string(out)), err
}
