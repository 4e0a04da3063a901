package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// confine shuts off what a worker may have inherited, and has it see what it starts to its end.
func confine() error {
	if err := mayGain(); err != nil {
		return err
	}
	if err := unix.CloseRange(3, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w (Linux 5.11 or newer is needed)", err)
	}
	// When memory runs out, commands go first, then workers, never the server. Once it
	// cannot be dumped, its files in /proc are root's.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	// What a command leaves behind becomes the worker's child, and dies with it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set subreaper: %w", err)
	}
	return nil
}

// mayGain refuses a process that could gain privileges. Once it runs it cannot give that
// up for all threads of the Go runtime, any of which may start a command: who starts it
// sees to it.
func mayGain() error {
	has, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("ask for no new privileges: %w", err)
	}
	if has != 1 {
		return errors.New("it was started so that it could gain privileges; the server starts it")
	}
	return nil
}

// startBare starts a command that can gain no privileges, nor can what it starts. The
// kernel keeps that for each thread and hands it on, so that a thread of its own does it,
// which ends with its goroutine: once the command has ended, since bubblewrap dies with its
// parent, and that thread is its parent.
func startBare(cmd *exec.Cmd, ended <-chan struct{}) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the first thread cannot end; while this holds it, the next is another
			defer runtime.UnlockOSThread()
			started <- startBare(cmd, ended)
			return
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			started <- fmt.Errorf("set no new privileges: %w", err)
			return
		}
		err := cmd.Start()
		started <- err
		if err == nil {
			<-ended
		}
	}()
	return <-started
}

// pathOf is where a worker finds the program that is handed to it as its first file.
func pathOf(*os.File) string { return "/proc/self/fd/3" }
