package settings

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"

	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/lens"
	"forge/pipeline/text"
)

// rule says what a key may hold, and what it is for.
type rule struct {
	doc      string
	min, max float64 // of a number; both 0: not one, or any
	unit     string
	enum     []string
	items    int                 // most entries of a list
	item     func(string) string // says what is wrong with an entry of a list
	text     func(string) string // says what is wrong with a text
	names    func(string) string // of a map with names of people's own: says what is wrong with one
	pattern  string              // of such a text, for the schema; "": a model's
}

// Roles are the agents that may each have a model of their own.
var roles = []config.Role{config.RolePlanner, config.RoleImplementer, config.RoleReviewer, config.RoleTester, config.RoleReflector}

// writers are those that may have one, too, and use the planner's without.
var writers = []config.Role{config.RoleAnalyst, config.RoleProduct, config.RoleArchitect, config.RoleUX, config.RoleChecker}

// mapKeys are the keys of those maps whose keys are fixed.
var mapKeys = map[string][]string{"models": roleNames()}

func roleNames() (out []string) {
	for _, r := range slices.Concat(roles, writers) {
		out = append(out, string(r))
	}
	return out
}

// rules are those of a repository's keys; the server's file takes the same, as
// defaults for all repositories. The defaults are config.Default's.
var rules = map[string]rule{
	"mode": {doc: "auto: runs go on by themselves; manual: a human's word is needed before every action (R7)",
		enum: []string{"auto", "manual"}},
	"max_refinement_attempts":  {doc: "In an issue's front matter: reworks until a human is asked (R4)", min: 1, max: 50},
	"on_base_moved":            {doc: "When the default branch has moved on since the work began: merge it in and check again, ask a human, or ignore it", enum: []string{"merge", "ask", "ignore"}},
	"gates":                    {doc: "How long a run waits for a human"},
	"gates.remind_hours":       {doc: "Hours until who started the run is reminded, once", min: 1, max: 24 * 365, unit: "hours"},
	"gates.timeout_hours":      {doc: "Hours until a run that nobody answers, or resumes, is cancelled", min: 1, max: 24 * 365, unit: "hours"},
	"loop":                     {doc: "Limits of the loop implement, review, test"},
	"loop.profile":             {doc: "What the limits of the loop and of the breaker are that are not set: strict asks soon, balanced gives findings time, patient would rather wait than ask", enum: []string{"strict", "balanced", "patient"}},
	"loop.max_iterations":      {doc: "Iterations in all, before a human is asked (T2)", min: 1, max: 100},
	"loop.review_bounces":      {doc: "Times that a review may send the work back (B1)", max: 100},
	"loop.test_bounces":        {doc: "Times that tests may send the work back (B1)", max: 100},
	"loop.same_finding":        {doc: "Times that the same finding may come back (T2)", min: 1, max: 100},
	"loop.same_failure":        {doc: "Times that the same test failure may come back (T2)", min: 1, max: 100},
	"loop.diminishing_from":    {doc: "The bounce from which reworks must leave less than ever before (B6)", min: 1, max: 100},
	"loop.evidence":            {doc: "How much must speak against going on, until a human is asked: each rework after which no less is left counts as one, one that mended none of several as many as they are (B6)", min: 1, max: 100},
	"loop.doubts":              {doc: "Signs that going on does not help, until a human is asked: the implementer doubts that it can mend what has come back, no test failure has a confident fix", min: 1, max: 100},
	"loop.auto_fix_only":       {doc: "Test failures go back only when the analysis has a confident fix; else a human is asked (B5)"},
	"loop.auto_fix_confidence": {doc: "How confident that fix must be, 0 to 1 (B5)", max: 1},
	"loop.proofs":              {doc: "Whether the implementer names, for each acceptance criterion, the tests that show it: warn shows criteria without a test that passed on the head, require sends the work back for them", enum: []string{"off", "warn", "require"}},
	"loop.faults":              {doc: "Breakdowns in a row that cost no attempt (R6)", min: 1, max: 20},
	"upstream":                 {doc: "Whether agents tell the planner what cannot be, was missed, or is not met again, and it revises the plan and its criteria; only a human takes anything away"},
	"upstream.enabled":         {doc: "Let them"},
	"upstream.timeout_minutes": {doc: "Minutes that an answer may take while nothing else can be done, until a human is asked; 0: 10", max: 24 * 60, unit: "minutes"},
	"upstream.same":            {doc: "The time at which the same matter goes to a human at once; 0: 2", max: 20},
	"upstream.max":             {doc: "Matters of a run that agents settle, before a human is asked about the next; 0: 5", max: 50},
	"upstream.cost_share":      {doc: "Share of the run's cost limit that answers may take, 0 to 1; 0: 0.2", max: 1},
	"upstream.weaken":          {doc: "Who may weaken or drop what the task asks for: a human, always", enum: []string{"", "human"}},
	"limits":                   {doc: "The budget of a run; no repository can go over the server's"},
	"limits.cost_usd":          {doc: "Cost of a run's model calls", min: 0.01, max: 10_000, unit: "USD"},
	"limits.tokens":            {doc: "Tokens of a run's model calls, input and output", min: 1000, max: 1e12, unit: "tokens"},
	"limits.wall_minutes":      {doc: "Working time of a run, waiting for humans not counted", min: 1, max: 7 * 24 * 60, unit: "minutes"},
	"limits.adapt":             {doc: "Give a small task a share of cost, tokens, time and iterations: 50 to 85 per cent by its score, never more than is set"},
	"limits.steps_per_phase":   {doc: "An agent's turns in one phase", min: 1, max: 1000},
	"modules":                  {doc: "Whether a plan may split a feature into modules that are built at the same time"},
	"modules.mode":             {doc: "off: never; auto: where the plan's own sizes say that it saves enough time; ask: and a human agrees", enum: []string{"off", "auto", "ask"}},
	"modules.max":              {doc: "Modules of a plan", min: 2, max: 20},
	"modules.parallel":         {doc: "Modules of a run built at the same time", min: 1, max: 20},
	"modules.iterations":       {doc: "Iterations of a module's own loop, before a human is asked", min: 1, max: 100},
	"modules.rounds":           {doc: "Times that the integration may send work back to a module, before a human is asked", min: 1, max: 20},
	"modules.min_gain":         {doc: "Share of the time that a split must save by the plan's own sizes, 0 to 1", max: 1},
	"modules.on_failure":       {doc: "When a module's own loop stops: ask a human, or go on with those that passed, without it and what needs it; without: revise the plan without it", enum: []string{"ask", "passed", "without"}},
	"production":               {doc: "What is done about incidents of production by itself; each answer is on by itself"},
	"production.environments":  {doc: "Environments whose incidents are answered; none: production", items: 20, item: checkEnvironment},
	"production.tell":          {doc: "Comment on the pull request that is suspected, also where it is not Forge's"},
	"production.ask":           {doc: "Ask people what to do, by a comment with choices; who has write access answers with the command incident ID CHOICE"},
	"production.issue":         {doc: "Open an issue for each critical incident"},
	"production.run":           {doc: "Start a run on that issue; needs issue"},
	"production.revert":        {doc: "Open a draft that reverts the pull request that a critical incident is attributed to"},
	"production.roll_back":     {doc: "Deploy what ran before again, when a critical incident is attributed to a deployment; the App needs deployments: write"},
	"production.bake_minutes":  {doc: "Minutes that a deployment is watched after it has succeeded, by the server's health checks and queries; 0: not at all", max: 24 * 60, unit: "minutes"},
	"production.watch":         {doc: "Which deployments are watched: those that bring work of Forge's, or all", enum: []string{"", "forge", "all"}},
	"production.irreversible":  {doc: "Globs, on top of migrations, of files across whose changes no roll-back goes", items: 200, item: checkGlob},
	"ship":                     {doc: "Whether verified work is merged and deployed; people are asked before anything happens"},
	"ship.enabled":             {doc: "Ask whether to ship each verified or accepted pull request; who has write access answers with the command ship"},
	"ship.via":                 {doc: "deployments: Forge makes GitHub deployments, which something of the repository's follows, and needs deployments: write; watch: the repository deploys what is merged by itself", enum: []string{"", "deployments", "watch"}},
	"ship.merge":               {doc: "How it is merged, where no merge queue decides that", enum: []string{"", "merge", "squash", "rebase"}},
	"ship.environments":        {doc: "Environments that it is brought to, in this order; none: it is merged alone", items: 10, item: checkEnvironment},
	"ship.ask":                 {doc: "Those of them before which people are asked once more", items: 10, item: checkEnvironment},
	"ship.bake_minutes":        {doc: "Minutes that each environment is watched, by the server's health checks and queries, before the next; 0: not at all", max: 24 * 60, unit: "minutes"},
	"ship.timeout_minutes":     {doc: "Minutes until people are asked about a deployment that does not get on; 0: 30", max: 24 * 60, unit: "minutes"},
	"tests":                    {doc: "How the repository is tested"},
	"tests.commands": {doc: "The commands that run the tests; without them they are found by what the repository holds",
		items: 20, item: checkCommand},
	"tests.integration":            {doc: "Commands that test how parts work together: they run beside the tests, of a run with modules once those are merged", items: 20, item: checkCommand},
	"tests.system":                 {doc: "Commands that test the whole end to end: they run once nothing else fails", items: 20, item: checkCommand},
	"tests.timeout_minutes":        {doc: "Time for one command", min: 1, max: 24 * 60, unit: "minutes"},
	"tests.reruns":                 {doc: "Times that a failing test is run again, to tell flaky ones (V3)", max: 10},
	"tests.coverage":               {doc: "Coverage under which a file is reported (V1)", max: 100, unit: "per cent"},
	"tests.checks":                 {doc: "Wait for the repository's own checks on the pushed head, too, and send back what they find"},
	"tests.checks_timeout_minutes": {doc: "How long to wait for them", min: 1, max: 24 * 60, unit: "minutes"},
	"tests.known_failures":         {doc: "Tests that failed before the work began and fail still: ask a human once, or allow them, listed in the report", enum: []string{"ask", "allow"}},
	"setup":                        {doc: "How the repository is set up before its tests: once on the base commit, in the sandbox, with a way to registries alone"},
	"setup.commands":               {doc: "Commands that run after dependencies are installed, in the top directory; what they leave and the repository ignores is there for agents and tests", items: 20, item: checkCommand},
	"setup.image":                  {doc: "A container image whose system commands see in the place of the server's, such as docker.io/library/golang:1.26", text: checkImage, pattern: `^\S*$`},
	"setup.cache":                  {doc: "Directories that are kept besides what the repository ignores", items: 20, item: checkPlace},
	"setup.install":                {doc: "Install dependencies as the repository's files say; without it the commands install all there is"},
	"learn":                        {doc: "What is made of what people did with findings"},
	"learn.holdout":                {doc: "Share of runs that work without what Forge has learnt, to tell what it is worth; 0 switches that off", max: 0.5},
	"learn.share":                  {doc: "Tell the owner's other repositories that share what this one and another of them have both learnt, and be told it"},
	"learn.other_pulls":            {doc: "Learn from what people with write access remark on the diffs of pull requests that are not Forge's, too (H5)"},
	"ready":                        {doc: "What happens when a pull request leaves draft, besides that; GitHub itself asks code owners for a review"},
	"ready.assign":                 {doc: "Assign it to who started the run"},
	"ready.review":                 {doc: "Ask who started the run to review it"},
	"breaker":                      {doc: "The circuit breaker of rework (R3)"},
	"breaker.enabled":              {doc: "Whether it may open (R3)"},
	"breaker.max_iterations":       {doc: "Reworks of one phase in a row, without a pass, until it opens (R3)", min: 1, max: 100},
	"breaker.on_max": {doc: "What then happens: manual asks a human, error fails the run, skip leaves it (R3)",
		enum: []string{"manual", "error", "skip"}},
	"models":          {doc: "A model for each role, as provider/model"},
	"paths":           {doc: "What Forge may change"},
	"skills":          {doc: "Skills of Forge's own that agents may read, besides those that the repository keeps in .agents/skills", items: 20, item: checkSkill},
	"review":          {doc: "How a change is reviewed"},
	"review.lenses":   {doc: "What it is read for besides, each by a reviewer beside the general one: security, product, performance", items: 3, item: checkLens},
	"paths.protected": {doc: "Globs of files that Forge must not change, on top of the built-in ones", items: 200, item: checkGlob},

	"documents":      {doc: "What a run leaves in writing, besides the pull request: in one comment on it, or as files of the branch forge/documents", enum: []string{"off", "comment", "branch"}},
	"commits":        {doc: "Who makes commits: git, the server, unsigned; api, GitHub, which signs them; auto: GitHub where a ruleset asks for signatures", enum: []string{"auto", "git", "api"}},
	"signoff":        {doc: "End commits with Signed-off-by and the App's user (DCO)"},
	"commit_message": {doc: "The first line of commits, with {summary}, {type} (feat, fix, docs, …) and {issue}; empty: Conventional Commits where the repository uses them", text: checkMessage, pattern: `^$|\{summary\}`},
	"branch_name": {doc: "The name of a run's branch, with {issue}, {slug} and {type}, under forge/; empty: forge/issue-{issue}-{slug}",
		text: checkBranch, pattern: `^$|^forge/.*\{issue\}`},

	"track": {doc: "How much process a task gets before it is implemented: quick, a plan; standard, one that is traced to the task's words and held " +
		"against what is fixed; full: besides, an analyst, a product manager, an architect and a designer of what people see write before it; " +
		"auto: as a score of the task says; empty: quick", enum: []string{"", "quick", "standard", "full", "auto"}},

	"roles":           {doc: "Who acts for each role of the full track: agent; off: the planner answers for it"},
	"roles.analyst":   {doc: "Who writes the requirements; empty: agent", enum: []string{"", "agent", "off"}},
	"roles.product":   {doc: "Who writes the acceptance criteria; empty: agent", enum: []string{"", "agent", "off"}},
	"roles.architect": {doc: "Who writes the design; empty: agent", enum: []string{"", "agent", "off"}},
	"roles.ux":        {doc: "Who writes the user interface; empty: auto, an agent where there is one", enum: []string{"", "auto", "agent", "off"}},

	"app_id":                      {doc: "The GitHub App's id", min: 1, max: math.MaxInt32},
	"private_key_file":            {doc: "The GitHub App's private key, a PEM file that only the server's user can read"},
	"webhook_secret":              {doc: "The webhook's secret; better in webhook_secret_file", text: checkSecret},
	"webhook_secret_file":         {doc: "A file that holds the webhook's secret"},
	"database_url":                {doc: "postgres://…, or the path of a SQLite file, from state_dir; also as file: or sqlite: URL", text: checkDatabase},
	"state_dir":                   {doc: "Where work trees, caches and the SQLite file are"},
	"listen":                      {doc: "host:port that the server listens on", text: checkListen},
	"poll":                        {doc: "Read deliveries through GitHub's API instead of being sent them: for a machine that GitHub cannot reach"},
	"github_url":                  {doc: "The GitHub Enterprise server; empty: github.com", text: checkURL},
	"log_hosts":                   {doc: "Hosts that logs of checks may be fetched from besides GitHub's own stores; GitHub Enterprise Server redirects to what it was set up with", items: 20, item: checkHost},
	"label":                       {doc: "The label that starts a run, and the prefix of the others", text: checkLabel},
	"slug":                        {doc: "The word behind the slash of commands, before the slash of branches, and the check's name; change it while no run is open", text: checkSlug},
	"model":                       {doc: "The model of every role without one of its own, as provider/model", text: checkServerModel},
	"anthropic_api_key_file":      {doc: "A file that holds Anthropic's API key, instead of ANTHROPIC_API_KEY"},
	"openai_api_key_file":         {doc: "A file that holds the OpenAI-compatible server's API key, instead of OPENAI_API_KEY"},
	"anthropic_base_url":          {doc: "Where Anthropic's API is reached; empty: its own", text: checkURL},
	"openai_base_url":             {doc: "Where the OpenAI-compatible API is reached; empty: OpenAI's own", text: checkURL},
	"unsafe_no_sandbox":           {doc: "Run commands of repositories without a sandbox; for throw-away machines alone"},
	"dependencies":                {doc: "install: a repository's dependencies are installed through a gateway to registries before its tests run; off: only what the repository holds is there", enum: []string{"install", "off"}},
	"install_scripts":             {doc: "Let what a change adds run scripts when it is installed, in the sandbox"},
	"toolchains":                  {doc: "Directories of tools that repositories' commands see, read-only: of one (DIR/bin), or of many as version managers keep them; not set: those of the server's user", items: 30, item: checkDirectory},
	"image_registries":            {doc: "Registries that images of setup.image are pulled from, without signing in; an empty list: none", items: 50, item: checkImageHost},
	"registries":                  {doc: "Where packages are fetched from, by a name of your own; without an entry for a kind, what the server's own tools are configured with"},
	"registries.*.kind":           {doc: "What it serves; empty: as its name says", enum: []string{"", "go", "npm", "pypi", "cargo", "maven", "rubygems", "composer"}},
	"registries.*.url":            {doc: "Its address, as the package manager would be told", text: checkURL},
	"registries.*.match":          {doc: "Globs of package names that come from here and from nowhere else; none: all others", items: 50, item: checkPattern},
	"registries.*.private":        {doc: "It may have an address that is not public, and need no TLS"},
	"registries.*.token_file":     {doc: "A file that holds the token it wants"},
	"hooks":                       {doc: "Doors for what monitors of production say, by a name of your own: POST /hooks/NAME"},
	"hooks.*.kind":                {doc: "Who sends: alertmanager (Grafana and Mimir, too), sentry, or generic: CloudEvents and Standard Webhooks", enum: []string{"alertmanager", "sentry", "generic"}},
	"hooks.*.token_file":          {doc: "A file that holds the token that Alertmanager sends as Bearer"},
	"hooks.*.secret_file":         {doc: "A file that holds the secret with which Sentry, or who sends as Standard Webhooks say, signs"},
	"hooks.*.repo":                {doc: "The repository that messages are about, when they name none with the label forge_repo", text: checkRepo},
	"hooks.*.repos":               {doc: "Further repositories that messages may name", items: 200, item: checkListedRepo},
	"hooks.*.environment":         {doc: "The environment of messages that name none; empty: production"},
	"hooks.*.per_minute":          {doc: "Messages that are taken in a minute; 0: 120", max: 100_000},
	"hooks.*.projects":            {doc: "Of Sentry: the repository of each project", names: checkName, text: checkRepo},
	"health_checks":               {doc: "Looks at the health of services, by a name of your own, which the server makes again and again"},
	"health_checks.*.url":         {doc: "The address to ask, with GET and no redirects", text: checkHealthURL},
	"health_checks.*.repo":        {doc: "The repository whose service it is", text: checkRepo},
	"health_checks.*.environment": {doc: "The environment; empty: production"},
	"health_checks.*.expect":      {doc: "The status of HTTP that is healthy; 0: 200", max: 599},
	"health_checks.*.contains":    {doc: "A text that the answer's first 64 KiB must hold"},
	"health_checks.*.every":       {doc: "How often; 0: 30s", max: float64(time.Hour)},
	"health_checks.*.fails":       {doc: "Failures in a row until it is an incident; 0: 3", max: 100},
	"health_checks.*.private":     {doc: "Its address may be one that is not public, and need no TLS"},
	"prometheus":                  {doc: "Servers of Prometheus, by a name of your own, that queries are sent to"},
	"prometheus.*.url":            {doc: "Its address, before /api/v1", text: checkURL},
	"prometheus.*.token_file":     {doc: "A file that holds the token that it is sent as Bearer; needs https"},
	"queries":                     {doc: "Queries in PromQL, by a name of your own, that are asked while a deployment is watched"},
	"queries.*.prometheus":        {doc: "The name of the server that is asked"},
	"queries.*.repo":              {doc: "The repository whose service it is", text: checkRepo},
	"queries.*.environment":       {doc: "The environment; empty: production"},
	"queries.*.query":             {doc: "The query; its answer is one number"},
	"queries.*.max":               {doc: "What it may be at most, as a mean of the window; 0: any"},
	"queries.*.min":               {doc: "What it must be at least; 0: any"},
	"queries.*.worse_by":          {doc: "The share that it may be above the mean of the window before the deployment, 0.5 for half as much again; what was as high before never fails; 0: any", max: 1000},
	"queries.*.window":            {doc: "The time that is looked at; 0: 10m", max: float64(24 * time.Hour)},
	"subscribers":                 {doc: "Programs and chats that are told of events of runs, by a name of your own"},
	"subscribers.*.kind":          {doc: "What it takes: CloudEvents, or slack, what Slack and chats like it take, without a signature", enum: []string{"", "slack"}},
	"subscribers.*.url_file":      {doc: "A file that holds the address that events are posted to, with https"},
	"subscribers.*.secret_file":   {doc: "A file with the secret that signs, as Standard Webhooks say; two lines while a new one takes the place of the old"},
	"subscribers.*.types":         {doc: "Globs of types such as gate.requested or run.*; none: all, of a chat questions and ends", items: 50, item: checkPattern},
	"subscribers.*.repos":         {doc: "Globs of OWNER/NAME; none: all", items: 200, item: checkPattern},
	"subscribers.*.private":       {doc: "Its address may be one that is not public, and need no TLS"},
	"worker_user":                 {doc: "The unprivileged user that works on repositories, when the server is root", text: checkUser},
	"day_usd":                     {doc: "Cost of all runs' model calls in a day (UTC); 0: no cap", max: 100_000, unit: "USD"},
	"month_usd":                   {doc: "Cost of all runs' model calls in a month (UTC); 0: no cap", max: 1_000_000, unit: "USD"},
	"write_interval":              {doc: "The pause between two writes to GitHub", max: float64(time.Minute)},
	"call_timeout": {doc: "How long one call to GitHub may take; what was under way in a crash is looked for after as long",
		min: float64(time.Second), max: float64(5 * time.Minute)},
	"model_timeout":                   {doc: "How long a model may take until it begins to answer; its answer may then take six times as long, and fall silent for half of it, at most 5 minutes", min: float64(100 * time.Millisecond), max: float64(time.Hour)},
	"model_parallel":                  {doc: "Calls of a model provider at the same time, fair between runs; 0: any number", max: 1000},
	"commands_parallel":               {doc: "Commands of agents and tests at the same time, fair between runs; 0: any number", max: 1000},
	"part_workers":                    {doc: "Modules that the server works on at the same time, besides other runs; 0: 4", max: 100},
	"model_patience":                  {doc: "How long a run waits for its model's provider, which is away or limits the rate, until a human is asked", min: float64(time.Minute), max: float64(7 * 24 * time.Hour)},
	"prices":                          {doc: "What models cost, by provider/model, over the built-in table and for models that it lacks"},
	"prices.*.input":                  {doc: "Input", max: 10_000, unit: "USD per million tokens"},
	"prices.*.cached":                 {doc: "Input that the provider's prompt cache serves; 0: as other input", max: 10_000, unit: "USD per million tokens"},
	"prices.*.cache_write":            {doc: "Input that the cache takes in; 0: as other input", max: 10_000, unit: "USD per million tokens"},
	"prices.*.output":                 {doc: "Output, reasoning included", max: 10_000, unit: "USD per million tokens"},
	"model_limits":                    {doc: "How much a model may read and write, by provider/model"},
	"model_limits.*.context_tokens":   {doc: "What its context holds, prompt and answer together; 0: its server is asked", max: 100_000_000, unit: "tokens"},
	"model_limits.*.output_tokens":    {doc: "The most that one answer may have, reasoning left out; 0: 16,000, and 64,000 after an answer was cut off", max: 1_000_000, unit: "tokens"},
	"model_limits.*.reasoning_tokens": {doc: "How much a model may reason for one answer, on top: under 4,096 is a low effort, from 16,384 a high one, where a model takes efforts; 0: by role (planner and reviewer high, tester low) for OpenAI's models that take one, else as its provider likes", max: 1_000_000, unit: "tokens"},
	"model_limits.*.form": {doc: "How a model is asked: tools, in conversations with tools; plain, for code alone, without plan and review, as small models need it; empty: plain where it has less than 8b parameters, as its name or its server says, or its window has at most 8,192 tokens",
		enum: []string{"", agent.FormTools, agent.FormPlain}},
	"metrics_token_file":      {doc: "A file that holds the token with which a monitor may read /metrics from elsewhere; without it, only this machine may"},
	"dashboard":               {doc: "Who may see the web pages: off, nobody; local, this machine; github, people who sign in, what they can read on GitHub", enum: []string{"off", "local", "github"}},
	"dashboard_listen":        {doc: "host:port of the web pages when they are for this machine alone", text: checkLoopback},
	"client_id":               {doc: "The GitHub App's client id, with which people sign in to the web pages", text: checkClientID},
	"client_secret_file":      {doc: "A file that holds the GitHub App's client secret, instead of FORGE_CLIENT_SECRET"},
	"public_url":              {doc: "The address at which people reach the server; PUBLIC_URL/login/callback must be a callback URL in the App's settings", text: checkPublicURL},
	"answers_per_hour":        {doc: "Answers to comments and labels in one issue or pull request in an hour; at the limit Forge says so once, and is quiet; 0: any number", max: 10_000},
	"thread_answers_per_hour": {doc: "The same in one conversation on the diff", max: 10_000},
	"remarks_per_hour":        {doc: "Remarks on one pull request in an hour that are looked at as they come, at the cost of calls of GitHub; the others wait for the next look; 0: any number", max: 10_000},
	"keep_deliveries_days":    {doc: "Days after which the payload of a handled delivery is deleted; 0 keeps it", max: 36_500, unit: "days"},
	"reflection":              {doc: "Look back at runs, with the reflector's model, and remember what they taught; at most $0.50 and 10 % of a run's cost"},
	"backup_every":            {doc: "How often the SQLite database is copied, and the copy checked; 0: never", max: float64(30 * 24 * time.Hour)},
	"backup_keep":             {doc: "How many of these copies are kept", min: 1, max: 1000},
	"backup_dir":              {doc: "Where they are, from state_dir; empty: backups. Another disk is better"},
	"keep_incidents_days":     {doc: "Days after the end of an incident when it is deleted, with deployments of before then; 0 keeps them, and 31 days are kept in any case", max: 36_500, unit: "days"},
	"keep_tapes_days":         {doc: "Days after the end of a run when the record of its model calls is deleted; 0 keeps it", max: 36_500, unit: "days"},
}

