package phase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/deps"
	"forge/pipeline/registry"
	"forge/pipeline/workspace"
)

// Dependencies say how repositories are set up.
type Dependencies struct {
	// Registries opens the gateway, and names Go's checksum database; none: it is not
	// asked. nil: nothing is installed.
	Registries func(ctx context.Context) (gateway *registry.Gateway, sumDB string, err error)
	Scripts    bool     // what a change adds may run scripts of its own
	Compile    bool     // the base is compiled ahead, without registries, too
	Toolchains []string // that commands see in addition to the server's own tools
}

const (
	toolsFor   = 10 * time.Minute // how long it is believed which tools the server has
	awayFor    = 10 * time.Minute // how long a set-up that registries did not answer is not tried again
	againAfter = time.Hour        // how long one that failed is not
)

// breaksInstalling begins what is told of what cannot be installed since the change edits
// what is installed: that is the change's fault, not the server's.
const breaksInstalling = "the change broke the installation of dependencies"

// settled is the commit that another is set up by: one of the branch that the work is for,
// never one that an agent has made.
func settled(run *pipeline.Run, sha string) string {
	if sha == run.BaseHead {
		return sha
	}
	if it := run.Current(); it != nil && it.Update != nil && sha == it.Update.Base {
		return sha
	}
	if run.Part != nil { // its own base is the contract, which is an agent's
		return run.Part.Base
	}
	return run.Base
}

// provide gives a workspace's commands the environment of the commit that it has checked
// out, which is made unless it was before. What cannot be set up is no error: it is told with
// the tests, which may do without.
func (x *Executor) provide(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) error {
	misfits, err := x.misfits(ctx, run, ws, sha)
	if err != nil {
		return err
	}
	if root, err := x.image(ctx, run); err != nil {
		return err
	} else if root.why != "" {
		misfits = append(misfits, "commands see the server's own system, not that of setup.image: "+root.why)
	}
	if x.o.Dependencies.Registries == nil && len(run.Config.Setup.Commands) > 0 {
		misfits = append(misfits, "could not set up: this server installs nothing (`dependencies: off`, or there is no sandbox), so that setup.commands were not run")
	}
	if x.o.Dependencies.Registries == nil && !x.o.Dependencies.Compile {
		x.tell(run, sha, misfits)
		return nil
	}
	key, env, told, err := x.environment(ctx, run, ws, sha)
	if err == nil {
		err = ws.Use(ctx, key, env)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		x.o.Log.Warn("set up", "run", run.ID, "error", err)
		told = append(told, deps.CannotInstall+": "+err.Error())
		if err := ws.Use(ctx, "", nil); err != nil { // that of another commit is not this one's
			return err
		}
	}
	x.tell(run, sha, append(told, misfits...))
	return nil
}

// environment returns the key of a commit's environment, "" for none, and how it is used.
func (x *Executor) environment(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) (key string, env, told []string, err error) {
	base := settled(run, sha)
	if err := x.fetch(ctx, run, base); err != nil {
		return "", nil, nil, err
	}
	plan, err := x.setupOf(ctx, run, ws, base)
	if err != nil {
		return "", nil, nil, err
	}
	if !plan.Empty() {
		tree, err := x.setUp(ctx, run, ws, plan, base)
		if err != nil {
			return "", nil, nil, err
		}
		key, env, told = plan.Key, tree.Env, tree.Summary()
	} else {
		env, told = plan.Toolchains(), plan.Lacking()
	}
	if sha == base {
		return key, env, told, nil
	}
	now, err := x.setupOf(ctx, run, ws, sha)
	if err != nil || now.Key == plan.Key {
		return key, env, told, err
	}
	edited := now.Edits(plan)
	projects, err := now.Changed(edited, nil)
	if err != nil || len(projects) == 0 {
		return key, env, told, err
	}
	u := update{x: x, run: run, base: base, from: key, settled: plan, plan: now, projects: projects, key: updateKey(plan, now.Key)}
	u.apply = func(ctx context.Context, own workspace.Workspace) error {
		changed, err := x.o.Gateway.Changed(ctx, run.Repo, base, sha)
		if err != nil {
			return err
		}
		return own.Restore(ctx, sha, u.inputs(changed))
	}
	tree, _, err := u.carryOut(ctx, ws)
	if err != nil {
		return "", nil, nil, err
	}
	if x.o.Dependencies.Registries == nil {
		return u.key, tree.Env, told, nil
	}
	if steering := slices.DeleteFunc(now.Inputs(), func(name string) bool { return !edited(name) || !deps.Steers(name) }); len(steering) > 0 {
		told = append(told, "packages are installed as the base branch says, not as the change does in "+strings.Join(steering, ", "))
	}
	told = append(told, "the change edits what is installed: "+strings.Join(slices.DeleteFunc(now.Inputs(), func(name string) bool { return !edited(name) }), ", "))
	return u.key, tree.Env, append(told, came(tree)...), nil
}

