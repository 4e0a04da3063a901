package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"forge/pipeline/workspace"
)

// setup is what the server tells a worker before anything else.
type setup struct {
	Dir        string   `json:"dir"`     // holds the work tree, and what is thrown away with it
	GitDir     string   `json:"git_dir"` // bare, only read
	Mark       string   `json:"mark"`    // names this workspace in its commands' environment
	Etc        string   `json:"etc"`     // our own passwd, group and so on
	Git        string   `json:"git"`     // paths of tools
	Bwrap      string   `json:"bwrap"`
	Prlimit    string   `json:"prlimit"`
	Toolchains []string `json:"toolchains"`
	Bins       []string `json:"bins"`               // their bin directories
	Root       string   `json:"root,omitempty"`     // of an image, in the place of the server's system; "": the server's
	RootEnv    []string `json:"root_env,omitempty"` // as the image has commands begin
	Unsafe     bool     `json:"unsafe"`
	Limits     Limits   `json:"limits"`
	Group      string   `json:"group"` // the workspace's control group; empty: commands have none
	Protected  []string `json:"protected"`
	Allow      []string `json:"allow"`
	GoCache    string   `json:"go_cache,omitempty"`   // of the repository, where there is no sandbox
	NoOverlay  bool     `json:"no_overlay,omitempty"` // tests: the kernel mounts none

	noFilter bool // tests: start bubblewrap with an empty seccomp program
}

// addToolchain lets commands see a directory of the host.
func (s *setup) addToolchain(dir string) {
	dir = filepath.Clean(dir)
	bin := filepath.Join(dir, "bin")
	if info, err := os.Stat(bin); err == nil && info.IsDir() {
		s.Bins = append(s.Bins, bin)
	}
	if !strings.HasPrefix(dir, "/usr/") {
		s.Toolchains = append(s.Toolchains, dir)
	}
}

