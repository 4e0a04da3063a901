// Package workspace is the seam between those who work on a repository's files and what
// holds them: a [Workspace] is a work tree in which files are read and edited and commands
// run, [Git] is the repository's history and what may be done to it. The phases of a run,
// the agents and the checks see these types alone. Package sandbox is what a server uses:
// a process for each workspace, bubblewrap around each command. Package workspacetest is
// for tests: the same files and the same git, without the process and without bubblewrap.
// It stores nothing.
package workspace

import (
	"context"
	"fmt"
	"time"
)

// Workspaces opens workspaces.
type Workspaces interface {
	// Open makes a work tree and, when a commit is given, checks it out.
	Open(ctx context.Context, o OpenOptions) (Workspace, error)
	// Probe says why commands cannot run: nil, or a *pipeline.Fault of class sandbox that
	// says what to do.
	Probe(ctx context.Context) error
	// Sweep removes what servers that are gone have left.
	Sweep(ctx context.Context) error
}

// Workspace is one work tree. Calls may come from many goroutines; commands are run one
// after the other.
type Workspace interface {
	Files
	History
	Environments

	// Checkout makes the work tree be exactly that commit: what differs is replaced, what
	// is not in it is removed. Submodules are left as empty directories, and nothing is
	// converted. What commands did before it has no part in what commands do after it.
	Checkout(ctx context.Context, sha string) error
	// Restore makes some paths be what they are in a commit: content, mode or link, or not
	// there at all. It knows no protected paths, for it brings nothing new.
	Restore(ctx context.Context, sha string, paths []string) error
	// Changes returns the files that differ from the checked-out commit, sorted; new files
	// that the repository ignores are left out. What is not a plain file is refused, and named.
	Changes(ctx context.Context) ([]Change, error)
	// Strays says which changes no commit takes, because their paths are protected or
	// somebody else's; nil where there is none.
	Strays(ctx context.Context) error
	// Run runs a command. A command that fails is a result; the error is for what could not
	// be run, a *pipeline.Fault of class sandbox when the sandbox itself failed.
	Run(ctx context.Context, c Command) (Result, error)
	// Close ends everything that was started, and removes the work tree.
	Close() error
}

// Files reads and edits a work tree. Paths are relative and slash-separated.
type Files interface {
	// List returns the names in a directory ("" for the top), sorted; those of directories
	// end in "/".
	List(ctx context.Context, dir string) ([]string, error)
	// Read returns a file's content. A file that does not exist is fs.ErrNotExist; one that
	// is not a plain file, or is too big, is refused.
	Read(ctx context.Context, path string) ([]byte, error)
	// Search returns at most max lines that match a regular expression (Go's syntax) in the
	// files that match a glob ("" for all), each as "path:line: text".
	Search(ctx context.Context, pattern, glob string, max int) ([]string, error)
	// Symbols returns where functions, types and the like are defined whose names contain
	// the query, without case: "path:line: kind name" and the line itself.
	Symbols(ctx context.Context, query string, max int) (string, error)
	// Write makes or replaces a file, with the directories on the way. It never goes through
	// a symbolic link, and refuses protected paths (*ProtectedError).
	Write(ctx context.Context, path string, content []byte) error
	// Remove removes a file, or a directory with all that is in it. Protected paths are
	// refused (*ProtectedError), and so is a directory that holds one.
	Remove(ctx context.Context, path string) error
}

// History tells how the files of a work tree came to be.
type History interface {
	// Log returns the newest commits that changed a path ("" for all), one a line.
	Log(ctx context.Context, path string, n int) (string, error)
	// Blame returns which commit each line of a file is from, from and to included.
	Blame(ctx context.Context, path string, from, to int) (string, error)
	// Diff returns the patch from a commit ("" for the checked-out one) to the work tree as
	// it stands, in one file or directory ("" for all).
	Diff(ctx context.Context, base, path string) (string, error)
}

// Command is a process to run in the workspace. Args[0] is looked up inside the
// sandbox; nothing goes through a shell unless Args says so.
type Command struct {
	Args    []string      `json:"args"`
	Dir     string        `json:"dir,omitempty"`     // relative to the work tree
	Env     []string      `json:"env,omitempty"`     // KEY=value, on top of the sandbox's own
	Timeout time.Duration `json:"timeout,omitempty"` // 0: the sandbox's default
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

// OpenOptions describe one workspace.
type OpenOptions struct {
	Name      string            // of the run; for people
	GitDir    string            // the bare git directory to check out of; the worker only reads it
	Commit    string            // SHA to check out; empty: none yet
	Cache     string            // key of its environments: one per repository, never shared between two
	Protected []string          // globs that Write and Remove refuse, on top of the built-in ones; one that names a directory protects what is in it
	Allow     []string          // globs that the operator opted in to although they are protected
	Owners    map[string]string // whose the paths of a glob of Protected are, for people and models: "the module auth"
	Taken     map[string]string // files that Write and Remove refuse besides, each with whose it is
	Root      string            // of an image that commands see in the place of the server's system; "": that
	RootEnv   []string          // KEY=value, as the image has commands begin
	Owner     int64             // whom its commands are counted for, where only so many run at the same time: the run as a whole
}

// ProtectedError is a change that nobody has opted in to.
type ProtectedError struct {
	Path       string `json:"path"`
	Rule       string `json:"rule"`                 // the glob that protects it
	Repository bool   `json:"repository,omitempty"` // the rule is of paths.protected, not a built-in one
	Owner      string `json:"owner,omitempty"`      // whose the path is, where it is protected from a module: "the module auth"
}

func (e *ProtectedError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("%s belongs to %s (%q): leave it as it is, and say in the summary what you need of it", e.Path, e.Owner, e.Rule)
	}
	if e.Repository {
		return fmt.Sprintf("%s is protected by the rule %q of paths.protected in the settings: leave it as it is; a maintainer must make this change", e.Path, e.Rule)
	}
	return fmt.Sprintf("%s is protected by the built-in rule %q, since it acts on whoever merges or checks out the change: leave it as it is; "+
		"a maintainer must make this change, or the operator must allow the path", e.Path, e.Rule)
}

// Protected returns the path, so that a caller can recognise this error by its method.
func (e *ProtectedError) Protected() string { return e.Path }
