package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/server"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

func metricsCommand() *cobra.Command {
	o := metrics.Options{}
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use: "metrics", Short: "Show how well the feedback loops work", Args: noArgs,
		Long: "Shows every metric of the feedback loops over a period, with its 95 % interval, its\n" +
			"trend against the period before, and whether the targets are hit. Days are UTC; the\n" +
			"last one is today.",
		Example: "  forge metrics --days 30 --repo acme/site\n  forge metrics --csv > metrics.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDays(o.Days); err != nil {
				return err
			}
			if asJSON && asCSV {
				return usage("--json and --csv are two formats: give one of them")
			}
			return withStore(cmd, func(db *store.DB) error {
				if err := checkRepo(cmd.Context(), db, o.Repo); err != nil {
					return err
				}
				if err := catchUp(cmd, db); err != nil {
					return err
				}
				o.Now = time.Now()
				rep, err := server.ReportMetrics(cmd.Context(), db, o, o.Repo)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				switch {
				case asJSON:
					return printing.JSON(out, rep)
				case asCSV:
					return rep.WriteCSV(out)
				}
				tty := isTerminal(out)
				_, err = io.WriteString(out, metricsScreen(rep, screenWidth(out), tty && os.Getenv("NO_COLOR") == ""))
				return err
			})
		},
	}
	cmd.Flags().IntVar(&o.Days, "days", 7, "the period in days: 7, 30 or 90")
	cmd.Flags().StringVar(&o.Repo, "repo", "", "only of OWNER/NAME")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "as CSV")
	return cmd
}

func checkDays(days int) error {
	near := metrics.NearestPeriod(days)
	if near == days {
		return nil
	}
	return usage("--days %d: metrics are kept for 7, 30 and 90 days; did you mean --days %d?", days, near)
}

func checkRepo(ctx context.Context, db *store.DB, repo string) error {
	if repo == "" {
		return nil
	}
	known, err := db.Repos(ctx)
	if err != nil || slices.Contains(known, repo) {
		return err
	}
	switch near := text.Nearest(repo, known); {
	case near != "":
		return usage("--repo %s: no run was ever in it; did you mean %s?", repo, near)
	case len(known) == 0:
		return usage("--repo %s: there are no runs yet in any repository", repo)
	}
	return usage("--repo %s: no run was ever in it; there are runs in %s", repo, strings.Join(known[:min(5, len(known))], ", "))
}

// catchUp takes in what has happened since the metrics were last brought up to
// date; a server does so all the time. The first time it may take a while, and
// says so.
func catchUp(cmd *cobra.Command, db *store.DB) error {
	errs := cmd.ErrOrStderr()
	show, n := isTerminal(errs), 0
	_, err := db.MeasureRuns(cmd.Context(), func(events []pipeline.Event) []record.MetricRow {
		if n++; show && n%500 == 0 {
			fmt.Fprintf(errs, "\rreading the log: %d runs", n)
		}
		return metrics.Of(events)
	})
	if show && n >= 500 {
		fmt.Fprint(errs, "\r\x1b[K")
	}
	return err
}
