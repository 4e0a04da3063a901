//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// On systems other than Linux there is no sandbox: commands run where the server's settings
// do without one, as the worker's user, and nothing limits them but time, output and disk.
// This file says for each thing that only Linux has what is done in its place.

// bubblewrap says that it is not to be had.
func (w *worker) bubblewrap(context.Context, workspace.Command, string) (*prepared, error) {
	return nil, &pipeline.Fault{Class: pipeline.FaultSandbox, Final: true, Message: "sandbox unavailable: the sandbox needs Linux; " +
		"on this system commands run without one alone, which unsafe_no_sandbox allows where all that runs is your own"}
}

func mend(string) string { return "" }

// probe runs a command.
func (w *worker) probe(ctx context.Context) error {
	_, err := w.run(ctx, workspace.Command{Args: []string{"true"}})
	return err
}

// limited has a shell look a command up in the PATH that the command itself has.
func (w *worker) limited(args []string) []string {
	return append([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, args...)
}

func (w *worker) mayLimit() error { return nil }

func overMemory([]int, []string, int64) bool { return false }

func beneath(int) []int { return nil }

// killDescendants does nothing: all that is known of a command is its process group, which
// whoever waits for it kills. What leaves that group stays.
func killDescendants(int) {}

// killRest kills what a command has left in its process group, once it has ended.
func killRest(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

func killMarked(string) {}

// cgroups there are none.
type cgroups struct{}

func handedOver(int) (*cgroups, error) { return nil, errors.New("cgroups need Linux") }

func (w *Workspace) enterGroup() (*os.File, error) { return nil, nil }

func killGroup(string) error { return nil }

func endGroup(string) {}

type group struct{}

func (w *worker) group() (*group, error) { return nil, nil }

func (*group) place(*exec.Cmd) {}

func (*group) outOfMemory() bool { return false }

func (*group) end() {}

// isolation there is none.
type isolation struct{}

func (m *Manager) newIsolation(Options) *isolation { return nil }

func (*isolation) around(*exec.Cmd) {}

// Private has no crash write to a disk what this process, or one that it starts, has in memory.
func Private() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("no core dumps: %w", err)
	}
	return nil
}

// confine keeps the worker's program, its first file, from what it starts.
func confine() error {
	unix.CloseOnExec(3)
	return nil
}

func startBare(cmd *exec.Cmd, _ <-chan struct{}) error { return cmd.Start() }

// pathOf is where a worker finds its program.
func pathOf(exe *os.File) string { return exe.Name() }

// timesOf are the times of a file's last change: of its content, and of anything about it.
func timesOf(st *syscall.Stat_t) (mtime, ctime syscall.Timespec) { return st.Mtimespec, st.Ctimespec }

// openToRemove opens a directory that is one, with the permissions to empty it.
func openToRemove(at int, name string) (*os.File, error) {
	if err := unix.Fchmodat(at, name, 0o700, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	return openNoFollow(at, name)
}
