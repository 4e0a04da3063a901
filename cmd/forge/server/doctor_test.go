package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/settings"
	"forge/github"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/store"
	"forge/pipeline/workspace/workspacetest"
)

// patient is a server that the doctor looks at, and what it depends on.
type patient struct {
	sandbox bool // looked at in earnest
	gh      *githubtest.Server
	dir     string
	env     map[string]string
	cfg     func(*settings.Config)
	repo    string
	prices  bool
}

// web answers every request with a status and a text.
func web(t *testing.T, status int, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// newPatient is one that is well, up to the change.
func newPatient(t *testing.T, manifest []byte, change func(*patient)) []Diagnosis {
	t.Helper()
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if manifest == nil {
		manifest = demo.Manifest()
	}
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	env, err := demo.Environment(gh, dir, []byte("-- planner 0/1 --\n>>> submit\nsummary: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gh.AddRepo("acme", "greet", map[string]string{"README.md": "x", ".github/forge.yml": "mode: auto\n"}); err != nil {
		t.Fatal(err)
	}
	env["FORGE_UNSAFE_NO_SANDBOX"] = "true" // its own cases look at the sandbox
	p := &patient{gh: gh, dir: dir, env: env, cfg: func(*settings.Config) {}}
	gh.SetHook(web(t, 202, "taken in") + "/webhook")
	if _, err := gh.Install("acme/greet"); err != nil {
		t.Fatal(err)
	}
	change(p)
	if err := gh.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Server("", func(k string) string { return p.env[k] })
	if err != nil {
		t.Fatal(err)
	}
	p.cfg(&cfg)
	o := Options{Config: cfg, Log: slog.New(slog.DiscardHandler), HostTool: sandboxtest.GoAndGit, Worker: sandboxtest.Worker(t)}
	if !p.sandbox {
		o.Workspaces = workspacetest.New(t, workspacetest.GoAlone)
	}
	return Doctor(t.Context(), o, p.repo, p.prices)
}

// withSettings is a repository with these settings.
func withSettings(settings string) func(*patient) {
	return func(p *patient) {
		p.repo = "acme/shipping"
		if _, err := p.gh.AddRepo("acme", "shipping", map[string]string{".github/forge.yml": settings}); err != nil {
			panic(err)
		}
		if _, err := p.gh.Install("acme/shipping"); err != nil {
			panic(err)
		}
	}
}

// has reports whether a diagnosis of that area and grade says all the words, in what
// it says or in what to do.
func has(list []Diagnosis, area string, g Grade, words ...string) bool {
	for _, d := range list {
		text := d.Says + " " + d.Fix
		ok := d.Area == area && d.Grade == g && (g == GradeOK || d.Fix != "")
		for _, w := range words {
			ok = ok && strings.Contains(text, w)
		}
		if ok {
			return true
		}
	}
	return false
}

func told(list []Diagnosis) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s %s: %s → %s\n", d.Grade, d.Area, d.Says, d.Fix)
	}
	return b.String()
}

// Covers D2: a server that lacks nothing has nothing to mend.
func TestDoctorFindsNothing(t *testing.T) {
	list := newPatient(t, nil, func(p *patient) {
		p.repo = "acme/greet"
		if err := p.gh.As("acme").Label("acme/greet", mustIssue(t, p.gh), "forge"); err != nil {
			t.Fatal(err)
		}
	})
	for _, d := range list {
		if d.Grade != GradeOK && d.Area != "sandbox" && d.Area != "settings" { // without a sandbox, and told so
			t.Errorf("%+v", d)
		}
	}
	for _, area := range []string{"disk", "database", "git", "model", "github", "webhook", "installations", "repository"} {
		if !has(list, area, GradeOK) {
			t.Errorf("%s is not told:\n%s", area, told(list))
		}
	}
}