// namedBy are the keys that hold a map of people's own names, and what these must be.
var namedBy = map[string]func(string) string{"prices": checkModel, "model_limits": checkModel, "registries": checkName, "hooks": checkName,
	"health_checks": checkName, "prometheus": checkName, "queries": checkName, "subscribers": checkName}

// checkName is for names that people give to things of the server.
func checkName(name string) string {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name) {
		return fmt.Sprintf("is %q; use letters, digits, points and dashes", name)
	}
	return ""
}

// checkPattern is for globs of names.
func checkPattern(glob string) string {
	if _, err := path.Match(glob, ""); err != nil || glob == "" {
		return fmt.Sprintf("is %q; it must be a glob such as \"@acme\" or \"git.acme.dev/*\"", glob)
	}
	return ""
}

// checkMessage is for templates of commits' first lines.
func checkMessage(s string) string {
	switch {
	case s == "":
		return ""
	case !strings.Contains(s, "{summary}"):
		return fmt.Sprintf("is %q; it must have {summary}, which says what the commit does", s)
	case len(s) > 60 || strings.ContainsAny(s, "\r\n"):
		return fmt.Sprintf("is %q; it must be one line of at most 60 characters", s)
	}
	return checkPlaces(s, "summary", "type", "issue")
}

// checkBranch is for templates of branches' names.
func checkBranch(s string) string {
	switch {
	case s == "":
		return ""
	case !strings.HasPrefix(s, "forge/"):
		return fmt.Sprintf("is %q; it must begin with forge/: Forge pushes to no other branches", s)
	case !strings.Contains(s, "{issue}"):
		return fmt.Sprintf("is %q; it must have {issue}, which tells branches apart", s)
	case !regexp.MustCompile(`^[A-Za-z0-9{][A-Za-z0-9{}_-]*(/[A-Za-z0-9{][A-Za-z0-9{}_-]*)*$`).MatchString(s):
		return fmt.Sprintf("is %q; between slashes it may have letters, digits, - and _", s)
	}
	return checkPlaces(s, "issue", "slug", "type")
}

