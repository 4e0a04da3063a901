package delivery

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"forge/pipeline"
)

// stamp is a moment in a payload: a text, in a few places a number of seconds, or
// null. What is neither is no moment, and no reason to refuse the payload.
type stamp struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (s *stamp) UnmarshalJSON(raw []byte) error {
	var text string
	var seconds int64
	if json.Unmarshal(raw, &seconds) == nil && seconds > 0 {
		s.Time = time.Unix(seconds, 0).UTC()
	} else if json.Unmarshal(raw, &text) == nil {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			s.Time = t.UTC()
		}
	}
	return nil
}

// later returns the first that is set.
func later(list ...stamp) time.Time {
	for _, s := range list {
		if !s.IsZero() {
			return s.Time
		}
	}
	return time.Time{}
}

// reviewComment is a comment in a payload, of an issue or on a diff.
type reviewComment struct {
	ID      int64   `json:"id"`
	Body    string  `json:"body"`
	User    account `json:"user"`
	ReplyTo int64   `json:"in_reply_to_id"`
	Review  int64   `json:"pull_request_review_id"`
	Path    string  `json:"path"`
	Line    int     `json:"original_line"`
	Commit  string  `json:"original_commit_id"`
	Created stamp   `json:"created_at"`
	Updated stamp   `json:"updated_at"`
}

func (c *reviewComment) updated() time.Time { return later(c.Updated, c.Created) }

// forges reports whether the pull request is one of Forge's.
func (r reader) forges() bool {
	head := r.d.PullRequest.Head
	return strings.HasPrefix(head.Ref, r.o.Slug+"/") && head.Repo.ID == r.d.Repository.ID
}

// about collects what a delivery says of an act.
func (r reader) about(event string, at time.Time) *pipeline.Feedback {
	d := r.d
	f := &pipeline.Feedback{Event: event, Action: d.Action, At: at, Before: d.Before}
	comment := func(c *reviewComment) {
		f.Comments, f.ReplyTo, f.Author, f.Body = []int64{c.ID}, c.ReplyTo, c.User.actor(), c.Body
		f.Review, f.Path, f.Line, f.Commit, f.Created = c.Review, c.Path, c.Line, c.Commit, c.Created.Time
	}
	switch event {
	case "issue_comment", "pull_request_review_comment":
		comment(&d.Comment)
	case "pull_request_review":
		f.Review, f.State, f.Author, f.Body, f.Commit = d.Review.ID, strings.ToLower(d.Review.State), d.Review.User.actor(), d.Review.Body, d.Review.Commit
	case "pull_request_review_thread":
		if list := d.Thread.Comments; len(list) > 0 {
			comment(&list[0])
			for _, c := range list[1:] {
				f.Comments = append(f.Comments, c.ID)
			}
		}
		f.Thread = d.Thread.Node
	}
	return f
}

// feedback makes the notice one of something that a person did with what Forge
// said or made.
func (r reader) feedback(event string, at time.Time) {
	d := r.d
	what := strings.ReplaceAll(strings.TrimSuffix(event+" "+d.Action, " "), "_", " ")
	switch {
	case r.own():
		r.none("%s by Forge itself", what)
	case r.n.Actor.Bot:
		r.none("%s by the bot %s: only what people do counts", what, d.Sender.Login)
	default:
		r.n.Feedback = r.about(event, at)
		r.is(pipeline.NoticeFeedback, "%s by %s", what, d.Sender.Login)
	}
}

// diff reads where a notice about a pull request's diff belongs; it reports
// whether Forge listens there: on its own ones, and on others if others says so.
func (r reader) diff(others bool) bool {
	p := r.d.PullRequest
	r.n.Pull, r.n.Branch, r.n.Head = p.Number, p.Head.Ref, p.Head.SHA
	if r.forges() || others {
		return true
	}
	r.n.Branch, r.n.Head = "", ""
	r.none("pull request #%d is not Forge's", p.Number)
	return false
}

func (r reader) reviewComment() {
	d := r.d
	r.n.Pull = d.PullRequest.Number
	if d.Action == "created" {
		c, ok := ParseCommand(d.Comment.Body, r.o.Slug)
		if ok && !(c.Name == "dismiss" && d.Comment.ReplyTo != 0) {
			r.command(d.Comment.Body)
			if r.n.Comment != 0 {
				r.n.Thread = cmp.Or(d.Comment.ReplyTo, d.Comment.ID)
			}
			return
		}
		if ok && r.forges() { // its effect is a signal; whoever gave it hears of that
			r.n.Command, r.n.Comment, r.n.Thread = c, d.Comment.ID, d.Comment.ReplyTo
		}
	}
	if (d.Action == "edited" || d.Action == "deleted") && r.unsaid() {
		if r.n.Thread = d.Comment.ReplyTo; d.Action == "edited" { // one that is gone cannot be answered
			r.n.Thread = cmp.Or(d.Comment.ReplyTo, d.Comment.ID)
		}
		return
	}
	switch d.Action {
	case "created", "edited", "deleted":
		if r.diff(r.o.Other) {
			r.feedback("pull_request_review_comment", d.Comment.updated())
			if d.Action == "deleted" && r.n.Feedback != nil {
				r.n.Feedback.At = later(d.PullRequest.Updated) // the comment's own times are older
			}
		}
	default:
		r.none("a review comment was %s", d.Action)
	}
}

func (r reader) review() {
	d := r.d
	at := d.Review.Submitted.Time
	if d.Action != "submitted" {
		at = later(d.PullRequest.Updated, d.Review.Submitted)
	}
	if _, ok := ParseCommand(d.Review.Body, r.o.Slug); ok && d.Action == "submitted" {
		r.n.Pull = d.PullRequest.Number
		r.command(d.Review.Body)
		if r.n.Kind != pipeline.NoticeCommand {
			return
		}
		r.n.Comment, r.n.Reviewed = d.Review.ID, true
		if !strings.EqualFold(d.Review.State, "commented") && r.forges() { // its verdict counts besides
			r.n.Branch, r.n.Head, r.n.Feedback = d.PullRequest.Head.Ref, d.PullRequest.Head.SHA, r.about("pull_request_review", at)
		}
		return
	}
	switch d.Action {
	case "submitted", "edited", "dismissed":
		if r.diff(false) {
			r.feedback("pull_request_review", at)
		}
	default:
		r.none("a review was %s", d.Action)
	}
}

func (r reader) thread() {
	d := r.d
	switch d.Action {
	case "resolved", "unresolved":
		if r.diff(false) {
			r.feedback("pull_request_review_thread", later(d.Updated, d.PullRequest.Updated))
		}
	default:
		r.none("a review thread was %s", d.Action)
	}
}
