package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// Dependencies of a repository are installed by commands of their own, before and
// apart from all others: with the work tree read-only, caches that nothing has seen,
// and sockets to registries in place of a network. What they make is kept under a key
// that stands for all that it was made of, and from then on nobody can write to it:
// the commands of the repository see it read-only.

// Where dependencies are inside the sandbox.
const (
	boxDeps  = "/deps"
	boxRoute = "/run/registries"
	boxSelf  = "/run/forge"
)

// aboutFile describes a kept tree, in the words of whoever made it.
const aboutFile = "about.json"

// maxDeps is how much the trees of all repositories take; the ones that were not
// used for the longest time go first.
const maxDeps = 20 << 30

// depsDir is where a repository's tree of that key is kept.
func (w *Workspace) depsDir(key string) string {
	return w.m.path("deps", filepath.Base(w.seed), dirName(key))
}

// Installed returns the description of a kept tree.
func (w *Workspace) Installed(key string) (about []byte, ok bool) {
	about, err := os.ReadFile(filepath.Join(w.depsDir(key), aboutFile))
	return about, err == nil
}

// Install makes a tree of dependencies, unless there is one with its key by now.
func (w *Workspace) Install(ctx context.Context, o workspace.Installation) error {
	if w.m.setup.Unsafe {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "dependencies are installed in a sandbox alone: apt-get install bubblewrap"}
	}
	unlock, err := w.m.lockDeps(ctx, w.depsDir(o.Key))
	if err != nil {
		return err
	}
	defer unlock()
	if about, ok := w.Installed(o.Key); ok && (o.Stale == nil || !o.Stale(about)) {
		return nil
	}
	return w.inNewTree(o, func(dir string, in workspace.Installer) error {
		about, err := o.Make(ctx, in)
		if err != nil {
			return err
		}
		if err := w.keepDeps(dir, o.Key, about); err != nil {
			return fmt.Errorf("keep dependencies: %w", roomFault(w.m.dir, err))
		}
		return w.m.pruneDeps(time.Time{})
	})
}

// Resolve lets package managers work on files of a tree that is thrown away: what they
// wrote there is taken out of it by [Installer.Take].
func (w *Workspace) Resolve(ctx context.Context, o workspace.Installation) error {
	if w.m.setup.Unsafe {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "lock files are made in a sandbox alone: apt-get install bubblewrap"}
	}
	return w.inNewTree(o, func(_ string, in workspace.Installer) error {
		_, err := o.Make(ctx, in)
		return err
	})
}

// inNewTree does something in a tree to be made, which goes unless it was moved.
func (w *Workspace) inNewTree(o workspace.Installation, do func(dir string, in workspace.Installer) error) error {
	exe, err := w.m.visibleExe()
	if err != nil {
		return err
	}
	dir, err := w.makeDeps(o.Key)
	if err != nil {
		return fmt.Errorf("install dependencies: %w", roomFault(w.m.dir, err))
	}
	defer func() { _ = removeTree(dir) }()
	return do(dir, &installer{w, installing{Dir: filepath.Join(dir, "tree"), Sockets: o.Sockets, Routes: o.Routes, Exe: exe, Args: w.m.bridge}})
}

// makeDeps makes the directory of a tree to be made.
func (w *Workspace) makeDeps(key string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(w.depsDir(key)), 0o711); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(w.m.path("deps"), "new-")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	err = errors.Join(os.Chmod(dir, 0o711), os.Mkdir(tree, 0o755))
	if err == nil {
		err = w.m.own(tree)
	}
	return dir, err
}

// keepDeps takes the tree out of the worker's hands and puts it where it is found.
func (w *Workspace) keepDeps(dir, key string, about []byte) error {
	if err := freeze(filepath.Join(dir, "tree"), os.Geteuid() == 0); err != nil {
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

// freeze makes a tree readable for all and writable for nobody; own makes it this
// user's, too. Links are not followed: the tree is what a command made.
func freeze(dir string, own bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if own {
			if err := root.Lchown(name, 0, 0); err != nil {
				return err
			}
		}
		switch {
		case d.IsDir():
			return root.Chmod(name, 0o755)
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			return root.Chmod(name, 0o444|info.Mode().Perm()&0o111)
		case d.Type() == fs.ModeSymlink:
			return nil
		}
		return root.Remove(name) // a socket or a pipe
	})
}

