package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/settings"
	"forge/github"
)

// newAccess makes what stands in front of the web pages of a server. app is needed
// when people sign in with GitHub.
func newAccess(cfg settings.Config, app *github.App, log *slog.Logger) (*access.Access, error) {
	o := access.Options{Mode: cfg.Dashboard, GitHubURL: cfg.GitHubURL, User: OSUser(), PublicURL: cfg.PublicURL, Log: log}
	if cfg.Dashboard == access.Local {
		o.KeyFile = filepath.Join(cfg.StateDir, "dashboard.key")
		var err error
		if o.Key, err = keptKey(o.KeyFile); err != nil {
			return nil, err
		}
	}
	if cfg.Dashboard == access.GitHub {
		in, err := github.NewSignIn(github.SignInOptions{BaseURL: cfg.GitHubURL, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret.Reveal(), Timeout: cfg.CallTimeout})
		if err != nil {
			return nil, err
		}
		o.Secret, o.SignIn, o.Permission = []byte(cfg.ClientSecret.Reveal()), in, app.Permission
	}
	return access.New(o)
}

// keptKey reads the key of the pages, or makes one that only this user can read.
func keptKey(file string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 { // nobody had written it yet
		data = []byte(rand.Text() + "\n")
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
	}
	if err != nil {
		return "", fmt.Errorf("the key of the web pages: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
