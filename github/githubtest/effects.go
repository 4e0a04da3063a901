package githubtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
)

// The functions here change the model and tell the App of it. Everything that
// happens, by REST, by git or by a person's click, comes through them. s.mu is held.

const defaultColour = "ededed"

func (s *Server) newIssue(r *repository, by *account, title, body string) *issue {
	r.lastNumber++
	i := &issue{id: s.id(), repo: r, number: r.lastNumber, title: title, body: body, state: "open", user: by, created: s.now(), updated: s.now()}
	i.node = s.register("I", i.id, i)
	r.issues[i.number] = i
	return i
}

func (s *Server) openIssue(r *repository, by *account, title, body string, labels []string) *issue {
	i := s.newIssue(r, by, title, body)
	for _, name := range labels {
		i.labels = append(i.labels, s.ensureLabel(r, name))
	}
	s.emit(r, "issues", "opened", by, obj{"issue": s.shapeIssue(i)})
	for _, l := range i.labels {
		s.history.asks(i, by, true, "")
		i.event(s, "labeled", by, l)
		s.emit(r, "issues", "labeled", by, obj{"issue": s.shapeIssue(i), "label": s.shapeLabel(r, l)})
	}
	return i
}

func (i *issue) event(s *Server, kind string, by *account, l *label) {
	e := &issueEvent{id: s.id(), kind: kind, actor: by, label: l, at: s.now()}
	e.node = s.register("E", e.id, e)
	i.events = append(i.events, e)
	i.updated = s.now()
}

func (s *Server) ensureLabel(r *repository, name string) *label {
	if l := r.findLabel(name); l != nil {
		return l
	}
	l := &label{id: s.id(), name: name, color: defaultColour}
	l.node = s.register("LA", l.id, l)
	r.labels = append(r.labels, l)
	s.emit(r, "label", "created", s.bot, obj{"label": s.shapeLabel(r, l)})
	return l
}

// emitIssue sends issues.ACTION, or pull_request.ACTION when it is one.
func (s *Server) emitIssue(i *issue, action string, by *account, more obj) {
	if i.pull != nil {
		s.emitPull(i.pull, action, by, more)
		return
	}
	payload := obj{"issue": s.shapeIssue(i)}
	for k, v := range more {
		payload[k] = v
	}
	s.emit(i.repo, "issues", action, by, payload)
}

func (s *Server) emitPull(p *pull, action string, by *account, more obj) {
	payload := obj{"number": p.number, "pull_request": s.shapePull(p)}
	for k, v := range more {
		payload[k] = v
	}
	s.emit(p.repo, "pull_request", action, by, payload)
}

func (s *Server) addLabel(i *issue, by *account, name string) {
	l := s.ensureLabel(i.repo, name)
	if i.hasLabel(l) {
		return
	}
	i.labels = append(i.labels, l)
	s.history.asks(i, by, true, "")
	i.event(s, "labeled", by, l)
	s.emitIssue(i, "labeled", by, obj{"label": s.shapeLabel(i.repo, l)})
}

func (s *Server) removeLabel(i *issue, by *account, name string) bool {
	l := i.repo.findLabel(name)
	if l == nil || !i.hasLabel(l) {
		return false
	}
	i.labels = slices.DeleteFunc(slices.Clone(i.labels), func(x *label) bool { return x == l })
	i.event(s, "unlabeled", by, l)
	s.emitIssue(i, "unlabeled", by, obj{"label": s.shapeLabel(i.repo, l)})
	return true
}

// editIssue changes title and body where they are given and differ.
func (s *Server) editIssue(i *issue, by *account, title, body *string) {
	changes := obj{}
	if title != nil && *title != i.title {
		changes["title"] = obj{"from": i.title}
		i.title = *title
	}
	if body != nil && *body != i.body {
		changes["body"] = obj{"from": i.body}
		i.body = *body
	}
	if len(changes) > 0 {
		i.updated = s.now()
		s.emitIssue(i, "edited", by, obj{"changes": changes})
	}
}

