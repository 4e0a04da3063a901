package githubtest

import (
	"fmt"
	"slices"
	"strings"
)

// queryRoot answers queries.
type queryRoot struct{ c *call }

func (queryRoot) kind() string { return "Query" }

func (q queryRoot) get(field string, args map[string]any) (any, error) {
	c := q.c
	switch field {
	case "viewer":
		return c.gqlActor(c.actor), nil
	case "repository":
		full := fmt.Sprint(args["owner"], "/", args["name"])
		r := c.s.named(full)
		if r == nil || !c.s.reaches(c.id, r) {
			return nil, &gqlError{Type: "NOT_FOUND", Message: "Could not resolve to a Repository with the name '" + full + "'."}
		}
		return c.gqlRepo(r), nil
	case "node":
		return c.node(args["id"])
	case "rateLimit":
		return fields{"RateLimit", obj{"limit": hourlyLimit, "cost": 1, "remaining": hourlyLimit - 1, "used": 1, "nodeCount": 0, "resetAt": stamp(c.s.now())}}, nil
	}
	return nil, &gqlError{Message: "The GitHub on this machine does not implement the query '" + field + "'"}
}

// find returns the thing with a node id that the token may see.
func (c *call) find(id any) (any, error) {
	text, _ := id.(string)
	thing := c.s.nodes[text]
	if r := repoOf(thing); r != nil && !c.s.reaches(c.id, r) {
		thing = nil
	}
	if thing == nil {
		return nil, noNode(text)
	}
	return thing, nil
}

func repoOf(thing any) *repository {
	switch t := thing.(type) {
	case *repository:
		return t
	case *issue:
		return t.repo
	case *pull:
		return t.repo
	case *comment:
		return t.issue.repo
	case *review:
		return t.pull.repo
	case *thread:
		return t.pull.repo
	case *reviewComment:
		return t.thread.pull.repo
	}
	return nil
}

func (c *call) node(id any) (any, error) {
	thing, err := c.find(id)
	if err != nil {
		return nil, err
	}
	switch t := thing.(type) {
	case *repository:
		return c.gqlRepo(t), nil
	case *issue:
		return c.gqlIssue(t), nil
	case *pull:
		return c.gqlPull(t), nil
	case *comment:
		return c.gqlComment(t), nil
	case *review:
		return c.gqlReview(t), nil
	case *thread:
		return c.gqlThread(t), nil
	case *reviewComment:
		return c.gqlReviewComment(t), nil
	case *account:
		return c.gqlActor(t), nil
	}
	return nil, noNode(fmt.Sprint(id))
}

// gqlActor is a person or bot. A bot's login has no [bot] in GraphQL.
func (c *call) gqlActor(a *account) any {
	if a == nil {
		return nil
	}
	return fields{a.kind, obj{
		"id": a.node, "databaseId": a.id, "login": strings.TrimSuffix(a.login, "[bot]"), "url": c.s.URL + "/" + a.login,
		"avatarUrl": c.s.URL + "/avatars/" + a.login, "resourcePath": "/" + a.login,
	}}
}

func (c *call) gqlRepo(r *repository) gqlNode {
	byNumber := func(args map[string]any) *issue {
		n, _ := toInt(args["number"])
		return r.issues[n]
	}
	missing := func(kind string, args map[string]any) error {
		return &gqlError{Type: "NOT_FOUND", Message: fmt.Sprintf("Could not resolve to %s with the number of %v.", kind, args["number"])}
	}
	return fields{"Repository", obj{
		"id": r.node, "databaseId": r.id, "name": r.name, "nameWithOwner": r.fullName(), "owner": c.gqlActor(r.owner), "url": c.s.html(r),
		"isPrivate": r.private, "viewerPermission": "WRITE",
		"defaultBranchRef": func() any {
			sha := r.refs["refs/heads/"+r.defaultBranch]
			return fields{"Ref", obj{"name": r.defaultBranch, "target": fields{"Commit", obj{"oid": sha, "id": "C_" + sha}}}}
		},
		"issue": func(args map[string]any) (any, error) {
			if i := byNumber(args); i != nil && i.pull == nil {
				return c.gqlIssue(i), nil
			}
			return nil, missing("an Issue", args)
		},
		"pullRequest": func(args map[string]any) (any, error) {
			if i := byNumber(args); i != nil && i.pull != nil {
				return c.gqlPull(i.pull), nil
			}
			return nil, missing("a PullRequest", args)
		},
	}}
}

