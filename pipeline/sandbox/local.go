package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"forge/pipeline/workspace"
)

// Tree is the part of a [Workspace] that a worker answers by itself: the files and the
// history of a work tree, with the same checks, in this process. It runs no commands:
// those of a repository have no place in a process that holds keys. Package workspacetest
// puts commands to it, for tests.
type Tree struct {
	worker *worker
	open   workspace.OpenOptions
}

// OpenTree makes a work tree in a directory, an absolute path, and checks o.Commit out
// when there is one. owner is the user whose commands will write in it.
func OpenTree(ctx context.Context, dir string, owner int, o workspace.OpenOptions) (*Tree, error) {
	gitBin, err := findGit()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tree"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range etcFiles {
		if err := writeFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	t := &Tree{worker: &worker{}, open: o}
	s, err := json.Marshal(setup{Dir: dir, GitDir: o.GitDir, Git: gitBin, Etc: dir, Limits: DefaultLimits(), Protected: o.Protected, Allow: o.Allow})
	if err != nil {
		return nil, err
	}
	if err := t.worker.configure(s); err != nil {
		return nil, err
	}
	t.worker.tree.owner = owner
	if o.Commit == "" {
		return t, nil
	}
	return t, t.Checkout(ctx, o.Commit)
}

// Dir is the work tree, as commands see it.
func (t *Tree) Dir() string { return t.worker.tree.dir }

// Close lets go of the directory; its files stay.
func (t *Tree) Close() error { return t.worker.tree.root.Close() }

// Checkout is [Workspace.Checkout].
func (t *Tree) Checkout(ctx context.Context, sha string) error {
	return t.worker.tree.checkout(ctx, sha)
}

// Restore is [Workspace.Restore].
func (t *Tree) Restore(ctx context.Context, sha string, paths []string) error {
	return t.worker.tree.restore(ctx, sha, paths)
}

// List is [Workspace.List].
func (t *Tree) List(_ context.Context, dir string) ([]string, error) { return t.worker.tree.list(dir) }

// Read is [Workspace.Read].
func (t *Tree) Read(_ context.Context, path string) ([]byte, error) { return t.worker.tree.read(path) }

// Search is [Workspace.Search].
func (t *Tree) Search(ctx context.Context, pattern, glob string, max int) ([]string, error) {
	return t.worker.tree.search(ctx, pattern, glob, max)
}

// Log is [Workspace.Log].
func (t *Tree) Log(ctx context.Context, path string, n int) (string, error) {
	return t.worker.log(ctx, path, n)
}

// Blame is [Workspace.Blame].
func (t *Tree) Blame(ctx context.Context, path string, from, to int) (string, error) {
	return t.worker.blame(ctx, path, from, to)
}

// Diff is [Workspace.Diff].
func (t *Tree) Diff(ctx context.Context, base, path string) (string, error) {
	return t.worker.diff(ctx, base, path)
}

// Symbols is [Workspace.Symbols].
func (t *Tree) Symbols(ctx context.Context, query string, max int) (string, error) {
	return t.worker.symbols(ctx, query, max)
}

// Write is [Workspace.Write].
func (t *Tree) Write(_ context.Context, path string, content []byte) error {
	return guarded(t.open, path, func() error { return t.worker.write(path, content) })
}

// Remove is [Workspace.Remove].
func (t *Tree) Remove(_ context.Context, path string) error {
	return guarded(t.open, path, func() error { return t.worker.remove(path) })
}

// Changes is [Workspace.Changes].
func (t *Tree) Changes(ctx context.Context) ([]workspace.Change, error) {
	return t.worker.tree.changes(ctx)
}

// Strays is [Workspace.Strays].
func (t *Tree) Strays(ctx context.Context) error {
	changes, err := t.Changes(ctx)
	if err != nil {
		return err
	}
	return straysOf(t.open, changes)
}

// MakeEnvironment makes the directories that an environment is kept in, and has the work tree
// begin as others that it lies over, the uppermost first.
func (t *Tree) MakeEnvironment(ctx context.Context, dir string, over []string) error {
	for _, name := range []string{homeDir, workDir} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	t.worker.NoOverlay = true // whose commands would be mounted: here are none
	_, err := t.worker.begin(ctx, preparation{Dir: dir, Lowers: over})
	return err
}

// Stage is [workspace.Installer.Stage].
func (t *Tree) Stage(dir, name string, content []byte) error {
	return t.worker.stage(preparation{Dir: dir, Name: name, Content: content})
}

// Keep is [workspace.Installer.Keep].
func (t *Tree) Keep(ctx context.Context, dir string, named []string) (left []string, err error) {
	return t.worker.keep(ctx, preparation{Dir: dir, Named: named})
}

// Show copies an environment to the work tree and to home, in the place of another one; "" for
// none. [Tree.Changes] leaves it out.
func (t *Tree) Show(dir, home string) error {
	for _, before := range t.worker.tree.shown {
		for _, name := range t.worker.topmost(before) {
			if err := t.worker.tree.root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	t.worker.tree.show(nil)
	if dir == "" {
		return os.RemoveAll(home)
	}
	t.worker.tree.show([]string{dir})
	return errors.Join(os.RemoveAll(home), copyTree(filepath.Join(dir, homeDir), home), copyTree(filepath.Join(dir, workDir), t.Dir()))
}

// HomeDir is where an environment keeps what commands see at [workspace.EnvPath].
func HomeDir(dir string) string { return filepath.Join(dir, homeDir) }

// FilledSubmodules are the commit's submodules that something was written into.
func (t *Tree) FilledSubmodules() []string { return t.worker.tree.filledSubmodules() }

// guarded does something to a path unless it is somebody else's.
func guarded(o workspace.OpenOptions, path string, do func() error) error {
	if err := taken(path, o.Taken); err != nil {
		return err
	}
	return owned(do(), o.Owners)
}
