package settings

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"forge/pipeline/agent"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
)

// Config is the server's configuration.
type Config struct {
	AppID           int64                  // the GitHub App's
	PrivateKeyFile  string                 // PEM, readable by the server's user alone
	WebhookSecret   Secret                 //
	DatabaseURL     Secret                 // postgres://…, or the absolute path of a SQLite file; may hold a password
	StateDir        string                 // absolute
	SecretFiles     []string               // that were read, this configuration's own among them
	Listen          string                 // host:port
	Poll            bool                   // deliveries are read through GitHub's API: it cannot reach the server
	GitHubURL       string                 // of a GitHub Enterprise server, without a slash at the end; "": github.com
	LogHosts        []string               // where logs of checks may be fetched from besides GitHub's own stores
	Label           string                 // starts a run, and is the prefix of the other labels
	Slug            string                 // what commands and branches begin with, and the check's name
	AnthropicKey    Secret                 //
	OpenAIKey       Secret                 //
	AnthropicURL    string                 // "": Anthropic's own
	OpenAIURL       string                 // "": OpenAI's own
	UnsafeNoSandbox bool                   // repositories' commands run bare
	WorkerUser      string                 // "": chosen by the sandbox
	Dependencies    bool                   // they are installed before tests run
	InstallScripts  bool                   // packages may run scripts of their own then
	Registries      []Registry             // sorted by name
	ImageRegistries []string               // hosts that images are pulled from
	Toolchains      []string               // directories of tools that commands see, read-only; absolute
	WriteInterval   time.Duration          // between two writes to GitHub
	DayUSD          float64                // cap on all runs' model calls in a day; 0: none
	MonthUSD        float64                // in a month; 0: none
	CallTimeout     time.Duration          // of one call to GitHub; after it, the call may still have its effect
	ModelTimeout    time.Duration          // until a model begins to answer
	ModelPatience   time.Duration          // until a human is asked about a model's provider that is away
	Parallel        Parallel               // what the server does at the same time
	Prices          map[string]ModelPrice  // by provider/model
	ModelLimits     map[string]ModelLimits // by provider/model
	Answers         int                    // of Forge in one issue or pull request in an hour; 0: any number
	ThreadAnswers   int                    // and in one conversation on the diff
	Remarks         int                    // on one pull request in an hour that are looked at as they come; 0: any number
	KeepDeliveries  int                    // days after which a handled delivery's payload is deleted; 0: never
	Reflection      bool                   // look back at runs and learn from them
	KeepIncidents   int                    // days after their end when incidents, and old deployments, are deleted; 0: never
	KeepTapes       int                    // days after its end when a run's model calls are deleted; 0: never
	BackupEvery     time.Duration          // between two backups of an SQLite database; 0: none
	BackupKeep      int                    // how many are kept
	BackupDir       string                 // where, absolute
	MetricsToken    Secret                 // with it a monitor may read /metrics from elsewhere; not set: only this machine may
	Dashboard       string                 // who may see the web pages: "off", "local", "github"
	DashboardListen string                 // host:port of the web pages when they are for this machine alone
	ClientID        string                 // the App's, with which people sign in
	ClientSecret    Secret                 //
	Hooks           []Hook                 // sorted by name
	HealthChecks    []HealthCheck          // sorted by name
	Queries         []Query                // sorted by name
	Subscribers     []Subscriber           // sorted by name
	PublicURL       string                 // where people reach the server, without a slash at the end
	Run             config.Config          // defaults of every repository, and its limits; Models has every role that a model is set for
	Warnings        []string               // what works but should not stay so
}

// Registry is where packages are fetched from.
type Registry struct {
	Name    string
	Kind    string // go, npm, pypi, cargo, maven, rubygems, composer
	URL     string
	Match   []string // globs of package names that come from here alone; none: all others
	Private bool     // its address may be one that is not public
	Token   Secret
}

// registryFile is a registry in forge.yml.
type registryFile struct {
	Kind      string   `json:"kind"`
	URL       string   `json:"url"`
	Match     []string `json:"match"`
	Private   bool     `json:"private"`
	TokenFile string   `json:"token_file"`
}

