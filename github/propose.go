package github

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// Proposal is a change of one file that Forge proposes by a pull request of its
// own, without a run.
type Proposal struct {
	Branch  string // Forge's own; made, or brought up to date
	Path    string
	Title   string // of the pull request and the commit
	Body    string
	Change  func(old []byte) ([]byte, error) // the file's new text; nil is a file that is not there
	Message string                           // of the commit, below its title
}

// Propose opens a pull request with a change, or brings the open one up to date by
// a commit on top of what people made of it. It returns the pull request's address,
// "" when the default branch has the change already, and whether anything was done.
// A branch with commits by others and without an open pull request is left alone.
func (a *App) Propose(ctx context.Context, repo pipeline.Repo, p Proposal) (url string, changed bool, err error) {
	s, err := a.session(repo)
	if err != nil {
		return "", false, err
	}
	open, err := s.openPull(ctx, repo, p.Branch)
	if err != nil {
		return "", false, err
	}
	at := repo.DefaultBranch
	if open != nil {
		at, url = p.Branch, open.GetHTMLURL()
	}
	old, sha, err := s.blob(ctx, repo, p.Path, at)
	if err != nil {
		return "", false, err
	}
	now, err := p.Change(old)
	if err != nil || bytes.Equal(now, old) {
		return url, false, err
	}
	if open == nil {
		if err := a.restart(ctx, s, repo, p.Branch); err != nil {
			return "", false, err
		}
	}
	message := text.CommitMessage(p.Title + "\n\n" + p.Message)
	file := &gh.RepositoryContentFileOptions{Message: &message, Content: now, Branch: &p.Branch}
	if sha != "" {
		file.SHA = &sha
	}
	_, _, err = s.rest.Repositories.CreateFile(ctx, repo.Owner, repo.Name, p.Path, file)
	if err = explain(fmt.Sprintf("write %s to %s of %s", p.Path, p.Branch, repo.FullName()), "contents: write", err); err != nil {
		if status(err) == http.StatusConflict {
			err = final("%v: somebody changed the file just now. Give the command again.", err)
		}
		return "", false, err
	}
	if open != nil {
		return url, true, nil
	}
	title, body := render.Line(p.Title, a.web.Host, 200), render.Block(p.Body, a.web.Host, render.MaxText)
	pr, _, err := s.rest.PullRequests.Create(ctx, repo.Owner, repo.Name,
		&gh.NewPullRequest{Title: &title, Body: &body, Head: &p.Branch, Base: &repo.DefaultBranch})
	if err = explain(fmt.Sprintf("open a pull request from %s in %s", p.Branch, repo.FullName()), permPulls, err); err != nil {
		return "", false, err
	}
	return pr.GetHTMLURL(), true, nil
}

// openPull returns the open pull request from a branch of the repository, or nil.
func (s *session) openPull(ctx context.Context, repo pipeline.Repo, branch string) (*gh.PullRequest, error) {
	list, _, err := s.rest.PullRequests.List(ctx, repo.Owner, repo.Name, &gh.PullRequestListOptions{
		State: "open", Head: repo.Owner + ":" + branch, ListOptions: gh.ListOptions{PerPage: 100}})
	if err = explain("list pull requests of "+branch, "pull_requests: read", err); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(pr *gh.PullRequest) bool { return pr.GetHead().GetRef() == branch && pr.GetState() == "open" })
	if i < 0 {
		return nil, nil
	}
	return list[i], nil
}

// blob reads a file and its id at a ref; nil and "" when there is none.
func (s *session) blob(ctx context.Context, repo pipeline.Repo, path, ref string) ([]byte, string, error) {
	op := fmt.Sprintf("read %s of %s at %s", path, repo.FullName(), ref)
	f, _, _, err := s.rest.Repositories.GetContents(ctx, repo.Owner, repo.Name, path, &gh.RepositoryContentGetOptions{Ref: ref})
	if err = explain(op, "contents: read", err); gone(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if f == nil || f.GetType() != "file" {
		return nil, "", final("%s: it is a folder or a link, not a file.", op)
	}
	text, err := f.GetContent()
	if err != nil {
		return nil, "", final("%s: GitHub sends no content; files over 1 MB are not read: %v", op, err)
	}
	return append([]byte{}, text...), f.GetSHA(), nil
}

// restart makes a branch of Forge's begin at the default branch's head. What others
// have committed there is never lost: then it refuses.
func (a *App) restart(ctx context.Context, s *session, repo pipeline.Repo, branch string) error {
	base, err := a.BranchHead(ctx, repo, repo.DefaultBranch)
	if err != nil {
		return err
	}
	head, err := a.BranchHead(ctx, repo, branch)
	if err != nil || head == base {
		return err
	}
	ref, op := "refs/heads/"+branch, fmt.Sprintf("point %s of %s to %s", branch, repo.FullName(), text.ShortSHA(base))
	if head == "" {
		_, _, err = s.rest.Git.CreateRef(ctx, repo.Owner, repo.Name, &gh.Reference{Ref: &ref, Object: &gh.GitObject{SHA: &base}})
		return explain(op, "contents: write", err)
	}
	cmp, _, err := s.rest.Repositories.CompareCommits(ctx, repo.Owner, repo.Name, base, head, nil)
	if err = explain(fmt.Sprintf("compare %s of %s with %s", branch, repo.FullName(), repo.DefaultBranch), "contents: read", err); err != nil {
		return err
	}
	bot, err := a.self(ctx)
	if err != nil {
		return err
	}
	for _, c := range cmp.Commits {
		if c.GetAuthor().GetID() != bot.ID {
			return final("The branch %s of %s has commits by others and no open pull request. Open one, or delete the branch.", branch, repo.FullName())
		}
	}
	_, _, err = s.rest.Git.UpdateRef(ctx, repo.Owner, repo.Name, &gh.Reference{Ref: &ref, Object: &gh.GitObject{SHA: &base}}, true)
	return explain(op, "contents: write", err)
}
