package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"forge/pipeline/agent"
	"forge/pipeline/config"

	"github.com/google/go-cmp/cmp"
)

const (
	testKey    = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
	testSecret = "0123456789abcdef0123"
)

func compareConfigs(t *testing.T, want, got Config) {
	t.Helper()
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b Secret) bool { return a.Reveal() == b.Reveal() })); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
}

func write(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return name
}

func environment(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestServerDefaults(t *testing.T) {
	t.Parallel()
	want := Config{
		DatabaseURL: NewSecret("/home/u/.local/state/forge/forge.db"), StateDir: "/home/u/.local/state/forge",
		Listen: "127.0.0.1:8080", Label: "forge", Slug: "forge", WriteInterval: time.Second, CallTimeout: 15 * time.Second,
		ModelTimeout: 10 * time.Minute, ModelPatience: 2 * time.Hour, KeepDeliveries: 30, KeepTapes: 90, BackupEvery: time.Hour, BackupKeep: 3,
		Answers: 30, ThreadAnswers: 10, Remarks: 120,
		BackupDir: "/home/u/.local/state/forge/backups", Reflection: true, Dependencies: true, Dashboard: "local",
		ImageRegistries: []string{"docker.io", "ghcr.io", "mcr.microsoft.com", "public.ecr.aws", "quay.io"},
		DashboardListen: "127.0.0.1:8081", Run: config.Default(),
	}
	got, err := server("", environment("HOME", "/home/u"), false)
	if err != nil {
		t.Fatal(err)
	}
	compareConfigs(t, want, got)

	got, err = server("", environment("HOME", "/root"), true)
	if err != nil {
		t.Fatal(err)
	}
	if got.StateDir != "/var/lib/forge" || got.DatabaseURL.Reveal() != "/var/lib/forge/forge.db" {
		t.Errorf("as root: state in %s, database %s", got.StateDir, got.DatabaseURL.Reveal())
	}
	got, err = server("", environment("HOME", "/home/u", "XDG_STATE_HOME", "/x"), false)
	if err != nil || got.StateDir != "/x/forge" {
		t.Errorf("with XDG_STATE_HOME: %s, %v", got.StateDir, err)
	}
}

// The environment goes before the file, and every key of the file is read.
func TestServerFileAndEnvironment(t *testing.T) {
	t.Parallel()
	key, secret := write(t, 0o600, testKey), write(t, 0o600, testSecret+"\n")
	apiKey := write(t, 0o400, "sk-from-file\n")
	file := write(t, 0o600, fmt.Sprintf(`
app_id: 12
private_key_file: %s
webhook_secret_file: %s
database_url: postgres://u:p@db/forge
state_dir: /srv/forge
listen: ":9000"
github_url: https://ghe.example.com/
label: bot
model: anthropic/big
models:
  tester: openai/small
anthropic_api_key_file: %s
anthropic_base_url: https://a.example
openai_base_url: http://127.0.0.1:11434/v1
unsafe_no_sandbox: true
worker_user: forge-worker
install_scripts: true
registries:
  npm: {url: "https://npm.example"}
  acme: {kind: npm, url: "http://10.0.0.5:4873/", match: ["@acme"], private: true, token_file: %s}
write_interval: 250ms
call_timeout: 30s
model_timeout: 5m
model_patience: 45m
prices:
  openai/qwen-3.5: {input: 1, cached: 0.1, cache_write: 1.25, output: 2.5}
model_limits:
  openai/qwen-3.5: {output_tokens: 8000, context_tokens: 32768, reasoning_tokens: 2000}
  anthropic/big:
    output_tokens: 128000
keep_deliveries_days: 0
answers_per_hour: 50
thread_answers_per_hour: 0
remarks_per_hour: 300
keep_tapes_days: 7
keep_incidents_days: 365
reflection: false
log_hosts: [logs.example.com, .blob.example.com]
image_registries: [images.acme.dev]
dashboard: github
dashboard_listen: "[::1]:9"
client_id: Iv23liABC
client_secret_file: %s
public_url: https://forge.example.com/
mode: manual
loop: {max_iterations: 7}
limits: {cost_usd: 3, wall_minutes: 30}
tests: {timeout_minutes: 20}
breaker: {on_max: error}
paths: {protected: ["deploy/**"]}
`, key, secret, apiKey, secret, secret))
	got, err := server(file, environment("HOME", "/h", "FORGE_APP_ID", "34", "FORGE_LISTEN", "localhost:1", "FORGE_MODEL_PLANNER", "openai/think",
		"OPENAI_API_KEY", "sk-env", "FORGE_WRITE_INTERVAL", "2s"), false)
	if err != nil {
		t.Fatal(err)
	}
	run := config.Default()
	run.Mode, run.Loop.MaxIterations, run.Limits.CostUSD, run.Limits.WallMinutes = "manual", 7, 3, 30
	run.Tests.TimeoutMinutes, run.Breaker.OnMax, run.Paths.Protected = 20, "error", []string{"deploy/**"}
	run.Models = map[config.Role]string{"planner": "openai/think", "implementer": "anthropic/big", "reviewer": "anthropic/big",
		"tester": "openai/small", "reflector": "anthropic/big"}
	compareConfigs(t, Config{
		AppID: 34, PrivateKeyFile: key, WebhookSecret: NewSecret(testSecret), DatabaseURL: NewSecret("postgres://u:p@db/forge"),
		SecretFiles: []string{file, secret, secret, secret, apiKey, key},
		StateDir:    "/srv/forge", Listen: "localhost:1", GitHubURL: "https://ghe.example.com",
		LogHosts: []string{"logs.example.com", ".blob.example.com"}, ImageRegistries: []string{"images.acme.dev"}, Label: "bot", Slug: "forge",
		AnthropicKey: NewSecret("sk-from-file"), OpenAIKey: NewSecret("sk-env"), AnthropicURL: "https://a.example", OpenAIURL: "http://127.0.0.1:11434/v1",
		UnsafeNoSandbox: true, WorkerUser: "forge-worker", Dependencies: true, InstallScripts: true,
		Registries: []Registry{{Name: "acme", Kind: "npm", URL: "http://10.0.0.5:4873/", Match: []string{"@acme"}, Private: true,
			Token: NewSecret(testSecret)}, {Name: "npm", Kind: "npm", URL: "https://npm.example"}},
		WriteInterval: 2 * time.Second, CallTimeout: 30 * time.Second,
		ModelTimeout: 5 * time.Minute, ModelPatience: 45 * time.Minute,
		Prices:      map[string]ModelPrice{"openai/qwen-3.5": {Input: 1, Cached: 0.1, CacheWrite: 1.25, Output: 2.5}},
		ModelLimits: map[string]ModelLimits{"openai/qwen-3.5": {OutputTokens: 8000, ContextTokens: 32_768, ReasoningTokens: 2000}, "anthropic/big": {OutputTokens: 128_000}},
		Answers:     50, Remarks: 300, KeepDeliveries: 0, KeepTapes: 7, KeepIncidents: 365, BackupEvery: time.Hour, BackupKeep: 3, BackupDir: "/srv/forge/backups", Run: run,
		Dashboard: "github", DashboardListen: "[::1]:9", ClientID: "Iv23liABC", ClientSecret: NewSecret(testSecret),
		PublicURL: "https://forge.example.com", Warnings: got.Warnings,
	}, got)
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "unsafe_no_sandbox is on") {
		t.Errorf("warnings %q, want one about the sandbox", got.Warnings)
	}
	if err := got.Ready(); err != nil {
		t.Errorf("Ready: %v", err)
	}
}

