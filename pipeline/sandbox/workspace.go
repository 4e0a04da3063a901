package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// cancelGrace is how long a worker may take to give up a cancelled call before
// it is killed.
const cancelGrace = 800 * time.Millisecond

// Workspace is one worker process with its work tree. Calls may come from many
// goroutines; commands are run one after the other.
type Workspace struct {
	m       *Manager
	open    workspace.OpenOptions // as it was opened
	grp     string                // its control group; empty: none
	held    []*os.File            // the directories that are this process' own for now; see hold
	dir     string                // holds the work tree and scratch files; removed on Close
	goCache string                // Go's build cache, where there is no sandbox
	deps    []string              // directories of the environments that it uses; under the manager's mutex
	mark    string                // in the environment of everything that it starts
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *frameWriter
	errs    *tailWriter
	log     *slog.Logger

	mu      sync.Mutex
	calls   map[uint64]chan response
	last    uint64
	dead    error         // why the worker is gone
	gone    chan struct{} // closed when it is
	closing sync.Once
	closed  error
}

// Open starts a worker and, when a commit is given, checks it out.
func (m *Manager) Open(ctx context.Context, o workspace.OpenOptions) (workspace.Workspace, error) {
	w, err := m.open(ctx, o)
	if err != nil {
		return nil, err // not a nil *Workspace, which would be an interface that is none
	}
	return w, nil
}

func (m *Manager) open(ctx context.Context, o workspace.OpenOptions) (*Workspace, error) {
	if o.Commit != "" && !filepath.IsAbs(o.GitDir) {
		return nil, fmt.Errorf("open workspace %s: git directory %q: must be an absolute path", o.Name, o.GitDir)
	}
	w := &Workspace{
		m: m, open: o, mark: rand.Text(), calls: map[uint64]chan response{}, gone: make(chan struct{}),
		log: m.log.With("workspace", o.Name), errs: &tailWriter{max: 8 << 10},
	}
	if err := w.makeDirs(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace %s: %w", o.Name, roomFault(m.dir, err)), w.Close())
	}
	if err := w.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace %s: %w", o.Name, err), w.Close())
	}
	if err := w.begin(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace %s: %w", o.Name, err), w.Close())
	}
	return w, nil
}

// makeDirs makes the work tree's directory, and Go's build cache where there is no sandbox,
// both the worker's.
func (w *Workspace) makeDirs(o workspace.OpenOptions) error {
	if err := os.Mkdir(w.m.path("trees"), 0o711); err == nil { // deleted from outside
		w.log.Warn("made a directory of the sandbox again that was deleted", "dir", w.m.path("trees"))
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkRoom(w.m.path("trees"), w.m.setup.Limits.Reserve); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.m.path("trees"), making)
	if err != nil {
		return err
	}
	w.dir = dir
	w.held = append(w.held, hold(dir))
	named := w.m.path("trees", dirName(o.Name)+"-"+strings.TrimPrefix(filepath.Base(dir), making))
	if err := os.Rename(dir, named); err != nil {
		return err
	}
	w.dir, dir = named, named
	dirs := []string{filepath.Join(dir, "tree"), dir}
	if w.m.setup.Unsafe { // a command can write anywhere: nothing is lost when all write one
		w.goCache = w.depsDir("go-build")
		if err := os.MkdirAll(filepath.Dir(w.goCache), 0o711); err != nil {
			return err
		}
		dirs = append(dirs, w.goCache)
	}
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := w.m.own(d); err != nil {
			return err
		}
	}
	if w.goCache != "" {
		return writeFile(filepath.Join(w.goCache, aboutFile), "{}", 0o600) // it ends as environments do
	}
	return nil
}