// checkPlaces looks whether a template has others than these.
func checkPlaces(s string, known ...string) string {
	for _, m := range regexp.MustCompile(`\{([^{}]*)\}`).FindAllStringSubmatch(s, -1) {
		if !slices.Contains(known, m[1]) {
			return fmt.Sprintf("is %q; %s is none of {%s}", s, m[0], strings.Join(known, "}, {"))
		}
	}
	return ""
}

// ruleOf returns the rule of a key; those of models are alike.
func ruleOf(key string) rule {
	if role, ok := strings.CutPrefix(key, "models."); ok {
		return rule{doc: "The " + role + "'s model, as provider/model", text: checkModel}
	}
	if own, is := qualityKey(key); is {
		return qualityRules[own]
	}
	for of := range namedBy { // names may hold points, too
		if strings.HasPrefix(key, of+".") {
			return rules[of+".*"+key[strings.LastIndexByte(key, '.'):]]
		}
	}
	return rules[key]
}

// check says what is wrong with a value that was read, or "".
func check(key string, v reflect.Value, caps map[string]float64, untrusted bool) string {
	r := ruleOf(key)
	switch {
	case v.Kind() == reflect.String && len(r.enum) > 0:
		if !slices.Contains(r.enum, v.String()) {
			hint := ""
			if near := text.Nearest(v.String(), r.enum); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return fmt.Sprintf("%s is %q; it must be one of %s%s", key, v.String(), strings.TrimPrefix(strings.Join(r.enum, ", "), ", "), hint)
		}
	case v.Kind() == reflect.String && r.text != nil:
		if why := r.text(v.String()); why != "" {
			return key + " " + why
		}
	case v.Kind() == reflect.Float64 || v.Kind() == reflect.Int || v.Kind() == reflect.Int64:
		n := number(v)
		if r.min == 0 && r.max == 0 {
			break
		}
		if !(n >= r.min && n <= r.max) {
			return fmt.Sprintf("%s is %s; it must be from %s to %s", key, show(n, v, ""), show(r.min, v, ""), show(r.max, v, r.unit))
		}
		bound := key
		if own, is := qualityKey(key); is && own == "timeout_minutes" {
			bound = "tests.timeout_minutes" // no command of a repository's runs longer
		}
		if most, ok := caps[bound]; ok && n > most {
			if untrusted {
				return fmt.Sprintf("%s is %s, over this repository's %s, and the issue's author has no write access to it: lower it, or let someone who has open the issue",
					key, show(n, v, ""), show(most, v, r.unit))
			}
			return fmt.Sprintf("%s is %s, over this server's limit of %s: lower it, or ask the server's operator to raise %s in forge.yml",
				key, show(n, v, ""), show(most, v, r.unit), bound)
		}
	}
	return ""
}

