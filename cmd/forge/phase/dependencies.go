package phase

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/deps"
	"forge/pipeline/registry"
	"forge/pipeline/workspace"
)

// Dependencies say how a repository's dependencies are installed.
type Dependencies struct {
	// Registries opens the gateway, and names Go's checksum database; none: it is not
	// asked. nil: nothing is installed.
	Registries func(ctx context.Context) (gateway *registry.Gateway, sumDB string, err error)
	Scripts    bool // packages may run scripts of their own
}

// toolsFor is how long it is believed which tools the server has.
const toolsFor = 10 * time.Minute

// againAfter is how long a failed installation is not tried again.
const againAfter = 10 * time.Minute

// provide installs the dependencies of a commit, which the workspace has checked out,
// and has it set up as the repository's settings say, unless that was done before, and
// lets the workspace's commands see what came of it. What cannot be installed is no
// error: it is told with the tests, which may do without.
func (x *Executor) provide(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) error {
	misfits, err := x.misfits(ctx, run, ws, sha)
	if err != nil {
		return err
	}
	if x.o.Dependencies.Registries == nil {
		told := misfits
		if len(run.Config.Setup.Commands) > 0 {
			told = append(told, "could not set up: this server installs nothing (`dependencies: off`, or there is no sandbox), so that setup.commands were not run")
		}
		x.tell(run, sha, told)
		return nil
	}
	p, err := x.installed(ctx, run, ws, sha)
	if err == nil && p.failed == nil {
		err = x.prepare(ctx, run, ws, sha, &p)
	}
	if err != nil {
		return err
	}
	if p.failed == nil {
		p.failed = ws.Use(ctx, p.key, p.use)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.failed != nil {
		x.o.Log.Warn("install dependencies", "run", run.ID, "error", p.failed)
		p.told = append(p.told, deps.CannotInstall+": "+p.failed.Error())
		if err := ws.Use(ctx, "", workspace.Use{}); err != nil { // those of another commit are not this one's
			return err
		}
	}
	x.tell(run, sha, append(p.told, misfits...))
	return nil
}

// misfits says which versions of tools a commit's files ask for that this machine does
// not have, and what of the commit is kept elsewhere. It looks once at each commit of a run.
func (x *Executor) misfits(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) ([]string, error) {
	x.mu.Lock()
	lines, known := x.fits[run.ID][sha]
	x.mu.Unlock()
	if known {
		return lines, nil
	}
	files, err := x.o.Gateway.ReadFiles(ctx, run.Repo, sha, deps.WantFiles())
	if err != nil {
		return nil, err
	}
	if wants := deps.Wants(files); len(wants) > 0 {
		tools, err := x.hostTools(ctx, ws)
		if err != nil {
			return nil, err
		}
		if deps.InMoreTools(wants) {
			r, err := ws.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", deps.MoreToolScript}, Timeout: time.Minute})
			if err != nil {
				return nil, err
			}
			more := deps.ParseTools(string(r.Stdout))
			maps.Copy(more, tools)
			tools = more
		}
		lines = deps.Misfits(wants, tools)
	}
	lines = append(lines, deps.NotFetched(files)...)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fits[run.ID] == nil {
		x.fits[run.ID] = map[string][]string{}
	}
	x.fits[run.ID][sha] = lines
	return lines, nil
}

// provided is what a commit's tests are given.
type provided struct {
	key    string // of the tree that was installed; "": none
	use    workspace.Use
	told   []string
	failed error // why there is nothing, which is no fault of the commit's
}

// tell keeps what there is to say about the dependencies of a commit.
func (x *Executor) tell(run *pipeline.Run, sha string, lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.setup[run.ID] == nil {
		x.setup[run.ID] = map[string][]string{}
	}
	x.setup[run.ID][sha] = lines
}

// installed installs what a commit's manifests ask for, and says how it is used.
func (x *Executor) installed(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) (p provided, err error) {
	if run.Config.Setup.Instead {
		return p, nil
	}
	recipe, err := x.recipe(ctx, run, ws, sha)
	if err != nil {
		return p, err
	}
	if p.told, err = x.changedInputs(ctx, run, recipe, sha); err != nil {
		return p, err
	}
	changed := len(p.told) > 0
	p.told = append(p.told, recipe.Unasked()...)
	for _, lack := range recipe.Lacking() {
		p.told = append(p.told, deps.CannotInstall+" ("+lack+")")
	}
	if recipe.Empty() {
		return p, nil
	}
	tree, err := x.install(ctx, run, ws, recipe)
	if p.failed = err; err == nil {
		p.key, p.use, p.told = recipe.Key, useOf(tree), append(p.told, came(run, changed, tree)...)
	}
	return p, nil
}

// came says what came of an installation: what failed is the change's fault where that edits
// what is installed, all could be installed before, and the registries answered. What this
// machine has no program for, the recipe says; that is nobody's fault.
func came(run *pipeline.Run, changed bool, tree *deps.Tree) []string {
	lines := tree.Summary()
	if !changed || tree.Away() || !installedBefore(run) {
		return lines
	}
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, deps.CannotInstall); ok {
			lines[i] = breaksInstalling + rest
		}
	}
	return lines
}

