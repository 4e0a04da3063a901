package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// An environment is what the set-up of a repository has left: home/, seen at /deps, and
// work/, seen in the work tree where that has nothing of its own. Set-up alone reaches the
// registries, by sockets in place of a network. What it made is kept under a key that stands
// for all that decided it; from then on it is the lower layer of two overlays, so that
// commands can write what they like and change nothing for those after them.

// Where environments are inside the sandbox.
const (
	boxDeps  = workspace.EnvPath
	boxRoute = "/run/registries"
	boxSelf  = "/run/forge"
)

// The files and directories of a kept environment.
const (
	aboutFile = "about.json" // describes it, in the words of whoever made it
	underFile = "under"      // names the directory of the one that it lies over
	homeDir   = "home"
	workDir   = "work"
)

// maxDeps is how much the environments of all repositories take; those that were not
// used for the longest time go first.
const maxDeps = 20 << 30

// depsDir is where a repository's environment of that key is kept. It is named for the worker's
// user, too: another one cannot read all that a command has made.
func (w *Workspace) depsDir(key string) string {
	user := w.m.uid
	if user < 0 {
		user = os.Geteuid()
	}
	return w.m.path("deps", fmt.Sprintf("%s-%d", dirName(w.open.Cache), user), dirName(key))
}

// Installed returns the description of a kept environment.
func (w *Workspace) Installed(key string) (about []byte, ok bool) {
	dir := w.depsDir(key)
	if under, err := os.ReadFile(filepath.Join(dir, underFile)); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), string(under), aboutFile)); err != nil {
			return nil, false // it went before what lies over it
		}
	}
	about, err := os.ReadFile(filepath.Join(dir, aboutFile))
	return about, err == nil
}

// layersOf are the directories of an environment, the uppermost first.
func (w *Workspace) layersOf(key string) []string {
	if key == "" {
		return nil
	}
	var dirs []string
	for dir := w.depsDir(key); len(dirs) < 8; {
		dirs = append(dirs, dir)
		under, err := os.ReadFile(filepath.Join(dir, underFile))
		if err != nil {
			break
		}
		dir = filepath.Join(filepath.Dir(dir), filepath.Base(string(under)))
	}
	return dirs
}

// Install makes an environment, unless there is one with its key by now.
func (w *Workspace) Install(ctx context.Context, o workspace.Installation) error {
	if w.m.setup.Unsafe {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "dependencies are installed in a sandbox alone: apt-get install bubblewrap"}
	}
	unlock, err := w.m.lockDeps(ctx, w.depsDir(o.Key))
	if err != nil {
		return err
	}
	defer unlock()
	fresh := func() bool {
		about, ok := w.Installed(o.Key)
		return ok && (o.Stale == nil || !o.Stale(about))
	}
	if fresh() {
		return nil
	}
	exe, err := w.m.visibleExe()
	if err != nil {
		return err
	}
	dir, err := w.makeDeps(o.Key)
	if err != nil {
		return fmt.Errorf("install dependencies: %w", roomFault(w.m.dir, err))
	}
	defer func() { _ = removeTree(dir) }()
	in := preparation{Dir: dir, Sockets: o.Sockets, Routes: o.Routes, Exe: exe, Args: w.m.bridge}
	var under bool
	if err := w.call(ctx, "begin", preparation{Dir: dir, Lowers: w.layersOf(o.From)}, &under); err != nil {
		return err
	}
	if under {
		in.Lowers = w.layersOf(o.From)
	}
	about, err := o.Make(ctx, &installer{w, in})
	if err != nil || fresh() { // another process was quicker
		return err
	}
	if under {
		err = os.WriteFile(filepath.Join(dir, underFile), []byte(dirName(o.From)), 0o600)
	}
	if err == nil {
		err = w.keepDeps(dir, o.Key, about)
	}
	if err != nil {
		return fmt.Errorf("keep dependencies: %w", roomFault(w.m.dir, err))
	}
	return w.m.pruneDeps(time.Time{})
}

// makeDeps makes the directory of an environment to be made.
func (w *Workspace) makeDeps(key string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(w.depsDir(key)), 0o711); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(w.m.path("deps"), making)
	if err != nil {
		return "", err
	}
	w.held = append(w.held, hold(dir))
	err = os.Chmod(dir, 0o711)
	for _, name := range []string{homeDir, workDir} {
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, name), 0o755)
		}
		if err == nil {
			err = w.m.own(filepath.Join(dir, name))
		}
	}
	return dir, err
}

// keepDeps puts an environment where it is found.
func (w *Workspace) keepDeps(dir, key string, about []byte) error {
	if err := disarm(dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, aboutFile), about, 0o600); err != nil {
		return err
	}
	if err := removeTree(w.depsDir(key)); err != nil { // one without a description
		return err
	}
	return os.Rename(dir, w.depsDir(key))
}

