package github

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// Requested reads what a human's review asks for by now: a finding of category "human" for its
// text, and one for each comment on the diff that came with it. Lines are those of
// the reviewed commit, 0 where a comment is about a whole file. A review that was
// dismissed, or is gone, asks for nothing, nor does one of which a new comment is told, unless it requests changes.
func (a *App) Requested(ctx context.Context, repo pipeline.Repo, pull int, f pipeline.Feedback) (pipeline.Review, error) {
	s, err := a.session(repo)
	if err != nil {
		return pipeline.Review{}, err
	}
	out := pipeline.Review{Head: f.Commit, Summary: f.Body}
	v, _, err := s.rest.PullRequests.GetReview(ctx, repo.Owner, repo.Name, pull, f.Review)
	switch err = explain(fmt.Sprintf("read review %d of %s#%d", f.Review, repo.FullName(), pull), "pull_requests: read", err); {
	case err == nil:
		out.Head, out.Summary = v.GetCommitID(), v.GetBody()
	case !gone(err):
		return pipeline.Review{}, err
	case f.Action != "submitted": // one that was is not gone: it may just not be readable everywhere yet
		return pipeline.Review{}, nil
	}
	if state := v.GetState(); state == "DISMISSED" || f.State == "dismissed" || f.Action == "created" && state != "CHANGES_REQUESTED" {
		return out, nil
	}
	ask := func(text string, of pipeline.Finding) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if _, command := delivery.ParseCommand(text, a.opts.Slug); command {
			return // it is carried out for itself
		}
		of.Severity, of.Category, of.Confidence, of.Message, of.Review = pipeline.SeverityError, pipeline.CategoryHuman, 1, render.Cut(text, 4000), f.Review
		out.Findings = append(out.Findings, of)
	}
	ask(out.Summary, pipeline.Finding{})
	err = s.reviewComments(ctx, repo, pull, f.Review, func(c *gh.PullRequestComment) {
		told, text := slices.Contains(f.Comments, c.GetID()), c.GetBody()
		switch { // what the delivery tells may not be readable everywhere yet
		case told && f.Action == "deleted":
			return
		case told && f.Action == "edited" && f.At.After(c.GetUpdatedAt().Time):
			text = f.Body
		}
		first, last := c.GetOriginalStartLine(), c.GetOriginalLine()
		if first == 0 {
			first, last = last, 0
		}
		ask(text, pipeline.Finding{File: c.GetPath(), Line: first, EndLine: last, Comment: c.GetID()})
	})
	return out, err
}

// reviewComments calls with for each comment on the diff that came with a review.
func (s *session) reviewComments(ctx context.Context, repo pipeline.Repo, pull int, review int64, with func(*gh.PullRequestComment)) error {
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := s.rest.PullRequests.ListReviewComments(ctx, repo.Owner, repo.Name, pull, review, opts)
		if err = explain(fmt.Sprintf("list the comments of review %d of %s#%d", review, repo.FullName(), pull), "pull_requests: read", err); err != nil {
			return err
		}
		for _, c := range list {
			with(c)
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return nil
}
