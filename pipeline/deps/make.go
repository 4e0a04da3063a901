package deps

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// timeout is how long one command may take, as far as the server lets it.
const timeout = 30 * time.Minute

// Failure is a project that could not be installed.
type Failure struct {
	Project string `json:"project"`
	Why     string `json:"why"`
	Lacks   bool   `json:"lacks,omitempty"` // it was not tried
	Away    bool   `json:"away,omitempty"`  // a registry did not answer: it may go well the next time
	Other   bool   `json:"other,omitempty"` // something else was done in its place
}

// Tree describes an environment.
type Tree struct {
	Projects []string  `json:"projects"`
	Failed   []Failure `json:"failed,omitempty"`
	Left     []string  `json:"left,omitempty"` // what was changed or made in the work tree and is not kept
	Env      []string  `json:"env,omitempty"`  // of commands that use it
	Seconds  float64   `json:"seconds"`
	Requests int       `json:"requests"` // that went to registries
	Bytes    int64     `json:"bytes"`    // that they sent
	At       time.Time `json:"at"`
	Fetched  string    `json:"-"` // both by ecosystem, for people; "" of an environment that was there already
}

// Make sets up the base commit, which the installer's work tree is. The error is for what is
// no fault of the repository.
func (p *Plan) Make(ctx context.Context, in workspace.Installer) (*Tree, error) {
	tree := &Tree{Env: p.Use()}
	if script := p.startScript(); script != "" {
		if err := in.Stage(ctx, workspace.StartFile, []byte(script)); err != nil {
			return nil, err
		}
	}
	if err := p.all(ctx, in, tree, p.Services); err != nil {
		return nil, err
	}
	// Commands of the settings come after what the ecosystems install, others in place of it.
	instead := slices.ContainsFunc(p.Own, func(o *Project) bool { return o.From != settingsCommands })
	if instead {
		if err := p.all(ctx, in, tree, p.Own); err != nil {
			return nil, err
		}
		if len(tree.Failed) == 0 {
			return tree, p.compiled(ctx, in, tree, p.Projects)
		}
		for i := range tree.Failed {
			tree.Failed[i].Other = true
		}
	}
	if err := p.all(ctx, in, tree, p.Projects); err != nil {
		return nil, err
	}
	if !instead {
		if err := p.all(ctx, in, tree, p.Own); err != nil {
			return nil, err
		}
	}
	return tree, p.compiled(ctx, in, tree, p.Projects)
}

// compiled keeps what was set up, and what is compiled with it.
func (p *Plan) compiled(ctx context.Context, in workspace.Installer, tree *Tree, projects []*Project) (err error) {
	for _, one := range projects {
		if one.ahead == "" {
			continue
		}
		r, err := in.Run(ctx, workspace.Command{Dir: one.Dir, Args: []string{"/bin/sh", "-c", one.ahead}, Env: p.environ(), Timeout: timeout})
		if err != nil {
			return fmt.Errorf("compile %s: %w", one, err)
		}
		tree.Seconds += r.Duration.Round(10 * time.Millisecond).Seconds()
	}
	tree.Left, err = in.Keep(ctx, p.keep)
	return err
}

// all installs what can be. A project that fails does not keep the others from being installed.
func (p *Plan) all(ctx context.Context, in workspace.Installer, tree *Tree, projects []*Project) error {
	for _, one := range projects {
		if len(one.steps) == 0 {
			continue
		}
		if one.Lacks != "" {
			tree.Failed = append(tree.Failed, Failure{Project: one.String(), Why: one.Lacks, Lacks: true})
			continue
		}
		ok, err := p.run(ctx, in, tree, one, one.steps, nil)
		if err != nil {
			return err
		}
		if ok {
			tree.Projects = append(tree.Projects, one.String())
		}
	}
	return nil
}

