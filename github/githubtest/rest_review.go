package githubtest

import (
	"slices"
	"strings"
)

// reviewOps are the operations on reviews and comments on the diff.
var reviewOps = map[string]handler{
	"pulls/list-reviews":                    withPull(listReviews),
	"pulls/create-review":                   withPull(createReview),
	"pulls/get-review":                      withReview(func(c *call, rv *review) answer { return ok(c.s.shapeReview(rv)) }),
	"pulls/list-comments-for-review":        withReview(reviewCommentsOf),
	"pulls/list-review-comments":            withPull(listReviewComments),
	"pulls/create-review-comment":           withPull(createReviewComment),
	"pulls/create-reply-for-review-comment": withPull(replyToComment),
}

func withReview(next func(*call, *review) answer) handler {
	return withPull(func(c *call, p *pull) answer {
		for _, rv := range p.reviews {
			if rv.id == c.number("review_id") {
				return next(c, rv)
			}
		}
		return notFound()
	})
}

func listReviews(c *call, p *pull) answer {
	return listing(c, p.reviews, func(rv *review) any { return c.s.shapeReview(rv) })
}

func createReview(c *call, p *pull) answer {
	var req struct {
		CommitID string `json:"commit_id"`
		Body     string
		Event    string
		Comments []anchor
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	rv, err := c.s.review(p, c.actor, req.Event, req.Body, req.CommitID, req.Comments)
	if err != nil {
		return invalid(err.Error())
	}
	return ok(c.s.shapeReview(rv))
}

func reviewCommentsOf(c *call, rv *review) answer {
	list := slices.DeleteFunc(rv.pull.reviewComments(), func(x *reviewComment) bool { return x.review != rv })
	return listing(c, list, func(x *reviewComment) any { return c.s.shapeReviewComment(x) })
}

// visible leaves out comments of pending reviews of others.
func (c *call) visible(list []*reviewComment) []*reviewComment {
	list = slices.DeleteFunc(list, func(x *reviewComment) bool {
		return x.review.state == "PENDING" && x.user != c.actor || x.updated.Before(c.since())
	})
	if c.r.URL.Query().Get("direction") == "desc" {
		slices.Reverse(list)
	}
	return list
}

func listReviewComments(c *call, p *pull) answer {
	return listing(c, c.visible(p.reviewComments()), func(x *reviewComment) any { return c.s.shapeReviewComment(x) })
}

func createReviewComment(c *call, p *pull) answer {
	var req struct {
		anchor
		CommitID  string `json:"commit_id"`
		InReplyTo int64  `json:"in_reply_to"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if req.InReplyTo != 0 {
		c.vars["comment_id"] = stampID(req.InReplyTo)
		return replyToComment(c, p)
	}
	if req.CommitID == "" {
		return invalidField("PullRequestReviewComment", "commit_id", "missing_field", "")
	}
	rv, err := c.s.review(p, c.actor, "COMMENT", "", req.CommitID, []anchor{req.anchor})
	if err != nil {
		return invalidField("PullRequestReviewComment", "pull_request_review_thread.line", "custom",
			strings.Replace(err.Error(), "Pull request review thread line", "pull_request_review_thread.line", 1))
	}
	list := p.reviewComments()
	for _, x := range list {
		if x.review == rv {
			return created(c.s.shapeReviewComment(x))
		}
	}
	return notFound() // unreachable: the review has its comment
}

func replyToComment(c *call, p *pull) answer {
	body, a := c.bodyOf("PullRequestReviewComment")
	if a != nil {
		return *a
	}
	x := c.repo.findReviewComment(c.number("comment_id"))
	if x == nil || x.thread.pull != p {
		return notFound()
	}
	if x.replyTo != 0 {
		return invalidField("PullRequestReviewComment", "in_reply_to", "invalid", "Replies to replies are not supported")
	}
	answered, err := c.s.reply(x.thread, c.actor, body)
	if err != nil {
		return invalid(err.Error())
	}
	return created(c.s.shapeReviewComment(answered))
}