// Use gives the commands that follow a kept tree of dependencies; an empty key takes
// it away.
func (w *Workspace) Use(ctx context.Context, key string, use workspace.Use) error {
	p := deps{Use: use}
	for key, to := range map[string]*string{key: &p.Dir, use.Layer.Key: &p.Over} {
		if key == "" {
			continue
		}
		dir := w.depsDir(key)
		now := time.Now()
		if err := os.Chtimes(filepath.Join(dir, aboutFile), now, now); err != nil {
			return fmt.Errorf("use dependencies: %w", err)
		}
		*to = filepath.Join(dir, "tree")
	}
	if err := w.call(ctx, "use", p, nil); err != nil {
		return err
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.m.depsUse == nil {
		w.m.depsUse = map[string]int{}
	}
	for _, dir := range w.deps {
		w.m.depsUse[dir]--
	}
	w.deps, w.layer = [2]string{p.Dir, p.Over}, use.Layer
	for _, dir := range w.deps {
		w.m.depsUse[dir]++ // of "", too, which nobody looks at
	}
	return nil
}

// Layer is what is used over the tree of dependencies.
func (w *Workspace) Layer() workspace.Layer {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return w.layer
}

// leaveDeps ends a workspace's use.
func (m *Manager) leaveDeps(w *Workspace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, dir := range w.deps {
		if dir != "" {
			m.depsUse[dir]--
		}
		w.deps[i] = ""
	}
}

// lockDeps has one installation of a tree at a time. Who waits for it can give up.
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

// pruneDeps removes the trees that were not used since a time, and of the others those that
// were not used for the longest time while all together are too big. What a workspace
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
		busy := m.depsUse[filepath.Join(k.dir, "tree")] > 0
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

// installing is what a worker is told for commands that install.
type installing struct {
	Command workspace.Command `json:"command"`
	Dir     string            `json:"dir"` // of the tree to be made
	Sockets string            `json:"sockets"`
	Routes  []workspace.Route `json:"routes"`
	Exe     string            `json:"exe"`  // this program, where a sandbox can be shown it
	Args    []string          `json:"args"` // that make it a bridge

	Name    string `json:"name,omitempty"` // of a file to be staged
	Content []byte `json:"content,omitempty"`
}

type installer struct {
	w  *Workspace
	in installing
}

func (i *installer) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	p := i.in
	p.Command = c
	var r workspace.Result
	return r, i.w.call(ctx, "install", p, &r)
}

func (i *installer) Stage(ctx context.Context, name string, content []byte) error {
	p := i.in
	p.Name, p.Content = name, content
	return i.w.call(ctx, "stage", p, nil)
}

func (i *installer) Take(ctx context.Context, name string) ([]byte, error) {
	p := i.in
	p.Name = name
	var content []byte
	return content, i.w.call(ctx, "take", p, &content)
}

// deps is the tree of dependencies that a worker's commands use.
type deps struct {
	Dir  string `json:"dir"`            // empty: none
	Over string `json:"over,omitempty"` // of the layer; empty: none
	workspace.Use
}

// use takes a tree of dependencies for the commands that follow. A place in the work
// tree that is not a directory of its own is refused.
func (w *worker) use(d deps) error {
	for _, m := range slices.Concat(d.Mounts, d.Layer.Mounts) {
		to, err := cleanPath(m.To)
		if err != nil {
			return fmt.Errorf("use dependencies: %w", err)
		}
		for at := to; at != "."; at = path.Dir(at) {
			info, err := w.tree.root.Lstat(at)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return fmt.Errorf("use dependencies: %w", err)
			}
			if err == nil && !info.IsDir() {
				return fmt.Errorf("use dependencies: %s is in the way: it must be a directory", at)
			}
		}
	}
	w.command.Lock()
	defer w.command.Unlock()
	w.deps = d
	return nil
}

