package github

import (
	"context"
	"fmt"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// Verdict is a check run on a commit that is no run's own: one of the merge queue's.
type Verdict struct {
	SHA        string
	Key        string // the same for the same verdict, so that it is shown once
	Conclusion string // success, failure or neutral
	Title      string
	Summary    string
}

// ShowVerdict shows a verdict under the name of Forge's check, or what it is now.
func (a *App) ShowVerdict(ctx context.Context, repo pipeline.Repo, v Verdict) error {
	s, err := a.session(repo)
	if err != nil {
		return err
	}
	op, status := fmt.Sprintf("show the verdict on %s of %s", text.ShortSHA(v.SHA), repo.FullName()), "completed"
	// Names of tests and what they print are the repository's.
	title, summary := render.Line(v.Title, a.web.Host, 255), render.Block(v.Summary, a.web.Host, render.MaxText)
	out := &gh.CheckRunOutput{Title: &title, Summary: &summary}
	list, _, err := s.rest.Checks.ListCheckRunsForRef(ctx, repo.Owner, repo.Name, v.SHA, &gh.ListCheckRunsOptions{
		CheckName: &a.opts.Slug, AppID: &a.opts.AppID, Filter: gh.String("all"), ListOptions: gh.ListOptions{PerPage: 100}})
	if err = explain(op, "checks: read", err); err != nil {
		return err
	}
	for _, c := range list.CheckRuns {
		if c.GetExternalID() != v.Key {
			continue
		}
		_, _, err = s.rest.Checks.UpdateCheckRun(ctx, repo.Owner, repo.Name, c.GetID(), gh.UpdateCheckRunOptions{
			Name: a.opts.Slug, Status: &status, Conclusion: &v.Conclusion, ExternalID: &v.Key, Output: out})
		return explain(op, permChecks, err)
	}
	_, _, err = s.rest.Checks.CreateCheckRun(ctx, repo.Owner, repo.Name, gh.CreateCheckRunOptions{
		Name: a.opts.Slug, HeadSHA: v.SHA, Status: &status, Conclusion: &v.Conclusion, ExternalID: &v.Key, Output: out})
	return explain(op, permChecks, err)
}
