//go:build !linux

package work

import "golang.org/x/sys/unix"

// leaseClock goes on while the machine sleeps: on macOS this one does.
const leaseClock = unix.CLOCK_MONOTONIC