// stage writes a file of a tree to be made.
func (w *worker) stage(p installing) error {
	name, err := cleanPath(p.Name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, p.Content, 0o644)
}

// take reads a file of a tree to be made, which commands have written.
func (w *worker) take(p installing) ([]byte, error) {
	name, err := cleanPath(p.Name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, _, err := safeRead(root, name, w.Limits.ReadBytes, os.Geteuid())
	return content, err
}

// install runs a command that installs.
func (w *worker) install(ctx context.Context, p installing) (workspace.Result, error) {
	c := p.Command
	inTree, staged := strings.CutPrefix(c.Dir, boxDeps)
	if staged {
		c.Dir = ""
	}
	dir, err := checkCommand(c)
	if err != nil {
		return workspace.Result{}, err
	}
	if staged {
		if dir, err = cleanPath(strings.TrimPrefix(inTree, "/")); err != nil {
			return workspace.Result{}, err
		}
	}
	w.command.Lock()
	defer w.command.Unlock()
	w.retire() // nothing that a command left behind may be there
	defer w.retire()
	w.installing, w.staged = &p, staged
	defer func() { w.installing = nil }()
	return w.runLocked(ctx, c, dir)
}

// routeArgs are bubblewrap's arguments for the way to registries.
func (p *installing) routeArgs() []string {
	if p == nil {
		return nil
	}
	args := []string{"--ro-bind", p.Exe, boxSelf}
	if p.Sockets != "" {
		args = append(args, "--ro-bind", p.Sockets, boxRoute)
	}
	return args
}

// bridged puts the bridge before a command that installs, or prepares.
func (w *worker) bridged(args []string) []string {
	p := cmp.Or(w.installing, w.preparing)
	if p == nil || len(p.Routes) == 0 {
		return args
	}
	return slices.Concat([]string{boxSelf}, p.Args, []string{boxRoute, encodeRoutes(p.Routes)}, args)
}

// depsArgs are bubblewrap's arguments for the tree of dependencies, in a work tree.
func (w *worker) depsArgs(tree string) []string {
	if w.deps.Dir == "" {
		return nil
	}
	args := []string{"--ro-bind", w.deps.Dir, boxDeps}
	for _, m := range w.deps.Mounts {
		if m.From == "" {
			args = append(args, "--size", "67108864", "--tmpfs", path.Join(tree, m.To))
			continue
		}
		args = append(args, "--ro-bind", filepath.Join(w.deps.Dir, m.From), path.Join(tree, m.To))
	}
	return args
}

// joined are variables whose values are put together.
var joined = map[string]bool{"PATH": true, "PYTHONPATH": true}

// withDeps adds what commands in a directory are told of dependencies. A command's
// own environment counts more.
func (w *worker) withDeps(base, own []string, dir string) []string {
	if w.deps.Dir == "" || w.installing != nil {
		return append(base, own...)
	}
	values := map[string]string{}
	var keys []string
	set := func(kv string, before bool) {
		key, value, _ := strings.Cut(kv, "=")
		old, ok := values[key]
		switch {
		case !ok:
			keys = append(keys, key)
		case joined[key] && before:
			value += ":" + old
		case joined[key]:
			value = old + ":" + value
		}
		values[key] = value
	}
	for _, kv := range base {
		set(kv, false)
	}
	for _, rule := range w.deps.Env {
		at := path.Clean(rule.Dir)
		above := at == "." || dir == at || strings.HasPrefix(dir, at+"/")
		below := dir == "." || strings.HasPrefix(at, dir+"/")
		for _, kv := range rule.Env {
			if key, _, _ := strings.Cut(kv, "="); above || below && joined[key] {
				set(kv, false)
			}
		}
	}
	for _, kv := range own {
		set(kv, true)
	}
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k+"="+values[k])
	}
	return out
}

// unmarshal reads a call's parameters.
func unmarshal[T any](method string, params json.RawMessage) (T, error) {
	var p T
	if err := json.Unmarshal(params, &p); err != nil {
		return p, fmt.Errorf("%s: %w", method, err)
	}
	return p, nil
}
