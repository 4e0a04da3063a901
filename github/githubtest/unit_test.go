package githubtest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
)

func TestGraphQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue()
	pr := w.draft()
	_, _, err := w.gh.PullRequests.CreateComment(w.ctx, "acme", "shop", pr.GetNumber(),
		&github.PullRequestComment{Path: github.String("shop.go"), Line: github.Int(6), CommitID: pr.Head.SHA, Body: github.String("x")})
	w.must(err)
	_, err = w.al.Comment(w.repo, n, "hello")
	w.must(err)
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	issue, _, err := w.gh.Issues.Get(w.ctx, "acme", "shop", n)
	w.must(err)
	tok := w.token()
	ask := func(query string, vars map[string]any) string {
		t.Helper()
		body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
		w.must(err)
		status, text := w.do("POST", "/api/graphql", tok, string(body))
		if status != 200 {
			t.Errorf("%s = %d", query, status)
		}
		return text
	}
	for _, tc := range []struct {
		name, query string
		vars        map[string]any
		want        string
	}{
		{"a node by its kind", `query($id:ID!){node(id:$id){__typename id ...on PullRequest{isDraft n:number} ...on Issue{title}}}`,
			map[string]any{"id": pr.GetNodeID()}, `"__typename":"PullRequest"`},
		{"a fragment", `query($id:ID!){node(id:$id){...F}} fragment F on Comment{author{login}}`, map[string]any{"id": issue.GetNodeID()},
			`{"author":{"login":"alice"}}`},
		{"skip", `query($id:ID!,$no:Boolean!){node(id:$id){id @skip(if:$no) ...on Issue @include(if:$no){title}}}`,
			map[string]any{"id": issue.GetNodeID(), "no": true}, `"node":{"title":"Name the price"}`},
		{"comments and labels", `{repository(owner:"acme",name:"shop"){issue(number:1){state comments(last:1){totalCount edges{node{body isMinimized}}} labels(first:5){nodes{name}}}}}`, nil, `"body":"hello"`},
		{"thread", `query($id:ID!){node(id:$id){...on PullRequestReviewThread{path line isOutdated subjectType comments(first:1){nodes{body pullRequestReview{state}}}}}}`, map[string]any{"id": pulls[0].Threads[0].Node}, `"state":"COMMENTED"`},
		{"state of the merge", `{repository(owner:"acme",name:"shop"){pullRequest(number:2){mergeable mergeStateStatus headRefOid reviews(first:1){nodes{state}}}}}`, nil, `"mergeable":"MERGEABLE"`},
		{"reply", `mutation($id:ID!){addPullRequestReviewThreadReply(input:{pullRequestReviewThreadId:$id,body:"Done."}){comment{body}}}`,
			map[string]any{"id": pulls[0].Threads[0].Node}, `"comment":{"body":"Done."}`},
		{"no such node", `mutation{resolveReviewThread(input:{threadId:"PRRT_none"}){thread{id}}}`, nil, `"type":"NOT_FOUND"`},
		{"a node of another kind", `mutation($id:ID!){resolveReviewThread(input:{threadId:$id}){thread{id}}}`,
			map[string]any{"id": issue.GetNodeID()}, `"type":"NOT_FOUND"`},
		{"no bounds", `{repository(owner:"acme",name:"shop"){issue(number:1){comments{totalCount}}}}`, nil, `MISSING_PAGINATION_BOUNDARIES`},
		{"too many", `{repository(owner:"acme",name:"shop"){issue(number:1){comments(first:101){totalCount}}}}`, nil, `EXCESSIVE_PAGINATION`},
		{"no such repository", `{repository(owner:"acme",name:"none"){id}}`, nil, `Could not resolve to a Repository`},
		{"no such pull request", `{repository(owner:"acme",name:"shop"){pullRequest(number:1){id}}}`, nil, `Could not resolve to a PullRequest`},
		{"viewer and limits", `{viewer{login} rateLimit{limit}}`, nil, `"login":"forge"`},
		{"not implemented", `{repository(owner:"acme",name:"shop"){stargazerCount}}`, nil, `does not implement the field 'stargazerCount'`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ask(tc.query, tc.vars); !strings.Contains(got, tc.want) {
				t.Errorf("%s = %s, want %s", tc.query, got, tc.want)
			}
		})
	}
}

