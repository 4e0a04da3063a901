package githubtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// token asks for an installation token as Forge does.
func (w *world) token() string {
	w.t.Helper()
	tok, _, err := w.appClient().Apps.CreateInstallationToken(w.ctx, w.inst, nil)
	w.must(err)
	return tok.GetToken()
}

// git runs git with a token in its environment, as Forge does.
func (w *world) git(dir, token string, args ...string) (string, error) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic(token),
		"GIT_AUTHOR_NAME=forge[bot]", "GIT_AUTHOR_EMAIL=1+forge[bot]@users.noreply.github.com",
		"GIT_COMMITTER_NAME=forge[bot]", "GIT_COMMITTER_EMAIL=1+forge[bot]@users.noreply.github.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// push clones, writes files on a branch, and pushes.
func (w *world) push(branch string, files map[string]string) (string, error) {
	w.t.Helper()
	dir, tok := w.t.TempDir(), w.token()
	if out, err := w.git(dir, tok, "clone", "--quiet", w.s.URL+"/"+w.repo+".git", "."); err != nil {
		w.t.Fatal(out)
	}
	if out, err := w.git(dir, tok, "checkout", "--quiet", "-B", branch, "origin/"+branch); err != nil {
		if out2, err := w.git(dir, tok, "checkout", "--quiet", "-B", branch); err != nil {
			w.t.Fatal(out, out2)
		}
	}
	for name, text := range files {
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		w.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	if out, err := w.git(dir, tok, "add", "-A"); err != nil {
		w.t.Fatal(out)
	}
	if out, err := w.git(dir, tok, "commit", "--quiet", "-m", "Change"); err != nil {
		w.t.Fatal(out)
	}
	return w.git(dir, tok, "push", "--quiet", "origin", branch)
}

// put makes a commit with one file on a branch, over the API: it is quicker than a push.
func (w *world) put(branch, name, text string) {
	w.t.Helper()
	head, missing := w.s.Head(w.repo, branch)
	if missing != nil {
		head, _ = w.s.Head(w.repo, "main")
	}
	tree, _, err := w.gh.Git.CreateTree(w.ctx, "acme", "shop", head, []*github.TreeEntry{{Path: &name, Mode: github.String("100644"), Content: &text}})
	w.must(err)
	who := &github.CommitAuthor{Name: github.String("forge[bot]"), Email: github.String("1+forge[bot]@users.noreply.github.com")}
	c, _, err := w.gh.Git.CreateCommit(w.ctx, "acme", "shop",
		&github.Commit{Message: github.String("Change"), Tree: tree, Parents: []*github.Commit{{SHA: &head}}, Author: who, Committer: who}, nil)
	w.must(err)
	ref := &github.Reference{Ref: github.String("refs/heads/" + branch), Object: &github.GitObject{SHA: c.SHA}}
	if missing != nil {
		_, _, err = w.gh.Git.CreateRef(w.ctx, "acme", "shop", ref)
	} else {
		_, _, err = w.gh.Git.UpdateRef(w.ctx, "acme", "shop", ref, false)
	}
	w.must(err)
}

const better = "package shop\n\n// Price is in cents.\nfunc Price(n int) int {\n\tprice := n * 100\n\treturn price\n}\n\nfunc Zero() int {\n\treturn 0\n}\n"

// draft makes a branch and opens a draft pull request of it.
func (w *world) draft() *github.PullRequest {
	w.t.Helper()
	w.put("forge/issue-1", "shop.go", better)
	pr, _, err := w.gh.PullRequests.Create(w.ctx, "acme", "shop", &github.NewPullRequest{
		Title: github.String("Name the price"), Head: github.String("forge/issue-1"), Base: github.String("main"),
		Body: github.String("Closes #1"), Draft: github.Bool(true),
	})
	w.must(err)
	return pr
}

func (w *world) issue() int {
	w.t.Helper()
	n, err := w.al.OpenIssue(w.repo, "Name the price", "Please.\n\n- [ ] done\n")
	w.must(err)
	return n
}

// The straight path: a label, a status comment, a branch, a draft, a review with
// comments on the diff, a check run, ready, merged.
func TestStraightPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue()
	w.must(w.al.Label(w.repo, n, "forge"))
	w.settle()
	if got, want := w.hook.names(), []string{"issues.opened", "issues.labeled"}; !slices.Equal(got, want) {
		t.Fatalf("webhooks = %v, want %v", got, want)
	}

	level, _, err := w.gh.Repositories.GetPermissionLevel(w.ctx, "acme", "shop", "alice")
	w.must(err)
	if level.GetPermission() != "write" {
		t.Errorf("permission of alice = %q, want write", level.GetPermission())
	}
	status, _, err := w.gh.Issues.CreateComment(w.ctx, "acme", "shop", n, &github.IssueComment{Body: github.String("working")})
	w.must(err)
	_, _, err = w.gh.Issues.EditComment(w.ctx, "acme", "shop", status.GetID(), &github.IssueComment{Body: github.String("still working")})
	w.must(err)

	pr := w.draft()
	if !pr.GetDraft() || pr.GetCommits() != 1 || pr.GetAdditions() != 2 || pr.GetUser().GetLogin() != "forge[bot]" {
		t.Errorf("pull request: draft %v, commits %d, additions %d, user %s; want true, 1, 2, forge[bot]", pr.GetDraft(), pr.GetCommits(),
			pr.GetAdditions(), pr.GetUser().GetLogin())
	}
	w.settle()
	want := []string{"issue_comment.created", "issue_comment.edited", "push", "check_suite.requested", "pull_request.opened"}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}

	rv, _, err := w.gh.PullRequests.CreateReview(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestReviewRequest{
		CommitID: pr.GetHead().SHA, Event: github.String("COMMENT"), Body: github.String("One thing."),
		Comments: []*github.DraftReviewComment{{
			Path: github.String("shop.go"), StartLine: github.Int(5), Line: github.Int(6), Side: github.String("RIGHT"), StartSide: github.String("RIGHT"),
			Body: github.String("Shorter:\n\n```suggestion\n\treturn 100 * n\n```\n"),
		}},
	})
	w.must(err)
	if rv.GetState() != "COMMENTED" {
		t.Errorf("state of the review = %s, want COMMENTED", rv.GetState())
	}
	check, _, err := w.gh.Checks.CreateCheckRun(w.ctx, "acme", "shop", github.CreateCheckRunOptions{
		Name: "forge", HeadSHA: pr.GetHead().GetSHA(), Status: github.String("completed"), Conclusion: github.String("action_required"),
		ExternalID: github.String("run/1"), Output: &github.CheckRunOutput{Title: github.String("Stuck"), Summary: github.String("Choose.")},
		Actions: []*github.CheckRunAction{{Label: "Continue", Description: "Three more iterations", Identifier: "continue"}},
	})
	w.must(err)
	w.must(w.al.Press(w.repo, check.GetID(), "continue"))
	w.settle()
	if got := w.hook.last("check_run.requested_action"); got == nil || got["requested_action"].(map[string]any)["identifier"] != "continue" {
		t.Errorf("requested_action = %v", got)
	}

	gql := githubv4.NewEnterpriseClient(w.s.URL+"/api/graphql", w.http)
	var ready struct {
		MarkPullRequestReadyForReview struct {
			PullRequest struct{ IsDraft bool }
		} `graphql:"markPullRequestReadyForReview(input: $input)"`
	}
	w.must(gql.Mutate(w.ctx, &ready, githubv4.MarkPullRequestReadyForReviewInput{PullRequestID: pr.GetNodeID()}, nil))
	if ready.MarkPullRequestReadyForReview.PullRequest.IsDraft {
		t.Error("the pull request is still a draft")
	}
	w.must(w.al.Merge(w.repo, pr.GetNumber()))
	text, err := w.s.File(w.repo, "main", "shop.go")
	if err != nil || text != better {
		t.Errorf("main has %q, %v; want the change", text, err)
	}
	if i, err := w.s.Issue(w.repo, n); err != nil || i.State != "closed" {
		t.Errorf("issue after the merge: %v, %v; want it closed", i.State, err)
	}
	if w.hook.bad > 0 {
		t.Errorf("%d deliveries had a wrong signature", w.hook.bad)
	}
}

