package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/command"

	gh "github.com/google/go-github/v62/github"
)

// Reply answers where a notice comes from: in the conversation on the diff in
// which a command was given, or else by a comment on the issue or pull request.
// key names the answer: a second call with the same key makes nothing.
func (a *App) Reply(ctx context.Context, n pipeline.Notice, text, key string) error {
	return a.say(ctx, n, replyText(text, a.web.Host), key)
}

// Ask asks people by a comment on the issue or pull request, once for its key. A choice
// has a box, and to tick it is to choose it.
func (a *App) Ask(ctx context.Context, n pipeline.Notice, q command.Question, key string) error {
	text := replyText(q.Text, a.web.Host)
	if len(q.Choices) > 0 {
		text += "\n\n" + command.HowToAnswer + "\n\n"
	}
	for _, c := range q.Choices {
		box := "[ ] "
		if c.Typed {
			box = ""
		}
		text += "- " + box + render.Line(c.String(), a.web.Host, 1000) + "\n"
	}
	return a.say(ctx, n, text, key)
}

// say posts a text, which is harmless, unless what has the key is there.
func (a *App) say(ctx context.Context, n pipeline.Notice, text, key string) error {
	s, err := a.session(n.Repo)
	if err != nil {
		return err
	}
	mark := render.Marker("", key)
	if n.Thread != 0 && n.Pull != 0 {
		done, err := a.replyInThread(ctx, s, n, mark, text)
		if done || err != nil {
			return err
		}
	}
	number := cmp.Or(n.Issue, n.Pull)
	if c, err := a.findComment(ctx, s, n.Repo, number, mark); err != nil || c != nil {
		return err
	}
	body := mark + "\n" + text
	if n.Comment != 0 && n.Thread == 0 {
		link := fmt.Sprintf("%s/%s/issues/%d#issuecomment-%d", a.web, n.Repo.FullName(), number, n.Comment)
		if n.Feedback != nil && n.Feedback.Event == "pull_request_review_comment" {
			link = fmt.Sprintf("%s/%s/pull/%d#discussion_r%d", a.web, n.Repo.FullName(), number, n.Comment)
		}
		if n.Reviewed {
			link = fmt.Sprintf("%s/%s/pull/%d#pullrequestreview-%d", a.web, n.Repo.FullName(), number, n.Comment)
		}
		body = mark + "\n" + "In reply to [this comment](" + link + "):\n\n" + text
	}
	_, _, err = s.rest.Issues.CreateComment(ctx, n.Repo.Owner, n.Repo.Name, number, &gh.IssueComment{Body: &body})
	return explain(fmt.Sprintf("comment on %s#%d", n.Repo.FullName(), number), "issues: write", err)
}

// replyInThread answers in the conversation unless it was answered there. It
// reports false when the conversation is gone: somebody deleted its first comment.
func (a *App) replyInThread(ctx context.Context, s *session, n pipeline.Notice, mark, text string) (done bool, err error) {
	r := n.Repo
	if done, err = a.saidInThread(ctx, s, n, mark); done || err != nil {
		return done, err
	}
	_, _, err = s.rest.PullRequests.CreateCommentInReplyTo(ctx, r.Owner, r.Name, n.Pull, mark+"\n"+text, n.Thread)
	err = explain(fmt.Sprintf("answer a review comment in %s#%d", r.FullName(), n.Pull), "pull_requests: write", err)
	if s := status(err); s == http.StatusNotFound || s == http.StatusUnprocessableEntity {
		return false, nil
	}
	return err == nil, err
}

// saidInThread reports whether Forge has said what carries the marker in the
// conversation, from the newest comment on the diff to the oldest.
func (a *App) saidInThread(ctx context.Context, s *session, n pipeline.Notice, mark string) (bool, error) {
	bot, err := a.self(ctx)
	if err != nil {
		return false, err
	}
	opts := &gh.PullRequestListCommentsOptions{Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: 100}}
	for range maxPages {
		list, resp, err := s.rest.PullRequests.ListComments(ctx, n.Repo.Owner, n.Repo.Name, n.Pull, opts)
		if err = explain(fmt.Sprintf("list the review comments of %s#%d", n.Repo.FullName(), n.Pull), "pull_requests: read", err); err != nil {
			return false, err
		}
		for _, c := range list {
			if c.GetUser().GetID() == bot.ID && strings.Contains(c.GetBody(), mark) {
				return true, nil
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return false, nil
}

// maxReply is how many lines of an answer stand open.
const maxReply = 30

// replyText makes an answer's text harmless. Of a long one the first paragraph stands
// open and the rest is folded in.
func replyText(text, host string) string {
	text = render.Block(text, host, render.MaxText)
	head, rest, _ := strings.Cut(text, "\n\n")
	if strings.Count(text, "\n") < maxReply || strings.Contains(head, "```") || strings.Contains(head, "~~~") {
		return text
	}
	return head + "\n\n" + render.Folded("All of it", rest)
}