// Every variable that is declared is read, and every key has a description.
// Covers lessons 22.
func TestEveryServerKey(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[serverFile]()
	key, secret := write(t, 0o600, testKey), write(t, 0o600, testSecret)
	values := map[string]string{
		"FORGE_APP_ID": "5", "FORGE_PRIVATE_KEY_FILE": key, "FORGE_WEBHOOK_SECRET": testSecret, "FORGE_WEBHOOK_SECRET_FILE": secret,
		"FORGE_DATABASE_URL": "other.db", "FORGE_STATE_DIR": "/elsewhere", "FORGE_LISTEN": ":1", "FORGE_POLL": "true",
		"FORGE_GITHUB_URL": "https://g.example",
		"FORGE_LABEL":      "robot", "FORGE_SLUG": "bob", "FORGE_MODEL": "openai/x",
		"ANTHROPIC_BASE_URL": "https://a.example", "OPENAI_BASE_URL": "https://o.example", "FORGE_UNSAFE_NO_SANDBOX": "true",
		"FORGE_WORKER_USER": "nobody", "FORGE_DEPENDENCIES": "off", "FORGE_INSTALL_SCRIPTS": "true", "FORGE_WRITE_INTERVAL": "3s",
		"FORGE_CALL_TIMEOUT": "9s", "FORGE_MODEL_TIMEOUT": "8s", "FORGE_MODEL_PATIENCE": "7m", "FORGE_MODEL_PARALLEL": "8",
		"FORGE_COMMANDS_PARALLEL": "2", "FORGE_PART_WORKERS": "6", "FORGE_DAY_USD": "50", "FORGE_MONTH_USD": "500",
		"FORGE_ANSWERS_PER_HOUR": "7", "FORGE_THREAD_ANSWERS_PER_HOUR": "6", "FORGE_REMARKS_PER_HOUR": "5",
		"FORGE_KEEP_DELIVERIES_DAYS": "3", "FORGE_KEEP_TAPES_DAYS": "4", "FORGE_KEEP_INCIDENTS_DAYS": "90", "FORGE_BACKUP_EVERY": "2h", "FORGE_BACKUP_KEEP": "5",
		"FORGE_BACKUP_DIR": "/mnt/copies", "FORGE_METRICS_TOKEN_FILE": secret, "FORGE_REFLECTION": "false",
		"FORGE_DASHBOARD": "github", "FORGE_CLIENT_ID": "Iv1.a", "FORGE_CLIENT_SECRET_FILE": secret, "FORGE_CLIENT_SECRET": testSecret,
		"FORGE_PUBLIC_URL": "https://f.example", "FORGE_DASHBOARD_LISTEN": "localhost:7",
	}
	names := []string{"FORGE_CLIENT_SECRET"}
	for _, p := range agent.ProviderNames {
		key := strings.ToUpper(p) + "_API_KEY"
		values[key], values[key+"_FILE"], names = "k", secret, append(names, key)
	}
	for i := range typ.NumField() {
		if name := jsonName(typ.Field(i)); ruleOf(name).doc == "" {
			t.Errorf("%s has no description", name)
		}
		if env := typ.Field(i).Tag.Get("env"); env != "" {
			names = append(names, env)
		}
	}
	plain, err := server("", environment("HOME", "/h"), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range slices.Concat(roles, writers) {
		names = append(names, modelEnv(string(role)))
		values[modelEnv(string(role))] = "openai/" + string(role)
	}
	for _, env := range names {
		value, ok := values[env]
		if !ok {
			t.Errorf("%s is declared, but this test has no value for it", env)
		}
		got, err := server("", environment("HOME", "/h", env, value), false)
		if err != nil {
			t.Errorf("%s=%s: %v", env, value, err)
			continue
		}
		if value != "" && reflect.DeepEqual(plain, got) {
			t.Errorf("%s=%s changed nothing", env, value)
		}
	}
}

// What a provider's key is set to reaches its models, and no others.
func TestKeysReachTheirProviders(t *testing.T) {
	t.Parallel()
	for _, p := range agent.ProviderNames {
		c, err := server("", environment("HOME", "/h", strings.ToUpper(p)+"_API_KEY", "k-"+p), false)
		if err != nil {
			t.Fatal(err)
		}
		want := agent.CredentialsOf(p, "k-"+p, "")
		want.Timeout = c.ModelTimeout
		if got := c.Credentials(); got != want {
			t.Errorf("the key of %s gives %+v", p, got)
		}
	}
}

// Covers lessons 21 and S29: what is wrong is said all at once, without secrets.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	secret := "hunter2-hunter2-hunter2"
	for _, c := range []struct {
		name string
		file string
		mode os.FileMode
		env  []string
		want []string
	}{
		{"typo", "app_idd: 1\n", 0o600, nil, []string{`:1:1: unknown key "app_idd": did you mean "app_id"?`}},
		{"a slug with a slash", "slug: Bob/x\n", 0o600, nil, []string{"slug is \"Bob/x\"; it must have 1 to 30 small letters"}},
		{"all at once", "app_id: -1\nlabel: a,b\nwrite_interval: 5\n", 0o600, []string{"FORGE_LISTEN", "nine", "FORGE_APP_ID", "x"}, []string{
			"app_id is -1; it must be from 1", `label is "a,b"`, "write_interval must be a time with its unit, such as 1s or 500ms, not 5",
			`FORGE_LISTEN (environment) is "nine"; it must be host:port`, `FORGE_APP_ID (environment) must be a whole number, not "x"`}},
		{"interval", "write_interval: 2h\n", 0o600, nil, []string{"write_interval is 2h0m0s; it must be from 0s to 1m0s"}},
		{"bool", "", 0o600, []string{"FORGE_UNSAFE_NO_SANDBOX", "maybe"}, []string{"FORGE_UNSAFE_NO_SANDBOX (environment) must be true or false"}},
		{"github over http", "github_url: http://ghe.example.com\n", 0o600, nil, []string{"github_url is plain http to ghe.example.com"}},
		{"no address", "", 0o600, []string{"OPENAI_BASE_URL", "ollama"}, []string{"OPENAI_BASE_URL (environment) must be an address such as https://host.example"}},
		{"password in an address", "", 0o600, []string{"OPENAI_BASE_URL", "https://u:" + secret + "@h.example"},
			[]string{"must hold no user, password, query or fragment"}},
		{"database", "database_url: mysql://u:" + secret + "@h/x\n", 0o600, nil,
			[]string{"database_url is of the kind mysql://; it must be postgres://…, or the path of a SQLite file", "[not shown]"}},
		{"short secret", "webhook_secret: hunter2\n", 0o600, nil,
			[]string{"webhook_secret has 7 characters; at least 16 are needed: make one with openssl rand -hex 32"}},
		{"secret is a number", "webhook_secret: 7777777777777777777\n", 0o600, nil, []string{"webhook_secret must be text in quotes"}},
		{"secret in an open file", "webhook_secret: " + secret + "\n", 0o644, nil, []string{"can be read by others (mode 0644): chmod 600"}},
		{"key in the file", "anthropic_api_key: " + secret + "\n", 0o600, nil,
			[]string{`unknown key "anthropic_api_key": it is read from a file of its own; name that file with "anthropic_api_key_file"`}},
		{"secret twice", "webhook_secret_file: /nowhere\nwebhook_secret: " + secret + "\n", 0o600, nil,
			[]string{"webhook_secret is given both as a value and as a file (/nowhere): keep one"}},
		{"no such file", "private_key_file: /nowhere/key.pem\n", 0o600, nil, []string{"private_key_file does not exist: /nowhere/key.pem"}},
		{"model", "model: opus\n", 0o600, []string{"FORGE_MODEL_TESTER", "gpt"},
			[]string{"model is \"opus\"; a model is named provider/model", "FORGE_MODEL_TESTER (environment) is \"gpt\""}},
		{"price of no model", "prices:\n  qwen: {input: 1}\n", 0o600, nil, []string{`a key in prices is "qwen"; a model is named provider/model`}},
		{"price", "prices:\n  openai/qwen-3.5: {input: -1, outptu: 2}\n", 0o600, nil,
			[]string{"prices.openai/qwen-3.5.input is -1; it must be from 0 to 10000 USD per million tokens",
				`unknown key "outptu" in prices.openai/qwen-3.5: did you mean "output"?`}},
		{"limit of output", "model_limits:\n  openai/qwen-3.5: {output_tokens: much}\n", 0o600, nil,
			[]string{"model_limits.openai/qwen-3.5.output_tokens must be a whole number"}},
		{"registry without an address", "registries: {npm: {}}\n", 0o600, nil, []string{"registries.npm has no url"}},
		{"registry of no kind", "registries: {acme: {url: \"https://a.example\"}}\n", 0o600, nil, []string{"registries.acme: its name is none of the kinds"}},
		{"registry in the clear", "registries: {npm: {url: \"http://a.example\"}}\n", 0o600, nil, []string{"registries.npm.url must be https, or `private: true`"}},
		{"registry's globs", "registries: {npm: {url: \"https://a.example\", match: [\"[\"]}}\n", 0o600, nil, []string{"registries.npm.match[0] is \"[\""}},
		{"registry's name", "registries: {\"a b\": {}}\n", 0o600, nil, []string{`a key in registries is "a b"`}},
		{"subscribers in a list", "subscribers:\n  - url_file: a\n", 0o600, nil,
			[]string{"subscribers must hold keys with values, such as NAME.kind: …, not a list"}},
		{"a secret in the open", "subscribers: {ci: {url: \"https://a.example\", secret: b}}\n", 0o600, nil,
			[]string{`it is read from a file of its own; name that file with "url_file"`, `name that file with "secret_file"`}},
		{"prices in a list", "prices: [1]\n", 0o600, nil, []string{"prices must hold keys with values"}},
		{"dashboard", "dashboard: locl\n", 0o600, nil, []string{`dashboard is "locl"; it must be one of off, local, github (did you mean "local"?)`}},
		{"dashboard of the flag", "dashboard: off\n", 0o600, []string{"FORGE_DASHBOARD", "public"}, []string{`FORGE_DASHBOARD (environment) is "public"`}},
		{"the App's id", "client_id: \"123456\"\n", 0o600, nil,
			[]string{`client_id is "123456"; it must be the App's Client ID, which begins with Iv, not its App ID`}},
		{"short client secret", "", 0o600, []string{"FORGE_CLIENT_SECRET", "hunter2\n"}, []string{"the client secret has 8 characters; GitHub's have 40"}},
		{"client secret twice", "", 0o600, []string{"FORGE_CLIENT_SECRET", secret, "FORGE_CLIENT_SECRET_FILE", "/nowhere"},
			[]string{"FORGE_CLIENT_SECRET is given both as a value and as a file (/nowhere): keep one"}},
		{"pages for everybody", "dashboard_listen: 0.0.0.0:8081\n", 0o600, nil, []string{"dashboard_listen must be an address of this machine alone"}},
		{"image registries", "image_registries: [\"https://ghcr.io\"]\n", 0o600, nil, []string{"must be the host of a registry, such as ghcr.io"}},
		{"log hosts", "log_hosts: [\"https://logs.example.com\"]\n", 0o600, nil, []string{"must be a host such as logs.example.com"}},
		{"pages nowhere", "dashboard_listen: localhost\n", 0o600, nil, []string{`dashboard_listen is "localhost"; it must be host:port`}},
		{"public over http", "public_url: http://forge.example.com\n", 0o600, nil, []string{"public_url is plain http to forge.example.com"}},
		{"public by a private address", "public_url: http://10.0.0.7\n", 0o600, nil, []string{"public_url is plain http to 10.0.0.7"}},
		{"public with a path", "public_url: https://example.com/forge\n", 0o600, nil, []string{"public_url must be a scheme and a host alone"}},
		{"public without a scheme", "public_url: forge.example.com\n", 0o600, nil, []string{"public_url must be an address such as https://forge.example.com"}},
		{"public with a password", "public_url: https://u:" + secret + "@h.example\n", 0o600, nil, []string{"public_url must be a scheme and a host alone"}},
		{"worker", "worker_user: root\n", 0o600, nil, []string{"worker_user is \"root\"; it must be the name of an unprivileged user"}},
		{"too large", strings.Repeat("#", 70_000), 0o600, nil, []string{"70000 bytes; at most 65536 are read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, c.mode, c.file)
			_, err := server(file, environment(append(c.env, "HOME", "/h")...), false)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%v\nwant in it\n%s", err, want)
				}
			}
			text := strings.ReplaceAll(err.Error(), file, "FILE") // the directory's name has random digits
			for _, s := range []string{secret, "hunter2\n", "7777"} {
				if strings.Contains(text, s) {
					t.Errorf("the secret is in the error: %v", err)
				}
			}
		})
	}
}

