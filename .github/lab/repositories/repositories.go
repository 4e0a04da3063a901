// Package repositories plays commits of real projects as work: the implementer's edits are
// what a commit changed, with its tests. It asks how often somebody is asked, and whether
// the tests alone, without the code that they are of, come through.
package repositories

import (
	"cmp"
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
	Project string         `json:"project"`
	Commit  string         `json:"commit"`
	Subject string         `json:"subject"`
	As      string         `json:"as"`              // one of the constants
	Wrong   string         `json:"wrong,omitempty"` // what is not as the commit has it
	State   pipeline.State `json:"state"`
	Asked   string         `json:"asked,omitempty"` // what a person was asked
	Passed  int            `json:"passed"`          // tests
	Failed  int            `json:"failed"`
	Seconds float64        `json:"seconds"`
	Suites  int            `json:"suites"`           // test commands that ran, whole or a part of them
	Tested  float64        `json:"tested"`           // seconds that they took
	Suite   float64        `json:"suite"`            // seconds of the first ones, at the base: what the plain suite takes
	Unseen  bool           `json:"unseen,omitempty"` // verified, and the repository's own tests pass, too: they see no other behaviour

	repo int64
}

// How a commit is played.
const (
	asChange = "change"
	asTests  = "tests alone"
	asWrong  = "wrong" // one comparison or constant is another, and a test sees it
)

// Command returns "lab repositories".
func Command() *cobra.Command {
	var most int
	var only []string
	var asJSON, base bool
	p := &player{}
	cmd := &cobra.Command{
		Use: "repositories CLONE...", Short: "Play commits of real projects as work: as they are, their tests alone, and slightly wrong", Args: cobra.MinimumNArgs(1),
		Long: "Takes the newest commits of each clone that change code with its tests, and plays each as an issue on\n" +
			"a GitHub on this machine: a scripted implementer makes the commit's change on what was before it; then\n" +
			"its tests alone; then with one comparison or constant of it changed, where a test of the repository\n" +
			"sees that. Says what came of each, and what a person was asked. Only the first may be verified.",
		RunE: func(cmd *cobra.Command, clones []string) (err error) {
			dir, err := demo.TempDir() // which the user of the sandbox may pass
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir) //nolint:errcheck // of a folder for temporary files
			p.state = cmp.Or(p.state, dir)
			if p.exe == "" {
				p.exe = filepath.Join(dir, "forge")
				build := exec.CommandContext(cmd.Context(), "go", "build", "-o", p.exe, "./cmd/forge")
				build.Dir = filepath.Join("..", "..")
				if out, err := build.CombinedOutput(); err != nil {
					return fmt.Errorf("build the program: %w\n%s", err, out)
				}
			}
			t, err := p.tester()
			if err != nil {
				return err
			}
			var plays []Play
			var failed error
			for _, clone := range clones {
				if base {
					if err := t.base(cmd.Context(), clone, cmd.OutOrStdout()); err != nil {
						return fmt.Errorf("%s: %w", clone, err)
					}
					continue
				}
				list, err := commits(cmd.Context(), clone, most, only, p.touching)
				if err != nil {
					return err
				}
				for _, c := range list {
					more, err := p.each(cmd.Context(), t, clone, c)
					plays = append(plays, more...)
					for _, one := range more {
						show(cmd.OutOrStdout(), one, asJSON)
					}
					if cmd.Context().Err() != nil {
						return err
					}
					if err != nil { // the others can be played all the same
						failed = errors.Join(failed, fmt.Errorf("play %.10s of %s: %w", c.SHA, project(clone), err))
					}
				}
			}
			if !asJSON && !base {
				summary(cmd.OutOrStdout(), plays)
			}
			return failed
		},
	}
	cmd.Flags().IntVarP(&most, "commits", "n", 20, "commits of each clone")
	cmd.Flags().StringSliceVar(&only, "commit", nil, "these commits alone")
	cmd.Flags().StringSliceVar(&p.touching, "touching", nil, "commits that change a file of such a name (glob), with tests or without, and as they are alone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a line of JSON for each")
	cmd.Flags().BoolVar(&base, "base", false, "set the newest commit up and run its tests as they stand, and no more")
	cmd.Flags().StringSliceVar(&p.toolchains, "toolchain", nil, "a directory of tools in addition to /usr")
	cmd.Flags().StringVar(&p.state, "state", "", "a folder for what stays: packages, and what repositories are set up with")
	cmd.Flags().StringVar(&p.exe, "forge", "", "the program, for the processes that work in the sandbox (default: it is built)")
	return cmd
}

// mostWrong are the changed tokens of a commit that are tried until a test sees one.
const mostWrong = 6