// ModelPrice is what a model costs, in USD per million tokens.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Cached     float64 `json:"cached"`      // 0: as Input
	CacheWrite float64 `json:"cache_write"` // 0: as Input
	Output     float64 `json:"output"`
}

// ModelLimits are a model's, in tokens; 0: not set.
type ModelLimits struct {
	OutputTokens    int    `json:"output_tokens"`
	ContextTokens   int    `json:"context_tokens"`
	ReasoningTokens int    `json:"reasoning_tokens"`
	Form            string `json:"form"` // see agent.Limits
}

// serverFile is forge.yml. Where a variable is named, it goes before the file.
type serverFile struct {
	AppID            int64                     `json:"app_id" env:"FORGE_APP_ID"`
	PrivateKeyFile   string                    `json:"private_key_file" env:"FORGE_PRIVATE_KEY_FILE"`
	WebhookSecret    string                    `json:"webhook_secret" env:"FORGE_WEBHOOK_SECRET"`
	WebhookFile      string                    `json:"webhook_secret_file" env:"FORGE_WEBHOOK_SECRET_FILE"`
	DatabaseURL      string                    `json:"database_url" env:"FORGE_DATABASE_URL"`
	StateDir         string                    `json:"state_dir" env:"FORGE_STATE_DIR"`
	Listen           string                    `json:"listen" env:"FORGE_LISTEN"`
	Poll             bool                      `json:"poll" env:"FORGE_POLL"`
	GitHubURL        string                    `json:"github_url" env:"FORGE_GITHUB_URL"`
	LogHosts         []string                  `json:"log_hosts"`
	Label            string                    `json:"label" env:"FORGE_LABEL"`
	Slug             string                    `json:"slug" env:"FORGE_SLUG"`
	Model            string                    `json:"model" env:"FORGE_MODEL"`
	AnthropicKeyFile string                    `json:"anthropic_api_key_file" env:"ANTHROPIC_API_KEY_FILE"`
	OpenAIKeyFile    string                    `json:"openai_api_key_file" env:"OPENAI_API_KEY_FILE"`
	AnthropicURL     string                    `json:"anthropic_base_url" env:"ANTHROPIC_BASE_URL"`
	OpenAIURL        string                    `json:"openai_base_url" env:"OPENAI_BASE_URL"`
	UnsafeNoSandbox  bool                      `json:"unsafe_no_sandbox" env:"FORGE_UNSAFE_NO_SANDBOX"`
	WorkerUser       string                    `json:"worker_user" env:"FORGE_WORKER_USER"`
	Dependencies     string                    `json:"dependencies" env:"FORGE_DEPENDENCIES"`
	InstallScripts   bool                      `json:"install_scripts" env:"FORGE_INSTALL_SCRIPTS"`
	Registries       map[string]registryFile   `json:"registries"`
	ImageRegistries  []string                  `json:"image_registries"`
	Toolchains       []string                  `json:"toolchains"`
	WriteInterval    time.Duration             `json:"write_interval" env:"FORGE_WRITE_INTERVAL"`
	CallTimeout      time.Duration             `json:"call_timeout" env:"FORGE_CALL_TIMEOUT"`
	DayUSD           float64                   `json:"day_usd" env:"FORGE_DAY_USD"`
	MonthUSD         float64                   `json:"month_usd" env:"FORGE_MONTH_USD"`
	ModelTimeout     time.Duration             `json:"model_timeout" env:"FORGE_MODEL_TIMEOUT"`
	ModelPatience    time.Duration             `json:"model_patience" env:"FORGE_MODEL_PATIENCE"`
	ModelParallel    int                       `json:"model_parallel" env:"FORGE_MODEL_PARALLEL"`
	CommandsParallel int                       `json:"commands_parallel" env:"FORGE_COMMANDS_PARALLEL"`
	PartWorkers      int                       `json:"part_workers" env:"FORGE_PART_WORKERS"`
	Prices           map[string]ModelPrice     `json:"prices"`
	ModelLimits      map[string]ModelLimits    `json:"model_limits"`
	Answers          int                       `json:"answers_per_hour" env:"FORGE_ANSWERS_PER_HOUR"`
	ThreadAnswers    int                       `json:"thread_answers_per_hour" env:"FORGE_THREAD_ANSWERS_PER_HOUR"`
	Remarks          int                       `json:"remarks_per_hour" env:"FORGE_REMARKS_PER_HOUR"`
	KeepDeliveries   int                       `json:"keep_deliveries_days" env:"FORGE_KEEP_DELIVERIES_DAYS"`
	Reflection       bool                      `json:"reflection" env:"FORGE_REFLECTION"`
	KeepTapes        int                       `json:"keep_tapes_days" env:"FORGE_KEEP_TAPES_DAYS"`
	KeepIncidents    int                       `json:"keep_incidents_days" env:"FORGE_KEEP_INCIDENTS_DAYS"`
	BackupEvery      time.Duration             `json:"backup_every" env:"FORGE_BACKUP_EVERY"`
	BackupKeep       int                       `json:"backup_keep" env:"FORGE_BACKUP_KEEP"`
	BackupDir        string                    `json:"backup_dir" env:"FORGE_BACKUP_DIR"`
	MetricsTokenFile string                    `json:"metrics_token_file" env:"FORGE_METRICS_TOKEN_FILE"`
	Dashboard        string                    `json:"dashboard" env:"FORGE_DASHBOARD"`
	DashboardListen  string                    `json:"dashboard_listen" env:"FORGE_DASHBOARD_LISTEN"`
	ClientID         string                    `json:"client_id" env:"FORGE_CLIENT_ID"`
	ClientSecretFile string                    `json:"client_secret_file" env:"FORGE_CLIENT_SECRET_FILE"`
	PublicURL        string                    `json:"public_url" env:"FORGE_PUBLIC_URL"`
	Hooks            map[string]hookFile       `json:"hooks"`
	HealthChecks     map[string]healthFile     `json:"health_checks"`
	Prometheus       map[string]prometheusFile `json:"prometheus"`
	Queries          map[string]queryFile      `json:"queries"`
	Subscribers      map[string]subscriberFile `json:"subscribers"`
	Mode             config.Mode               `json:"mode"`
	OnBaseMoved      string                    `json:"on_base_moved"`
	Gates            config.Gates              `json:"gates"`
	Loop             config.Loop               `json:"loop"`
	Limits           config.Limits             `json:"limits"`
	Tests            config.Tests              `json:"tests"`
	Breaker          config.Breaker            `json:"breaker"`
	Models           map[config.Role]string    `json:"models"`
	Paths            config.Paths              `json:"paths"`
	Learn            config.Learn              `json:"learn"`
	Modules          config.Modules            `json:"modules"`
	Documents        string                    `json:"documents"`
	Production       config.Production         `json:"production"`
	Ship             config.Ship               `json:"ship"`
	Commits          string                    `json:"commits"`
	Signoff          bool                      `json:"signoff"`
	CommitMessage    string                    `json:"commit_message"`
	BranchName       string                    `json:"branch_name"`
	AtReady          config.Ready              `json:"ready"`
}

