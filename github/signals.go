package github

import (
	"context"
	"fmt"

	"forge/github/feedback"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// Signals says what people did with what Forge said or made in a run, as
// feedback.Signals has it, after a notice.
//
// The notice is a feedback, a push to the run's branch or the default one, or a
// closed pull request. A push to the default branch belongs to no run by itself: it
// may revert any that was merged, and is to be shown to each. Without a run only a
// comment on the diff of a pull request that is not Forge's gives something: a gap
// (Options.Gaps). What no delivery tells — reactions, hidden comments — is found on
// the way, and by Poll.
func (a *App) Signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if run == nil {
		return a.gap(ctx, n)
	}
	if n.Feedback == nil || run.Published.Pull == nil || n.Actor.Bot || n.Repo.ID != run.Repo.ID {
		return nil, nil
	}
	return a.signals(ctx, run, n, known)
}

// Poll finds what no delivery tells: 👎, hidden comments, and what was missed. It
// takes one GraphQL call for a pull request on which nobody has done anything, and
// one more call to list commits once somebody pushed or it has suggestions or
// resolved conversations.
func (a *App) Poll(ctx context.Context, run *pipeline.Run, known []pipeline.Signal) ([]pipeline.Signal, error) {
	if run.Published.Pull == nil {
		return nil, nil
	}
	return a.signals(ctx, run, pipeline.Notice{Kind: pipeline.NoticeNone, Repo: run.Repo}, known)
}

func (a *App) signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error) {
	s, err := a.session(run.Repo)
	if err != nil {
		return nil, err
	}
	in := feedback.Input{Run: run, Notice: n, Known: known, Slug: a.opts.Slug, Reads: a.opts.Reads, Now: a.opts.Clock()}
	if in.Bot, err = a.self(ctx); err != nil {
		return nil, err
	}
	if in.Pull, err = s.pullState(ctx, run.Repo, run.Published.Pull.Number); err != nil {
		return nil, err
	}
	out, err := feedback.Signals(ctx, &source{a, s, run.Repo, in.Pull.Number}, in)
	if err == nil {
		a.log.Debug("signals", "run", run.ID, "pull", in.Pull.Number, "news", len(out), "calls", s.calls.Load())
	}
	return out, err
}

// gap takes a comment on a pull request that is not Forge's.
func (a *App) gap(ctx context.Context, n pipeline.Notice) ([]pipeline.Signal, error) {
	if !a.opts.Gaps {
		return nil, nil
	}
	s, ok := feedback.Gap(n, a.opts.Slug, a.opts.Clock())
	switch {
	case !ok:
		return nil, nil
	case s.Off:
		return []pipeline.Signal{s}, nil
	}
	var err error
	if s.Weight, err = a.Weight(ctx, n.Repo, s.Actor); err != nil || !(s.Weight > 0) {
		return nil, err
	}
	return []pipeline.Signal{s}, nil
}

// source answers feedback's questions about one pull request.
type source struct {
	app    *App
	s      *session
	repo   pipeline.Repo
	number int
}

// maxSignalFile is how many bytes of a file are compared, as App.File has it.
const maxSignalFile = 1 << 20

func (q *source) Weight(ctx context.Context, actor pipeline.Actor) (float64, error) {
	return q.app.Weight(ctx, q.repo, actor)
}

func (q *source) Commits(ctx context.Context) ([]feedback.Commit, error) {
	var out []feedback.Commit
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := q.s.rest.PullRequests.ListCommits(ctx, q.repo.Owner, q.repo.Name, q.number, opts)
		if err = explain(fmt.Sprintf("list the commits of %s#%d", q.repo.FullName(), q.number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		for _, c := range list {
			out = append(out, commitOf(c))
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}

func commitOf(c *gh.RepositoryCommit) feedback.Commit {
	made := c.GetCommit()
	return feedback.Commit{SHA: c.GetSHA(), Message: made.GetMessage(), At: made.GetCommitter().GetDate().UTC(), Author: actorOf(c.GetAuthor()),
		AuthorMail: made.GetAuthor().GetEmail(), CommitterMail: made.GetCommitter().GetEmail(), Parents: len(c.Parents)}
}

func (q *source) Files(ctx context.Context) ([]feedback.Patch, error) {
	var out []feedback.Patch
	opts := &gh.ListOptions{PerPage: 100}
	for range maxPages {
		list, resp, err := q.s.rest.PullRequests.ListFiles(ctx, q.repo.Owner, q.repo.Name, q.number, opts)
		if err = explain(fmt.Sprintf("list the files of %s#%d", q.repo.FullName(), q.number), "pull_requests: read", err); err != nil {
			return nil, err
		}
		for _, f := range list {
			out = append(out, patchOf(f))
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}

func patchOf(f *gh.CommitFile) feedback.Patch {
	p := feedback.Patch{Path: f.GetFilename(), Hunks: f.GetPatch(), Lines: f.GetChanges()}
	if f.GetStatus() == "renamed" {
		p.From = f.GetPreviousFilename()
	}
	return p
}

func (q *source) Closer(ctx context.Context) (pipeline.Actor, error) {
	i, _, err := q.s.rest.Issues.Get(ctx, q.repo.Owner, q.repo.Name, q.number)
	if err = explain(fmt.Sprintf("ask who closed %s#%d", q.repo.FullName(), q.number), "issues: read", err); err != nil {
		return pipeline.Actor{}, err
	}
	return actorOf(i.GetClosedBy()), nil
}

func (q *source) Patch(ctx context.Context, sha string) ([]feedback.Patch, error) {
	c, _, err := q.s.rest.Repositories.GetCommit(ctx, q.repo.Owner, q.repo.Name, sha, &gh.ListOptions{PerPage: 100})
	if err = explain(fmt.Sprintf("read commit %s of %s", text.ShortSHA(sha), q.repo.FullName()), "contents: read", err); err != nil {
		return nil, unlessGone(err)
	}
	var out []feedback.Patch
	for _, f := range c.Files {
		out = append(out, patchOf(f))
	}
	return out, nil
}

func (q *source) File(ctx context.Context, sha, path string) (string, error) {
	f, _, _, err := q.s.rest.Repositories.GetContents(ctx, q.repo.Owner, q.repo.Name, path, &gh.RepositoryContentGetOptions{Ref: sha})
	if err = explain(fmt.Sprintf("read %s of %s at %s", path, q.repo.FullName(), text.ShortSHA(sha)), "contents: read", err); err != nil {
		return "", unlessGone(err)
	}
	if f == nil || f.GetType() != "file" || f.GetSize() > maxSignalFile {
		return "", nil
	}
	text, err := f.GetContent()
	if err != nil {
		return "", nil // in a form that says nothing of lines
	}
	return text, nil
}

func (q *source) Compare(ctx context.Context, from, to string) (paths []string, commits []feedback.Commit, err error) {
	c, _, err := q.s.rest.Repositories.CompareCommits(ctx, q.repo.Owner, q.repo.Name, from, to, &gh.ListOptions{PerPage: 100})
	if err = explain(fmt.Sprintf("compare %s...%s of %s", text.ShortSHA(from), text.ShortSHA(to), q.repo.FullName()), "contents: read", err); err != nil {
		return nil, nil, unlessGone(err)
	}
	for _, f := range c.Files {
		paths = append(paths, f.GetFilename())
	}
	for _, c := range c.Commits {
		commits = append(commits, commitOf(c))
	}
	return paths, commits, nil
}

func unlessGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
