package githubtest

import (
	"fmt"
	"slices"
)

// mutationRoot carries out mutations.
type mutationRoot struct{ c *call }

func (mutationRoot) kind() string { return "Mutation" }

type mutation func(c *call, in map[string]any) (obj, error)

var mutations = map[string]mutation{
	"markPullRequestReadyForReview":   func(c *call, in map[string]any) (obj, error) { return c.draft(in, false) },
	"convertPullRequestToDraft":       func(c *call, in map[string]any) (obj, error) { return c.draft(in, true) },
	"resolveReviewThread":             func(c *call, in map[string]any) (obj, error) { return c.resolveThread(in, true) },
	"unresolveReviewThread":           func(c *call, in map[string]any) (obj, error) { return c.resolveThread(in, false) },
	"addPullRequestReviewThreadReply": (*call).threadReply,
	"minimizeComment":                 func(c *call, in map[string]any) (obj, error) { return c.minimize(in, fmt.Sprint(in["classifier"])) },
	"unminimizeComment":               func(c *call, in map[string]any) (obj, error) { return c.minimize(in, "") },
	"addComment":                      (*call).addCommentGQL,
	"dismissPullRequestReview":        (*call).dismissReview,
	"addReaction":                     (*call).addReaction,
	"removeReaction":                  (*call).removeReaction,
	"createCommitOnBranch":            (*call).commitOnBranch,
	"enqueuePullRequest":              (*call).enqueueGQL,
	"dequeuePullRequest":              (*call).dequeueGQL,
}

func (m mutationRoot) get(field string, args map[string]any) (any, error) {
	run := mutations[field]
	if run == nil {
		return nil, &gqlError{Message: "The GitHub on this machine does not implement the mutation '" + field + "'"}
	}
	if m.c.id.kind == identInstallation && !m.c.allows(field) {
		return nil, forbidden()
	}
	in, _ := args["input"].(map[string]any)
	out, err := run(m.c, in)
	if err != nil {
		return nil, err
	}
	out["clientMutationId"] = in["clientMutationId"]
	return fields{field + "Payload", out}, nil
}

func (c *call) draft(in map[string]any, draft bool) (obj, error) {
	thing, err := c.find(in["pullRequestId"])
	if err != nil {
		return nil, err
	}
	p, isPull := thing.(*pull)
	switch {
	case !isPull:
		return nil, noNode(fmt.Sprint(in["pullRequestId"]))
	case c.id.kind == identUser && c.actor != p.user && !p.repo.can(c.actor, "write"):
		return nil, forbidden()
	case p.state != "open":
		return nil, unprocessable("Pull request is closed")
	case p.draft == draft && !draft:
		return nil, unprocessable(`Pull request #` + fmt.Sprint(p.number) + ` is already "ready for review"`)
	case p.draft == draft:
		return nil, unprocessable("Pull request is already in draft state")
	}
	c.s.setDraft(p, c.actor, draft)
	return obj{"pullRequest": c.gqlPull(p)}, nil
}

func (c *call) resolveThread(in map[string]any, resolved bool) (obj, error) {
	thing, err := c.find(in["threadId"])
	if err != nil {
		return nil, err
	}
	t, isThread := thing.(*thread)
	if !isThread {
		return nil, noNode(fmt.Sprint(in["threadId"]))
	}
	if !c.mayResolve(t.pull) {
		return nil, forbidden()
	}
	c.s.setResolved(t, c.actor, resolved)
	return obj{"thread": c.gqlThread(t)}, nil
}

func (c *call) threadReply(in map[string]any) (obj, error) {
	thing, err := c.find(in["pullRequestReviewThreadId"])
	if err != nil {
		return nil, err
	}
	t, isThread := thing.(*thread)
	if !isThread {
		return nil, noNode(fmt.Sprint(in["pullRequestReviewThreadId"]))
	}
	body, _ := in["body"].(string)
	x, err := c.s.reply(t, c.actor, body)
	if err != nil {
		return nil, unprocessable(err.Error())
	}
	return obj{"comment": c.gqlReviewComment(x)}, nil
}