func TestThreadMoves(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		start, line int
		diff        string
		wantLine    int
		outdated    bool
	}{
		{"lines above were added", 0, 10, "@@ -3,0 +4,2 @@\n+a\n+b", 12, false},
		{"lines above went", 9, 10, "@@ -3,2 +2,0 @@\n-a\n-b", 8, false},
		{"a change below", 0, 10, "@@ -11 +11 @@\n-a\n+b", 10, false},
		{"its line changed", 0, 10, "@@ -10 +10 @@\n-a\n+b", 0, true},
		{"within its range", 8, 10, "@@ -8,0 +9 @@\n+a", 0, true},
		{"just before it", 8, 10, "@@ -7,0 +8 @@\n+a", 11, false},
	} {
		th := &thread{path: "f", side: "RIGHT", subject: "line", startLine: tc.start, line: tc.line}
		th.move(parseDiff("diff --git a/f b/f\n--- a/f\n+++ b/f\n"+tc.diff+"\n"), "new")
		if th.line != tc.wantLine || th.outdated != tc.outdated {
			t.Errorf("%s: line %d, outdated %v; want %d, %v", tc.name, th.line, th.outdated, tc.wantLine, tc.outdated)
		}
	}
}

func TestParseDiff(t *testing.T) {
	t.Parallel()
	text := "diff --git a/old name.go b/new name.go\nsimilarity index 90%\nrename from old name.go\nrename to new name.go\n--- a/old name.go\t\n+++ b/new name.go\t\n@@ -1,2 +1,2 @@ f\n-a\n+b\n c\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n" +
		"diff --git a/pic.png b/pic.png\nnew file mode 100644\nBinary files /dev/null and b/pic.png differ\n"
	var got []string
	for _, f := range parseDiff(text) {
		got = append(got, strings.Join([]string{f.path, f.oldPath, f.status, f.patch}, "|"))
	}
	want := []string{"new name.go|old name.go|renamed|@@ -1,2 +1,2 @@ f\n-a\n+b\n c",
		"gone||removed|@@ -1 +0,0 @@\n-x\n\\ No newline at end of file", "pic.png||added|"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzParseDiff(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n@@ -9,0 +10 @@\n+z", 2)
	f.Fuzz(func(t *testing.T, text string, line int) {
		for _, file := range parseDiff(text) {
			if th, err := place([]fileDiff{file}, anchor{Path: file.path, Line: line, Body: "b"}); err == nil && th.hunk == "" {
				t.Errorf("a thread without a hunk in %q", text)
			}
		}
	})
}

func TestSuggestionText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		body, file string
		start, end int
		want       string
	}{
		{"```suggestion\nB\n```", "a\nb\nc\n", 0, 2, "a\nB\nc\n"},
		{"```suggestion\n```", "a\nb\nc\n", 1, 2, "c\n"},
		{"```suggestion\n\n```", "a\nb\n", 0, 1, "\nb\n"},
		{"```suggestion\nB\n```", "a\r\nb\r\n", 0, 2, "a\r\nB\r\n"},
		{"```suggestion\nB\n```", "a\nb", 0, 2, "a\nB"},
		{"no block", "a\n", 0, 1, "the comment has no suggestion block"},
		{"```suggestion\na\n```", "a\n", 0, 1, "This suggestion is invalid because no changes were made to the code."},
	} {
		c := &reviewComment{body: tc.body, thread: &thread{subject: "line", side: "RIGHT", startLine: tc.start, line: tc.end}}
		got, err := c.withSuggestion(tc.file)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q on %q = %q, want %q", tc.body, tc.file, got, tc.want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	good := manifest(t)
	for name, tc := range map[string]struct {
		opts Options
		want string
	}{
		"no manifest":       {Options{}, "Options.Manifest is empty"},
		"no YAML":           {Options{Manifest: []byte("name: [")}, "read the App's manifest"},
		"an unknown key":    {Options{Manifest: append(good, "\nnme: x\n"...)}, "nme"},
		"an unknown level":  {Options{Manifest: []byte("name: a\nurl: b\ndefault_permissions: {issues: wrote}")}, `default_permissions.issues is "wrote"`},
		"a forbidden event": {Options{Manifest: []byte("name: a\nurl: b\ndefault_events: [installation]")}, "GitHub always sends it"},
		"an open address":   {Options{Manifest: good, Addr: "0.0.0.0:0"}, "only a loopback address"},
		"no table":          {Options{Manifest: good, Permissions: []byte("{")}, "table of permissions"},
	} {
		tc.opts.Dir = t.TempDir()
		s, err := New(tc.opts)
		if err == nil {
			err = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if left, _ := os.ReadDir(tc.opts.Dir); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	full, err := w.s.AddRepoFromFS("acme", "tree", fstest.MapFS{"a/b.txt": {Data: []byte("x")}, ".git/config": {Data: []byte("no")}})
	w.must(err)
	if text, err := w.s.File(full, "main", "a/b.txt"); err != nil || text != "x" {
		t.Errorf("a/b.txt = %q, %v", text, err)
	}
	n := w.issue()
	bob := w.s.As("bob")
	id, err := bob.Comment(w.repo, n, "- [ ] mine")
	w.must(err)
	w.must(bob.TickBox(w.repo, id, 0))
	w.must(w.al.EditComment(w.repo, id, "changed"))
	w.must(w.al.EditIssue(w.repo, n, "", "new body"))
	w.must(w.al.Label(w.repo, n, "x"))
	w.must(w.al.Unlabel(w.repo, n, "x"))
	w.must(w.al.Close(w.repo, n))
	w.must(w.al.Close(w.repo, n))
	for name, err := range map[string]error{
		"label without a role":   bob.Label(w.repo, n, "forge"),
		"edit of another's":      w.s.As("carol").EditComment(w.repo, id, "x"),
		"no such box":            w.al.TickBox(w.repo, id, 3),
		"no such issue":          w.al.Label(w.repo, 99, "x"),
		"no such repository":     w.al.Label("a/b", 1, "x"),
		"an absent label":        w.al.Unlabel(w.repo, n, "x"),
		"merge of an issue":      w.al.Merge(w.repo, n),
		"a role that is none":    w.s.SetPermission(w.repo, "bob", "boss"),
		"no such review comment": w.al.Resolve(w.repo, 7),
		"a suspended nobody":     w.s.Suspend("nobody", true),
		"no such button":         w.al.Press(w.repo, 7, "x"),
		"an empty comment":       func() error { _, err := w.al.Comment(w.repo, n, " "); return err }(),
		"a push without a role":  func() error { _, err := bob.PushFiles(w.repo, Push{Branch: "x", Message: "m"}); return err }(),
		"a path that leads out": func() error {
			s := ""
			_, err := w.al.PushFiles(w.repo, Push{Branch: "x", Message: "m", Files: map[string]*string{"../x": &s}})
			return err
		}(),
		"a repository twice":           func() error { _, err := w.s.AddRepo("acme", "shop", nil); return err }(),
		"a repository with a bad name": func() error { _, err := w.s.AddRepo("acme", "a/../b", nil); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w.settle()
	want := []string{"issues.opened", "issue_comment.created", "issue_comment.edited", "issue_comment.edited", "issues.edited",
		"issues.labeled", "issues.unlabeled", "issues.closed", "issues.reopened"}
	if d := cmp.Diff(want, w.hook.names()); d != "" {
		t.Error(d)
	}
}
