//go:build !linux

package needs

import "os/exec"

func unprivileged(*exec.Cmd) {} // there is no bubblewrap