func TestDatabasePath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "/s/forge.db", "x.db": "/s/x.db", "/d/x.db": "/d/x.db", "sqlite:x.db": "/s/x.db", "sqlite:///d/x.db": "/d/x.db",
		"file:x.db": "/s/x.db", "file:/d/x.db": "/d/x.db", "file:///d/x.db": "/d/x.db", "postgres://h/x": "postgres://h/x",
	} {
		c, err := server("", environment("FORGE_STATE_DIR", "/s", "FORGE_DATABASE_URL", in), false)
		if err != nil || c.DatabaseURL.Reveal() != want {
			t.Errorf("database_url %q is %q, %v; want %q", in, c.DatabaseURL.Reveal(), err, want)
		}
	}
	if _, err := server("", environment("FORGE_STATE_DIR", "/s", "FORGE_DATABASE_URL", "file:x.db?mode=memory"), false); err == nil {
		t.Error("parameters in a database's path: no error")
	}
}

func TestServerFiles(t *testing.T) {
	t.Parallel()
	home := environment("HOME", "/h")
	if _, err := Server("/nowhere/forge.yml", home); err == nil || !strings.Contains(err.Error(), "name an existing file with --config") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := server("", environment(), false); err == nil || !strings.Contains(err.Error(), "set FORGE_STATE_DIR") {
		t.Errorf("no HOME: %v", err)
	}
	for _, c := range []struct {
		name, env, text string
		mode            os.FileMode
		want            string // error
		warn            string
	}{
		{"key", "FORGE_PRIVATE_KEY_FILE", testKey, 0o600, "", ""},
		{"key open to all", "FORGE_PRIVATE_KEY_FILE", testKey, 0o644, "can be read or written by everybody on this machine (mode 0644): chmod 600", ""},
		{"key open to the group", "FORGE_PRIVATE_KEY_FILE", testKey, 0o640, "", "is open to its group (mode 0640)"},
		{"no key", "FORGE_PRIVATE_KEY_FILE", "hello", 0o600, "is not a PEM private key", ""},
		{"public key", "FORGE_PRIVATE_KEY_FILE", strings.ReplaceAll(testKey, "PRIVATE", "PUBLIC"), 0o600, "is not a PEM private key", ""},
		{"empty secret", "FORGE_WEBHOOK_SECRET_FILE", "\n", 0o600, "is empty: put the secret into it", ""},
		{"short secret", "FORGE_WEBHOOK_SECRET_FILE", "abc\n", 0o600, "webhook_secret_file has 3 characters", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := server("", environment("HOME", "/h", c.env, write(t, c.mode, c.text)), false)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if warn := strings.Join(got.Warnings, "\n"); c.warn == "" && warn != "" || !strings.Contains(warn, c.warn) {
				t.Errorf("warnings %q, want %q", warn, c.warn)
			}
		})
	}
	if _, err := server("", environment("HOME", "/h", "FORGE_PRIVATE_KEY_FILE", t.TempDir()), false); err == nil ||
		!strings.Contains(err.Error(), "is not a plain file") {
		t.Errorf("a directory as key: %v", err)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	c, err := server("", environment("HOME", "/h", "FORGE_MODEL_PLANNER", "anthropic/x", "FORGE_MODEL_TESTER", "openai/y"), false)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(c.Ready())
	for _, want := range []string{"FORGE_APP_ID", "FORGE_PRIVATE_KEY_FILE", "FORGE_WEBHOOK_SECRET", "implementer, reviewer, reflector",
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
		if !strings.Contains(text, want) {
			t.Errorf("Ready: %s\nwant %s in it", text, want)
		}
	}
}