// breaksInstalling begins what is told of dependencies that cannot be installed since the
// change edits what is installed: that is the change's fault, not the server's.
const breaksInstalling = "the change broke the installation of dependencies"

// installedBefore reports whether all dependencies of the base commit could be installed.
func installedBefore(run *pipeline.Run) bool {
	return run.Baseline != nil && !slices.ContainsFunc(run.Baseline.Setup, func(line string) bool { return strings.HasPrefix(line, deps.CannotInstall) })
}

// brokenInstalling makes a failure of the tests of what the change broke by editing what is
// installed, in the place of what the tests say without their packages.
func (x *Executor) brokenInstalling(run *pipeline.Run, report *pipeline.TestReport, err error) error {
	var fault *pipeline.Fault
	for _, line := range report.Setup {
		if !strings.HasPrefix(line, breaksInstalling) || err != nil && (!errors.As(err, &fault) || fault.Class != pipeline.FaultEnvironment) {
			continue
		}
		f := pipeline.Failure{Test: "the installation of dependencies", Error: line}
		f.Fingerprint = f.Digest()
		if err != nil {
			*report, err = pipeline.TestReport{Head: run.Head, Setup: report.Setup}, nil
		}
		report.Add(&pipeline.TestReport{Failures: []pipeline.Failure{f}})
	}
	return err
}

// recipe reads what a commit depends on. The registries and tools are not asked for
// where it depends on nothing.
func (x *Executor) recipe(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) (*deps.Recipe, error) {
	files, err := x.o.Gateway.Files(ctx, run.Repo, sha)
	if err != nil {
		return nil, err
	}
	known, err := x.o.Gateway.ReadFiles(ctx, run.Repo, sha, deps.Manifests(files)) // one by one, each costs a process
	if err != nil {
		return nil, err
	}
	read := func(name string) ([]byte, error) {
		if text, ok := known[name]; ok {
			return text, nil
		}
		text, err := x.o.Gateway.File(ctx, run.Repo, sha, name)
		if err == nil {
			known[name] = text
		}
		return text, err
	}
	r, err := deps.Find(files, read, deps.Host{Registry: map[string]string{}, Scripts: x.o.Dependencies.Scripts})
	if err != nil || len(r.Projects) == 0 {
		return r, err
	}
	sources, err := x.o.Gateway.ReadFiles(ctx, run.Repo, sha, r.Sources())
	if err != nil {
		return nil, err
	}
	maps.Copy(known, sources)
	host, err := x.host(ctx, ws)
	if err != nil {
		return nil, err
	}
	return deps.Find(files, read, host)
}