// came says what came of an update: what failed is the change's fault where the registries answered.
func came(tree *deps.Tree) []string {
	tree.Left = nil // lock files
	lines := tree.Summary()
	if tree.Away() || !tree.Broken() {
		return lines
	}
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, deps.CannotInstall); ok {
			lines[i] = breaksInstalling + rest
		}
	}
	return lines
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

// setupOf reads how a commit is set up, once for each commit of a run.
func (x *Executor) setupOf(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string) (*deps.Plan, error) {
	x.mu.Lock()
	known := x.plans[run.ID][sha]
	x.mu.Unlock()
	if known != nil {
		return known, nil
	}
	files, err := x.o.Gateway.Files(ctx, run.Repo, sha)
	if err != nil {
		return nil, err
	}
	p, err := x.planOf(ctx, run, ws, deps.Commit{Files: files, Read: func(paths []string) (map[string][]byte, error) {
		return x.o.Gateway.ReadFiles(ctx, run.Repo, sha, paths)
	}})
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.plans[run.ID] == nil {
		x.plans[run.ID] = map[string]*deps.Plan{}
	}
	x.plans[run.ID][sha] = p
	return p, nil
}

// planOf asks for tools and registries only where there is something to set up.
func (x *Executor) planOf(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, c deps.Commit) (*deps.Plan, error) {
	c.Tests = run.Config.Tests.Commands
	p, err := deps.Find(c, run.Config.Setup, deps.Host{Offline: x.o.Dependencies.Registries == nil})
	if err != nil || len(p.Projects)+len(p.Own) == 0 {
		return p, err
	}
	host, err := x.host(ctx, run, ws)
	if err != nil {
		return nil, err
	}
	return deps.Find(c, run.Config.Setup, host)
}

// host is what this machine offers to whoever installs.
func (x *Executor) host(ctx context.Context, run *pipeline.Run, ws workspace.Workspace) (deps.Host, error) {
	host := deps.Host{Registry: map[string]string{}, Scripts: x.o.Dependencies.Scripts, Compile: x.o.Dependencies.Compile}
	gateway, sumDB, err := x.registries(ctx)
	if err != nil {
		return host, err
	}
	host.SumDB, host.Offline = sumDB, gateway == nil
	for _, k := range registry.Kinds() {
		if gateway != nil && gateway.Has(k) {
			host.Registry[string(k)] = k.URL()
		}
	}
	host.Tools, err = x.hostTools(ctx, run, ws)
	return host, err
}

// registries opens the gateway, nil where nothing is installed.
func (x *Executor) registries(ctx context.Context) (*registry.Gateway, string, error) {
	if x.o.Dependencies.Registries == nil {
		return nil, "", nil
	}
	return x.o.Dependencies.Registries(ctx)
}