// What is missing for people to sign in is said with where it is found.
func TestReadyForSignIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
		want []string // "-…": must not be there
	}{
		{"nothing", []string{"FORGE_DASHBOARD", "github"},
			[]string{"set FORGE_PUBLIC_URL", "set FORGE_CLIENT_ID", "set FORGE_CLIENT_SECRET", "there PUBLIC_URL/login/callback must be a Callback URL",
				"https://github.com/settings/apps"}},
		{"Enterprise", []string{"FORGE_DASHBOARD", "github", "FORGE_GITHUB_URL", "https://ghe.example.com/", "FORGE_PUBLIC_URL",
			"https://f.example/"}, []string{"-FORGE_PUBLIC_URL", "https://f.example/login/callback", "https://ghe.example.com/settings/apps"}},
		{"all", []string{"FORGE_DASHBOARD", "github", "FORGE_PUBLIC_URL", "http://localhost:8080", "FORGE_CLIENT_ID", "Iv1.x",
			"FORGE_CLIENT_SECRET", testSecret}, []string{"-CLIENT", "-PUBLIC"}},
		{"local", nil, []string{"-CLIENT", "-PUBLIC"}},
		{"off", []string{"FORGE_DASHBOARD", "off"}, []string{"-CLIENT", "-PUBLIC"}},
	} {
		cfg, err := server("", environment(append(c.env, "HOME", "/h")...), false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text := fmt.Sprint(cfg.Ready())
		for _, want := range c.want {
			absent, not := strings.CutPrefix(want, "-")
			if strings.Contains(text, absent) == not {
				t.Errorf("%s: %s\nwant %s in it", c.name, text, want)
			}
		}
	}
}