// disarm takes sockets and pipes out of a tree that commands made, and rights beyond those of
// whoever reads it. Links are not followed.
func disarm(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
			return root.Remove(name)
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				return root.Chmod(name, info.Mode().Perm())
			}
		}
		return nil
	})
}

// Use gives the commands that follow a kept environment; an empty key takes it away.
func (w *Workspace) Use(ctx context.Context, key string, env []string) error {
	e := environment{Lowers: w.layersOf(key), Env: env}
	now := time.Now()
	for _, dir := range e.Lowers {
		if err := os.Chtimes(filepath.Join(dir, aboutFile), now, now); err != nil {
			return fmt.Errorf("use dependencies: %w", err)
		}
	}
	if err := w.call(ctx, "use", e, nil); err != nil {
		return err
	}
	w.m.useDeps(w, e.Lowers)
	return nil
}

// useDeps notes which environments a workspace uses from now on.
func (m *Manager) useDeps(w *Workspace, dirs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, dir := range w.deps {
		m.depsUse[dir]--
	}
	w.deps = dirs
	for _, dir := range w.deps {
		m.depsUse[dir]++
	}
}

// lockDeps has one installation under a key at a time. Who waits for it can give up.
func (m *Manager) lockDeps(ctx context.Context, dir string) (unlock func(), err error) {
	one, _ := m.depsLocks.LoadOrStore(dir, make(chan struct{}, 1))
	lock := one.(chan struct{})
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pruneDeps removes the environments that were not used since a time, and of the others those
// that were not used for the longest time while all together are too big. What a workspace
// uses stays.
func (m *Manager) pruneDeps(since time.Time) error {
	abouts, err := filepath.Glob(m.path("deps", "*", "*", aboutFile))
	if err != nil {
		return err
	}
	type kept struct {
		dir  string
		size int64
		used time.Time
	}
	var all []kept
	var total int64
	for _, about := range abouts {
		info, err := os.Stat(about)
		if err != nil {
			continue // removed meanwhile
		}
		k := kept{dir: filepath.Dir(about), used: info.ModTime(), size: diskUse(filepath.Dir(about))}
		all = append(all, k)
		total += k.size
	}
	slices.SortFunc(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if total <= m.maxDeps && !k.used.Before(since) {
			return nil
		}
		m.mu.Lock()
		busy := m.depsUse[k.dir] > 0
		m.mu.Unlock()
		if busy {
			continue
		}
		if err := removeTree(k.dir); err != nil {
			return fmt.Errorf("remove old dependencies: %w", err)
		}
		total -= k.size
	}
	return nil
}

// diskUse is what a directory takes.
func diskUse(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			if info, err := d.Info(); err == nil {
				total += blocksOf(info)
			}
		}
		return nil
	})
	return total
}

// visibleExe is a copy of this program that a sandbox can be shown: the original
// may lie where the worker's user cannot reach it.
func (m *Manager) visibleExe() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	to := m.path("bin", "forge")
	if m.copied {
		return to, nil
	}
	if err := copyFile(m.exe, to); err != nil {
		return "", fmt.Errorf("copy this program for the sandbox: %w", err)
	}
	m.copied = true
	return to, nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o711); err != nil {
		return err
	}
	dst, err := os.CreateTemp(filepath.Dir(to), "new-")
	if err != nil {
		return err
	}
	defer os.Remove(dst.Name())
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Chmod(0o755), dst.Close()); err != nil {
		return err
	}
	return os.Rename(dst.Name(), to)
}

// preparation is what a worker is told of an environment that is being made.
type preparation struct {
	Command workspace.Command `json:"command"`
	Dir     string            `json:"dir"`              // of the environment to be made
	Lowers  []string          `json:"lowers,omitempty"` // of what it lies over
	Sockets string            `json:"sockets"`
	Routes  []workspace.Route `json:"routes"`
	Exe     string            `json:"exe"`  // this program, where a sandbox can be shown it
	Args    []string          `json:"args"` // that make it a bridge

	Name    string `json:"name,omitempty"` // of a file to be staged
	Content []byte `json:"content,omitempty"`

	Named []string `json:"named,omitempty"` // directories to be kept, by path or, wherever they are, by name
}

type installer struct {
	w  *Workspace
	in preparation
}

func (i *installer) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	p := i.in
	p.Command = c
	var r workspace.Result
	back, err := i.w.m.places.Take(ctx, i.w.open.Owner)
	if err != nil {
		return r, err
	}
	defer back()
	return r, i.w.call(ctx, "install", p, &r)
}

func (i *installer) Stage(ctx context.Context, name string, content []byte) error {
	p := i.in
	p.Name, p.Content = name, content
	return i.w.call(ctx, "stage", p, nil)
}

func (i *installer) Keep(ctx context.Context, named []string) (left []string, err error) {
	p := i.in
	p.Named = named
	return left, i.w.call(ctx, "keep", p, &left)
}
