package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"forge/pipeline/workspace"
)

// Commands of a repository's settings prepare a work tree for its tests: they may write
// it, and reach the registries. What they leave in some directories is moved into a tree
// of dependencies, which nobody can write from then on; the rest goes with the workspace.

// Caps on what is kept, and on what is told.
const (
	maxPrepared = 64
	maxLeft     = 5
)

// preparing are the parameters of what prepares.
type preparing struct {
	installing
	Named []string `json:"named,omitempty"`
}

func (i *installer) Prepare(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	p := preparing{installing: i.in}
	p.Command = c
	var r workspace.Result
	back, err := i.w.m.places.Take(ctx, i.w.open.Owner)
	if err != nil {
		return r, err
	}
	defer back()
	return r, i.w.call(ctx, "prepare", p, &r)
}

func (i *installer) Keep(ctx context.Context, named []string) (workspace.Prepared, error) {
	var kept workspace.Prepared
	return kept, i.w.call(ctx, "keep", preparing{installing: i.in, Named: named}, &kept)
}

// prepareTree runs a command in the work tree, with a way to registries.
func (w *worker) prepareTree(ctx context.Context, p preparing) (workspace.Result, error) {
	dir, err := checkCommand(p.Command)
	if err != nil {
		return workspace.Result{}, err
	}
	w.command.Lock()
	defer w.command.Unlock()
	w.preparing = &p.installing
	defer func() { w.preparing = nil }()
	return w.runLocked(ctx, p.Command, dir)
}

// keep moves what commands left into a tree to be made: directories with a name, and
// those that the repository ignores. None may hold a file of the commit: it would stand
// before what another commit has there.
func (w *worker) keep(ctx context.Context, p preparing) (workspace.Prepared, error) {
	w.command.Lock()
	defer w.command.Unlock()
	var kept workspace.Prepared
	t := w.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range p.Named {
		if slices.ContainsFunc(w.deps.Mounts, func(m workspace.Mount) bool { return within(m.To, name) || within(name, m.To) }) {
			return kept, fmt.Errorf("setup.cache names %s, which holds what is installed without the commands: remove it there, or set setup.instead: true", name)
		}
		ok, err := t.keepable(name)
		if err != nil {
			return kept, err
		}
		if ok {
			kept.Dirs = append(kept.Dirs, workspace.Mount{To: name, Copy: true})
		}
	}
	ignored, err := w.leftBehind(ctx, &kept)
	if err != nil {
		return kept, err
	}
	for _, name := range ignored {
		kept.Dirs = append(kept.Dirs, workspace.Mount{To: name})
	}
	if len(kept.Dirs) > maxPrepared {
		return kept, fmt.Errorf("%d ignored directories were made, more than %d: keep them in one, or name it under setup.cache", len(kept.Dirs), maxPrepared)
	}
	for n := range kept.Dirs {
		m := &kept.Dirs[n]
		m.From = strconv.Itoa(n)
		if err := t.moveTo(m.To, filepath.Join(p.Dir, m.From)); err != nil {
			return kept, fmt.Errorf("keep %s: %w", m.To, err)
		}
	}
	return kept, nil
}

// keepable reports whether there is a directory of that name that can be kept; the
// error says why one that is named can not. The caller holds the lock.
func (t *tree) keepable(name string) (bool, error) {
	name, err := cleanPath(name)
	if err != nil {
		return false, err
	}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := t.root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return false, nil // the commands made none
		}
		if err != nil {
			return false, err
		}
		if !info.IsDir() {
			return false, fmt.Errorf("setup.cache names %s, but %s is %s: it must be a directory, with directories alone on the way to it",
				name, at, kindOf(info.Mode()))
		}
	}
	for file := range t.manifest {
		if strings.HasPrefix(file, name+"/") {
			return false, fmt.Errorf("setup.cache names %s, which holds files of the repository, such as %s: name a directory of its own", name, file)
		}
	}
	return true, nil
}

// within reports whether a path is another, or beneath it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// note notes a file that is not kept.
func noteLeft(p *workspace.Prepared, name string) {
	if len(p.Left) < maxLeft {
		p.Left = append(p.Left, name)
	} else {
		p.More++
	}
}