// Parallel is what a server does at the same time. 0 is without limit, and of modules four.
type Parallel struct {
	Models   int // calls of a provider
	Commands int // commands in sandboxes
	Parts    int // runs that build modules
}

// Server reads the server's configuration: the file at path, if path is not
// empty, then the environment, which goes before the file. The error lists every
// problem and how to mend it, and holds no secret. What only `forge serve` needs
// may be missing: see [Config.Ready].
func Server(path string, getenv func(string) string) (Config, error) {
	return server(path, getenv, os.Geteuid() == 0)
}

func server(path string, getenv func(string) string, root bool) (Config, error) {
	def := config.Default()
	f := &serverFile{
		Listen: "127.0.0.1:8080", Label: "forge", Slug: command.Slug, WriteInterval: time.Second, CallTimeout: 15 * time.Second,
		ModelTimeout: 10 * time.Minute, ModelPatience: 2 * time.Hour, KeepDeliveries: 30, KeepTapes: 90,
		Answers: 30, ThreadAnswers: 10, Remarks: 120,
		BackupEvery: time.Hour, BackupKeep: 3, Reflection: true, Dependencies: "install", ImageRegistries: []string{"docker.io", "ghcr.io", "mcr.microsoft.com", "public.ecr.aws", "quay.io"}, Dashboard: "local", DashboardListen: "127.0.0.1:8081",
		Mode: def.Mode, OnBaseMoved: def.OnBaseMoved, Gates: def.Gates, Loop: def.Loop, Limits: def.Limits, Tests: def.Tests,
		Breaker: def.Breaker, Paths: def.Paths, Learn: def.Learn, Modules: def.Modules,
		Commits: def.Commits, Documents: def.Documents,
	}
	l := &loader{file: f, getenv: getenv, root: root}
	if path != "" {
		l.readFile(path)
	}
	l.readEnv()
	l.finish()
	if err := errors.Join(l.problems...); err != nil {
		return Config{}, err
	}
	return l.config, nil
}

