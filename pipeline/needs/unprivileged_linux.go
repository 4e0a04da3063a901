package needs

import (
	"os"
	"os/exec"
	"syscall"
)

// unprivileged has a command run as nobody where this process is root: what root may do
// says nothing of what a worker may.
func unprivileged(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}