func (c *call) gqlCommon(i *issue) obj {
	return obj{
		"number": i.number, "title": i.title, "body": i.body, "author": c.gqlActor(i.user), "url": fmt.Sprintf("%s/%s/%d", c.s.html(i.repo), i.kindPath(), i.number),
		"createdAt": stamp(i.created), "updatedAt": stamp(i.updated), "closed": i.state == "closed", "closedAt": stampOrNil(i.closed),
		"repository": func() any { return c.gqlRepo(i.repo) },
		"labels": func(args map[string]any) (any, error) {
			var nodes []gqlNode
			for _, l := range i.labels {
				nodes = append(nodes, fields{"Label", obj{"id": l.node, "name": l.name, "color": l.color, "description": orNil(l.description)}})
			}
			return connection("Label", nodes, args)
		},
		"comments": func(args map[string]any) (any, error) {
			var nodes []gqlNode
			for _, x := range i.comments {
				nodes = append(nodes, c.gqlComment(x))
			}
			return connection("IssueComment", nodes, args)
		},
	}
}

func (c *call) gqlIssue(i *issue) gqlNode {
	m := c.gqlCommon(i)
	m["id"], m["databaseId"], m["state"] = i.node, i.id, strings.ToUpper(i.state)
	m["parent"] = func() any {
		if i.parent == nil {
			return nil
		}
		return c.gqlIssue(i.parent)
	}
	m["subIssues"] = func(args map[string]any) (any, error) {
		var nodes []gqlNode
		for _, sub := range i.subs {
			nodes = append(nodes, c.gqlIssue(sub))
		}
		return connection("Issue", nodes, args)
	}
	return fields{"Issue", m}
}

func (c *call) gqlPull(p *pull) gqlNode {
	m := c.gqlCommon(p.issue)
	state := strings.ToUpper(p.state)
	if !p.merged.IsZero() {
		state = "MERGED"
	}
	m["id"], m["databaseId"], m["state"], m["isDraft"] = p.pullNode, p.pullID, state, p.draft
	m["headRefOid"], m["headRefName"], m["baseRefName"], m["baseRefOid"] = p.headSHA, p.headRef, p.baseRef, p.baseSHA
	m["merged"], m["mergedAt"], m["mergedBy"] = !p.merged.IsZero(), stampOrNil(p.merged), c.gqlActor(p.mergedBy)
	if p.mergeSHA != "" {
		m["mergeCommit"] = fields{"Commit", obj{"oid": p.mergeSHA, "id": "C_" + p.mergeSHA}}
	} else {
		m["mergeCommit"] = nil
	}
	m["mergeable"] = func() any {
		yes, _ := c.s.mergeable(p)
		return map[any]string{true: "MERGEABLE", false: "CONFLICTING", nil: "UNKNOWN"}[yes]
	}
	m["mergeStateStatus"] = func() any {
		_, state := c.s.mergeable(p)
		return strings.ToUpper(state)
	}
	m["isMergeQueueEnabled"], m["isInMergeQueue"] = p.repo.queues[p.baseRef], p.queued
	m["reviewThreads"] = func(args map[string]any) (any, error) {
		var nodes []gqlNode
		for _, t := range p.threads {
			if t.comments[0].review.state != "PENDING" || t.comments[0].user == c.actor {
				nodes = append(nodes, c.gqlThread(t))
			}
		}
		return connection("PullRequestReviewThread", nodes, args)
	}
	m["reviews"] = func(args map[string]any) (any, error) {
		var nodes []gqlNode
		for _, rv := range p.reviews {
			nodes = append(nodes, c.gqlReview(rv))
		}
		return connection("PullRequestReview", nodes, args)
	}
	return fields{"PullRequest", m}
}

func line(n int) any { return idOrNil(int64(n)) }

func (c *call) gqlThread(t *thread) gqlNode {
	subject := strings.ToUpper(t.subject)
	var startSide any
	if t.origStart > 0 {
		startSide = t.startSide
	}
	may := c.mayResolve(t.pull)
	var by any // people only, as the schema has it
	if t.resolvedBy != nil && !t.resolvedBy.bot() {
		by = c.gqlActor(t.resolvedBy)
	}
	return fields{"PullRequestReviewThread", obj{
		"id": t.node, "isResolved": t.resolved, "isOutdated": t.outdated, "isCollapsed": t.resolved || t.outdated, "path": t.path, "line": line(t.line),
		"startLine": line(t.startLine), "originalLine": line(t.origLine), "originalStartLine": line(t.origStart), "diffSide": t.side,
		"startDiffSide": startSide, "subjectType": subject, "resolvedBy": by, "viewerCanResolve": may && !t.resolved,
		"viewerCanUnresolve": may && t.resolved, "viewerCanReply": true,
		"pullRequest": func() any { return c.gqlPull(t.pull) },
		"repository":  func() any { return c.gqlRepo(t.pull.repo) },
		"comments": func(args map[string]any) (any, error) {
			var nodes []gqlNode
			for _, x := range t.comments {
				nodes = append(nodes, c.gqlReviewComment(x))
			}
			return connection("PullRequestReviewComment", nodes, args)
		},
	}}
}

// mayResolve: an App needs contents: write besides pull_requests: write.
func (c *call) mayResolve(p *pull) bool {
	if c.id.kind == identInstallation {
		return c.allows("resolveReviewThread")
	}
	return p.mayResolve(c.actor)
}

