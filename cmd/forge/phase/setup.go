package phase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/registry"
	"forge/pipeline/workspace"
)

// settled is the commit whose settings and scripts prepare another for its tests: one of
// the branch that the work is for, never one that an agent has made.
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

// prepare has the commands of the repository's settings run, unless that was done before.
// What they fail at is told, as what cannot be installed is.
func (x *Executor) prepare(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, sha string, p *provided) error {
	if len(run.Config.Setup.Commands) == 0 {
		return nil
	}
	base := settled(run, sha)
	err := x.fetch(ctx, run, base)
	if err != nil {
		return err
	}
	auto := &deps.Recipe{}
	if !run.Config.Setup.Instead {
		if auto, err = x.recipe(ctx, run, ws, base); err != nil {
			return err
		}
	}
	commands, err := x.commands(ctx, run, ws, base, sha, auto)
	if err != nil {
		return err
	}
	changed, err := x.changedSetup(ctx, run, commands, base, sha)
	if err != nil {
		return err
	}
	tree, err := x.carryOut(ctx, run, ws, base, sha, auto, commands)
	if err != nil {
		p.failed = err
		return nil
	}
	p.told = slices.Concat(p.told, changed, tree.Summary())
	if len(tree.Mounts) == 0 {
		return nil
	}
	files, err := x.o.Gateway.Files(ctx, run.Repo, sha)
	if err != nil {
		return err
	}
	p.use.Layer.Key = commands.Key
	for _, m := range tree.Mounts {
		own := func(name string) bool { return name == m.To || strings.HasPrefix(name, m.To+"/") }
		if i := slices.IndexFunc(files, own); i >= 0 {
			p.told = append(p.told, fmt.Sprintf("could not set up %s: the change adds %s there, and setup's result would hide it, so the tests run without that",
				m.To, files[i]))
			continue
		}
		p.use.Layer.Mounts = append(p.use.Layer.Mounts, workspace.Mount{From: m.From, To: m.To, Copy: m.Copy})
	}
	return nil
}

// commands are those of the settings, with all that decides what they leave.
func (x *Executor) commands(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, base, sha string, auto *deps.Recipe,
) (*deps.Commands, error) {
	host, err := x.host(ctx, ws)
	if err != nil {
		return nil, err
	}
	b := deps.Basis{Host: host}
	if !auto.Empty() {
		b.Installed = auto.Key
	}
	if b.Files, err = x.o.Gateway.Files(ctx, run.Repo, base); err != nil {
		return nil, err
	}
	at := func(sha string) func([]string) (map[string][]byte, error) {
		return func(paths []string) (map[string][]byte, error) {
			return x.o.Gateway.ReadFiles(ctx, run.Repo, sha, paths)
		}
	}
	b.Read, b.Tested = at(base), at(sha)
	return deps.FindCommands(run.Config.Setup, b)
}

// carryOut runs the commands in a work tree of its own, on the base commit, or finds what
// they left before.
func (x *Executor) carryOut(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, base, sha string, auto *deps.Recipe,
	commands *deps.Commands,
) (*deps.Tree, error) {
	if about, ok := ws.Installed(commands.Key); ok && !x.stale(about) {
		return deps.ReadTree(about)
	}
	own, err := x.o.Spaces.Open(ctx, workspace.OpenOptions{
		Name: fmt.Sprintf("setup-%d", run.ID), GitDir: x.o.Gateway.Dir(run.Repo), Commit: base, Cache: cacheKey(run.Repo), Owner: run.Root(),
	})
	if err != nil {
		return nil, err
	}
	defer own.Close()
	if !auto.Empty() {
		tree, err := x.install(ctx, run, own, auto)
		if err == nil {
			err = own.Use(ctx, auto.Key, useOf(tree))
		}
		if err != nil {
			return nil, err
		}
	}
	if sha != base && len(commands.Inputs) > 0 {
		if err := own.Restore(ctx, sha, commands.Inputs); err != nil {
			return nil, err
		}
	}
	x.o.Log.Info("setting up", "run", run.ID, "files", strings.Join(commands.Runs, " "))
	return x.kept(ctx, run, own, commands.Key, func(ctx context.Context, in workspace.Installer) (*deps.Tree, error) {
		return commands.Make(ctx, in.Prepare, func(ctx context.Context, named []string) ([]deps.Mount, []string, error) {
			got, err := in.Keep(ctx, named)
			var mounts []deps.Mount
			for _, m := range got.Dirs {
				mounts = append(mounts, deps.Mount{From: m.From, To: m.To, Copy: m.Copy})
			}
			got.Left = slices.DeleteFunc(got.Left, func(name string) bool { return slices.Contains(commands.Inputs, name) })
			if got.More > 0 {
				got.Left = append(got.Left, fmt.Sprintf("%d more", got.More))
			}
			return mounts, got.Left, err
		})
	})
}