// start starts the worker: an empty environment but for PATH, a process group of
// its own, the unprivileged user. The binary is opened here, because that user
// may not be able to reach its path.
func (w *Workspace) start() error {
	exe, err := os.Open(w.m.exe)
	if err != nil {
		return fmt.Errorf("worker binary: %w", err)
	}
	defer exe.Close()
	w.cmd = &exec.Cmd{
		Path: pathOf(exe), Args: append([]string{"forge"}, w.m.args...), Dir: "/",
		Env: workerEnv(w.m.setup.path()), ExtraFiles: []*os.File{exe}, Stderr: w.errs,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Credential: w.m.credential()}, WaitDelay: time.Second,
	}
	w.m.isolation.around(w.cmd)
	group, err := w.enterGroup()
	if err != nil {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: its cgroup: " + err.Error()}
	}
	defer group.Close() // of a nil one, too
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := startBare(w.cmd, w.gone); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	w.in, w.out = in, &frameWriter{w: in}
	go w.receive(out)
	return nil
}

// workerEnv is a worker's whole environment. GORACE lets tests under the race
// detector do without its second of sleep at the end of every process.
func workerEnv(path string) []string {
	env := []string{"PATH=" + path}
	if race := os.Getenv("GORACE"); race != "" {
		env = append(env, "GORACE="+race)
	}
	return env
}

// begin tells the worker what it works on.
func (w *Workspace) begin(ctx context.Context, o workspace.OpenOptions) error {
	s := w.m.setup
	s.Dir, s.GitDir, s.GoCache, s.Mark, s.Group = w.dir, o.GitDir, w.goCache, w.mark, w.grp
	s.Protected, s.Allow, s.Root, s.RootEnv = o.Protected, o.Allow, o.Root, o.RootEnv
	if err := w.call(ctx, "setup", s, nil); err != nil {
		return err
	}
	if o.Commit == "" {
		return nil
	}
	return w.Checkout(ctx, o.Commit)
}

// receive hands responses to their callers until the worker is gone.
func (w *Workspace) receive(out io.Reader) {
	var err error
	for {
		var r response
		if err = readFrame(out, &r); err != nil {
			break
		}
		w.mu.Lock()
		answer := w.calls[r.ID]
		delete(w.calls, r.ID)
		w.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
	w.kill() // it broke the protocol, or is ending anyway
	waited := w.cmd.Wait()
	text := "the worker ended"
	if waited != nil {
		text += ": " + waited.Error()
	}
	if err != io.EOF && err != nil {
		text += ": " + err.Error()
	}
	if said := w.errs.String(); said != "" {
		text += ": " + said
	}
	w.mu.Lock()
	w.dead = &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: text}
	w.mu.Unlock()
	close(w.gone)
}

// kill ends the worker's process group. Sandboxes die with the worker.
func (w *Workspace) kill() {
	if w.cmd != nil && w.cmd.Process != nil {
		select {
		case <-w.gone: // its number may be somebody else's by now
		default:
			_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
			if w.grp != "" {
				_ = killGroup(w.grp)
			}
		}
	}
}

// call calls a method of the worker and waits for the answer. When ctx ends, the
// worker is told; one that does not obey is killed.
func (w *Workspace) call(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan response, 1)
	w.mu.Lock()
	w.last++
	id := w.last
	w.calls[id] = answer
	w.mu.Unlock()
	if err := w.out.send(request{ID: id, Method: method, Params: body}); err != nil {
		return w.ended(err)
	}
	select {
	case r := <-answer:
		return w.whole(roomFault(w.m.dir, decode(r, result)))
	case <-w.gone:
		return w.ended(nil)
	case <-ctx.Done():
	}
	_ = w.out.send(request{ID: id, Method: "cancel"})
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	select {
	case <-answer:
	case <-w.gone:
	case <-timer.C:
		w.log.Warn("worker did not give up a cancelled call; killed", "method", method)
		w.kill()
	}
	return ctx.Err()
}

