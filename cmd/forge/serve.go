package main

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the App: take webhooks in and work on runs", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := shell.Configure(cmd)
			if err != nil {
				return err
			}
			if err := cfg.Ready(); err != nil {
				return shell.Usage("%w", err)
			}
			s, err := server.Listen(cmd.Context(), server.Options{Config: cfg, Log: log, Alone: true})
			if err != nil {
				return err
			}
			var models sync.WaitGroup
			models.Go(func() {
				if err := server.Models(cfg).Check(cmd.Context()); err != nil && cmd.Context().Err() == nil {
					log.Warn("a model cannot be used; runs that need it wait, and ask", "error", err)
				}
			})
			defer models.Wait()
			log.Info("forge is ready", "address", s.URL, "pages", s.PagesURL, "version", server.Version())
			<-cmd.Context().Done()
			log.Info("forge ends: running phases stop at their next step")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), server.DrainTime)
			defer cancel()
			return s.Stop(ctx)
		},
	}
	shell.DashboardFlag(cmd)
	cmd.Flags().Bool("poll", false, "read deliveries through GitHub's API: for a machine that GitHub cannot reach")
	return cmd
}
