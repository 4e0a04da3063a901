package githubtest

import (
	"errors"
	"fmt"
	"slices"
)

// DeleteComment deletes a comment, of an issue or of a review.
func (p *Person) DeleteComment(repo string, id int64) error {
	return p.onEither("delete comment", repo, id, func(a *account, c *comment) error {
		p.s.deleteComment(c, a)
		return nil
	}, func(a *account, c *reviewComment) error {
		p.s.deleteReviewComment(c, a)
		return nil
	})
}

// Hide minimises a comment, of an issue or of a review: ABUSE, DUPLICATE,
// OFF_TOPIC, OUTDATED, RESOLVED or SPAM; an empty reason shows it again. The role
// triage is needed. GitHub tells nobody of it.
func (p *Person) Hide(repo string, id int64, reason string) error {
	return p.act(fmt.Sprintf("hide comment %d", id), repo, func(a *account, r *repository) error {
		var thing any
		if c := r.findComment(id); c != nil {
			thing = c
		} else if c := r.findReviewComment(id); c != nil {
			thing = c
		}
		switch {
		case !slices.Contains(classifiers, reason):
			return fmt.Errorf("%q is no reason to hide a comment; use one of %v", reason, classifiers[1:])
		case !r.can(a, "triage"):
			return fmt.Errorf("this needs the role triage, %s has %s", a.login, r.role(a))
		case !hide(thing, reason):
			return errors.New("there is no such comment")
		}
		return nil
	})
}

// React puts a reaction on a comment, or takes it back when it is there: "+1",
// "-1", "laugh", "confused", "heart", "hooray", "rocket" or "eyes". GitHub tells
// nobody of it.
func (p *Person) React(repo string, id int64, content string) error {
	return p.act(fmt.Sprintf("react to comment %d", id), repo, func(a *account, r *repository) error {
		var list *[]*reaction
		if c := r.findComment(id); c != nil {
			list = &c.reactions
		} else if c := r.findReviewComment(id); c != nil {
			list = &c.reactions
		} else {
			return errors.New("there is no such comment")
		}
		if !slices.Contains(reactionKinds, content) {
			return fmt.Errorf("%q is no reaction; use one of %v", content, reactionKinds)
		}
		if !unreact(list, a, content) {
			p.s.react(list, a, content)
		}
		return nil
	})
}

// EditReview replaces the text of a review.
func (p *Person) EditReview(repo string, n int, review int64, body string) error {
	return p.onIssue("edit a review of", repo, n, "read", func(a *account, i *issue) error {
		if i.pull != nil {
			for _, rv := range i.pull.reviews {
				if rv.id == review && rv.user == a {
					p.s.editReview(rv, a, body)
					return nil
				}
			}
		}
		return fmt.Errorf("there is no review %d of %s", review, a.login)
	})
}

// Dismiss dismisses a review that approved or asked for changes. The role write
// is needed.
func (p *Person) Dismiss(repo string, n int, review int64, message string) error {
	return p.onIssue("dismiss a review of", repo, n, "write", func(a *account, i *issue) error {
		if i.pull != nil {
			for _, rv := range i.pull.reviews {
				if rv.id == review {
					return p.s.dismiss(rv, a, message)
				}
			}
		}
		return fmt.Errorf("there is no review %d", review)
	})
}

// Squash merges a pull request into one commit.
func (p *Person) Squash(repo string, n int) error { return p.merge(repo, n, "squash") }

// Revert opens a pull request that undoes a merged one, and returns its number.
func (p *Person) Revert(repo string, n int) (number int, err error) {
	err = p.onIssue("revert", repo, n, "write", func(a *account, i *issue) error {
		if i.pull == nil {
			return errors.New("it is no pull request")
		}
		made, err := p.s.revert(i.pull, a)
		if err == nil {
			number = made.number
		}
		return err
	})
	return number, err
}
