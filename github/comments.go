package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"

	gh "github.com/google/go-github/v62/github"
)

// Comment is what a person said on an issue.
type Comment struct {
	By   pipeline.Actor
	At   time.Time
	Text string
}

// Comments returns what people with write access said on an issue, oldest first, with
// commands and what is quoted left out. Whoever has lost that access says nothing.
func (a *App) Comments(ctx context.Context, repo pipeline.Repo, issue int) ([]Comment, error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	var out []Comment
	may := map[int64]bool{}
	opts := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: 100}}
	for range maxPages {
		list, resp, err := s.rest.Issues.ListComments(ctx, repo.Owner, repo.Name, issue, opts)
		if err = explain(fmt.Sprintf("list the comments of %s#%d", repo.FullName(), issue), "issues: read", err); err != nil {
			return nil, err
		}
		for _, c := range list {
			by := pipeline.Actor{ID: c.GetUser().GetID(), Login: c.GetUser().GetLogin(), Bot: c.GetUser().GetType() == "Bot"}
			text := withoutCommands(c.GetBody())
			if by.Bot || by.ID == 0 || text == "" {
				continue
			}
			known, asked := may[by.ID]
			if !asked {
				if known, err = a.mayWrite(ctx, repo, by); err != nil {
					return nil, err
				}
				may[by.ID] = known
			}
			if known {
				out = append(out, Comment{By: by, At: c.GetCreatedAt().Time, Text: text})
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
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
