package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// maxReplay is what the files of one commit may hold that is made by an API: GitHub
// takes no larger request.
const maxReplay = 30 << 20

// Replays lists the commits that a push would bring to the remote, the oldest first,
// after the checks that a push makes. A commit that such an API cannot make is a
// *RejectedError that names what is in its way: it must not be made another one.
func (g *Gateway) Replays(ctx context.Context, repo pipeline.Repo, o workspace.PushOptions) ([]workspace.Replay, error) {
	if err := g.checkBranch(o.Branch); err != nil {
		return nil, err
	}
	from := o.Old
	if from == "" {
		from = o.Base
	}
	if err := checkOIDs(o.SHA, from); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	if err := g.checkForward(ctx, repo, o.Branch, o.SHA, from); err != nil {
		return nil, err
	}
	git := g.git(repo)
	if err := g.checkPush(ctx, git, o); err != nil {
		return nil, err
	}
	out, err := git.run(ctx, gitCall{args: []string{"rev-list", "--reverse", "--first-parent", from + ".." + o.SHA, "--"}})
	if err != nil {
		return nil, fmt.Errorf("list the commits from %s to %s: %w", from, o.SHA, err)
	}
	var list []workspace.Replay
	for _, sha := range strings.Fields(string(out)) {
		r, err := replayOf(ctx, git, sha)
		var why inexpressible
		if errors.As(err, &why) {
			return nil, &workspace.RejectedError{Branch: o.Branch, Reason: fmt.Sprintf("the API that signs %s", why)}
		}
		if err != nil {
			return nil, fmt.Errorf("read commit %s: %w", sha, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// inexpressible says what an API that takes whole files cannot do.
type inexpressible string

func (e inexpressible) Error() string { return string(e) }

func replayOf(ctx context.Context, git git, sha string) (workspace.Replay, error) {
	tree, parents, message, err := readCommit(ctx, git, sha)
	r := workspace.Replay{SHA: sha, Tree: tree, Message: message}
	switch {
	case err != nil:
		return r, err
	case len(parents) == 0:
		return r, inexpressible("makes no first commits")
	case len(parents) > 2:
		return r, inexpressible("makes no merge of more than two branches")
	case len(parents) == 2:
		r.Parent, r.Merged = parents[0], parents[1]
		return r, nil
	}
	r.Parent = parents[0]
	out, err := git.run(ctx, gitCall{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id", r.Parent, sha, "--"}})
	if err != nil {
		return r, err
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var oids []string
	for i := 0; i+1 < len(fields); i += 2 {
		meta, path := strings.Fields(fields[i]), fields[i+1] // :100644 100644 OLD NEW M
		if len(meta) != 5 {
			return r, fmt.Errorf("git diff-tree says %q", fields[i])
		}
		c := workspace.Change{Path: path, Deleted: meta[4] == "D"}
		if why := unable(strings.TrimPrefix(meta[0], ":"), meta[1], c); why != "" {
			return r, inexpressible(why)
		}
		r.Changes = append(r.Changes, c)
		oids = append(oids, meta[3])
	}
	contents, err := blobs(ctx, git, oids)
	if err != nil {
		return r, err
	}
	size := 0
	for i := range r.Changes {
		if r.Changes[i].Deleted {
			continue
		}
		r.Changes[i].Content = slices.Clone(contents[i])
		size += len(contents[i])
	}
	if size > maxReplay {
		return r, inexpressible(fmt.Sprintf("takes no %d MB at once", size>>20))
	}
	return r, nil
}

// unable says why a change of a path cannot be told to such an API: it knows neither
// modes nor links nor submodules, and names must be text.
func unable(before, after string, c workspace.Change) string {
	switch {
	case !utf8.ValidString(c.Path):
		return fmt.Sprintf("takes no name that is not UTF-8: %q", c.Path)
	case before == "160000" || after == "160000":
		return fmt.Sprintf("cannot change the submodule %q", c.Path)
	case c.Deleted:
		return ""
	case before == "120000" || after == "120000":
		return fmt.Sprintf("cannot make or change the symbolic link %q", c.Path)
	case after == "100755":
		return fmt.Sprintf("would take the executable bit of %q away", c.Path)
	}
	return ""
}

// CommitAt returns the tree, the parents and the message of a commit in the mirror.
func (g *Gateway) CommitAt(ctx context.Context, repo pipeline.Repo, sha string) (tree string, parents []string, message string, err error) {
	if err := checkOIDs(sha); err != nil {
		return "", nil, "", err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	return readCommit(ctx, g.git(repo), sha)
}

func readCommit(ctx context.Context, git git, sha string) (tree string, parents []string, message string, err error) {
	raw, err := git.run(ctx, gitCall{args: []string{"cat-file", "commit", sha}})
	if err != nil {
		return "", nil, "", fmt.Errorf("read commit %s: %w", sha, err)
	}
	head, message, _ := strings.Cut(string(raw), "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		if rest, ok := strings.CutPrefix(line, "tree "); ok {
			tree = rest
		}
		if rest, ok := strings.CutPrefix(line, "parent "); ok {
			parents = append(parents, rest)
		}
	}
	return tree, parents, message, nil
}
