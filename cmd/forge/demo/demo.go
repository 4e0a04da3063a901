// Package demo is what the demo works on: a small repository and its issue, the tape
// that stands in for the model, and the settings of a server that works on them with
// a GitHub on this machine. It stores nothing.
package demo

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"

	"forge/github/githubtest"
)

// files are the demo's own. app.yml is the App's manifest; a test holds it equal to
// the one at the top of the tree, which go:embed cannot reach.
//
//go:embed repo.txtar own_test.txt issue.md tape.txtar modules.md modules.txtar app.yml
var files embed.FS

func embedded(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return data
}

// Manifest is the App's manifest.
func Manifest() []byte { return embedded("app.yml") }

// Story is what a demo shows: an issue, and the tape that stands in for the model.
type Story struct {
	issue, tape string            // no tape: a model of the user's own
	Settings    string            // of the repository; "" for none
	Answers     map[string]string // what the maintainer says to the questions of modules
}

// The stories.
var (
	Loop    = Story{issue: "issue.md", tape: "tape.txtar"}
	Modules = Story{issue: "modules.md", tape: "modules.txtar", Settings: "modules:\n  mode: auto\n",
		Answers: map[string]string{"shipping": "choose the same as for tax"}}
	// Own has a test that fails, too: where a small model reviews nothing, it shows the work.
	Own = Story{issue: "issue.md"}
)

// Tape is what stands in for the model; nil for none.
func (s Story) Tape() []byte {
	if s.tape == "" {
		return nil
	}
	return embedded(s.tape)
}

// TempDir makes a directory that the worker's user may pass through but not read.
func TempDir() (string, error) {
	dir, err := os.MkdirTemp("", "forge-demo-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}

// Repository puts the demo's repository on the local GitHub and opens its issue.
func (s Story) Repository(gh *githubtest.Server) (issue int, err error) {
	list := map[string]string{}
	if s.Settings != "" {
		list[".github/forge.yml"] = s.Settings
	}
	for _, f := range txtar.Parse(embedded("repo.txtar")).Files {
		list[f.Name] = string(f.Data)
	}
	if s.tape == "" {
		list["discount_test.go"] = string(embedded("own_test.txt"))
	}
	repo, err := gh.AddRepo("acme", "cart", list)
	if err != nil {
		return 0, err
	}
	if _, err := gh.Install(repo); err != nil {
		return 0, err
	}
	title, body, _ := strings.Cut(string(embedded(s.issue)), "\n")
	return gh.As("acme").OpenIssue(repo, title, strings.TrimSpace(body))
}

// Environment writes the App's key and a tape into dir and returns the environment of
// a server that works with them on the local GitHub.
func Environment(gh *githubtest.Server, dir string, tape []byte) (map[string]string, error) {
	key, model := filepath.Join(dir, "app.pem"), filepath.Join(dir, "tape.txtar")
	if err := errors.Join(os.WriteFile(key, gh.PrivateKey, 0o600), os.WriteFile(model, tape, 0o600)); err != nil {
		return nil, err
	}
	return map[string]string{
		"FORGE_APP_ID": fmt.Sprint(gh.AppID), "FORGE_PRIVATE_KEY_FILE": key, "FORGE_WEBHOOK_SECRET": gh.WebhookSecret,
		"FORGE_GITHUB_URL": gh.URL, "FORGE_WRITE_INTERVAL": "0s", "FORGE_LISTEN": "127.0.0.1:0", "FORGE_DASHBOARD_LISTEN": "127.0.0.1:0",
		"FORGE_STATE_DIR": filepath.Join(dir, "state"), "FORGE_MODEL": "tape:" + model,
	}, nil
}
