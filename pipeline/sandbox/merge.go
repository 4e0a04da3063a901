package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// Merge makes a commit that brings theirs into o.Parent: the parent's own when it
// holds theirs already. It touches no work tree and runs nothing of the repository.
// o.Changes is not used. The same options give the same SHAs; nothing is pushed. Where
// somebody has begun the branch anew and the two have no history in common, the trees
// decide: the parent's counts as made from o.Base.
func (g *Gateway) Merge(ctx context.Context, repo pipeline.Repo, theirs string, o workspace.CommitOptions) (workspace.Merged, error) {
	o.Changes = nil
	doing := fmt.Sprintf("merge %s into %s of %s", theirs, o.Parent, repo.FullName())
	if err := errors.Join(checkCommit(&o), checkOIDs(theirs, o.Parent, cmp.Or(o.Base, o.Parent))); err != nil {
		return workspace.Merged{}, fmt.Errorf("%s: %w", doing, err)
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	m, err := g.git(repo).merge(ctx, &o, theirs)
	if err != nil {
		return workspace.Merged{}, fmt.Errorf("%s: %w", doing, err)
	}
	return m, nil
}

// Holds reports whether a commit is another one, or is made on it. One that is not in the
// mirror is in the history of none that is.
func (g *Gateway) Holds(ctx context.Context, repo pipeline.Repo, sha, ancestor string) (bool, error) {
	if err := checkOIDs(sha, ancestor); err != nil {
		return false, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	if !g.has(ctx, repo, ancestor) && g.has(ctx, repo, sha) {
		return false, ctx.Err()
	}
	return g.git(repo).holds(ctx, sha, ancestor)
}

// holds reports whether a commit is another one, or is made on it.
func (g git) holds(ctx context.Context, sha, ancestor string) (bool, error) {
	_, err := g.run(ctx, gitCall{args: []string{"merge-base", "--is-ancestor", ancestor, sha}})
	var failed *gitError
	if errors.As(err, &failed) && failed.code == 1 {
		return false, nil
	}
	return err == nil, err
}

func (g git) merge(ctx context.Context, o *workspace.CommitOptions, theirs string) (m workspace.Merged, err error) {
	if there, err := g.holds(ctx, o.Parent, theirs); err != nil {
		return m, err
	} else if there {
		return workspace.Merged{SHA: o.Parent}, nil
	}
	ours, err := g.related(ctx, o, theirs)
	if err != nil {
		return m, err
	}
	var failed *gitError
	out, err := g.run(ctx, gitCall{args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs}})
	if errors.As(err, &failed) && failed.code == 1 {
		out = []byte(failed.stdout)
	} else if err != nil {
		return m, err
	}
	tree, rest, _ := strings.Cut(string(out), "\x00")
	m.Conflicts, m.Why = conflicts(rest)
	sha, err := g.commitTree(ctx, o, tree, o.Parent, theirs)
	if failed != nil && failed.stdout != "" {
		m.Markers = sha
	} else {
		m.SHA, m.Conflicts, m.Why = sha, nil, nil
	}
	return m, err
}

// related is the parent, or, where it has no history in common with theirs, a commit of its
// tree that is made on o.Base. Nothing refers to that one: it is for a merge to be tried with.
func (g git) related(ctx context.Context, o *workspace.CommitOptions, theirs string) (string, error) {
	_, err := g.run(ctx, gitCall{args: []string{"merge-base", o.Parent, theirs}})
	var failed *gitError
	if err == nil || o.Base == "" || !errors.As(err, &failed) || failed.code != 1 {
		return o.Parent, err
	}
	return g.commitTree(ctx, o, o.Parent+"^{tree}", o.Base)
}

// conflicts reads what git merge-tree -z --name-only says behind the tree: paths, an
// empty one, then messages of a number of paths, these, a kind, and a text, each ended
// by a NUL.
func conflicts(s string) (paths, why []string) {
	fields := strings.Split(s, "\x00")
	for len(fields) > 0 && fields[0] != "" {
		paths, fields = append(paths, fields[0]), fields[1:]
	}
	for fields = fields[min(1, len(fields)):]; len(fields) > 3; {
		n, err := strconv.Atoi(fields[0])
		if err != nil || n < 0 || len(fields) < n+3 {
			break
		}
		if strings.HasPrefix(fields[n+1], "CONFLICT") {
			why = append(why, text.OneLine(fields[n+2]))
		}
		fields = fields[n+3:]
	}
	return paths, why
}
