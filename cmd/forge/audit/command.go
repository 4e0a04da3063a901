package audit

import (
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
	"forge/pipeline/store"
)

// Command returns the command that exports the record.
func Command() *cobra.Command {
	var since, repo string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "audit", Short: "Export who asked Forge for what, an order a line", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := moment(since, time.Now())
			if err != nil {
				return shell.Usage("--since %q: must be a day (2026-01-31), a time (2026-01-31T12:00:00Z) or how long ago (720h)", since)
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				list, err := Read(cmd.Context(), db, from, repo)
				if err != nil {
					return err
				}
				return Write(cmd.OutOrStdout(), list, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only what was asked from this day (2026-01-31) or time on, or so long ago (720h)")
	cmd.Flags().StringVar(&repo, "repo", "", "only what is about OWNER/NAME, or about all repositories")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, an object a line")
	return cmd
}

func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, s)
}
