package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// secretRule begins the rules of findings about secrets.
const secretRule = "secrets."

// leaks adds to a review what looks like a secret in the change and nobody let pass. What Forge pushes
// was looked through before; what people push was not. The value is nowhere in it.
func (x *Executor) leaks(ctx context.Context, run *pipeline.Run, review *pipeline.Review) error {
	found, unread, err := x.o.Gateway.Leaks(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return err
	}
	for _, path := range unread {
		if !slices.ContainsFunc(review.NotReviewed, func(s pipeline.Skipped) bool { return s.Path == path }) {
			review.NotReviewed = append(review.NotReviewed, pipeline.Skipped{Path: path, Why: "too big to be looked through for secrets"})
		}
	}
	for _, l := range found[:min(len(found), text.MaxLeaks)] {
		if run.Cleared[l.Name] != "" {
			continue
		}
		review.Findings = append(review.Findings, pipeline.Finding{Severity: pipeline.SeverityCritical, Category: pipeline.CategorySecurity, Rule: secretRule + l.Rule,
			File: l.File, Line: l.Line, Confidence: 1, Message: fmt.Sprintf("This looks like a secret (%s, %s). Take it out, and have whoever owns it revoke it: "+
				`the branch's history keeps it. A value that is made up should say so ("example", "xxxx")`, l.Rule, l.Redacted)})
	}
	words, err := x.leaksBefore(ctx, run, found)
	if err == nil && len(words) > 0 {
		review.NeedsHuman = strings.Join(slices.DeleteFunc(append([]string{review.NeedsHuman}, words...), func(s string) bool { return s == "" }), "; ")
	}
	return err
}

// leaksBefore says which commits of the branch brought in a secret that a later one has taken out
// again. The implementer cannot mend that: a human is asked, once for each.
func (x *Executor) leaksBefore(ctx context.Context, run *pipeline.Run, still []text.Leak) (words []string, err error) {
	not := []string{run.Base}
	if run.BaseHead != "" { // what came from the base branch was there before
		if _, err := x.o.Gateway.Resolve(ctx, run.Repo, run.BaseHead); err == nil {
			not = append(not, run.BaseHead)
		}
	}
	found, more, err := x.o.Gateway.LeaksOfCommits(ctx, run.Repo, run.Head, not...)
	for _, l := range found {
		same := func(s text.Leak) bool { return s.Rule == l.Rule && s.Redacted == l.Redacted && s.Name == l.Name }
		place := "its message"
		if l.File != "" {
			place = fmt.Sprintf("%s:%d", l.File, l.Line)
		}
		named := fmt.Sprintf("commit %s holds in %s", text.ShortSHA(l.Commit), place)
		told := func(is pipeline.Issue) bool { // as a finding, which says the same of the history
			return is.Finding.Rule == secretRule+l.Rule && is.Finding.File == l.File && strings.Contains(is.Finding.Message, l.Redacted)
		}
		known := slices.ContainsFunc(still, same) || slices.ContainsFunc(run.Findings, told)
		if known || run.Cleared[l.Name] != "" || approved(run, named) || len(words) == text.MaxLeaks {
			continue
		}
		words = append(words, fmt.Sprintf("%s what looks like a secret (%s, %s). A later one takes it out, but the branch's history keeps it: whoever owns it has to revoke it, "+
			"and only rewriting the history takes it out (rebase without it, and force-push)", named, l.Rule, l.Redacted))
	}
	if old := fmt.Sprintf("%s of the branch, the oldest, were not looked through for secrets", text.Plural(more, "commit", "commits")); more > 0 && !approved(run, old) {
		words = append(words, old)
	}
	return words, err
}

// approved reports whether a human has let pass what such words asked about.
func approved(run *pipeline.Run, words string) bool {
	return slices.ContainsFunc(run.Gates, func(g pipeline.Gate) bool {
		n := len(g.Answers)
		return g.Guard != nil && g.Guard.Name == pipeline.GuardHuman && strings.Contains(g.Guard.Detail, words) && n > 0 && g.Answers[n-1].Choice == "approve"
	})
}