// Covers D2: to look leaves nothing behind where no server has been. What a person makes
// who only looks, as root perhaps, a server of another user could not use.
func TestDoctorMakesNothing(t *testing.T) {
	for name, there := range map[string]bool{"no state directory": false, "an empty one": true} {
		var state string
		list := newPatient(t, nil, func(p *patient) {
			state, p.sandbox = filepath.Join(p.dir, "new", "state"), true
			p.env["FORGE_STATE_DIR"] = state
			delete(p.env, "FORGE_DATABASE_URL")
			if there {
				if err := os.MkdirAll(state, 0o711); err != nil {
					t.Fatal(err)
				}
			}
			p.cfg = func(c *settings.Config) {
				c.UnsafeNoSandbox, c.Dependencies, c.Registries = false, true, nowhere("go", "npm", "pypi", "cargo", "maven", "rubygems", "composer")
			}
		})
		if entries, err := os.ReadDir(state); len(entries) > 0 || there != (err == nil) {
			t.Errorf("%s: then it holds %v (%v)", name, entries, err)
		}
		if _, err := os.Stat(filepath.Dir(state)); !there && err == nil {
			t.Errorf("%s: the directory above is made", name)
		}
		if !has(list, "database", GradeOK, "forge.db is not there yet") || has(list, "disk", GradeBad) || there == has(list, "disk", GradeOK, "is not there yet") {
			t.Errorf("%s:\n%s", name, told(list))
		}
	}
}

// Covers D2: a rule that refuses Forge's pushes or its pull request is named, one that is
// not known, too; one that stands in nobody's way is not.
func TestDoctorNamesRules(t *testing.T) {
	d := &doctor{list: map[string][]Diagnosis{}}
	d.o.Config.Slug = "forge"
	repo := pipeline.Repo{Owner: "acme", Name: "shop", DefaultBranch: "main"}
	own, base := "forge/issue-1-doctor", "main"
	for _, c := range []struct {
		rule, branch, says string
	}{
		{"max_file_size", own, "larger file"}, {"file_extension_restriction", own, "paths.protected"}, {"max_file_path_length", own, "longer path"},
		{"required_deployments", own, "leave forge/** out"}, {"required_deployments", base, "once it was deployed"},
		{"required_linear_history", own, "merges the base branch"}, {"workflows", own, "leave forge/** out"}, {"code_scanning", own, "leave forge/** out"},
		{"pull_request", own, "refuses every push"}, {"required_status_checks", own, "not checked yet"}, {"made_up_tomorrow", own, "not known here"},
		{"pull_request", base, ""}, {"deletion", own, ""}, {"non_fast_forward", own, ""}, {"required_signatures", own, ""}, {"made_up_tomorrow", base, ""},
	} {
		d.list["repository"] = nil
		d.rule(repo, c.branch, "", github.Rule{Type: c.rule})
		if got := told(d.list["repository"]); c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s of %s: %q, want %q", c.rule, c.branch, got, c.says)
		}
	}
}

func TestShortVersion(t *testing.T) {
	for said, want := range map[string]string{"go1.26.8": "1.26.8", "Composer version 2.7.1 2024-02-09": "2.7.1", "v22.1.0": "22.1.0",
		"pip 23.0.1 from /usr": "23.0.1", "Apache Maven 3.9.9 (8e8579a)": "3.9.9", "of its own": "of its own"} {
		if got := shortVersion(said); got != want {
			t.Errorf("shortVersion(%q) = %q, want %q", said, got, want)
		}
	}
}

