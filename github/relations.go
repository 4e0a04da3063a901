package github

import (
	"context"
	"fmt"
	"net/http"

	"github.com/shurcooL/githubv4"

	"forge/pipeline"
	"forge/pipeline/text"
)

// mostSubIssues are read of one issue.
const mostSubIssues = 50

// Related says in lines how an issue stands to others: its type, the issue that it is part
// of, its open sub-issues, and how many it waits for. Titles are text of whoever wrote them.
func (a *App) Related(ctx context.Context, repo pipeline.Repo, issue int) (lines []string, err error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	var about struct { // the library lacks these
		Type *struct {
			Name string `json:"name"`
		} `json:"type"`
		Parent string `json:"parent_issue_url"`
		Sub    struct {
			Total, Completed int
		} `json:"sub_issues_summary"`
		Waits struct {
			BlockedBy int `json:"blocked_by"`
		} `json:"issue_dependencies_summary"`
	}
	op := fmt.Sprintf("read how %s#%d stands to other issues", repo.FullName(), issue)
	req, err := s.rest.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/issues/%d", repo.Owner, repo.Name, issue), nil)
	if err == nil {
		_, err = s.rest.Do(ctx, req, &about)
	}
	if err = explain(op, "issues: read", err); err != nil {
		return nil, err
	}
	if about.Type != nil && about.Type.Name != "" {
		lines = append(lines, "its type: "+text.Clip(text.OneLine(about.Type.Name), 60))
	}
	if about.Parent != "" || about.Sub.Total > about.Sub.Completed {
		family, err := s.family(ctx, repo, issue)
		if err = explain(op, "issues: read", err); err != nil {
			return nil, err
		}
		lines = append(lines, family...)
	}
	if n := about.Waits.BlockedBy; n > 0 {
		lines = append(lines, "it is marked as blocked by "+text.Plural(n, "open issue", "open issues"))
	}
	return lines, nil
}

// family are the issue that one is part of, and its own open ones.
func (s *session) family(ctx context.Context, repo pipeline.Repo, issue int) (lines []string, err error) {
	type relative struct {
		Number     int
		Title      string
		State      string
		Repository struct{ NameWithOwner string }
	}
	var q struct {
		Repository struct {
			Issue struct {
				Parent    *relative
				SubIssues struct {
					Nodes      []relative
					TotalCount int
				} `graphql:"subIssues(first: $most)"`
			} `graphql:"issue(number: $number)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	vars := map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name),
		"number": githubv4.Int(issue), "most": githubv4.Int(mostSubIssues)}
	if err := s.gql.Query(ctx, &q, vars); err != nil {
		return nil, err
	}
	named := func(r relative) string {
		where := fmt.Sprintf("#%d", r.Number)
		if r.Repository.NameWithOwner != repo.FullName() {
			where = r.Repository.NameWithOwner + where
		}
		return where + " " + text.Clip(text.OneLine(r.Title), 200)
	}
	of := q.Repository.Issue
	if of.Parent != nil {
		lines = append(lines, "it is part of "+named(*of.Parent))
	}
	for _, r := range of.SubIssues.Nodes {
		if r.State == "OPEN" {
			lines = append(lines, "open sub-issue "+named(r))
		}
	}
	if n := of.SubIssues.TotalCount - len(of.SubIssues.Nodes); n > 0 {
		lines = append(lines, text.Plural(n, "more sub-issue", "more sub-issues"))
	}
	return lines, nil
}
