package githubtest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
)

type browser struct {
	w      *world
	client *http.Client
}

func (b browser) get(path string) string {
	b.w.t.Helper()
	resp, err := b.client.Get(b.w.s.URL + path)
	b.w.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.w.must(err)
	if resp.StatusCode != 200 {
		b.w.t.Errorf("GET %s = %d", path, resp.StatusCode)
	}
	return string(text)
}

// post sends a form from this site and returns the page that follows.
func (b browser) post(path string, kv ...string) string {
	b.w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		form.Set(kv[i], kv[i+1])
	}
	req, err := http.NewRequest("POST", b.w.s.URL+path, strings.NewReader(form.Encode()))
	b.w.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.w.s.URL)
	resp, err := b.client.Do(req)
	b.w.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.w.must(err)
	return string(text)
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jar, err := cookiejar.New(nil)
	w.must(err)
	b := browser{w, &http.Client{Jar: jar}}
	has := func(page string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("the page lacks %q:\n%.3000s", text, page)
			}
		}
	}
	const do = "/acme/shop/-/do"
	b.post("/-/user", "login", "alice", "back", "/")
	has(b.get("/"), `<a href="/acme/shop">`, "the App is installed", "<option selected>alice</option>")
	b.post(do, "do", "open", "title", "<b>Price</b>", "body", "Do:\n- [ ] one\n- [x] two\n", "back", "/acme/shop")
	has(b.get("/acme/shop"), "&lt;b&gt;Price&lt;/b&gt;")
	has(b.post(do, "do", "label", "n", "1", "label", "forge", "back", "/acme/shop/issues/1"), `<span class="label">forge`)
	has(b.post(do, "do", "comment", "n", "1", "body",
		"| a | b |\n|---|---|\n| 1 | `x|y` |\n\n<details><summary>More</summary>\n\n**bold** <script>alert(1)</script>\n\n</details>", "back",
		"/acme/shop/issues/1"),
		"<table>", "<th>a</th>", "<details>", "<summary>More</summary>", "<strong>bold</strong>", "&lt;script&gt;")
	b.post(do, "do", "tick-body", "n", "1", "box", "0", "back", "/acme/shop/issues/1")
	if i, err := w.s.Issue(w.repo, 1); err != nil || !strings.Contains(i.Body, "- [x] one") || i.Labels[0] != "forge" {
		t.Errorf("issue = %+v, %v", i, err)
	}
	c, _, err := w.gh.Issues.CreateComment(w.ctx, "acme", "shop", 1, &github.IssueComment{Body: github.String("Choose:\n- [ ] continue\n- [ ] cancel")})
	w.must(err)
	b.post(do, "do", "tick", "id", stampID(c.GetID()), "box", "1", "back", "/acme/shop/issues/1")
	w.settle()
	if e := w.hook.last("issue_comment.edited"); e == nil || !strings.Contains(e["comment"].(map[string]any)["body"].(string), "[x] cancel") ||
		e["sender"].(map[string]any)["login"] != "alice" {
		t.Errorf("the tick came as %v", e)
	}

	pr := w.draft()
	_, _, err = w.gh.PullRequests.CreateReview(w.ctx, "acme", "shop", pr.GetNumber(), &github.PullRequestReviewRequest{
		Event: github.String("COMMENT"), Body: github.String("See below."),
		Comments: []*github.DraftReviewComment{{Path: github.String("shop.go"), Line: github.Int(6), Body: github.String("```suggestion\n\treturn price + 0\n```")}},
	})
	w.must(err)
	pulls, err := w.s.Pulls(w.repo)
	w.must(err)
	id := stampID(pulls[0].Threads[0].Comments[0].ID)
	at := "/acme/shop/pull/2"
	has(b.get(at), "Commit suggestion", "Resolve conversation", "return price", `class="badge draft"`)
	has(b.post(do, "do", "reply", "id", id, "body", "Why?", "back", at), "Why?")
	has(b.post(do, "do", "resolve", "id", id, "back", at), "Unresolve conversation")
	b.post(do, "do", "resolve", "id", id, "back", at)
	has(b.post(do, "do", "suggest", "id", id, "back", at), "outdated")
	has(b.post(do, "do", "review", "n", "2", "event", "APPROVE", "body", "Good.", "back", at), "reviewed: approved")
	has(b.post(do, "do", "merge", "n", "2", "back", at), "it is still a draft")
	has(b.post(do, "do", "close", "n", "2", "back", at), `class="badge closed"`, "Reopen")
	has(b.get("/acme/shop/blob/main/shop.go"), "func Price")
	pulls, _ = w.s.Pulls(w.repo)
	has(b.get("/acme/shop/commit/"+pulls[0].Head), "Co-authored-by: forge[bot]")
	has(b.get("/avatars/alice"), "<svg")
	has(b.get("/style.css"), "prefers-color-scheme")

	b.post("/-/user", "login", "forge-owner", "back", "//evil.example")
	has(b.post(do, "do", "label", "n", "1", "label", "x", "back", "/acme/shop/issues/1"), "this needs the role triage")
	has(b.post(do, "do", "explode", "back", "/acme/shop"), "there is no button")
}

// A page of another site must not be able to click here.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, set := range map[string]func(*http.Request){
		"origin":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"fetch metadata": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"host":           func(r *http.Request) { r.Host = "evil.example" },
	} {
		req, err := http.NewRequest("POST", w.s.URL+"/acme/shop/-/do", strings.NewReader("do=open&title=x"))
		w.must(err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		set(req)
		resp, err := http.DefaultClient.Do(req)
		w.must(err)
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s: %d, want 403", name, resp.StatusCode)
		}
	}
	if _, err := w.s.Issue(w.repo, 1); err == nil {
		t.Error("an issue was opened")
	}
}