var classifiers = []string{"", "ABUSE", "DUPLICATE", "OFF_TOPIC", "OUTDATED", "RESOLVED", "SPAM"}

// minimize hides a comment, or shows it again when the classifier is empty.
func (c *call) minimize(in map[string]any, classifier string) (obj, error) {
	thing, err := c.find(in["subjectId"])
	if err != nil {
		return nil, err
	}
	if !slices.Contains(classifiers, classifier) {
		return nil, unprocessable("classifier " + classifier + " is invalid")
	}
	if r := repoOf(thing); c.id.kind == identUser && (r == nil || !r.can(c.actor, "triage")) {
		return nil, forbidden()
	}
	key := "minimizedComment"
	if classifier == "" {
		key = "unminimizedComment"
	}
	if !hide(thing, classifier) {
		return nil, noNode(fmt.Sprint(in["subjectId"]))
	}
	if t, isReview := thing.(*reviewComment); isReview {
		return obj{key: c.gqlReviewComment(t)}, nil
	}
	return obj{key: c.gqlComment(thing.(*comment))}, nil
}

// hide minimises a comment, or shows it again. No event tells of it.
func hide(thing any, classifier string) bool {
	switch t := thing.(type) {
	case *comment:
		t.minimized = classifier
	case *reviewComment:
		t.minimized = classifier
	default:
		return false
	}
	return true
}

func (c *call) dismissReview(in map[string]any) (obj, error) {
	thing, err := c.find(in["pullRequestReviewId"])
	if err != nil {
		return nil, err
	}
	rv, isReview := thing.(*review)
	if !isReview {
		return nil, noNode(fmt.Sprint(in["pullRequestReviewId"]))
	}
	if c.id.kind == identUser && !rv.pull.repo.can(c.actor, "write") {
		return nil, forbidden()
	}
	message, _ := in["message"].(string)
	if err := c.s.dismiss(rv, c.actor, message); err != nil {
		return nil, unprocessable(err.Error())
	}
	return obj{"pullRequestReview": c.gqlReview(rv)}, nil
}

// reactable finds what can be reacted to.
func (c *call) reactable(in map[string]any) (list *[]*reaction, subject any, content string, err error) {
	thing, err := c.find(in["subjectId"])
	if err != nil {
		return nil, nil, "", err
	}
	for rest, name := range reactionNames {
		if name == in["content"] {
			content = rest
		}
	}
	switch t := thing.(type) {
	case *comment:
		return &t.reactions, c.gqlComment(t), content, nil
	case *reviewComment:
		return &t.reactions, c.gqlReviewComment(t), content, nil
	}
	return nil, nil, "", noNode(fmt.Sprint(in["subjectId"]))
}

func (c *call) addReaction(in map[string]any) (obj, error) {
	list, subject, content, err := c.reactable(in)
	if err != nil {
		return nil, err
	}
	r, _ := c.s.react(list, c.actor, content)
	return obj{"subject": subject, "reaction": fields{"Reaction", obj{"id": r.node, "content": in["content"]}}}, nil
}

func (c *call) removeReaction(in map[string]any) (obj, error) {
	list, subject, content, err := c.reactable(in)
	if err != nil {
		return nil, err
	}
	if !unreact(list, c.actor, content) {
		return nil, unprocessable("Reaction does not exist")
	}
	return obj{"subject": subject}, nil
}

func (c *call) addCommentGQL(in map[string]any) (obj, error) {
	thing, err := c.find(in["subjectId"])
	if err != nil {
		return nil, err
	}
	var i *issue
	switch t := thing.(type) {
	case *issue:
		i = t
	case *pull:
		i = t.issue
	default:
		return nil, noNode(fmt.Sprint(in["subjectId"]))
	}
	body, _ := in["body"].(string)
	if body == "" {
		return nil, unprocessable("Body can't be blank")
	}
	x := c.s.addComment(i, c.actor, body)
	edge := fields{"IssueCommentEdge", obj{"node": c.gqlComment(x), "cursor": "c1"}}
	return obj{"commentEdge": edge, "subject": c.gqlIssue(i)}, nil
}