func (c *call) allows(mutation string) bool {
	needs, known := c.s.table.GraphQL[mutation]
	if !known {
		needs = otherMutations[mutation]
	}
	return !slices.ContainsFunc(needs, func(n string) bool { return !grants(c.id.tok.perms, n) })
}

// otherMutations are those whose needs the table does not have; they follow those
// of the same thing in REST.
var otherMutations = map[string][]string{
	"addPullRequestReviewThreadReply": {"pull_requests:write"},
	"enqueuePullRequest":              {"pull_requests:write", "contents:write"},
	"dequeuePullRequest":              {"pull_requests:write", "contents:write"},
}

func (c *call) gqlComment(x *comment) gqlNode {
	return fields{"IssueComment", obj{
		"id": x.node, "databaseId": x.id, "body": x.body, "author": c.gqlActor(x.user), "createdAt": stamp(x.created), "updatedAt": stamp(x.updated),
		"reactions": c.gqlReactions(x.reactions), "reactionGroups": c.gqlReactionGroups(x.reactions),
		"url":         fmt.Sprintf("%s/%s/%d#issuecomment-%d", c.s.html(x.issue.repo), x.issue.kindPath(), x.issue.number, x.id),
		"isMinimized": x.minimized != "", "minimizedReason": orNil(strings.ToLower(x.minimized)), "viewerCanMinimize": true,
	}}
}

func (c *call) gqlReview(rv *review) gqlNode {
	return fields{"PullRequestReview", obj{
		"id": rv.node, "databaseId": rv.id, "fullDatabaseId": fmt.Sprint(rv.id), "state": rv.state, "body": rv.body,
		"author": c.gqlActor(rv.user), "submittedAt": stamp(rv.submitted),
		"commit": fields{"Commit", obj{"oid": rv.commit}},
	}}
}

func (c *call) gqlReviewComment(x *reviewComment) gqlNode {
	t := x.thread
	return fields{"PullRequestReviewComment", obj{
		"id": x.node, "databaseId": x.id, "fullDatabaseId": fmt.Sprint(x.id), "body": x.body, "author": c.gqlActor(x.user), "path": t.path,
		"line": line(t.line), "startLine": line(t.startLine), "originalLine": line(t.origLine), "originalStartLine": line(t.origStart),
		"outdated": t.outdated, "diffHunk": t.hunk,
		"createdAt": stamp(x.created), "updatedAt": stamp(x.updated), "state": "SUBMITTED", "viewerDidAuthor": x.user == c.actor,
		"reactions": c.gqlReactions(x.reactions), "reactionGroups": c.gqlReactionGroups(x.reactions),
		"url":         fmt.Sprintf("%s/pull/%d#discussion_r%d", c.s.html(t.pull.repo), t.pull.number, x.id),
		"isMinimized": x.minimized != "", "minimizedReason": orNil(strings.ToLower(x.minimized)), "viewerCanMinimize": true,
		"pullRequestReview": func() any { return c.gqlReview(x.review) },
		"commit":            fields{"Commit", obj{"oid": t.commit}}, "originalCommit": fields{"Commit", obj{"oid": t.origCommit}},
	}}
}

// reactionNames are the names of reactions in GraphQL.
var reactionNames = map[string]string{
	"+1": "THUMBS_UP", "-1": "THUMBS_DOWN", "laugh": "LAUGH", "confused": "CONFUSED", "heart": "HEART", "hooray": "HOORAY", "rocket": "ROCKET", "eyes": "EYES",
}

func (c *call) gqlReactions(list []*reaction) func(map[string]any) (any, error) {
	return func(args map[string]any) (any, error) {
		var nodes []gqlNode
		for _, r := range list {
			if want, _ := args["content"].(string); want != "" && want != reactionNames[r.content] {
				continue
			}
			var user any // people only; a bot is none
			if !r.user.bot() {
				user = c.gqlActor(r.user)
			}
			nodes = append(nodes, fields{"Reaction", obj{"id": r.node, "databaseId": r.id, "content": reactionNames[r.content], "createdAt": stamp(r.at), "user": user}})
		}
		return connection("Reaction", nodes, args)
	}
}

// gqlReactionGroups has a group for every kind of reaction, empty ones too.
func (c *call) gqlReactionGroups(list []*reaction) func() any {
	return func() any {
		var groups []gqlNode
		for _, kind := range reactionKinds {
			var nodes []gqlNode
			mine := false
			for _, r := range list {
				if r.content == kind {
					nodes = append(nodes, c.gqlActor(r.user).(gqlNode))
					mine = mine || r.user == c.actor
				}
			}
			var first any
			if i := slices.IndexFunc(list, func(r *reaction) bool { return r.content == kind }); i >= 0 {
				first = stamp(list[i].at)
			}
			groups = append(groups, fields{"ReactionGroup", obj{
				"content": reactionNames[kind], "createdAt": first, "viewerHasReacted": mine,
				"reactors": func(args map[string]any) (any, error) { return connection("Reactor", nodes, args) },
			}})
		}
		return groups
	}
}