// loader puts a server's configuration together.
type loader struct {
	file     *serverFile
	getenv   func(string) string
	root     bool
	config   Config
	problems []error
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

func (l *loader) readFile(path string) {
	info, err := os.Stat(path)
	if err != nil {
		l.problem("read the configuration: %w: name an existing file with --config, or leave it out", err)
		return
	}
	if info.Size() > maxFile {
		l.problem("%s has %d bytes; at most %d are read: is it the right file?", path, info.Size(), maxFile)
		return
	}
	if info.IsDir() {
		l.problem("read the configuration: %s is a directory: name a file in it with --config", path)
		return
	}
	l.config.SecretFiles = append(l.config.SecretFiles, path)
	data, err := readNow(path)
	if err != nil {
		l.problem("read the configuration: %w", err)
		return
	}
	if len(data) == 0 && !info.Mode().IsRegular() {
		l.problem("read the configuration: %s is no plain file, and nothing comes out of it: name a file with --config", path)
		return
	}
	r := &reader{name: path}
	r.read(data, l.file)
	l.problems = append(l.problems, r.problems...)
	profiled(r.set, &l.file.Loop, &l.file.Breaker)
	if l.file.WebhookSecret != "" && info.Mode().Perm()&0o077 != 0 {
		l.problem("%s holds webhook_secret but can be read by others (mode %04o): chmod 600 %s, or use webhook_secret_file", path, info.Mode().Perm(), path)
	}
}

// readNow reads a file, or a pipe that somebody writes to; of one that nobody does, nothing.
func readNow(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// readEnv takes the variables that are set.
func (l *loader) readEnv() {
	v := reflect.ValueOf(l.file).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		env := field.Tag.Get("env")
		if env == "" || l.getenv(env) == "" {
			continue
		}
		why := parseText(l.getenv(env), v.Field(i))
		if why == "" {
			why = strings.TrimPrefix(check(jsonName(field), v.Field(i), nil, false), jsonName(field)+" ")
		}
		if why != "" {
			l.problem("%s (environment) %s", env, why)
		}
	}
	for _, role := range slices.Concat(roles, writers) {
		env := modelEnv(string(role))
		model := l.getenv(env)
		if model == "" {
			continue
		}
		if why := checkModel(model); why != "" {
			l.problem("%s (environment) %s", env, why)
			continue
		}
		if l.file.Models == nil {
			l.file.Models = map[config.Role]string{}
		}
		l.file.Models[role] = model
	}
}

func modelEnv(role string) string { return "FORGE_MODEL_" + strings.ToUpper(role) }

// finish makes the configuration of what was read.
func (l *loader) finish() {
	f, c := l.file, &l.config
	*c = Config{
		SecretFiles: c.SecretFiles,
		AppID:       f.AppID, PrivateKeyFile: f.PrivateKeyFile, Listen: f.Listen, Poll: f.Poll, GitHubURL: strings.TrimRight(f.GitHubURL, "/"),
		LogHosts: f.LogHosts, ImageRegistries: f.ImageRegistries, Toolchains: l.toolchains(), Label: f.Label, Slug: f.Slug,
		AnthropicURL: f.AnthropicURL, OpenAIURL: f.OpenAIURL, UnsafeNoSandbox: f.UnsafeNoSandbox,
		WorkerUser: f.WorkerUser, Dependencies: f.Dependencies == "install", InstallScripts: f.InstallScripts, WriteInterval: f.WriteInterval,
		CallTimeout:  f.CallTimeout,
		ModelTimeout: f.ModelTimeout, ModelPatience: f.ModelPatience, Parallel: Parallel{f.ModelParallel, f.CommandsParallel, f.PartWorkers},
		Prices: f.Prices, ModelLimits: f.ModelLimits, KeepDeliveries: f.KeepDeliveries, KeepTapes: f.KeepTapes, KeepIncidents: f.KeepIncidents,
		Answers: f.Answers, ThreadAnswers: f.ThreadAnswers, Remarks: f.Remarks,
		BackupEvery: f.BackupEvery, BackupKeep: f.BackupKeep, Reflection: f.Reflection,
		DayUSD: f.DayUSD, MonthUSD: f.MonthUSD, Dashboard: f.Dashboard, DashboardListen: f.DashboardListen, ClientID: f.ClientID,
		PublicURL: strings.TrimRight(f.PublicURL, "/"),
		Run: config.Config{Mode: f.Mode, OnBaseMoved: f.OnBaseMoved, Gates: f.Gates, Loop: f.Loop, Limits: f.Limits, Tests: f.Tests,
			Breaker: f.Breaker, Paths: f.Paths, Learn: f.Learn, Modules: f.Modules,
			Documents: f.Documents, Production: f.Production, Ship: f.Ship, Commits: f.Commits, Signoff: f.Signoff, CommitMessage: f.CommitMessage,
			BranchName: f.BranchName, Ready: f.AtReady},
	}
	l.models()
	l.stateDir()
	l.registries()
	l.hooks()
	l.healthChecks()
	l.queries()
	l.subscribers()
	c.WebhookSecret = l.secret("webhook_secret", f.WebhookSecret, f.WebhookFile)
	if c.WebhookSecret.Set() {
		if why := checkSecret(c.WebhookSecret.Reveal()); why != "" && f.WebhookSecret == "" {
			l.problem("webhook_secret_file %s", why)
		}
	}
	c.MetricsToken = l.secret("metrics_token", "", f.MetricsTokenFile)
	c.ClientSecret = l.secret("FORGE_CLIENT_SECRET", l.getenv("FORGE_CLIENT_SECRET"), f.ClientSecretFile)
	if n := len(c.ClientSecret.Reveal()); c.ClientSecret.Set() && n < 16 {
		l.problem("the client secret has %d characters; GitHub's have 40: generate one in the App's settings under General, Client secrets", n)
	}
	c.AnthropicKey = l.secret("ANTHROPIC_API_KEY", l.getenv("ANTHROPIC_API_KEY"), f.AnthropicKeyFile)
	c.OpenAIKey = l.secret("OPENAI_API_KEY", l.getenv("OPENAI_API_KEY"), f.OpenAIKeyFile)
	if f.PrivateKeyFile != "" {
		l.privateKey(f.PrivateKeyFile)
	}
	if f.UnsafeNoSandbox {
		c.Warnings = append(c.Warnings, "unsafe_no_sandbox is on: commands of repositories run with all rights of the server's user")
	}
}

func (l *loader) models() {
	models := map[config.Role]string{}
	for _, role := range roles {
		if m := l.file.Models[role]; m != "" {
			models[role] = m
		} else if l.file.Model != "" {
			models[role] = l.file.Model
		}
	}
	for _, role := range writers {
		if m := l.file.Models[role]; m != "" {
			models[role] = m
		}
	}
	if len(models) > 0 {
		l.config.Run.Models = models
	}
}

// registries takes the registries, and reads their tokens.
func (l *loader) registries() {
	for _, name := range slices.Sorted(maps.Keys(l.file.Registries)) {
		f := l.file.Registries[name]
		key := "registries." + name
		r := Registry{Name: name, Kind: cmp.Or(f.Kind, name), URL: f.URL, Match: f.Match, Private: f.Private}
		if why := check("registries.*.kind", reflect.ValueOf(r.Kind), nil, false); why != "" {
			l.problem("%s: its name is none of the kinds: add `kind`: one of go, npm, pypi, cargo, maven, rubygems, composer", key)
		}
		switch {
		case f.URL == "":
			l.problem("%s has no url", key)
		case strings.HasPrefix(f.URL, "http://") && !f.Private:
			l.problem("%s.url must be https, or `private: true`", key)
		}
		r.Token = l.secret(key+".token", "", f.TokenFile)
		l.config.Registries = append(l.config.Registries, r)
	}
}

// stateDir finds the state directory, and the database in it.
func (l *loader) stateDir() {
	dir := l.file.StateDir
	switch home := l.getenv("HOME"); {
	case dir != "":
	case l.root:
		dir = "/var/lib/forge"
	case filepath.IsAbs(l.getenv("XDG_STATE_HOME")):
		dir = filepath.Join(l.getenv("XDG_STATE_HOME"), "forge")
	case filepath.IsAbs(home):
		dir = filepath.Join(home, ".local", "state", "forge")
	default:
		l.problem("state_dir is not set, and without HOME there is no default: set FORGE_STATE_DIR")
		return
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		l.problem("state_dir %s: %w", dir, err)
		return
	}
	l.config.StateDir = abs
	l.config.BackupDir = filepath.Join(abs, "backups")
	if dir := l.file.BackupDir; filepath.IsAbs(dir) {
		l.config.BackupDir = dir
	} else if dir != "" {
		l.config.BackupDir = filepath.Join(abs, dir)
	}
	database := l.file.DatabaseURL
	if database == "" {
		database = "forge.db"
	}
	if path, isFile := sqlitePath(database); isFile && path != ":memory:" {
		database = path
		if !filepath.IsAbs(path) {
			database = filepath.Join(abs, path)
		}
	}
	l.config.DatabaseURL = NewSecret(database)
}

// secret takes a secret from its value or from a file. What the environment gives, as
// one or the other, goes before what the settings' file gives, as it does everywhere:
// `forge setup` writes a file also where the environment holds the key.
func (l *loader) secret(name, value, file string) Secret {
	if value != "" && file != "" {
		env := name
		if env == "webhook_secret" {
			env = "FORGE_WEBHOOK_SECRET"
		}
		switch ofValue, ofFile := l.getenv(env) != "", l.getenv(env+"_FILE") != ""; {
		case ofValue && !ofFile:
			file = ""
		case ofFile && !ofValue:
			value = ""
		}
	}
	if file == "" {
		return NewSecret(value)
	}
	if value != "" {
		l.problem("%s is given both as a value and as a file (%s): keep one", name, file)
		return Secret{}
	}
	data, ok := l.guarded(name+"'s file", file)
	if !ok {
		return Secret{}
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		l.problem("%s's file %s is empty: put the secret into it", name, file)
	}
	return NewSecret(text)
}

// guarded reads a small file that only the server's user may read.
func (l *loader) guarded(what, file string) ([]byte, bool) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.problem("%s does not exist: %s", what, file)
		return nil, false
	case err != nil:
		l.problem("%s: %w", what, err)
		return nil, false
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		l.problem("%s %s is not a plain file of at most %d bytes", what, file, maxFile)
		return nil, false
	case info.Mode().Perm()&0o007 != 0:
		l.problem("%s %s can be read or written by everybody on this machine (mode %04o): chmod 600 %s", what, file, info.Mode().Perm(), file)
		return nil, false
	case info.Mode().Perm()&0o070 != 0:
		l.config.Warnings = append(l.config.Warnings, fmt.Sprintf("%s %s is open to its group (mode %04o): chmod 600 %s", what, file, info.Mode().Perm(), file))
	}
	l.config.SecretFiles = append(l.config.SecretFiles, file)
	data, err := os.ReadFile(file)
	if err != nil {
		l.problem("%s: %w: the server's user must be able to read it", what, err)
		return nil, false
	}
	return data, true
}

