package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Hook is a door for what monitors of production say: POST /hooks/NAME.
type Hook struct {
	Name        string
	Kind        string            // alertmanager, sentry, generic
	Secret      Secret            // the token that it is sent, or what it is signed with
	Repo        string            // that its messages are about, when they name none
	Repos       []string          // that they may name besides
	Environment string            // of messages that name none; "": production
	PerMinute   int               // messages that are taken
	Projects    map[string]string // of Sentry: project → repository
}

// hookFile is a hook in forge.yml.
type hookFile struct {
	Kind        string            `json:"kind"`
	TokenFile   string            `json:"token_file"`
	SecretFile  string            `json:"secret_file"`
	Repo        string            `json:"repo"`
	Repos       []string          `json:"repos"`
	Environment string            `json:"environment"`
	PerMinute   int               `json:"per_minute"`
	Projects    map[string]string `json:"projects"`
}

// HealthCheck is a look at a service's health that the server makes again and again.
type HealthCheck struct {
	Name        string
	URL         string
	Repo        string
	Environment string // "": production
	Expect      int    // status of HTTP
	Contains    string // text that the answer must hold
	Every       time.Duration
	Fails       int  // in a row, until it is an incident
	Private     bool // its address may be one that is not public
}

// healthFile is a health check in forge.yml.
type healthFile struct {
	URL         string        `json:"url"`
	Repo        string        `json:"repo"`
	Environment string        `json:"environment"`
	Expect      int           `json:"expect"`
	Contains    string        `json:"contains"`
	Every       time.Duration `json:"every"`
	Fails       int           `json:"fails"`
	Private     bool          `json:"private"`
}

// healthEvery is how often a service is asked at most.
const healthEvery = 5 * time.Second

// healthChecks takes the health checks.
func (l *loader) healthChecks() {
	for _, name := range slices.Sorted(maps.Keys(l.file.HealthChecks)) {
		f := l.file.HealthChecks[name]
		key := "health_checks." + name
		switch {
		case f.URL == "":
			l.problem("%s has no url", key)
		case strings.HasPrefix(f.URL, "http://") && !f.Private:
			l.problem("%s.url must be https, or `private: true`", key)
		case f.Repo == "":
			l.problem("%s has no repo: name the repository whose service it is, as OWNER/NAME", key)
		case f.Every != 0 && f.Every < healthEvery:
			l.problem("%s.every is %s; it must be at least %s", key, f.Every, healthEvery)
		}
		l.config.HealthChecks = append(l.config.HealthChecks, HealthCheck{Name: name, URL: f.URL, Repo: f.Repo, Environment: f.Environment, Expect: cmp.Or(f.Expect, 200),
			Contains: f.Contains, Every: cmp.Or(f.Every, 30*time.Second), Fails: cmp.Or(f.Fails, 3), Private: f.Private})
	}
}

// checkHealthURL wants an address that can be asked without a secret.
func checkHealthURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return ""
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be an address such as https://shop.example.com/healthz"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must hold no user, password, query or fragment"
	}
	return ""
}

const hookPerMinute = 120

// hooks takes the hooks, and reads their secrets.
func (l *loader) hooks() {
	for _, name := range slices.Sorted(maps.Keys(l.file.Hooks)) {
		f := l.file.Hooks[name]
		key := "hooks." + name
		h := Hook{Name: name, Kind: f.Kind, Repo: f.Repo, Repos: f.Repos, Environment: f.Environment, PerMinute: f.PerMinute, Projects: f.Projects}
		if h.PerMinute == 0 {
			h.PerMinute = hookPerMinute
		}
		own, ownFile, other, otherFile := "token_file", f.TokenFile, "secret_file", f.SecretFile
		if f.Kind != "alertmanager" {
			own, ownFile, other, otherFile = other, otherFile, own, ownFile
		}
		switch {
		case f.Kind == "":
			l.problem("%s has no kind: add `kind`: one of alertmanager, sentry, generic", key)
			continue
		case otherFile != "":
			l.problem("%s.%s is not for %s: set %s, which %s", key, other, f.Kind, own, hookProof[f.Kind])
		case ownFile == "":
			l.problem("%s has no %s, which %s: without it anybody could send alerts", key, own, hookProof[f.Kind])
		default:
			h.Secret = l.secret(key+"."+own, "", ownFile)
			if n := len(h.Secret.Reveal()); h.Secret.Set() && n < 16 {
				l.problem("%s.%s has %d characters; at least 16 are needed: make one with openssl rand -hex 32", key, own, n)
			}
		}
		switch {
		case f.Kind != "sentry" && len(f.Projects) > 0:
			l.problem("%s.projects is for hooks of the kind sentry", key)
		case f.Repo == "" && len(f.Repos) == 0 && len(f.Projects) == 0:
			l.problem("%s has no repo: name the repository that its messages are about, as OWNER/NAME", key)
		}
		l.config.Hooks = append(l.config.Hooks, h)
	}
}

// hookProof says what each kind of hook's file holds.
var hookProof = map[string]string{
	"alertmanager": "holds the token that Alertmanager sends as Bearer",
	"sentry":       "holds the client secret of Sentry's integration",
	"generic":      "holds the secret of Standard Webhooks",
}

var repoForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$`)

func checkRepo(s string) string {
	if s == "" || repoForm.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("is %q; a repository is named OWNER/NAME", s)
}

// checkListedRepo is for entries of lists, which are never empty.
func checkListedRepo(s string) string {
	if s == "" {
		return "is empty: remove it"
	}
	return checkRepo(s)
}
