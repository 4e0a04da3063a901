package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"forge/cmd/forge/settings"
	"forge/github"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

// onboardBranch is where the proposed settings of a repository stand, below the slug.
const onboardBranch = "/init"

// Onboard proposes a repository's settings by a pull request: its tests are run once on
// the default branch, and what was found and how they ended is told. A repository that
// has settings, and a proposal that is open, are left as they are. It returns the pull
// request's address, and whether it was made now.
func (a *App) Onboard(ctx context.Context, owner, name string) (url string, made bool, err error) {
	app := a.GitHub.App
	id, err := app.FindInstallation(ctx, owner, name)
	if err != nil {
		return "", false, err
	}
	repo, err := app.Repo(ctx, id, owner, name)
	if err != nil {
		return "", false, err
	}
	switch raw, err := app.File(ctx, repo, configPath, repo.DefaultBranch); {
	case err != nil:
		return "", false, err
	case raw != nil:
		return "", false, fmt.Errorf("%s has %s already", repo.FullName(), configPath)
	}
	base, err := app.BranchHead(ctx, repo, repo.DefaultBranch)
	if err != nil {
		return "", false, err
	}
	if base == "" {
		return "", false, fmt.Errorf("%s has no commit on %s yet", repo.FullName(), repo.DefaultBranch)
	}
	report, err := a.exec.TryTests(ctx, repo, base, a.base)
	if err != nil {
		return "", false, err
	}
	content := proposedSettings(&report, a.slug)
	if _, err := settings.Repository(configPath, []byte(content), a.base); err != nil {
		return "", false, fmt.Errorf("propose settings: %w", err) // unreachable: it holds what is known
	}
	return app.Propose(ctx, repo, github.Proposal{
		Branch: a.slug + onboardBranch, Path: configPath, Title: "Add settings for Forge", Body: onboardText(&report, repo),
		Change: func(old []byte) ([]byte, error) {
			if old != nil { // what people made of it stays
				return old, nil
			}
			return []byte(content), nil
		},
	})
}

// proposedSettings is a commented forge.yml for a repository whose tests ended so.
func proposedSettings(r *pipeline.TestReport, slug string) string {
	var b strings.Builder
	b.WriteString("# Forge's settings for this repository. What begins with # is a default; delete what you do not need.\n" +
		"# `forge config schema` prints all keys, for editors.\n\n" +
		"# mode: auto                 # manual: every step waits for " + command.Write(slug, "approve") + "\n" +
		"# limits: {cost_usd: 10}     # of one run; never over the server's own\n" +
		"# paths: {protected: []}     # globs that Forge may not change, on top of the built-in ones\n\n" +
		"tests:\n")
	if len(r.Suites) == 0 {
		b.WriteString("  # No tests were found: name the commands that run them, such as [make test].\n")
	} else {
		b.WriteString("  # Found by themselves; name commands to run others instead:\n")
		for _, s := range r.Suites {
			fmt.Fprintf(&b, "  #   %s\n", plain(s.Command, 200))
		}
	}
	b.WriteString("  commands: []\n")
	var longest time.Duration
	for _, s := range r.Suites {
		longest = max(longest, time.Duration(s.Millis)*time.Millisecond)
	}
	fmt.Fprintf(&b, "  # timeout_minutes: 10       # of one command, at most the server's own; the longest took %s\n", longest.Round(time.Second))
	b.WriteString("  # known_failures: ask       # allow: tests that failed before the work do not stop it\n" +
		"  # checks: false             # true: the repository's own CI must pass on the pushed head, too\n")
	return b.String()
}

// mostNamed bounds a list of tests.
const mostNamed = 20

// onboardText says what was found.
func onboardText(r *pipeline.TestReport, repo pipeline.Repo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This adds `%s`, with the defaults as comments. Forge works without it, too; merge it if you want to change something.\n\n### The tests of `%s`, tried once\n\n", configPath, plain(repo.DefaultBranch, 100))
	switch {
	case r.None != "":
		fmt.Fprintf(&b, "Nothing could be tested: %s. Without tests, Forge asks before it works.\n", plain(r.None, 500))
	case r.OK() && len(r.Before) == 0:
		fmt.Fprintf(&b, "All is well: %d passed, %d skipped.\n", r.Passed, r.Skipped)
	default:
		fmt.Fprintf(&b, "%d passed, %d failed, %d skipped. What fails before the work begins is listed, and asked about once.\n", r.Passed, r.Failed, r.Skipped)
	}
	if len(r.Suites) > 0 {
		b.WriteString("\n| command | ended | took |\n| --- | --- | --- |\n")
		for _, s := range r.Suites {
			ended := fmt.Sprintf("exit code %d", s.Exit)
			switch {
			case s.NotRun != "":
				ended = plain(s.NotRun, 200)
			case s.TimedOut:
				ended = "was stopped, it took too long"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", plain(s.Command, 200), ended, (time.Duration(s.Millis) * time.Millisecond).Round(100*time.Millisecond))
		}
	}
	list := func(title string, names []string) {
		if len(names) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n\n", title)
		for i, name := range names {
			if i == mostNamed {
				fmt.Fprintf(&b, "- and %d more\n", len(names)-i)
				break
			}
			fmt.Fprintf(&b, "- `%s`\n", plain(name, 200))
		}
	}
	var failed []string
	for _, f := range r.Failures {
		failed = append(failed, f.Test)
	}
	list("Failed", failed)
	list("Failed, then passed when run again", r.Flaky)
	list("Dependencies", r.Setup)
	if r.Unclean != "" {
		fmt.Fprintf(&b, "\nNothing would be verified as it is: %s\n", plain(r.Unclean, 500))
	}
	b.WriteString("\nThen give an issue the label that starts Forge.\n")
	return b.String()
}

// plain is a text of the repository's in one line that no Markdown and no YAML comment
// gets out of.
func plain(s string, most int) string {
	s = strings.NewReplacer("`", "'", "|", "/", "<", "‹", ">", "›", "@", "@\u200b", "\r", " ", "\n", " ").Replace(text.Scrub(s))
	return text.Clip(strings.Join(strings.Fields(s), " "), most)
}