// path is the PATH of the worker and of its commands.
func (s *setup) path() string {
	if s.Root != "" {
		for _, kv := range s.RootEnv {
			if value, ok := strings.CutPrefix(kv, "PATH="); ok {
				return value
			}
		}
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return strings.Join(append(append([]string{}, s.Bins...), "/usr/local/bin", "/usr/bin", "/bin"), ":")
}

// worker answers one server's calls.
type worker struct {
	setup
	tree        *tree
	git         git
	freeAtFirst int64      // bytes of the disk when the work tree was empty
	command     sync.Mutex // one process at a time, so that all descendants are its own
	laid        bool       // copies() is there, and no command of an earlier checkout has seen it; under command
	ran         int        // commands that had a control group; under command
	inMemory    []string   // file systems that take memory, of the command that runs; under command

	env          environment  // what commands see; under command
	making       *preparation // the environment that the command makes; under command
	copied       []string     // the environments that copies() is for; under command
	overlays     bool         // overlays can be mounted; under command
	overlayKnown bool         // that was found out; under command
}

// Worker is the main function of `forge worker`: it answers calls that come in
// until in ends, then kills whatever it started. It refuses to run as root.
func Worker(in io.Reader, out io.Writer) error {
	if os.Geteuid() == 0 {
		return errors.New("forge worker: refuses to run as root; the server starts it under another user")
	}
	if err := harden(); err != nil {
		return fmt.Errorf("forge worker: %w", err)
	}
	defer killDescendants(0)
	return serve(&worker{}, in, out)
}

// harden shuts off what a worker may have inherited, and what could be read out of
// it: descriptors, core dumps, its memory.
func harden() error {
	if err := confine(); err != nil {
		return err
	}
	if err := Private(); err != nil {
		return err
	}
	unix.Umask(0o022)
	debug.SetMemoryLimit(1 << 30)
	return nil
}

// serve reads requests and answers each in a goroutine of its own.
func serve(w *worker, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	replies := &frameWriter{w: out}
	var mu sync.Mutex
	cancels := map[uint64]context.CancelFunc{}
	for {
		var r request
		err := readFrame(in, &r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("forge worker: read request: %w", err)
		}
		if r.Method == "cancel" {
			mu.Lock()
			if cancel := cancels[r.ID]; cancel != nil {
				cancel()
			}
			mu.Unlock()
			continue
		}
		if r.Method == "setup" {
			_ = replies.send(answer(r.ID, nil, w.configure(r.Params)))
			continue
		}
		call, cancel := context.WithCancel(ctx)
		mu.Lock()
		cancels[r.ID] = cancel
		mu.Unlock()
		running.Go(func() {
			result, err := w.handle(call, r)
			mu.Lock()
			delete(cancels, r.ID)
			mu.Unlock()
			cancel()
			if err := replies.send(answer(r.ID, result, err)); err != nil {
				_ = replies.send(answer(r.ID, nil, err)) // too big, most likely
			}
		})
	}
}

func answer(id uint64, result any, err error) response {
	if err != nil {
		return response{ID: id, Error: toWire(err)}
	}
	body, err := json.Marshal(result)
	if err != nil {
		return response{ID: id, Error: toWire(err)}
	}
	return response{ID: id, Result: body}
}

// configure takes the setup in, once.
func (w *worker) configure(params json.RawMessage) error {
	if w.tree != nil {
		return errors.New("the worker is set up already")
	}
	var s setup
	if err := json.Unmarshal(params, &s); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	root, err := os.OpenRoot(filepath.Join(s.Dir, "tree"))
	if err != nil {
		return fmt.Errorf("open work tree: %w", err)
	}
	s.noFilter = w.noFilter
	w.setup = s
	w.git = git{bin: s.Git, dir: s.GitDir}
	w.freeAtFirst = freeBytes(s.Dir)
	w.tree = &tree{root: root, dir: filepath.Join(s.Dir, "tree"), git: w.git, limits: s.Limits, etc: s.Etc, owner: os.Geteuid()}
	return nil
}

// write is refused for a protected path, before anything is done.
func (w *worker) write(name string, content []byte) error {
	name, err := cleanPath(name)
	if err != nil {
		return err
	}
	if err := checkProtected(name, w.Protected, w.Allow); err != nil {
		return err
	}
	return w.tree.write(name, content)
}

// remove is refused for a protected path, and for a directory that holds one of
// the commit's.
func (w *worker) remove(name string) error {
	name, err := cleanPath(name)
	if err != nil {
		return err
	}
	if err := checkProtected(name, w.Protected, w.Allow); err != nil {
		return err
	}
	for _, file := range w.tree.beneath(name) {
		if err := checkProtected(file, w.Protected, w.Allow); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return w.tree.remove(name)
}

// handle carries one call out.
func (w *worker) handle(ctx context.Context, r request) (any, error) {
	if w.tree == nil {
		return nil, errors.New("the worker is not set up")
	}
	switch r.Method {
	case "run":
		return given(r, func(c workspace.Command) (any, error) { return w.run(ctx, c) })
	case "use":
		return given(r, func(e environment) (any, error) { return nil, w.use(ctx, e) })
	case "begin":
		return given(r, func(p preparation) (any, error) { return w.begin(ctx, p) })
	case "install":
		return given(r, func(p preparation) (any, error) { return w.install(ctx, p) })
	case "stage":
		return given(r, func(p preparation) (any, error) { return nil, w.stage(p) })
	case "keep":
		return given(r, func(p preparation) (any, error) { return w.keep(ctx, p) })
	}
	return given(r, func(p pathParams) (any, error) { return w.handlePath(ctx, r.Method, p) })
}

// given calls something with a call's parameters.
func given[T any](r request, do func(T) (any, error)) (any, error) {
	var p T
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Method, err)
	}
	return do(p)
}

// handlePath carries out a call that works on files or on history.
func (w *worker) handlePath(ctx context.Context, method string, p pathParams) (any, error) {
	switch method {
	case "checkout":
		w.command.Lock()
		defer w.command.Unlock()
		w.laid = false
		return nil, w.tree.checkout(ctx, p.Path)
	case "restore":
		w.command.Lock()
		defer w.command.Unlock()
		return nil, w.tree.restore(ctx, p.Path, p.Paths)
	case "list":
		return w.tree.list(p.Path)
	case "read":
		return w.tree.read(p.Path)
	case "search":
		return w.tree.search(ctx, p.Pattern, p.Path, p.Max)
	case "write":
		return nil, w.write(p.Path, p.Content)
	case "remove":
		return nil, w.remove(p.Path)
	case "changes":
		w.command.Lock()
		defer w.command.Unlock()
		return w.tree.changes(ctx)
	case "log":
		return w.log(ctx, p.Path, p.Max)
	case "blame":
		return w.blame(ctx, p.Path, p.From, p.To)
	case "diff":
		return w.diff(ctx, p.Pattern, p.Path)
	case "symbols":
		return w.symbols(ctx, p.Pattern, p.Max)
	case "probe":
		return nil, w.probe(ctx)
	}
	return nil, fmt.Errorf("the worker knows no method %q", method)
}
