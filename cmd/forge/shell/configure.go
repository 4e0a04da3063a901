package shell

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"forge/cmd/forge/settings"
)

type environment struct{}

// WithEnvironment has the commands that run under a context read these variables instead
// of the process's.
func WithEnvironment(ctx context.Context, getenv func(string) string) context.Context {
	return context.WithValue(ctx, environment{}, getenv)
}

// Getenv reads the environment of a command.
func Getenv(cmd *cobra.Command) func(string) string {
	if getenv, ok := cmd.Context().Value(environment{}).(func(string) string); ok {
		return getenv
	}
	return os.Getenv
}

// Configure reads the server's configuration and makes its logger.
func Configure(cmd *cobra.Command) (settings.Config, *slog.Logger, error) {
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		if _, err := os.Stat("forge.yml"); err == nil {
			path = "forge.yml"
		}
	}
	if err := checkLogFormat(cmd); err != nil {
		return settings.Config{}, nil, err
	}
	cfg, err := settings.Server(path, overridden(cmd, Getenv(cmd)))
	if err != nil {
		return cfg, nil, Usage("%w", err)
	}
	return cfg, Logger(cmd), nil
}

// The forms of log lines.
const (
	formatText = "text"
	formatJSON = "json"
)

func checkLogFormat(cmd *cobra.Command) error {
	if f, _ := cmd.Flags().GetString("log-format"); f != formatText && f != formatJSON && f != "" {
		return Usage("--log-format %s: there are %s and %s", f, formatText, formatJSON)
	}
	return nil
}

// Logger logs to the command's standard error: what operators of a server want to
// know, of other commands warnings alone, and with --verbose what developers want to
// know.
func Logger(cmd *cobra.Command) *slog.Logger {
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

// DashboardFlag lets a command say who may see the web pages; it goes before the
// environment and the file. See [overridden].
func DashboardFlag(cmd *cobra.Command) {
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

// Flags are those that all commands take.
func Flags(root *cobra.Command) {
	root.PersistentFlags().String("config", "", "the server's configuration file (default: forge.yml in the working directory, when there is one)")
	root.PersistentFlags().Bool("verbose", false, "log what a developer wants to know, too")
	root.PersistentFlags().String("log-format", formatText, "how log lines are written: text or json")
}