func mustIssue(t *testing.T, gh *githubtest.Server) int {
	t.Helper()
	n, err := gh.As("acme").OpenIssue("acme/greet", "A title", "and a body")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// nowhere are registries that cannot be reached, so that none outside is tried.
func nowhere(kinds ...string) []settings.Registry {
	var out []settings.Registry
	for _, kind := range kinds {
		out = append(out, settings.Registry{Name: kind, Kind: kind, URL: "http://127.0.0.1:1", Private: true})
	}
	return out
}

// Covers D2: each fault is named, with what to do.
func TestDoctorFindsFaults(t *testing.T) {
	t.Parallel()
	set := func(k, v string) func(*patient) { return func(p *patient) { p.env[k] = v } }
	openai := func(url string) func(*patient) {
		return func(p *patient) {
			p.env["FORGE_MODEL"], p.env["OPENAI_BASE_URL"], p.env["OPENAI_API_KEY"] = "openai/some-model", url, "sk-test-0123456789"
		}
	}
	without := func(line string) []byte {
		var kept []string
		for l := range strings.Lines(string(demo.Manifest())) {
			if !strings.HasPrefix(strings.TrimSpace(l), line) {
				kept = append(kept, l)
			}
		}
		return []byte(strings.Join(kept, ""))
	}
	others := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"other"}]}`)
	}))
	t.Cleanup(others.Close)
	installs := func(p *patient) {
		p.cfg = func(c *settings.Config) { c.UnsafeNoSandbox, c.Dependencies = false, true }
	}
	rules := func(list ...githubtest.Rule) func(*patient) {
		return func(p *patient) {
			p.repo = "acme/greet"
			if err := p.gh.SetRules(p.repo, list...); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		name     string
		manifest []byte
		change   func(*patient)
		area     string
		grade    Grade
		words    []string
	}{
		{"address taken", nil, set("FORGE_LISTEN", strings.TrimPrefix(others.URL, "http://")), "network", GradeBad, []string{"another program listens", "set listen"}},
		{"address of another machine", nil, set("FORGE_LISTEN", "192.0.2.1:8080"), "network", GradeBad, []string{"192.0.2.1", "an address of this machine"}},
		{"a server that runs", nil, set("FORGE_LISTEN", strings.TrimPrefix(web(t, 200, "ok\n"), "http://")), "network", GradeOK, []string{"a server of Forge's runs"}},
		{"pages' address taken", nil, set("FORGE_DASHBOARD_LISTEN", strings.TrimPrefix(others.URL, "http://")), "network", GradeBad, []string{"dashboard_listen", "another program"}},
		{"one address for both", nil, func(p *patient) {
			p.env["FORGE_LISTEN"], p.env["FORGE_DASHBOARD_LISTEN"] = "127.0.0.1:8555", "127.0.0.1:8555"
		}, "network", GradeBad, []string{"both 127.0.0.1:8555"}},
		{"settings under another name", nil, func(p *patient) {
			p.repo = "acme/named"
			if _, err := p.gh.AddRepo("acme", "named", map[string]string{".github/forge.yaml": "mode: manual\n"}); err != nil {
				t.Error(err)
			}
			if _, err := p.gh.Install(p.repo); err != nil {
				t.Error(err)
			}
		}, "repository", GradeBad, []string{".github/forge.yaml", "rename it"}},
		{"no App", nil, func(p *patient) { delete(p.env, "FORGE_APP_ID") }, "github", GradeWarn, []string{"no App is configured", "app_id"}},
		{"what serve needs", nil, func(p *patient) { delete(p.env, "FORGE_WEBHOOK_SECRET") }, "settings", GradeBad, []string{"webhook_secret is missing"}},
		{"App id of another", nil, set("FORGE_APP_ID", "99"), "github", GradeBad, []string{"does not accept", "99", "key"}},
		{"GitHub away", nil, set("FORGE_GITHUB_URL", "http://127.0.0.1:1"), "github", GradeBad, []string{"github_url"}},
		{"GitHub's address is a web page's", nil, func(p *patient) { p.env["FORGE_GITHUB_URL"] = web(t, 200, "<!DOCTYPE html><title>Welcome</title>") },
			"github", GradeBad, []string{"is not JSON", "github_url"}},
		{"permission", without("checks:"), func(*patient) {}, "github", GradeBad, []string{"checks: write", "Permissions & events"}},
		{"event", without("- check_suite"), func(*patient) {}, "github", GradeBad, []string{"check_suite"}},
		{"not installed", nil, func(p *patient) { _ = p.gh.Uninstall("acme") }, "installations", GradeBad, []string{"nowhere", "installations/new"}},
		{"suspended", nil, func(p *patient) { _ = p.gh.Suspend("acme", true) }, "installations", GradeBad, []string{"acme has suspended"}},
		{"webhook elsewhere", nil, func(p *patient) { p.gh.SetHook("http://127.0.0.1:1/hooks") }, "webhook", GradeBad, []string{"/hooks", "/webhook"}},
		{"webhook not answered", nil, func(p *patient) {
			p.gh.SetHook("http://127.0.0.1:1/webhook")
			mustIssue(t, p.gh)
		}, "webhook", GradeBad, []string{"failed", "reachable"}},
		{"webhook's secret", nil, func(p *patient) {
			p.gh.SetHook(web(t, 401, "wrong signature") + "/webhook")
			mustIssue(t, p.gh)
		}, "webhook", GradeBad, []string{"401", "webhook_secret"}},
		{"webhook and pages on two hosts", nil, set("FORGE_PUBLIC_URL", "https://forge.example.com"), "webhook", GradeWarn, []string{"public_url is https://forge.example.com"}},
		{"state directory", nil, func(p *patient) {
			file := filepath.Join(p.dir, "file")
			_ = os.WriteFile(file, nil, 0o600)
			p.env["FORGE_STATE_DIR"] = filepath.Join(file, "state")
		}, "disk", GradeBad, []string{"state_dir"}},
		{"state directory that cannot be made", nil, set("FORGE_STATE_DIR", "/proc/forge/state"), "disk", GradeBad, []string{"cannot be made in /"}},
		{"database that is none", nil, func(p *patient) {
			file := filepath.Join(p.dir, "text")
			_ = os.WriteFile(file, []byte(strings.Repeat("this is no database ", 100)), 0o600)
			p.env["FORGE_DATABASE_URL"] = file
		}, "database", GradeBad, []string{"database_url"}},
		{"database away", nil, set("FORGE_DATABASE_URL", "postgres://forge@127.0.0.1:1/forge?connect_timeout=1"), "database", GradeBad, []string{"postgres://"}},
		{"database for all to read", nil, func(p *patient) {
			file := filepath.Join(p.dir, "open.db")
			db, err := store.Open(t.Context(), file, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Close(), os.Chmod(file, 0o644)); err != nil {
				t.Fatal(err)
			}
			p.env["FORGE_DATABASE_URL"] = file
		}, "database", GradeWarn, []string{"chmod 600"}},
		{"backups in a file", nil, set("FORGE_BACKUP_DIR", "/etc/passwd"), "database", GradeWarn, []string{"/etc/passwd: not a directory", "backup_dir"}},
		{"backups where nothing can be made", nil, set("FORGE_BACKUP_DIR", "/proc/forge/backups"), "database", GradeWarn, []string{"cannot be made in /", "backup_dir"}},
		{"nobody to tell", nil, func(p *patient) {
			p.cfg = func(c *settings.Config) {
				c.Subscribers = []settings.Subscriber{{Name: "chat", Kind: "slack", URL: settings.NewSecret("https://hooks.invalid/secret-path")}}
			}
		}, "network", GradeWarn, []string{"subscribers.chat: hooks.invalid cannot be found", "url_file"}},
		{"a branch in the way", nil, func(p *patient) {
			p.repo = "acme/greet"
			if _, err := p.gh.As("acme").PushFiles("acme/greet", githubtest.Push{Branch: "forge", Message: "x", Files: map[string]*string{"x": new("x")}}); err != nil {
				t.Error(err)
			}
		}, "repository", GradeBad, []string{"has a branch forge", "rename or delete"}},
		{"tape away", nil, set("FORGE_MODEL", "tape:/nowhere.txtar"), "model", GradeBad, []string{"/nowhere.txtar"}},
		{"no model", nil, func(p *patient) { delete(p.env, "FORGE_MODEL") }, "model", GradeBad, []string{"FORGE_MODEL"}},
		{"model away", nil, openai("http://127.0.0.1:1/v1"), "model", GradeBad, []string{"127.0.0.1:1"}},
		{"model's address is a web page", nil, openai(web(t, 200, "<html>Welcome</html>") + "/v1"), "model", GradeBad, []string{"/v1"}},
		{"model's key", nil, openai(web(t, 401, `{"error":{"message":"invalid api key"}}`) + "/v1"), "model", GradeBad, []string{"refused the API key"}},
		{"model that is not there", nil, openai(others.URL + "/v1"), "model", GradeBad, []string{"some-model"}},
		{"model without a price", nil, openai(web(t, 200, `{"data":[{"id":"some-model"}],"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"submit","arguments":"{}"}}]}}]}`) + "/v1"), "model", GradeWarn, []string{"price", "limits.tokens"}},
		{"model that calls no tools", nil, openai(web(t, 200, `{"data":[{"id":"some-model"}],"choices":[{"message":{"content":"Sure!"}}]}`) + "/v1"), "model", GradeBad, []string{"calls no tool", "--jinja"}},
		{"no sandbox", nil, func(*patient) {}, "sandbox", GradeWarn, []string{"unsafe_no_sandbox"}},
		{"registry away", nil, func(p *patient) {
			installs(p)
			inner := p.cfg
			p.cfg = func(c *settings.Config) {
				inner(c)
				c.Registries = nowhere("go", "npm", "pypi", "rubygems", "composer")
			}
		}, "registries", GradeWarn, []string{"npm", "cannot be reached"}},
		{"registry out of order", nil, func(p *patient) {
			installs(p)
			inner := p.cfg
			p.cfg = func(c *settings.Config) {
				inner(c)
				c.Registries = append(nowhere("go", "pypi", "rubygems", "composer"), settings.Registry{Name: "npm", Kind: "npm", URL: web(t, 500, ""), Private: true})
			}
		}, "registries", GradeWarn, []string{"npm: http", "500"}},
		{"registry inside that is not said to be", nil, func(p *patient) {
			installs(p)
			inner := p.cfg
			p.cfg = func(c *settings.Config) {
				inner(c)
				c.Registries = append(nowhere("npm", "pypi", "rubygems", "composer"), settings.Registry{Name: "go", Kind: "go", URL: "https://127.0.0.1:1"})
			}
		}, "registries", GradeWarn, []string{"private: true"}},
		{"repository without the App", nil, func(p *patient) { p.repo = "acme/other" }, "repository", GradeBad, []string{"not installed on acme/other"}},
		{"no repository", nil, func(p *patient) { p.repo = "greet" }, "repository", GradeBad, []string{"OWNER/NAME"}},
		{"repository's settings", nil, func(p *patient) {
			p.repo = "acme/wrong"
			_, err := p.gh.AddRepo("acme", "wrong", map[string]string{".github/forge.yml": "mod: auto\n"})
			if err == nil {
				_, err = p.gh.Install("acme/wrong")
			}
			if err != nil {
				t.Error(err)
			}
		}, "repository", GradeBad, []string{"mod", "mode"}},
		{"a repository that ships without the permission", nil, withSettings("ship: {enabled: true, environments: [production]}\n"), "repository", GradeBad, []string{"deployments: write", "may not"}},
		{"a repository that follows deployments nobody tells of", nil, withSettings("ship: {enabled: true, via: watch, environments: [production]}\n"), "repository", GradeBad, []string{"event deployment_status"}},
		{"a repository that rolls back without the events", nil, withSettings("production: {roll_back: true}\n"), "repository", GradeBad, []string{"event deployment subscribe"}},
		{"a repository that merges alone", nil, withSettings("ship: {enabled: true}\n"), "repository", GradeOK, []string{"forge.yml of acme/shipping is right"}},
		{"a repository's versions", nil, func(p *patient) {
			p.repo = "acme/older"
			_, err := p.gh.AddRepo("acme", "older", map[string]string{"a.txt": "a", ".tool-versions": "erlang 27\ngolang 99.1\n"})
			if err == nil {
				_, err = p.gh.Install("acme/older")
			}
			if err != nil {
				t.Error(err)
			}
		}, "repository", GradeWarn, []string{"`.tool-versions` asks for Go 99.1, the server has 1.", "install it for all users"}},
		{"a repository's submodules", nil, func(p *patient) {
			p.repo = "acme/parts"
			_, err := p.gh.AddRepo("acme", "parts", map[string]string{".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n"})
			if err == nil {
				_, err = p.gh.Install("acme/parts")
			}
			if err != nil {
				t.Error(err)
			}
		}, "repository", GradeWarn, []string{"submodules are not fetched: empty for agents and tests is x", "commit what the tests need"}},
		{"repository's rules", nil, rules(githubtest.Rule{Type: "creation", Pattern: "forge/*"}), "repository", GradeWarn, []string{"creation", "leave them out"}},
		{"required check of anybody", nil, rules(githubtest.Rule{Type: "required_status_checks", Pattern: "main", Value: "forge"}), "repository", GradeWarn, []string{"from anybody", "choose this App"}},
		{"required check of another App", nil, rules(githubtest.Rule{Type: "required_status_checks", Pattern: "main", Value: "forge", App: 1}), "repository", GradeBad, []string{"of App 1", "no pull request can be merged"}},
		{"required check of this App", nil, rules(githubtest.Rule{Type: "required_status_checks", Pattern: "main", Value: "forge", App: 4242}), "repository", GradeOK, []string{"requires the check forge of this App"}},
		{"signatures that commits: git cannot have", nil, func(p *patient) {
			rules(githubtest.Rule{Type: "required_signatures", Pattern: "main"})(p)
			inner := p.cfg
			p.cfg = func(c *settings.Config) {
				if inner != nil {
					inner(c)
				}
				c.Run.Commits = "git"
			}
		}, "repository", GradeBad, []string{"signed commits", "commits: git"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := newPatient(t, c.manifest, c.change)
			if !has(list, c.area, c.grade, c.words...) {
				t.Errorf("no %s diagnosis of %s with %q:\n%s", c.grade, c.area, c.words, told(list))
			}
			if text := told(list); strings.Contains(text, "sk-test-0123456789") || strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("a secret is told:\n%s", text)
			}
		})
	}
}