func (l *loader) privateKey(file string) {
	data, ok := l.guarded("private_key_file", file)
	if !ok {
		return
	}
	if block, _ := pem.Decode(data); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		l.problem("private_key_file %s is not a PEM private key: use the .pem file that GitHub gave out for the App", file)
	}
}

// Ready says what is missing to serve GitHub; nil: nothing. Commands that need
// no GitHub do without.
func (c *Config) Ready() error {
	var missing []error
	need := func(ok bool, text string) {
		if !ok {
			missing = append(missing, errors.New(text))
		}
	}
	need(c.AppID != 0, "app_id is missing: set FORGE_APP_ID to the App's id; it stands on the App's settings page")
	need(c.PrivateKeyFile != "", "private_key_file is missing: set FORGE_PRIVATE_KEY_FILE to the App's .pem file")
	need(c.WebhookSecret.Set(), "webhook_secret is missing: set FORGE_WEBHOOK_SECRET to what the App's webhook is set to; without it anybody could give orders")
	var without []string
	providers := map[string]bool{}
	for _, role := range roles {
		model := c.Run.Models[role]
		provider, _, _ := strings.Cut(model, "/")
		providers[provider] = true
		if model == "" {
			without = append(without, string(role))
		}
	}
	need(len(without) == 0, "model is missing for "+strings.Join(without, ", ")+": set FORGE_MODEL, such as anthropic/MODEL or openai/MODEL")
	for _, p := range agent.ProviderNames {
		need(!providers[p] || c.Credentials().Has(p), strings.ToUpper(p)+"_API_KEY is missing, and a role uses a model of "+p)
	}
	c.dashboardReady(need)
	return errors.Join(missing...)
}