// Covers S29: whatever prints a secret does not show it.
func TestSecret(t *testing.T) {
	t.Parallel()
	const hidden = "swordfish"
	c := Config{WebhookSecret: NewSecret(hidden), DatabaseURL: NewSecret("postgres://u:" + hidden + "@h/d")}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", c.WebhookSecret, "config", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", c.WebhookSecret, "config", c)
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join([]string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x", c, c, c, c.WebhookSecret, c.WebhookSecret, c.WebhookSecret),
		fmt.Sprintf("%d", c.WebhookSecret), string(data), log.String()}, "\n")
	if strings.Contains(shown, hidden) || strings.Contains(shown, fmt.Sprintf("%x", hidden)) {
		t.Errorf("the secret is shown:\n%s", shown)
	}
	if !strings.Contains(log.String(), "[secret]") || !strings.Contains(string(data), "[secret]") {
		t.Errorf("nothing says that there is a secret:\n%s\n%s", log.String(), data)
	}
	if c.WebhookSecret.Reveal() != hidden || !c.WebhookSecret.Set() || (Secret{}).Set() || fmt.Sprint(Secret{}) != "" {
		t.Error("Reveal or Set is wrong")
	}
}

// Covers D2: a pipe that nobody writes to does not hold the program up, what an editor puts
// before everything is no key, and a directory and another encoding are told as such.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, marked, wide := filepath.Join(dir, "fifo"), filepath.Join(dir, "marked.yml"), filepath.Join(dir, "wide.yml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{marked: "\uFEFFlisten: 127.0.0.1:8099\n", wide: "\xff\xfel\x00"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := environment("HOME", "/h")
	for file, says := range map[string]string{fifo: "nothing comes out of it", dir: "is a directory", wide: "save it as UTF-8"} {
		if _, err := Server(file, none); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", file, err, says)
		}
	}
	if c, err := Server(marked, none); err != nil || c.Listen != "127.0.0.1:8099" {
		t.Errorf("with a byte order mark: %q, %v", c.Listen, err)
	}
}

