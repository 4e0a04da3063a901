package sandbox

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline"
	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// limited is the sandbox' and the unsafe mode's test of limits.
func limited(t testing.TB, unsafe bool, l Limits) *Workspace {
	t.Helper()
	f := newFixture(t, map[string]string{"a": "a"})
	return f.open(t, newManager(t, Options{Unsafe: unsafe, Limits: l}), f.head)
}

// Covers S8: each limit has a class of its own, and the workspace goes on after it.
func TestLimits(t *testing.T) {
	needs.Tools(t, "perl")
	for _, unsafe := range []bool{false, true} {
		t.Run(fmt.Sprintf("unsafe=%v", unsafe), func(t *testing.T) {
			if !unsafe {
				needBwrap(t)
			}
			w := limited(t, unsafe, Limits{
				Memory: 128 << 20, Output: 64 << 10, TreeBytes: 32 << 20, FileBytes: 16 << 20, Processes: 64, CPU: 10 * time.Second,
			})
			for _, tt := range []struct {
				name, script, class string
				timeout             time.Duration
			}{
				{"wall clock", "sleep 60", classTimeout, 300 * time.Millisecond},
				{"wall clock, in the background", "setsid sleep 60 & wait", classTimeout, 300 * time.Millisecond},
				{"memory", "perl -e '$x = \"x\" x (400<<20); sleep 60'", classMemory, 30 * time.Second},
				{"memory, two below", "(perl -e '$x = \"x\" x (400<<20); sleep 60' & wait) & wait", classMemory, 30 * time.Second},
				{"output", "yes", classOutput, 30 * time.Second},
				{"disk", "for i in 1 2 3 4 5 6; do head -c 10000000 /dev/zero >f$i; done; sleep 60", classDisk, 30 * time.Second},
				{"one file", "exec head -c 20000000 /dev/zero >big", classDisk, 30 * time.Second},
				{"a signal", "kill -SEGV $$", classSignal, 30 * time.Second},
			} {
				begin := time.Now()
				r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", tt.script}, Timeout: tt.timeout})
				if err != nil || r.Class != tt.class || r.Exit != -1 {
					t.Errorf("%s: class %q, exit %d, %v; want class %q, exit -1; it said %.200s", tt.name, r.Class, r.Exit, err, tt.class, r.Stderr)
				}
				if took := time.Since(begin); took > 45*time.Second { // all but one would take a minute
					t.Errorf("%s: took %v", tt.name, took)
				}
				if kept := len(r.Stdout) + len(r.Stderr); kept > 64<<10 || tt.class == classOutput && (!r.Truncated || kept < 32<<10) {
					t.Errorf("%s: kept %d bytes, truncated %v", tt.name, kept, r.Truncated)
				}
				mustRun(t.Context(), t, w, "rm -f big f?")
			}
			if r := mustRun(t.Context(), t, w, "cat /no/such/file; exit 7"); r.Exit != 7 || r.Class != "" || len(r.Stderr) == 0 {
				t.Errorf("a plain failure = %+v", r)
			}
			if r, err := w.Run(t.Context(), workspace.Command{Args: []string{"no-such-program"}}); err != nil || r.Exit != 127 || r.Class != "" {
				t.Errorf("a program that is not there = %+v, %v; want exit 127", r, err)
			}
			r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", "pwd; echo $X"}, Dir: "sub", Env: []string{"X=1"}})
			if err == nil {
				t.Errorf("a directory that is not there = %+v", r)
			}
		})
	}
}

// Covers S8: a fork bomb ends at the limit, inside.
func TestForkBomb(t *testing.T) {
	needBwrap(t)
	w := limited(t, false, Limits{Processes: 64})
	needs.Tools(t, "perl")
	r := mustRun(t.Context(), t, w, `perl -e 'my $n=0; for (1..500) { my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } $n++ } print $n'`)
	n, err := strconv.Atoi(string(r.Stdout))
	if err != nil || n < 30 || n > 64 {
		t.Errorf("%q processes were made; want at most 64: %s", r.Stdout, r.Stderr)
	}
}

// Covers S8, S29: a command has its limits from its own start, whatever its worker has: no
// core dump, so many files, so much in one, so much time, and inside so many processes.
func TestCommandLimits(t *testing.T) {
	w := &worker{setup: setup{Limits: Limits{OpenFiles: 7, FileBytes: 8, CPU: 9 * time.Second, Processes: 10}}}
	if got, want := strings.Join(w.rlimits(), " "), "--core=0 --nofile=7 --fsize=8 --cpu=9 --nproc=10"; got != want {
		t.Errorf("limits %q, want %q", got, want)
	}
}

// A server that may open fewer files than a command is given is told so: prlimit would end
// in the command's place, which looks like a failure of the repository's own command.
func TestTooFewOpenFiles(t *testing.T) {
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true, Limits: Limits{OpenFiles: math.MaxInt}}), f.head)
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"true"}})
	var fault *pipeline.Fault
	if !errors.As(err, &fault) || fault.Class != pipeline.FaultSandbox || !strings.Contains(fault.Message, "raise the server's (`ulimit -Hn`") {
		t.Errorf("%+v, %v", r, err)
	}
}

// Covers S8: whatever makes files without end is stopped before the disk can hold no
// more, and nothing begins on a disk that is nearly full of them.
func TestFilesWithoutEnd(t *testing.T) {
	dir := openDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,nr_inodes=6000,mode=0711"); err != nil {
		t.Skipf("only root may mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	f := newFixture(t, sources)
	m := newManager(t, Options{Unsafe: true, Dir: dir})
	w := f.open(t, m, f.head)
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", "i=0; while :; do i=$((i+1)); true >f$i || sleep 0.01; done 2>/dev/null"}, Timeout: time.Minute})
	if err != nil || r.Class != classDisk {
		t.Errorf("it ended as %q, %v; want %q", r.Class, err, classDisk)
	}
	if _, err := m.open(t.Context(), workspace.OpenOptions{Name: "run/2", Cache: "x"}); err == nil || !strings.Contains(err.Error(), "hardly any more files") {
		t.Errorf("a work tree on a disk full of files: %v", err)
	}
}

// Covers S8: what is reserved of the disk stays free, whoever writes.
func TestReserve(t *testing.T) {
	dir := openDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0711"); err != nil {
		t.Skipf("only root may mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Unsafe: true, Dir: dir, Limits: Limits{Reserve: 32 << 20}}), f.head)
	const fill = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); head -c 1048576 /dev/zero >>big; done; sleep 20"
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", fill}, Timeout: time.Minute})
	if err != nil || r.Class != classDisk {
		t.Errorf("it ended as %q, %v; want %q", r.Class, err, classDisk)
	}
}
