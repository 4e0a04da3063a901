//go:build e2e

package check

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	machine "forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
)

func init() { live = true }

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// Covers T8, lessons 16 and 32: ways to make a test suite pass that does not, honest changes
// beside them, and what lies between, in real sandboxes: none of the former is verified in
// silence, none of the latter raises an alarm. One of ten is judged, and with the tag soak
// each. With -record, those that have a tape get a new one.
func TestCorpus(t *testing.T) {
	machine.Sandbox(t)
	machine.Tools(t, "npm", "pytest", "ruby")
	c := readCorpus(t, corpusDirs...)
	m := newManager(t)
	warmGo(t, m)
	rooms := &rooms{m: m, c: c, idle: map[string][]workspace.Workspace{}}
	t.Cleanup(func() {
		if err := rooms.close(); err != nil {
			t.Error(err)
		}
	})
	for i, k := range c.cases {
		tapeFile := filepath.Join("corpus", k.dir, k.name)
		_, err := os.Stat(filepath.Join("testdata", "tapes", tapeFile+".jsonl"))
		switch {
		case *record && err != nil, !*record && !wholeCorpus && i%10 != 0:
			continue
		}
		t.Run(k.dir+"/"+k.name, func(t *testing.T) {
			for tool, base := range map[string]string{"ruby": "minitest", "phpunit": "phpunit"} {
				if k.base == c.bases[base] {
					machine.Tools(t, tool)
				}
			}
			t.Parallel()
			open := rooms.open
			if *record {
				tp := tapeOf(t, tapeFile, t.Name(), false)
				open = func(ctx context.Context, sha string) (Tree, error) {
					tree, err := rooms.open(ctx, sha)
					return &recordedTree{tree.(*lent), tp}, err
				}
			}
			k.judge(t, open)
		})
	}
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
