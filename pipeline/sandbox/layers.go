package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline/workspace"
)

// environment is what a worker's commands see under and beside the work tree.
type environment struct {
	Lowers []string `json:"lowers"` // directories of kept environments, the uppermost first
	Env    []string `json:"env"`
}

// use takes an environment for the commands that follow.
func (w *worker) use(ctx context.Context, e environment) error {
	w.command.Lock()
	defer w.command.Unlock()
	w.env = e
	w.tree.show(e.Lowers)
	if len(e.Lowers) > 0 {
		w.findOverlay(ctx)
	}
	return nil
}

// show has changes leave out what belongs to environments.
func (t *tree) show(lowers []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = nil
	for _, dir := range lowers {
		t.shown = append(t.shown, filepath.Join(dir, workDir))
	}
}

// begin prepares the making of an environment over others, and reports whether it lies over
// them: else it begins as a copy.
func (w *worker) begin(ctx context.Context, p preparation) (under bool, err error) {
	w.command.Lock()
	defer w.command.Unlock()
	if len(p.Lowers) == 0 {
		return false, nil
	}
	w.tree.show(p.Lowers)
	if w.findOverlay(ctx); w.overlays {
		return true, nil
	}
	if err := copyTree(filepath.Join(p.Lowers[0], homeDir), filepath.Join(p.Dir, homeDir)); err != nil {
		return false, fmt.Errorf("begin an environment: %w", err)
	}
	err = copyTree(filepath.Join(p.Lowers[0], workDir), w.tree.dir)
	return false, err
}

// install runs a command of a set-up.
func (w *worker) install(ctx context.Context, p preparation) (workspace.Result, error) {
	dir, err := checkCommand(p.Command)
	if err != nil {
		return workspace.Result{}, err
	}
	w.command.Lock()
	defer w.command.Unlock()
	w.making = &p
	defer func() { w.making = nil }()
	return w.runLocked(ctx, p.Command, dir)
}

// stage writes a file beside the work tree.
func (w *worker) stage(p preparation) error {
	name, err := cleanPath(p.Name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(p.Dir, homeDir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, p.Content, 0o644)
}

// maxLeft caps what is told of what is not kept.
const maxLeft = 5

// keep moves what a set-up left in the work tree, and the repository ignores, into the
// environment. What else is new or changed is told.
func (w *worker) keep(ctx context.Context, p preparation) (left []string, err error) {
	w.command.Lock()
	defer w.command.Unlock()
	t := w.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	more := 0
	note := func(name string) {
		if len(left) < maxLeft {
			left = append(left, name)
		} else {
			more++
		}
	}
	dirs := dirsOf(t.manifest)
	var fresh []string // topmost paths that the commit does not have
	err = t.walk(ctx, ".", func(name string, info fs.FileInfo) error {
		want, tracked := t.manifest[name]
		switch {
		case isWhiteout(info):
			return t.moveTo(name, filepath.Join(p.Dir, workDir))
		case path.Base(name) == "__pycache__", tracked && want.mode == modeSub:
			return skip(info)
		case refuseGit(name, info) != nil && !tracked:
			note(name)
			return skip(info)
		case info.IsDir() && dirs[name]:
			return nil
		case tracked && !info.IsDir():
			if same, err := t.same(name, info, &want); err == nil && !same {
				note(name)
			}
			return nil
		}
		fresh = append(fresh, name)
		return skip(info)
	})
	for depth := 0; err == nil && len(fresh) > 0 && depth < maxDepth; depth++ {
		var plain, inside []string
		if plain, err = t.notIgnored(ctx, fresh); err != nil {
			break
		}
		slices.Sort(plain)
		for _, name := range fresh {
			if _, found := slices.BinarySearch(plain, name); !found || slices.Contains(p.Named, name) || slices.Contains(p.Named, path.Base(name)) {
				if err = t.moveTo(name, filepath.Join(p.Dir, workDir)); err != nil {
					return nil, fmt.Errorf("keep %s: %w", name, err)
				}
				continue
			}
			info, err := t.root.Lstat(name)
			if err != nil {
				return nil, err
			}
			if !info.IsDir() {
				note(name)
				continue
			}
			entries, err := t.readDir(name)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				inside = append(inside, path.Join(name, e.Name()))
			}
		}
		if fresh = inside; len(fresh) > t.limits.TreeFiles {
			return nil, fmt.Errorf("more than %d new files were made outside of what the repository ignores", t.limits.TreeFiles)
		}
	}
	if more > 0 {
		left = append(left, fmt.Sprintf("%d more", more))
	}
	return left, err
}

