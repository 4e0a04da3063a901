package github

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"forge/github/feedback"
	"forge/pipeline"

	"github.com/shurcooL/githubv4"
)

type gqlActor struct {
	Typename string `graphql:"__typename"`
	Login    string
	User     struct{ DatabaseID int64 } `graphql:"... on User"`
	Bot      struct{ DatabaseID int64 } `graphql:"... on Bot"`
}

// actor returns nobody for a deleted account. A bot's login has no [bot] in GraphQL.
func (g *gqlActor) actor() pipeline.Actor {
	switch {
	case g == nil:
		return pipeline.Actor{}
	case g.Typename == "Bot":
		return pipeline.Actor{ID: g.Bot.DatabaseID, Login: g.Login + "[bot]", Bot: true}
	case g.Typename == "User":
		return pipeline.Actor{ID: g.User.DatabaseID, Login: g.Login}
	}
	return pipeline.Actor{}
}

// gqlUser stands where GraphQL has people only.
type gqlUser struct {
	DatabaseID int64
	Login      string
}

func (g *gqlUser) actor() pipeline.Actor {
	if g == nil {
		return pipeline.Actor{}
	}
	return pipeline.Actor{ID: g.DatabaseID, Login: g.Login}
}

type gqlComment struct {
	FullDatabaseID    string
	Body              string
	URL               string
	ViewerDidAuthor   bool
	Author            *gqlActor
	CreatedAt         time.Time
	UpdatedAt         time.Time
	IsMinimized       bool
	MinimizedReason   *string
	OriginalLine      *int
	OriginalStartLine *int
	DiffHunk          string
	OriginalCommit    *struct{ Oid string }
	PullRequestReview *struct{ FullDatabaseID string }
}

type gqlFirst struct {
	gqlComment
	Reactions struct {
		Nodes []struct {
			CreatedAt time.Time
			User      *gqlUser
		}
	} `graphql:"reactions(first: 50, content: THUMBS_DOWN)"`
}

type gqlThread struct {
	ID               string
	Path             string
	Line             *int
	OriginalLine     *int
	SubjectType      string
	IsResolved       bool
	ResolvedBy       *gqlUser
	ViewerCanResolve bool
	First            struct{ Nodes []gqlFirst }   `graphql:"first: comments(first: 1)"`
	Last             struct{ Nodes []gqlComment } `graphql:"last: comments(last: 50)"`
}

type gqlReview struct {
	FullDatabaseID string
	State          string
	Body           string
	Author         *gqlActor
	SubmittedAt    *time.Time
	Commit         *struct{ Oid string }
}

type gqlPull struct {
	ID            string
	State         string
	HeadRefOid    string
	ClosedAt      *time.Time
	MergedAt      *time.Time
	MergedBy      *gqlActor
	MergeCommit   *struct{ Oid string }
	ReviewThreads struct {
		Nodes    []gqlThread
		PageInfo struct {
			HasNextPage bool
			EndCursor   githubv4.String
		}
	} `graphql:"reviewThreads(first: 100, after: $after)"`
	Reviews struct{ Nodes []gqlReview } `graphql:"reviews(last: 100)"`
}

// pullState reads all that people can do with a pull request, threads above all: REST
// knows none. It is one call, and a further one for each further hundred threads.
func (s *session) pullState(ctx context.Context, repo pipeline.Repo, number int) (*feedback.Pull, error) {
	vars := map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name), "number": githubv4.Int(number),
		"after": (*githubv4.String)(nil)}
	out := &feedback.Pull{Number: number, Partial: true}
	for page := range maxPages {
		var q struct {
			Repository struct {
				PullRequest gqlPull `graphql:"pullRequest(number: $number)"`
			} `graphql:"repository(owner: $owner, name: $name)"`
		}
		err := s.gql.Query(ctx, &q, vars)
		if err = explain(fmt.Sprintf("read the review threads of %s#%d", repo.FullName(), number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		p := &q.Repository.PullRequest
		if page == 0 {
			p.into(out)
		}
		for i := range p.ReviewThreads.Nodes {
			if t, ok := p.ReviewThreads.Nodes[i].thread(); ok {
				out.Threads = append(out.Threads, t)
			}
		}
		if !p.ReviewThreads.PageInfo.HasNextPage {
			out.Partial = false
			break
		}
		vars["after"] = githubv4.NewString(p.ReviewThreads.PageInfo.EndCursor)
	}
	return out, nil
}

func (g *gqlPull) into(p *feedback.Pull) {
	p.Node, p.State, p.Head, p.Merger = g.ID, g.State, g.HeadRefOid, g.MergedBy.actor()
	switch {
	case g.MergedAt != nil:
		p.Ended = g.MergedAt.UTC()
	case g.ClosedAt != nil:
		p.Ended = g.ClosedAt.UTC()
	}
	if g.MergeCommit != nil {
		p.Merge = g.MergeCommit.Oid
	}
	for _, r := range g.Reviews.Nodes {
		o := feedback.Review{ID: number(r.FullDatabaseID), State: r.State, Body: r.Body, Author: r.Author.actor()}
		if r.SubmittedAt != nil {
			o.At = r.SubmittedAt.UTC()
		}
		if r.Commit != nil {
			o.Commit = r.Commit.Oid
		}
		p.Reviews = append(p.Reviews, o)
	}
}

// number reads an id, which GraphQL sends as a text; zero is none.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// thread is a thread with its first comment and its last ones; what is between them is
// left out when there are more than fifty.
func (g *gqlThread) thread() (feedback.Thread, bool) {
	t := feedback.Thread{Node: g.ID, Path: g.Path, Line: value(g.Line), Whole: g.SubjectType == "FILE", Resolved: g.IsResolved,
		Resolver: g.ResolvedBy.actor(), MayResolve: g.ViewerCanResolve}
	if t.Line == 0 {
		t.Line = value(g.OriginalLine)
	}
	if len(g.First.Nodes) == 0 {
		return t, false
	}
	first := g.First.Nodes[0].comment()
	for _, v := range g.First.Nodes[0].Reactions.Nodes {
		first.Downs = append(first.Downs, feedback.Reaction{By: v.User.actor(), At: v.CreatedAt.UTC()})
	}
	t.Comments = append(t.Comments, first)
	for i := range g.Last.Nodes {
		if c := g.Last.Nodes[i].comment(); c.ID != first.ID {
			t.Comments = append(t.Comments, c)
		}
	}
	return t, true
}

func (g *gqlComment) comment() feedback.Comment {
	c := feedback.Comment{ID: number(g.FullDatabaseID), Body: g.Body, URL: g.URL, Author: g.Author.actor(), Own: g.ViewerDidAuthor,
		Created: g.CreatedAt.UTC(), Updated: g.UpdatedAt.UTC(),
		Line: value(g.OriginalLine), Start: value(g.OriginalStartLine), Hunk: g.DiffHunk}
	if c.Start == 0 {
		c.Start = c.Line
	}
	if g.IsMinimized {
		c.Hidden = "hidden"
		if g.MinimizedReason != nil && *g.MinimizedReason != "" {
			c.Hidden = *g.MinimizedReason
		}
	}
	if g.OriginalCommit != nil {
		c.Commit = g.OriginalCommit.Oid
	}
	if g.PullRequestReview != nil {
		c.Review = number(g.PullRequestReview.FullDatabaseID)
	}
	return c
}