// whole tells a call whose work tree was deleted from outside: what it says of files is not
// theirs, and nothing of it may be taken for the agent's work.
func (w *Workspace) whole(err error) error {
	tree := filepath.Join(w.dir, "tree")
	if _, gone := os.Stat(tree); !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: fmt.Sprintf("the work tree %s was deleted while it was in use: "+
		"the phase begins again in a new one, on the last commit. What is below %s belongs to the running server", tree, w.m.dir)}
}

func decode(r response, result any) error {
	if r.Error != nil {
		return r.Error
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return fmt.Errorf("answer of the worker: %w", err)
	}
	return nil
}

// ended is why no call can be answered any more.
func (w *Workspace) ended(err error) error {
	select {
	case <-w.gone:
	case <-time.After(time.Second):
		return fmt.Errorf("call the worker: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// pathParams are the parameters of most calls.
type pathParams struct {
	Path    string `json:"path,omitempty"`
	Content []byte `json:"content,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Max     int    `json:"max,omitempty"`
	From    int    `json:"from,omitempty"`
	To      int    `json:"to,omitempty"`

	Paths []string `json:"paths,omitempty"`
}

// Checkout makes the work tree be exactly that commit: what differs is replaced,
// what is not in it is removed. Submodules are left as empty directories, and
// nothing is converted. What commands wrote elsewhere is thrown away, too: what
// commands did before it has no part in what commands do after it.
func (w *Workspace) Checkout(ctx context.Context, sha string) error {
	return w.call(ctx, "checkout", pathParams{Path: sha}, nil)
}

// Restore makes some paths of the work tree be what they are in a commit: content,
// mode or link, or not there at all. It knows no protected paths, for it brings
// nothing new; what is in the way of a path gives way.
func (w *Workspace) Restore(ctx context.Context, sha string, paths []string) error {
	return w.call(ctx, "restore", pathParams{Path: sha, Paths: paths}, nil)
}

// List returns the names in a directory ("" for the top), sorted; those of
// directories end in "/".
func (w *Workspace) List(ctx context.Context, dir string) ([]string, error) {
	var names []string
	return names, w.call(ctx, "list", pathParams{Path: dir}, &names)
}

// Read returns a file's content. A file that does not exist is fs.ErrNotExist; one
// that is not a plain file, or is too big, is refused.
func (w *Workspace) Read(ctx context.Context, path string) ([]byte, error) {
	var content []byte
	return content, w.call(ctx, "read", pathParams{Path: path}, &content)
}

// Search returns at most max lines that match a regular expression (Go's syntax)
// in the files that match a glob ("" for all; "**" for any directories), each as
// "path:line: text". Binary files are left out.
func (w *Workspace) Search(ctx context.Context, pattern, glob string, max int) ([]string, error) {
	var lines []string
	return lines, w.call(ctx, "search", pathParams{Pattern: pattern, Path: glob, Max: max}, &lines)
}

// Log returns the newest commits that changed a path ("" for all; a file is
// followed through renames), up to the checked-out commit, one a line with what
// their messages say. Zero for n is 20, and 100 the most.
func (w *Workspace) Log(ctx context.Context, path string, n int) (string, error) {
	var text string
	return text, w.call(ctx, "log", pathParams{Path: path, Max: n}, &text)
}

// Blame returns which commit each line of a file is from, from and to included,
// then those commits. It is the file as it stands: a line that is not committed
// yet says so. Zero for from is the first line, for to 200 lines; 400 are the most.
func (w *Workspace) Blame(ctx context.Context, path string, from, to int) (string, error) {
	var text string
	return text, w.call(ctx, "blame", pathParams{Path: path, From: from, To: to}, &text)
}

// Diff returns the patch from a commit (a full SHA; "" for the one that is checked
// out) to the work tree as it stands, with what is not committed yet, in one file
// or directory ("" for all). More than 64 KiB are cut, with a line that says so.
func (w *Workspace) Diff(ctx context.Context, base, path string) (string, error) {
	var text string
	return text, w.call(ctx, "diff", pathParams{Pattern: base, Path: path}, &text)
}

// Symbols returns where functions, types and the like are defined whose names
// contain the query, without case, the best matches first: "path:line: kind name"
// and the line itself, at most max (0: 50; 200 the most). Universal Ctags finds
// them where it is installed, else patterns for the common languages.
func (w *Workspace) Symbols(ctx context.Context, query string, max int) (string, error) {
	var text string
	return text, w.call(ctx, "symbols", pathParams{Pattern: query, Max: max}, &text)
}

// Write makes or replaces a file, with the directories on the way. It never goes
// through a symbolic link, and refuses protected paths (*ProtectedError).
func (w *Workspace) Write(ctx context.Context, path string, content []byte) error {
	return guarded(w.open, path, func() error { return w.call(ctx, "write", pathParams{Path: path, Content: content}, nil) })
}

// Remove removes a file, or a directory with all that is in it. Protected paths are
// refused (*ProtectedError), and so is a directory that holds one.
func (w *Workspace) Remove(ctx context.Context, path string) error {
	return guarded(w.open, path, func() error { return w.call(ctx, "remove", pathParams{Path: path}, nil) })
}

// Run runs a command in the sandbox. A command that fails is a result; the error
// is for what could not be run, a *pipeline.Fault of class sandbox when the
// sandbox itself failed. Besides "timeout", "memory", "output" and "signal" the
// class can be "disk".
func (w *Workspace) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	var r workspace.Result
	back, err := w.m.places.Take(ctx, w.open.Owner)
	if err != nil {
		return r, err
	}
	defer back()
	err = w.call(ctx, "run", c, &r)
	var fault *pipeline.Fault
	if errors.As(err, &fault) && fault.Class == pipeline.FaultSandbox {
		w.m.distrust()
	}
	return r, err
}

// Changes returns the files that differ from the checked-out commit, with their
// content, sorted; new files that the repository ignores are left out. Anything
// that is not a plain file is refused, and named.
func (w *Workspace) Changes(ctx context.Context) ([]workspace.Change, error) {
	var changes []workspace.Change
	return changes, w.call(ctx, "changes", nil, &changes)
}

// mostStrays is how many strays are named.
const mostStrays = 10

// Strays says which changes of the work tree no commit takes, because their paths are
// protected or another's; nil where there is none. Write and Remove refuse such paths at
// once, but a command writes where it likes.
func (w *Workspace) Strays(ctx context.Context) error {
	changes, err := w.Changes(ctx)
	if err != nil {
		return err
	}
	return straysOf(w.open, changes)
}

func straysOf(o workspace.OpenOptions, changes []workspace.Change) error {
	var strays []error
	for _, c := range changes {
		err := taken(c.Path, o.Taken)
		if err == nil {
			err = owned(checkProtected(c.Path, o.Protected, o.Allow), o.Owners)
		}
		if err != nil && len(strays) < mostStrays {
			strays = append(strays, err)
		}
	}
	return errors.Join(strays...)
}

// Close ends the worker with everything it started, and removes the work tree.
func (w *Workspace) Close() error {
	w.closing.Do(func() { w.closed = w.close() })
	return w.closed
}

func (w *Workspace) close() error {
	if w.in != nil {
		_ = w.in.Close() // the worker ends by itself
		timer := time.NewTimer(500 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-w.gone:
		case <-timer.C:
			w.kill()
			<-w.gone
		}
		if w.m.setup.Unsafe {
			killMarked(w.mark)
		}
	}
	if w.grp != "" {
		endGroup(w.grp)
	}
	for _, f := range w.held {
		_ = f.Close() // of a nil one, too
	}
	w.m.useDeps(w, nil)
	if w.dir == "" {
		return nil
	}
	return removeTree(w.dir)
}

// tailWriter keeps the last max bytes.
type tailWriter struct {
	mu  sync.Mutex
	buf []byte
	max int
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tailWriter) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
