package githubtest

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
)

// judged is a pull request of the App's with one review comment, and what people
// of several roles may do.
func judged(t *testing.T) (w *world, pull int, comment int64) {
	t.Helper()
	w = newWorld(t)
	w.issue()
	pr := w.draft()
	_, _, err := w.gh.PullRequests.CreateReview(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestReviewRequest{
		Event: github.String("COMMENT"), Body: github.String("One thing."),
		Comments: []*github.DraftReviewComment{{Path: github.String("shop.go"), Line: github.Int(6), Body: github.String("A remark.")}},
	})
	w.must(err)
	for login, role := range map[string]string{"tina": "triage", "rita": "read"} {
		w.must(w.s.SetPermission(w.repo, login, role))
	}
	w.settle()
	w.hook.names()
	return w, pr.GetNumber(), w.thread().Comments[0].ID
}

func (w *world) thread() Thread {
	w.t.Helper()
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	return pulls[0].Threads[0]
}

// heard checks which deliveries came.
func (w *world) heard(what string, want ...string) {
	w.t.Helper()
	w.settle()
	if got := w.hook.names(); !slices.Equal(got, want) {
		w.t.Errorf("%s: webhooks = %v, want %v", what, got, want)
	}
}

func (w *world) refused(what string, err error, text string) {
	w.t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		w.t.Errorf("%s: %v, want a refusal with %q", what, err, text)
	}
}

// graphql sends a document as an App's token or a person.
func (w *world) graphql(token, query string, vars map[string]any) string {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"query": query, "variables": vars})
	_, text := w.do("POST", "/api/graphql", token, string(body))
	return text
}

// Covers H1: hiding and reactions change what GraphQL shows, and nobody is told.
func TestHideAndReact(t *testing.T) {
	t.Parallel()
	w, pull, id := judged(t)
	const show = `query($n:Int!){repository(owner:"acme",name:"shop"){pullRequest(number:$n){reviewThreads(first:9){nodes{resolvedBy{login} comments(first:1){nodes{
		id fullDatabaseId isMinimized minimizedReason originalStartLine reactions(first:9,content:THUMBS_DOWN){totalCount nodes{createdAt content user{login databaseId}}}
		reactionGroups{content viewerHasReacted createdAt reactors(first:9){totalCount}}}}}}}}}`
	see := func(what string, texts ...string) {
		t.Helper()
		got := w.graphql(w.token(), show, map[string]any{"n": pull})
		for _, text := range texts {
			if !strings.Contains(got, text) {
				t.Errorf("%s: GraphQL lacks %s in %s", what, text, got)
			}
		}
	}
	see("at first", `"isMinimized":false`, `"reactions":{"nodes":[],"totalCount":0}`)
	w.refused("a reader hides", w.s.As("rita").Hide(w.repo, id, "SPAM"), "role triage")
	w.refused("for no reason that exists", w.s.As("tina").Hide(w.repo, id, "BORING"), "no reason")
	w.refused("nothing", w.s.As("tina").Hide(w.repo, 1, "SPAM"), "no such comment")
	w.must(w.s.As("tina").Hide(w.repo, id, "OFF_TOPIC"))
	see("hidden", `"isMinimized":true`, `"minimizedReason":"off_topic"`)
	w.must(w.s.As("tina").Hide(w.repo, id, ""))
	see("shown", `"isMinimized":false`)
	w.must(w.s.As("rita").React(w.repo, id, "-1"))
	see("a thumb", `"totalCount":1`, `"content":"THUMBS_DOWN"`, `"login":"rita"`)
	w.must(w.s.As("rita").React(w.repo, id, "-1"))
	see("no thumb", `"reactions":{"nodes":[],"totalCount":0}`)
	w.refused("a reaction that does not exist", w.s.As("rita").React(w.repo, id, "shrug"), "is no reaction")
	w.refused("to nothing", w.s.As("rita").React(w.repo, 1, "-1"), "no such comment")
	w.heard("hiding and reacting")
}

