package githubtest

import (
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// issueOps are the operations on issues and their comments.
var issueOps = map[string]handler{
	"issues/get":                    withIssue(func(c *call, i *issue) answer { return ok(c.s.shapeIssue(i)) }),
	"issues/list-for-repo":          listIssues,
	"issues/create":                 createIssue,
	"issues/update":                 withIssue(updateIssue),
	"issues/add-assignees":          withIssue(assign),
	"issues/remove-assignees":       withIssue(unassign),
	"issues/list-comments":          withIssue(listComments),
	"issues/list-comments-for-repo": listRepoComments,
	"issues/create-comment":         withIssue(createComment),
	"issues/get-comment":            withComment(func(c *call, x *comment) answer { return ok(c.s.shapeComment(x)) }),
	"issues/update-comment":         withComment(updateComment),
	"issues/delete-comment":         withComment(removeComment),
	"issues/list-events":            withIssue(listEvents),

	"reactions/list-for-issue":                         withIssue(func(c *call, i *issue) answer { return listReactions(c, i.reactions) }),
	"reactions/create-for-issue":                       withIssue(func(c *call, i *issue) answer { return createReaction(c, &i.reactions) }),
	"reactions/delete-for-issue":                       withIssue(func(c *call, i *issue) answer { return deleteReaction(c, &i.reactions) }),
	"reactions/list-for-issue-comment":                 withComment(func(c *call, x *comment) answer { return listReactions(c, x.reactions) }),
	"reactions/create-for-issue-comment":               withComment(func(c *call, x *comment) answer { return createReaction(c, &x.reactions) }),
	"reactions/delete-for-issue-comment":               withComment(func(c *call, x *comment) answer { return deleteReaction(c, &x.reactions) }),
	"reactions/list-for-pull-request-review-comment":   withReviewComment(func(c *call, x *reviewComment) answer { return listReactions(c, x.reactions) }),
	"reactions/create-for-pull-request-review-comment": withReviewComment(func(c *call, x *reviewComment) answer { return createReaction(c, &x.reactions) }),
	"reactions/delete-for-pull-request-comment":        withReviewComment(func(c *call, x *reviewComment) answer { return deleteReaction(c, &x.reactions) }),
}

func withIssue(next func(*call, *issue) answer) handler {
	return func(c *call) answer {
		if i := c.repo.issues[int(c.number("issue_number"))]; i != nil {
			return next(c, i)
		}
		return notFound()
	}
}

func withComment(next func(*call, *comment) answer) handler {
	return func(c *call) answer {
		if x := c.repo.findComment(c.number("comment_id")); x != nil {
			return next(c, x)
		}
		return notFound()
	}
}

// since reads ?since=; zero when there is none.
func (c *call) since() time.Time {
	t, err := time.Parse(time.RFC3339, c.r.URL.Query().Get("since"))
	if err != nil {
		return time.Time{}
	}
	return t
}

func listIssues(c *call) answer {
	q := c.r.URL.Query()
	state := q.Get("state")
	if state == "" {
		state = "open"
	}
	var list []*issue
	for _, i := range c.repo.issueList() {
		fits := (state == "all" || i.state == state) && !i.updated.Before(c.since()) && (q.Get("creator") == "" || strings.EqualFold(q.Get("creator"), i.user.login))
		for _, name := range strings.Split(q.Get("labels"), ",") {
			if l := c.repo.findLabel(name); name != "" && (l == nil || !i.hasLabel(l)) {
				fits = false
			}
		}
		if fits {
			list = append(list, i)
		}
	}
	if q.Get("sort") == "updated" {
		sort.SliceStable(list, func(a, b int) bool { return list[a].updated.After(list[b].updated) })
	}
	if q.Get("direction") == "asc" {
		slices.Reverse(list)
	}
	return listing(c, list, func(i *issue) any { return c.s.shapeIssue(i) })
}

// names reads labels, which may be texts or objects with a name.
func names(list []any) (out []string) {
	for _, v := range list {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case map[string]any:
			if name, isText := v["name"].(string); isText {
				out = append(out, name)
			}
		}
	}
	return out
}