// Covers H2: a suggestion applied with the button, and what becomes of its thread.
func TestCommitSuggestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	_, _, err := w.gh.PullRequests.CreateReview(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestReviewRequest{
		Event: github.String("COMMENT"), Body: github.String("Two things."),
		Comments: []*github.DraftReviewComment{
			{Path: github.String("shop.go"), StartLine: github.Int(5), Line: github.Int(6), Body: github.String("````suggestion\n\treturn 100 * n\n````")},
			{Path: github.String("shop.go"), Line: github.Int(7), Body: github.String("A remark.")},
		},
	})
	w.must(err)
	w.settle()
	w.hook.names()
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	id := pulls[0].Threads[0].Comments[0].ID
	if err := w.s.As("mallory").CommitSuggestion(w.repo, id); err == nil || !strings.Contains(err.Error(), "cannot write") {
		t.Errorf("a stranger's click: %v, want a refusal", err)
	}
	w.must(w.al.CommitSuggestion(w.repo, id))
	text, err := w.s.File(w.repo, "forge/issue-1", "shop.go")
	w.must(err)
	if want := strings.Replace(mainGo, "n * 100", "100 * n", 1); text != want {
		t.Error(cmp.Diff(want, text))
	}
	w.settle()
	if got, want := w.hook.names(), []string{"push", "pull_request.synchronize", "check_suite.requested"}; !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
	pulls, _ = w.s.Pulls(w.repo)
	if th := pulls[0].Threads; !th[0].Outdated || th[0].Resolved || th[1].Outdated || th[1].Line != 6 {
		t.Errorf("threads = %+v; want the first outdated, the second on line 6", th)
	}
	c, _, err := w.gh.Repositories.GetCommit(w.ctx, "acme", "shop", pulls[0].Head, nil)
	w.must(err)
	msg := c.GetCommit().GetMessage()
	if !strings.Contains(msg, "Co-authored-by: forge[bot] <") || c.GetCommit().GetCommitter().GetName() != "GitHub" ||
		!c.GetCommit().GetVerification().GetVerified() {
		t.Errorf("commit: %q by %s, verified %v", msg, c.GetCommit().GetCommitter().GetName(), c.GetCommit().GetVerification().GetVerified())
	}
	if err := w.al.CommitSuggestion(w.repo, id); err == nil {
		t.Error("an outdated suggestion was applied")
	}
}
