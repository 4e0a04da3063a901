package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// bomber is an executor to which one run is what nothing recovers from, and another takes its time
// but for the last process. Plans have a question, so that nothing comes after them.
type bomber struct{ last bool }

func (b bomber) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, _ work.Emit) ([]pipeline.Event, error) {
	switch {
	case run.Task.Title == "bomb":
		go overflow(0) // a goroutine of its own, as phases have many
		<-ctx.Done()
		return nil, ctx.Err()
	case run.Task.Title == "slow" && !b.last:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: act.Phase, Plan: &pipeline.Plan{Question: "which?"}}}}, nil
}

func overflow(n int) int {
	if n < 0 {
		return 0
	}
	return overflow(n+1) + 1
}

// crashing is a server on the database in dir, in a process of its own. It ends when every run waits.
func crashing(dir string) {
	debug.SetMaxStack(1 << 20)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if os.Getenv("FORGE_CRASH_JOB") != "" {
		s := &Server{App: &App{log: log}}
		s.afterCrash(ctx, dir)
		s.beside(ctx, "learning", func(context.Context) { panic(overflow(0)) })
		if s.aside == "" {
			<-ctx.Done()
		}
		s.beside(ctx, "tidying up", func(context.Context) { os.Exit(0) })
		<-ctx.Done()
		os.Exit(4)
	}
	db, err := store.Open(ctx, filepath.Join(dir, "forge.db"), log)
	fail(err)
	e, err := newEngine(db, work.Options{Executor: bomber{os.Getenv("FORGE_CRASH_LAST") != ""}, Publisher: noopPublisher{}, Logger: log, Tick: 10 * time.Millisecond})
	fail(err)
	s := &Server{App: &App{DB: db, Engine: e, log: log}}
	s.afterCrash(ctx, dir)
	fail(e.Start(ctx))
	for waiting := 0; waiting < 3; {
		waiting = 0
		for id := range int64(3) {
			run, err := db.Load(ctx, id+1)
			fail(err)
			if run.State == pipeline.StateWaiting {
				waiting++
			}
		}
		select {
		case <-ctx.Done():
			fail(ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	fail(e.Stop(ctx))
	fail(db.Close())
	os.Exit(0)
}

// Covers S32: a run that ends the process is set aside at the second time, and all else goes on,
// what was under way at both times, too.
func TestNoCrashLoop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *store.DB {
		db, err := store.Open(t.Context(), filepath.Join(dir, "forge.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	for i, title := range []string{"slow", "bomb", "quick"} {
		_, err := db.CreateRun(t.Context(), title, pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main"}, Config: config.Default(), Base: "base",
			Task: pipeline.Task{Issue: i + 1, Title: title}, Branch: "forge/" + title}, time.Now(), strings.Repeat("a", 32), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, crashFile), []byte("SIGQUIT: quit\n\ngoroutine 6 [running labels:{\"forge\": \"run/1\"}]:\n"), 0o600); err != nil { // that was somebody's wish
		t.Fatal(err)
	}
	inTurn(t, dir, "FORGE_CRASH_LAST", "run/2")
	db = open()
	defer db.Close()
	for id, want := range map[int64]string{1: "which?", 2: "the server ended by itself while it worked on this, twice (a stack overflow), so that it is set aside", 3: "which?"} {
		run, err := db.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if g := run.Gate(); g == nil || !strings.HasPrefix(g.Question, want) {
			t.Errorf("run %d asks %+v, want %q", id, g, want)
		}
		if n := run.Attempts["0/plan"]; id != 2 && n != 1 {
			t.Errorf("run %d began %d times; the end of another run is no try of its own", id, n)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, lastCrashFile))
	if err != nil || !bytes.Contains(text, []byte("overflow(")) {
		t.Errorf("what the runtime said is not kept: %.200q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, crashFile)); err != nil || info.Size() != 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("after an end in order, %s is %v, %v", crashFile, info, err)
	}
}

// Covers S32: what goes on beside the engine and ends the process twice in a row does not go on in
// the third; all else does, and the doctor names it.
func TestNoCrashLoopOfJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inTurn(t, dir, "FORGE_CRASH_JOB", "job/learning")
	d := &doctor{list: map[string][]Diagnosis{}}
	d.crash(filepath.Join(dir, lastCrashFile))
	if said := fmt.Sprint(d.told()); !strings.Contains(said, "by a stack overflow, while it worked on job/learning") {
		t.Errorf("the doctor says %s", said)
	}
	d = &doctor{list: map[string][]Diagnosis{}}
	if d.crash(filepath.Join(dir, "none")); len(d.told()) > 0 {
		t.Errorf("without a crash the doctor says %v", d.told())
	}
}

// inTurn runs three servers on dir: what the first two work on ends them, and the third sets it aside.
// The third has the variable, or all have FORGE_CRASH_JOB.
func inTurn(t *testing.T, dir, variable, what string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	about := " what=" + what + ` error="a stack overflow"`
	for i, want := range []struct {
		exit int
		said string
	}{
		{2, ""},
		{2, `level=ERROR msg="the server ended by itself; what it worked on is tried once more"` + about},
		{0, `level=ERROR msg="the server ended by itself a second time while it worked on the same thing, which is set aside"` + about},
	} {
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), "FORGE_CRASH_DIR="+dir)
		if i == 2 || variable == "FORGE_CRASH_JOB" {
			cmd.Env = append(cmd.Env, variable+"=1")
		}
		cmd.Stderr = &said
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want.exit {
			t.Fatalf("process %d: %v, want exit %d:\n%.3000s", i+1, err, want.exit, &said)
		}
		if first, _, _ := strings.Cut(said.String(), "\n"); !strings.Contains(said.String(), want.said) || want.said == "" && strings.Contains(said.String(), "by itself") {
			t.Errorf("process %d says %q, want %s", i+1, first, want.said)
		}
	}
}

func TestHowItEnded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"panic: token ghs_x [recovered]\n\ngoroutine 6 [running]:\n": "a panic",
		"\nruntime stack:\nruntime.throw({0x1})\n\t/go\nruntime.morestack()\n\t/go\n\ngoroutine 6 gp=0x2 [running]:\nmain.f()\n\ngoroutine 7 [x]:\nruntime.mallocgc()\n": "a stack overflow",
		"\ngoroutine 6 gp=0x2 [running]:\nruntime.throw({0x1})\nruntime.mallocgc(0x1)\n\ngoroutine 1 [x]:\n":                                                             "no memory was left",
		"\ngoroutine 6 [running]:\ninternal/runtime/maps.fatal({0x1})\n\ngoroutine 7 [x]:\nruntime.morestack()\n":                                                        "a fatal error",
	} {
		if got := howItEnded(text); got != want {
			t.Errorf("howItEnded(%q) = %q, want %q", text, got, want)
		}
	}
}
