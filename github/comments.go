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

	gh "github.com/google/go-github/v62/github"
)

// Comment is what a person said on an issue or a pull request.
type Comment struct {
	By    pipeline.Actor
	At    time.Time
	Text  string
	Place string // what of the pull request it is about: "calc.py:14", "calc.py"; "" for no place
}

// Comments returns what people with write access said on an issue and on its pull request (0:
// there is none), oldest first, with commands and what is quoted left out. Whoever has lost
// that access says nothing. What they said in the conversations of bots is feedback, and what
// they requested in a review are findings: both have their own way into a run.
func (a *App) Comments(ctx context.Context, repo pipeline.Repo, issue, pull int) ([]Comment, error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	h := &hearing{app: a, repo: repo, may: map[int64]bool{}}
	for _, number := range []int{issue, pull} {
		if number == 0 {
			continue
		}
		if err := h.talk(ctx, s, number); err != nil {
			return nil, err
		}
	}
	if pull != 0 {
		if err := h.reviews(ctx, s, pull); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(h.out, func(a, b Comment) int { return a.At.Compare(b.At) })
	return h.out, nil
}

// hearing collects what people with write access said.
type hearing struct {
	app  *App
	repo pipeline.Repo
	may  map[int64]bool
	out  []Comment
}

func (h *hearing) hear(ctx context.Context, by *gh.User, at time.Time, body, place string) error {
	actor := pipeline.Actor{ID: by.GetID(), Login: by.GetLogin(), Bot: by.GetType() == "Bot"}
	text := withoutCommands(body)
	if actor.Bot || actor.ID == 0 || text == "" {
		return nil
	}
	known, asked := h.may[actor.ID]
	if !asked {
		var err error
		if known, err = h.app.mayWrite(ctx, h.repo, actor); err != nil {
			return err
		}
		h.may[actor.ID] = known
	}
	if known {
		h.out = append(h.out, Comment{By: actor, At: at, Text: text, Place: place})
	}
	return nil
}

// talk hears what was said below an issue or a pull request.
func (h *hearing) talk(ctx context.Context, s *session, number int) error {
	opts := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: 100}}
	for range maxPages {
		list, resp, err := s.rest.Issues.ListComments(ctx, h.repo.Owner, h.repo.Name, number, opts)
		if err = explain(fmt.Sprintf("list the comments of %s#%d", h.repo.FullName(), number), "issues: read", err); err != nil {
			return err
		}
		for _, c := range list {
			if err := h.hear(ctx, c.GetUser(), c.GetCreatedAt().Time, c.GetBody(), ""); err != nil {
				return err
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return nil
}

// reviews hears the texts of reviews, and what was said on lines and files.
func (h *hearing) reviews(ctx context.Context, s *session, pull int) error {
	requested := map[int64]bool{} // reviews that request changes
	opts := gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := s.rest.PullRequests.ListReviews(ctx, h.repo.Owner, h.repo.Name, pull, &opts)
		if err = explain(fmt.Sprintf("list the reviews of %s#%d", h.repo.FullName(), pull), "pull_requests: read", err); err != nil {
			return err
		}
		for _, v := range list {
			if requested[v.GetID()] = v.GetState() == "CHANGES_REQUESTED"; requested[v.GetID()] {
				continue
			}
			if err := h.hear(ctx, v.GetUser(), v.GetSubmittedAt().Time, v.GetBody(), ""); err != nil {
				return err
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	bots := map[int64]bool{} // comments that began a conversation
	lines := &gh.PullRequestListCommentsOptions{Sort: "created", ListOptions: gh.ListOptions{PerPage: 100}}
	for range maxPages {
		list, resp, err := s.rest.PullRequests.ListComments(ctx, h.repo.Owner, h.repo.Name, pull, lines)
		if err = explain(fmt.Sprintf("list the review comments of %s#%d", h.repo.FullName(), pull), "pull_requests: read", err); err != nil {
			return err
		}
		for _, c := range list {
			if bots[c.GetID()] = c.GetUser().GetType() == "Bot"; bots[c.GetInReplyTo()] || requested[c.GetPullRequestReviewID()] {
				continue
			}
			if err := h.hear(ctx, c.GetUser(), c.GetCreatedAt().Time, c.GetBody(), spot(c)); err != nil {
				return err
			}
		}
		if resp.NextPage == 0 {
			break
		}
		lines.Page = resp.NextPage
	}
	return nil
}

// spot is the place that a comment on the diff is about, as it stood when it was written.
func spot(c *gh.PullRequestComment) string {
	if line := cmp.Or(c.GetOriginalStartLine(), c.GetOriginalLine()); line > 0 {
		return fmt.Sprintf("%s:%d", c.GetPath(), line)
	}
	return c.GetPath()
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