// skip does not enter a directory.
func skip(info fs.FileInfo) error {
	if info.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// moveTo moves a path of the tree to the same place in another directory, on the same
// disk. No command runs: the parent is opened all the same.
func (t *tree) moveTo(name, dir string) error {
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	parent, err := t.root.OpenFile(path.Dir(name), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(int(parent.Fd()), path.Base(name), unix.AT_FDCWD, to)
}

// copies holds what commands write beside the work tree: scratch files, and the upper layers
// of overlays, or copies where the kernel has none.
func (w *worker) copies() string { return filepath.Join(w.Dir, "copies") }

func (w *worker) scratch() string { return filepath.Join(w.copies(), "tmp") }

// layCopies makes the directories that commands write in, unless they are there for the same
// environments and no command of an earlier checkout has seen them. The caller holds the
// command lock.
func (w *worker) layCopies() error {
	lowers := w.lowers()
	if w.laid && slices.Equal(w.copied, lowers) {
		return nil
	}
	// What is old is removed later on, which takes as long as making the new.
	old := filepath.Join(w.Dir, "old-"+rand.Text())
	_ = os.Chmod(w.copies(), 0o700) // what a command has shut does not let itself be moved
	if err := os.Rename(w.copies(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take copies away: %w", err)
	}
	go func() { _ = removeTree(old) }() // the workspace's end removes what is left
	for _, name := range []string{"", "tmp", homeDir, "home.work", "home.merged", "tree.work", "tree.merged", workDir} {
		if err := os.Mkdir(filepath.Join(w.copies(), name), 0o700); err != nil {
			return fmt.Errorf("make copies: %w", err)
		}
	}
	if len(lowers) > 0 && !w.overlays {
		for _, name := range []string{homeDir, workDir} {
			if err := copyTree(filepath.Join(lowers[0], name), filepath.Join(w.copies(), name)); err != nil {
				return fmt.Errorf("copy what is installed: %w", err)
			}
		}
	}
	w.laid, w.copied = true, lowers
	return nil
}

// lowers are the environments that the next command sees.
func (w *worker) lowers() []string {
	if w.making != nil {
		return w.making.Lowers
	}
	return w.env.Lowers
}

// envArgs are bubblewrap's arguments for the work tree and the environment, and the overlays
// that are mounted before.
func (w *worker) envArgs() (args []string, overlays []layered) {
	in := func(name string) string { return filepath.Join(w.copies(), name) }
	lowers, home := w.lowers(), in(homeDir)
	if w.making != nil {
		home = filepath.Join(w.making.Dir, homeDir)
	}
	tree := w.tree.dir
	if len(lowers) > 0 && w.overlays {
		overlays = []layered{layersFrom(lowers, workDir, tree, in("tree.work"), in("tree.merged")), layersFrom(lowers, homeDir, home, in("home.work"), in("home.merged"))}
		tree, home = overlays[0].target, overlays[1].target
	}
	args = []string{"--bind", tree, boxTree}
	if w.making != nil || len(lowers) > 0 {
		args = append(args, "--bind", home, boxDeps)
	}
	if len(lowers) > 0 && !w.overlays && w.making == nil {
		for _, name := range w.topmost(in(workDir)) {
			args = append(args, "--bind", filepath.Join(in(workDir), name), path.Join(boxTree, name))
		}
	}
	if p := w.making; p != nil {
		args = append(args, "--ro-bind", p.Exe, boxSelf)
		if p.Sockets != "" {
			args = append(args, "--ro-bind", p.Sockets, boxRoute)
		}
	}
	return args, overlays
}

// topmost are the paths below a directory that the commit does not have.
func (w *worker) topmost(dir string) (out []string) {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	dirs := dirsOf(w.tree.manifest)
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." || d.IsDir() && dirs[name] {
			return nil
		}
		if _, tracked := w.tree.manifest[name]; !tracked {
			out = append(out, name)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return out
}

// led puts before a command what leads it: the bridge of a set-up, or an environment's script.
func (w *worker) led(args []string) []string {
	if w.making == nil && slices.ContainsFunc(w.env.Lowers, starts) {
		return slices.Concat(workspace.Started, args)
	}
	if w.making == nil || len(w.making.Routes) == 0 {
		return args
	}
	return slices.Concat([]string{boxSelf}, w.making.Args, []string{boxRoute, encodeRoutes(w.making.Routes)}, args)
}

// starts reports whether an environment has a script before each command.
func starts(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, homeDir, workspace.StartFile))
	return err == nil && info.Mode().IsRegular()
}

// joined are variables whose values are put together.
var joined = map[string]bool{"PATH": true, "PYTHONPATH": true}

// withEnv adds the environment's variables, and then a command's own.
func (w *worker) withEnv(base, own []string) []string {
	if w.making == nil {
		own = slices.Concat(w.env.Env, own)
	}
	values := map[string]string{}
	var keys []string
	for _, kv := range slices.Concat(base, own) {
		key, value, _ := strings.Cut(kv, "=")
		if old, ok := values[key]; !ok {
			keys = append(keys, key)
		} else if joined[key] && old != "" {
			value += ":" + old
		}
		values[key] = value
	}
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k+"="+values[k])
	}
	return out
}

