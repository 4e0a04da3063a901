package githubtest

import (
	"fmt"
	"slices"
	"strings"

	"forge/github/githubtest/markdown"
)

var reviewStates = map[string]string{"COMMENT": "COMMENTED", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "": "PENDING"}

// refusal is an error in GitHub's own words.
type refusal string

func (r refusal) Error() string { return string(r) }

// maxComment is the length in bytes up to which GitHub takes a comment, measured
// in September 2026; its error text names another figure.
const maxComment = 262144

func checkBody(body string) error {
	if len(body) > maxComment {
		return refusal("body is too long (maximum is 65536 characters)")
	}
	return nil
}

// review makes a review with its comments: all of them, or, when one cannot be
// placed, nothing at all. The error is GitHub's text.
func (s *Server) review(p *pull, by *account, event, body, commit string, anchors []anchor) (*review, error) {
	state, known := reviewStates[event]
	if !known {
		return nil, refusal("Variable $event of type PullRequestReviewEvent was provided invalid value")
	}
	own := by == p.user
	switch {
	case own && event == "APPROVE":
		return nil, refusal("Review Can not approve your own pull request")
	case own && event == "REQUEST_CHANGES":
		return nil, refusal("Review Can not request changes on your own pull request")
	case body == "" && (event == "REQUEST_CHANGES" || event == "COMMENT" && len(anchors) == 0):
		return nil, refusal("Review body can't be blank")
	case slices.ContainsFunc(p.reviews, func(r *review) bool { return r.user == by && r.state == "PENDING" }):
		return nil, refusal("User can only have one pending review per pull request")
	}
	if err := checkBody(body); err != nil {
		return nil, err
	}
	threads, commit, err := s.placeAll(p, commit, anchors)
	if err != nil {
		return nil, err
	}
	rv := &review{id: s.id(), pull: p, user: by, body: body, state: state, commit: commit, submitted: s.now()}
	rv.node = s.register("PRR", rv.id, rv)
	p.reviews = append(p.reviews, rv)
	p.updated = s.now()
	for i, t := range threads {
		t.node = s.register("PRRT", s.id(), t)
		p.threads = append(p.threads, t)
		s.newReviewComment(t, rv, by, anchors[i].Body, 0)
	}
	if state != "PENDING" {
		s.emitReview(rv, by)
	}
	return rv, nil
}

// placeAll finds the threads of a review's comments in the diff of a commit.
func (s *Server) placeAll(p *pull, commit string, anchors []anchor) ([]*thread, string, error) {
	if commit == "" {
		commit = p.headSHA
	}
	sha, found := s.resolve(p.repo, commit)
	if !found || !s.isAncestor(p.repo, sha, p.headSHA) {
		return nil, "", refusal("The commit_id is not part of the pull request")
	}
	files, err := s.diffAt(p, sha)
	if err != nil {
		return nil, "", err
	}
	var threads []*thread
	for _, a := range anchors {
		if a.Body == "" {
			return nil, "", refusal("Pull request review comment body can't be blank")
		}
		if err := checkBody(a.Body); err != nil {
			return nil, "", err
		}
		t, err := place(files, a)
		if err != nil {
			return nil, "", err
		}
		t.pull, t.commit, t.origCommit = p, sha, sha
		if sha != p.headSHA {
			newer, err := s.diff(p.repo, sha, p.headSHA, "-U0")
			if err != nil {
				return nil, "", err
			}
			t.move(newer, p.headSHA)
		}
		threads = append(threads, t)
	}
	return threads, sha, nil
}

func (s *Server) newReviewComment(t *thread, rv *review, by *account, body string, replyTo int64) *reviewComment {
	c := &reviewComment{id: s.id(), thread: t, review: rv, user: by, body: body, replyTo: replyTo, created: s.now(), updated: s.now()}
	c.node = s.register("PRRC", c.id, c)
	t.comments = append(t.comments, c)
	return c
}

// emitReview tells of a submitted review and of each of its comments.
func (s *Server) emitReview(rv *review, by *account) {
	pull := s.shapePullSimple(rv.pull)
	s.emit(rv.pull.repo, "pull_request_review", "submitted", by, obj{"review": s.shapeReviewHook(rv), "pull_request": pull})
	for _, c := range rv.pull.reviewComments() {
		if c.review == rv {
			s.emit(rv.pull.repo, "pull_request_review_comment", "created", by, obj{"comment": s.shapeReviewCommentHook(c), "pull_request": pull})
		}
	}
}

// reply adds to a conversation. On GitHub it comes with a review of its own.
func (s *Server) reply(t *thread, by *account, body string) (*reviewComment, error) {
	if body == "" {
		return nil, refusal("Pull request review comment body can't be blank")
	}
	if err := checkBody(body); err != nil {
		return nil, err
	}
	p := t.pull
	rv := &review{id: s.id(), pull: p, user: by, state: "COMMENTED", commit: p.headSHA, submitted: s.now()}
	rv.node = s.register("PRR", rv.id, rv)
	p.reviews = append(p.reviews, rv)
	c := s.newReviewComment(t, rv, by, body, t.comments[0].id)
	p.updated = s.now()
	s.emitReview(rv, by)
	return c, nil
}