func createIssue(c *call) answer {
	var req struct {
		Title  string
		Body   string
		Labels []any
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if strings.TrimSpace(req.Title) == "" {
		return invalidField("Issue", "title", "missing_field", "")
	}
	if err := checkBody(req.Body); err != nil {
		return invalidField("Issue", "body", "custom", err.Error())
	}
	return created(c.s.shapeIssue(c.s.openIssue(c.repo, c.actor, req.Title, req.Body, names(req.Labels))))
}

func updateIssue(c *call, i *issue) answer {
	var req struct {
		Title       *string
		Body        *string
		State       string
		StateReason string `json:"state_reason"`
		Labels      *[]any
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if req.Title != nil && strings.TrimSpace(*req.Title) == "" {
		return invalidField("Issue", "title", "missing_field", "")
	}
	if req.Body != nil {
		if err := checkBody(*req.Body); err != nil {
			return invalidField("Issue", "body", "custom", err.Error())
		}
	}
	if !slices.Contains([]string{"", "open", "closed"}, req.State) {
		return invalidField("Issue", "state", "invalid", "")
	}
	c.s.editIssue(i, c.actor, req.Title, req.Body)
	if req.Labels != nil {
		c.setLabels(i, names(*req.Labels))
	}
	if req.State != "" {
		c.s.setState(i, c.actor, req.State, req.StateReason)
	}
	return ok(c.s.shapeIssue(i))
}

func (c *call) accounts() ([]*account, *answer) {
	var req struct{ Assignees []string }
	if a := c.decode(&req); a != nil {
		return nil, a
	}
	var list []*account
	for _, login := range req.Assignees {
		if a := c.s.accounts[strings.ToLower(login)]; a != nil && c.repo.can(a, "triage") {
			list = append(list, a)
		}
	}
	return list, nil
}

func assign(c *call, i *issue) answer {
	list, a := c.accounts()
	if a != nil {
		return *a
	}
	for _, who := range list {
		if !slices.Contains(i.assignees, who) {
			i.assignees = append(i.assignees, who)
			c.s.emitIssue(i, "assigned", c.actor, obj{"assignee": c.s.shapeUser(who)})
		}
	}
	return created(c.s.shapeIssue(i))
}

func unassign(c *call, i *issue) answer {
	list, a := c.accounts()
	if a != nil {
		return *a
	}
	for _, who := range list {
		if at := slices.Index(i.assignees, who); at >= 0 {
			i.assignees = slices.Delete(slices.Clone(i.assignees), at, at+1)
			c.s.emitIssue(i, "unassigned", c.actor, obj{"assignee": c.s.shapeUser(who)})
		}
	}
	return ok(c.s.shapeIssue(i))
}

func listComments(c *call, i *issue) answer {
	list := slices.DeleteFunc(slices.Clone(i.comments), func(x *comment) bool { return x.updated.Before(c.since()) })
	return listing(c, list, func(x *comment) any { return c.s.shapeComment(x) })
}

func listRepoComments(c *call) answer {
	var list []*comment
	for _, i := range c.repo.issues {
		for _, x := range i.comments {
			if !x.updated.Before(c.since()) {
				list = append(list, x)
			}
		}
	}
	sort.Slice(list, func(a, b int) bool { return list[a].id < list[b].id })
	if c.r.URL.Query().Get("direction") == "desc" {
		slices.Reverse(list)
	}
	return listing(c, list, func(x *comment) any { return c.s.shapeComment(x) })
}

// bodyOf reads and checks the body field.
func (c *call) bodyOf(resource string) (string, *answer) {
	var req struct{ Body string }
	if a := c.decode(&req); a != nil {
		return "", a
	}
	var a answer
	if strings.TrimSpace(req.Body) == "" {
		a = invalidField(resource, "body", "missing_field", "")
		return "", &a
	}
	if err := checkBody(req.Body); err != nil {
		a = invalidField(resource, "body", "custom", err.Error())
		return "", &a
	}
	return req.Body, nil
}

func createComment(c *call, i *issue) answer {
	body, a := c.bodyOf("IssueComment")
	if a != nil {
		return *a
	}
	return created(c.s.shapeComment(c.s.addComment(i, c.actor, body)))
}

// mayEdit says whether the caller may change what somebody wrote: the App with its
// permission may, a person their own or with write access.
func (c *call) mayEdit(author *account) bool {
	return c.id.kind != identUser || author == c.actor || c.repo.can(c.actor, "write")
}

func updateComment(c *call, x *comment) answer {
	body, a := c.bodyOf("IssueComment")
	if a != nil {
		return *a
	}
	if !c.mayEdit(x.user) {
		return fail(http.StatusForbidden, "Must have write access to this repository.")
	}
	c.s.editComment(x, c.actor, body)
	return ok(c.s.shapeComment(x))
}

func removeComment(c *call, x *comment) answer {
	if !c.mayEdit(x.user) {
		return fail(http.StatusForbidden, "Must have write access to this repository.")
	}
	c.s.deleteComment(x, c.actor)
	return noContent()
}

func listEvents(c *call, i *issue) answer {
	return listing(c, i.events, func(e *issueEvent) any {
		o := obj{
			"id": e.id, "node_id": e.node, "url": c.s.api(c.repo) + "/issues/events", "actor": c.s.shapeUser(e.actor), "event": e.kind, "commit_id": nil,
			"commit_url": nil, "created_at": stamp(e.at), "performed_via_github_app": c.s.viaApp(e.actor),
		}
		if e.label != nil {
			o["label"] = obj{"name": e.label.name, "color": e.label.color}
		}
		return o
	})
}

func listReactions(c *call, list []*reaction) answer {
	want := c.r.URL.Query().Get("content")
	list = slices.DeleteFunc(slices.Clone(list), func(r *reaction) bool { return want != "" && r.content != want })
	return listing(c, list, func(r *reaction) any { return c.s.shapeReaction(r) })
}

func createReaction(c *call, list *[]*reaction) answer {
	var req struct{ Content string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	if !slices.Contains(reactionKinds, req.Content) {
		return invalidField("Reaction", "content", "invalid", "")
	}
	r, isNew := c.s.react(list, c.actor, req.Content)
	if isNew {
		return created(c.s.shapeReaction(r))
	}
	return ok(c.s.shapeReaction(r))
}

func deleteReaction(c *call, list *[]*reaction) answer {
	n := len(*list)
	*list = slices.DeleteFunc(slices.Clone(*list), func(r *reaction) bool { return r.id == c.number("reaction_id") && c.mayEdit(r.user) })
	if len(*list) == n {
		return notFound()
	}
	return noContent()
}
