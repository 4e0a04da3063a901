package work

import "golang.org/x/sys/unix"

// leaseClock goes on while the machine sleeps.
const leaseClock = unix.CLOCK_BOOTTIME
