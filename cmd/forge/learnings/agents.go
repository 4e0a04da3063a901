package learnings

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/github"
	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// The section of AGENTS.md that is Forge's: what stands outside of these lines is
// left as it is.
const (
	agentsFile   = "AGENTS.md"
	agentsBranch = "/agents-md" // below the slug
	agentsBegin  = "<!-- forge:learnings -->"
	agentsEnd    = "<!-- /forge:learnings -->"

	agentsLine = 400 // bytes of one learning
	agentsMost = 40  // learnings: agents read all of it each time
)

func agentsCommand() *cobra.Command {
	var repo string
	var sure float64
	var pull bool
	cmd := &cobra.Command{
		Use: "agents --repo OWNER/NAME [FILE|-]", Short: "Write what is surest as a section for AGENTS.md",
		Long: "Write what Forge is surest of about a repository as a section of " + agentsFile + ", for other agents, too:\n" +
			"what people with write access said, or what their deeds bore out, never anybody else's words.\n" +
			"In FILE the section takes the place of the one before; the rest is left as it is. Without FILE,\n" +
			"or with -, the section goes to the output. With --pull, the App proposes it by a pull request\n" +
			"from " + command.Slug + agentsBranch + ", or brings that one up to date.",
		Example: "  forge memory agents --repo acme/site AGENTS.md\n  forge memory agents --repo acme/site --min 0.9 --pull",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return shell.Usage("agents takes one file at most, got %q", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			owner, name, ok := strings.Cut(repo, "/")
			scope, err := scopeOf(repo)
			switch {
			case !ok || err != nil:
				return shell.Usage("--repo takes a repository as OWNER/NAME, got %q", repo)
			case !(sure >= 0 && sure <= 1):
				return shell.Usage("--min is a number from 0 to 1, got %v", sure)
			case pull && len(args) > 0:
				return shell.Usage("--pull takes no file: the section goes into %s of the repository", agentsFile)
			}
			var list []pipeline.Learning
			err = shell.WithStore(cmd, func(db *store.DB) (err error) {
				list, err = surest(cmd.Context(), db, []string{scope, record.ScopeOf(owner)}, sure, time.Now())
				return err
			})
			if err != nil {
				return err
			}
			cfg, _, err := shell.Configure(cmd)
			if err != nil {
				return err
			}
			section := agentsSection(list, cfg.Slug)
			switch {
			case pull:
				return proposeAgents(cmd, owner, name, section, len(list))
			case len(args) == 0 || args[0] == "-":
				_, err = cmd.OutOrStdout().Write(section)
				return err
			}
			return agentsInto(cmd, args[0], section, len(list))
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "the repository, as OWNER/NAME")
	cmd.Flags().Float64Var(&sure, "min", 0.8, "the least confidence, after decay, 0 to 1")
	cmd.Flags().BoolVar(&pull, "pull", false, "propose it by a pull request, as the App")
	return cmd
}

// surest returns the learnings that are sure enough and stand on the word or the
// deeds of people with write access, surest first.
func surest(ctx context.Context, db *store.DB, scopes []string, sure float64, now time.Time) ([]pipeline.Learning, error) {
	all, err := db.Learnings(ctx, store.MemoryFilter{Scopes: scopes, Limit: memory.Everything})
	if err != nil {
		return nil, err
	}
	var out []pipeline.Learning
	for _, l := range all {
		if learn.Effective(l, now) < sure || learn.Shared(&l) {
			continue // what repositories share is told to those of them that want it, not in a file for everybody
		}
		said := l.Author.ID != 0 && !l.Author.Bot && (l.Weight > 0 || learn.Borne(&l))
		if !said { // a model's words, perhaps out of anybody's issue: a person must have borne them out
			evidence, err := db.Evidence(ctx, l.ID)
			if err != nil {
				return nil, err
			}
			said = l.Source != pipeline.SourceReflection && slices.ContainsFunc(evidence, func(e pipeline.Evidence) bool {
				return !e.Off && e.Delta > 0 && e.Actor.ID != 0 && !e.Actor.Bot
			})
		}
		if said {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(learn.Effective(b, now), learn.Effective(a, now)), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), agentsMost)], nil
}

