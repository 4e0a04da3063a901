// Package worktree is what is done with a work tree, in the words that the sandbox and
// those who use it share: commands that run there, and what they change.
package worktree

import "time"

// Command is a process to run in the workspace. Args[0] is looked up inside the
// sandbox; nothing goes through a shell unless Args says so.
type Command struct {
	Args    []string      `json:"args"`
	Dir     string        `json:"dir,omitempty"`     // relative to the work tree
	Env     []string      `json:"env,omitempty"`     // KEY=value, on top of the sandbox's own
	Timeout time.Duration `json:"timeout,omitempty"` // 0: the sandbox's default

	// Elsewhere has the sandbox look another way: other names of the work tree, the user,
	// the host and the caches, and no CI in the environment.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Result is how a command ended.
type Result struct {
	Exit      int           `json:"exit"` // -1 when it was killed
	Stdout    []byte        `json:"stdout,omitempty"`
	Stderr    []byte        `json:"stderr,omitempty"`
	Truncated bool          `json:"truncated,omitempty"` // output over the cap was dropped
	Class     string        `json:"class,omitempty"`     // why it was killed: "timeout", "memory", "output", "disk", "signal"; "" when it was not
	Duration  time.Duration `json:"duration"`
	Outside   []string      `json:"outside,omitempty"` // submodules with something in them, which is in no commit
}

// Change is one file that differs from the commit a work tree was made from.
type Change struct {
	Path    string `json:"path"` // slash-separated, relative
	Deleted bool   `json:"deleted,omitempty"`
	Exec    bool   `json:"exec,omitempty"` // executable bit
	Content []byte `json:"content,omitempty"`
}
