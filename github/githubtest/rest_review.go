package githubtest

import (
	"net/http"
	"slices"
	"sort"
	"strings"
)

// reviewOps are the operations on reviews and comments on the diff.
var reviewOps = map[string]handler{
	"pulls/list-reviews":                    withPull(listReviews),
	"pulls/create-review":                   withPull(createReview),
	"pulls/get-review":                      withReview(func(c *call, rv *review) answer { return ok(c.s.shapeReview(rv)) }),
	"pulls/update-review":                   withReview(updateReview),
	"pulls/submit-review":                   withReview(submitReview),
	"pulls/dismiss-review":                  withReview(dismissReview),
	"pulls/delete-pending-review":           withReview(deletePending),
	"pulls/list-comments-for-review":        withReview(reviewCommentsOf),
	"pulls/list-review-comments":            withPull(listReviewComments),
	"pulls/list-review-comments-for-repo":   listRepoReviewComments,
	"pulls/create-review-comment":           withPull(createReviewComment),
	"pulls/create-reply-for-review-comment": withPull(replyToComment),
	"pulls/get-review-comment":              withReviewComment(func(c *call, x *reviewComment) answer { return ok(c.s.shapeReviewComment(x)) }),
	"pulls/update-review-comment":           withReviewComment(updateReviewComment),
	"pulls/delete-review-comment":           withReviewComment(deleteReviewComment),
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

func withReviewComment(next func(*call, *reviewComment) answer) handler {
	return func(c *call) answer {
		if x := c.repo.findReviewComment(c.number("comment_id")); x != nil {
			return next(c, x)
		}
		return notFound()
	}
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

func updateReview(c *call, rv *review) answer {
	body, a := c.bodyOf("PullRequestReview")
	if a != nil {
		return *a
	}
	c.s.editReview(rv, c.actor, body)
	return ok(c.s.shapeReview(rv))
}

func submitReview(c *call, rv *review) answer {
	var req struct{ Body, Event string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	state := reviewStates[req.Event]
	switch {
	case rv.state != "PENDING" || rv.user != c.actor:
		return fail(http.StatusUnprocessableEntity, "Can not submit a review that is not pending")
	case state == "" || state == "PENDING":
		return invalid("Variable $event of type PullRequestReviewEvent was provided invalid value")
	case rv.pull.user == c.actor && state != "COMMENTED":
		return invalid("Review Can not approve your own pull request")
	}
	if req.Body != "" {
		rv.body = req.Body
	}
	rv.state, rv.submitted = state, c.s.now()
	c.s.emitReview(rv, c.actor)
	return ok(c.s.shapeReview(rv))
}

func dismissReview(c *call, rv *review) answer {
	var req struct{ Message string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	if err := c.s.dismiss(rv, c.actor, req.Message); err != nil {
		return invalid(err.Error())
	}
	return ok(c.s.shapeReview(rv))
}

func deletePending(c *call, rv *review) answer {
	if rv.state != "PENDING" {
		return fail(http.StatusUnprocessableEntity, "Can not delete a non-pending pull request review")
	}
	p := rv.pull
	for _, t := range p.threads {
		t.comments = slices.DeleteFunc(t.comments, func(x *reviewComment) bool { return x.review == rv })
	}
	p.threads = slices.DeleteFunc(p.threads, func(t *thread) bool { return len(t.comments) == 0 })
	p.reviews = slices.DeleteFunc(p.reviews, func(x *review) bool { return x == rv })
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

func listRepoReviewComments(c *call) answer {
	var list []*reviewComment
	for _, p := range c.repo.pulls() {
		list = append(list, p.reviewComments()...)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	return listing(c, c.visible(list), func(x *reviewComment) any { return c.s.shapeReviewComment(x) })
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

func updateReviewComment(c *call, x *reviewComment) answer {
	body, a := c.bodyOf("PullRequestReviewComment")
	if a != nil {
		return *a
	}
	if !c.mayEdit(x.user) {
		return fail(http.StatusForbidden, "Must have write access to this repository.")
	}
	c.s.editReviewComment(x, c.actor, body)
	return ok(c.s.shapeReviewComment(x))
}

func deleteReviewComment(c *call, x *reviewComment) answer {
	if !c.mayEdit(x.user) {
		return fail(http.StatusForbidden, "Must have write access to this repository.")
	}
	c.s.deleteReviewComment(x, c.actor)
	return noContent()
}