// Covers H1, H7: comments that are deleted or edited, reviews that are dismissed,
// threads that are resolved, with their deliveries and rights.
func TestJudging(t *testing.T) {
	t.Parallel()
	w, pull, id := judged(t)
	w.refused("a reader resolves", w.s.As("rita").Resolve(w.repo, id), "write access")
	w.must(w.al.Resolve(w.repo, id))
	w.heard("resolving", "pull_request_review_thread.resolved")
	w.must(w.al.Resolve(w.repo, id))
	w.settle()
	if e := w.hook.last("pull_request_review_thread.unresolved"); e == nil || e["updated_at"] == nil || e["sender"].(map[string]any)["login"] != "alice" {
		t.Errorf("unresolved came as %v", e)
	}
	w.hook.names()

	w.must(w.s.As("rita").Review(w.repo, pull, Review{Event: "REQUEST_CHANGES", Body: "No."}))
	w.must(w.s.As("rita").Review(w.repo, pull, Review{Event: "COMMENT", Body: "Hm."}))
	w.heard("reviewing", "pull_request_review.submitted", "pull_request_review.submitted")
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	asked, hm := pulls[0].Reviews[1].ID, pulls[0].Reviews[2].ID
	w.refused("a reader dismisses", w.s.As("rita").Dismiss(w.repo, pull, asked, "Never mind"), "role write")
	w.refused("without a word", w.al.Dismiss(w.repo, pull, asked, " "), "blank")
	w.refused("a comment", w.al.Dismiss(w.repo, pull, hm, "Never mind"), "commented")
	w.refused("nothing", w.al.Dismiss(w.repo, pull, 1, "Never mind"), "no review")
	w.must(w.al.Dismiss(w.repo, pull, asked, "Settled"))
	w.settle()
	if e := w.hook.last("pull_request_review.dismissed"); e == nil || e["review"].(map[string]any)["state"] != "dismissed" ||
		e["sender"].(map[string]any)["login"] != "alice" {
		t.Errorf("dismissed came as %v", e)
	}
	w.heard("dismissing", "pull_request_review.dismissed")
	w.refused("twice", w.al.Dismiss(w.repo, pull, asked, "Settled"), "commented")
	w.must(w.s.As("rita").Review(w.repo, pull, Review{Event: "APPROVE"}))
	w.heard("approving", "pull_request_review.submitted")

	w.must(w.s.As("rita").Reply(w.repo, id, "Why?"))
	answer := w.thread().Comments[1].ID
	w.refused("a reader edits another's", w.s.As("rita").EditComment(w.repo, id, "x"), "role write")
	w.must(w.s.As("rita").EditComment(w.repo, answer, "By design."))
	w.refused("a reader deletes another's", w.s.As("rita").DeleteComment(w.repo, id), "role write")
	w.must(w.s.As("rita").DeleteComment(w.repo, answer))
	w.refused("nothing", w.al.DeleteComment(w.repo, answer), "no such comment")
	w.must(w.al.DeleteComment(w.repo, id))
	w.heard("words that come and go", "pull_request_review.submitted", "pull_request_review_comment.created",
		"pull_request_review_comment.edited", "pull_request_review_comment.deleted", "pull_request_review_comment.deleted")
	if pulls, _ = w.s.Pulls(w.repo); len(pulls[0].Threads) != 0 {
		t.Errorf("threads = %+v, want none", pulls[0].Threads)
	}
	c, err := w.al.Comment(w.repo, pull, "Nice.")
	w.must(err)
	w.must(w.s.As("alice").DeleteComment(w.repo, c))
	w.heard("a comment in the conversation", "issue_comment.created", "issue_comment.deleted")
}

