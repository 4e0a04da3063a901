//go:build e2e

package check

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	machine "forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
)

var everything = flag.Bool("all", false, "judge every case of the corpus in a sandbox, and try what takes minutes")

func init() { live = true }

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// Covers T8: the same in real sandboxes, one case of ten, and with -all each. With -record,
// what the commands answer is kept on tape.
func TestCorpusInSandboxes(t *testing.T) {
	machine.Sandbox(t)
	machine.Tools(t, "npm", "pytest", "ruby")
	c, m := readCorpus(t, corpusDirs...), newManager(t)
	warmGo(t, m)
	r := &rooms{m: m, c: c, idle: map[string][]workspace.Workspace{}}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	all := t
	c.judge(t, func(t *testing.T, k *corpusCase) Opener {
		if k.base.name == "phpunit" {
			machine.Tools(t, "phpunit")
		}
		switch {
		case *record:
			file, part := k.tape()
			tp := tapeOf(all, file, part, false)
			return func(ctx context.Context, sha string) (Tree, error) {
				tree, err := r.open(ctx, sha)
				return &recordedTree{tree.(*lent), tp}, err
			}
		case !*everything && slices.Index(c.cases, k)%10 != 0:
			return nil
		}
		return r.open
	})
}

// rooms are sandboxes that serve one run after the other: a checkout starts afresh.
type rooms struct {
	m *sandbox.Manager
	c *corpus

	mu   sync.Mutex
	idle map[string][]workspace.Workspace // by their build cache: what compiles nothing starts without one
}

func (r *rooms) open(ctx context.Context, sha string) (Tree, error) {
	r.mu.Lock()
	key := cacheFor(r.c.of[sha])
	var w workspace.Workspace
	if n := len(r.idle[key]); n > 0 {
		w, r.idle[key] = r.idle[key][n-1], r.idle[key][:n-1]
	}
	r.mu.Unlock()
	if w != nil {
		return &lent{w, r, key}, w.Checkout(ctx, sha)
	}
	w, err := r.m.Open(context.WithoutCancel(ctx), workspace.OpenOptions{Name: "corpus", GitDir: r.c.git, Commit: sha, Cache: key})
	return &lent{w, r, key}, err
}

func (r *rooms) close() (err error) {
	for _, list := range r.idle {
		for _, w := range list {
			err = errors.Join(err, w.Close())
		}
	}
	return err
}

// lent is a workspace that goes back.
type lent struct {
	workspace.Workspace
	r   *rooms
	key string
}

func (l *lent) Close() error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.idle[l.key] = append(l.r.idle[l.key], l.Workspace)
	return nil
}

// recordedTree keeps what its commands answer.
type recordedTree struct {
	*lent
	tape *tape
}

func (r *recordedTree) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	if housekeeping(c) {
		return r.lent.Run(ctx, c)
	}
	return r.tape.run(r, c, nil, func() (workspace.Result, error) { return r.lent.Run(ctx, c) })
}

func (r *recordedTree) place() string                   { return "" }
func (r *recordedTree) change(map[string]*string) error { return errors.ErrUnsupported }

func (r *recordedTree) snapshot() (map[string]string, error) {
	files := map[string]string{}
	return files, r.walk(".", files)
}

func (r *recordedTree) walk(dir string, files map[string]string) error {
	list, err := r.List(context.Background(), dir)
	if err != nil {
		return err
	}
	for _, name := range list {
		at := path.Join(dir, name)
		switch folder, isDir := strings.CutSuffix(name, "/"); {
		case isDir && passing[folder]:
		case isDir:
			err = r.walk(at, files)
		default:
			var data []byte
			if data, err = r.Read(context.Background(), at); err == nil {
				files[at] = plainText(data)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
