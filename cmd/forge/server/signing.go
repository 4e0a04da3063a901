package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"forge/github"
	"forge/pipeline"
	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"
)

// signer has GitHub make the commits of runs, which signs them, where a ruleset asks
// for signatures or the repository's settings do. It keeps what it found out of a
// run's branches, once for the run and those of its modules.
type signer struct {
	app     *github.App
	gateway *sandbox.Gateway

	mu    sync.Mutex
	signs map[asked]bool
}

// asked is a branch whose rules were read for a run, or for one of its modules.
type asked struct {
	run    int64
	branch string
}

// wanted reports whether GitHub is to make the run's commits.
func (s *signer) wanted(ctx context.Context, run *pipeline.Run) (bool, error) {
	if how := run.Config.Commits; how == "api" || how == "git" {
		return how == "api", nil
	}
	branches, root := []string{run.Branch, run.Repo.DefaultBranch}, run.ID // what is not signed could not be merged
	if run.Part != nil {
		branches, root = append(branches, run.Part.Branch), run.Part.Run
	}
	for _, branch := range branches {
		yes, err := s.ruled(ctx, run.Repo, asked{root, branch})
		if yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// ruled reports whether a branch's rules ask for signatures.
func (s *signer) ruled(ctx context.Context, repo pipeline.Repo, a asked) (bool, error) {
	s.mu.Lock()
	yes, known := s.signs[a]
	s.mu.Unlock()
	if known {
		return yes, nil
	}
	rules, err := s.app.Rules(ctx, repo, a.branch)
	if err != nil {
		return false, err
	}
	yes = slices.ContainsFunc(rules, func(r github.Rule) bool { return r.Type == "required_signatures" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signs == nil || len(s.signs) > 3000 { // it only saves calls
		s.signs = map[asked]bool{}
	}
	s.signs[a] = yes
	return yes, nil
}

// commit returns what takes the place of a commit that was made here: the one that
// GitHub made of it, where it is to sign, else the commit itself. So it does when
// GitHub refuses: publishing finds that out again, and tells people.
func (s *signer) commit(ctx context.Context, run *pipeline.Run, sha string) (string, error) {
	yes, err := s.wanted(ctx, run)
	if err != nil || !yes {
		return sha, err
	}
	made, err := s.replay(ctx, run, sha, run.Published.Head)
	var moved interface{ Moved() string }
	var rejected interface{ Rejected() string }
	if errors.As(err, &moved) || errors.As(err, &rejected) {
		return sha, nil
	}
	return cmp.Or(made, sha), err
}

// replay has GitHub make the commits from old ("": the branch is not there yet) to sha
// again on the run's branch, and returns the last. Those that it made before, in an
// attempt whose end nobody saw, are found and kept. A commit whose tree or parent came
// out otherwise is a final fault.
func (s *signer) replay(ctx context.Context, run *pipeline.Run, sha, old string) (string, error) {
	list, err := s.gateway.Replays(ctx, run.Repo, pushOf(run, run.Branch, sha, old))
	if err != nil {
		return "", err
	}
	from := cmp.Or(old, run.Base)
	at, err := s.app.BranchHead(ctx, run.Repo, run.Branch)
	if err != nil {
		return "", err
	}
	if at == "" && old == "" {
		if err := s.app.MakeBranch(ctx, run.Repo, run.Branch, from); err != nil {
			return "", err
		}
		at = from
	}
	// Those up to the branch's head are there as they are.
	if i := slices.IndexFunc(list, func(r workspace.Replay) bool { return r.SHA == at }); i >= 0 {
		from, list = at, list[i+1:]
	}
	for _, r := range list {
		if at != from {
			made, err := s.made(ctx, run.Repo, r, from, at)
			if err != nil || !made {
				return "", cmp.Or[error](err, &workspace.MovedError{Branch: run.Branch, Head: at})
			}
			from = at
			continue
		}
		if at, err = s.one(ctx, run, r, from); err != nil {
			return "", err
		}
		made, err := s.made(ctx, run.Repo, r, from, at)
		if err != nil {
			return "", err
		}
		if !made && r.Merged != "" { // a merge has no expected head: somebody was quicker
			return "", &workspace.MovedError{Branch: run.Branch, Head: at}
		}
		if !made {
			return "", &pipeline.Fault{Class: pipeline.FaultGitHub, Final: true, Message: fmt.Sprintf("GitHub made %.9s of commit %.9s, and its tree or parent is another one: look at the branch %s before it is used", at, r.SHA, run.Branch)}
		}
		from = at
	}
	return from, nil
}

// one has GitHub make one commit on the branch, which is at parent.
func (s *signer) one(ctx context.Context, run *pipeline.Run, r workspace.Replay, parent string) (string, error) {
	if r.Merged == "" {
		return s.app.Commit(ctx, run.Repo, github.CommitRequest{Branch: run.Branch, Expected: parent, Message: r.Message, Changes: r.Changes})
	}
	return s.app.MergeInto(ctx, run.Repo, run.Branch, r.Merged, r.Message)
}

// made reports whether a commit on GitHub is what r was to become.
func (s *signer) made(ctx context.Context, repo pipeline.Repo, r workspace.Replay, parent, sha string) (bool, error) {
	if sha == "" {
		return false, nil
	}
	token, err := s.app.Token(ctx, repo)
	if err != nil {
		return false, err
	}
	if err := s.gateway.Fetch(ctx, repo, token, sha); err != nil {
		return false, err
	}
	tree, parents, _, err := s.gateway.CommitAt(ctx, repo, sha)
	want := []string{parent}
	if r.Merged != "" {
		want = append(want, r.Merged)
	}
	return tree == r.Tree && slices.Equal(parents, want), err
}

// push brings a commit to the run's branch where GitHub is to sign. It is there
// already as a rule. One that was refused before is made now, under another id, which
// the error tells as a move of the branch.
func (s *signer) push(ctx context.Context, run *pipeline.Run, sha, old string) error {
	at, err := s.app.BranchHead(ctx, run.Repo, run.Branch)
	if err != nil || at == sha {
		return err
	}
	made, err := s.replay(ctx, run, sha, old)
	if err != nil || made == sha {
		return err
	}
	return &workspace.MovedError{Branch: run.Branch, Head: made}
}
