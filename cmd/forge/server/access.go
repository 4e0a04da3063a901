package server

import (
	"log/slog"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/settings"
	"forge/github"
)

// newAccess makes what stands in front of the web pages of a server. app is needed
// when people sign in with GitHub.
func newAccess(cfg settings.Config, app *github.App, log *slog.Logger) (*access.Access, error) {
	o := access.Options{Mode: cfg.Dashboard, GitHubURL: cfg.GitHubURL, User: OSUser(), PublicURL: cfg.PublicURL, Log: log}
	if cfg.Dashboard == access.GitHub {
		in, err := github.NewSignIn(github.SignInOptions{BaseURL: cfg.GitHubURL, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret.Reveal(), Timeout: cfg.CallTimeout})
		if err != nil {
			return nil, err
		}
		o.Secret, o.SignIn, o.Permission = []byte(cfg.ClientSecret.Reveal()), in, app.Permission
	}
	return access.New(o)
}