func number(v reflect.Value) float64 {
	if v.Kind() == reflect.Float64 {
		return v.Float()
	}
	return float64(v.Int())
}

func show(n float64, v reflect.Value, unit string) string {
	if v.Type() == durationType {
		return time.Duration(n).String()
	}
	text := fmt.Sprintf("%.2f", n)
	text = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(text, "0"), "0"), ".")
	if unit != "" {
		text += " " + unit
	}
	return text
}

func checkCommand(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty: remove it, or name a command"
	case len(s) > 4000:
		return fmt.Sprintf("has %d characters; at most 4000 are allowed: put it into a script in the repository", len(s))
	case strings.ContainsRune(s, 0):
		return "holds a NUL character: remove it"
	}
	return ""
}

// checkImage is for the name of a container image.
func checkImage(s string) string {
	if s == "" {
		return ""
	}
	if _, err := name.ParseReference(s); err != nil {
		return "must name an image, such as docker.io/library/golang:1.26"
	}
	return ""
}

// checkImageHost is for a registry of images.
func checkImageHost(s string) string {
	if r, err := name.NewRegistry(s); err != nil || r.RegistryStr() != s && s != "docker.io" {
		return "must be the host of a registry, such as ghcr.io"
	}
	return ""
}

// checkEnvironment is for names of environments, which are anything at GitHub.
func checkEnvironment(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty: remove it, or name an environment"
	case len(s) > 255 || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("is %.40q; an environment is named in one line of at most 255 bytes", s)
	}
	return ""
}

