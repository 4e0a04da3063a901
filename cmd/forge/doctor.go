package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
)

func doctorCommand() *cobra.Command {
	var repo string
	var asJSON, prices bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look at all that the server needs, and say how to mend what is wrong", Args: shell.NoArgs,
		Example: "  forge doctor\n  forge doctor --repo acme/shop",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := diagnose(cmd, repo, prices)
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(list); err != nil {
					return err
				}
			} else {
				printDiagnoses(cmd, list)
			}
			for _, d := range list {
				if d.Grade == server.GradeBad {
					return &shell.ExitError{Code: shell.Failed}
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&repo, "repo", "R", "", "OWNER/NAME of a repository to look at, too")
	cmd.Flags().BoolVar(&prices, "prices", false, "compare the models' prices with their providers' lists")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// diagnose looks at everything. Settings that cannot be read are a diagnosis, too.
func diagnose(cmd *cobra.Command, repo string, prices bool) []server.Diagnosis {
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		if _, err := os.Stat("forge.yml"); err == nil {
			path = "forge.yml"
		}
	}
	cfg, err := settings.Server(path, shell.Getenv(cmd))
	if err != nil {
		return server.Unreadable(err)
	}
	return server.Doctor(cmd.Context(), wired(cmd.Context(), server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)}), repo, prices)
}

func printDiagnoses(cmd *cobra.Command, list []server.Diagnosis) {
	w := cmd.OutOrStdout()
	bad, warn := 0, 0
	for _, d := range list {
		mark := "✓"
		switch d.Grade {
		case server.GradeBad:
			mark, bad = "✗", bad+1
		case server.GradeWarn:
			mark, warn = "!", warn+1
		}
		fmt.Fprintf(w, "%s %-13s %s\n", mark, d.Area, indented(d.Says))
		if d.Fix != "" {
			fmt.Fprintf(w, "  %-13s → %s\n", "", indented(d.Fix))
		}
	}
	switch {
	case bad > 0:
		fmt.Fprintf(w, "\n%d to mend, %d warnings.\n", bad, warn)
	case warn > 0:
		fmt.Fprintf(w, "\nNothing to mend, %d warnings.\n", warn)
	default:
		fmt.Fprintln(w, "\nAll is well.")
	}
}

// indented puts further lines of a text below its first.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n                ")
}
