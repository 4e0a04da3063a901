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
	"issues/get":            withIssue(func(c *call, i *issue) answer { return ok(c.s.shapeIssue(i)) }),
	"issues/list-for-repo":  listIssues,
	"issues/create":         createIssue,
	"issues/add-assignees":  withIssue(assign),
	"issues/list-comments":  withIssue(listComments),
	"issues/create-comment": withIssue(createComment),
	"issues/update-comment": withComment(updateComment),
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

func listComments(c *call, i *issue) answer {
	list := slices.DeleteFunc(slices.Clone(i.comments), func(x *comment) bool { return x.updated.Before(c.since()) })
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
