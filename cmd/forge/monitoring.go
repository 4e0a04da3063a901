package main

import (
	"io"

	"github.com/spf13/cobra"

	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/shell"
)

func monitoringCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "monitoring", Short: "Print what Forge is watched with: alert rules, a dashboard, the keys of the log", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	for _, f := range []struct{ use, short, text string }{
		{"alerts", "Print alert rules for Prometheus", monitoring.Alerts},
		{"grafana", "Print a dashboard to import into Grafana 11 or later", monitoring.Grafana},
		{"logs", "Print the catalogue of the keys of log lines", monitoring.LogKeys},
	} {
		cmd.AddCommand(&cobra.Command{Use: f.use, Short: f.short, Args: shell.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), f.text)
			return err
		}})
	}
	return cmd
}