// Credentials are what models are reached with.
func (c *Config) Credentials() agent.Credentials {
	return agent.Credentials{AnthropicKey: c.AnthropicKey.Reveal(), OpenAIKey: c.OpenAIKey.Reveal(),
		AnthropicURL: c.AnthropicURL, OpenAIURL: c.OpenAIURL, Timeout: c.ModelTimeout}
}

// dashboardReady says what is missing to let people sign in with GitHub.
func (c *Config) dashboardReady(need func(ok bool, text string)) {
	if c.Dashboard != "github" {
		return
	}
	web := c.GitHubURL
	if web == "" {
		web = "https://github.com"
	}
	where := " in the App's settings (" + web + "/settings/apps, Edit, General; of an organisation: its Settings, Developer settings, GitHub Apps)"
	need(c.PublicURL != "", "public_url is missing, and dashboard is github: set FORGE_PUBLIC_URL to the address at which people reach this server, such as https://forge.example.com, and add that with /login/callback behind it as a Callback URL"+where)
	callback := c.PublicURL + "/login/callback"
	if c.PublicURL == "" {
		callback = "PUBLIC_URL/login/callback"
	}
	need(c.ClientID != "", "client_id is missing, and dashboard is github: set FORGE_CLIENT_ID to the Client ID"+where+"; there "+callback+
		" must be a Callback URL")
	need(c.ClientSecret.Set(), "client_secret is missing, and dashboard is github: set FORGE_CLIENT_SECRET, or client_secret_file, to a secret made with Generate a new client secret"+where)
}