// hostTools are the package managers that commands can see, and by what digest the image that
// they see them in.
func (x *Executor) hostTools(ctx context.Context, run *pipeline.Run, ws workspace.Workspace) (map[string]string, error) {
	root, err := x.image(ctx, run)
	if err != nil {
		return nil, err
	}
	in := root.image.Digest
	x.mu.Lock()
	known := x.tools[in]
	x.mu.Unlock()
	if known.tools != nil && x.o.Now().Sub(known.at) < toolsFor {
		return known.tools, nil
	}
	script := deps.ToolScript(x.o.Dependencies.Toolchains)
	if in != "" {
		script = deps.ToolScript(nil)
	}
	r, err := ws.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", script}, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	tools := deps.ParseTools(string(r.Stdout))
	if in != "" {
		tools["image"] = in
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tools[in] = tooled{tools, x.o.Now()}
	return tools, nil
}

// setUp sets a base commit up, in a workspace of its own, or finds what came of that before.
func (x *Executor) setUp(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, plan *deps.Plan, base string) (*deps.Tree, error) {
	if about, ok := ws.Installed(plan.Key); ok && !x.stale(about) {
		return deps.ReadTree(about)
	}
	own, err := x.openSetup(ctx, run, base)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	x.o.Log.Info("setting up", "run", run.ID, "files", strings.Join(plan.Inputs(), " "))
	return x.kept(ctx, run, own, workspace.Installation{Key: plan.Key}, nil, plan.Make)
}

func (x *Executor) openSetup(ctx context.Context, run *pipeline.Run, base string) (workspace.Workspace, error) {
	return x.space(ctx, run, workspace.OpenOptions{Name: fmt.Sprintf("setup-%d", run.ID), Commit: base})
}

// kept has an environment made and kept, with a way to the registries: for a change, to Go
// modules of hosts that its base has alone.
func (x *Executor) kept(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, o workspace.Installation, base *deps.Plan,
	make func(context.Context, workspace.Installer) (*deps.Tree, error),
) (*deps.Tree, error) {
	gateway, _, err := x.registries(ctx)
	if err != nil {
		return nil, err
	}
	o.Stale = x.stale
	asked := func() registry.Report { return registry.Report{} }
	if gateway != nil {
		session, err := gateway.Open(x.o.Log.With("run", run.ID))
		if err != nil {
			return nil, err
		}
		defer session.Close()
		if base != nil {
			session.Limit(base.GoFiles())
		}
		o.Sockets, asked = session.Dir(), session.Report
		for _, k := range session.Kinds() {
			o.Routes = append(o.Routes, workspace.Route{Port: k.Port(), Socket: k.SocketFile()})
		}
	}
	o.Make = func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		tree, err := make(ctx, in)
		if err != nil {
			return nil, err
		}
		report := asked()
		tree.At, tree.Requests, tree.Bytes = x.o.Now(), report.Asked, report.Bytes
		tree.Explain(slices.DeleteFunc(report.Failed, func(why string) bool { return !away(why) }), report.Absent)
		return json.Marshal(tree)
	}
	if err := ws.Install(ctx, o); err != nil {
		return nil, err
	}
	about, ok := ws.Installed(o.Key)
	if !ok {
		return nil, errors.New("the installed dependencies are gone again: is the disk full?")
	}
	tree, err := deps.ReadTree(about)
	if err == nil {
		r := asked()
		tree.Fetched = r.Fetched()
		x.o.Log.Info("set up", "run", run.ID, "projects", strings.Join(tree.Projects, ", "), "failed", len(tree.Failed),
			"ms", int64(tree.Seconds*1000), "requests", r.Requests, "asked", r.Asked, "bytes", r.Bytes, "fetched", tree.Fetched)
	}
	return tree, err
}

// away reports whether a registry could not be asked: then it is not the names' fault. Some
// refuse what they do not know, as if it were forbidden.
func away(why string) bool {
	for _, status := range []string{"400", "401", "402", "403", "404", "405", "406", "407", "410", "451"} {
		if strings.Contains(why, "answered "+status) {
			return false
		}
	}
	return true
}

