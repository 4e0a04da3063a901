package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"forge/github"
	"forge/github/delivery"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/sandbox"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// deployedCode looks up what deployments brought, in the mirror of a repository.
type deployedCode struct {
	github  *github.App
	gateway *sandbox.Gateway
	db      *store.DB
}

const (
	mostShipped = 500 // commits of a deployment
	mostBlamed  = 5   // lines of a stack
)

// repo finds a repository by its name.
func (c deployedCode) repo(ctx context.Context, full string) (pipeline.Repo, error) {
	owner, name, _ := strings.Cut(full, "/")
	installation, err := c.github.FindInstallation(ctx, owner, name)
	if err != nil {
		return pipeline.Repo{}, err
	}
	return c.github.Repo(ctx, installation, owner, name)
}

// Facts implements incidents.Code.
func (c deployedCode) Facts(ctx context.Context, full string, list []production.Deployment, stack []production.Frame) ([]production.Facts, error) {
	repo, err := c.repo(ctx, full)
	if err != nil {
		return nil, err
	}
	token, err := c.github.Token(ctx, repo)
	if err != nil {
		return nil, err
	}
	var out []production.Facts
	for _, d := range list {
		refs := []string{d.Commit}
		if d.Previous != "" {
			refs = append(refs, d.Previous)
		}
		gone := ""
		err := c.gateway.Fetch(ctx, repo, token, refs...)
		if err != nil && d.Previous != "" { // it may be gone from GitHub, after the branch was forced
			gone, d.Previous = "what ran there as "+text.ShortSHA(d.Previous), ""
			err = c.gateway.Fetch(ctx, repo, token, d.Commit)
		}
		if err != nil {
			return nil, err
		}
		f, err := c.facts(ctx, repo, d, stack)
		if err != nil {
			return nil, err
		}
		if f.Undoes == "" {
			f.Undoes = gone
		}
		out = append(out, f)
	}
	return out, nil
}

// has reports whether a commit has all of another one.
func (c deployedCode) has(ctx context.Context, full, commit, part string) (bool, error) {
	repo, err := c.fetched(ctx, full, commit, part)
	if err != nil {
		return false, err
	}
	lacks, err := c.gateway.Shipped(ctx, repo, commit, part, 1)
	return err == nil && len(lacks) == 0, err
}

func (c deployedCode) facts(ctx context.Context, repo pipeline.Repo, d production.Deployment, stack []production.Frame) (production.Facts, error) {
	f := production.Facts{Deployment: d, Blamed: map[string]string{}}
	shipped, err := c.gateway.Shipped(ctx, repo, d.Previous, d.Commit, mostShipped)
	if err != nil {
		return f, err
	}
	f.Nothing = d.Previous != "" && len(shipped) == 0
	runs := map[int64]bool{}
	for _, s := range shipped {
		one := production.Commit{ID: s.SHA, Title: text.Clip(text.FirstLine(s.Message), 100), Files: s.Files, Pull: pullOf(s.Message)}
		run, err := c.runOf(ctx, repo, one.Pull)
		if one.Pull == 0 { // its pull request was merged by rebasing
			run, err = c.madeBy(ctx, repo, s.Message)
		}
		if err != nil {
			return f, err
		}
		if run != nil {
			one.Pull = run.Published.Pull.Number
			one.Run, one.Issue, one.Began = run.ID, run.Task.Issue, run.Started
			if !runs[run.ID] {
				runs[run.ID] = true
				f.Doubts = append(f.Doubts, doubts(run)...)
			}
		}
		f.Commits = append(f.Commits, one)
	}
	if err := c.takenBack(ctx, repo, &f, shipped); err != nil {
		return f, err
	}
	return f, c.blame(ctx, repo, d.Commit, stack, f.Blamed)
}

// blame finds who changed the lines of a stack last. A file that could be several is
// none.
func (c deployedCode) blame(ctx context.Context, repo pipeline.Repo, sha string, stack []production.Frame, into map[string]string) error {
	if len(stack) == 0 {
		return nil
	}
	files, err := c.gateway.Files(ctx, repo, sha)
	if err != nil {
		return err
	}
	for _, fr := range stack[:min(len(stack), mostBlamed)] {
		var same []string
		for _, file := range files {
			if production.SameFile(fr.File, file) {
				same = append(same, file)
			}
		}
		if fr.Line < 1 || len(same) != 1 {
			continue
		}
		commit, err := c.gateway.Blame(ctx, repo, sha, same[0], fr.Line)
		if err != nil {
			return err
		}
		into[fr.Place()] = commit
	}
	return nil
}

// How GitHub names the pull request in the first line of a merge and of a squashed
// commit.
var (
	mergeTitle  = lazyregexp.New(`^Merge pull request #(\d{1,9}) `)
	squashTitle = lazyregexp.New(`\(#(\d{1,9})\)$`)
)

func pullOf(message string) int {
	first := strings.TrimSpace(text.FirstLine(message))
	for _, form := range []*lazyregexp.Regexp{mergeTitle, squashTitle} {
		if m := form.FindStringSubmatch(first); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// runOf finds the run whose pull request it is, nil when it is nobody's of Forge.
func (c deployedCode) runOf(ctx context.Context, repo pipeline.Repo, pull int) (*pipeline.Run, error) {
	if pull == 0 {
		return nil, nil
	}
	id, err := c.db.Find(ctx, repo.ID, 0, pull, "")
	if errors.Is(err, store.ErrNotFound) || err == nil && id == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := c.db.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if run.Published.Pull == nil || run.Published.Pull.Number != pull {
		return nil, nil
	}
	return run, nil
}

// madeBy finds the run that a commit names which has no pull request in its title; nil when
// it names none of the repository.
func (c deployedCode) madeBy(ctx context.Context, repo pipeline.Repo, message string) (*pipeline.Run, error) {
	trace := delivery.MadeBy(message)
	if trace == "" {
		return nil, nil
	}
	id, err := c.db.RunOfTrace(ctx, repo.ID, trace)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := c.db.Load(ctx, id)
	if err != nil || run.Published.Pull == nil {
		return nil, err
	}
	return run, nil
}

// doubts are the findings of a run that nobody mended.
func doubts(run *pipeline.Run) (out []production.Doubt) {
	for _, is := range run.Findings {
		if is.Finding != nil && (is.State == pipeline.IssueOpen || is.State == pipeline.IssueDismissed) {
			out = append(out, production.Doubt{Run: run.ID, Fingerprint: is.Fingerprint(), File: is.Finding.File, Line: is.Finding.Line, State: string(is.State)})
		}
	}
	return out
}

// Tell implements incidents.Teller.
func (c deployedCode) Tell(ctx context.Context, full string, pull int, words, key string) error {
	repo, err := c.repo(ctx, full)
	if err != nil {
		return err
	}
	if err := c.github.Reply(ctx, pipeline.Notice{Repo: repo, Pull: pull}, words, key); err != nil {
		return fmt.Errorf("comment on %s#%d: %w", full, pull, err)
	}
	return nil
}

// Ask implements incidents.Teller.
func (c deployedCode) Ask(ctx context.Context, full string, number int, q command.Question, key string) error {
	repo, err := c.repo(ctx, full)
	if err != nil {
		return err
	}
	if err := c.github.Ask(ctx, pipeline.Notice{Repo: repo, Pull: number}, q, key); err != nil {
		return fmt.Errorf("ask at %s#%d: %w", full, number, err)
	}
	return nil
}
