package github

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// pusher moves commits to GitHub. It is the server's git gateway.
type pusher interface {
	// Push sets branch to sha, provided that it stands at old ("": that it does not
	// exist). An error with the method Moved() string carries the head that
	// someone else put there; one with Rejected() string carries GitHub's words for
	// why it does not take the push.
	Push(ctx context.Context, repo pipeline.Repo, branch, sha, old string) error
	// Diff returns the unified diff between two commits.
	Diff(ctx context.Context, repo pipeline.Repo, from, to string) (string, error)
	// Delete deletes a branch, provided that it stands at old; its errors are Push's.
	Delete(ctx context.Context, repo pipeline.Repo, branch, old string) error
}

// PublishOptions is what a publication needs besides the run.
type PublishOptions struct {
	Again  bool   // the last attempt crashed or was ambiguous: look before making anything
	Pusher pusher //

	// Family returns the runs that build the run's modules. It is asked only where something
	// of theirs is to be shown.
	Family func(context.Context) ([]*pipeline.Run, error)
}

// Publish brings GitHub in line with a run: it renders what should be there and
// makes the difference to run.Published. It returns what it made, and events for
// what it found out: that someone else moved the branch (then nothing else is done
// while the run goes on).
//
// With an error the publication still holds what was made before it, and must be
// recorded, so that nothing is made twice. The error is a *pipeline.Fault, which
// is final, or has the methods Ambiguous() bool (the call may have had its effect:
// the next attempt needs Again, after a while) and RetryAfter() time.Duration.
// Publish must not run twice at a time for one run.
func (a *App) Publish(ctx context.Context, run *pipeline.Run, opts PublishOptions) (pipeline.Publication, []pipeline.Event, error) {
	pub := pipeline.Publication{Rev: run.Rev}
	s, err := a.session(run.Repo)
	if err != nil {
		return pub, nil, err
	}
	p := newPublisher(a, s, run, opts)
	events, err := p.all(ctx)
	p.pub.Calls = int(s.calls.Load())
	if err != nil {
		a.log.Warn("publish", "run", run.ID, "rev", run.Rev, "calls", p.pub.Calls, "error", err)
	} else {
		a.log.Debug("publish", "run", run.ID, "rev", run.Rev, "calls", p.pub.Calls, "artefacts", len(p.pub.Artefacts))
	}
	return p.pub, events, err
}

// publisher makes one publication. run is a copy whose Published grows with what
// is made, so that later artefacts can speak of earlier ones.
type publisher struct {
	app  *App
	s    *session
	run  *pipeline.Run
	opts PublishOptions
	v    render.Renderer
	pub  pipeline.Publication

	found  []pipeline.Event  // out about the branches
	known  map[int][]comment // comments by issue or pull request, once listed
	posted bool              // this publication posted comments on lines
}

func newPublisher(a *App, s *session, run *pipeline.Run, opts PublishOptions) *publisher {
	r := *run
	r.Published.Artefacts = maps.Clone(run.Published.Artefacts)
	if r.Published.Artefacts == nil {
		r.Published.Artefacts = map[string]pipeline.Artefact{}
	}
	return &publisher{app: a, s: s, run: &r, opts: opts, known: map[int][]comment{},
		v:   render.Renderer{Run: &r, Web: a.web.String(), Host: a.web.Host, Slug: slugOf(&r, a.opts.Slug), Label: a.opts.Label},
		pub: pipeline.Publication{Rev: run.Rev, Artefacts: map[string]pipeline.Artefact{}}}
}

// slugOf is what the run's commands begin with: that of a module names it, too.
func slugOf(r *pipeline.Run, slug string) string {
	if r.Part != nil {
		return r.Slug
	}
	return slug
}

// made records an artefact.
func (p *publisher) made(key string, a pipeline.Artefact) {
	p.run.Published.Artefacts[key] = a
	p.pub.Artefacts[key] = a
}

func (p *publisher) artefact(key string) pipeline.Artefact { return p.run.Published.Artefacts[key] }

