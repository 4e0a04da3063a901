package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// dirWorkspace is a directory as a workspace. Its commands run without a sandbox:
// they are the tests' own.
type dirWorkspace struct {
	dir  string
	root *os.Root
	was  map[string]string // the files, as they were at the start
}

func newWorkspace(t *testing.T, files map[string]string) *dirWorkspace {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &dirWorkspace{dir: dir, root: root, was: files}
}

// Changes lists what is new or another thing than at the start.
func (w *dirWorkspace) Changes(context.Context) (out []workspace.Change, err error) {
	err = fs.WalkDir(w.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := w.root.ReadFile(p)
		if err == nil && w.was[p] != string(content) {
			out = append(out, workspace.Change{Path: p, Content: content})
		}
		return err
	})
	return out, err
}

func (w *dirWorkspace) List(_ context.Context, dir string) ([]string, error) {
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out, nil
}

func (w *dirWorkspace) Read(_ context.Context, p string) ([]byte, error) { return w.root.ReadFile(p) }

func (w *dirWorkspace) Search(_ context.Context, pattern, glob string, max int) ([]string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var out []string
	err = fs.WalkDir(w.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ok, _ := filepath.Match(glob, filepath.Base(p)); glob != "" && !ok {
			return nil
		}
		data, err := w.root.ReadFile(p)
		for i, l := range strings.Split(string(data), "\n") {
			if re.MatchString(l) && len(out) < max {
				out = append(out, fmt.Sprintf("%s:%d: %s", p, i+1, l))
			}
		}
		return err
	})
	return out, err
}

func (w *dirWorkspace) Write(_ context.Context, p string, content []byte) error {
	if err := w.root.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	return w.root.WriteFile(p, content, 0o644)
}

func (w *dirWorkspace) Remove(_ context.Context, p string) error { return w.root.Remove(p) }

func (w *dirWorkspace) Run(ctx context.Context, c workspace.Command) (workspace.Result, error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = filepath.Join(w.dir, c.Dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	res := workspace.Result{Stdout: out.Bytes(), Stderr: errs.Bytes()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		res.Exit, err = exit.ExitCode(), nil
	}
	return res, err
}

// files reads the whole tree.
func (w *dirWorkspace) files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(w.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := w.root.ReadFile(p)
		out[p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ticker is a clock that moves 5 ms each time it is read.
func ticker() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(5 * time.Millisecond)
		return now
	}
}

// eventLog collects what a job emits, as a store does: an ID counts once.
type eventLog struct {
	mu     sync.Mutex
	events []pipeline.Event
	twice  int
	fail   error
}

func (l *eventLog) emit(_ context.Context, events ...pipeline.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	for _, e := range events {
		if slices.ContainsFunc(l.events, func(k pipeline.Event) bool { return k.ID == e.ID }) {
			l.twice++
			continue
		}
		l.events = append(l.events, e)
	}
	return nil
}

// usage is what the run would have booked.
func (l *eventLog) usage() pipeline.Usage {
	var u pipeline.Usage
	for _, e := range l.events {
		if e.Data.Step != nil {
			u.Add(e.Data.Step.Usage)
		}
	}
	return u
}

func (l *eventLog) String() string {
	var b strings.Builder
	for _, e := range l.events {
		switch {
		case e.Data.Step != nil:
			s := e.Data.Step
			fmt.Fprintf(&b, "step %d %s progress=%v %d+%d tokens %s", s.Number, e.Source, s.Progress, s.Usage.Input, s.Usage.Output, text.USDExact(s.Usage.MicroUSD))
			if s.Advice != "" {
				fmt.Fprintf(&b, " advice=%q", s.Advice)
			}
			if e.Data.Note != "" {
				fmt.Fprintf(&b, " (%s)", e.Data.Note)
			}
			b.WriteString("\n")
		case e.Data.Tool != nil:
			u := e.Data.Tool
			fmt.Fprintf(&b, "  %s %q ok=%v", u.Tool, u.Subject, u.OK)
			if u.Error != "" {
				fmt.Fprintf(&b, " error=%q", u.Error)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// memoryTape is a Tape as the store makes it.
type memoryTape struct {
	mu    sync.Mutex
	calls map[string][]taped // by run and key
	order []string
}

type taped struct {
	hash string
	data []byte
}

func (m *memoryTape) TapeLookup(_ context.Context, run int64, key string, step int) (string, []byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.calls[fmt.Sprint(run, key)]
	if step > len(list) {
		return "", nil, false, nil
	}
	return list[step-1].hash, list[step-1].data, true, nil
}

func (m *memoryTape) TapeRecord(_ context.Context, run int64, key string, step int, hash string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := fmt.Sprint(run, key)
	if m.calls == nil {
		m.calls = map[string][]taped{}
	}
	if !slices.Contains(m.order, k) {
		m.order = append(m.order, k)
	}
	if step != len(m.calls[k])+1 {
		return fmt.Errorf("step %d after %d", step, len(m.calls[k]))
	}
	m.calls[k] = append(m.calls[k], taped{hash, bytes.Clone(data)})
	return nil
}

func (m *memoryTape) TapeCut(_ context.Context, run int64, key string, from int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := fmt.Sprint(run, key)
	m.calls[k] = m.calls[k][:from-1]
	return nil
}

// all returns every recorded call, in order.
func (m *memoryTape) all() [][]byte {
	var out [][]byte
	for _, k := range m.order {
		for _, c := range m.calls[k] {
			out = append(out, c.data)
		}
	}
	return out
}

// modelFunc is a model made of a function.
type modelFunc func(context.Context, Request) (Response, error)

func (f modelFunc) Complete(ctx context.Context, r Request) (Response, error) { return f(ctx, r) }

// newAgent returns an agent whose every role has the model m, named name.
func newAgent(t *testing.T, name string, m Model, mod ...func(*Options)) *Agent {
	t.Helper()
	o := Options{Open: func(string) (Model, error) { return m, nil }, Models: map[config.Role]string{"": name}, Clock: ticker()}
	for _, f := range mod {
		f(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tapeModel(t *testing.T, tape string) Model {
	t.Helper()
	m, err := ReadTape([]byte(tape))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newRun() *pipeline.Run {
	return &pipeline.Run{ID: 7, Trace: "0123456789abcdef0123456789abcdef", State: pipeline.StateRunning, Config: config.Default(), Head: "head7",
		Task: pipeline.Task{Title: "Sub adds", Body: "calc.Sub returns the sum."}}
}

// job makes the job of a phase.
func job(run *pipeline.Run, ref pipeline.PhaseRef, ws Workspace, log *eventLog) Job {
	j := Job{Run: run, Ref: ref, Key: run.Key(ref), Workspace: ws}
	if log != nil {
		j.Emit = log.emit
	}
	return j
}

// wantFault checks an error's class and text.
func wantFault(t *testing.T, err error, class pipeline.FaultClass, parts ...string) {
	t.Helper()
	var f *pipeline.Fault
	if !errors.As(err, &f) {
		t.Fatalf("error is %v (%T), want a fault of class %s", err, err, class)
	}
	if f.Class != class {
		t.Errorf("fault is of class %s, want %s: %s", f.Class, class, f.Message)
	}
	for _, p := range parts {
		if !strings.Contains(f.Message, p) {
			t.Errorf("fault says %q, want it to contain %q", f.Message, p)
		}
	}
}

func pretty(v any) string {
	out, _ := json.MarshalIndent(v, "", "  ")
	return string(out) + "\n"
}
