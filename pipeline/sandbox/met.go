package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	parts "forge/pipeline/module"
)

// mostMet is how many commits of a side are looked at for each path in conflict.
const mostMet = 20

// Met says which commits of others a merge had a conflict with in paths, and how many of the
// lines that they brought stand in what was made of it. own tells whose authors' commits are
// not looked at.
func (g *Gateway) Met(ctx context.Context, repo pipeline.Repo, ours, theirs, result string, paths []string, own func(name, email string) bool) (out []parts.Met, err error) {
	if err := checkOIDs(ours, theirs, result); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	git := g.git(repo)
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, err
		}
		left := linesOf(ctx, git, result, path)
		for _, side := range [][2]string{{ours, theirs}, {theirs, ours}} {
			met, err := metOn(ctx, git, side[0], side[1], path, own)
			if err != nil {
				return nil, fmt.Errorf("commits that met in %s: %w", path, err)
			}
			stood := linesOf(ctx, git, side[1], path)
			for _, m := range met {
				added, err := addedBy(ctx, git, m.Commit, path)
				if err != nil {
					return nil, err
				}
				for _, line := range added {
					if stood[line] { // else a later commit took it away
						m.Lines++
					}
					if stood[line] && left[line] {
						m.Kept++
					}
				}
				out = append(out, m)
			}
		}
	}
	return out, nil
}

// metOn lists the commits of others that changed a path on one side alone, newest first.
func metOn(ctx context.Context, git git, other, tip, path string, own func(name, email string) bool) (out []parts.Met, err error) {
	raw, err := git.run(ctx, gitCall{args: []string{"log", "-z", "--no-merges", "--format=tformat:%H%x00%an%x00%ae%x00%s", "-n", fmt.Sprint(mostMet), other + ".." + tip, "--", path}})
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	for fields := range slices.Chunk(strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"), 4) {
		if len(fields) == 4 && !own(fields[1], fields[2]) {
			out = append(out, parts.Met{Path: path, Commit: fields[0], By: fields[1], Subject: fields[3]})
		}
	}
	return out, nil
}

// addedBy are the lines that a commit brought to a path, each once, blank ones aside.
func addedBy(ctx context.Context, git git, sha, path string) (out []string, err error) {
	raw, err := git.run(ctx, gitCall{max: maxDiffBytes, args: []string{"show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", sha, "--", path}})
	if err != nil {
		return nil, err
	}
	inHunk := false
	for line := range strings.SplitSeq(string(raw), "\n") {
		added, is := strings.CutPrefix(line, "+")
		added = strings.TrimSpace(added)
		if inHunk = inHunk || strings.HasPrefix(line, "@@"); inHunk && is && added != "" && !slices.Contains(out, added) {
			out = append(out, added)
		}
	}
	return out, nil
}

// linesOf are the lines of a file at a commit; none where it is not there.
func linesOf(ctx context.Context, git git, sha, path string) map[string]bool {
	raw, err := git.run(ctx, gitCall{max: maxDiffBytes, args: []string{"cat-file", "blob", sha + ":" + path}})
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for line := range strings.SplitSeq(string(raw), "\n") {
		out[strings.TrimSpace(line)] = true
	}
	return out
}