var clientID = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

func checkClientID(s string) string {
	if s == "" || clientID.MatchString(s) && strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return fmt.Sprintf("is %q; it must be the App's Client ID, which begins with Iv, not its App ID: both are in the App's settings under General", s)
}

// checkPublicURL wants an address that people's sign-ins can travel to: https, or
// this machine.
func checkPublicURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be an address such as https://forge.example.com"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "must be a scheme and a host alone, such as https://forge.example.com: the pages are at its root"
	case u.Scheme == "http" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1":
		return fmt.Sprintf("is plain http to %s, so that sign-ins could be read on the way: use https, with a TLS proxy in front of the server", u.Host)
	}
	return ""
}

func checkSecret(s string) string {
	if len(s) < 16 {
		return fmt.Sprintf("has %d characters; at least 16 are needed: make one with openssl rand -hex 32, and set the same in the App", len(s))
	}
	return ""
}

var scheme = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+.-]*)://`)

// sqlitePath is the path of a SQLite database, named bare or as file: or sqlite: URL.
func sqlitePath(s string) (path string, isFile bool) {
	for _, prefix := range []string{"file://", "file:", "sqlite://", "sqlite:"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest, true
		}
	}
	return s, !strings.Contains(s, "://")
}

func checkDatabase(s string) string {
	if path, isFile := sqlitePath(s); isFile {
		if path == "" || path != s && strings.ContainsAny(path, "?#%") {
			return "must be file: or sqlite: with a plain path behind it, without parameters"
		}
		return ""
	}
	if m := scheme.FindStringSubmatch(s); m != nil && m[1] != "postgres" && m[1] != "postgresql" {
		return fmt.Sprintf("is of the kind %s://; it must be postgres://…, or the path of a SQLite file, also as file: or sqlite: URL", m[1])
	}
	return ""
}