// run runs the commands of a project, as far as they succeed.
func (p *Plan) run(ctx context.Context, in workspace.Installer, tree *Tree, one *Project, steps, more []string) (bool, error) {
	for _, name := range slices.Sorted(maps.Keys(one.stage)) {
		if err := in.Stage(ctx, name, []byte(one.stage[name])); err != nil {
			return false, fmt.Errorf("install with %s: %w", one, err)
		}
	}
	if one.before != "" {
		if _, err := in.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", one.before}, Env: p.environ(), Timeout: timeout}); err != nil {
			return false, fmt.Errorf("install with %s: %w", one, err)
		}
	}
	args := []string{"/bin/sh", "-c"}
	if one.Manager == "setup" && p.startScript() != "" {
		args = slices.Concat(workspace.Started, args)
	}
	for i, step := range steps {
		r, err := in.Run(ctx, workspace.Command{Dir: one.Dir, Args: append(slices.Clone(args), step), Env: append(p.environ(), more...), Timeout: timeout})
		if err != nil {
			return false, fmt.Errorf("install with %s: %w", one, err)
		}
		tree.Seconds += r.Duration.Round(10 * time.Millisecond).Seconds()
		if r.Exit == 0 {
			continue
		}
		name := one.String()
		if one.Manager == "setup" {
			name = fmt.Sprintf("%s, command %d", one.From, i+1)
		}
		tree.Failed = append(tree.Failed, Failure{Project: name, Why: why(one, step, r)})
		return false, nil
	}
	return true, nil
}

// Changed are the projects whose inputs a change edits, or whose check fails; nil: none is run.
func (p *Plan) Changed(edited func(name string) bool, run func(workspace.Command) (workspace.Result, error)) (out []*Project, err error) {
	for _, one := range p.Projects {
		changed := slices.ContainsFunc(one.Inputs, edited)
		if !changed && one.check != "" && run != nil && one.Lacks == "" {
			r, err := run(workspace.Command{Dir: one.Dir, Args: []string{"/bin/sh", "-c", one.check}, Timeout: time.Minute})
			if err != nil {
				return nil, err
			}
			changed = r.Exit != 0
		}
		if changed && one.Lacks == "" {
			out = append(out, one)
		}
	}
	return out, nil
}

// Update brings projects in line with the inputs of a change, which the installer's work tree
// has, over what the base was given. It runs nothing of the change's and no script of what is
// installed, unless the server allows those.
func (p *Plan) Update(ctx context.Context, in workspace.Installer, projects []*Project) (*Tree, error) {
	tree := &Tree{Env: p.Use()}
	quiet := []string{"npm_config_ignore_scripts=true", "PIP_ONLY_BINARY=:all:"}
	if p.host.Scripts {
		quiet = nil
	}
	for _, one := range projects {
		if len(one.more) == 0 && len(one.steps) == 0 {
			continue
		}
		if len(one.more) == 0 {
			tree.Failed = append(tree.Failed, Failure{Project: one.String(), Lacks: true,
				Why: "the change edits " + one.From + ", and " + one.Manager + " would run what it says: the tests see what the base branch has. `install_scripts` in the server's settings allows it"})
			continue
		}
		ok, err := p.run(ctx, in, tree, one, one.more, quiet)
		if err != nil {
			return nil, err
		}
		if ok {
			tree.Projects = append(tree.Projects, one.String())
		}
	}
	return tree, p.compiled(ctx, in, tree, projects)
}

// Locks are the lock files that bringing projects in line may have written.
func Locks(projects []*Project) (out []string) {
	for _, one := range projects {
		for _, name := range one.locks {
			out = append(out, path.Join(one.Dir, name))
		}
	}
	return out
}

