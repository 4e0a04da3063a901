package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/learn/metrics"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

func metricsCommand() *cobra.Command {
	o := metrics.Options{}
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use: "metrics", Short: "Show how well the feedback loops work", Args: shell.NoArgs,
		Long: "Shows every metric of the feedback loops over a period, with its 95 % interval, its\n" +
			"trend against the period before, and whether the targets are hit. Days are UTC; the\n" +
			"last one is today.",
		Example: "  forge metrics --days 30 --repo acme/site\n  forge metrics --csv > metrics.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := shell.CheckDays(o.Days); err != nil {
				return err
			}
			if asJSON && asCSV {
				return shell.Usage("--json and --csv are two formats: give one of them")
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				if err := shell.CheckRepo(cmd.Context(), db, o.Repo); err != nil {
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
				_, err = io.WriteString(out, metricsScreen(rep))
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

// catchUp takes in what has happened since the metrics were last brought up to
// date; a server does so all the time. The first time it may take a while, and
// says so.
func catchUp(cmd *cobra.Command, db *store.DB) error {
	show, done := shell.Progress(cmd.ErrOrStderr())
	n := 0
	_, err := db.MeasureRuns(cmd.Context(), func(events []pipeline.Event) []record.MetricRow {
		if n++; n%500 == 0 {
			show("reading the log: %d runs", n)
		}
		return metrics.Of(events)
	})
	done()
	return err
}
