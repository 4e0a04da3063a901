package cheats

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"forge/pipeline/check"
	machine "forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
)

var everything = flag.Bool("all", false, "judge every case of the corpus in a sandbox")

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// Covers T8: the same in real sandboxes, one case of ten, and with -all each. With -record,
// what the commands answer is kept on tape.
func TestCorpusInSandboxes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
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
	c.judge(t, func(t *testing.T, k *corpusCase) check.Opener {
		if k.base.name == "phpunit" {
			machine.Tools(t, "phpunit")
		}
		switch {
		case *record:
			file, part := k.tape()
			tp := tapeOf(all, file, part, false)
			return func(ctx context.Context, sha string) (check.Tree, error) {
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
	idle map[string][]workspace.Workspace // by their environment: what compiles nothing starts without one
}

func (r *rooms) open(ctx context.Context, sha string) (check.Tree, error) {
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
	w, err := opened(context.WithoutCancel(ctx), r.m, workspace.OpenOptions{Name: "corpus", GitDir: r.c.git, Commit: sha, Cache: key})
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
	return r.tape.record(ctx, r, c)
}

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

// newManager is a manager of sandboxes. Its state directory outlives the test: to compile
// what is imported costs half a minute.
func newManager(t testing.TB) *sandbox.Manager {
	t.Helper()
	dir := filepath.Join("/tmp", fmt.Sprintf("forge-check-test-%d-%s", os.Geteuid(), runtime.Version())) // the worker's user must reach it
	m, err := sandbox.New(sandbox.Options{Dir: dir, Exe: sandboxtest.Worker(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Whose environment a workspace has: that of all that has Go, in which the standard library
// is compiled, or none.
const goCache, noCache = "go", "other"

// compiled lets commands use what warmGo has compiled.
var compiled = []string{"GOCACHE=/deps/go-build"}

// opened opens a workspace with the environment that its files need.
func opened(ctx context.Context, m *sandbox.Manager, o workspace.OpenOptions) (workspace.Workspace, error) {
	w, err := m.Open(ctx, o)
	if err == nil && o.Cache == goCache {
		err = w.Use(ctx, goCache, compiled)
	}
	return w, err
}

func cacheFor(files map[string]string) string {
	for name := range files {
		if path.Base(name) == "go.mod" || path.Ext(name) == ".go" {
			return goCache
		}
	}
	return noCache
}

var warmedGo sync.Once

// warmGo compiles once what the repositories of the tests import of the standard library.
// Else all that begin at the same time would do so, each for itself.
func warmGo(t testing.TB, m *sandbox.Manager) {
	t.Helper()
	warmedGo.Do(func() {
		ws, err := m.Open(t.Context(), workspace.OpenOptions{Name: "warm", Cache: goCache})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		err = ws.Install(t.Context(), workspace.Installation{Key: goCache, Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
			const packages = "embed encoding/json flag os/exec path/filepath runtime/pprof testing"
			_, err := in.Run(ctx, workspace.Command{Args: []string{"sh", "-c", "go build " + packages + " && go vet " + packages + "; find $GOCACHE -type f -exec touch -t 203701010000 {} +"}, Env: compiled})
			return []byte("{}"), err
		}})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// scratch is the folder of a tree that what runs tests uses for itself.
const scratch = ".forge-check"

// passing are folders that say nothing of a tree's state.
var passing = map[string]bool{".git": true, "__pycache__": true, ".pytest_cache": true}
