package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/settings"
	"forge/github"
)

// newAccess makes what stands in front of the web pages of a server. app is needed
// when people sign in with GitHub.
func newAccess(cfg settings.Config, app *github.App, log *slog.Logger) (*access.Access, error) {
	o := access.Options{Mode: cfg.Dashboard, GitHubURL: cfg.GitHubURL, User: osUser(), PublicURL: cfg.PublicURL, Log: log}
	if cfg.Dashboard == access.GitHub {
		in, err := github.NewSignIn(github.SignInOptions{BaseURL: cfg.GitHubURL, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret.Reveal(), Timeout: cfg.CallTimeout})
		if err != nil {
			return nil, err
		}
		o.Secret, o.SignIn, o.Permission = []byte(cfg.ClientSecret.Reveal()), in, app.Permission
	}
	return access.New(o)
}

// dashboardFlag lets a command say who may see the web pages; it goes before the
// environment and the file. See [overridden].
func dashboardFlag(cmd *cobra.Command) {
	cmd.Flags().String("dashboard", "", "who may see the web pages: off, local (this machine) or github (people sign in); default: as configured, or local")
}

// overridden is an environment in which a command's flags go before the variables.
func overridden(cmd *cobra.Command, getenv func(string) string) func(string) string {
	return func(name string) string {
		if f := cmd.Flags().Lookup("dashboard"); f != nil && f.Changed && name == "FORGE_DASHBOARD" {
			return f.Value.String()
		}
		return getenv(name)
	}
}
