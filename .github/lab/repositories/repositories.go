// Package repositories plays commits of real projects as work: the implementer's edits are
// what a commit changed, with its tests. It asks how often somebody is asked, and whether
// the tests alone, without the code that they are of, come through.
package repositories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Play is what came of one commit.
type Play struct {
	Project   string         `json:"project"`
	Commit    string         `json:"commit"`
	Subject   string         `json:"subject"`
	TestsOnly bool           `json:"tests_only"` // without the code that they are of
	State     pipeline.State `json:"state"`
	Asked     string         `json:"asked,omitempty"` // what a person was asked
	Passed    int            `json:"passed"`          // tests
	Failed    int            `json:"failed"`
	Seconds   float64        `json:"seconds"`
}

// Command returns "lab repositories".
func Command() *cobra.Command {
	var most int
	var asJSON, base bool
	var toolchains []string
	var state, exe string
	cmd := &cobra.Command{
		Use: "repositories CLONE...", Short: "Play commits of real projects as work, with their tests and with these alone", Args: cobra.MinimumNArgs(1),
		Long: "Takes the newest commits of each clone that change code with its tests, and plays each as an issue on\n" +
			"a GitHub on this machine: a scripted implementer makes the commit's change on what was before it; then\n" +
			"once more its tests alone. Says what came of both, and what a person was asked.",
		RunE: func(cmd *cobra.Command, clones []string) error {
			p := &player{state: state, exe: exe}
			if p.exe == "" {
				dir, err := demo.TempDir() // which the user of the sandbox may pass
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir) //nolint:errcheck // of a folder for temporary files
				p.exe = filepath.Join(dir, "forge")
				build := exec.CommandContext(cmd.Context(), "go", "build", "-o", p.exe, "./cmd/forge")
				build.Dir = filepath.Join("..", "..")
				if out, err := build.CombinedOutput(); err != nil {
					return fmt.Errorf("build the program: %w\n%s", err, out)
				}
			}
			var plays []Play
			for _, clone := range clones {
				if base {
					if err := p.base(cmd.Context(), clone, toolchains, cmd.OutOrStdout()); err != nil {
						return fmt.Errorf("%s: %w", clone, err)
					}
					continue
				}
				list, err := commits(cmd.Context(), clone, most)
				if err != nil {
					return err
				}
				for _, c := range list {
					for _, alone := range []bool{false, true} {
						one, err := p.play(cmd.Context(), project(clone), c, alone)
						if err != nil {
							return fmt.Errorf("play %.10s of %s: %w", c.SHA, project(clone), err)
						}
						plays = append(plays, one)
						show(cmd.OutOrStdout(), one, asJSON)
					}
				}
			}
			if !asJSON && !base {
				summary(cmd.OutOrStdout(), plays)
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&most, "commits", "n", 20, "commits of each clone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a line of JSON for each")
	cmd.Flags().BoolVar(&base, "base", false, "set the newest commit up and run its tests as they stand, and no more")
	cmd.Flags().StringSliceVar(&toolchains, "toolchain", nil, "a directory of tools besides those under /usr")
	cmd.Flags().StringVar(&state, "state", "", "a folder for what stays: packages, and what repositories are set up with")
	cmd.Flags().StringVar(&exe, "forge", "", "the program, for the processes that work in the sandbox (default: it is built)")
	return cmd
}

// project is what a clone is called: the last part of its path that is a name.
func project(clone string) string {
	name := strings.TrimSuffix(filepath.Base(filepath.Clean(clone)), ".git")
	if name == "repo" || name == "" {
		name = filepath.Base(filepath.Dir(filepath.Clean(clone)))
	}
	return name
}

func show(out io.Writer, p Play, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(out).Encode(p)
		return
	}
	what := "change"
	if p.TestsOnly {
		what = "tests alone"
	}
	fmt.Fprintf(out, "%s %.10s %-11s %-9s %5.1fs %5d passed %3d failed  %s\n", p.Project, p.Commit, what, p.State, p.Seconds, p.Passed, p.Failed, p.Subject)
	if p.Asked != "" {
		fmt.Fprintf(out, "    asked: %s\n", p.Asked)
	}
}