// What a local GitHub cannot be made to say.
func TestDoctorReadsFacts(t *testing.T) { // D2
	want := manifest{Permissions: map[string]string{"checks": "write", "actions": "read"}, Events: []string{"push"}}
	well := github.Facts{Slug: "forge", URL: "https://github.com/apps/forge", Permissions: maps.Clone(want.Permissions), Events: []string{"push"}, HookURL: "https://forge.example.com/webhook",
		Installations: []github.Installation{{Account: "acme", Permissions: maps.Clone(want.Permissions)}}, Deliveries: []github.Delivered{{Event: "ping", Status: 200}}}
	look := func(change func(*github.Facts)) []Diagnosis {
		f := well
		change(&f)
		d := &doctor{list: map[string][]Diagnosis{}}
		d.app(&f, want)
		d.webhook(&f)
		d.installations(&f)
		var out []Diagnosis
		for _, a := range areas {
			out = append(out, d.list[a]...)
		}
		return out
	}
	if list := look(func(*github.Facts) {}); len(list) != 3 || !has(list, "github", GradeOK) || !has(list, "webhook", GradeOK) || !has(list, "installations", GradeOK) {
		t.Errorf("a healthy App:\n%s", told(list))
	}
	for _, c := range []struct {
		name   string
		change func(*github.Facts)
		area   string
		grade  Grade
		words  []string
	}{
		{"clock", func(f *github.Facts) { f.Skew = -5 * time.Minute }, "github", GradeBad, []string{"5m0s", "NTP"}},
		{"workflows", func(f *github.Facts) {
			f.Permissions = map[string]string{"checks": "write", "actions": "write", "workflows": "write"}
		}, "github", GradeWarn, []string{"workflows"}},
		{"read where write is needed", func(f *github.Facts) { f.Permissions = map[string]string{"checks": "read", "actions": "read"} }, "github", GradeBad, []string{"checks: write"}},
		{"not approved yet", func(f *github.Facts) {
			f.Installations = []github.Installation{{Account: "acme", URL: "https://github.com/x", Permissions: map[string]string{"actions": "read"}}}
		}, "installations", GradeBad, []string{"acme has not approved: checks: write", "https://github.com/x"}},
		{"no webhook", func(f *github.Facts) { f.HookURL = "" }, "webhook", GradeBad, []string{"no webhook address"}},
		{"in the clear", func(f *github.Facts) { f.HookURL = "http://forge.example.com/webhook" }, "webhook", GradeWarn, []string{"in the clear"}},
		{"certificates", func(f *github.Facts) { f.HookInsecure = true }, "webhook", GradeWarn, []string{"SSL verification"}},
		{"forms", func(f *github.Facts) { f.HookForm = true }, "webhook", GradeBad, []string{"application/json"}},
		{"silence", func(f *github.Facts) { f.Deliveries = nil }, "webhook", GradeWarn, []string{"not sent anything"}},
		{"failed in the past", func(f *github.Facts) {
			f.Deliveries = []github.Delivered{{Status: 202, At: time.Now()}, {Status: 503, Event: "push", At: time.Now().Add(-time.Hour)}}
		}, "webhook", GradeWarn, []string{"1 of the last 2", "503"}},
	} {
		if list := look(c.change); !has(list, c.area, c.grade, c.words...) {
			t.Errorf("%s: no %s diagnosis of %s with %q:\n%s", c.name, c.grade, c.area, c.words, told(list))
		}
	}
}