// checkSkill is for names of skills that come with Forge.
func checkSkill(s string) string {
	if _, err := agent.Builtin([]string{s}); err != nil {
		return fmt.Sprintf("is %.40q: %v", s, err)
	}
	return ""
}

// checkLens is for what a change is reviewed for besides.
func checkLens(s string) string {
	if !slices.Contains(lens.All(), lens.Lens(s)) {
		return fmt.Sprintf("is %.40q; a lens is one of %s", s, strings.Join(lens.Names(), ", "))
	}
	return ""
}

// checkPlace is for files and directories of a repository.
func checkPlace(s string) string {
	clean := path.Clean(s)
	switch {
	case strings.TrimSpace(s) == "" || clean == ".":
		return "is empty, or the top: name a path beneath it"
	case len(s) > 200:
		return fmt.Sprintf("has %d characters; at most 200 are allowed", len(s))
	case strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~"):
		return fmt.Sprintf("is %q; paths are relative to the root of the repository: write it without the start", s)
	case strings.ContainsAny(s, "\\*?[$`") || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("is %q; it must be one path, without patterns, variables and backslashes", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		switch name := strings.TrimRight(strings.ToLower(part), ". "); {
		case part == "..":
			return fmt.Sprintf("is %q, which leads out with ..: write it from the root of the repository", s)
		case name == ".git" || name == "git~1":
			return fmt.Sprintf("is %q; git's own directory is not for commands", s)
		}
	}
	if s != clean {
		return fmt.Sprintf("is %q; write it as %q", s, clean)
	}
	return ""
}

func checkGlob(s string) string {
	if strings.TrimSpace(s) == "" {
		return "is empty: remove it, or name a glob"
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "../") {
		return fmt.Sprintf("is %q; globs are relative to the root of the repository: write it without the start", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return fmt.Sprintf("is %q, which is no glob: a [ without its ], or a \\ at the end", s)
		}
	}
	return ""
}

var modelName = lazyregexp.New(`^(?:` + strings.Join(agent.ProviderNames, "|") + `)/[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)

// checkServerModel also takes a tape: a scripted model, for trying out and for
// tests. A repository cannot name one, because it is a path on this machine.
func checkServerModel(s string) string {
	if path, ok := strings.CutPrefix(s, "tape:"); ok && path != "" {
		return ""
	}
	return checkModel(s)
}

func checkModel(s string) string {
	if s == "" || modelName.MatchString(s) {
		return ""
	}
	provider, _, ok := strings.Cut(s, "/")
	switch {
	case !ok:
		return fmt.Sprintf("is %q; a model is named provider/model, such as anthropic/%s", s, s)
	case !slices.Contains(agent.ProviderNames, provider):
		return fmt.Sprintf("is %q; the provider must be %s (openai also for any server that speaks OpenAI's API: set its address with openai_base_url)",
			s, strings.Join(agent.ProviderNames, " or "))
	}
	return fmt.Sprintf("is %q; the model's name may hold letters, digits and . _ : / @ + -", s)
}

// jsonName is a field's key.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		out = append(out, jsonName(t.Field(i)))
	}
	return out
}

// leaves calls f for every key that holds a value, in the order of the types.
func leaves(t reflect.Type, key string, f func(key string, t reflect.Type)) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			leaves(t.Field(i).Type, join(key, jsonName(t.Field(i))), f)
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			leaves(t.Elem(), join(key, placeholder(key)), f)
		}
		for _, name := range mapKeys[key] {
			f(join(key, name), t.Elem())
		}
	default:
		f(key, t)
	}
}

// placeholder stands for the name of an entry of a map whose names are people's own.
func placeholder(key string) string {
	if key == "prices" {
		return "PROVIDER/MODEL"
	}
	return "NAME"
}

// findKey returns the path of the key of that name, or one close to it.
func findKey(t reflect.Type, name string) string {
	byName := map[string]string{}
	leaves(t, "", func(key string, _ reflect.Type) {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if _, ok := byName[last]; !ok {
			byName[last] = key
		}
	})
	return byName[name]
}

// example shows a key that may stand under another one.
func example(t reflect.Type, under string) string {
	out := ""
	leaves(t, "", func(key string, _ reflect.Type) {
		if rest, ok := strings.CutPrefix(key, under+"."); out == "" && ok {
			out = rest + ": …"
		}
	})
	if out == "" {
		out = keysOf(t)[0] + ": …"
	}
	return out
}

func nearestExact(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	return ""
}
