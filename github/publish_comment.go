package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"forge/github/render"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// comment is a comment of Forge's own.
type comment struct {
	id        int64
	node, url string
	body      string
}

// maxPages bounds a look-up, at 100 a page.
const maxPages = 30

// selfCache keeps who the App is.
type selfCache struct {
	mu  sync.Mutex
	bot pipeline.Actor
}

// self returns the App's bot user. What others wrote is never adopted, whatever
// marker it carries.
func (a *App) self(ctx context.Context) (pipeline.Actor, error) {
	a.who.mu.Lock()
	defer a.who.mu.Unlock()
	if a.who.bot.ID != 0 {
		return a.who.bot, nil
	}
	bot, err := a.BotUser(ctx)
	if err == nil {
		a.who.bot = bot
	}
	return bot, err
}

// ownComments lists what Forge wrote on an issue or pull request.
func (a *App) ownComments(ctx context.Context, s *session, repo pipeline.Repo, number int) ([]comment, error) {
	bot, err := a.self(ctx)
	if err != nil {
		return nil, err
	}
	var out []comment
	opts := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: 100}}
	for range maxPages {
		list, resp, err := s.rest.Issues.ListComments(ctx, repo.Owner, repo.Name, number, opts)
		if err = explain(fmt.Sprintf("list the comments of %s#%d", repo.FullName(), number), "issues: read", err); err != nil {
			return nil, err
		}
		for _, c := range list {
			if c.GetUser().GetID() == bot.ID {
				out = append(out, comment{c.GetID(), c.GetNodeID(), c.GetHTMLURL(), c.GetBody()})
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}

// findComment returns Forge's comment that carries a marker, or nil.
func (a *App) findComment(ctx context.Context, s *session, repo pipeline.Repo, number int, mark string) (*comment, error) {
	list, err := a.ownComments(ctx, s, repo, number)
	return pick(list, mark), err
}

func pick(list []comment, mark string) *comment {
	i := slices.IndexFunc(list, func(c comment) bool { return strings.Contains(c.body, mark) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// lookup is findComment with one listing for each number.
func (p *publisher) lookup(ctx context.Context, number int, key string) (*comment, error) {
	list, ok := p.known[number]
	if !ok {
		var err error
		if list, err = p.app.ownComments(ctx, p.s, p.run.Repo, number); err != nil {
			return nil, err
		}
		p.known[number] = list
	}
	return pick(list, render.Marker(p.run.Trace, key)), nil
}

// comment makes an artefact that is a comment, and as many further ones as its text
// needs. What the first is known by is recorded last, so that a publication that ends
// in between begins anew.
func (p *publisher) comment(ctx context.Context, key string, number int, body string) error {
	have, want := p.artefact(key), render.Hash(body)
	if number == 0 || (have.ID != 0 && have.Hash == want) {
		return nil
	}
	parts := render.Parts(body)
	if len(parts) == 1 && p.artefact(partKey(key, 2)).ID == 0 {
		return p.one(ctx, key, number, body)
	}
	if err := p.one(ctx, key, number, parts[0]); err != nil {
		return err
	}
	first := p.artefact(key)
	first.Hash = ""
	p.made(key, first)
	for n := 2; n <= len(parts) || p.artefact(partKey(key, n)).ID != 0; n++ {
		text := ""
		if n <= len(parts) {
			text = parts[n-1]
		}
		if err := p.one(ctx, partKey(key, n), number, p.v.Part(partKey(key, n), n, len(parts), first.URL, text)); err != nil {
			return err
		}
	}
	first.Hash = want
	p.made(key, first)
	return nil
}

// partKey is the key of the n-th comment of an artefact.
func partKey(key string, n int) string { return fmt.Sprintf("%s/part/%d", key, n) }

// one makes an artefact that is one comment: it writes, rewrites, or leaves it.
func (p *publisher) one(ctx context.Context, key string, number int, body string) error {
	have, want := p.artefact(key), render.Hash(body)
	if number == 0 || (have.ID != 0 && have.Hash == want) {
		return nil
	}
	if have.ID == 0 && p.opts.Again {
		c, err := p.lookup(ctx, number, key)
		if err != nil {
			return err
		}
		if c != nil {
			have = pipeline.Artefact{ID: c.id, Node: c.node, URL: c.url, Hash: render.Hash(c.body)}
			p.made(key, have)
			if strings.TrimSpace(c.body) == strings.TrimSpace(body) {
				have.Hash = want
				p.made(key, have)
				return nil
			}
		}
	}
	r := p.run.Repo
	if have.ID != 0 {
		_, _, err := p.s.rest.Issues.EditComment(ctx, r.Owner, r.Name, have.ID, &gh.IssueComment{Body: &body})
		if err == nil {
			have.Hash = want
			p.made(key, have)
			return nil
		}
		if err = explain(fmt.Sprintf("edit the %s comment on %s#%d", key, r.FullName(), number), "issues: write", err); !gone(err) {
			return err
		}
	} // somebody deleted it: write it anew
	c, _, err := p.s.rest.Issues.CreateComment(ctx, r.Owner, r.Name, number, &gh.IssueComment{Body: &body})
	if err = explain(fmt.Sprintf("comment on %s#%d", r.FullName(), number), "issues: write", err); err != nil {
		return missing(err, "the issue was deleted or transferred, or the App lost its access")
	}
	p.made(key, pipeline.Artefact{ID: c.GetID(), Node: c.GetNodeID(), URL: c.GetHTMLURL(), Hash: want})
	return nil
}

// missing makes "not found" at a create a fault: it does not come back by trying again.
func missing(err error, why string) error {
	if gone(err) {
		return final("%v: %s.", err, why)
	}
	return err
}

func (p *publisher) status(ctx context.Context) error {
	return p.comment(ctx, "status", p.run.Task.Issue, p.v.Status())
}

// place is where people are asked: on the pull request once there is one.
func (p *publisher) place() int {
	if pr := p.run.Published.Pull; pr != nil {
		return pr.Number
	}
	return p.run.Task.Issue
}

// gates shows each gate. One that was answered before anybody saw it is not shown.
func (p *publisher) gates(ctx context.Context) error {
	for i := range p.run.Gates {
		g := &p.run.Gates[i]
		if p.artefact(g.ID).ID == 0 && (p.unasked() || g.Closed && !p.opts.Again) {
			continue
		}
		if g.Closed && p.artefact(g.ID).ID == 0 {
			if c, err := p.lookup(ctx, p.place(), g.ID); err != nil || c == nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := p.comment(ctx, g.ID, p.place(), p.v.Gate(g)); err != nil {
			return err
		}
	}
	return nil
}

// unasked reports whether the questions of the run are nobody's to answer: it builds a
// module that is left out with the first of them.
func (p *publisher) unasked() bool { return p.run.Part != nil && p.run.Config.Modules.Unasked() }

// reminders reminds of the open gate, once.
func (p *publisher) reminders(ctx context.Context) error {
	g := p.run.Gate()
	if g == nil || g.Reminded.IsZero() || p.unasked() {
		return nil
	}
	key := g.ID + "/reminder"
	if p.artefact(key).ID != 0 {
		return nil
	}
	return p.comment(ctx, key, p.place(), p.v.Reminder(key, g))
}

// histories answers those who chose "history".
func (p *publisher) histories(ctx context.Context) error {
	n := 0
	for _, g := range p.run.Gates {
		for _, a := range g.Answers {
			if a.Choice != "history" {
				continue
			}
			n++
			key := fmt.Sprintf("history/%d", n)
			if have := p.artefact(key); have.ID != 0 && have.Hash != "" {
				continue // as of the asking
			}
			if err := p.comment(ctx, key, p.place(), p.v.History(key)); err != nil {
				return err
			}
		}
	}
	return nil
}
