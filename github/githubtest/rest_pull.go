package githubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// pullOps are the operations on pull requests.
var pullOps = map[string]handler{
	"pulls/list":              listPulls,
	"pulls/create":            createPull,
	"pulls/get":               withPull(getPull),
	"pulls/update":            withPull(updatePull),
	"pulls/request-reviewers": withPull(requestReviewers),
	"pulls/list-files":        withPull(listFiles),
	"pulls/list-commits":      withPull(listPullCommits),
	"pulls/merge":             withPull(mergePull),
}

func withPull(next func(*call, *pull) answer) handler {
	return func(c *call) answer {
		if i := c.repo.issues[int(c.number("pull_number"))]; i != nil && i.pull != nil {
			return next(c, i.pull)
		}
		return notFound()
	}
}

func listPulls(c *call) answer {
	q := c.r.URL.Query()
	state := q.Get("state")
	if state == "" {
		state = "open"
	}
	var list []*pull
	for _, p := range c.repo.pulls() {
		head := p.repo.owner.login + ":" + p.headRef
		if (state == "all" || p.state == state) && (q.Get("head") == "" || q.Get("head") == head) && (q.Get("base") == "" || q.Get("base") == p.baseRef) {
			list = append(list, p)
		}
	}
	if q.Get("direction") == "asc" {
		slices.Reverse(list)
	}
	return listing(c, list, func(p *pull) any { return c.s.shapePullSimple(p) })
}

// refusePull says why a pull request of these branches cannot be; empty if it can.
func (s *Server) refusePull(r *repository, head, base string) string {
	h, b := r.refs["refs/heads/"+head], r.refs["refs/heads/"+base]
	if h == "" || b == "" || head == base {
		return "invalid"
	}
	for _, p := range r.pulls() {
		if p.state == "open" && p.headRef == head && p.baseRef == base {
			return fmt.Sprintf("A pull request already exists for %s:%s.", r.owner.login, head)
		}
	}
	if s.isAncestor(r, h, b) {
		return fmt.Sprintf("No commits between %s and %s", base, head)
	}
	return ""
}

func createPull(c *call) answer {
	var req struct {
		Title, Head, Base, Body string
		Draft                   bool
		Issue                   int
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if strings.TrimSpace(req.Title) == "" {
		return invalidField("PullRequest", "title", "missing_field", "")
	}
	if err := checkBody(req.Body); err != nil {
		return invalidField("Issue", "body", "custom", err.Error())
	}
	head := strings.TrimPrefix(req.Head, c.repo.owner.login+":")
	switch why := c.s.refusePull(c.repo, head, req.Base); {
	case why == "invalid" && c.repo.refs["refs/heads/"+req.Base] == "":
		return invalidField("PullRequest", "base", "invalid", "")
	case why == "invalid":
		return invalidField("PullRequest", "head", "invalid", "")
	case why != "":
		return invalidField("PullRequest", "", "custom", why)
	}
	return created(c.s.shapePull(c.s.openPull(c.repo, c.actor, req.Title, req.Body, head, req.Base, req.Draft)))
}

func getPull(c *call, p *pull) answer {
	accept := c.r.Header.Get("Accept")
	if strings.Contains(accept, ".diff") || strings.Contains(accept, ".patch") {
		out, err := c.s.once(c.repo, "diff", cmp.Or(c.s.mergeBase(c.repo, p.baseSHA, p.headSHA), p.baseSHA), p.headSHA)
		if err != nil {
			return fail(http.StatusInternalServerError, "Server Error")
		}
		return answer{status: http.StatusOK, raw: []byte(out), header: http.Header{"Content-Type": {"application/vnd.github.diff; charset=utf-8"}}}
	}
	return ok(c.s.shapePull(p))
}

// requestReviewers asks people who can read the repository; never its author.
func requestReviewers(c *call, p *pull) answer {
	var req struct{ Reviewers []string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	for _, login := range req.Reviewers {
		who := c.s.accounts[strings.ToLower(login)]
		switch {
		case who == nil || !p.repo.can(who, "read"):
			return invalid("Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the repository.")
		case who == p.user:
			return invalid("Review cannot be requested from pull request author.")
		case !slices.Contains(p.asked, who):
			p.asked = append(p.asked, who)
			c.s.emitPull(p, "review_requested", c.actor, obj{"requested_reviewer": c.s.shapeUser(who)})
		}
	}
	return created(c.s.shapePullSimple(p))
}

func updatePull(c *call, p *pull) answer {
	var req struct {
		Title, Body *string
		State, Base string
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if req.Body != nil {
		if err := checkBody(*req.Body); err != nil {
			return invalidField("Issue", "body", "custom", err.Error())
		}
	}
	if req.State == "open" && p.state == "closed" {
		if text := c.s.refusePull(c.repo, p.headRef, p.baseRef); text != "" || !p.merged.IsZero() {
			return invalidField("PullRequest", "state", "custom", "state cannot be changed. "+text)
		}
	}
	if req.Base != "" && req.Base != p.baseRef {
		if c.repo.refs["refs/heads/"+req.Base] == "" {
			return invalidField("PullRequest", "base", "invalid", "")
		}
		from := obj{"ref": obj{"from": p.baseRef}, "sha": obj{"from": p.baseSHA}}
		p.baseRef, p.baseSHA = req.Base, c.repo.refs["refs/heads/"+req.Base]
		c.s.emitPull(p, "edited", c.actor, obj{"changes": obj{"base": from}})
	}
	c.s.editIssue(p.issue, c.actor, req.Title, req.Body)
	if req.State != "" {
		c.s.setState(p.issue, c.actor, req.State, "")
	}
	return ok(c.s.shapePull(p))
}

func listFiles(c *call, p *pull) answer {
	files, err := c.s.pullFiles(p)
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "Sorry, this diff is not available")
	}
	return listing(c, files, func(f fileDiff) any { return c.shapeFile(f, p.headSHA) })
}

func listPullCommits(c *call, p *pull) answer {
	list, err := c.s.commits(c.repo, p.headSHA, p.baseSHA)
	if err != nil {
		return notFound()
	}
	list = list[:min(len(list), 250)]
	slices.Reverse(list)
	return listing(c, list, func(i commitInfo) any { return c.s.shapeCommit(c.repo, i) })
}

func mergePull(c *call, p *pull) answer {
	var req struct {
		SHA           string `json:"sha"`
		MergeMethod   string `json:"merge_method"`
		CommitTitle   string `json:"commit_title"`
		CommitMessage string `json:"commit_message"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	switch {
	case req.SHA != "" && req.SHA != p.headSHA:
		return fail(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case p.state != "open":
		return fail(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case p.draft:
		return fail(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case c.repo.queues[p.baseRef]:
		return fail(http.StatusMethodNotAllowed, "Changes must be made through the merge queue")
	case req.MergeMethod == "rebase":
		return fail(http.StatusMethodNotAllowed, "Rebase merges are not allowed on this repository.")
	case req.MergeMethod != "" && req.MergeMethod != "merge" && req.MergeMethod != "squash":
		return invalidField("PullRequest", "merge_method", "invalid", "")
	}
	sha, err := c.s.mergePull(p, c.actor, req.MergeMethod, req.CommitTitle, req.CommitMessage)
	if err != nil {
		return fail(http.StatusMethodNotAllowed, "Pull Request has merge conflicts")
	}
	return ok(obj{"sha": sha, "merged": true, "message": "Pull Request successfully merged"})
}