func checkListen(s string) string {
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("is %q; it must be host:port, such as 127.0.0.1:8080 or :8080", s)
	}
	return ""
}

var hostName = lazyregexp.New(`^\.?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// checkHost wants a host, or all hosts below one.
func checkHost(s string) string {
	if hostName.MatchString(s) {
		return ""
	}
	return "must be a host such as logs.example.com, or .example.com for all below it"
}

// managed are where version managers keep what they install, below a home.
var managed = []string{".rustup/toolchains", ".nvm/versions/node", ".local/share/fnm/node-versions", ".pyenv/versions", ".local/share/uv/python",
	".rbenv/versions", ".sdkman/candidates", ".local/share/mise/installs", ".asdf/installs"}

// toolchains are the directories that are named, else those of the server's user. Root's are
// not: no other user can read them, and no command runs as root.
func (l *loader) toolchains() (out []string) {
	if home := l.getenv("HOME"); l.file.Toolchains == nil && !l.root && filepath.IsAbs(home) {
		for _, name := range managed {
			dir := filepath.Join(home, filepath.FromSlash(name))
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				out = append(out, dir)
			}
		}
	}
	for _, dir := range l.file.Toolchains {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			l.problem("toolchains: %s is no directory: name one that holds bin, or the versions of a tool", dir)
			continue
		}
		out = append(out, dir)
	}
	return out
}

// checkDirectory wants the absolute path of a directory.
func checkDirectory(s string) string {
	if !filepath.IsAbs(s) || filepath.Clean(s) == "/" {
		return "must be the absolute path of a directory, such as /opt/toolchains"
	}
	return ""
}

// checkLoopback wants an address that only this machine can reach.
func checkLoopback(s string) string {
	host, _, err := net.SplitHostPort(s)
	if err != nil {
		return checkListen(s)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return "must be an address of this machine alone, such as 127.0.0.1:8081; to let others in, set dashboard to github"
	}
	return checkListen(s)
}

// checkURL wants https, but lets plain http pass where it stays on the machine or
// in its own network.
func checkURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "must be an address such as https://host.example"
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "must hold no user, password, query or fragment: secrets have variables of their own"
	}
	if u.Scheme == "http" && !nearby(u.Hostname()) {
		return fmt.Sprintf("is plain http to %s, so that keys could be read on the way: use https", u.Host)
	}
	return ""
}

// nearby reports whether a host is this machine, a private address, or a bare
// name such as containers have.
func nearby(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate()
	}
	return host == "localhost" || !strings.Contains(host, ".")
}

func checkLabel(s string) string {
	if n := len([]rune(s)); strings.TrimSpace(s) != s || n == 0 || n > 30 || strings.ContainsAny(s, ",\n") {
		return fmt.Sprintf("is %q; it must have 1 to 30 characters, without a comma and without space at its ends", s)
	}
	return ""
}

var slugForm = lazyregexp.New(`^[a-z][a-z0-9-]{0,29}$`)

func checkSlug(s string) string {
	if slugForm.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("is %q; it must have 1 to 30 small letters, digits and -, and begin with a letter", s)
}

var userName = lazyregexp.New(`^[a-z_][a-z0-9_-]{0,31}$`)

func checkUser(s string) string {
	if s == "" || userName.MatchString(s) && s != "root" {
		return ""
	}
	return fmt.Sprintf("is %q; it must be the name of an unprivileged user", s)
}