// A run that waits for a model's provider is told of, with until when and what to do: the
// doctor's own call may be answered meanwhile.
func TestDoctorTellsWhoWaits(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run, err := db.CreateRun(t.Context(), "k", pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"},
		Task: pipeline.Task{Issue: 1}, Config: config.Default(), Base: "b", Branch: "forge/1"}, time.Now(), strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	look := func() []Diagnosis {
		d := &doctor{list: map[string][]Diagnosis{}}
		d.waiting(t.Context(), db)
		return d.told()
	}
	if list := look(); len(list) != 0 {
		t.Errorf("before it waits:\n%s", told(list))
	}
	ref := &pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
	until := &pipeline.Await{Model: true, What: "the model's provider until 12:04 UTC (limits the rate)", Next: time.Now().Add(time.Hour), Until: time.Now().Add(time.Hour)}
	events := []pipeline.Event{{ID: "e", Time: time.Now(), Source: "forge", Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: ref}},
		{ID: "w", Time: time.Now(), Source: "forge", Type: pipeline.EventPhaseWaiting, Data: pipeline.Data{Phase: ref, Await: until}}}
	if err := db.Append(t.Context(), run, events, nil); err != nil {
		t.Fatal(err)
	}
	if list := look(); !has(list, "model", GradeWarn, "1 run waits for the model's provider until 12:04 UTC", "/forge retry") {
		t.Errorf("while it waits:\n%s", told(list))
	}
}

