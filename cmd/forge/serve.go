package main

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the App: take webhooks in and work on runs", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := configure(cmd)
			if err != nil {
				return err
			}
			if err := cfg.Ready(); err != nil {
				return usage("%w", err)
			}
			s, err := server.Listen(cmd.Context(), server.Options{Config: cfg, Log: log})
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
	dashboardFlag(cmd)
	cmd.Flags().Bool("poll", false, "read deliveries through GitHub's API: for a machine that GitHub cannot reach")
	return cmd
}

// configure reads the server's configuration and makes its logger.
func configure(cmd *cobra.Command) (settings.Config, *slog.Logger, error) {
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		if _, err := os.Stat("forge.yml"); err == nil {
			path = "forge.yml"
		}
	}
	if err := checkLogFormat(cmd); err != nil {
		return settings.Config{}, nil, err
	}
	cfg, err := settings.Server(path, overridden(cmd, os.Getenv))
	if err != nil {
		return cfg, nil, usage("%w", err)
	}
	return cfg, logger(cmd), nil
}

// The forms of log lines.
const (
	formatText = "text"
	formatJSON = "json"
)

func checkLogFormat(cmd *cobra.Command) error {
	if f, _ := cmd.Flags().GetString("log-format"); f != formatText && f != formatJSON && f != "" {
		return usage("--log-format %s: there are %s and %s", f, formatText, formatJSON)
	}
	return nil
}

// logger logs to the command's standard error: what operators of a server want to
// know, of other commands warnings alone, and with --verbose what developers want to
// know.
func logger(cmd *cobra.Command) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	if cmd.Name() == "serve" {
		o.Level = slog.LevelInfo
	}
	if v, _ := cmd.Flags().GetBool("verbose"); v {
		o.Level = slog.LevelDebug
	}
	if f, _ := cmd.Flags().GetString("log-format"); f == formatJSON {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), o))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), o))
}

// dashboardFlag lets a command say who may see the web pages; it goes before the
// environment and the file. See [overridden].
func dashboardFlag(cmd *cobra.Command) {
	cmd.Flags().String("dashboard", "", "who may see the web pages: off, local (this machine) or github (people sign in); default: as configured, or local")
}

// overridden is an environment in which a command's flags go before the variables.
func overridden(cmd *cobra.Command, getenv func(string) string) func(string) string {
	return func(name string) string {
		if flag := map[string]string{"FORGE_DASHBOARD": "dashboard", "FORGE_POLL": "poll"}[name]; flag != "" {
			if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
				return f.Value.String()
			}
		}
		return getenv(name)
	}
}