func (s *Server) setState(i *issue, by *account, state, reason string) {
	if i.state == state {
		return
	}
	i.state, i.updated = state, s.now()
	if state == "closed" {
		i.closed, i.closedBy, i.reason = s.now(), by, reason
		if i.pull == nil && reason == "" {
			i.reason = "completed"
		}
		i.event(s, "closed", by, nil)
		s.emitIssue(i, "closed", by, nil)
		return
	}
	i.closed, i.closedBy, i.reason = time.Time{}, nil, ""
	if p := i.pull; p == nil {
		i.reason = "reopened"
	} else if sha := i.repo.refs["refs/heads/"+p.headRef]; sha != "" {
		p.headSHA = sha // what was pushed while it was closed shows only now
	}
	i.event(s, "reopened", by, nil)
	s.emitIssue(i, "reopened", by, nil)
}

func (s *Server) addComment(i *issue, by *account, body string) *comment {
	c := &comment{id: s.id(), issue: i, user: by, body: body, created: s.now(), updated: s.now()}
	c.node = s.register("IC", c.id, c)
	i.comments = append(i.comments, c)
	i.updated = s.now()
	s.history.asks(i, by, false, body)
	s.emit(i.repo, "issue_comment", "created", by, obj{"issue": s.shapeIssue(i), "comment": s.shapeComment(c)})
	return c
}

func (s *Server) editComment(c *comment, by *account, body string) {
	from := c.body
	if from == body {
		return
	}
	c.body, c.updated, c.issue.updated = body, s.now(), s.now()
	s.history.asks(c.issue, by, false, body)
	s.emit(c.issue.repo, "issue_comment", "edited", by, obj{
		"issue": s.shapeIssue(c.issue), "comment": s.shapeComment(c), "changes": obj{"body": obj{"from": from}},
	})
}

func (s *Server) deleteComment(c *comment, by *account) {
	shape := s.shapeComment(c)
	c.issue.comments = slices.DeleteFunc(c.issue.comments, func(x *comment) bool { return x == c })
	delete(s.nodes, c.node)
	s.emit(c.issue.repo, "issue_comment", "deleted", by, obj{"issue": s.shapeIssue(c.issue), "comment": shape})
}

func (s *Server) editReviewComment(c *reviewComment, by *account, body string) {
	from := c.body
	if from == body {
		return
	}
	c.body, c.updated = body, s.now()
	s.emit(c.thread.pull.repo, "pull_request_review_comment", "edited", by, obj{
		"pull_request": s.shapePullSimple(c.thread.pull), "comment": s.shapeReviewCommentHook(c), "changes": obj{"body": obj{"from": from}},
	})
}

func (s *Server) editReview(rv *review, by *account, body string) {
	from := rv.body
	rv.body = body
	if rv.state != "PENDING" && from != body {
		s.emit(rv.pull.repo, "pull_request_review", "edited", by, obj{
			"review": s.shapeReviewHook(rv), "pull_request": s.shapePullSimple(rv.pull), "changes": obj{"body": obj{"from": from}},
		})
	}
}

// react adds a reaction once. It says whether it is new.
func (s *Server) react(list *[]*reaction, by *account, content string) (*reaction, bool) {
	for _, r := range *list {
		if r.user == by && r.content == content {
			return r, false
		}
	}
	r := &reaction{id: s.id(), user: by, content: content, at: s.now()}
	r.node = s.register("REA", r.id, r)
	*list = append(*list, r)
	return r, true
}

// unreact takes a reaction back. It says whether there was one.
func unreact(list *[]*reaction, by *account, content string) bool {
	n := len(*list)
	*list = slices.DeleteFunc(slices.Clone(*list), func(r *reaction) bool { return r.user == by && r.content == content })
	return len(*list) < n
}

// openPull makes a pull request. The branches exist and differ.
func (s *Server) openPull(r *repository, by *account, title, body, head, base string, draft bool) *pull {
	i := s.newIssue(r, by, title, body)
	p := &pull{issue: i, pullID: s.id(), headRef: head, baseRef: base, headSHA: r.refs["refs/heads/"+head], baseSHA: r.refs["refs/heads/"+base], draft: draft}
	p.pullNode = s.register("PR", p.pullID, p)
	i.pull = p
	s.keepHead(p)
	s.emitPull(p, "opened", by, nil)
	return p
}

// keepHead keeps refs/pull/N/head.
func (s *Server) keepHead(p *pull) {
	if err := s.writeRef(p.repo, fmt.Sprintf("refs/pull/%d/head", p.number), p.headSHA, ""); err != nil {
		s.log.Error("keep a pull request's head", "repo", p.repo.fullName(), "pull", p.number, "error", err)
	}
}

