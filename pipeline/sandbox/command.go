package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Why a command was killed.
const (
	classTimeout = "timeout"
	classMemory  = "memory"
	classOutput  = "output"
	classSignal  = "signal"
	classDisk    = "disk"
)

// floodFactor times the output that is kept is more than any honest command
// prints: it is killed there.
const floodFactor = 16

// killed is the cause of a context that a limit ended.
type killed struct{ class string }

func (k *killed) Error() string { return "killed: " + k.class }

// run runs one command to its end.
func (w *worker) run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	dir, err := checkCommand(c)
	if err != nil {
		return workspace.Result{}, err
	}
	if info, err := w.tree.root.Stat(dir); err != nil {
		return workspace.Result{}, fmt.Errorf("run %s in %s: %w", c.Args[0], c.Dir, err)
	} else if !info.IsDir() {
		return workspace.Result{}, fmt.Errorf("run %s in %s: not a directory", c.Args[0], c.Dir)
	}
	w.command.Lock()
	defer w.command.Unlock()
	res, err := w.runLocked(ctx, c, dir)
	res.Outside = w.tree.filledSubmodules()
	return res, err
}

// runLocked runs a command that was checked. The caller holds the command lock.
func (w *worker) runLocked(ctx context.Context, c workspace.Command, dir string) (workspace.Result, error) {
	if err := ctx.Err(); err != nil {
		return workspace.Result{}, err
	}
	if os.Geteuid() == 0 {
		return workspace.Result{}, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "refuses to run a repository's command as root"}
	}
	if err := w.mayLimit(); err != nil {
		return workspace.Result{}, err
	}
	if err := w.layCopies(); err != nil {
		return workspace.Result{}, err
	}
	wall := w.Limits.Wall
	if c.Timeout > 0 {
		wall = min(wall, c.Timeout)
	}
	limited, stop := context.WithTimeoutCause(ctx, wall, &killed{classTimeout})
	defer stop()
	r, err := w.runLimited(limited, c, dir)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // the caller gave up: that is no result
	}
	return r, err
}

// checkCommand refuses what cannot be a command, and returns its directory.
func checkCommand(c workspace.Command) (string, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return "", errors.New("run: the command is empty")
	}
	for _, a := range c.Args {
		if strings.ContainsRune(a, 0) {
			return "", fmt.Errorf("run %s: an argument has a NUL byte", c.Args[0])
		}
	}
	for _, kv := range c.Env {
		key, _, ok := strings.Cut(kv, "=")
		if !ok || key == "" || strings.ContainsRune(kv, 0) {
			return "", fmt.Errorf("run %s: environment %q: must be KEY=value", c.Args[0], key)
		}
	}
	dir, err := cleanPath(c.Dir)
	if err != nil {
		return "", fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	return dir, nil
}

// runLimited starts the command, watches over it, and says how it ended.
func (w *worker) runLimited(ctx context.Context, c workspace.Command, dir string) (workspace.Result, error) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	flood := newFlood(w.Limits.Output*floodFactor, func() { kill(&killed{classOutput}) })
	stdout := &keepWriter{max: w.Limits.Output * 3 / 4, flood: flood}
	stderr := &keepWriter{max: w.Limits.Output / 4, flood: flood}

	p, err := w.prepare(ctx, c, dir)
	if err != nil {
		return workspace.Result{}, err
	}
	defer p.close()
	drained, err := p.capture(stdout, stderr)
	if err != nil {
		return workspace.Result{}, err
	}
	group, err := w.group()
	if err != nil {
		return workspace.Result{}, err
	}
	defer group.end()
	group.place(p.cmd)
	begin := time.Now()
	if err := p.start(); err != nil {
		return workspace.Result{}, err
	}
	watched := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(finished, p.cmd.Process.Pid, func(class string) { kill(&killed{class}) })
	}()
	waitErr := p.cmd.Wait()
	close(finished)
	<-watched
	if w.Unsafe {
		killRest(p.cmd.Process.Pid) // they hold the output open
	}
	hoarded := group.outOfMemory()
	drained()
	r := workspace.Result{
		Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Truncated: stdout.dropped > 0 || stderr.dropped > 0,
		Duration: time.Since(begin),
	}
	exit, ok := p.exit(waitErr)
	var limit *killed
	switch {
	case errors.As(context.Cause(ctx), &limit):
		r.Exit, r.Class = -1, limit.class
	case ctx.Err() != nil:
		return workspace.Result{}, ctx.Err()
	case hoarded:
		r.Exit, r.Class = -1, classMemory
	case !ok:
		return workspace.Result{}, w.sandboxFault(r.Stderr, waitErr)
	default:
		r.Exit, r.Class = classify(exit)
	}
	return r, nil
}

// classify tells an exit from a death by a signal, which a shell and bubblewrap
// both report as 128 and the signal's number.
func classify(exit int) (int, string) {
	switch syscall.Signal(exit - 128) {
	case syscall.SIGXCPU:
		return -1, classTimeout
	case syscall.SIGXFSZ:
		return -1, classDisk
	case syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGSYS, syscall.SIGTERM:
		return -1, classSignal
	}
	return exit, ""
}

// prepared is a command that is ready to start.
type prepared struct {
	cmd    *exec.Cmd
	feed   []func()    // what must be written once it runs
	after  []*os.File  // closed at the end
	ours   []*os.File  // closed when the command has its copies
	status chan []byte // bubblewrap's report, when it is finished; nil without it
}

