package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// States of a finding's artefact, kept where a content hash stands elsewhere. A
// fixed one is "fixed:" and the SHA.
const (
	findingSaid   = "summary" // in a review's text: it has no thread
	findingPosted = "posted"  // as a comment whose thread is not looked up yet
	findingOpen   = "open"
	findingFixed  = "fixed:"

	findingWithdrawn = "withdrawn" // by the reviewer's ruling
	findingLeft      = "left"      // not ours to touch any more
)

// reviews posts one review for each iteration that has something new to say.
func (p *publisher) reviews(ctx context.Context) error {
	r := p.run
	if r.Published.Pull == nil || r.Published.Head == "" {
		return nil
	}
	for i := range r.Iterations {
		it := &r.Iterations[i]
		if it.Review == nil || p.artefact(fmt.Sprintf("review/%d", it.Number)).Hash == it.Review.Head {
			continue
		}
		if err := p.review(ctx, it); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) review(ctx context.Context, it *pipeline.Iteration) error {
	fresh := p.fresh(it)
	key := fmt.Sprintf("review/%d", it.Number)
	if len(fresh) == 0 && len(it.Review.NotReviewed) == 0 && it.Review.NeedsHuman == "" {
		return nil // the pull request's table says that there was nothing new
	}
	if p.opts.Again {
		if ok, err := p.adoptReview(ctx, it, fresh); ok || err != nil {
			return err
		}
	}
	var diff render.Patch
	if len(fresh) > 0 && p.opts.Pusher != nil {
		patch, err := p.opts.Pusher.Diff(ctx, p.run.Repo, p.run.Base, it.Review.Head)
		if err != nil {
			return fmt.Errorf("diff %s..%s for the review's comments: %w", text.ShortSHA(p.run.Base), text.ShortSHA(it.Review.Head), err)
		}
		if diff, err = render.ParsePatch(patch); err != nil {
			p.app.log.Warn("no comment of the review can be put on its line", "run", p.run.ID, "error", err)
		}
	}
	draft := p.v.Review(it, fresh, diff)
	rev, err := p.postReview(ctx, it.Review.Head, draft)
	if status(err) == http.StatusUnprocessableEntity && len(draft.Comments) > 0 {
		p.app.log.Warn("GitHub refuses a place of the review's comments", "run", p.run.ID, "error", err)
		draft = p.v.Flat(it, draft)
		rev, err = p.postReview(ctx, it.Review.Head, draft)
	}
	if err != nil {
		return missing(err, "the pull request is gone, or the App lost its access")
	}
	p.made(key, pipeline.Artefact{ID: rev.GetID(), Node: rev.GetNodeID(), URL: rev.GetHTMLURL(), Hash: it.Review.Head})
	p.posted = len(draft.Inline) > 0
	p.mark(draft.Inline, findingPosted)
	p.mark(draft.Summed, findingSaid)
	return nil
}

// fresh returns the findings of an iteration that GitHub has not been told of.
func (p *publisher) fresh(it *pipeline.Iteration) []pipeline.Finding {
	var out []pipeline.Finding
	seen := map[string]bool{}
	for _, f := range it.Review.Findings {
		if p.artefact(render.FindingKey(f.Fingerprint)).Hash == "" && !seen[f.Fingerprint] && !p.dismissed(f.Fingerprint) {
			seen[f.Fingerprint] = true
			out = append(out, f)
		}
	}
	return out
}

// dismissed reports whether a human has dismissed the finding: it stays so.
func (p *publisher) dismissed(fp string) bool {
	for i := range p.run.Findings {
		if is := &p.run.Findings[i]; is.Fingerprint() == fp {
			return is.State == pipeline.IssueDismissed
		}
	}
	return false
}

func (p *publisher) mark(list []pipeline.Finding, state string) {
	for _, f := range list {
		p.made(render.FindingKey(f.Fingerprint), pipeline.Artefact{Hash: state})
	}
}

// postReview always sends the event: without it a pending review would be left,
// and GitHub allows one of those. An App can only comment on its own pull request.
func (p *publisher) postReview(ctx context.Context, sha string, d render.Draft) (*gh.PullRequestReview, error) {
	r := p.run
	n := r.Published.Pull.Number
	rev, _, err := p.s.rest.PullRequests.CreateReview(ctx, r.Repo.Owner, r.Repo.Name, n, &gh.PullRequestReviewRequest{
		CommitID: &sha, Body: &d.Body, Event: gh.String("COMMENT"), Comments: d.Comments})
	return rev, explain(fmt.Sprintf("review pull request %s#%d", r.Repo.FullName(), n), permPulls, err)
}

// adoptReview finds the review that an earlier attempt posted.
func (p *publisher) adoptReview(ctx context.Context, it *pipeline.Iteration, fresh []pipeline.Finding) (bool, error) {
	bot, err := p.app.self(ctx)
	if err != nil {
		return false, err
	}
	r := p.run
	mark := render.Marker(r.Trace, render.ReviewKey(it))
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := p.s.rest.PullRequests.ListReviews(ctx, r.Repo.Owner, r.Repo.Name, r.Published.Pull.Number, opts)
		if err = explain("list the reviews", "pull_requests: read", err); err != nil {
			return false, err
		}
		for _, rev := range list {
			if rev.GetUser().GetID() != bot.ID || !strings.Contains(rev.GetBody(), mark) {
				continue
			}
			p.made(fmt.Sprintf("review/%d", it.Number), pipeline.Artefact{ID: rev.GetID(), Node: rev.GetNodeID(), URL: rev.GetHTMLURL(), Hash: it.Review.Head})
			p.mark(fresh, findingPosted)
			return true, nil
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return false, nil
}