func (s *Server) setDraft(p *pull, by *account, draft bool) {
	if p.draft == draft {
		return
	}
	p.draft, p.updated = draft, s.now()
	action := "ready_for_review"
	if draft {
		action = "converted_to_draft"
	}
	p.event(s, map[bool]string{true: "convert_to_draft", false: "ready_for_review"}[draft], by, nil)
	s.emitPull(p, action, by, nil)
}

// refMoved takes note that a ref was made, moved or deleted, and of everything
// that follows from it.
func (s *Server) refMoved(r *repository, ref, old, sha string, by *account) {
	if old == "" {
		old = zeroSHA
	}
	if old == sha {
		return
	}
	if sha == zeroSHA {
		delete(r.refs, ref)
	} else {
		r.refs[ref] = sha
	}
	r.pushed = s.now()
	s.touch()
	s.history.moved(r, ref, old, sha, by)
	s.emitPush(r, ref, old, sha, by)
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		return
	}
	for _, p := range r.pulls() {
		if p.state != "open" {
			continue
		}
		switch {
		case p.headRef == branch && sha == zeroSHA:
			s.setState(p.issue, by, "closed", "")
		case p.headRef == branch:
			s.synchronize(p, sha, by)
		case p.baseRef == branch && sha != zeroSHA && s.isAncestor(r, p.headSHA, sha):
			s.markMerged(p, by, sha)
		}
	}
	if sha != zeroSHA {
		s.requestSuite(r, branch, old, sha, by)
	}
}

// synchronize moves a pull request's head, and its threads with it.
func (s *Server) synchronize(p *pull, sha string, by *account) {
	before := p.headSHA
	p.headSHA, p.updated = sha, s.now()
	if base := p.repo.refs["refs/heads/"+p.baseRef]; base != "" {
		p.baseSHA = base
	}
	s.keepHead(p)
	diffs := map[string][]fileDiff{}
	for _, t := range p.threads {
		if t.outdated {
			continue
		}
		files, done := diffs[t.commit]
		if !done {
			var err error
			if files, err = s.diff(p.repo, t.commit, sha, "-U0"); err != nil {
				s.log.Error("follow review threads", "repo", p.repo.fullName(), "pull", p.number, "error", err)
				continue
			}
			diffs[t.commit] = files
		}
		t.move(files, sha)
	}
	s.emitPull(p, "synchronize", by, obj{"before": before, "after": sha})
}

// requestSuite makes the App's check suite for a commit, once.
func (s *Server) requestSuite(r *repository, branch, before, sha string, by *account) {
	if s.installationFor(r) == nil || !grants(s.app.Permissions, "checks:write") {
		return
	}
	if su := s.suite(r, sha, branch); su.before == "" {
		su.before = before
		s.emit(r, "check_suite", "requested", by, obj{"check_suite": s.shapeCheckSuite(su)})
	}
}

func (s *Server) suite(r *repository, sha, branch string) *checkSuite {
	for _, su := range r.suites {
		if su.head == sha && su.app == nil {
			return su
		}
	}
	su := &checkSuite{id: s.id(), repo: r, head: sha, branch: branch, created: s.now(), updated: s.now()}
	su.node = s.register("CS", su.id, su)
	r.suites = append(r.suites, su)
	return su
}

// mergeable says whether the pull request can be merged, and why not.
func (s *Server) mergeable(p *pull) (any, string) {
	if p.state != "open" {
		return nil, "unknown"
	}
	if _, err := s.mergeTree(p.repo, p.repo.refs["refs/heads/"+p.baseRef], p.headSHA); err != nil {
		return false, "dirty"
	}
	if p.draft {
		return true, "draft"
	}
	return true, "clean"
}

func (s *Server) mergeTree(r *repository, a, b string) (string, error) {
	one, err1 := s.commitAt(r, a)
	other, err2 := s.commitAt(r, b)
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("merge %s and %s: %w", a, b, err)
	}
	switch s.mergeBase(r, a, b) {
	case a:
		return other.Tree, nil
	case b:
		return one.Tree, nil
	}
	out, err := s.once(r, "merge-tree", "--write-tree", "--no-messages", a, b)
	if err != nil {
		return "", fmt.Errorf("merge %s and %s: %w", a, b, err)
	}
	return strings.TrimSpace(out), nil
}