// environ tells clients where the registries are, and what makes them quiet and alike. The
// names with FORGE in them are for those whose clients have no variable of their own.
func (p *Plan) environ() []string {
	out := append(p.Use(), "TMPDIR=/scratch", "GOFLAGS=-modcacherw -buildvcs=false", "GOSUMDB="+cmp.Or(p.host.SumDB, "off"), "GONOSUMDB=", "GOPRIVATE=",
		"CARGO_NET_OFFLINE=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false", "npm_config_fetch_retries=0",
		"HUSKY=0", "PUPPETEER_SKIP_DOWNLOAD=1", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1", "CYPRESS_INSTALL_BINARY=0", "ELECTRON_SKIP_BINARY_DOWNLOAD=1",
		"YARN_ENABLE_TELEMETRY=0", "YARN_ENABLE_GLOBAL_CACHE=false", "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1", "COREPACK_ENABLE_STRICT=0",
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_NO_INPUT=1", "PIP_NO_CACHE_DIR=1", "PIP_DEFAULT_TIMEOUT=60",
		// The work tree has no history, from which such tools make the version.
		"SETUPTOOLS_SCM_PRETEND_VERSION=999.0", "PBR_VERSION=999.0", "PDM_BUILD_SCM_VERSION=999.0", "POETRY_DYNAMIC_VERSIONING_BYPASS=999.0")
	for _, kind := range slices.Sorted(maps.Keys(p.host.Registry)) {
		url := p.host.Registry[kind]
		out = append(out, "FORGE_REGISTRY_"+strings.ToUpper(kind)+"="+url)
		switch kind {
		case "go":
			out = append(out, "GOPROXY="+url)
		case "npm":
			out = append(out, "npm_config_registry="+url+"/", "YARN_NPM_REGISTRY_SERVER="+url, "COREPACK_NPM_REGISTRY="+url, "npm_config_replace_registry_host=always")
		case "rubygems":
			out = append(out, "BUNDLE_MIRROR__ALL="+url)
		case "pypi":
			out = append(out, "PIP_INDEX_URL="+url+"/simple/", "UV_DEFAULT_INDEX="+url+"/simple/", "PDM_PYPI_URL="+url+"/simple/")
		case "maven":
			out = append(out, "MVNW_REPOURL="+url)
		}
	}
	return out
}

// Tools mark the lines that say what is wrong at their beginning, or by words.
var (
	marks   = []string{"[error]", "error", "npm error", "npm err!", "err_pnpm", "fatal", "e:", "failure:", "caused by:", "cause:", "> "}
	telling = []string{"error", "fatal", "not found", "could not", "cannot", "failed", "no such", "unable to", "conflict", "unsupported"}
)

// errorLines are the lines of a tool's output that say what is wrong; the last ones where none does.
func errorLines(said string) string {
	var lines, first, marked []string
	goesOn := false // the line before is marked: one that is indented says what it is about
	for raw := range strings.Lines(said) {
		line := strings.TrimSpace(raw)
		low := strings.ToLower(line)
		if line == "" || slices.Contains(lines, line) || strings.HasPrefix(low, "[info]") || strings.HasPrefix(low, "npm warn") || strings.HasPrefix(line, "[notice]") ||
			strings.HasPrefix(low, "npm notice") || strings.HasPrefix(low, "npm error network") && !strings.Contains(low, "request to") || strings.Contains(line, "A complete log of this run") {
			continue
		}
		lines = append(lines, line)
		goesOn = goesOn && strings.HasPrefix(raw, "  ")
		if goesOn || slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(low, mark) }) {
			first, goesOn = append(first, line), !goesOn
		}
		if slices.ContainsFunc(telling, func(word string) bool { return strings.Contains(low, word) }) {
			marked = append(marked, line)
		}
	}
	switch {
	case len(first) > 0:
		marked = first
	case len(marked) == 0:
		marked = lines[max(0, len(lines)-6):]
	}
	return text.Clip(strings.Join(marked[:min(len(marked), 6)], "\n"), 800)
}

// unreached are words of clients that found no host.
var unreached = []string{"could not resolve", "name resolution", "network is unreachable", "eai_again", "enotfound", "name or service not known", "no such host", "unknownhostexception"}