// The environment goes before the file, also where one holds a secret and the other
// names a file of it.
func TestEnvironmentsSecretGoesBeforeTheFile(t *testing.T) {
	t.Parallel()
	kept := write(t, 0o600, "of-the-file-0123456789\n")
	for _, c := range []struct {
		name, file string
		env        []string
		of         func(Config) Secret
		want       string
	}{
		{"a key", "openai_api_key_file: " + kept + "\n", []string{"OPENAI_API_KEY", "of-the-environment"}, func(c Config) Secret { return c.OpenAIKey }, "of-the-environment"},
		{"a webhook's", "webhook_secret_file: " + kept + "\n", []string{"FORGE_WEBHOOK_SECRET", "of-the-environment"},
			func(c Config) Secret { return c.WebhookSecret }, "of-the-environment"},
		{"a file in the environment", "webhook_secret: of-the-settings-0123\n", []string{"FORGE_WEBHOOK_SECRET_FILE", kept},
			func(c Config) Secret { return c.WebhookSecret }, "of-the-file-0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := server(write(t, 0o600, c.file), environment(append(c.env, "HOME", "/h")...), false)
			if err != nil {
				t.Fatal(err)
			}
			if s := c.of(got).Reveal(); s != c.want {
				t.Errorf("the secret is %q, want %q", s, c.want)
			}
		})
	}
}