// A merge is reverted by a pull request of its own, and so is the revert.
func TestRevert(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"merge", "squash"} {
		w, pull, _ := judged(t)
		_, err := w.al.Revert(w.repo, pull)
		w.refused("before the merge", err, "merged")
		w.ready(pull)
		before, err := w.s.File(w.repo, "main", "shop.go")
		w.must(err)
		if how == "merge" {
			w.must(w.al.Merge(w.repo, pull))
		} else {
			w.must(w.al.Squash(w.repo, pull))
		}
		merged, err := w.s.File(w.repo, "main", "shop.go")
		w.must(err)
		_, err = w.s.As("rita").Revert(w.repo, pull)
		w.refused("a reader reverts", err, "role write")
		// Something else comes in between, and stays.
		text := "# More\n"
		_, err = w.al.PushFiles(w.repo, Push{Branch: "main", Message: "More", Files: map[string]*string{"MORE.md": &text}})
		w.must(err)
		n, err := w.al.Revert(w.repo, pull)
		w.must(err)
		head := w.commit(n)
		if msg := head.GetCommit().GetMessage(); !strings.Contains(msg, "This reverts commit ") ||
			head.GetCommit().GetCommitter().GetEmail() != "noreply@github.com" {
			t.Errorf("%s: the revert says %q", how, msg)
		}
		w.must(w.al.Merge(w.repo, n))
		if got, err := w.s.File(w.repo, "main", "shop.go"); err != nil || got != before {
			t.Errorf("%s: after the revert the file is %q, %v", how, got, err)
		}
		if _, err := w.s.File(w.repo, "main", "MORE.md"); err != nil {
			t.Errorf("%s: what came in between is gone: %v", how, err)
		}
		back, err := w.al.Revert(w.repo, n)
		w.must(err)
		w.must(w.al.Merge(w.repo, back))
		if got, err := w.s.File(w.repo, "main", "shop.go"); err != nil || got != merged {
			t.Errorf("%s: after the revert of the revert the file is %q, %v", how, got, err)
		}
		other := "package shop\n"
		_, err = w.al.PushFiles(w.repo, Push{Branch: "main", Message: "All new", Files: map[string]*string{"shop.go": &other}})
		w.must(err)
		_, err = w.al.Revert(w.repo, back)
		w.refused("what has changed since", err, "reverted automatically")
	}
}

// ready takes a pull request out of draft.
func (w *world) ready(n int) {
	w.t.Helper()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	r, err := w.s.repo(w.repo)
	w.must(err)
	w.s.setDraft(r.issues[n].pull, w.s.bot, false)
}

// commit returns the head of a pull request.
func (w *world) commit(n int) *github.RepositoryCommit {
	w.t.Helper()
	pr, _, err := w.gh.PullRequests.Get(w.ctx, "acme", "shop", n)
	w.must(err)
	c, _, err := w.gh.Repositories.GetCommit(w.ctx, "acme", "shop", pr.GetHead().GetSHA(), nil)
	w.must(err)
	return c
}

// All of it can be clicked.
func TestJudgingPages(t *testing.T) {
	t.Parallel()
	w, pull, id := judged(t)
	jar, err := cookiejar.New(nil)
	w.must(err)
	b := browser{w, &http.Client{Jar: jar}}
	const do, at = "/acme/shop/-/do", "/acme/shop/pull/2"
	b.post("/-/user", "login", "alice", "back", "/")
	has := func(page string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("the page lacks %q:\n%.6000s", text, page)
			}
		}
	}
	num := stampID(id)
	has(b.get(at), "Hide", "Delete", "👎", "Resolve conversation")
	has(b.post(do, "do", "react", "id", num, "button", "-1", "back", at), " · -1")
	has(b.post(do, "do", "hide", "id", num, "button", "SPAM", "back", at), "hidden", ">Show<")
	has(b.post(do, "do", "hide", "id", num, "back", at), ">Hide<")
	has(b.post(do, "do", "review", "n", "2", "event", "APPROVE", "back", at), "reviewed: approved", "Dismiss review")
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	has(b.post(do, "do", "dismiss", "n", "2", "id", stampID(pulls[0].Reviews[1].ID), "body", "Too early", "back", at), "reviewed: dismissed")
	has(b.post(do, "do", "edit", "id", num, "body", "Another remark.", "back", at), "Another remark.")
	b.post(do, "do", "delete", "id", num, "back", at)
	if pulls, _ = w.s.Pulls(w.repo); len(pulls[0].Threads) != 0 {
		t.Errorf("threads = %+v, want none", pulls[0].Threads)
	}
	w.ready(pull)
	has(b.get(at), "Squash and merge")
	has(b.post(do, "do", "squash", "n", "2", "back", at), `class="badge merged"`, ">Revert<")
	b.post(do, "do", "revert", "n", "2", "back", at)
	has(b.get("/acme/shop/pull/3"), "Revert &#34;Name the price&#34;", "Reverts acme/shop#2")
}
