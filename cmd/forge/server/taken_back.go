package server

import (
	"context"
	"strings"

	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// mostEarlier is with how many earlier deployments' files one is compared.
const mostEarlier = 20

// takenBack finds what a deployment takes back: all that it does, when its files are those that
// ran there before, or nothing but reverts came with it; or besides what it brings, by a revert
// or because it has not all of what ran there.
func (c deployedCode) takenBack(ctx context.Context, repo pipeline.Repo, f *production.Facts, shipped []workspace.Shipped) error {
	d := f.Deployment
	tree := func(sha string) string {
		out, _, _, err := c.gateway.CommitAt(ctx, repo, sha)
		if err != nil { // it may be gone
			return ""
		}
		return out
	}
	reverts := 0
	for _, s := range shipped {
		if what := revertOf(s.Message); what != "" {
			f.Undoes = what
			reverts++
		}
	}
	if reverts > 0 && reverts == len(shipped) {
		f.Back = "it takes back " + f.Undoes + " and does nothing else"
	}
	if d.Previous == "" {
		return nil
	}
	lacks, err := c.gateway.Shipped(ctx, repo, d.Commit, d.Previous, 1)
	if err != nil {
		return err
	}
	if len(lacks) > 0 && f.Undoes == "" { // such as a hotfix of a branch that was cut before
		f.Undoes = "what ran there as " + text.ShortSHA(d.Previous)
	}
	now := tree(d.Commit)
	if now == "" {
		return ctx.Err()
	}
	if len(shipped) > 0 && tree(d.Previous) == now {
		f.Nothing = true
	}
	list, err := c.db.Deployments(ctx, store.DeploymentFilter{Repo: repo.FullName(), Environment: d.Environment, Limit: 100})
	if err != nil {
		return err
	}
	seen := map[string]bool{d.Commit: true, d.Previous: true}
	for _, o := range list {
		if o.Succeeded.IsZero() || o.ID >= d.ID || seen[o.Commit] || len(seen) > mostEarlier {
			continue
		}
		if seen[o.Commit] = true; tree(o.Commit) == now {
			f.Back = "it brought back what ran there before, as " + text.ShortSHA(o.Commit)
			break
		}
	}
	return ctx.Err()
}

var (
	mergedRevert = lazyregexp.New(`^Merge pull request #\d+ from \S+/revert-\d+-`)
	revertsNote  = lazyregexp.New(`(?im)^this reverts (commit [0-9a-f]{7,40}|merge request)`)
)

// revertOf says what a commit takes back, "" when it does not. A revert of a revert brings
// something.
func revertOf(message string) string {
	title, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if merged := mergedRevert.MatchString(title); merged || strings.HasPrefix(title, "Merge ") {
		if body := text.FirstLine(strings.TrimSpace(rest)); body != "" {
			title = body
		} else if merged {
			return text.Clip(title, 100)
		}
	}
	what, n := title, 0
	for strings.HasPrefix(what, `Revert "`) {
		what = strings.TrimPrefix(what, `Revert "`)
		n++
	}
	switch {
	case n%2 == 1:
		what, _, _ = strings.Cut(what, `"`)
		return text.Clip("“"+what+"”", 100)
	case n == 0 && !strings.HasPrefix(title, "Reapply ") && revertsNote.MatchString(rest):
		return text.Clip("by “"+title+"”", 100)
	}
	return ""
}