// capture has the command's output copied to two writers. The function that it
// returns waits for the rest of it, three seconds at most: the command itself is
// waited for without its output, which what it left behind may hold open.
func (p *prepared) capture(stdout, stderr io.Writer) (drained func(), err error) {
	var copies sync.WaitGroup
	var readers []*os.File
	for _, to := range []struct {
		file *io.Writer
		w    io.Writer
	}{{&p.cmd.Stdout, stdout}, {&p.cmd.Stderr, stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*to.file = w
		p.after = append(p.after, r)
		p.ours = append(p.ours, w)
		readers = append(readers, r)
		p.feed = append(p.feed, func() {
			defer copies.Done()
			_, _ = io.Copy(to.w, r)
		})
		copies.Add(1)
	}
	return func() {
		for _, r := range readers {
			_ = r.SetReadDeadline(time.Now().Add(3 * time.Second))
		}
		copies.Wait()
	}, nil
}

func (p *prepared) start() error {
	if err := p.cmd.Start(); err != nil {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "start command: " + err.Error()}
	}
	for _, f := range slices.Concat(p.ours, p.cmd.ExtraFiles) {
		f.Close()
	}
	for _, f := range p.feed {
		go f()
	}
	return nil
}

func (p *prepared) close() {
	for _, f := range slices.Concat(p.after, p.ours, p.cmd.ExtraFiles) {
		f.Close()
	}
}

// exit returns the command's exit code; not ok when it never ran.
func (p *prepared) exit(err error) (code int, ok bool) {
	if p.status != nil {
		return exitCode(<-p.status)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return p.cmd.ProcessState.ExitCode(), true
	case !errors.As(err, &exit):
		return 0, false
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal()), true
	}
	return exit.ExitCode(), true
}

// exitCode reads bubblewrap's report: JSON objects, the last of which has the exit
// code if there ever was a command.
func exitCode(report []byte) (int, bool) {
	dec := json.NewDecoder(bytes.NewReader(report))
	for {
		var row struct {
			Exit *int `json:"exit-code"`
		}
		if err := dec.Decode(&row); err != nil {
			return 0, false
		}
		if row.Exit != nil {
			return *row.Exit, true
		}
	}
}

// sandboxFault says why there was no sandbox, and how to mend that.
func (w *worker) sandboxFault(stderr []byte, err error) error {
	said := text.ClipBytes(strings.TrimSpace(string(stderr)), 500)
	if said == "" && err != nil {
		said = err.Error()
	}
	return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: " + said + mend(said)}
}

// prepare builds the process, in bubblewrap or without.
func (w *worker) prepare(ctx context.Context, c workspace.Command, dir string) (*prepared, error) {
	if !w.Unsafe {
		return w.bubblewrap(ctx, c, dir)
	}
	argv := w.limited(c.Args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(w.tree.dir, dir)
	tmp := w.scratch()
	cmd.Env = append(w.commandEnv(places{home: tmp, tmp: tmp, scratch: tmp, cache: w.GoCache}), c.Env...)
	cmd.Env = append(cmd.Env, markName+"="+w.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		killDescendants(cmd.Process.Pid)
		return err
	}
	return &prepared{cmd: cmd}, nil
}

// places are the directories that a command is told of, as it sees them.
type places struct {
	home, tmp, scratch, cache string // cache is Go's
}

// commandEnv is a command's whole environment, but for its own additions.
func (w *worker) commandEnv(p places) []string {
	image := slices.DeleteFunc(slices.Clone(w.RootEnv), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	return append(image,
		"PATH="+w.path(), "HOME="+p.home, "TMPDIR="+p.tmp, "GOTMPDIR="+p.scratch, "LANG=C.UTF-8",
		"GOCACHE="+p.cache, "GOPATH="+path.Join(p.home, "go"), "GOFLAGS=-buildvcs=false",
		"GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "GOENV=off",
		"XDG_CACHE_HOME="+path.Join(p.scratch, "xdg"), "CI=true",
	)
}

// flood counts the output of both streams, and calls over once when it is too much.
type flood struct {
	mu   sync.Mutex
	left int64
	over func()
}

func newFlood(max int64, over func()) *flood { return &flood{left: max, over: over} }

func (f *flood) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.left
	f.left -= int64(n)
	if was >= 0 && f.left < 0 {
		f.over()
	}
}

// keepWriter keeps the first and the last part of what is written, max bytes in all.
type keepWriter struct {
	max     int64
	flood   *flood
	head    []byte
	tail    []byte
	dropped int64
}

func (k *keepWriter) Write(p []byte) (int, error) {
	k.flood.add(len(p))
	n := len(p)
	half := int(k.max / 2)
	if room := half - len(k.head); room > 0 {
		take := min(room, len(p))
		k.head, p = append(k.head, p[:take]...), p[take:]
	}
	k.tail = append(k.tail, p...)
	if over := len(k.tail) - half; over > half { // move seldom, not for each write
		k.dropped += int64(over)
		k.tail = append(k.tail[:0], k.tail[over:]...)
	}
	return n, nil
}

// Bytes is what was kept, with a line that says what is missing.
func (k *keepWriter) Bytes() []byte {
	if over := len(k.tail) - int(k.max/2); over > 0 {
		k.dropped += int64(over)
		k.tail = k.tail[over:]
	}
	if k.dropped == 0 {
		return append(k.head, k.tail...)
	}
	gap := fmt.Sprintf("\n[... %d bytes left out ...]\n", k.dropped)
	tail := k.tail[min(len(k.tail), len(gap)):] // so that the gap's own words fit in
	return bytes.Join([][]byte{k.head, []byte(gap), tail}, nil)
}
