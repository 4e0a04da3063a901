package githubtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// Every operation that Forge uses goes through go-github, and every exchange
// through the contract.
func TestIssuesAndLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	is, ctx := w.gh.Issues, w.ctx
	i, _, err := is.Create(ctx, "acme", "shop", &github.IssueRequest{Title: github.String("A"), Body: github.String("b"), Labels: &[]string{"bug"}})
	w.must(err)
	_, _, err = is.CreateLabel(ctx, "acme", "shop",
		&github.Label{Name: github.String("forge: working"), Color: github.String("0E8A16"), Description: github.String("d")})
	w.must(err)
	for range 3 {
		_, _, err = is.CreateComment(ctx, "acme", "shop", i.GetNumber(), &github.IssueComment{Body: github.String("c")})
		w.must(err)
	}
	var seen int
	opts := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 2}}
	for {
		page, resp, err := is.ListComments(ctx, "acme", "shop", i.GetNumber(), opts)
		w.must(err)
		seen += len(page)
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	if seen != 3 {
		t.Errorf("paging saw %d comments, want 3", seen)
	}
	list, _, err := is.ListByRepo(ctx, "acme", "shop", &github.IssueListByRepoOptions{State: "all", Labels: []string{"bug"}})
	w.must(err)
	if len(list) != 1 {
		t.Errorf("issues = %v", list)
	}
	_, _, err = is.AddAssignees(ctx, "acme", "shop", i.GetNumber(), []string{"alice"})
	w.must(err)
	bot, _, err := w.gh.Users.Get(ctx, "forge[bot]")
	w.must(err)
	if bot.GetType() != "Bot" {
		t.Errorf("forge[bot] is a %s", bot.GetType())
	}
	if got := w.s.Mutations()["issues/create-comment"]; got != 3 {
		t.Errorf("create-comment had %d effects, want 3", got)
	}
}

func TestGitObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, ctx := w.gh.Git, w.ctx
	ref, _, err := g.GetRef(ctx, "acme", "shop", "heads/main")
	w.must(err)
	base := ref.GetObject().GetSHA()
	tree, _, err := g.CreateTree(ctx, "acme", "shop", base, []*github.TreeEntry{
		{Path: github.String("dir/hi.txt"), Mode: github.String("100644"), Type: github.String("blob"), Content: github.String("hi")},
		{Path: github.String("new.txt"), Mode: github.String("100644"), Type: github.String("blob"), Content: github.String("n\n")},
		{Path: github.String("README.md"), Mode: github.String("100644"), Type: github.String("blob")},
	})
	w.must(err)
	// go-github has no way to leave author and committer out but nil.
	c, _, err := g.CreateCommit(ctx, "acme", "shop", &github.Commit{Message: github.String("By API"), Tree: tree, Parents: []*github.Commit{{SHA: &base}}}, nil)
	w.must(err)
	if !c.GetVerification().GetVerified() {
		t.Error("a commit of the App without an author is not verified")
	}
	named, _, err := g.CreateCommit(ctx, "acme", "shop", &github.Commit{
		Message: github.String("Named"), Tree: tree, Parents: []*github.Commit{{SHA: &base}},
		Author: &github.CommitAuthor{Name: github.String("A"), Email: github.String("a@b.c")},
	}, nil)
	w.must(err)
	if named.GetVerification().GetVerified() {
		t.Error("a commit with an author of its own is verified")
	}
	_, _, err = g.CreateRef(ctx, "acme", "shop", &github.Reference{Ref: github.String("refs/heads/api/one"), Object: &github.GitObject{SHA: c.SHA}})
	w.must(err)
	if _, _, err = g.CreateRef(ctx, "acme", "shop",
		&github.Reference{Ref: github.String("refs/heads/api/one"), Object: &github.GitObject{SHA: c.SHA}}); err == nil ||
		!strings.Contains(err.Error(), "Reference already exists") {
		t.Errorf("a ref twice: %v", err)
	}
	if _, _, err = g.UpdateRef(ctx, "acme", "shop",
		&github.Reference{Ref: github.String("refs/heads/api/one"), Object: &github.GitObject{SHA: named.SHA}}, false); err == nil ||
		!strings.Contains(err.Error(), "not a fast forward") {
		t.Errorf("a jump without force: %v", err)
	}
	_, _, err = g.UpdateRef(ctx, "acme", "shop", &github.Reference{Ref: github.String("refs/heads/api/one"), Object: &github.GitObject{SHA: named.SHA}}, true)
	w.must(err)
	cmp, _, err := w.gh.Repositories.CompareCommits(ctx, "acme", "shop", "main", "api/one", nil)
	w.must(err)
	if cmp.GetStatus() != "ahead" || cmp.GetAheadBy() != 1 || len(cmp.Files) != 3 {
		t.Errorf("compare = %s, %d ahead, %d files", cmp.GetStatus(), cmp.GetAheadBy(), len(cmp.Files))
	}
	file, dir, _, err := w.gh.Repositories.GetContents(ctx, "acme", "shop", "dir", &github.RepositoryContentGetOptions{Ref: "api/one"})
	w.must(err)
	if file != nil || len(dir) != 1 || dir[0].GetName() != "hi.txt" {
		t.Errorf("dir = %v", dir)
	}
	file, _, _, err = w.gh.Repositories.GetContents(ctx, "acme", "shop", "shop.go", nil)
	w.must(err)
	if text, err := file.GetContent(); err != nil || text != mainGo {
		t.Errorf("shop.go = %q, %v", text, err)
	}
	m, _, err := w.gh.Repositories.Merge(ctx, "acme", "shop", &github.RepositoryMergeRequest{Base: github.String("api/one"), Head: github.String(c.GetSHA())})
	w.must(err)
	if len(m.Parents) != 2 {
		t.Errorf("the merge has %d parents", len(m.Parents))
	}
	put, _, err := w.gh.Repositories.CreateFile(ctx, "acme", "shop", "put.txt",
		&github.RepositoryContentFileOptions{Message: github.String("Put"), Content: []byte("x"), Branch: github.String("api/one")})
	w.must(err)
	if put.Content.GetPath() != "put.txt" {
		t.Errorf("put = %v", put.Content)
	}
	if _, _, err := w.gh.Apps.ListRepos(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := w.appClient().Apps.FindRepositoryInstallation(ctx, "acme", "shop"); err != nil {
		t.Error(err)
	}
}

