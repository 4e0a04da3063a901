// Package learnings is `forge memory`: it lists, finds, shows, changes, carries from one
// server to another, and weighs what is remembered.
package learnings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// Command returns `forge memory` with its commands.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "Read and correct what Forge remembers",
		Long: "Forge remembers what its runs and what people's feedback taught it, for a repository or for\n" +
			"an organisation, and gives it to later runs. Here it can be read, corrected, and carried from one\n" +
			"server to another.",
		Args: shell.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(), searchCommand(), showCommand(), editCommand(), forgetCommand(),
		exportCommand(), importCommand(), agentsCommand(), worthCommand())
	return cmd
}

// page is the part of a list that is shown.
type page struct {
	limit, skip int
}

func (p *page) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 50, "at most this many")
	cmd.Flags().IntVar(&p.skip, "skip", 0, "leave out as many at the beginning: the next page")
}

func (p *page) check() error {
	if p.limit < 1 || p.skip < 0 {
		return shell.Usage("--limit is a number from 1, --skip from 0; got %d and %d", p.limit, p.skip)
	}
	return nil
}

// cutPage returns the page of a list.
func cutPage[T any](p page, list []T) []T {
	from := min(p.skip, len(list))
	return list[from : min(len(list)-from, p.limit)+from]
}

// scopeForms are the names that GitHub gives to repositories and their owners.
var scopeForms = lazyregexp.New(`^(repo:([A-Za-z0-9_.-]+/)?[A-Za-z0-9_.-]+|org:[A-Za-z0-9_-]+)$`)

// scopeOf reads --scope: OWNER/NAME, OWNER, or the scope as the listings show it.
func scopeOf(s string) (string, error) {
	scope := s
	if !strings.Contains(s, ":") {
		scope = record.ScopeOf(s)
	}
	if !scopeForms.MatchString(scope) {
		return "", shell.Usage("--scope takes a repository as OWNER/NAME or an organisation as OWNER, got %q", s)
	}
	return scope, nil
}

// scopesOf is scopeOf as a filter: none for "".
func scopesOf(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	scope, err := scopeOf(s)
	return []string{scope}, err
}

// sources are where learnings come from.
var sources = []pipeline.LearningSource{pipeline.SourceReflection, pipeline.SourceDismissal, pipeline.SourceRewrite, pipeline.SourceEdit, pipeline.SourceGap,
	pipeline.SourceRevert, pipeline.SourceHuman, pipeline.SourceImport}

func texts[S ~string](list []S) (out []string) {
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

// oneOf refuses what a filter would never find: a typing error looks like an empty memory.
func oneOf(flag, given string, known []string) error {
	if given == "" || slices.Contains(known, given) {
		return nil
	}
	hint := ""
	if near := text.Nearest(given, known); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return shell.Usage("%s takes one of %s, got %q%s", flag, strings.Join(known, ", "), given, hint)
}

func learningNumber(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, shell.Usage("%q is not a learning's number: `forge memory list` shows them", s)
	}
	return id, nil
}

// noLearning says how to find the right number when there is none of this one.
func noLearning(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: `forge memory list --all` shows the numbers that there are", err)
	}
	return err
}

// View is a learning in a list.
type View struct {
	pipeline.Learning
	Effective float64 `json:"effective"`       // what decay leaves of confidence, 0 to 1
	Score     float64 `json:"score,omitempty"` // of a search
}