// why says how a command ended, what it said, and how to put it right.
func why(p *Project, step string, r workspace.Result) string {
	said := string(r.Stderr) + "\n" + string(r.Stdout)
	end := fmt.Sprintf("ended with %d", r.Exit)
	fix := ""
	switch r.Class {
	case "":
	case "timeout":
		end = fmt.Sprintf("was ended after %s", r.Duration.Round(time.Second))
		fix = "The server's tests.timeout_minutes gives it longer."
	default:
		end = "was ended: " + r.Class
		fix = "The server's sandbox limits memory, processes, output and disk."
	}
	low := strings.ToLower(said)
	switch {
	case fix != "":
	case r.Exit == 127:
		fix = "A program that it needs is not on the server: install it there for all users, under /usr or in a directory of the server's `toolchains`."
	case slices.ContainsFunc(unreached, func(word string) bool { return strings.Contains(low, word) }):
		fix = "Nothing but the server's registries is reached (their addresses are in $FORGE_REGISTRY_GO, _NPM, _PYPI, _CARGO, _MAVEN, _RUBYGEMS and _COMPOSER): take it from there, commit it, or list its registry under `registries` in the server's settings."
	case p.Manager == "setup":
		fix = "Where it is right elsewhere, name what does it here under setup.commands in .github/forge.yml on the base branch."
	}
	command := strings.ReplaceAll(text.Clip(text.FirstLine(strings.ReplaceAll(step, " >/dev/null 2>&1", "")), 80), "`", "'")
	return strings.ToValidUTF8(strings.TrimSpace(fmt.Sprintf("`%s` %s: %s\n%s", command, end, errorLines(said), fix)), "�")
}

// ReadTree reads an environment's description, which is its JSON.
func ReadTree(about []byte) (*Tree, error) {
	var t Tree
	if err := json.Unmarshal(about, &t); err != nil {
		return nil, fmt.Errorf("description of installed dependencies: %w", err)
	}
	return &t, nil
}

// Broken reports whether something failed that may not fail the next time.
func (t *Tree) Broken() bool {
	return slices.ContainsFunc(t.Failed, func(f Failure) bool { return !f.Lacks && !f.Other })
}

// Explain adds to what failed why registries did not answer, and what they do not have.
func (t *Tree) Explain(failed, absent []string) {
	reasons := slices.Clone(failed[:min(3, len(failed))])
	for _, a := range absent[:min(3, len(absent))] {
		reasons = append(reasons, "no registry has "+a)
	}
	for i := range t.Failed {
		f := &t.Failed[i]
		f.Away = !f.Lacks && len(failed) > 0
		if !f.Lacks && len(reasons) > 0 {
			f.Why += "\n(" + strings.Join(reasons, "; ") + ")"
		}
	}
}

// Away reports whether a registry did not answer when something failed.
func (t *Tree) Away() bool {
	return slices.ContainsFunc(t.Failed, func(f Failure) bool { return f.Away })
}

// Otherwise begins what [Tree.Summary] says when the repository's own commands failed.
const Otherwise = "set up as the ecosystem does"

// CannotInstall begins what [Tree.Summary] says of a project that could not be installed.
const CannotInstall = "could not install dependencies"

// Summary says in lines what was installed, and what was not.
func (t *Tree) Summary() []string {
	var lines []string
	if len(t.Projects) > 0 {
		lines = append(lines, "installed dependencies ("+strings.Join(t.Projects, ", ")+")")
	}
	if t.Fetched != "" {
		lines = append(lines, "fetched from registries: "+t.Fetched)
	}
	for _, f := range t.Failed {
		if f.Other {
			lines = append(lines, fmt.Sprintf(Otherwise+", since %s failed: %s", f.Project, f.Why))
			continue
		}
		lines = append(lines, fmt.Sprintf(CannotInstall+" (%s): %s", f.Project, f.Why))
	}
	if len(t.Left) > 0 {
		lines = append(lines, "setup also changed "+strings.Join(t.Left, ", ")+": files that the repository does not ignore are not kept")
	}
	return lines
}
