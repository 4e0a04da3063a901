package sandbox

import (
	"context"
	"os/exec"
	"strings"
	"time"
)

// HostTool runs one of the server's own tools, with the server's rights, to ask how
// it is configured, and returns what it printed; empty when it fails or is not there.
// It is given nothing of a repository.
func HostTool(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