func listCommand() *cobra.Command {
	var f store.MemoryFilter
	var p page
	var scope string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List what is remembered, by scope, most confident first", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err = p.check(); err != nil {
				return err
			}
			if f.Scopes, err = scopesOf(scope); err != nil {
				return err
			}
			if err := oneOf("--category", string(f.Category), texts(pipeline.Categories())); err != nil {
				return err
			}
			if err := oneOf("--source", string(f.Source), texts(sources)); err != nil {
				return err
			}
			if all {
				f.States = []pipeline.LearningState{"*"}
			}
			f.Limit = memory.Everything
			return shell.WithStore(cmd, func(db *store.DB) error {
				list, err := db.Learnings(cmd.Context(), f)
				if err != nil {
					return err
				}
				now := time.Now()
				memory.ByConfidence(list, now)
				views := []View{}
				for _, l := range cutPage(p, list) {
					views = append(views, View{Learning: l, Effective: learn.Effective(l, now)})
				}
				if asJSON {
					return printing.JSON(cmd.OutOrStdout(), views)
				}
				if len(list) == 0 {
					return nothingRemembered(cmd, db, all || f.Category != "" || f.Source != "", scope)
				}
				return show(cmd.OutOrStdout(), views, len(list), p)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&scope, "scope", "", "only that of OWNER/NAME or OWNER")
	cmd.Flags().StringVar((*string)(&f.Category), "category", "", "only that of a category of findings, such as style")
	cmd.Flags().StringVar((*string)(&f.Source), "source", "", "only that from one of "+text.Join(sources, ", "))
	cmd.Flags().BoolVar(&all, "all", false, "also what is out of use: withdrawn, merged, retired, forgotten")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// nothingRemembered says why a list is empty, and what to do about it.
func nothingRemembered(cmd *cobra.Command, db *store.DB, filtered bool, scope string) error {
	scopes, err := db.Scopes(cmd.Context())
	if err != nil {
		return err
	}
	cfg, _, err := shell.Configure(cmd)
	if err != nil {
		return err
	}
	text := "Nothing is remembered yet. Forge learns from its own runs, from what people do with its findings and\n" +
		"suggestions, and from `" + command.Write(cfg.Slug, "remember WORDS") + "` on GitHub; `forge memory import` brings a memory along."
	switch {
	case len(scopes) > 0 && scope != "":
		text = fmt.Sprintf("Nothing is remembered of %s that fits. There is something of %s; --all also shows what is out of use.", scope, strings.Join(scopes, ", "))
	case len(scopes) > 0 && filtered:
		text = "Nothing that is remembered fits. `forge memory list --all` shows all there is."
	case len(scopes) > 0:
		text = "Nothing that is remembered is in use. --all shows what was withdrawn, merged, retired or forgotten."
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func show(out io.Writer, views []View, total int, p page) error {
	header := table.Row{"id", "confidence", "for", "against", "used", "confirmed", "scope", "type", "words"}
	states := slices.ContainsFunc(views, func(v View) bool { return v.State != pipeline.LearningActive })
	if states {
		header = slices.Insert(header, 1, any("state"))
	}
	t := printing.Table(header...)
	for _, v := range views {
		row := table.Row{v.ID, fmt.Sprintf("%.2f", v.Effective), v.For, v.Against, fmt.Sprintf("%d of %d", v.Used, v.Recalled),
			v.Touched.Local().Format(time.DateOnly), v.Scope, memory.KindOf(v.Learning), memory.OneLine(v.Content, 80)}
		if states {
			row = slices.Insert(row, 1, any(v.State))
		}
		t.AppendRow(row)
	}
	if len(views) > 0 {
		fmt.Fprintln(out, t.Render())
	}
	if last := p.skip + len(views); last < total || len(views) == 0 {
		more := ""
		if last < total {
			more = fmt.Sprintf(" The next: --skip %d", last)
		}
		fmt.Fprintf(out, "\n%d of %d.%s\n", len(views), total, more)
	}
	return nil
}

func searchCommand() *cobra.Command {
	var p page
	var scope string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "search WORDS…", Short: "Find what is remembered by words, of which one must occur",
		Example: "  forge memory search wrap errors\n  forge memory search --scope acme/site api/handler.go",
		Args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return shell.Usage("search takes words: %s", cmd.UseLine())
			}
			return p.check()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			scopes, err := scopesOf(scope)
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				if scopes == nil {
					if scopes, err = db.Scopes(cmd.Context()); err != nil {
						return err
					}
				}
				hits, err := db.SearchMemories(cmd.Context(), strings.Join(args, " "), scopes, memory.Everything)
				if err != nil {
					return err
				}
				now, views := time.Now(), []View{}
				for _, h := range cutPage(p, hits) {
					views = append(views, View{Learning: h.Learning, Effective: learn.Effective(h.Learning, now), Score: h.Score})
				}
				switch {
				case asJSON:
					return printing.JSON(cmd.OutOrStdout(), views)
				case len(hits) == 0:
					_, err := fmt.Fprintln(cmd.OutOrStdout(), "Nothing that is remembered and in use has one of these words. `forge memory list` shows all of it.")
					return err
				}
				return show(cmd.OutOrStdout(), views, len(hits), p)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&scope, "scope", "", "only that of OWNER/NAME or OWNER")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// Details are all that is known of a learning.
type Details struct {
	View
	Evidence []pipeline.Evidence  `json:"evidence"`
	History  []store.MemoryChange `json:"history"`
	Uses     []store.Use          `json:"uses"`
}

func showCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a learning: its words, what speaks for and against it, who changed it, which runs it was given", Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningNumber(args[0])
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				ctx := cmd.Context()
				l, err := db.Learning(ctx, id)
				if err != nil {
					return noLearning(err)
				}
				d := Details{View: View{Learning: l, Effective: learn.Effective(l, time.Now())}}
				var errs [3]error
				d.Evidence, errs[0] = db.Evidence(ctx, id)
				d.History, errs[1] = db.History(ctx, id)
				d.Uses, errs[2] = db.Uses(ctx, id, 0)
				if err := errors.Join(errs[:]...); err != nil {
					return err
				}
				if asJSON { // lists, even if nothing is in them
					d.Evidence, d.History, d.Uses = append([]pipeline.Evidence{}, d.Evidence...), append([]store.MemoryChange{}, d.History...),
						append([]store.Use{}, d.Uses...)
					return printing.JSON(cmd.OutOrStdout(), d)
				}
				_, err = io.WriteString(cmd.OutOrStdout(), d.String())
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

const minutes = "2006-01-02 15:04"

func (d Details) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "learning %d of %s: %s, %s\n\n", d.ID, d.Scope, memory.KindOf(d.Learning), d.State)
	for line := range strings.SplitSeq(d.Content, "\n") {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	b.WriteString("\n")
	for _, f := range []struct{ name, value string }{{"when it matters", d.Context}, {"paths", strings.Join(d.Paths, ", ")},
		{"tags", strings.Join(d.Tags, ", ")}} {
		if f.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", f.name, f.value)
		}
	}
	fmt.Fprintf(&b, "confidence: %.2f; %.2f before decay, last confirmed %s; it began with %.2f\n", d.Effective, d.Confidence,
		d.Touched.Local().Format(minutes), d.Base)
	from := string(d.Source)
	if d.Author.Login != "" {
		from += fmt.Sprintf(" by %s, whose word weighs %.1f", d.Author.Login, d.Weight)
	}
	if d.Run > 0 {
		from += fmt.Sprintf(", run %d", d.Run)
	}
	fmt.Fprintf(&b, "from: %s, %s\n", from, d.Created.Local().Format(minutes))
	d.tables(&b)
	return b.String()
}