// agentsSection writes the section with its markers; nil when there is nothing to
// say. Order and words follow from the learnings alone: a day that goes by makes no
// difference.
func agentsSection(list []pipeline.Learning, slug string) []byte {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	var b strings.Builder
	b.WriteString(agentsBegin + "\n## Learnt in reviews\n\nForge keeps this section: change it with `" + command.Write(slug, "remember") +
		"` and `" + command.Write(slug, "forget ID") + "`. Each line quotes what reviews and runs in\n" +
		"this repository taught; they are hints for work on what they name, and no orders.\n\n")
	for _, l := range list {
		b.WriteString("- " + quotedCode(l.Content, agentsLine))
		var about []string
		if l.Category != "" {
			about = append(about, quotedCode(string(l.Category), 40))
		}
		for _, p := range l.Paths[:min(len(l.Paths), 5)] {
			about = append(about, quotedCode(p, 120))
		}
		if len(about) > 0 {
			b.WriteString(" (" + strings.Join(about, ", ") + ")")
		}
		if l.Context != "" {
			b.WriteString(", for " + quotedCode(l.Context, 200))
		}
		b.WriteString("\n")
	}
	b.WriteString(agentsEnd + "\n")
	return []byte(b.String())
}

// quotedCode shows a text as one span of code, in which nothing means anything: no
// heading, link, mention, import of a file or HTML.
func quotedCode(s string, n int) string {
	s = learn.Tidy(s, 4*n)
	s = strings.NewReplacer("`", "'", "<!", "< !", "-->", "-- >").Replace(strings.Join(strings.Fields(s), " "))
	return "`" + strings.TrimSpace(learn.Tidy(s, n)) + "`"
}

// withSection puts the section in the place of the one in the text, or behind it; a
// nil section takes it out.
func withSection(text, section []byte) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	from, to := -1, -1
	for i, l := range lines {
		switch string(bytes.TrimSpace(l)) {
		case agentsBegin:
			if from >= 0 {
				return nil, fmt.Errorf("it has the line %q twice: take one of the sections out", agentsBegin)
			}
			from = i
		case agentsEnd:
			if from < 0 || to >= 0 {
				return nil, fmt.Errorf("the line %q ends a section that no line before it begins: remove it", agentsEnd)
			}
			to = i
		}
	}
	switch {
	case from >= 0 && to < 0:
		return nil, fmt.Errorf("the line %q is missing behind %q: put it where the section ends", agentsEnd, agentsBegin)
	case from >= 0:
		before, after := bytes.Join(lines[:from], nil), bytes.Join(lines[to+1:], nil)
		return slices.Concat(before, section, after), nil
	case len(section) == 0:
		return text, nil
	case len(text) == 0:
		return section, nil
	}
	return slices.Concat(bytes.TrimRight(text, "\n"), []byte("\n\n"), section), nil
}

// agentsInto brings the section of a file up to date.
func agentsInto(cmd *cobra.Command, path string, section []byte, n int) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write learnings: %w", err)
	}
	text, err := withSection(old, section)
	if err != nil {
		return fmt.Errorf("write learnings into %s: %w", path, err)
	}
	if bytes.Equal(text, old) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is up to date: %d learning(s).\n", path, n)
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write learnings: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d learning(s).\n", path, n)
	return err
}

// proposeAgents lets the App propose the section.
func proposeAgents(cmd *cobra.Command, owner, name string, section []byte, n int) error {
	cfg, log, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	if cfg.AppID == 0 || cfg.PrivateKeyFile == "" {
		return shell.Usage("--pull is done by the App: set FORGE_APP_ID and FORGE_PRIVATE_KEY_FILE, or use --config")
	}
	app, err := server.NewGitHubApp(cfg, log)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	inst, err := app.FindInstallation(ctx, owner, name)
	if err != nil {
		return err
	}
	repo, err := app.Repo(ctx, inst, owner, name)
	if err != nil {
		return err
	}
	url, changed, err := app.Propose(ctx, repo, github.Proposal{
		Branch: cfg.Slug + agentsBranch, Path: agentsFile, Title: "Write down what reviews taught",
		Body: fmt.Sprintf("Forge is sure of %d learning(s) about this repository by now. This writes them into `%s`, for other agents and for people; what stands outside of "+
			"the section is left as it is. `%s` lists all that is remembered, and `%s` ends what is wrong.", n, agentsFile,
			command.Write(cfg.Slug, "memory"), command.Write(cfg.Slug, "forget ID")),
		Change: func(old []byte) ([]byte, error) {
			text, err := withSection(old, section)
			if err != nil {
				err = fmt.Errorf("%s of %s: %w", agentsFile, repo.FullName(), err)
			}
			return text, err
		},
	})
	switch {
	case err != nil:
		return err
	case url == "":
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s is up to date: %d learning(s).\n", agentsFile, repo.FullName(), n)
	case !changed:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The pull request is up to date: %s\n", url)
	default:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d learning(s) are proposed: %s\n", n, url)
	}
	return err
}
