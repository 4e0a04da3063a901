package settings

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func hookConfig(t *testing.T, yaml string) (Config, error) {
	t.Helper()
	yaml = strings.ReplaceAll(yaml, "SECRET", write(t, 0o600, testSecret))
	yaml = strings.ReplaceAll(yaml, "SHORT", write(t, 0o600, "short"))
	yaml = strings.ReplaceAll(yaml, "OPEN", write(t, 0o644, testSecret))
	return server(write(t, 0o600, yaml), environment("HOME", "/h"), false)
}

func TestHooks(t *testing.T) {
	t.Parallel()
	got, err := hookConfig(t, `
hooks:
  prom: {kind: alertmanager, token_file: SECRET, repo: acme/shop, repos: [acme/web], environment: prod, per_minute: 600}
  errors:
    kind: sentry
    secret_file: SECRET
    projects: {shop-api: acme/shop, "4501": acme/web}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Hook{
		{Name: "errors", Kind: "sentry", Secret: NewSecret(testSecret), PerMinute: 120, Projects: map[string]string{"shop-api": "acme/shop", "4501": "acme/web"}},
		{Name: "prom", Kind: "alertmanager", Secret: NewSecret(testSecret), Repo: "acme/shop", Repos: []string{"acme/web"}, Environment: "prod", PerMinute: 600},
	}
	if !reflect.DeepEqual(got.Hooks, want) {
		t.Errorf("hooks %+v", got.Hooks)
	}
}

// What is wrong with a hook is said with its key, and never with its secret.
func TestHooksThatCannotBe(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		`hooks: {p: {token_file: SECRET, repo: a/b}}`:                                         "hooks.p has no kind",
		`hooks: {p: {kind: prometheus, token_file: SECRET, repo: a/b}}`:                       `must be one of alertmanager, sentry, generic`,
		`hooks: {p: {kind: alertmanager, repo: a/b}}`:                                         "hooks.p has no token_file",
		`hooks: {p: {kind: alertmanager, secret_file: SECRET, repo: a/b}}`:                    "hooks.p.secret_file is not for alertmanager: set token_file",
		`hooks: {p: {kind: generic, token_file: SECRET, repo: a/b}}`:                          "hooks.p.token_file is not for generic: set secret_file",
		`hooks: {p: {kind: alertmanager, token_file: SHORT, repo: a/b}}`:                      "has 5 characters; at least 16",
		`hooks: {p: {kind: alertmanager, token_file: OPEN, repo: a/b}}`:                       "chmod 600",
		`hooks: {p: {kind: alertmanager, token_file: SECRET}}`:                                "hooks.p has no repo",
		`hooks: {p: {kind: alertmanager, token_file: SECRET, repo: shop}}`:                    "a repository is named OWNER/NAME",
		`hooks: {p: {kind: alertmanager, token_file: SECRET, repo: a/b, repos: ["x"]}}`:       "a repository is named OWNER/NAME",
		`hooks: {p: {kind: alertmanager, token_file: SECRET, repo: a/b, projects: {x: a/b}}}`: "hooks.p.projects is for hooks of the kind sentry",
		`hooks: {p: {kind: sentry, secret_file: SECRET, projects: {x: shop}}}`:                "a repository is named OWNER/NAME",
		`hooks: {p: {kind: sentry, secret_file: SECRET, projects: {"x y": a/b}}}`:             "use letters, digits, points and dashes",
		`hooks: {"a/b": {kind: alertmanager, token_file: SECRET, repo: a/b}}`:                 "use letters, digits, points and dashes",
		`hooks: {p: {kind: alertmanager, token: x, repo: a/b}}`:                               `unknown key "token" in hooks.p`,
		`hooks: {p: {kind: alertmanager, token_file: SECRET, repo: a/b, per_minute: -1}}`:     "per_minute is -1",
		`hooks: [{kind: alertmanager}]`:                                                       "hooks must hold keys with values",
	} {
		_, err := hookConfig(t, yaml)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s:\n%v\nwant %q", yaml, err, want)
		}
	}
}

func TestHealthChecks(t *testing.T) {
	t.Parallel()
	got, err := hookConfig(t, `health_checks: {shop: {url: "https://shop.example.com/healthz", repo: acme/shop}, near: {url: "http://10.0.0.5:8080/", repo: acme/shop, environment: staging, expect: 204, contains: ok, every: 1m, fails: 5, private: true}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []HealthCheck{
		{Name: "near", URL: "http://10.0.0.5:8080/", Repo: "acme/shop", Environment: "staging", Expect: 204, Contains: "ok", Every: time.Minute,
			Fails: 5, Private: true},
		{Name: "shop", URL: "https://shop.example.com/healthz", Repo: "acme/shop", Expect: 200, Every: 30 * time.Second, Fails: 3},
	}
	if !reflect.DeepEqual(got.HealthChecks, want) {
		t.Errorf("health checks %+v", got.HealthChecks)
	}
	for yaml, want := range map[string]string{
		`health_checks: {x: {repo: a/b}}`:                                         "health_checks.x has no url",
		`health_checks: {x: {url: "https://e.example/"}}`:                         "health_checks.x has no repo",
		`health_checks: {x: {url: "http://e.example/", repo: a/b}}`:               "must be https, or `private: true`",
		`health_checks: {x: {url: "https://u:p@e.example/", repo: a/b}}`:          "must hold no user, password",
		`health_checks: {x: {url: "file:///etc/passwd", repo: a/b}}`:              "must be an address such as",
		`health_checks: {x: {url: "https://e.example/", repo: a/b, every: 500h}}`: "every is 500h",
		`health_checks: {x: {url: "https://e.example/", repo: a/b, every: 1s}}`:   "must be at least 5s",
	} {
		if _, err := hookConfig(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	const prometheus = `prometheus: {main: {url: "http://10.0.0.5:9090/"}}` + "\n"
	got, err := hookConfig(t, prometheus+`queries: {errors: {prometheus: main, repo: acme/shop, query: "rate(x[1m])", max: 0.02, worse_by: 0.5}, load: {prometheus: main, repo: acme/shop, environment: staging, query: up, min: 1, window: 30s}}`)
	if err != nil {
		t.Fatal(err)
	}
	main := Prometheus{Name: "main", URL: "http://10.0.0.5:9090"}
	want := []Query{
		{Name: "errors", Prometheus: main, Repo: "acme/shop", Query: "rate(x[1m])", Max: 0.02, WorseBy: 0.5, Window: 10 * time.Minute},
		{Name: "load", Prometheus: main, Repo: "acme/shop", Environment: "staging", Query: "up", Min: 1, Window: 30 * time.Second},
	}
	if !reflect.DeepEqual(got.Queries, want) {
		t.Errorf("queries %+v", got.Queries)
	}
	for yaml, want := range map[string]string{
		`queries: {x: {prometheus: other, repo: a/b, query: up, max: 1}}`:            "there is no prometheus.other",
		`queries: {x: {repo: a/b, query: up, max: 1}}`:                               "there is no prometheus.NAME",
		`queries: {x: {prometheus: main, repo: a/b, max: 1}}`:                        "queries.x has no query",
		`queries: {x: {prometheus: main, query: up, max: 1}}`:                        "queries.x has no repo",
		`queries: {x: {prometheus: main, repo: a/b, query: up}}`:                     "has no bound",
		`queries: {x: {prometheus: main, repo: a/b, query: up, max: 1, window: 1s}}`: "must be at least 10s",
		`queries: {x: {prometheus: main, repo: a/b, query: up, max: 1}}` + "\n" +
			`health_checks: {x: {url: "https://e.example/", repo: a/b}}`: "has the name of a health check",
	} {
		if _, err := hookConfig(t, prometheus+yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
	for yaml, want := range map[string]string{
		`prometheus: {main: {}}`: "prometheus.main has no url",
		`prometheus: {main: {url: "http://p.example", token_file: /x}}`: "must be https",
	} {
		if _, err := hookConfig(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
}
