package githubtest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
)

// appManifest is what app.yml says about the App, or the page that registers it.
type appManifest struct {
	Name           string            `yaml:"name" json:"name"`
	URL            string            `yaml:"url" json:"url"`
	Description    string            `yaml:"description" json:"description"`
	Public         bool              `yaml:"public" json:"public"`
	HookAttributes map[string]any    `yaml:"hook_attributes" json:"hook_attributes"`
	RedirectURL    string            `yaml:"redirect_url" json:"redirect_url"`
	SetupURL       string            `yaml:"setup_url" json:"setup_url"`
	SetupOnUpdate  bool              `yaml:"setup_on_update" json:"setup_on_update"`
	Callbacks      []string          `yaml:"callback_urls" json:"callback_urls"`
	OAuthOnInstall bool              `yaml:"request_oauth_on_install" json:"request_oauth_on_install"`
	Permissions    map[string]string `yaml:"default_permissions" json:"default_permissions"`
	Events         []string          `yaml:"default_events" json:"default_events"`
}

func readManifest(text []byte) (appManifest, error) {
	var m appManifest
	if len(text) == 0 {
		return m, errors.New("Options.Manifest is empty: give the content of app.yml")
	}
	if err := yaml.UnmarshalWithOptions(text, &m, yaml.Strict()); err != nil {
		return m, fmt.Errorf("read the App's manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("read the App's manifest: %w", err)
	}
	sort.Strings(m.Events)
	return m, nil
}

// check refuses what GitHub does.
func (m *appManifest) check() error {
	if m.Name == "" || m.URL == "" {
		return errors.New("name and url are needed")
	}
	if err := checkCallbacks(m.Callbacks); err != nil {
		return fmt.Errorf("callback_urls: %w", err)
	}
	for p, level := range m.Permissions {
		if levelRank[level] == 0 {
			return fmt.Errorf("default_permissions.%s is %q; use read, write or admin", p, level)
		}
	}
	for _, e := range m.Events {
		if e == "installation" || e == "installation_repositories" {
			return fmt.Errorf("default_events must not name %s; GitHub always sends it", e)
		}
	}
	return nil
}

func slugOf(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name), "-")
}

var levelRank = map[string]int{"read": 1, "write": 2, "admin": 3}

// builtinPermissions is cut from the table that the project's contract files
// hold; its figures come from GitHub's documentation of 2026-03-10.
//
//go:embed data/permissions.json
var builtinPermissions []byte

type operation struct {
	id     string
	Method string   `json:"method"`
	Path   string   `json:"path"`
	Needs  []string `json:"permissions"` // "issues:write"; any of them, or all
	Note   string   `json:"note"`        // "one of …" for any
	Auth   string   `json:"auth"`        // "app JWT" where no token will do
}

type permissionTable struct {
	REST     map[string]*operation `json:"rest"`
	GraphQL  map[string][]string   `json:"graphql"`
	Webhooks map[string]string     `json:"webhooks"`
}

func readPermissions(text []byte) (*permissionTable, error) {
	if text == nil {
		text = builtinPermissions
	}
	var t permissionTable
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("read the table of permissions: %w", err)
	}
	for id, op := range t.REST {
		op.id = id
	}
	return &t, nil
}

// grants says whether a set of permissions covers one need like "issues:write".
func grants(have map[string]string, need string) bool {
	name, level, _ := strings.Cut(need, ":")
	level, _, _ = strings.Cut(level, " ")
	if name == "metadata" {
		return true // every App has it
	}
	return levelRank[have[name]] >= levelRank[level]
}

// allowed says whether the permissions cover an operation.
func (op *operation) allowed(have map[string]string) bool {
	if len(op.Needs) == 0 {
		return true
	}
	ok := func(need string) bool { return grants(have, need) }
	if strings.HasPrefix(op.Note, "one of") {
		return slices.ContainsFunc(op.Needs, ok)
	}
	return !slices.ContainsFunc(op.Needs, func(n string) bool { return !ok(n) })
}

// hears says whether an App with these permissions and subscriptions is told of
// an event. Buttons and re-runs of checks are told without a subscription.
func (t *permissionTable) hears(have map[string]string, subscribed []string, event, action string) bool {
	switch {
	case event == "ping" || strings.HasPrefix(event, "installation"):
		return true
	case (event == "check_run" || event == "check_suite") && (strings.HasPrefix(action, "re")):
		return grants(have, "checks:write")
	}
	need, _, _ := strings.Cut(t.Webhooks[event], " ")
	if event == "merge_group" { // the table does not have it; GitHub's page of webhook events does
		need = "merge_queues:read"
	}
	need = strings.TrimSuffix(need, ";")
	return slices.Contains(subscribed, event) && need != "" && grants(have, need)
}
