package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline/workspace"
)

// alive lists processes whose command line holds the mark.
func alive(mark string) []int {
	var pids []int
	for _, p := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if bytes.Contains(line, []byte(mark)) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// gone waits up to a second for the last process with the mark to end.
func gone(mark string) bool {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if len(alive(mark)) == 0 {
			return true
		}
	}
	return false
}

// Covers S9: nothing survives, however the end comes.
func TestNothingSurvives(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "a"})
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("FORGE_SOAK")); err == nil {
		rounds = n
	}
	for _, unsafe := range []bool{false, true} {
		t.Run(fmt.Sprintf("unsafe=%v", unsafe), func(t *testing.T) {
			if !unsafe {
				needBwrap(t)
			}
			m := newManager(t, Options{Unsafe: unsafe})
			for round := range rounds {
				mark := fmt.Sprintf("%d.%d%d", 70000+round, os.Getpid(), unsafeBit(unsafe))
				leave := "(setsid nohup sleep " + mark + " >/dev/null 2>&1 &) ; (setsid sleep " + mark + " &) ; echo left >left"
				w := f.open(t, m, f.head)
				begin := time.Now()
				if r := mustRun(t.Context(), t, w, leave); r.Exit != 0 || !gone(mark) {
					t.Errorf("after a command's end: %v is alive (%+v)", alive(mark), r)
				}
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("a command that left processes behind took %v", took)
				}
				for name, end := range map[string]func(){
					"Close":                    func() { _ = w.Close() },
					"kill -9 of the worker":    func() { _ = unix.Kill(w.cmd.Process.Pid, unix.SIGKILL); <-w.gone; _ = w.Close() },
					"the end of its input":     func() { _ = w.in.Close(); <-w.gone; _ = w.Close() },
					"a frame that is no frame": func() { _, _ = w.in.Write([]byte("\xff\xff\xff\xff")); <-w.gone; _ = w.Close() },
				} {
					w = f.open(t, m, f.head)
					failed := make(chan error, 1)
					go func() {
						_, err := w.Run(context.Background(), workspace.Command{Args: []string{"/bin/sh", "-c", leave + "; sleep " + mark}})
						failed <- err
					}()
					for {
						if got, err := w.Read(t.Context(), "left"); err == nil && len(got) > 0 {
							break
						}
					}
					end()
					if err := <-failed; err == nil {
						t.Errorf("Run over %s: no error", name)
					}
					if !gone(mark) {
						t.Errorf("after %s: %v is alive", name, alive(mark))
					}
					if _, err := os.Stat(w.dir); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("after %s: the work tree is there: %v", name, err)
					}
				}
			}
		})
	}
}

func unsafeBit(unsafe bool) int {
	if unsafe {
		return 1
	}
	return 0
}

// Covers S9 and S2 of the worker itself: no dumps, no root, nothing in its environment.
func TestWorkerProcess(t *testing.T) {
	t.Setenv("FORGE_CANARY", "canary")
	t.Setenv("GORACE", "")
	f := newFixture(t, map[string]string{"a": "a"})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	info, err := os.Stat(proc + "environ")
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("the worker can be dumped: its environ belongs to %d", uid)
	}
	if os.Geteuid() != 0 {
		return // the rest cannot be read by the same user: that is the point
	}
	env, err := os.ReadFile(proc + "environ")
	if err != nil || bytes.Contains(env, []byte("canary")) || bytes.Count(env, []byte("=")) != 1 {
		t.Errorf("environ = %q, %v; want PATH alone", env, err)
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil || !bytes.Contains(status, []byte("\nUid:\t65534\t65534\t65534\t65534\n")) || !bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n")) ||
		!bytes.Contains(status, []byte("\nGroups:\t \n")) || !bytes.Contains(status, []byte("\nCapEff:\t0000000000000000\n")) {
		t.Errorf("status = %s, %v", status, err)
	}
	threads, err := filepath.Glob(proc + "task/*/status")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads: %v, %v", threads, err)
	}
	for _, name := range threads { // each may start a command
		if status, err := os.ReadFile(name); err == nil && !bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n")) {
			t.Errorf("%s may gain privileges", name)
		}
	}
}
