package phase

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/workspace"
)

// locking brings what is installed, and lock files, in line with the manifests of an
// implementer's work tree. An agent cannot: it has no network.
type locking struct {
	x   *Executor
	run *pipeline.Run
	ws  workspace.Workspace

	times int    // that package managers were run
	done  string // the key of what the rest is of
	key   string // of the environment
	tree  *deps.Tree
	files []string // lock files that were written
	wrong []string // for the implementer
}

// maxLocks is how many times package managers are run for one phase: names tell a registry
// what an agent likes.
const maxLocks = 10

// install brings lock files in line, and lets commands see what is installed by them.
func (l *locking) install(ctx context.Context) (told, problems []string, err error) {
	if problems, err = l.bring(ctx); err != nil || len(problems) > 0 || l.tree == nil {
		return nil, problems, err
	}
	if err := l.ws.Use(ctx, l.key, l.tree.Env); err != nil {
		return nil, nil, err
	}
	if len(l.files) > 0 {
		told = append(told, "wrote "+strings.Join(l.files, ", "))
	}
	return append(told, l.tree.Summary()...), nil, nil
}

// bring has the package managers write what is lacking, and says for the implementer why
// that cannot be. What fails for no fault of its own is left to those who install.
func (l *locking) bring(ctx context.Context) ([]string, error) {
	if l.x.o.Dependencies.Registries == nil || !l.run.Config.Setup.Installs() {
		return nil, nil
	}
	changes, err := l.ws.Changes(ctx)
	if err != nil {
		return nil, nil // whoever makes a commit of it says so
	}
	before, now, key, err := l.plans(ctx, changes)
	if err != nil {
		return nil, err
	}
	if key == l.done {
		return l.wrong, nil
	}
	run := func(c workspace.Command) (workspace.Result, error) { return l.ws.Run(ctx, c) }
	if !slices.ContainsFunc(changes, func(c workspace.Change) bool { return strings.HasSuffix(c.Path, ".go") }) {
		run = nil
	}
	projects, err := now.Changed(now.Edits(before), run)
	if err != nil {
		return nil, err
	}
	l.done, l.key, l.tree, l.wrong = key, key, nil, nil
	if len(projects) == 0 {
		return nil, nil
	}
	if l.times++; l.times > maxLocks {
		l.wrong = []string{fmt.Sprintf("dependencies: registries were asked %d times in this phase, which is enough: do without what they do not have", maxLocks)}
		return l.wrong, nil
	}
	base := settled(l.run, l.run.Head)
	u := update{x: l.x, run: l.run, base: base, settled: before, plan: now, projects: projects, key: key}
	if !before.Empty() {
		if _, err := l.x.setUp(ctx, l.run, l.ws, before, base); err != nil {
			return nil, err
		}
		u.from = before.Key
	}
	u.apply = func(ctx context.Context, own workspace.Workspace) error { return l.apply(ctx, &u, own, changes) }
	tree, locks, err := u.carryOut(ctx, l.ws)
	if err != nil {
		return nil, err
	}
	return l.take(ctx, tree, locks)
}

// take says what came of an update, and writes lock files into the work tree, under the rules
// for what an agent writes.
func (l *locking) take(ctx context.Context, tree *deps.Tree, locks map[string][]byte) ([]string, error) {
	l.tree = tree
	if tree.Broken() && !tree.Away() {
		for _, f := range tree.Failed {
			if !f.Lacks {
				l.wrong = append(l.wrong, fmt.Sprintf("dependencies (%s): what the manifest asks for cannot be installed: %s", f.Project, f.Why))
			}
		}
		return l.wrong, nil
	}
	for _, name := range slices.Sorted(maps.Keys(locks)) {
		old, err := l.ws.Read(ctx, name)
		if err == nil && bytes.Equal(old, locks[name]) {
			continue
		}
		err = l.ws.Write(ctx, name, locks[name])
		var fault *pipeline.Fault
		if errors.As(err, &fault) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			l.wrong = append(l.wrong, fmt.Sprintf("dependencies: %v, so that nothing can be added to what is locked there", err))
		} else if !slices.Contains(l.files, name) {
			l.files = append(l.files, name)
		}
	}
	if len(l.wrong) > 0 {
		return l.wrong, nil
	}
	changes, err := l.ws.Changes(ctx) // with the lock files there is nothing to do
	if err != nil {
		return nil, nil
	}
	_, _, l.done, err = l.plans(ctx, changes)
	return nil, err
}

// plans are those of the base and of the work tree, and the key of an update from one to the other.
func (l *locking) plans(ctx context.Context, changes []workspace.Change) (before, now *deps.Plan, key string, err error) {
	if before, err = l.x.setupOf(ctx, l.run, l.ws, settled(l.run, l.run.Head)); err != nil {
		return nil, nil, "", err
	}
	if now, err = l.plan(ctx, changes); err != nil {
		return nil, nil, "", err
	}
	return before, now, updateKey(before, now.Key+" "+sourcesOf(changes)), nil
}

// plan is that of the work tree.
func (l *locking) plan(ctx context.Context, changes []workspace.Change) (*deps.Plan, error) {
	files, err := l.x.o.Gateway.Files(ctx, l.run.Repo, l.run.Head)
	if err != nil {
		return nil, err
	}
	files = slices.Clone(files)
	written := map[string]workspace.Change{}
	for _, c := range changes {
		written[c.Path] = c
		files = slices.DeleteFunc(files, func(name string) bool { return name == c.Path })
		if !c.Deleted {
			files = append(files, c.Path)
		}
	}
	return l.x.planOf(ctx, l.run, l.ws, deps.Commit{Files: files, Read: func(paths []string) (map[string][]byte, error) {
		texts, err := l.x.o.Gateway.ReadFiles(ctx, l.run.Repo, l.run.Head, paths)
		for _, name := range paths {
			if c, ok := written[name]; ok && err == nil {
				texts[name] = c.Content
			}
		}
		return texts, err
	}})
}

// apply brings a work tree of the base to what package managers see of the implementer's.
func (l *locking) apply(ctx context.Context, u *update, own workspace.Workspace, changes []workspace.Change) error {
	committed, err := l.x.o.Gateway.Changed(ctx, l.run.Repo, u.base, l.run.Head)
	if err != nil {
		return err
	}
	if err := own.Restore(ctx, l.run.Head, u.inputs(committed)); err != nil {
		return err
	}
	by := map[string]workspace.Change{}
	var names []string
	for _, c := range changes {
		by[c.Path] = c
		names = append(names, c.Path)
	}
	for _, name := range u.inputs(names) {
		if by[name].Deleted {
			err = own.Remove(ctx, name)
		} else {
			err = own.Write(ctx, name, by[name].Content)
		}
		var fault *pipeline.Fault
		if errors.As(err, &fault) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// sourcesOf stands for the changed files whose imports are read.
func sourcesOf(changes []workspace.Change) string {
	h := sha256.New()
	for _, c := range changes {
		if strings.HasSuffix(c.Path, ".go") {
			fmt.Fprintf(h, "%q %v %d\n%s", c.Path, c.Deleted, len(c.Content), c.Content)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