// changedSetup says what of the setup the work has changed: of inputs the commands see
// the change, of what they run they do not.
func (x *Executor) changedSetup(ctx context.Context, run *pipeline.Run, commands *deps.Commands, base, sha string) ([]string, error) {
	if sha == base {
		return nil, nil
	}
	names := slices.Concat(commands.Inputs, commands.Runs)
	then, err := x.o.Gateway.ReadFiles(ctx, run.Repo, base, names)
	if err != nil {
		return nil, err
	}
	now, err := x.o.Gateway.ReadFiles(ctx, run.Repo, sha, names)
	if err != nil {
		return nil, err
	}
	changed := func(names []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			was, before := then[name]
			is, after := now[name]
			return before == after && bytes.Equal(was, is)
		}), ", ")
	}
	var told []string
	if names := changed(commands.Inputs); names != "" {
		told = append(told, "the change edits what setup takes in: "+names)
	}
	runs := slices.DeleteFunc(slices.Clone(commands.Runs), func(name string) bool { return slices.Contains(commands.Inputs, name) })
	if names := changed(runs); names != "" {
		told = append(told, "the change edits what setup runs; it ran as on the base branch: "+names)
	}
	return told, nil
}

// kept has a tree made and kept under a key, with a way to the registries.
func (x *Executor) kept(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, key string,
	make func(context.Context, workspace.Installer) (*deps.Tree, error),
) (*deps.Tree, error) {
	o, session, err := x.routed(ctx, run)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	o.Key, o.Stale = key, x.stale
	o.Make = func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		tree, err := make(ctx, in)
		if err != nil {
			return nil, err
		}
		report := session.Report()
		tree.At, tree.Requests, tree.Bytes = x.o.Now(), report.Asked, report.Bytes
		tree.Explain(report.Failed, report.Absent)
		return json.Marshal(tree)
	}
	if err := ws.Install(ctx, o); err != nil {
		return nil, err
	}
	about, ok := ws.Installed(key)
	if !ok {
		return nil, errors.New("the installed dependencies are gone again: is the disk full?")
	}
	tree, err := deps.ReadTree(about)
	if err == nil {
		r := session.Report()
		tree.Fetched = r.Fetched()
		x.o.Log.Info("installed dependencies", "run", run.ID, "projects", strings.Join(tree.Projects, ", "), "failed", len(tree.Failed),
			"ms", int64(tree.Seconds*1000), "requests", r.Requests, "asked", r.Asked, "bytes", r.Bytes, "fetched", tree.Fetched)
	}
	return tree, err
}

// routed is an installation with a way to the registries, for as long as the session is open.
func (x *Executor) routed(ctx context.Context, run *pipeline.Run) (o workspace.Installation, session *registry.Session, err error) {
	gateway, _, err := x.o.Dependencies.Registries(ctx)
	if err != nil {
		return o, nil, err
	}
	if session, err = gateway.Open(x.o.Log.With("run", run.ID)); err != nil {
		return o, nil, err
	}
	o.Sockets = session.Dir()
	for _, k := range session.Kinds() {
		o.Routes = append(o.Routes, workspace.Route{Port: k.Port(), Socket: k.SocketFile()})
	}
	return o, session, nil
}

// stale reports whether a kept tree is to be made again.
func (x *Executor) stale(about []byte) bool {
	tree, err := deps.ReadTree(about)
	return err != nil || tree.Broken() && x.o.Now().Sub(tree.At) > againAfter
}