func summary(out io.Writer, plays []Play) {
	count := func(testsOnly bool, s pipeline.State) (n int) {
		for _, p := range plays {
			if p.TestsOnly == testsOnly && p.State == s {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(out, "\n%d commits. With their code: %d verified, %d asked. Their tests alone: %d verified, %d asked.\n", len(plays)/2,
		count(false, pipeline.StateVerified), count(false, pipeline.StateWaiting), count(true, pipeline.StateVerified), count(true, pipeline.StateWaiting))
}

// player plays commits one after the other.
type player struct {
	state, exe string
}

// longest is how long one may take, its dependencies and its compiler included.
const longest = 15 * time.Minute

func (p *player) play(ctx context.Context, name string, c commit, testsOnly bool) (out Play, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	out = Play{Project: name, Commit: c.SHA, Subject: c.Subject, TestsOnly: testsOnly}
	dir, err := demo.TempDir()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest()})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	full, err := gh.AddRepo("acme", "work", c.Files)
	if err != nil {
		return out, err
	}
	if _, err := gh.Install(full); err != nil {
		return out, err
	}
	issue, err := gh.As("acme").OpenIssue(full, c.Subject, "As the commit says.")
	if err != nil {
		return out, err
	}
	ended := make(chan *pipeline.Run, 1)
	s, err := p.serve(ctx, gh, dir, tape(c, testsOnly), func(run *pipeline.Run, _ []pipeline.Event) {
		if run.State != pipeline.StateRunning {
			select {
			case ended <- run:
			default:
			}
		}
	})
	if err != nil {
		return out, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.DrainTime)
		defer cancel()
		err = errors.Join(err, s.Stop(stop))
	}()
	gh.SetHook(s.URL + "/webhook")
	if err := gh.As("acme").Label(full, issue, "forge"); err != nil {
		return out, err
	}
	select {
	case run := <-ended:
		out.State, out.Seconds = run.State, time.Since(begun).Seconds()
		if g := run.Gate(); g != nil {
			out.Asked = strings.Join(strings.Fields(g.Question), " ")
		}
		if len(run.Iterations) > 0 {
			if t := run.Current().Tests; t != nil {
				out.Passed, out.Failed = t.Passed, len(t.Failures)
			}
		}
		return out, nil
	case <-ctx.Done():
		return out, fmt.Errorf("it has not ended: %w", context.Cause(ctx))
	}
}

func (p *player) serve(ctx context.Context, gh *githubtest.Server, dir, tape string, on func(*pipeline.Run, []pipeline.Event)) (*server.Server, error) {
	env, err := demo.Environment(gh, dir, []byte(tape))
	if err != nil {
		return nil, err
	}
	if err := p.keepCaches(env["FORGE_STATE_DIR"]); err != nil {
		return nil, err
	}
	cfg, err := settings.Server("", func(name string) string { return env[name] })
	if err != nil {
		return nil, err
	}
	return server.Listen(ctx, server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler), OnEvents: on, Settle: 10 * time.Millisecond,
		Worker: p.exe})
}

// keepCaches lets what is downloaded and compiled outlive one play.
func (p *player) keepCaches(state string) error {
	if p.state == "" {
		return nil
	}
	work := filepath.Join(state, "work")
	if err := os.MkdirAll(work, 0o711); err != nil {
		return err
	}
	if err := os.Chmod(state, 0o711); err != nil {
		return err
	}
	kept := filepath.Join(p.state, "deps")
	if err := os.MkdirAll(kept, 0o711); err != nil {
		return err
	}
	return os.Symlink(kept, filepath.Join(work, "deps"))
}

// tape is a model whose implementer makes the commit's change.
func tape(c commit, testsOnly bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- planner 0/1 --\n>>> submit\nsummary: %[1]q\nsteps: [Do it]\ncriteria: [{id: AC1, text: %[1]q}]\n", c.Subject)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(c.Change)) {
		if testsOnly && !c.Tests[name] {
			continue
		}
		n++
		if text := c.Change[name]; text == nil {
			fmt.Fprintf(&b, "-- implementer */%d --\n>>> remove\npath: %s\n", n, quoted(name))
		} else {
			fmt.Fprintf(&b, "-- implementer */%d --\n>>> write\npath: %s\ncontent: %s\n", n, quoted(name), quoted(*text))
		}
	}
	fmt.Fprintf(&b, "-- implementer */%d --\n>>> submit\nsummary: %q\n", n+1, c.Subject)
	b.WriteString("-- compliance */1 --\n>>> submit\ncriteria: [{id: AC1, met: true, evidence: the tests}]\n-- quality */1 --\n>>> submit\nsummary: Right.\nrisk: 1\nfindings: []\n")
	// How many tests of the base fail as they stood is not known: one more with each answer.
	tests := ""
	for turn := range 10 {
		tests += fmt.Sprintf("- {id: T%d, must_change: true, reason: the commit asks for it}\n", turn+1)
		fmt.Fprintf(&b, "-- justify */%d --\n>>> submit\ntests:\n%s", turn+1, tests)
	}
	return b.String()
}

// quoted writes a text as JSON, which YAML reads.
func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always can be
	return string(out)
}