// all makes the artefacts in their order. When GitHub finally refuses a part, the
// parts that do not build on it are made all the same: people must see why it stands.
func (p *publisher) all(ctx context.Context) ([]pipeline.Event, error) {
	if g := p.run.Gate(); g != nil && g.Guard != nil &&
		(g.Guard.Name == pipeline.GuardPublish || g.Guard.Name == pipeline.GuardSecret && p.run.Head != p.run.Published.Head) {
		// Only a human's answer makes it worth while to try the refused part again.
		if p.run.Part != nil {
			return nil, each(ctx, p.gates, p.reminders, p.histories)
		}
		return nil, each(ctx, p.status, p.gates, p.reminders, p.histories)
	}
	if p.run.Over {
		return nil, each(ctx, p.drop, p.gates, p.histories)
	}
	moved, err := p.push(ctx)
	if moved != nil && !p.run.State.Ended() {
		return []pipeline.Event{*moved}, nil
	}
	if p.run.Part != nil { // the run that planned it shows the rest
		if err != nil {
			return nil, err
		}
		return nil, each(ctx, p.gates, p.reminders, p.histories)
	}
	if err == nil && moved == nil {
		err = each(ctx, p.debt, p.postponed, p.pull, p.reviews, p.threads, p.checks)
	}
	var fault *pipeline.Fault
	if err != nil && !(errors.As(err, &fault) && fault.Final) {
		return p.found, err
	}
	rest := each(ctx, p.status, p.gates, p.reminders, p.histories)
	if rest == nil && err == nil && moved == nil {
		rest = each(ctx, p.ready, p.handOver, p.late)
	}
	if rest != nil && (err == nil || !errors.As(rest, &fault)) {
		return p.found, rest // what may be tried again comes first
	}
	return p.found, err
}

func each(ctx context.Context, steps ...func(context.Context) error) error {
	for _, s := range steps {
		if err := s(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hasCommit reports whether the run has work of its own on its branch.
func (p *publisher) hasCommit() bool { return p.run.Head != "" && p.run.Head != p.run.Base }

// inTheWay is what git says of a branch whose name is the beginning of another's.
var inTheWay = lazyregexp.New(`cannot lock ref [^\n]*'refs/heads/([^']+)' exists`)

// push brings the branch to the run's head.
func (p *publisher) push(ctx context.Context) (*pipeline.Event, error) {
	r := p.run
	if !p.hasCommit() || r.Head == r.Published.Head || r.State == pipeline.StateCancelled {
		return nil, nil
	}
	if p.opts.Pusher == nil {
		return nil, fmt.Errorf("publish run %d: its head %s is to be pushed, but there is no pusher", r.ID, text.ShortSHA(r.Head))
	}
	err := p.opts.Pusher.Push(ctx, r.Repo, r.Branch, r.Head, r.Published.Head)
	var moved interface{ Moved() string }
	var rejected interface{ Rejected() string }
	if p.opts.Again && errors.As(err, &moved) && moved.Moved() != r.Head && r.Committed(moved.Moved()) { // an attempt that was not recorded got that far
		err = p.opts.Pusher.Push(ctx, r.Repo, r.Branch, r.Head, moved.Moved())
	}
	switch {
	case err == nil:
	case errors.As(err, &moved) && moved.Moved() == r.Head: // an earlier attempt got through
	case errors.As(err, &moved):
		head := moved.Moved()
		return &pipeline.Event{ID: "branch.moved/" + head, Type: pipeline.EventBranchMoved, Source: "github", Data: pipeline.Data{Head: head}}, nil
	case errors.As(err, &rejected) && inTheWay.MatchString(rejected.Rejected()):
		return nil, final("GitHub does not take the push of %s to %s: a branch %s is there, so that none can be beneath it. Rename or delete that branch.",
			text.ShortSHA(r.Head), r.Branch, inTheWay.FindStringSubmatch(rejected.Rejected())[1])
	case errors.As(err, &rejected):
		return nil, final("GitHub does not take the push of %s to %s: %s. Let the App bypass the ruleset or branch protection for %s/*, or change what the commit does.",
			text.ShortSHA(r.Head), r.Branch, rejected.Rejected(), p.app.opts.Slug)
	default:
		var fault *pipeline.Fault
		if errors.As(err, &fault) {
			return nil, fault
		}
		return nil, fmt.Errorf("push %s to %s: %w", text.ShortSHA(r.Head), r.Branch, err)
	}
	r.Published.Head, p.pub.Head = r.Head, r.Head
	return nil, nil
}

// drop deletes the branch of a module that nobody needs any more. One that somebody else
// has pushed to, or that GitHub keeps, stays.
func (p *publisher) drop(ctx context.Context) error {
	r := p.run
	at := r.Published.Head
	if at == "" && p.opts.Again && p.hasCommit() { // a push may have got through that was not recorded
		at = r.Head
	}
	if at == "" || p.opts.Pusher == nil {
		return nil
	}
	err := p.opts.Pusher.Delete(ctx, r.Repo, r.Branch, at)
	var moved interface{ Moved() string }
	var rejected interface{ Rejected() string }
	if p.opts.Again && errors.As(err, &moved) && r.Committed(moved.Moved()) {
		err = p.opts.Pusher.Delete(ctx, r.Repo, r.Branch, moved.Moved())
	}
	switch {
	case errors.As(err, &moved) && moved.Moved() != "", errors.As(err, &rejected):
		p.app.log.Info("the branch of a module stays", "run", r.ID, "repo", r.Repo.FullName(), "branch", r.Branch, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("delete %s: %w", r.Branch, err)
	}
	r.Published.Head, p.pub.Deleted = "", true
	return nil
}
