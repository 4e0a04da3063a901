package github

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"forge/pipeline"

	"github.com/shurcooL/githubv4"
)

// pullState is a pull request as people left it.
type pullState struct {
	number  int
	node    string
	state   string // OPEN, CLOSED, MERGED
	head    string
	ended   time.Time // when it was merged or closed
	merger  pipeline.Actor
	merge   string // SHA of the merge commit
	threads []conversation
	reviews []submittedReview
	partial bool // there was more than is read
}

// conversation is a conversation on the diff.
type conversation struct {
	node, path string
	line       int // now, or where it was written when it is outdated
	whole      bool
	resolved   bool
	resolver   pipeline.Actor
	comments   []remarked
}

// first is the comment that the conversation began with.
func (t *conversation) first() *remarked { return &t.comments[0] }

// remarked is one comment of a conversation.
type remarked struct {
	id               int64
	body             string
	author           pipeline.Actor
	created, updated time.Time
	hidden           string // why it was minimised; "" when it was not
	commit           string // that it was written on
	start, line      int    // in that commit, both included
	review           int64
	hunk             string
	downs            []reaction
}

// reaction is a 👎.
type reaction struct {
	by pipeline.Actor
	at time.Time
}

// submittedReview is a submitted review.
type submittedReview struct {
	id     int64
	state  string
	body   string
	author pipeline.Actor
	at     time.Time
	commit string
}

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

type gqlThread struct {
	ID           string
	Path         string
	Line         *int
	OriginalLine *int
	SubjectType  string
	IsResolved   bool
	ResolvedBy   *gqlUser
	First        struct {
		Nodes []struct {
			Reactions struct {
				Nodes []struct {
					CreatedAt time.Time
					User      *gqlUser
				}
			} `graphql:"reactions(first: 50, content: THUMBS_DOWN)"`
		}
	} `graphql:"first: comments(first: 1)"`
	Comments struct{ Nodes []gqlComment } `graphql:"comments(first: 50)"`
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

// pullState reads all that people can do with a pull request in one call, a
// further one for each further hundred conversations.
func (a *App) pullState(ctx context.Context, s *session, repo pipeline.Repo, number int) (*pullState, error) {
	vars := map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name), "number": githubv4.Int(number), "after": (*githubv4.String)(nil)}
	out := &pullState{number: number, partial: true}
	for page := range maxPages {
		var q struct {
			Repository struct {
				PullRequest gqlPull `graphql:"pullRequest(number: $number)"`
			} `graphql:"repository(owner: $owner, name: $name)"`
		}
		err := s.gql.Query(ctx, &q, vars)
		if err = explain(fmt.Sprintf("read what people did with %s#%d", repo.FullName(), number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		p := &q.Repository.PullRequest
		if page == 0 {
			out.take(p)
		}
		for i := range p.ReviewThreads.Nodes {
			if t, ok := p.ReviewThreads.Nodes[i].talk(); ok {
				out.threads = append(out.threads, t)
			}
		}
		if !p.ReviewThreads.PageInfo.HasNextPage {
			out.partial = false
			break
		}
		vars["after"] = githubv4.NewString(p.ReviewThreads.PageInfo.EndCursor)
	}
	return out, nil
}

func (p *pullState) take(g *gqlPull) {
	p.node, p.state, p.head, p.merger = g.ID, g.State, g.HeadRefOid, g.MergedBy.actor()
	switch {
	case g.MergedAt != nil:
		p.ended = g.MergedAt.UTC()
	case g.ClosedAt != nil:
		p.ended = g.ClosedAt.UTC()
	}
	if g.MergeCommit != nil {
		p.merge = g.MergeCommit.Oid
	}
	for _, r := range g.Reviews.Nodes {
		o := submittedReview{id: number(r.FullDatabaseID), state: r.State, body: r.Body, author: r.Author.actor()}
		if r.SubmittedAt != nil {
			o.at = r.SubmittedAt.UTC()
		}
		if r.Commit != nil {
			o.commit = r.Commit.Oid
		}
		p.reviews = append(p.reviews, o)
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

func (g *gqlThread) talk() (conversation, bool) {
	t := conversation{node: g.ID, path: g.Path, line: value(g.Line), whole: g.SubjectType == "FILE", resolved: g.IsResolved, resolver: g.ResolvedBy.actor()}
	if t.line == 0 {
		t.line = value(g.OriginalLine)
	}
	for _, c := range g.Comments.Nodes {
		r := remarked{id: number(c.FullDatabaseID), body: c.Body, author: c.Author.actor(), created: c.CreatedAt.UTC(), updated: c.UpdatedAt.UTC(),
			line: value(c.OriginalLine), start: value(c.OriginalStartLine), hunk: c.DiffHunk}
		if r.start == 0 {
			r.start = r.line
		}
		if c.IsMinimized {
			r.hidden = "hidden"
			if c.MinimizedReason != nil && *c.MinimizedReason != "" {
				r.hidden = *c.MinimizedReason
			}
		}
		if c.OriginalCommit != nil {
			r.commit = c.OriginalCommit.Oid
		}
		if c.PullRequestReview != nil {
			r.review = number(c.PullRequestReview.FullDatabaseID)
		}
		t.comments = append(t.comments, r)
	}
	if len(t.comments) == 0 {
		return t, false
	}
	for _, n := range g.First.Nodes {
		for _, v := range n.Reactions.Nodes {
			t.comments[0].downs = append(t.comments[0].downs, reaction{v.User.actor(), v.CreatedAt.UTC()})
		}
	}
	return t, true
}