// commitTree writes a commit of a tree, as GitHub does for its buttons.
func (s *Server) commitTree(r *repository, tree string, parents []string, by *account, message string) (string, error) {
	sha, err := r.writeCommit(tree, parents, person(by.login, by.mail(), s.now()), person("GitHub", "noreply@github.com", s.now()), message+"\n")
	if err == nil {
		r.verified[sha] = true
	}
	return sha, err
}

// mergePull merges with "merge" or "squash".
func (s *Server) mergePull(p *pull, by *account, method, title, message string) (string, error) {
	base := p.repo.refs["refs/heads/"+p.baseRef]
	tree, err := s.mergeTree(p.repo, base, p.headSHA)
	if err != nil {
		return "", err
	}
	parents := []string{base, p.headSHA}
	if title == "" {
		title = fmt.Sprintf("Merge pull request #%d from %s/%s", p.number, p.repo.owner.login, p.headRef)
		if message == "" {
			message = p.title
		}
	}
	if method == "squash" {
		parents = parents[:1]
	}
	sha, err := s.commitTree(p.repo, tree, parents, by, strings.TrimSpace(title+"\n\n"+message))
	if err != nil {
		return "", err
	}
	if err := s.writeRef(p.repo, "refs/heads/"+p.baseRef, sha, base); err != nil {
		return "", err
	}
	s.markMerged(p, by, sha)
	s.refMoved(p.repo, "refs/heads/"+p.baseRef, base, sha, by)
	return sha, nil
}

// revert makes a branch with a commit that undoes a merge, and opens a pull
// request of it, as the button does.
func (s *Server) revert(p *pull, by *account) (*pull, error) {
	if p.mergeSHA == "" {
		return nil, refusal("only a merged pull request can be reverted")
	}
	r := p.repo
	base := r.refs["refs/heads/"+p.baseRef]
	merge, err := s.commitAt(r, p.mergeSHA)
	if err != nil || len(merge.Parents) == 0 {
		return nil, fmt.Errorf("read the merge %.7s: %w", p.mergeSHA, err)
	}
	parent := merge.Parents[0]
	// A merge of two commits on top of the merge: what the base has now, and what was there before.
	var sides []string
	for _, from := range []string{base, parent} {
		c, err := s.commitAt(r, from)
		if err != nil {
			return nil, err
		}
		sha, err := s.commitTree(r, c.Tree, []string{p.mergeSHA}, by, "side")
		if err != nil {
			return nil, err
		}
		sides = append(sides, sha)
	}
	tree, err := s.mergeTree(r, sides[0], sides[1])
	if err != nil {
		return nil, refusal("Sorry, this pull request couldn’t be reverted automatically. It may have already been reverted, or the content may have changed since it was merged.")
	}
	title, what := fmt.Sprintf("Revert %q", p.title), "This reverts commit "+p.mergeSHA
	if len(merge.Parents) > 1 {
		what += ", reversing\nchanges made to " + parent
	}
	sha, err := s.commitTree(r, tree, []string{base}, by, title+"\n\n"+what+".")
	if err != nil {
		return nil, err
	}
	branch := fmt.Sprintf("revert-%d-%s", p.number, p.headRef)
	if err := s.setRef(r, "refs/heads/"+branch, sha, by); err != nil {
		return nil, err
	}
	if text := s.refusePull(r, branch, p.baseRef); text != "" {
		return nil, refusal(text)
	}
	return s.openPull(r, by, title, fmt.Sprintf("Reverts %s#%d", r.fullName(), p.number), branch, p.baseRef, false), nil
}

var closing = lazyregexp.New(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +#(\d+)`)

func (s *Server) markMerged(p *pull, by *account, sha string) {
	p.merged, p.mergedBy, p.mergeSHA, p.state = s.now(), by, sha, "closed"
	p.closed, p.closedBy, p.updated = s.now(), by, s.now()
	p.event(s, "merged", by, nil)
	s.emitPull(p, "closed", by, nil)
	if p.baseRef != p.repo.defaultBranch {
		return
	}
	for _, m := range closing.FindAllStringSubmatch(p.body, -1) {
		n, _ := strconv.Atoi(m[1]) // digits only
		if i := p.repo.issues[n]; i != nil && i.pull == nil {
			s.setState(i, by, "closed", "completed")
		}
	}
}
