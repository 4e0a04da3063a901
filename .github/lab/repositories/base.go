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

	"forge/cmd/forge/demo"
	"forge/cmd/forge/phase"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
)

// base sets a clone's newest commit up and runs its tests as they stand, twice: the second
// time finds what the first has left.
func (p *player) base(ctx context.Context, clone string, toolchains []string, out io.Writer) error {
	dir := p.state
	if dir == "" {
		var err error
		if dir, err = demo.TempDir(); err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of a folder for temporary files
	}
	log := slog.New(slog.DiscardHandler)
	limits := sandbox.DefaultLimits()
	limits.Memory, limits.TreeFiles, limits.Wall, limits.CPU = 6<<30, 300_000, 20*time.Minute, 40*time.Minute
	spaces, err := sandbox.New(sandbox.Options{Dir: filepath.Join(dir, "work"), Exe: p.exe, Log: log, Toolchains: toolchains, Limits: limits})
	if err != nil {
		return err
	}
	gateway, err := registry.New(registry.Options{Dir: filepath.Join(dir, "registries"), Registries: registry.Defaults(), Log: log})
	if err != nil {
		return err
	}
	git, err := sandbox.NewGateway(sandbox.GatewayOptions{Dir: filepath.Join(dir, "mirrors"), AllowLocal: true, Log: log})
	if err != nil {
		return err
	}
	x := phase.New(phase.Options{Spaces: spaces, Gateway: git, Log: log, Now: time.Now, TestTimeout: 20 * time.Minute,
		Token: func(context.Context, pipeline.Repo) (string, error) { return "", nil },
		Dependencies: phase.Dependencies{Compile: true, Registries: func(context.Context) (*registry.Gateway, string, error) {
			return gateway, "sum.golang.org", nil
		}}})
	head, err := gitOutput(ctx, clone, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	repo := pipeline.Repo{Owner: "acme", Name: project(clone), CloneURL: clone}
	for range 2 {
		begun := time.Now()
		report, err := x.TryTests(ctx, repo, head, config.Default())
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