func (s *Server) setResolved(t *thread, by *account, resolved bool) {
	if t.resolved == resolved {
		return
	}
	t.resolved, t.resolvedBy = resolved, nil
	action := "unresolved"
	if resolved {
		t.resolvedBy, action = by, "resolved"
	}
	t.pull.updated = s.now()
	s.touch()
	comments := []any{}
	for _, c := range t.comments {
		comments = append(comments, s.shapeReviewCommentHook(c))
	}
	s.emit(t.pull.repo, "pull_request_review_thread", action, by, obj{
		"thread": obj{"node_id": t.node, "comments": comments}, "pull_request": s.shapePullSimple(t.pull), "updated_at": stamp(s.now()),
	})
}

// dismiss takes the verdict out of a review.
func (s *Server) dismiss(rv *review, by *account, message string) error {
	switch {
	case strings.TrimSpace(message) == "":
		return refusal("message can't be blank")
	case rv.state != "APPROVED" && rv.state != "CHANGES_REQUESTED":
		return refusal("Can not dismiss a commented pull request review")
	}
	rv.state, rv.pull.updated = "DISMISSED", s.now()
	rv.pull.event(s, "review_dismissed", by, nil)
	s.emit(rv.pull.repo, "pull_request_review", "dismissed", by, obj{"review": s.shapeReviewHook(rv), "pull_request": s.shapePullSimple(rv.pull)})
	return nil
}

// deleteReviewComment takes a comment away, and its conversation with the last one.
func (s *Server) deleteReviewComment(c *reviewComment, by *account) {
	t := c.thread
	shape := s.shapeReviewCommentHook(c)
	t.comments = slices.DeleteFunc(slices.Clone(t.comments), func(x *reviewComment) bool { return x == c })
	if len(t.comments) == 0 {
		t.pull.threads = slices.DeleteFunc(slices.Clone(t.pull.threads), func(x *thread) bool { return x == t })
		delete(s.nodes, t.node)
	}
	delete(s.nodes, c.node)
	t.pull.updated = s.now()
	s.emit(t.pull.repo, "pull_request_review_comment", "deleted", by, obj{"comment": shape, "pull_request": s.shapePullSimple(t.pull)})
}

// mayResolve says who may: the pull request's author, and those who can write.
func (p *pull) mayResolve(a *account) bool { return a == p.user || p.repo.can(a, "write") }

// withSuggestion returns a file with the comment's suggestion in place of its lines.
func (c *reviewComment) withSuggestion(file string) (string, error) {
	t := c.thread
	text, found := markdown.Suggestion(c.body)
	switch {
	case !found:
		return "", refusal("the comment has no suggestion block")
	case t.outdated:
		return "", refusal("Outdated suggestions cannot be applied.")
	case t.resolved || c.applied:
		return "", refusal("This suggestion has been applied or marked resolved.")
	case t.subject != "line" || t.side == "LEFT":
		return "", refusal("Applying suggestions on deleted lines is not supported.")
	}
	first := t.line
	if t.startLine > 0 {
		first = t.startLine
	}
	lines := strings.SplitAfter(file, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if first < 1 || t.line > len(lines) {
		return "", fmt.Errorf("lines %d to %d are not in %s", first, t.line, t.path)
	}
	if strings.HasSuffix(lines[t.line-1], "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	} else if t.line == len(lines) && !strings.HasSuffix(lines[t.line-1], "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	result := strings.Join(lines[:first-1], "") + text + strings.Join(lines[t.line:], "")
	if result == file {
		return "", refusal("This suggestion is invalid because no changes were made to the code.")
	}
	return result, nil
}

// commitSuggestions does what the button does: a commit of the person's, with the
// reviewers as co-authors, made by GitHub on the head branch.
func (s *Server) commitSuggestions(list []*reviewComment, by *account) (string, error) {
	p := list[0].thread.pull
	if p.state != "open" {
		return "", refusal("Suggestions cannot be applied while the pull request is closed.")
	}
	if !p.repo.can(by, "write") {
		return "", fmt.Errorf("%s cannot write to %s: suggestions cannot be applied", by.login, p.repo.fullName())
	}
	files, co := map[string]*string{}, []string{}
	ordered := slices.Clone(list)
	slices.SortFunc(ordered, func(a, b *reviewComment) int { return b.thread.line - a.thread.line }) // from below, so that lines stay where they are
	for _, c := range ordered {
		path := c.thread.path
		if files[path] == nil {
			text, err := s.show(p.repo, p.headSHA, path)
			if err != nil {
				return "", err
			}
			files[path] = &text
		}
		text, err := c.withSuggestion(*files[path])
		if err != nil {
			return "", err
		}
		files[path] = &text
		trailer := fmt.Sprintf("Co-authored-by: %s <%s>", c.user.login, c.user.mail())
		if c.user != by && !slices.Contains(co, trailer) {
			co = append(co, trailer)
		}
	}
	message := "Apply suggestions from code review"
	if len(list) == 1 {
		message = "Update " + list[0].thread.path
	}
	if len(co) > 0 {
		message += "\n\n" + strings.Join(co, "\n")
	}
	sha, err := s.commit(p.repo, commitRequest{parent: p.headSHA, message: message + "\n", author: by, committer: webFlow, files: files})
	if err != nil {
		return "", err
	}
	p.repo.verified[sha] = true
	for _, c := range list {
		c.applied = true
	}
	return sha, s.setRef(p.repo, "refs/heads/"+p.headRef, sha, by)
}
