package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"

	"github.com/shurcooL/githubv4"
)

// Comment is what a person said on an issue or a pull request.
type Comment struct {
	By    pipeline.Actor
	At    time.Time
	Text  string
	Place string // what of the pull request it is about: "calc.py:14", "calc.py"; "" for no place
}

// Comments returns what people with write access said on an issue and on its pull request (0:
// there is none), oldest first, with commands and what is quoted left out: the last 100 of
// each, and of as many conversations 50. Whoever has lost that access says nothing. What they
// said in the conversations of bots is feedback, and what they requested in a review are
// findings: both have their own way into a run. It is one call.
func (a *App) Comments(ctx context.Context, repo pipeline.Repo, issue, pull int) ([]Comment, error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	var q struct {
		Repository struct {
			Issue       *struct{ gqlTalk } `graphql:"issue(number: $issue) @include(if: $hasIssue)"`
			PullRequest *gqlSaid           `graphql:"pullRequest(number: $pull) @include(if: $hasPull)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	err = s.gql.Query(ctx, &q, map[string]any{"owner": githubv4.String(repo.Owner), "name": githubv4.String(repo.Name),
		"issue": githubv4.Int(issue), "hasIssue": githubv4.Boolean(issue != 0), "pull": githubv4.Int(pull), "hasPull": githubv4.Boolean(pull != 0)})
	if err = explain(fmt.Sprintf("read what is said on %s#%d", repo.FullName(), cmp.Or(pull, issue)), "issues: read, pull_requests: read", err); err != nil {
		return nil, err
	}
	h := &hearing{app: a, repo: repo, may: map[int64]bool{}}
	if i := q.Repository.Issue; i != nil {
		err = h.talk(ctx, i.gqlTalk)
	}
	if p := q.Repository.PullRequest; p != nil && err == nil {
		err = h.pull(ctx, p)
	}
	slices.SortStableFunc(h.out, func(a, b Comment) int { return a.At.Compare(b.At) })
	return h.out, err
}

// gqlTalk is what was said below an issue or a pull request.
type gqlTalk struct {
	Comments struct{ Nodes []gqlWords } `graphql:"comments(last: 100)"`
}

type gqlWords struct {
	Author    *gqlActor
	CreatedAt time.Time
	Body      string
}

// gqlSaid is all that was said on a pull request.
type gqlSaid struct {
	gqlTalk
	Reviews struct {
		Nodes []struct {
			Author         *gqlActor
			SubmittedAt    *time.Time
			Body           string
			FullDatabaseID string
			State          string
		}
	} `graphql:"reviews(last: 100)"`
	ReviewThreads struct {
		Nodes []struct {
			Path     string
			Comments struct {
				Nodes []struct {
					gqlWords
					OriginalLine      *int
					OriginalStartLine *int
					PullRequestReview *struct{ FullDatabaseID string }
				}
			} `graphql:"comments(first: 50)"`
		}
	} `graphql:"reviewThreads(last: 100)"`
}

// hearing collects what people with write access said.
type hearing struct {
	app  *App
	repo pipeline.Repo
	may  map[int64]bool
	out  []Comment
}

func (h *hearing) hear(ctx context.Context, w gqlWords, place string) error {
	by, text := w.Author.actor(), withoutCommands(w.Body)
	if by.Bot || by.ID == 0 || text == "" {
		return nil
	}
	known, asked := h.may[by.ID]
	if !asked {
		var err error
		if known, err = h.app.mayWrite(ctx, h.repo, by); err != nil {
			return err
		}
		h.may[by.ID] = known
	}
	if known {
		h.out = append(h.out, Comment{By: by, At: w.CreatedAt.UTC(), Text: text, Place: place})
	}
	return nil
}

func (h *hearing) talk(ctx context.Context, t gqlTalk) error {
	for _, w := range t.Comments.Nodes {
		if err := h.hear(ctx, w, ""); err != nil {
			return err
		}
	}
	return nil
}

// pull hears the pull request's talk, the texts of reviews, and what was said on lines and files.
func (h *hearing) pull(ctx context.Context, p *gqlSaid) error {
	if err := h.talk(ctx, p.gqlTalk); err != nil {
		return err
	}
	requested := map[string]bool{} // reviews that request changes
	for _, v := range p.Reviews.Nodes {
		if requested[v.FullDatabaseID] = v.State == "CHANGES_REQUESTED"; requested[v.FullDatabaseID] || v.SubmittedAt == nil {
			continue
		}
		if err := h.hear(ctx, gqlWords{v.Author, *v.SubmittedAt, v.Body}, ""); err != nil {
			return err
		}
	}
	for _, t := range p.ReviewThreads.Nodes {
		if len(t.Comments.Nodes) == 0 || t.Comments.Nodes[0].Author.actor().Bot {
			continue
		}
		for _, c := range t.Comments.Nodes {
			if r := c.PullRequestReview; r != nil && requested[r.FullDatabaseID] {
				continue
			}
			place := t.Path
			if line := cmp.Or(value(c.OriginalStartLine), value(c.OriginalLine)); line > 0 { // as it stood when it was written
				place = fmt.Sprintf("%s:%d", t.Path, line)
			}
			if err := h.hear(ctx, c.gqlWords, place); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayWrite reports whether somebody has write access now.
func (a *App) mayWrite(ctx context.Context, repo pipeline.Repo, by pipeline.Actor) (bool, error) {
	perm, err := a.Permission(ctx, repo, by)
	var renamed *renamedError
	if errors.As(err, &renamed) {
		return false, nil
	}
	return perm == "write" || perm == "admin", err
}

// commandLine is a line that orders a bot to do something: "/forge retry".
var commandLine = lazyregexp.New(`^/[a-z][a-z-]*(\s|$)`)

// withoutCommands is a comment without its commands, which have their own way into a run, and
// without what it quotes of others, who may have no say.
func withoutCommands(body string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		if t := strings.TrimSpace(l); !commandLine.MatchString(t) && !strings.HasPrefix(t, ">") {
			lines = append(lines, l)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