// each plays a commit in every way.
func (p *player) each(ctx context.Context, t *tester, clone string, c commit) (out []Play, err error) {
	whole, err := p.play(ctx, project(clone), c)
	if err != nil {
		return nil, err
	}
	whole.As = asChange
	if len(p.touching) > 0 {
		return []Play{whole}, nil
	}
	alone, err := p.play(ctx, project(clone), c.alone())
	if err != nil {
		return []Play{whole}, err
	}
	alone.As = asTests
	out = []Play{whole, alone}
	fails := func(c commit) (map[string]bool, int, error) { return t.failing(ctx, p.state, clone, whole.repo, c) }
	var right map[string]bool // what fails with the commit as it is: nothing of what is verified
	if whole.State != pipeline.StateVerified {
		if right, _, err = fails(c); err != nil {
			return out, err
		}
	}
	seen := func(c commit) (bool, error) {
		failed, passed, err := fails(c)
		maps.DeleteFunc(failed, func(test string, _ bool) bool { return right[test] })
		return len(failed) > 0 && passed > 0, err
	}
	if alone.State == pipeline.StateVerified {
		sees, err := seen(c.alone())
		if err != nil {
			return out, err
		}
		out[1].Unseen = !sees
	}
	tries := wrongs(c)
	for _, wrong := range tries[:min(mostWrong, len(tries))] {
		sees, err := seen(wrong)
		if err != nil {
			return out, err
		}
		if !sees {
			continue
		}
		one, err := p.play(ctx, project(clone), wrong)
		if err != nil {
			return out, err
		}
		one.As, one.Wrong = asWrong, wrong.Wrong
		return append(out, one), nil
	}
	return out, nil
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
	unseen := ""
	if p.Unseen {
		unseen = " (no test sees another behaviour)"
	}
	fmt.Fprintf(out, "%s %.10s %-11s %-9s %5.1fs, %2d test commands %5.1fs (plain %5.1fs) %5d passed %3d failed  %s%s\n",
		p.Project, p.Commit, p.As, p.State, p.Seconds, p.Suites, p.Tested, p.Suite, p.Passed, p.Failed,
		cmp.Or(p.Wrong, p.Subject), unseen)
	if p.Asked != "" {
		fmt.Fprintf(out, "    asked: %s\n", p.Asked)
	}
}

func summary(out io.Writer, plays []Play) {
	for _, as := range []string{asChange, asTests, asWrong} {
		all, verified, unseen := 0, 0, 0
		for _, p := range plays {
			if p.As != as {
				continue
			}
			all++
			if p.State == pipeline.StateVerified {
				verified++
			}
			if p.Unseen {
				unseen++
			}
		}
		fmt.Fprintf(out, "%-11s %3d played, %3d verified", as, all, verified)
		if unseen > 0 {
			fmt.Fprintf(out, ", %d of them where no test sees another behaviour", unseen)
		}
		fmt.Fprintln(out)
	}
}

// player plays commits one after the other.
type player struct {
	state, exe string
	toolchains []string
	touching   []string
}

// spaces is the folder of the tester's work trees, whose environments the plays use, too.
func (p *player) spaces() string { return filepath.Join(p.state, "work") }

// longest is how long one may take, its dependencies and its compiler included.
const longest = 15 * time.Minute

func (p *player) play(ctx context.Context, name string, c commit) (out Play, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	out = Play{Project: name, Commit: c.SHA, Subject: c.Subject}
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
	ended, took := make(chan *pipeline.Run, 1), &tally{}
	s, err := p.serve(ctx, gh, dir, tape(c), slog.New(took), func(run *pipeline.Run, _ []pipeline.Event) {
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
		out.Suites, out.Tested, out.Suite = took.sums()
		out.repo, out.State, out.Seconds = run.Repo.ID, run.State, time.Since(begun).Seconds()
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

func (p *player) serve(ctx context.Context, gh *githubtest.Server, dir, tape string, log *slog.Logger, on func(*pipeline.Run, []pipeline.Event)) (*server.Server, error) {
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
	cfg.Toolchains = p.toolchains
	return server.Listen(ctx, server.Options{Config: cfg, Log: log, OnEvents: on, Settle: 10 * time.Millisecond,
		Worker: p.exe})
}

// keepCaches lets what is downloaded and compiled outlive one play.
func (p *player) keepCaches(state string) error {
	work := filepath.Join(state, "work")
	if err := os.MkdirAll(work, 0o711); err != nil {
		return err
	}
	if err := os.Chmod(state, 0o711); err != nil {
		return err
	}
	kept := filepath.Join(p.spaces(), "deps")
	if err := os.MkdirAll(kept, 0o711); err != nil {
		return err
	}
	return os.Symlink(kept, filepath.Join(work, "deps"))
}

// tape is a model whose implementer makes the commit's change.
func tape(c commit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- planner 0/1 --\n>>> submit\nsummary: %[1]q\nsteps: [Do it]\ncriteria: [{id: AC1, text: %[1]q}]\n", c.Subject)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(c.Change)) {
		n++
		if text := c.Change[name]; text == nil {
			fmt.Fprintf(&b, "-- implementer */%d --\n>>> remove\npath: %s\n", n, quoted(name))
		} else {
			fmt.Fprintf(&b, "-- implementer */%d --\n>>> write\npath: %s\ncontent: %s\n", n, quoted(name), quoted(*text))
		}
	}
	fmt.Fprintf(&b, "-- implementer */%d --\n>>> submit\nsummary: %q\n", n+1, c.Subject)
	b.WriteString("-- compliance */1 --\n>>> submit\ncriteria: [{id: AC1, met: true, evidence: the tests}]\n-- quality */1 --\n>>> submit\nsummary: Right.\nrisk: 1\nfindings: []\n")
	b.WriteString("-- justify */1 --\n>>> submit\ntests:\n")
	for n := range 200 { // how many tests of the base fail as they stood is not known
		fmt.Fprintf(&b, "- {id: T%d, must_change: true, reason: the commit asks for it}\n", n+1)
	}
	return b.String()
}

// quoted writes a text as JSON, which YAML reads.
func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always can be
	return string(out)
}