// leftBehind finds the topmost directories that the repository ignores and that hold no
// file of its own, and notes what else is new or changed. The caller holds the lock.
func (w *worker) leftBehind(ctx context.Context, kept *workspace.Prepared) ([]string, error) {
	t := w.tree
	taken := map[string]bool{}
	for _, m := range slices.Concat(kept.Dirs, w.deps.Mounts) {
		taken[m.To] = true
	}
	dirs := dirsOf(t.manifest)
	var fresh []string // directories and files without one of the commit's
	err := t.walk(ctx, ".", func(name string, info fs.FileInfo) error {
		want, tracked := t.manifest[name]
		switch {
		case taken[name], path.Base(name) == "__pycache__", tracked && want.mode == modeSub:
			return skip(info)
		case refuseGit(name, info) != nil && !tracked:
			noteLeft(kept, name)
			return skip(info)
		case info.IsDir() && dirs[name]:
			return nil
		case tracked && !info.IsDir():
			if same, err := t.same(name, info, &want); err != nil || same {
				return err
			}
			noteLeft(kept, name)
			return nil
		}
		fresh = append(fresh, name)
		return skip(info)
	})
	var out []string
	for depth := 0; err == nil && len(fresh) > 0 && depth < maxDepth; depth++ {
		var ignored []string
		if ignored, fresh, err = t.sort(ctx, fresh, taken, kept); len(fresh) > t.limits.TreeFiles {
			err = fmt.Errorf("more than %d new files were made outside of ignored directories", t.limits.TreeFiles)
		}
		out = append(out, ignored...)
	}
	slices.Sort(out)
	return out, err
}

// sort returns which of some new paths are ignored directories that can be kept, and
// what is in those that are not. Files are noted.
func (t *tree) sort(ctx context.Context, names []string, taken map[string]bool, kept *workspace.Prepared) (ignored, inside []string, err error) {
	plain, err := t.notIgnored(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		info, err := t.root.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if !info.IsDir() {
			noteLeft(kept, name)
			continue
		}
		entries, err := t.readDir(name)
		switch {
		case err != nil:
			return nil, nil, err
		case len(entries) == 0 || t.holdsOnly(name, taken):
		case !slices.Contains(plain, name) && !t.holds(name, taken):
			ignored = append(ignored, name)
		default:
			for _, e := range entries {
				child := path.Join(name, e.Name())
				if info, err := t.root.Lstat(child); err == nil && !taken[child] && refuseGit(child, info) == nil {
					inside = append(inside, child)
				}
			}
		}
	}
	return ignored, inside, nil
}

// holds reports whether a place that is taken lies in a directory.
func (t *tree) holds(dir string, taken map[string]bool) bool {
	for name := range taken {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// holdsOnly reports whether a directory is there for places that are taken alone.
func (t *tree) holdsOnly(dir string, taken map[string]bool) bool {
	if !t.holds(dir, taken) {
		return false
	}
	entries, err := t.readDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		child := path.Join(dir, e.Name())
		return !taken[child] && !t.holdsOnly(child, taken)
	})
}

// skip does not enter a directory.
func skip(info fs.FileInfo) error {
	if info.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// moveTo moves a directory of the tree to a place outside of it, on the same disk. The
// way to it was looked at, and no command runs: the parent is opened all the same.
func (t *tree) moveTo(name, to string) error {
	t.unlock(name, 0)
	parent, err := t.root.OpenFile(path.Dir(name), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(int(parent.Fd()), path.Base(name), unix.AT_FDCWD, to)
}

func (w *worker) copies() string { return filepath.Join(w.Dir, "copies") }

// layCopies makes the copies of kept directories that commands may write, unless they
// are there and no command of an earlier checkout has seen them.
func (w *worker) layCopies() error {
	if w.copied == w.deps.Over {
		return nil
	}
	if err := removeTree(w.copies()); err != nil {
		return fmt.Errorf("take copies away: %w", err)
	}
	if err := os.Mkdir(w.copies(), 0o700); err != nil {
		return fmt.Errorf("make copies: %w", err)
	}
	for _, m := range w.deps.Layer.Mounts {
		if m.Copy {
			if err := copyTree(filepath.Join(w.deps.Over, m.From), filepath.Join(w.copies(), m.From)); err != nil {
				return fmt.Errorf("make a copy of %s: %w", m.To, err)
			}
		}
	}
	w.copied = w.deps.Over
	return nil
}

// copyTree copies a kept tree: plain files, links as they are, and directories.
func copyTree(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o755)
		case d.Type() == fs.ModeSymlink:
			link, err := src.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		in, err := src.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|info.Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		if err = errors.Join(err, out.Close()); err == nil {
			err = os.Chtimes(target, info.ModTime(), info.ModTime())
		}
		return err
	})
}

// layerArgs are bubblewrap's arguments for what commands of settings have left.
func (w *worker) layerArgs(tree string) []string {
	var args []string
	for _, m := range w.deps.Layer.Mounts {
		how, from := "--ro-bind", filepath.Join(w.deps.Over, m.From)
		if m.Copy {
			how, from = "--bind", filepath.Join(w.copies(), m.From)
		}
		args = append(args, how, from, path.Join(tree, m.To))
	}
	return args
}