// host is what this machine offers to whoever installs.
func (x *Executor) host(ctx context.Context, ws workspace.Workspace) (deps.Host, error) {
	host := deps.Host{Registry: map[string]string{}, Scripts: x.o.Dependencies.Scripts}
	gateway, sumDB, err := x.o.Dependencies.Registries(ctx)
	if err != nil {
		return host, err
	}
	host.SumDB, host.Lists = sumDB, func(kind, name string) bool { return gateway.Lists(registry.Kind(kind), name) }
	for _, k := range registry.Kinds() {
		if gateway.Has(k) {
			host.Registry[string(k)] = k.URL()
		}
	}
	host.Tools, err = x.hostTools(ctx, ws)
	return host, err
}

// hostTools are the package managers that commands can see.
func (x *Executor) hostTools(ctx context.Context, ws workspace.Workspace) (map[string]string, error) {
	x.mu.Lock()
	known, at := x.tools, x.toolsAt
	x.mu.Unlock()
	if known != nil && x.o.Now().Sub(at) < toolsFor {
		return known, nil
	}
	r, err := ws.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", deps.ToolScript}, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	tools := deps.ParseTools(string(r.Stdout))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tools, x.toolsAt = tools, x.o.Now()
	return tools, nil
}

// install makes the tree of a recipe, or finds it.
func (x *Executor) install(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, recipe *deps.Recipe) (*deps.Tree, error) {
	if about, ok := ws.Installed(recipe.Key); ok && !x.stale(about) {
		return deps.ReadTree(about)
	}
	x.o.Log.Info("installing dependencies", "run", run.ID, "files", strings.Join(recipe.Inputs(), " "))
	return x.kept(ctx, run, ws, recipe.Key, func(ctx context.Context, in workspace.Installer) (*deps.Tree, error) { return recipe.Make(ctx, in) })
}

// useOf says how commands use a tree.
func useOf(tree *deps.Tree) workspace.Use {
	var use workspace.Use
	for _, m := range tree.Mounts {
		use.Mounts = append(use.Mounts, workspace.Mount{From: m.From, To: m.To})
	}
	for _, e := range tree.Env {
		use.Env = append(use.Env, workspace.DirEnv{Dir: e.Dir, Env: e.Env})
	}
	return use
}

// changedInputs says which files that decide what is installed the work has changed.
func (x *Executor) changedInputs(ctx context.Context, run *pipeline.Run, recipe *deps.Recipe, sha string) ([]string, error) {
	if sha == run.Base {
		return nil, nil
	}
	inputs := recipe.Inputs()
	now, err := x.o.Gateway.ReadFiles(ctx, run.Repo, sha, inputs)
	if err != nil {
		return nil, err
	}
	then, err := x.o.Gateway.ReadFiles(ctx, run.Repo, run.Base, inputs)
	if err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(inputs, func(name string) bool {
		was, there := then[name]
		return there && bytes.Equal(now[name], was)
	})
	if len(changed) == 0 {
		return nil, nil
	}
	return []string{"the change edits what is installed: " + strings.Join(changed, ", ")}, nil
}

// explain says of tests that could not run because their dependencies are not there why
// those could not be installed: that is to be put right, and not what the tests miss.
func (x *Executor) explain(run int64, sha string, err error) error {
	var fault *pipeline.Fault
	if !errors.As(err, &fault) {
		return err
	}
	for _, line := range x.told(run, sha) {
		if strings.HasPrefix(line, deps.CannotInstall) || strings.HasPrefix(line, "could not set up") {
			told := *fault
			told.Message = "Forge " + strings.TrimSuffix(line, ".") + ". Without that, " + strings.TrimSuffix(fault.Message, ". "+check.MendNotRun)
			return &told
		}
	}
	return err
}

// told is what there is to say about the dependencies of a commit.
func (x *Executor) told(run int64, sha string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.setup[run][sha])
}
