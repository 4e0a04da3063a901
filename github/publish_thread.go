package github

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"forge/github/feedback"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	"github.com/shurcooL/githubv4"
)

// maxThreads is how many threads one GraphQL call answers and resolves.
const maxThreads = 10

const permThreads = "contents: write and pull_requests: write"

// thread is a review thread as the publisher sees it.
type thread feedback.Thread

// own reports whether Forge began the thread, with this marker.
func (t *thread) own(mark string) bool {
	return t.Comments[0].Own && strings.Contains(t.Comments[0].Body, mark)
}

// unanswered reports whether the last word is somebody else's.
func (t *thread) unanswered() bool { return !t.Comments[len(t.Comments)-1].Own }

func (t *thread) has(mark string) bool {
	return slices.ContainsFunc(t.Comments, func(c feedback.Comment) bool { return c.Own && strings.Contains(c.Body, mark) })
}

// turn is what should happen in one thread.
type turn struct {
	key, body, state string // state is the artefact's hash afterwards
	node             string
	resolve, reopen  bool
}

// threads follows findings in their threads: what is ruled fixed or withdrawn gets an
// answer and is resolved, what came back is opened again, a dispute and the ruling on
// it are shown. Only Forge's own threads, and never over
// the head of a person who has not been answered. All threads are read in one call,
// which also finds those that a review has just made.
func (p *publisher) threads(ctx context.Context) error {
	wanted := p.wanted()
	if len(wanted) == 0 || p.run.Published.Pull == nil {
		return nil
	}
	pull, err := p.s.pullState(ctx, p.run.Repo, p.run.Published.Pull.Number)
	if err != nil {
		return err
	}
	var turns []turn
	for _, fp := range wanted {
		t := find(pull.Threads, render.Marker(p.run.Trace, render.FindingKey(fp)))
		if t == nil && p.posted {
			continue // just made: it may not be listed yet
		}
		if t == nil { // in a review's text, or deleted
			p.made(render.FindingKey(fp), pipeline.Artefact{Hash: findingSaid})
			continue
		}
		a := pipeline.Artefact{ID: t.Comments[0].ID, Node: t.Node, URL: t.Comments[0].URL, Hash: findingOpen}
		if had := p.artefact(render.FindingKey(fp)).Hash; settled(had) {
			a.Hash = had
		}
		p.made(render.FindingKey(fp), a)
		if tn, ok := p.turn(fp, t); ok {
			turns = append(turns, tn)
		}
	}
	for len(turns) > 0 {
		n := min(len(turns), maxThreads)
		if err := p.take(ctx, turns[:n]); err != nil {
			return err
		}
		turns = turns[n:]
	}
	return nil
}

// wanted lists the fingerprints whose thread must be looked at.
func (p *publisher) wanted() []string {
	var out []string
	for i := range p.run.Findings {
		is := &p.run.Findings[i]
		h := p.artefact(render.FindingKey(is.Fingerprint())).Hash
		switch {
		case h == "" || h == findingSaid || h == findingLeft:
		case h == findingPosted,
			is.State == pipeline.IssueFixed && h != findingFixed+is.FixedIn,
			is.State == pipeline.IssueWithdrawn && h != findingWithdrawn,
			is.State == pipeline.IssueOpen && (settled(h) || len(p.argument(is)) > 0):
			out = append(out, is.Fingerprint())
		}
	}
	return out
}

// settled reports whether a finding's thread was last left as fixed or withdrawn.
func settled(hash string) bool {
	return strings.HasPrefix(hash, findingFixed) || hash == findingWithdrawn
}

// argument returns what its thread has not been told of the dispute about a finding:
// the artefact's key and the note's text.
func (p *publisher) argument(is *pipeline.Issue) [][2]string {
	var out [][2]string
	fp := is.Fingerprint()
	if key := "dispute/" + fp; is.Disputed != "" && p.artefact(key).Hash != render.Hash(is.Disputed) {
		out = append(out, [2]string{key, is.Disputed})
	}
	if key := "upheld/" + fp; is.Upheld > 0 && p.artefact(key).Hash != render.Hash(fmt.Sprint(is.Upheld)) {
		out = append(out, [2]string{key, fmt.Sprint(is.Upheld)})
	}
	return out
}

