package githubtest

import (
	"fmt"
)

// mutationRoot carries out mutations.
type mutationRoot struct{ c *call }

func (mutationRoot) kind() string { return "Mutation" }

type mutation func(c *call, in map[string]any) (obj, error)

var mutations = map[string]mutation{
	"markPullRequestReadyForReview":   (*call).ready,
	"resolveReviewThread":             func(c *call, in map[string]any) (obj, error) { return c.resolveThread(in, true) },
	"unresolveReviewThread":           func(c *call, in map[string]any) (obj, error) { return c.resolveThread(in, false) },
	"addPullRequestReviewThreadReply": (*call).threadReply,
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

func (c *call) ready(in map[string]any) (obj, error) {
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
	case !p.draft:
		return nil, unprocessable(`Pull request #` + fmt.Sprint(p.number) + ` is already "ready for review"`)
	}
	c.s.setDraft(p, c.actor, false)
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
