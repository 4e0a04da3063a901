package github

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"forge/github/render"
	"forge/pipeline"

	"github.com/shurcooL/githubv4"
)

// maxThreads is how many threads one GraphQL call answers and resolves.
const maxThreads = 10

const permThreads = "contents: write and pull_requests: write"

// thread is a review thread as GraphQL shows it. REST knows no threads.
type thread struct {
	ID               githubv4.ID
	IsResolved       bool
	ViewerCanResolve bool
	First            struct{ Nodes []threadComment } `graphql:"first: comments(first: 1)"`
	Last             struct{ Nodes []threadComment } `graphql:"last: comments(last: 30)"`
}

type threadComment struct {
	Body            string
	URL             string
	ViewerDidAuthor bool
}

var commentURL = regexp.MustCompile(`#discussion_r(\d+)$`)

// own reports whether Forge began the thread, with this marker.
func (t *thread) own(mark string) bool {
	return len(t.First.Nodes) == 1 && t.First.Nodes[0].ViewerDidAuthor && strings.Contains(t.First.Nodes[0].Body, mark)
}

// unanswered reports whether the last word is somebody else's.
func (t *thread) unanswered() bool {
	n := len(t.Last.Nodes)
	return n > 0 && !t.Last.Nodes[n-1].ViewerDidAuthor
}

func (t *thread) has(mark string) bool {
	for _, c := range t.Last.Nodes {
		if c.ViewerDidAuthor && strings.Contains(c.Body, mark) {
			return true
		}
	}
	return false
}

// turn is what should happen in one thread.
type turn struct {
	key, body, state string // state is the artefact's hash afterwards
	node             githubv4.ID
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
	list, err := p.listThreads(ctx)
	if err != nil {
		return err
	}
	var turns []turn
	for _, fp := range wanted {
		t := find(list, render.Marker(p.run.Trace, render.FindingKey(fp)))
		if t == nil && p.posted {
			continue // just made: it may not be listed yet
		}
		if t == nil { // in a review's text, or deleted
			p.made(render.FindingKey(fp), pipeline.Artefact{Hash: findingSaid})
			continue
		}
		a := pipeline.Artefact{Node: fmt.Sprint(t.ID), URL: t.First.Nodes[0].URL, Hash: findingOpen}
		if m := commentURL.FindStringSubmatch(a.URL); m != nil {
			a.ID, _ = strconv.ParseInt(m[1], 10, 64)
		}
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

func find(list []thread, mark string) *thread {
	for i := range list {
		if list[i].own(mark) {
			return &list[i]
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
	tn := turn{key: key, node: t.ID}
	switch {
	case is.State == pipeline.IssueFixed:
		tn.state = findingFixed + is.FixedIn
		human := t.unanswered()
		tn.resolve = !human && !t.IsResolved && t.ViewerCanResolve
		if !t.has(render.Marker(p.run.Trace, "fixed/"+fp+"/"+render.ShortSHA(is.FixedIn))) && !t.IsResolved {
			tn.body = p.v.FixedNote(is, human)
		}
	case is.State == pipeline.IssueWithdrawn:
		tn.state = findingWithdrawn
		human := t.unanswered()
		tn.resolve = !human && !t.IsResolved && t.ViewerCanResolve
		if !t.has(render.Marker(p.run.Trace, "withdrawn/"+fp+"/"+render.ShortSHA(is.Seen))) && !t.IsResolved {
			tn.body = p.v.WithdrawnNote(is, human)
		}
	case is.State == pipeline.IssueOpen && settled(a.Hash):
		tn.state = findingOpen
		sha := p.run.Head
		tn.reopen = t.IsResolved
		if !t.has(render.Marker(p.run.Trace, "back/"+fp+"/"+render.ShortSHA(sha))) {
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

func (p *publisher) listThreads(ctx context.Context) ([]thread, error) {
	var out []thread
	vars := map[string]any{"owner": githubv4.String(p.run.Repo.Owner), "name": githubv4.String(p.run.Repo.Name),
		"number": githubv4.Int(p.run.Published.Pull.Number), "after": (*githubv4.String)(nil)}
	for range maxPages {
		var q struct {
			Repository struct {
				PullRequest struct {
					ReviewThreads struct {
						Nodes    []thread
						PageInfo struct {
							HasNextPage bool
							EndCursor   githubv4.String
						}
					} `graphql:"reviewThreads(first: 100, after: $after)"`
				} `graphql:"pullRequest(number: $number)"`
			} `graphql:"repository(owner: $owner, name: $name)"`
		}
		err := p.s.gql.Query(ctx, &q, vars)
		if err = explain(fmt.Sprintf("read the review threads of %s#%d", p.run.Repo.FullName(), p.run.Published.Pull.Number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		page := q.Repository.PullRequest.ReviewThreads
		out = append(out, page.Nodes...)
		if !page.PageInfo.HasNextPage {
			break
		}
		vars["after"] = githubv4.NewString(page.PageInfo.EndCursor)
	}
	return out, nil
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
