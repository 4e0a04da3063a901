package workspace

import (
	"context"
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// Git is the history of repositories, kept in bare mirrors that commands cannot reach.
// SHAs are full. Fetch, Push and their like are the only calls that leave this machine.
type Git interface {
	Trees

	// Dir is the repository's bare git directory. It is only ever read by others.
	Dir(repo pipeline.Repo) string
	// Fetch brings branches (by name), refs ("refs/pull/7/head") and commits into the
	// mirror. Errors are *pipeline.Fault; Final when the repository or the ref does not exist.
	Fetch(ctx context.Context, repo pipeline.Repo, token string, refs ...string) error
	// Commit makes a commit of the parent's tree with the changes, and returns its SHA; the
	// parent's when the changes change nothing. A protected path is a *ProtectedError; what
	// looks like a secret is a *pipeline.Fault of that class.
	Commit(ctx context.Context, repo pipeline.Repo, o CommitOptions) (string, error)
	// Merge makes a commit that brings theirs into o.Parent: the parent's own when it holds
	// theirs already. Nothing is pushed.
	Merge(ctx context.Context, repo pipeline.Repo, theirs string, o CommitOptions) (Merged, error)
	// Met says which commits of others a merge had a conflict with in paths. own tells whose
	// authors' commits are not looked at.
	Met(ctx context.Context, repo pipeline.Repo, ours, theirs, result string, paths []string, own func(name, email string) bool) ([]module.Met, error)
	// Mask takes the secrets out of a text.
	Mask(s string) string
}

// Trees are the files and the commits of a mirror.
type Trees interface {
	// Resolve returns the SHA of a branch or ref as it was last fetched, or of a commit.
	// Errors wrap fs.ErrNotExist when there is none.
	Resolve(ctx context.Context, repo pipeline.Repo, ref string) (string, error)
	// Files returns the paths of all files in a commit, sorted.
	Files(ctx context.Context, repo pipeline.Repo, sha string) ([]string, error)
	// File returns a file as it is in a commit, up to 10 MiB; of a symbolic link, its
	// target. Errors wrap fs.ErrNotExist when there is none.
	File(ctx context.Context, repo pipeline.Repo, sha, path string) ([]byte, error)
	// ReadFiles returns files as they are in a commit, by path. Those that are not there are
	// left out, and those over 10 MiB.
	ReadFiles(ctx context.Context, repo pipeline.Repo, sha string, paths []string) (map[string][]byte, error)
	// Diff returns the unified patch between two commits, renames found. A patch over 32 MiB
	// is an error, never cut short.
	Diff(ctx context.Context, repo pipeline.Repo, from, to string) (string, error)
	// Changed lists the files that differ between two commits.
	Changed(ctx context.Context, repo pipeline.Repo, from, to string) ([]string, error)
	// CommitAt returns the tree, the parents and the message of a commit.
	CommitAt(ctx context.Context, repo pipeline.Repo, sha string) (tree string, parents []string, message string, err error)
	// Subjects returns the first lines of the newest commits up to one, at most n, without merges.
	Subjects(ctx context.Context, repo pipeline.Repo, sha string, n int) ([]string, error)
	// Holds reports whether a commit is another one, or is made on it.
	Holds(ctx context.Context, repo pipeline.Repo, sha, ancestor string) (bool, error)
}

// CommitOptions say what to commit on what.
type CommitOptions struct {
	Parent    string   // SHA; empty for the first commit of a repository
	Parents   []string // of the commit, where that is not Parent alone; it is made even of no changes
	Message   string   // of a model or a person: whatever GitHub or git would act on is neutralised, trailers are ordinary text
	Run       string   // becomes the one Forge-Run trailer, when it is not empty
	Signoff   bool     // with a Signed-off-by trailer of the author
	Author    string
	Email     string
	Time      time.Time // fixed, so that the same input gives the same SHA
	Changes   []Change
	Protected []string          // globs, on top of the built-in ones
	Owners    map[string]string // as in OpenOptions
	Taken     map[string]string // as there
	Allow     []string          // globs that the operator opted in to although they are protected
	Base      string            // of a merge: what the parent was made from, where its history does not tell; see Merge
	Cleared   []string          // what looks like a secret and was let pass, by the names that the faults gave it
}

// Merged is what became of a merge.
type Merged struct {
	SHA       string   // of the merge; empty with conflicts
	Conflicts []string // paths that do not merge by themselves
	Markers   string   // with conflicts: SHA of a commit that holds the merge with markers in these paths, to be merged by hand; nothing refers to it
	Why       []string // with conflicts: git's words, one for each
}

// PushOptions say what to push where.
type PushOptions struct {
	Branch  string
	SHA     string
	Old     string   // where the branch must be; "" when it must not exist
	Base    string   // a commit that the remote has, from which the work began; may be ""
	Cleared []string // as in CommitOptions
}

// MovedError says that somebody else moved the branch: nothing was pushed.
type MovedError struct {
	Branch string
	Head   string // SHA that the branch is at now; empty when it is gone
}

func (e *MovedError) Error() string {
	if e.Head == "" {
		return "branch " + e.Branch + " was deleted by somebody else"
	}
	return "branch " + e.Branch + " was moved by somebody else, to " + e.Head
}

// Moved returns the branch's head, so that a caller can tell this error by its method.
func (e *MovedError) Moved() string { return e.Head }

// RejectedError says that the remote's rules refuse the push: branch protection,
// a ruleset, push protection, a hook. Trying again cannot help.
type RejectedError struct {
	Branch string
	Reason string // the remote's words, shortened
}

func (e *RejectedError) Error() string {
	return "the remote refuses a push to " + e.Branch + ": " + e.Reason
}

// Rejected returns the reason, so that a caller can tell this error by its method.
func (e *RejectedError) Rejected() string { return e.Reason }

// Replay is a commit as an API that takes whole files can make it once more.
type Replay struct {
	SHA, Tree string
	Parent    string
	Merged    string // the second parent of a merge; its changes are not listed
	Message   string
	Changes   []Change
}

// Shipped is a commit of a branch's main line: a merge stands for all that it merges.
type Shipped struct {
	SHA     string
	Message string
	Files   []string // that it changes there
}
