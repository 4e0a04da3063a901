package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// Revert makes a commit on o.Parent that takes back what came with the commits after
// from up to to, as git revert does, each of them or the merge at once. It touches no
// work tree. o.Changes is not used. With conflicts there is no commit.
func (g *Gateway) Revert(ctx context.Context, repo pipeline.Repo, from, to string, o workspace.CommitOptions) (workspace.Merged, error) {
	o.Changes = nil
	doing := fmt.Sprintf("revert %s of %s", short(to), repo.FullName())
	if err := errors.Join(checkCommit(&o), checkOIDs(from, to, o.Parent)); err != nil {
		return workspace.Merged{}, fmt.Errorf("%s: %w", doing, err)
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	m, err := g.git(repo).revert(ctx, &o, from, to)
	if err != nil {
		return workspace.Merged{}, fmt.Errorf("%s: %w", doing, err)
	}
	return m, nil
}

// revert merges three ways, with the commit that is taken back as the base: git before
// 2.40 finds a base by itself alone, so what was before is made a child of it.
func (g git) revert(ctx context.Context, o *workspace.CommitOptions, from, to string) (m workspace.Merged, err error) {
	if there, err := g.holds(ctx, o.Parent, to); err != nil {
		return m, err
	} else if !there {
		return m, irreversible("%s does not hold it", short(o.Parent))
	}
	tree, err := line(g.run(ctx, gitCall{args: []string{"rev-parse", "--verify", from + "^{tree}"}}))
	if err != nil {
		return m, err
	}
	before, err := g.commitTree(ctx, o, tree, to)
	if err != nil {
		return m, err
	}
	var failed *gitError
	out, err := g.run(ctx, gitCall{args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--messages", o.Parent, before}})
	if errors.As(err, &failed) && failed.code == 1 {
		_, rest, _ := strings.Cut(failed.stdout, "\x00")
		m.Conflicts, m.Why = conflicts(rest)
		return m, nil
	} else if err != nil {
		return m, err
	}
	tree, _, _ = strings.Cut(string(out), "\x00")
	now, err := line(g.run(ctx, gitCall{args: []string{"rev-parse", "--verify", o.Parent + "^{tree}"}}))
	if err != nil {
		return m, err
	}
	if now == tree { // it was taken back already
		return workspace.Merged{SHA: o.Parent}, nil
	}
	m.SHA, err = g.commitTree(ctx, o, tree, o.Parent)
	return m, err
}

// irreversible is that there is nothing to take back.
func irreversible(format string, args ...any) error {
	return &pipeline.Fault{Class: pipeline.FaultEnvironment, Final: true, Message: fmt.Sprintf(format, args...)}
}

// mostRebased is how many commits of a rebased pull request are looked for.
const mostRebased = 250

// Landed says before which commit a pull request came to its branch, of which GitHub
// says what its head was and which commit it was merged as: a merge, one squashed
// commit, or the last of its own, rebased.
func (g *Gateway) Landed(ctx context.Context, repo pipeline.Repo, head, merged string) (before string, err error) {
	if err := checkOIDs(head, merged); err != nil {
		return "", err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	git := g.git(repo)
	_, parents, _, err := readCommit(ctx, git, merged)
	if err != nil {
		return "", err
	}
	if len(parents) == 0 {
		return "", irreversible("%s is the first commit", short(merged))
	}
	if len(parents) > 1 {
		return parents[0], nil
	}
	own, err := logOf(ctx, git, head, "^"+merged)
	if err != nil {
		return "", err
	}
	landed, err := logOf(ctx, git, "-n", fmt.Sprint(max(1, len(own))), merged)
	if err != nil {
		return "", err
	}
	if len(own) < 2 || len(own) != len(landed) || !slices.EqualFunc(own, landed, func(a, b loggedCommit) bool { return a.what == b.what }) {
		return parents[0], nil
	}
	return landed[len(landed)-1].parent, nil
}

// loggedCommit is a commit with what a rebase keeps of it.
type loggedCommit struct{ parent, what string }

// logOf lists commits, newest first, merges aside: a rebase drops them.
func logOf(ctx context.Context, git git, revisions ...string) (out []loggedCommit, err error) {
	args := append([]string{"log", "-z", "--no-merges", "--topo-order", fmt.Sprintf("--max-count=%d", mostRebased),
		"--format=format:%P%x00%an%n%ae%n%at%n%B"}, revisions...)
	raw, err := git.run(ctx, gitCall{args: append(args, "--")})
	if err != nil {
		return nil, err
	}
	for fields := strings.Split(string(raw), "\x00"); len(fields) > 1; fields = fields[2:] {
		parent, _, _ := strings.Cut(fields[0], " ")
		out = append(out, loggedCommit{parent, strings.TrimSpace(fields[1])})
	}
	return out, nil
}

// Changed lists the files that differ between two commits.
func (g *Gateway) Changed(ctx context.Context, repo pipeline.Repo, from, to string) ([]string, error) {
	if err := checkOIDs(from, to); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	out, err := g.git(repo).run(ctx, gitCall{max: maxDiffBytes,
		args: []string{"diff-tree", "-r", "--name-only", "--no-renames", "--no-ext-diff", "-z", from, to, "--"}})
	if err != nil {
		return nil, fmt.Errorf("what differs between %s and %s: %w", short(from), short(to), err)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}
