package workspacetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"
)

// about describes a kept environment.
const about = "about"

func (w *space) kept(key string) string { return filepath.Join(w.of.dir, "kept", w.cache, key) }

// home is what commands see in the place of [workspace.EnvPath].
func (w *space) home() string { return filepath.Join(w.dir, "home") }

// Installed is [workspace.Environments.Installed].
func (w *space) Installed(key string) ([]byte, bool) {
	text, err := os.ReadFile(filepath.Join(w.kept(key), about))
	return text, err == nil
}

// Install is [workspace.Environments.Install]. Nothing leads to a registry.
func (w *space) Install(ctx context.Context, o workspace.Installation) error {
	w.of.installing.Lock()
	defer w.of.installing.Unlock()
	if text, ok := w.Installed(o.Key); ok && (o.Stale == nil || !o.Stale(text)) {
		return nil
	}
	var over []string
	if o.From != "" {
		over = []string{w.kept(o.From)}
	}
	dir := filepath.Join(w.dir, "making")
	defer os.RemoveAll(dir)
	if err := errors.Join(w.Show("", w.home()), w.MakeEnvironment(ctx, dir, over)); err != nil {
		return err
	}
	text, err := o.Make(ctx, &installer{w, dir})
	if err != nil {
		return err
	}
	to := w.kept(o.Key)
	return errors.Join(os.WriteFile(filepath.Join(dir, about), text, 0o600), os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o711), os.Rename(dir, to), w.show())
}

// installer makes an environment in a directory.
type installer struct {
	w   *space
	dir string
}

func (i *installer) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	if i.w.of.answer != nil {
		if r, ok := i.w.of.answer(i.w.Dir(), c); ok {
			return r, nil
		}
	}
	i.w.command.Lock()
	defer i.w.command.Unlock()
	used := i.w.used
	i.w.used = nil
	defer func() { i.w.used = used }()
	home := sandbox.HomeDir(i.dir)
	c.Args, c.Env = i.w.places(home, c.Args), i.w.places(home, c.Env)
	return i.w.run(ctx, c)
}

func (i *installer) Stage(_ context.Context, name string, content []byte) error {
	return i.w.Stage(i.dir, name, content)
}

func (i *installer) Keep(ctx context.Context, named []string) ([]string, error) {
	return i.w.Keep(ctx, i.dir, named)
}

// Use is [workspace.Environments.Use].
func (w *space) Use(_ context.Context, key string, env []string) error {
	w.command.Lock()
	defer w.command.Unlock()
	w.used, w.shown = env, ""
	if key != "" {
		if _, ok := w.Installed(key); !ok {
			return errors.New("use dependencies: there is no environment " + key)
		}
		w.shown = w.kept(key)
	}
	return w.show()
}

// show has the next command see the environment as it was made. The caller holds the command lock.
func (w *space) show() error { return w.Show(w.shown, w.home()) }

// places puts directories of this machine in the place of those that a sandbox shows.
func (w *space) places(home string, words []string) []string {
	out := make([]string, 0, len(words))
	names := strings.NewReplacer(workspace.EnvPath+"/", home+"/", workspace.TreePath+"/", w.Dir()+"/", "TMPDIR=/scratch", "TMPDIR="+filepath.Join(w.dir, "tmp"))
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if ok && value == workspace.EnvPath {
			out = append(out, key+"="+home)
			continue
		}
		out = append(out, names.Replace(word))
	}
	return out
}
