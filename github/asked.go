package github

import (
	"context"
	"fmt"
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// Requested reads what a human's review asks for: a finding of category "human" for its
// text, and one for each comment on the diff that came with it. Lines are those of
// the reviewed commit, 0 where a comment is about a whole file.
func (a *App) Requested(ctx context.Context, repo pipeline.Repo, pull int, f pipeline.Feedback) (pipeline.Review, error) {
	out := pipeline.Review{Head: f.Commit, Summary: f.Body}
	ask := func(text, file string, line, end int) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if _, command := delivery.ParseCommand(text, a.opts.Slug); command {
			return // it is carried out for itself
		}
		out.Findings = append(out.Findings, pipeline.Finding{
			Severity: pipeline.SeverityError, Category: pipeline.CategoryHuman, Message: render.Cut(text, 4000), File: file, Line: line, EndLine: end, Confidence: 1})
	}
	ask(f.Body, "", 0, 0)
	s, err := a.session(repo)
	if err != nil {
		return out, err
	}
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := s.rest.PullRequests.ListReviewComments(ctx, repo.Owner, repo.Name, pull, f.Review, opts)
		if err = explain(fmt.Sprintf("list the comments of review %d of %s#%d", f.Review, repo.FullName(), pull), "pull_requests: read", err); err != nil {
			return out, err
		}
		for _, c := range list {
			first, last := c.GetOriginalStartLine(), c.GetOriginalLine()
			if first == 0 {
				first, last = last, 0
			}
			ask(c.GetBody(), c.GetPath(), first, last)
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}