// Covers the anchoring rules of reviews: one bad comment and nothing is made.
func TestReviewAnchors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	one := func(c *github.DraftReviewComment) *github.PullRequestReviewRequest {
		return &github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{
			{Path: github.String("shop.go"), Line: github.Int(5), Body: github.String("good")}, c,
		}}
	}
	for _, tc := range []struct {
		name string
		req  *github.PullRequestReviewRequest
		want string
	}{
		{"outside the hunk", one(&github.DraftReviewComment{Path: github.String("shop.go"), Line: github.Int(400), Body: github.String("x")}),
			"must be part of the diff"},
		{"another file", one(&github.DraftReviewComment{Path: github.String("go.mod"), Line: github.Int(1), Body: github.String("x")}), "Path could not be resolved"},
		{"a range backwards", one(&github.DraftReviewComment{Path: github.String("shop.go"), StartLine: github.Int(6), Line: github.Int(6),
			Body: github.String("x")}), "must precede the end line"},
		{"no text", one(&github.DraftReviewComment{Path: github.String("shop.go"), Line: github.Int(5)}), "can't be blank"},
		{"a removed line on the new side", one(&github.DraftReviewComment{Path: github.String("shop.go"), Line: github.Int(13),
			Body: github.String("x")}), "must be part of the diff"},
		{"approving one's own", &github.PullRequestReviewRequest{Event: github.String("APPROVE")}, "Can not approve your own"},
		{"requesting changes of one's own", &github.PullRequestReviewRequest{Event: github.String("REQUEST_CHANGES"), Body: github.String("b")},
			"Can not request changes"},
		{"a foreign commit", &github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"),
			CommitID: github.String(strings.Repeat("1", 40))}, "not part of the pull request"},
	} {
		_, resp, err := w.gh.PullRequests.CreateReview(w.ctx, "acme", "shop", pr.GetNumber(), tc.req)
		if err == nil || resp.StatusCode != 422 || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want 422 with %q", tc.name, err, tc.want)
		}
	}
	if p, err := w.s.Pulls(w.repo); err != nil || len(p[0].Reviews)+len(p[0].Threads) > 0 {
		t.Errorf("a refused review left %+v", p[0])
	}
	c, _, err := w.gh.PullRequests.CreateComment(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestComment{
		Path: github.String("shop.go"), Line: github.Int(5), Side: github.String("LEFT"), CommitID: pr.Head.SHA, Body: github.String("old line"),
	})
	w.must(err)
	if c.GetSide() != "LEFT" || !strings.HasSuffix(c.GetDiffHunk(), "-\treturn n * 100") {
		t.Errorf("comment on %s: %q", c.GetSide(), c.GetDiffHunk())
	}
	_, _, err = w.gh.PullRequests.CreateComment(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestComment{
		Path: github.String("shop.go"), SubjectType: github.String("file"), CommitID: pr.Head.SHA, Body: github.String("whole file"),
	})
	w.must(err)
}

func TestReviewLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	pulls, n, ctx := w.gh.PullRequests, pr.GetNumber(), w.ctx
	rv, _, err := pulls.CreateReview(ctx, "acme", "shop", n,
		&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{
			{Path: github.String("shop.go"), Line: github.Int(6), Body: github.String("p")}}})
	w.must(err)
	list, _, err := pulls.ListComments(ctx, "acme", "shop", n, nil)
	w.must(err)
	_, _, err = pulls.CreateCommentInReplyTo(ctx, "acme", "shop", n, "Fixed.", list[0].GetID())
	w.must(err)
	_, _, err = pulls.ListReviewComments(ctx, "acme", "shop", n, rv.GetID(), nil)
	w.must(err)
	w.must(w.al.Review(w.repo, n, Review{Event: "REQUEST_CHANGES", Body: "No.", Path: "shop.go", Line: 5, Comment: "Why?"}))
	_, _, err = pulls.ListReviews(ctx, "acme", "shop", n, nil)
	w.must(err)

	var q struct {
		Repository struct {
			PullRequest struct {
				ReviewThreads struct {
					Nodes []struct {
						ID                     string
						IsResolved, IsOutdated bool
						Path                   string
						Line                   *int
						ViewerCanResolve       bool
						Comments               struct {
							Nodes []struct {
								DatabaseID int64
								Body       string
								Author     struct{ Login string }
							}
						} `graphql:"comments(first: 10)"`
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				} `graphql:"reviewThreads(first: 1, after: $after)"`
			} `graphql:"pullRequest(number: $n)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	gql := githubv4.NewEnterpriseClient(w.s.URL+"/api/graphql", w.http)
	vars := map[string]any{"owner": githubv4.String("acme"), "name": githubv4.String("shop"), "n": githubv4.Int(n), "after": (*githubv4.String)(nil)}
	w.must(gql.Query(ctx, &q, vars))
	th := q.Repository.PullRequest.ReviewThreads
	if !th.PageInfo.HasNextPage || len(th.Nodes) != 1 || th.Nodes[0].Comments.Nodes[0].Author.Login != "forge" || *th.Nodes[0].Line != 6 ||
		!th.Nodes[0].ViewerCanResolve {
		t.Fatalf("threads = %+v", th)
	}
	first := th.Nodes[0].ID
	vars["after"] = githubv4.String(th.PageInfo.EndCursor)
	w.must(gql.Query(ctx, &q, vars))
	if q.Repository.PullRequest.ReviewThreads.PageInfo.HasNextPage || q.Repository.PullRequest.ReviewThreads.Nodes[0].ID == first {
		t.Error("the second page is the first")
	}
	w.settle()
	w.hook.names()
	var res struct {
		ResolveReviewThread struct{ Thread struct{ IsResolved bool } } `graphql:"resolveReviewThread(input: $input)"`
	}
	w.must(gql.Mutate(ctx, &res, githubv4.ResolveReviewThreadInput{ThreadID: first}, nil))
	var un struct {
		UnresolveReviewThread struct{ Thread struct{ IsResolved bool } } `graphql:"unresolveReviewThread(input: $input)"`
	}
	w.must(gql.Mutate(ctx, &un, githubv4.UnresolveReviewThreadInput{ThreadID: first}, nil))
	if !res.ResolveReviewThread.Thread.IsResolved || un.UnresolveReviewThread.Thread.IsResolved {
		t.Error("resolving had no effect")
	}
	w.settle()
	if got, want := w.hook.names(), []string{"pull_request_review_thread.resolved", "pull_request_review_thread.unresolved"}; !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
}

func TestPullLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue()
	pr := w.draft()
	pulls, n, ctx := w.gh.PullRequests, pr.GetNumber(), w.ctx
	if _, _, err := pulls.Create(ctx, "acme", "shop",
		&github.NewPullRequest{Title: github.String("x"), Head: github.String("forge/issue-1"), Base: github.String("main")}); err == nil ||
		!strings.Contains(err.Error(), "A pull request already exists for acme:forge/issue-1.") {
		t.Errorf("a second pull request: %v", err)
	}
	_, _, err := pulls.Edit(ctx, "acme", "shop", n, &github.PullRequest{Body: github.String("Closes #1\n\nreport")})
	w.must(err)
	files, _, err := pulls.ListFiles(ctx, "acme", "shop", n, nil)
	w.must(err)
	if len(files) != 1 || !strings.HasPrefix(files[0].GetPatch(), "@@ -2,7 +2,8 @@") {
		t.Errorf("files = %v", files)
	}
	_, _, err = pulls.ListCommits(ctx, "acme", "shop", n, nil)
	w.must(err)
	found, _, err := pulls.List(ctx, "acme", "shop", &github.PullRequestListOptions{Head: "acme:forge/issue-1"})
	w.must(err)
	if len(found) != 1 {
		t.Errorf("%d pull requests of the branch", len(found))
	}
	clash := strings.Replace(mainGo, "n * 100", "n * 101", 1)
	_, err = w.al.PushFiles(w.repo, Push{Branch: "main", Message: "Clash", Files: map[string]*string{"shop.go": &clash}})
	w.must(err)
	got, _, err := pulls.Get(ctx, "acme", "shop", n)
	w.must(err)
	if got.GetMergeable() || got.GetMergeableState() != "dirty" {
		t.Errorf("mergeable = %v, %s; want false, dirty", got.GetMergeable(), got.GetMergeableState())
	}
	if _, _, err := pulls.Merge(ctx, "acme", "shop", n, "", &github.PullRequestOptions{SHA: strings.Repeat("0", 40)}); err == nil ||
		!strings.Contains(err.Error(), "409") {
		t.Errorf("merge of another head: %v, want 409", err)
	}
	if _, _, err := pulls.Merge(ctx, "acme", "shop", n, "", nil); err == nil || !strings.Contains(err.Error(), "405") {
		t.Errorf("merge of a draft: %v, want 405", err)
	}
	_, _, err = pulls.Edit(ctx, "acme", "shop", n, &github.PullRequest{State: github.String("closed")})
	w.must(err)
	ref, _, err := w.gh.Git.GetRef(ctx, "acme", "shop", "pull/2/head")
	w.must(err)
	if ref.GetObject().GetSHA() != got.GetHead().GetSHA() {
		t.Error("refs/pull/2/head is not the head")
	}
	n2 := "z\n"
	_, err = w.al.PushFiles(w.repo, Push{Branch: "topic", Message: "Topic", Files: map[string]*string{"z.txt": &n2}})
	w.must(err)
	third, err := w.al.OpenPull(w.repo, "topic", "Topic")
	w.must(err)
	merged, _, err := pulls.Merge(ctx, "acme", "shop", third, "", &github.PullRequestOptions{MergeMethod: "squash", CommitTitle: "Topic (#3)"})
	w.must(err)
	if !merged.GetMerged() {
		t.Error("not merged")
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head, err := w.s.Head(w.repo, "main")
	w.must(err)
	ck, ctx := w.gh.Checks, w.ctx
	run, _, err := ck.CreateCheckRun(ctx, "acme", "shop", github.CreateCheckRunOptions{Name: "forge", HeadSHA: head, Status: github.String("in_progress")})
	w.must(err)
	var notes []*github.CheckRunAnnotation
	for range 51 {
		notes = append(notes, &github.CheckRunAnnotation{Path: github.String("shop.go"), StartLine: github.Int(1), EndLine: github.Int(1),
			AnnotationLevel: github.String("warning"), Message: github.String("m")})
	}
	out := &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s"), Annotations: notes}
	if _, _, err = ck.UpdateCheckRun(ctx, "acme", "shop", run.GetID(), github.UpdateCheckRunOptions{Name: "forge", Output: out}); err == nil ||
		!strings.Contains(err.Error(), "50 items") {
		t.Errorf("51 annotations: %v", err)
	}
	out.Annotations = notes[:50]
	_, _, err = ck.UpdateCheckRun(ctx, "acme", "shop", run.GetID(),
		github.UpdateCheckRunOptions{Name: "forge", Status: github.String("completed"), Conclusion: github.String("success"), Output: out})
	w.must(err)
	list, _, err := ck.ListCheckRunsForRef(ctx, "acme", "shop", "main", nil)
	w.must(err)
	if list.GetTotal() != 1 || list.CheckRuns[0].GetOutput().GetAnnotationsCount() != 50 {
		t.Errorf("check runs = %v", list)
	}
	_, _, err = ck.ListCheckRunAnnotations(ctx, "acme", "shop", run.GetID(), nil)
	w.must(err)
	_, _, err = ck.ListCheckSuitesForRef(ctx, "acme", "shop", head, nil)
	w.must(err)
	w.settle()
	want := []string{"check_run.created", "check_run.completed", "check_suite.completed"}
	if got := w.hook.names(); !slices.Equal(got, want) {
		t.Errorf("webhooks = %v, want %v", got, want)
	}
}

func (w *world) mainHead() string {
	w.t.Helper()
	head, err := w.s.Head(w.repo, "main")
	w.must(err)
	return head
}