func find(list []feedback.Thread, mark string) *thread {
	for i := range list {
		if t := (*thread)(&list[i]); t.own(mark) {
			return t
		}
	}
	return nil
}

// turn decides about one thread.
func (p *publisher) turn(fp string, t *thread) (turn, bool) {
	var is *pipeline.Issue
	for i := range p.run.Findings {
		if p.run.Findings[i].Fingerprint() == fp {
			is = &p.run.Findings[i]
		}
	}
	key := render.FindingKey(fp)
	a := p.artefact(key)
	tn := turn{key: key, node: t.Node}
	switch {
	case is.State == pipeline.IssueFixed:
		tn.state = findingFixed + is.FixedIn
		human := t.unanswered()
		tn.resolve = !human && !t.Resolved && t.MayResolve
		if !t.has(render.Marker(p.run.Trace, "fixed/"+fp+"/"+text.ShortSHA(is.FixedIn))) && !t.Resolved {
			tn.body = p.v.FixedNote(is, human)
		}
	case is.State == pipeline.IssueWithdrawn:
		tn.state = findingWithdrawn
		human := t.unanswered()
		tn.resolve = !human && !t.Resolved && t.MayResolve
		if !t.has(render.Marker(p.run.Trace, "withdrawn/"+fp+"/"+text.ShortSHA(is.Seen))) && !t.Resolved {
			tn.body = p.v.WithdrawnNote(is, human)
		}
	case is.State == pipeline.IssueOpen && settled(a.Hash):
		tn.state = findingOpen
		sha := p.run.Head
		tn.reopen = t.Resolved
		if !t.has(render.Marker(p.run.Trace, "back/"+fp+"/"+text.ShortSHA(sha))) {
			tn.body = p.v.BackNote(fp, sha)
		}
	case is.State == pipeline.IssueOpen && len(p.argument(is)) > 0:
		tn.state = findingOpen
		for _, note := range p.argument(is) {
			p.made(note[0], pipeline.Artefact{Hash: render.Hash(note[1])})
			if body := p.v.ArgumentNote(is, note[0]); !t.has(strings.TrimSpace(strings.SplitN(body, "\n", 2)[0])) {
				tn.body = strings.TrimSpace(tn.body + "\n\n" + body)
			}
		}
	default:
		return turn{}, false
	}
	if tn.body == "" && !tn.resolve && !tn.reopen {
		a.Hash = tn.state
		p.made(key, a)
		return turn{}, false
	}
	return tn, true
}

// take answers and resolves several threads in one call. The library builds a
// mutation from a struct type, so the type is made for the turns at hand.
func (p *publisher) take(ctx context.Context, turns []turn) error {
	var fields []reflect.StructField
	vars := map[string]any{}
	var first githubv4.Input
	payload := reflect.TypeFor[struct{ ClientMutationID *string }]()
	add := func(mutation string, input githubv4.Input) {
		n := len(fields)
		name := "input" // the library declares this variable itself
		if n > 0 {
			name = fmt.Sprintf("input%d", n)
			vars[name] = input
		} else {
			first = input
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("M%d", n), Type: payload,
			Tag: reflect.StructTag(fmt.Sprintf(`graphql:"m%d: %s(input: $%s)"`, n, mutation, name))})
	}
	for _, t := range turns {
		if t.body != "" {
			add("addPullRequestReviewThreadReply", githubv4.AddPullRequestReviewThreadReplyInput{PullRequestReviewThreadID: t.node, Body: githubv4.String(t.body)})
		}
		if t.resolve {
			add("resolveReviewThread", githubv4.ResolveReviewThreadInput{ThreadID: t.node})
		}
		if t.reopen {
			add("unresolveReviewThread", githubv4.UnresolveReviewThreadInput{ThreadID: t.node})
		}
	}
	m := reflect.New(reflect.StructOf(fields)).Interface()
	err := p.s.gql.Mutate(ctx, m, first, vars)
	if err = explain("answer and resolve review threads", permThreads, err); err != nil {
		return err
	}
	for _, t := range turns {
		a := p.artefact(t.key)
		a.Hash = t.state
		p.made(t.key, a)
	}
	return nil
}
