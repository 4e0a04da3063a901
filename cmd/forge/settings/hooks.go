package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
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
		l.config.HealthChecks = append(l.config.HealthChecks,
			HealthCheck{Name: name, URL: f.URL, Repo: f.Repo, Environment: f.Environment, Expect: cmp.Or(f.Expect, 200),
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

// Prometheus is a server that answers queries.
type Prometheus struct {
	Name  string
	URL   string // of the server, without /api/v1
	Token Secret // sent as Bearer; may be not set
}

// prometheusFile is one in forge.yml.
type prometheusFile struct {
	URL       string `json:"url"`
	TokenFile string `json:"token_file"`
}

// Query is asked while a deployment is watched.
type Query struct {
	Name        string
	Prometheus  Prometheus
	Repo        string
	Environment string // "": production
	Query       string // in PromQL, for one number
	Max         float64
	Min         float64
	WorseBy     float64       // share above the window before the deployment
	Window      time.Duration // that is looked at
}

// queryFile is a query in forge.yml.
type queryFile struct {
	Prometheus  string        `json:"prometheus"`
	Repo        string        `json:"repo"`
	Environment string        `json:"environment"`
	Query       string        `json:"query"`
	Max         float64       `json:"max"`
	Min         float64       `json:"min"`
	WorseBy     float64       `json:"worse_by"`
	Window      time.Duration `json:"window"`
}

const (
	queryWindow      = 10 * time.Minute
	queryWindowLeast = 10 * time.Second
)

// queries takes the queries, and the servers that answer them.
func (l *loader) queries() {
	servers := map[string]Prometheus{}
	for _, name := range slices.Sorted(maps.Keys(l.file.Prometheus)) {
		f := l.file.Prometheus[name]
		p := Prometheus{Name: name, URL: strings.TrimSuffix(f.URL, "/")}
		switch {
		case f.URL == "":
			l.problem("prometheus.%s has no url", name)
		case f.TokenFile != "" && !strings.HasPrefix(f.URL, "https://"):
			l.problem("prometheus.%s.url must be https, as a token is sent there", name)
		case f.TokenFile != "":
			p.Token = l.secret("prometheus."+name+".token_file", "", f.TokenFile)
		}
		servers[name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(l.file.Queries)) {
		f := l.file.Queries[name]
		key := "queries." + name
		_, known := servers[f.Prometheus]
		_, taken := l.file.HealthChecks[name]
		switch {
		case taken:
			l.problem("%s has the name of a health check: give it another", key)
		case !known:
			l.problem("%s.prometheus is %q, and there is no prometheus.%s: add it, with its url", key, f.Prometheus, cmp.Or(f.Prometheus, "NAME"))
		case f.Query == "":
			l.problem("%s has no query", key)
		case f.Repo == "":
			l.problem("%s has no repo: name the repository whose service it is, as OWNER/NAME", key)
		case f.Max == 0 && f.Min == 0 && f.WorseBy == 0:
			l.problem("%s has no bound: set max, min or worse_by, such as worse_by: 0.5 for half as much again as before", key)
		case f.Window != 0 && f.Window < queryWindowLeast:
			l.problem("%s.window is %s; it must be at least %s", key, f.Window, queryWindowLeast)
		}
		l.config.Queries = append(l.config.Queries, Query{Name: name, Prometheus: servers[f.Prometheus], Repo: f.Repo, Environment: f.Environment, Query: f.Query,
			Max: f.Max, Min: f.Min, WorseBy: f.WorseBy, Window: cmp.Or(f.Window, queryWindow)})
	}
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

var repoForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$`)

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
