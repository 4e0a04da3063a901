package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"forge/pipeline"
)

// isNoRoom reports whether an error means that a disk, or what its user may take
// of it, is full. Git says so in words alone.
func isNoRoom(err error) bool {
	var wire *wireError
	var git *gitError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return true
	case errors.As(err, &wire):
		return wire.NoRoom
	case errors.As(err, &git):
		return strings.Contains(git.stderr, "No space left on device") || strings.Contains(git.stderr, "Disk quota exceeded")
	}
	return false
}

// roomFault makes an error that means a full disk a fault of the environment that
// says where room is needed. Other errors are passed on.
func roomFault(dir string, err error) error {
	if err == nil || !isNoRoom(err) {
		return err
	}
	return &pipeline.Fault{Class: pipeline.FaultEnvironment, Message: fmt.Sprintf(
		"the disk of the server's directory %s has no room left: free some, or give the state directory a larger disk, then answer `retry` (%v)", dir, err)}
}
