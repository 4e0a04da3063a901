package learnings

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/learn/impact"
	"forge/pipeline/store"
)

// worthShown is how many of the most and of the least useful learnings the screen shows.
const worthShown = 5

func worthCommand() *cobra.Command {
	o := impact.Options{}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "worth", Short: "Show what learning is worth", Args: shell.NoArgs,
		Long: "Some runs work without memory, and of what others would be told some is left out, at random.\n" +
			"Here runs with memory are compared with runs without, and those that had a learning with\n" +
			"those that had it left out: first reviews approved, bounces, dismissed findings. The\n" +
			"reviewer's confidence and Forge's predictions are compared with what people decided, and\n" +
			"what was held back is counted by week.",
		Example: "  forge memory worth --days 90 --repo acme/site\n  forge memory worth --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := shell.CheckDays(o.Days); err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				if err := shell.CheckRepo(cmd.Context(), db, o.Repo); err != nil {
					return err
				}
				o.Now = time.Now()
				rep, err := memory.ReportWorth(cmd.Context(), db, o, o.Repo)
				if err != nil {
					return err
				}
				if asJSON {
					return printing.JSON(cmd.OutOrStdout(), rep)
				}
				_, err = io.WriteString(cmd.OutOrStdout(), worthScreen(rep))
				return err
			})
		},
	}
	cmd.Flags().IntVar(&o.Days, "days", 90, "the period in days: 7, 30 or 90")
	cmd.Flags().StringVar(&o.Repo, "repo", "", "only of OWNER/NAME")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// worthScreen renders a report for people.
func worthScreen(rep impact.Report) string {
	var b strings.Builder
	of := rep.Repo
	if of == "" {
		of = "all repositories"
	}
	v := rep.Overall
	fmt.Fprintf(&b, "What learning is worth in %s, %d days (%s to %s)\n\n", of, rep.Days, rep.From, rep.To)
	b.WriteString(rep.Memory.Text())
	b.WriteString(impact.LooksText(rep.Looks))
	fmt.Fprintf(&b, "%d runs had learnings that fit: %d were given, %d withheld at random.\n\n", v.Runs, v.Given, v.Withheld)
	enough := slices.IndexFunc(rep.Learnings, func(r impact.Ranked) bool { return !r.Enough })
	if enough < 0 {
		enough = len(rep.Learnings)
	}
	if known := rep.Learnings[:enough]; len(known) > 0 {
		t := printing.Table("learning", "first review went well", "bounces", "given", "withheld", "what it says")
		for i, r := range known {
			if i >= worthShown && i < len(known)-worthShown {
				continue
			}
			t.AppendRow(table.Row{r.Learning, difference(r.FirstPass, true), difference(r.Bounces, false), r.Given, r.Withheld, memory.OneLine(r.Content, 60)})
		}
		fmt.Fprintf(&b, "Learnings with %d runs or more on each side, most useful first (%d):\n%s\n", impact.Enough, len(known), t.Render())
		b.WriteString("A first review went well when it approved; with what reviewers were given, when more of what it raised was confirmed than not.\n\n")
	}
	if rest := rep.Learnings[enough:]; len(rest) > 0 {
		fmt.Fprintf(&b, "%d learning(s) with too few runs to tell; the nearest to it: learning %d, %d given, %d withheld.\n", len(rest),
			rest[0].Learning, rest[0].Given, rest[0].Withheld)
	}
	b.WriteString(suppressedText(rep.Weeks))
	return b.String()
}

// suppressedText shows by week what was held back, and what it may have spared people; ""
// when nothing was.
func suppressedText(weeks []impact.Week) string {
	t, some := printing.Table("week from", "decided", "dismissed", "held back", "dismissed, had all been posted"), false
	for _, w := range weeks {
		if w.Decided+w.Suppressed == 0 {
			continue
		}
		some = some || w.Suppressed > 0
		share, most := "–", "–"
		if w.Decided > 0 {
			share = fmt.Sprintf("%.0f %%", 100*float64(w.Dismissed)/float64(w.Decided))
		}
		if v, known := w.AtMost(); known {
			most = fmt.Sprintf("%.0f %% at most", 100*v)
		}
		t.AppendRow(table.Row{w.From, w.Decided, share, w.Suppressed, most})
	}
	if !some {
		return ""
	}
	return "\nFindings that were held back, by week; at most: if people had dismissed all of them:\n" + t.Render() + "\n"
}

// difference shows a difference with its interval: "+8 pt (−2 to +18)".
func difference(i *impact.Interval, share bool) string {
	if i == nil {
		return "too few runs to tell"
	}
	return i.Text(share)
}
