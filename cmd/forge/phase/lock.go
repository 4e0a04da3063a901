package phase

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/lock"
	"forge/pipeline/registry"
	"forge/pipeline/workspace"
)

// locking brings lock files in line with the manifests of a work tree. An agent cannot: it
// has no network, and package managers alone know what belongs there.
type locking struct {
	x   *Executor
	run *pipeline.Run
	ws  workspace.Workspace

	times  int               // that package managers were run
	done   [sha256.Size]byte // the work tree that the rest is of
	made   map[string]bool   // lock files that they wrote for it
	update *lock.Update      // nil: nothing was lacking
	wrong  []string          // for the implementer
}

// maxLocks is how many times package managers are run for one phase: names tell a registry
// what an agent likes.
const maxLocks = 10

// install brings lock files in line, and lets commands see what is installed by them. It
// makes what the commit will be given, too: of manifests alone, by commands of Forge's own.
func (l *locking) install(ctx context.Context) (told, problems []string, err error) {
	if problems, err = l.bring(ctx); err != nil || len(problems) > 0 || l.update == nil {
		return nil, problems, err
	}
	changes, err := l.ws.Changes(ctx)
	if err != nil {
		return nil, nil, err
	}
	edit, err := l.edit(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	host, err := l.x.host(ctx, l.ws)
	if err != nil {
		return nil, nil, err
	}
	recipe, err := deps.Find(edit.Now.Paths, edit.Now.Read, host)
	if err != nil || recipe.Empty() {
		return nil, nil, err
	}
	tree, err := l.x.install(ctx, l.run, l.ws, recipe)
	if err != nil {
		return nil, nil, err
	}
	use := useOf(tree)
	use.Layer = l.ws.Layer()
	if err := l.ws.Use(ctx, recipe.Key, use); err != nil {
		return nil, nil, err
	}
	for _, line := range l.update.Lines() {
		told = append(told, "locked "+line)
	}
	return append(told, tree.Summary()...), nil, nil
}

// bring has the package managers write what is lacking, and says for the implementer why
// that cannot be. What fails for no fault of its own is left to those who install.
func (l *locking) bring(ctx context.Context) ([]string, error) {
	if l.x.o.Dependencies.Registries == nil || l.run.Config.Setup.Instead || l.run.Config.Setup.LeaveLocks {
		return nil, nil
	}
	changes, err := l.ws.Changes(ctx)
	if err != nil {
		return nil, nil // whoever makes a commit of it says so
	}
	if l.done == stateOf(changes) {
		return l.wrong, nil
	}
	edit, err := l.edit(ctx, changes)
	if err != nil {
		return nil, err
	}
	l.update, l.wrong, l.made = nil, nil, map[string]bool{}
	list, err := deps.FindLocks(edit, deps.Host{Registry: map[string]string{}})
	if err == nil && len(list) > 0 {
		err = l.all(ctx, edit)
	}
	if err != nil {
		return nil, err
	}
	wrong, err := deps.HandWritten(edit, func(name string) bool { return l.made[name] })
	if err != nil {
		return nil, err
	}
	l.wrong = append(l.wrong, wrong...)
	if changes, err = l.ws.Changes(ctx); err == nil {
		l.done = stateOf(changes)
	}
	return l.wrong, err
}

// stateOf stands for a work tree. It is never the zero one.
func stateOf(changes []workspace.Change) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, c := range changes {
		fmt.Fprintf(h, "%q %v %v %d\n%s", c.Path, c.Deleted, c.Exec, len(c.Content), c.Content)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// filesAt are those of a commit.
func (x *Executor) filesAt(ctx context.Context, run *pipeline.Run, sha string) (f deps.Files, err error) {
	f.Paths, err = x.o.Gateway.Files(ctx, run.Repo, sha)
	f.Read = func(name string) ([]byte, error) { return x.o.Gateway.File(ctx, run.Repo, sha, name) }
	return f, err
}

// lockedAlone says what lock files of the change say else than those of its base, where no
// manifest asks for that, and which vendored packages it changes: whoever has written it.
func (x *Executor) lockedAlone(ctx context.Context, run *pipeline.Run) ([]string, error) {
	base, err := x.filesAt(ctx, run, run.Base)
	if err != nil {
		return nil, err
	}
	head, err := x.filesAt(ctx, run, run.Head)
	if err != nil {
		return nil, err
	}
	lines, err := deps.LockedAlone(base, head)
	if err != nil {
		return nil, fmt.Errorf("compare lock files: %w", err)
	}
	changed, err := x.o.Gateway.Changed(ctx, run.Repo, run.Base, run.Head)
	return append(lines, deps.Vendored(changed, base, head)...), err
}

// edit is what the work tree changes.
func (l *locking) edit(ctx context.Context, changes []workspace.Change) (deps.Edit, error) {
	before, err := l.x.filesAt(ctx, l.run, l.run.Head)
	if err != nil {
		return deps.Edit{}, err
	}
	base, err := l.x.filesAt(ctx, l.run, l.run.Base)
	if err != nil {
		return deps.Edit{}, err
	}
	edit := deps.Edit{Before: before, Base: base}
	edit.Now.Paths = slices.Clone(before.Paths)
	written := map[string][]byte{}
	for _, c := range changes {
		edit.Changed = append(edit.Changed, c.Path)
		if c.Deleted {
			edit.Now.Paths = slices.DeleteFunc(edit.Now.Paths, func(p string) bool { return p == c.Path })
			continue
		}
		written[c.Path] = c.Content
		if !slices.Contains(edit.Now.Paths, c.Path) {
			edit.Now.Paths = append(edit.Now.Paths, c.Path)
		}
	}
	edit.Now.Read = func(name string) ([]byte, error) {
		if content, ok := written[name]; ok {
			return content, nil
		}
		return before.Read(name)
	}
	return edit, nil
}

func (l *locking) all(ctx context.Context, edit deps.Edit) error {
	host, err := l.x.host(ctx, l.ws)
	if err != nil {
		return err
	}
	list, err := deps.FindLocks(edit, host)
	if err != nil {
		return err
	}
	for _, one := range list {
		if err := l.one(ctx, edit, one); err != nil {
			return err
		}
	}
	return nil
}

// one brings one lock file in line.
func (l *locking) one(ctx context.Context, edit deps.Edit, one *deps.Lock) error {
	if one.Refused != "" {
		l.wrong = append(l.wrong, fmt.Sprintf("dependencies (%s): %s", one, one.Refused))
		return nil
	}
	if one.Lacks != "" {
		return nil // those who install say so
	}
	if l.times >= maxLocks {
		l.wrong = append(l.wrong, fmt.Sprintf("dependencies (%s): registries were asked %d times for lock files in this phase, which is enough: do without what they do not have", one, l.times))
		return nil
	}
	if one.Check != nil {
		if r, err := l.ws.Run(ctx, *one.Check); err != nil || r.Exit == 0 {
			return err
		}
	}
	l.times++
	l.x.o.Log.Info("updating lock file", "run", l.run.ID, "projects", one.String())
	made, report, err := l.x.relock(ctx, l.run, l.ws, one)
	switch {
	case err != nil:
		return err
	case made.Why != "" && away(report.Failed):
		l.x.o.Log.Warn("update lock file", "run", l.run.ID, "projects", one.String(), "error", made.Why+" ("+strings.Join(report.Failed, "; ")+")")
		return nil
	case made.Why != "":
		for _, name := range report.Absent[:min(3, len(report.Absent))] {
			made.Why += "\n(no registry has " + name + ")"
		}
		l.x.o.Log.Info("lock file not updated", "run", l.run.ID, "projects", one.String(), "error", made.Why)
		l.wrong = append(l.wrong, fmt.Sprintf("dependencies (%s): the lock file cannot be made for what the manifest asks for: %s", one, made.Why))
		return nil
	}
	return l.write(ctx, edit, one, made)
}

// noAnswer is what a registry says of a name that it does not give, and not of itself.
var noAnswer = lazyregexp.New(`answered 4(?:0[0-7]|1\d|51) `)

// away reports whether a registry could not be asked: then it is not the names' fault. Some
// refuse what they do not know, as if it were forbidden.
func away(failed []string) bool {
	return slices.ContainsFunc(failed, func(why string) bool { return !noAnswer.MatchString(why + " ") })
}

// write puts lock files into the work tree, under the rules for what an agent writes.
func (l *locking) write(ctx context.Context, edit deps.Edit, one *deps.Lock, made deps.Made) error {
	if l.update == nil { // what came in with an earlier iteration and is another project's is still there
		l.update = &lock.Update{}
		if u := l.run.Locked(); u != nil {
			l.update.Packages = slices.Clone(u.Packages)
		}
	}
	l.update.Packages = slices.DeleteFunc(l.update.Packages, one.Has)
	l.update.Packages = append(l.update.Packages, made.Packages...)
	for _, name := range slices.Sorted(maps.Keys(made.Files)) {
		now, before, err := edit.Both(name)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, made.Files[name]) {
			err = l.ws.Write(ctx, name, made.Files[name])
		}
		var fault *pipeline.Fault
		if errors.As(err, &fault) || ctx.Err() != nil {
			return err
		}
		l.made[name] = err == nil
		if err != nil {
			l.wrong = append(l.wrong, fmt.Sprintf("dependencies: %v, so that nothing can be added to what is locked there", err))
		} else if !bytes.Equal(before, made.Files[name]) {
			l.update.Files = append(l.update.Files, name)
		}
	}
	return nil
}

// relock has a package manager write a lock file, with a way to the registries.
func (x *Executor) relock(ctx context.Context, run *pipeline.Run, ws workspace.Workspace, l *deps.Lock) (made deps.Made, report registry.Report, err error) {
	o, session, err := x.routed(ctx, run)
	if err != nil {
		return made, report, err
	}
	defer session.Close()
	o.Key = "lock"
	o.Make = func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		made, err = l.Make(ctx, in)
		return nil, err
	}
	err = ws.Resolve(ctx, o)
	report = session.Report()
	x.o.Log.Info("asked registries for a lock file", "run", run.ID, "projects", l.String(), "requests", report.Requests, "asked", report.Asked, "bytes", report.Bytes,
		"fetched", report.Fetched())
	return made, report, err
}
