package github

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"forge/pipeline"
	"forge/pipeline/workspace"

	gh "github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// CommitRequest is a commit that GitHub is to make itself, and sign.
type CommitRequest struct {
	Branch   string
	Expected string // where the branch must be
	Message  string
	Changes  []workspace.Change // whole files; the executable bit is not kept
}

// headMoved says that the branch is not where a commit was to be appended.
type headMoved struct{ branch, head string }

func (e *headMoved) Error() string { return "branch " + e.branch + " was moved, to " + e.head }
func (e *headMoved) Moved() string { return e.head }

// notTaken says why GitHub does not make a commit. Trying again cannot help.
type notTaken struct{ branch, why string }

func (e *notTaken) Error() string    { return "GitHub makes no commit on " + e.branch + ": " + e.why }
func (e *notTaken) Rejected() string { return e.why }

// commitSession is for calls that carry a commit: its token may write contents and
// nothing else, and nothing is taken out of what it sends. The git gateway has looked
// through that, and knows what people let pass.
func (a *App) commitSession(repo pipeline.Repo) (*session, error) {
	s, err := a.sessionFor(repo, scopeGit)
	if err != nil {
		return nil, err
	}
	s.transport.searched = true
	return s, nil
}

// Commit lets GitHub append a commit to a branch and returns its id. GitHub is its
// committer and signs it. An error with the method Moved() string carries where the
// branch is instead; one with Rejected() string carries why GitHub does not make it.
func (a *App) Commit(ctx context.Context, repo pipeline.Repo, r CommitRequest) (string, error) {
	s, err := a.commitSession(repo)
	if err != nil {
		return "", err
	}
	changes := &githubv4.FileChanges{Additions: &[]githubv4.FileAddition{}, Deletions: &[]githubv4.FileDeletion{}}
	for _, c := range r.Changes {
		if c.Deleted {
			*changes.Deletions = append(*changes.Deletions, githubv4.FileDeletion{Path: githubv4.String(c.Path)})
			continue
		}
		*changes.Additions = append(*changes.Additions,
			githubv4.FileAddition{Path: githubv4.String(c.Path), Contents: githubv4.Base64String(base64.StdEncoding.EncodeToString(c.Content))})
	}
	headline, body, _ := strings.Cut(r.Message, "\n")
	message := githubv4.CommitMessage{Headline: githubv4.String(headline)}
	if body = strings.TrimSpace(body); body != "" {
		message.Body = githubv4.NewString(githubv4.String(body))
	}
	var m struct {
		CreateCommitOnBranch struct{ Commit struct{ Oid string } } `graphql:"createCommitOnBranch(input: $input)"`
	}
	err = s.gql.Mutate(ctx, &m, githubv4.CreateCommitOnBranchInput{
		Branch: githubv4.CommittableBranch{RepositoryNameWithOwner: githubv4.NewString(githubv4.String(repo.FullName())),
			BranchName: githubv4.NewString(githubv4.String(r.Branch))},
		Message: message, ExpectedHeadOid: githubv4.GitObjectID(r.Expected), FileChanges: changes,
	}, nil)
	if err == nil {
		return m.CreateCommitOnBranch.Commit.Oid, nil
	}
	err = explain("commit to "+r.Branch+" of "+repo.FullName(), "contents: write", err)
	if status(err) == http.StatusNotFound || status(err) == http.StatusConflict || status(err) == http.StatusUnprocessableEntity {
		head, look := a.BranchHead(ctx, repo, r.Branch)
		if look == nil && head != r.Expected {
			return "", &headMoved{r.Branch, head}
		}
	}
	return "", refusedCommit(r.Branch, err)
}

// refusedCommit makes a final refusal of GitHub's an error with its words.
func refusedCommit(branch string, err error) error {
	var fault *pipeline.Fault
	var e *apiError
	switch {
	case errors.As(err, &fault) && fault.Final && fault.Class == pipeline.FaultGitHub:
		return &notTaken{branch, fault.Message}
	case errors.As(err, &e) && e.status == http.StatusUnprocessableEntity:
		return &notTaken{branch, strings.Join(strings.Fields(e.msg), " ")}
	}
	return err
}

// MakeBranch makes a branch at a commit that GitHub has. One that is there already is
// left as it is.
func (a *App) MakeBranch(ctx context.Context, repo pipeline.Repo, branch, sha string) error {
	s, err := a.commitSession(repo)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + branch
	_, _, err = s.rest.Git.CreateRef(ctx, repo.Owner, repo.Name, &gh.Reference{Ref: &ref, Object: &gh.GitObject{SHA: &sha}})
	if err = explain("make the branch "+branch+" of "+repo.FullName(), "contents: write", err); err == nil {
		return nil
	}
	if head, look := a.BranchHead(ctx, repo, branch); look == nil && head != "" {
		return nil
	}
	return refusedCommit(branch, err)
}

// MergeInto lets GitHub merge a commit into a branch and returns the merge, which it
// signs; "" when the branch holds it already.
func (a *App) MergeInto(ctx context.Context, repo pipeline.Repo, branch, theirs, message string) (string, error) {
	s, err := a.commitSession(repo)
	if err != nil {
		return "", err
	}
	c, _, err := s.rest.Repositories.Merge(ctx, repo.Owner, repo.Name, &gh.RepositoryMergeRequest{Base: &branch, Head: &theirs, CommitMessage: &message})
	if err = explain("merge into "+branch+" of "+repo.FullName(), "contents: write", err); status(err) == http.StatusConflict {
		return "", &notTaken{branch, "it does not merge by itself there"}
	}
	return c.GetSHA(), refusedCommit(branch, err)
}

// Rule is a rule of a ruleset, as it holds for one branch.
type Rule struct {
	Type       string          `json:"type"` // required_signatures, merge_queue, file_path_restriction, …
	Parameters json.RawMessage `json:"parameters"`
}

// Rules are those that hold for a branch, which need not be there yet. What classic
// branch protection asks for is not among them: an App cannot read it without being
// an administrator.
func (a *App) Rules(ctx context.Context, repo pipeline.Repo, branch string) ([]Rule, error) {
	s, err := a.session(repo)
	if err != nil {
		return nil, err
	}
	var all []Rule
	for page := 1; page > 0; {
		req, err := s.rest.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/rules/branches/%s?per_page=100&page=%d", repo.Owner, repo.Name, branch, page), nil)
		if err != nil {
			return nil, err
		}
		var rules []Rule
		res, err := s.rest.Do(ctx, req, &rules)
		if err = explain("read the rules of "+branch, "metadata: read", err); err != nil {
			return nil, err
		}
		all, page = append(all, rules...), res.NextPage
	}
	return all, nil
}
