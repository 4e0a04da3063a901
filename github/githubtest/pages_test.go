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

func TestMarkdown(t *testing.T) {
	box := func(n int, ticked bool) string { return map[bool]string{true: "[X]", false: "[_]"}[ticked] }
	for _, tc := range []struct{ in, want string }{
		{"# A *b* `c<d`", "<h1>A <em>b</em> <code>c&lt;d</code></h1>\n"},
		{"a <img src=x onerror=alert(1)>", "<p>a &lt;img src=x onerror=alert(1)&gt;</p>\n"},
		{"[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"},
		{"[x](https://a.b/?q=1&r=2)", "<p><a href=\"https://a.b/?q=1&amp;r=2\">x</a></p>\n"},
		{"[x](https://a.b/\"onclick=alert(1))", "<p><a href=\"https://a.b/&#34;onclick=alert(1\">x</a>)</p>\n"},
		{"<details onclick=x><summary>s</summary>", "<details><summary>s</summary>\n"},
		{"- [ ] a\n- [x] b\n  more\n- c", "<ul>\n<li class=\"task\">[_] a</li>\n<li class=\"task\">[X] b more</li>\n<li>c</li>\n</ul>\n"},
		{"````suggestion\n```\n````", "<pre class=\"code suggestion\"><code>```\n</code></pre>\n"},
		{"x <!-- forge:key -->", "<p>x </p>\n"},
		{"> [!TIP]\n> a", "<blockquote class=\"alert tip\">\n<strong>Tip</strong>\n<p>a</p>\n</blockquote>\n"},
		{"> a\n> b", "<blockquote>\n<p>a\nb</p>\n</blockquote>\n"},
	} {
		if got := string(markdown(tc.in, box)); got != tc.want {
			t.Errorf("markdown(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// Nothing of a text may become a tag but the few that are allowed.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- [ ] <b>\n```x\n<script>\n```\n|a|\n|-|\n> <details open>")
	f.Add("`a` **b** [c](https://d) <summary onclick=e>")
	f.Fuzz(func(t *testing.T, text string) {
		out := string(markdown(text, func(int, bool) string { return "" }))
		for _, bad := range []string{"<script", "<img", "<iframe", "<a onclick", "<details o ", "href=\"javascript"} {
			if strings.Contains(strings.ToLower(out), bad) {
				t.Errorf("markdown(%q) has %q", text, bad)
			}
		}
	})
}
