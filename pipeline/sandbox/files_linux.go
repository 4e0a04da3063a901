package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// timesOf are the times of a file's last change: of its content, and of anything about it.
func timesOf(st *syscall.Stat_t) (mtime, ctime syscall.Timespec) { return st.Mtim, st.Ctim }

// openToRemove opens a directory that is one, with the permissions to empty it.
func openToRemove(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	self := fmt.Sprintf("/proc/self/fd/%d", fd) // this very directory, whatever has its name by now
	if err := unix.Chmod(self, 0o700); err != nil {
		return nil, err
	}
	return os.Open(self)
}