// layered is an overlay: a directory that shows others, and takes what is written.
type layered struct {
	lower               []string // the uppermost first
	upper, work, target string
}

func layersFrom(lowers []string, name, upper, work, target string) layered {
	o := layered{upper: upper, work: work, target: target}
	for _, dir := range lowers {
		o.lower = append(o.lower, filepath.Join(dir, name))
	}
	return o
}

// mountScript mounts pairs of options and target until "--", and becomes what follows. The
// root of a user namespace of its own runs it, who is nobody outside.
const mountScript = `while [ "$1" != -- ]; do mount -t overlay -o "$1" overlay "$2" || exit 125; shift 2; done; shift; exec "$@"`

// mounted puts the mounting of overlays before a command.
func mounted(cmd *exec.Cmd, overlays []layered) {
	args := []string{"unshare", "--map-root-user", "--mount", "--", "/bin/sh", "-c", mountScript, "sh"}
	for _, o := range overlays {
		args = append(args, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr,nosuid,nodev", strings.Join(o.lower, ":"), o.upper, o.work), o.target)
	}
	cmd.Args = slices.Concat(args, []string{"--", cmd.Path}, cmd.Args[1:])
	cmd.Path = unshareBin
}

const unshareBin = "/usr/bin/unshare"

// findOverlay finds out, once, whether overlays can be mounted here: not by kernels before
// 5.11, nor on top of another overlay, such as a container's own file system, nor where a
// path has a colon or a comma.
func (w *worker) findOverlay(ctx context.Context) {
	if w.overlayKnown || w.NoOverlay {
		return
	}
	w.overlayKnown = true
	dir, err := os.MkdirTemp(w.Dir, "overlay-")
	if err != nil {
		return
	}
	defer func() { _ = removeTree(dir) }()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"lower", "upper", "work", "target"} {
		if err := os.Mkdir(at(name), 0o700); err != nil {
			return
		}
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo >"+at("target")+"/x")
	mounted(cmd, []layered{{[]string{at("lower")}, at("upper"), at("work"), at("target")}})
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	err = cmd.Run()
	_, written := os.Stat(at("upper/x"))
	w.overlays = err == nil && written == nil
}

// isWhiteout reports whether an entry is an overlay's sign that there is none.
func isWhiteout(info fs.FileInfo) bool { return info.Mode()&fs.ModeCharDevice != 0 }

// copyTree copies a kept tree into a directory: plain files, links as they are, and
// directories. What is there stays.
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
			return os.MkdirAll(target, 0o755)
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