func (d Details) tables(b *strings.Builder) {
	section := func(name, none string, t table.Writer) {
		if t.Length() == 0 {
			fmt.Fprintf(b, "%s: %s\n", name, none)
			return
		}
		fmt.Fprintf(b, "\n%s:\n%s\n", name, t.Render())
	}
	evidence := printing.Table("when", "does", "who", "run", "why")
	for _, e := range d.Evidence {
		why := memory.OneLine(e.Why, 100)
		if e.Off {
			why += " (taken back)"
		}
		evidence.AppendRow(table.Row{e.At.Local().Format(minutes), fmt.Sprintf("%+.2f", e.Delta), e.Actor.Login, numberOrNone(e.Run), why})
	}
	section("evidence", "none yet", evidence)
	history := printing.Table("when", "who", "what")
	for _, c := range d.History {
		history.AppendRow(table.Row{c.At.Local().Format(minutes), c.By.Login, memory.OneLine(c.What+changed(c), 300)})
	}
	section("changes", "none", history)
	uses := printing.Table("when", "run", "run is", "phase", "iteration", "role", "it was")
	for _, u := range d.Uses {
		was := "given"
		switch {
		case u.Withheld:
			was = "withheld, to measure its worth"
		case u.Used:
			was = "given and used"
		}
		uses.AppendRow(table.Row{u.At.Local().Format(minutes), u.Run, u.State, u.Phase, u.Iteration, u.Role, was})
	}
	section(fmt.Sprintf("recalled %d times, used %d times", d.Recalled, d.Used), "no run was given it yet", uses)
}

func numberOrNone(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// changed says which words a change of a learning changed, and from what.
func changed(c store.MemoryChange) string {
	var was, is pipeline.Learning
	if json.Unmarshal([]byte(c.Before), &was) != nil || json.Unmarshal([]byte(c.After), &is) != nil {
		return "" // unreachable: the store writes both
	}
	text := ""
	for _, f := range []struct{ name, was, is string }{
		{"words", was.Content, is.Content}, {"when it matters", was.Context, is.Context}, {"paths", strings.Join(was.Paths, ", "), strings.Join(is.Paths, ", ")},
		{"base", fmt.Sprintf("%.2f", was.Base), fmt.Sprintf("%.2f", is.Base)}, {"state", string(was.State), string(is.State)},
	} {
		if f.was != f.is {
			text += fmt.Sprintf("; %s: %q → %q", f.name, memory.OneLine(f.was, 80), memory.OneLine(f.is, 80))
		}
	}
	return text
}
