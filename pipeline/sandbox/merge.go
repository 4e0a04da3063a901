package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"forge/pipeline"
)

// Merge makes a commit that brings theirs into o.Parent, and returns its SHA: the
// parent's when it holds theirs already. It touches no work tree and runs nothing
// of the repository. Paths that do not merge by themselves are returned as
// conflicts; then there is no commit. o.Changes is not used. The same options give
// the same SHA; it is not pushed.
func (g *Gateway) Merge(ctx context.Context, repo pipeline.Repo, theirs string, o CommitOptions) (sha string, conflicts []string, err error) {
	o.Changes = nil
	doing := fmt.Sprintf("merge %s into %s of %s", theirs, o.Parent, repo.FullName())
	if err := errors.Join(o.check(), checkOIDs(theirs, o.Parent)); err != nil {
		return "", nil, fmt.Errorf("%s: %w", doing, err)
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	git := g.git(repo)
	var failed *gitError
	_, err = git.run(ctx, gitCall{args: []string{"merge-base", "--is-ancestor", theirs, o.Parent}})
	switch {
	case err == nil:
		return o.Parent, nil, nil
	case !errors.As(err, &failed) || failed.code != 1:
		return "", nil, fmt.Errorf("%s: %w", doing, err)
	}
	out, err := git.run(ctx, gitCall{args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", o.Parent, theirs}})
	if errors.As(err, &failed) && failed.code == 1 { // the tree, then the paths, each ended by a NUL
		for path := range bytes.SplitSeq([]byte(failed.stdout), []byte{0}) {
			if name := string(path); name != "" && !isOID(name) {
				conflicts = append(conflicts, name)
			}
		}
		return "", conflicts, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", doing, err)
	}
	tree := strings.Trim(string(out), "\x00\n")
	if sha, err = o.commitTree(ctx, git, tree, o.Parent, theirs); err != nil {
		return "", nil, fmt.Errorf("%s: %w", doing, err)
	}
	return sha, nil, nil
}
