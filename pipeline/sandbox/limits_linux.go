package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline"
)

// rlimits are prlimit's arguments. How many processes there may be is counted per
// sandbox inside one, but per user of the whole machine outside.
func (w *worker) rlimits() []string {
	l := w.Limits
	args := []string{
		"--core=0", fmt.Sprintf("--nofile=%d", l.OpenFiles), fmt.Sprintf("--fsize=%d", l.FileBytes),
		fmt.Sprintf("--cpu=%d", max(1, int64(l.CPU/time.Second))),
	}
	if !w.Unsafe && w.Root == "" {
		args = append(args, fmt.Sprintf("--nproc=%d", l.Processes))
	}
	return args
}

// limited puts prlimit before a command.
func (w *worker) limited(args []string) []string {
	return slices.Concat([]string{w.Prlimit}, w.rlimits(), []string{"--"}, args)
}

// boxed is bubblewrap before a command, with its limits. An image may lack prlimit: there bubblewrap
// inherits all limits except the number of processes, which would also count those of other sandboxes.
func (w *worker) boxed(args []string) []string {
	box := []string{w.Bwrap, "--args", "3", "--"}
	if w.Root == "" {
		return append(box, w.limited(args)...)
	}
	const limit = `ulimit -u "$0" 2>/dev/null || ulimit -p "$0"; exec "$@"`
	return w.limited(slices.Concat(box, []string{"/bin/sh", "-c", limit, strconv.Itoa(w.Limits.Processes)}, args))
}

// mayLimit refuses where prlimit is not there, or could not set the limit of open files:
// it would end in the command's place, as if that had failed.
func (w *worker) mayLimit() error {
	if w.Prlimit == "" {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: prlimit is not installed: apt-get install util-linux"}
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &own) != nil || own.Max >= uint64(w.Limits.OpenFiles) {
		return nil
	}
	return &pipeline.Fault{Class: pipeline.FaultSandbox, Final: true, Message: fmt.Sprintf("sandbox unavailable: the server may have %d files open, "+
		"and a command needs a limit of %d: raise the server's (`ulimit -Hn`, LimitNOFILE in systemd, `--ulimit nofile` of a container)", own.Max, w.Limits.OpenFiles)}
}