// Covers M3: the doctor says when runs do worse with memory, and what to do about it.
func TestDoctorLooksAtMemory(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	look := func() []Diagnosis {
		d := &doctor{list: map[string][]Diagnosis{}}
		d.memory(t.Context(), db)
		return d.told()
	}
	if list := look(); len(list) != 0 {
		t.Errorf("before the first run:\n%s", told(list))
	}
	put := func(from, to int, passes func(out bool) bool) {
		for i := from; i < to; i++ {
			run, err := db.CreateRun(t.Context(), fmt.Sprint("k", i), pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"},
				Task: pipeline.Task{Issue: i + 1}, Config: config.Default(), Base: "b", Branch: fmt.Sprint("forge/", i)}, time.Now(), strings.Repeat("a", 32), nil)
			if err != nil {
				t.Fatal(err)
			}
			h := &record.Holdout{Share: 0.25, Out: i%4 == 0}
			if err := db.PutOutcome(t.Context(), nil, record.Outcome{Run: run.ID, FirstPass: passes(h.Out), At: time.Now(), Holdout: h}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, 100, func(out bool) bool { return !out })
	if list := look(); !has(list, "memory", GradeOK, "100 % of 75 against 0 % of 25") {
		t.Errorf("where memory helps:\n%s", told(list))
	}
	put(100, 1100, func(out bool) bool { return out })
	if list := look(); !has(list, "memory", GradeWarn, "do worse with memory", "9 % of 825 against 91 % of 275", "forge memory forget ID") {
		t.Errorf("where memory harms:\n%s", told(list))
	}
	const held = "of findings that would be held back, and were posted to see, 0 of 20 were dismissed; of the others 50 %"
	if has(look(), "memory", GradeWarn, held) {
		t.Error("the doctor warns of what is held back before anything was")
	}
	for i := range 60 { // what is held back is wanted
		f := pipeline.Finding{Fingerprint: fmt.Sprint(i), Severity: pipeline.SeverityInfo, Message: "no comment", File: "a.go"}
		s := pipeline.Signal{Key: fmt.Sprint("k", i), Kind: pipeline.SignalApplied, Scope: "repo:acme/shop", Weight: 1, At: time.Now(), About: &f, Text: "no"}
		if i < 20 {
			f.Asked = 0.05
		} else if i%2 == 0 {
			s.Kind = pipeline.SignalDismissed
		}
		if err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { _, err := db.PutSignal(ctx, tx, s); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if list := look(); !has(list, "memory", GradeWarn, "acme/shop", held, "nothing is held back there") {
		t.Errorf("where what is held back is wanted:\n%s", told(list))
	}
}

// Whether the kernel holds commands by cgroups, and how to have that, is told either way.
func TestDoctorTellsOfCgroups(t *testing.T) {
	d := &doctor{list: map[string][]Diagnosis{}}
	d.cgroups(nil)
	d.cgroups(errors.New("no controller is here"))
	list := d.list["sandbox"]
	if len(list) != 2 || !has(list[:1], "sandbox", GradeOK, "each command has a cgroup") || list[0].Fix != "" ||
		!has(list[1:], "sandbox", GradeOK, "no controller is here", "Delegate=yes") {
		t.Errorf("%s", told(list))
	}
}

// Covers D2: a context in which a run hardly fits is told, with the settings that help.
func TestDoctorSeesASmallContext(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[string]bool{"8192": true, "131072": false, "null": false} {
		list := newPatient(t, nil, func(p *patient) {
			p.env["FORGE_MODEL"] = "openai/small"
			p.env["OPENAI_BASE_URL"] = web(t, 200, `{"data":[{"id":"small","max_model_len":`+tokens+`}],"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"submit","arguments":"{}"}}]}}]}`) + "/v1"
		})
		if has(list, "model", GradeWarn, "a context of 8192 tokens", "OLLAMA_CONTEXT_LENGTH", "--max-model-len") != want {
			t.Errorf("%s:\n%s", tokens, told(list))
		}
	}
}

// Covers D2: what models cost is held against their provider's list: those of Forge's
// table, and those of the settings, which go before it.
func TestDoctorComparesPrices(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pricing string
		set     *settings.ModelPrice
		grade   Grade
		words   []string
	}{
		"as listed":   {`{"prompt":"0.000003","completion":"0.000015"}`, &settings.ModelPrice{Input: 3, Output: 15}, GradeOK, []string{"$3 for input and $15 for output", "by the settings and by its provider's list"}},
		"another":     {`{"prompt":"0.000004","completion":"0.000015","input_cache_read":"0.0000004"}`, &settings.ModelPrice{Input: 3, Output: 15}, GradeWarn, []string{"$4 for input", "$3 for input", "openai/gpt-6-sol: {input: 4, cached: 0.4, cache_write: 0, output: 15}"}},
		"of no list":  {`null`, nil, GradeOK, []string{"$2 for input and $10 for output", "by Forge's table of ", "lists no prices"}},
		"not Forge's": {`{"prompt":"0.000004","completion":"0.000015"}`, nil, GradeWarn, []string{"by Forge's table of "}},
	} {
		list := newPatient(t, nil, func(p *patient) {
			p.prices = true
			p.env["FORGE_MODEL"], p.env["OPENAI_API_KEY"] = "openai/gpt-6-sol", "k"
			p.env["OPENAI_BASE_URL"] = web(t, 200, `{"data":[{"id":"gpt-6-sol","pricing":`+tt.pricing+`}],"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"submit","arguments":"{}"}}]}}]}`) + "/v1"
			p.cfg = func(c *settings.Config) {
				if tt.set != nil {
					c.Prices = map[string]settings.ModelPrice{"openai/gpt-6-sol": *tt.set}
				}
			}
		})
		if !has(list, "model", tt.grade, tt.words...) {
			t.Errorf("%s:\n%s", name, told(list))
		}
	}
}