// stale reports whether a kept environment is to be made again.
func (x *Executor) stale(about []byte) bool {
	tree, err := deps.ReadTree(about)
	after := againAfter
	if err == nil && tree.Away() {
		after = awayFor
	}
	return err != nil || tree.Broken() && x.o.Now().Sub(tree.At) > after
}

// update brings an environment in line with a change that edits what is installed, by
// commands that run nothing of the change.
type update struct {
	x        *Executor
	run      *pipeline.Run
	base     string     // the commit that the environment is of
	from     string     // its key
	settled  *deps.Plan // its plan
	key      string
	plan     *deps.Plan // of the change
	projects []*deps.Project
	apply    func(ctx context.Context, own workspace.Workspace) error // the change's inputs, to a work tree of the base
}

// updateKey stands for a change over a base.
func updateKey(base *deps.Plan, change string) string {
	sum := sha256.Sum256([]byte("update " + base.Key + " " + change))
	return hex.EncodeToString(sum[:16])
}

// inputs are those of changed files that package managers read: manifests, and what Go's
// imports are read of. What says how they work is the base's: it names programs to run.
func (u *update) inputs(changed []string) []string {
	all := slices.DeleteFunc(u.plan.Inputs(), deps.Steers)
	for _, p := range u.projects {
		if p.Manager == "go" {
			return slices.DeleteFunc(changed, func(name string) bool { return path.Ext(name) != ".go" && !slices.Contains(all, name) })
		}
	}
	return slices.DeleteFunc(changed, func(name string) bool { return !slices.Contains(all, name) })
}

// carryOut makes the environment, or finds it. It returns the lock files that were written,
// when it was made.
func (u *update) carryOut(ctx context.Context, ws workspace.Workspace) (*deps.Tree, map[string][]byte, error) {
	locks := map[string][]byte{}
	if about, ok := ws.Installed(u.key); ok && !u.x.stale(about) {
		tree, err := deps.ReadTree(about)
		return tree, nil, err
	}
	own, err := u.x.openSetup(ctx, u.run, u.base)
	if err != nil {
		return nil, nil, err
	}
	defer own.Close()
	if err := u.apply(ctx, own); err != nil {
		return nil, nil, err
	}
	tree, err := u.x.kept(ctx, u.run, own, workspace.Installation{Key: u.key, From: u.from}, u.settled, func(ctx context.Context, in workspace.Installer) (*deps.Tree, error) {
		return u.plan.Update(ctx, in, u.projects)
	})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range deps.Locks(u.projects) {
		if text, err := own.Read(ctx, name); err == nil {
			locks[name] = text
		}
	}
	return tree, locks, nil
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
		tools, err := x.hostTools(ctx, run, ws)
		if err != nil {
			return nil, err
		}
		_, chosen := deps.Choose(wants, tools)
		lines = deps.Misfits(wants, chosen)
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

// tell keeps what there is to say about the set-up of a commit.
func (x *Executor) tell(run *pipeline.Run, sha string, lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.setup[run.ID] == nil {
		x.setup[run.ID] = map[string][]string{}
	}
	x.setup[run.ID][sha] = lines
}

// explain says of tests that could not run because their dependencies are not there why
// those could not be installed: that is to be put right, and not what the tests miss.
func (x *Executor) explain(run int64, sha string, err error) error {
	var fault *pipeline.Fault
	if !errors.As(err, &fault) {
		return err
	}
	lines := x.told(run, sha)
	// The last is what was tried first: something else was done in its place.
	for _, of := range []string{deps.CannotInstall, "could not set up", deps.Otherwise} {
		for _, line := range lines {
			if strings.HasPrefix(line, of) {
				told := *fault
				told.Message = "Forge " + strings.TrimSuffix(line, ".") + ". Without that, " + strings.TrimSuffix(fault.Message, ". "+check.MendNotRun)
				return &told
			}
		}
	}
	return err
}

// told is what there is to say about the set-up of a commit.
func (x *Executor) told(run int64, sha string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.setup[run][sha])
}
