package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// Shipped returns the commits of the main line that one commit has and another has
// not, newest first, at most n. Without the other one it is the newest alone.
func (g *Gateway) Shipped(ctx context.Context, repo pipeline.Repo, from, to string, n int) ([]workspace.Shipped, error) {
	span := to
	if from == "" {
		n = 1
	} else {
		span = from + ".." + to
		if err := checkOIDs(from); err != nil {
			return nil, err
		}
	}
	if err := checkOIDs(to); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	out, err := g.git(repo).run(ctx, gitCall{args: []string{"log", "--first-parent", "-z", "--format=format:%H%x00%B", "-n", strconv.Itoa(n), span, "--"}})
	if err != nil {
		return nil, fmt.Errorf("what %s brings: %w", short(to), err)
	}
	var list []workspace.Shipped
	var ids strings.Builder
	for fields := strings.Split(string(out), "\x00"); len(fields) > 1; fields = fields[2:] { // a message holds no NUL
		list = append(list, workspace.Shipped{SHA: fields[0], Message: fields[1]})
		ids.WriteString(fields[0] + "\n")
	}
	out, err = g.git(repo).run(ctx, gitCall{stdin: strings.NewReader(ids.String()), max: maxDiffBytes,
		args: []string{"diff-tree", "--stdin", "--root", "--diff-merges=first-parent", "-r", "--name-only", "--no-renames", "--no-ext-diff",
			"--ignore-submodules=all", "-z"}})
	if err != nil {
		return nil, fmt.Errorf("what %s changes: %w", short(to), err)
	}
	at := -1
	for name := range strings.SplitSeq(string(out), "\x00") {
		next := at + 1 // commits that change nothing are left out
		for next < len(list) && list[next].SHA != name {
			next++
		}
		switch {
		case next < len(list):
			at = next
		case at >= 0 && name != "":
			list[at].Files = append(list[at].Files, name)
		}
	}
	return list, nil
}

// Blame returns the commit of the main line by which a file's line came to be as it
// is; "" when there is no such line.
func (g *Gateway) Blame(ctx context.Context, repo pipeline.Repo, sha, path string, line int) (string, error) {
	if err := errors.Join(checkOIDs(sha), checkPath(path)); err != nil {
		return "", err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	git, at := g.git(repo), strconv.Itoa(line)
	out, err := git.run(ctx, gitCall{args: []string{"blame", "--first-parent", "--porcelain", "-L", at + "," + at, sha, "--", path}})
	var failed *gitError
	if errors.As(err, &failed) { // it has fewer lines, or there is no such file
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("who changed line %d of %s: %w", line, path, err)
	}
	commit, _, _ := strings.Cut(string(out), " ")
	return commit, checkOIDs(commit)
}
