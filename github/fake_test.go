package github

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const botID = 4242

// fake is a GitHub with just enough memory for one repository, octo/repo with the
// issue 7. What it serves is listed in routes.
type fake struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	seq    int64
	log    []string // "POST /repos/octo/repo/pulls"
	tokens []string // bodies of the token requests
	// fault is asked for each API call, before and after its effect.
	fault func(n int, method, path string, after bool) (status int, header map[string]string, body string)
	calls int

	comments []*fakeComment
	pull     map[string]any
	reviews  []map[string]any
	threads  []*fakeThread
	checks   []map[string]any
	notes    int      // annotations of checks that were sent
	bad      []string // paths of review comments that the fake refuses with 422
}

type fakeComment struct {
	ID     int64
	Issue  int
	User   int64
	Body   string
	Edits  int
	Review bool
}

type threadComment struct {
	Body, URL string
	Own       bool
}

type fakeThread struct {
	ID       string
	Comments []threadComment
	IDs      []int64
	Resolved bool
	Path     string
	Line     int
	Start    int
}

var testKey = sync.OnceValue(func() []byte {
	k, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
})

// byName names rendertest's repository in a path by its name, which is easier to read.
func byName(path string) string {
	return strings.Replace(path, "/repositories/99", "/repos/octo/repo", 1)
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, seq: 100}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) app(t *testing.T, change ...func(*Options)) *App {
	t.Helper()
	o := Options{BaseURL: f.URL, AppID: 1, PrivateKey: testKey(), Timeout: 5 * time.Second, Base: f.Client().Transport,
		Sleep: func(ctx context.Context, d time.Duration) error { return ctx.Err() }}
	for _, c := range change {
		c(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (f *fake) id() int64 { f.seq++; return f.seq }

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := byName(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v3"), "/api"))
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(path, "/access_tokens") {
		f.tokens = append(f.tokens, string(body))
	} else {
		f.calls++
		f.log = append(f.log, r.Method+" "+path)
	}
	fail := func(after bool) bool {
		if f.fault == nil {
			return false
		}
		status, header, text := f.fault(f.calls, r.Method, path, after)
		if status == 0 {
			return false
		}
		if status < 0 { // the connection breaks
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
			return true
		}
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		io.WriteString(w, text)
		return true
	}
	if fail(false) {
		return
	}
	rec := httptest.NewRecorder()
	f.route(rec, r, path, body)
	if fail(true) {
		return
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func notFound(w http.ResponseWriter) { reply(w, 404, map[string]any{"message": "Not Found"}) }

func user(id int64) map[string]any {
	if id == botID {
		return map[string]any{"id": id, "login": "forge-test[bot]", "type": "Bot"}
	}
	return map[string]any{"id": id, "login": "alice", "type": "User"}
}

var route = regexp.MustCompile(`^/repos/octo/repo/(.*)$`)

func (f *fake) route(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	var in map[string]any
	json.Unmarshal(body, &in)
	switch {
	case strings.HasSuffix(path, "/access_tokens"):
		reply(w, 201, map[string]any{"token": "ghs_" + strings.Repeat("x", 36), "expires_at": time.Now().Add(time.Hour)})
		return
	case path == "/app":
		reply(w, 200, map[string]any{"id": 1, "slug": "forge-test"})
		return
	case path == "/app/installations":
		reply(w, 200, []any{map[string]any{"id": 5}})
		return
	case path == "/users/forge-test[bot]":
		reply(w, 200, user(botID))
		return
	case path == "/graphql":
		f.graphql(w, body)
		return
	}
	m := route.FindStringSubmatch(path)
	if m == nil {
		notFound(w)
		return
	}
	p := strings.Split(m[1], "/")
	switch key := r.Method + " " + p[0]; {
	case p[0] == "issues":
		f.issueRoute(w, r, p[1:], in)
	case key == "POST pulls" && len(p) == 1:
		if f.pull != nil {
			reply(w, 422, map[string]any{"message": "Validation Failed",
				"errors": []any{map[string]any{"message": "A pull request already exists for octo:" + in["head"].(string) + "."}}})
			return
		}
		f.pull = map[string]any{"number": 8, "node_id": "PR_8", "html_url": f.URL + "/octo/repo/pull/8", "draft": in["draft"], "title": in["title"],
			"body": in["body"], "state": "open", "head": map[string]any{"ref": in["head"]}}
		reply(w, 201, f.pull)
	case key == "GET pulls" && len(p) == 1:
		list := []any{}
		if f.pull != nil {
			list = append(list, f.pull)
		}
		reply(w, 200, list)
	case key == "GET pulls" && len(p) == 2:
		reply(w, 200, f.pull)
	case key == "PATCH pulls":
		for k, v := range in {
			f.pull[k] = v
		}
		reply(w, 200, f.pull)
	case p[0] == "pulls":
		f.reviewRoute(w, r, p[1:], in)
	case key == "POST check-runs":
		f.noted(in)
		in["id"], in["html_url"] = f.id(), f.URL+"/check"
		f.checks = append(f.checks, in)
		reply(w, 201, in)
	case key == "PATCH check-runs":
		f.noted(in)
		for _, c := range f.checks {
			if fmt.Sprint(c["id"]) == p[1] {
				for k, v := range in {
					c[k] = v
				}
				reply(w, 200, c)
			}
		}
	case key == "GET commits":
		list := []any{}
		for _, c := range f.checks {
			if c["head_sha"] == p[1] {
				list = append(list, c)
			}
		}
		reply(w, 200, map[string]any{"total_count": len(list), "check_runs": list})
	default:
		notFound(w)
	}
}

func (f *fake) noted(in map[string]any) {
	if out, ok := in["output"].(map[string]any); ok {
		if list, ok := out["annotations"].([]any); ok {
			f.notes += len(list)
		}
	}
}

func (f *fake) commentJSON(c *fakeComment) map[string]any {
	return map[string]any{"id": c.ID, "node_id": fmt.Sprint("IC_", c.ID), "body": c.Body, "user": user(c.User),
		"html_url":  fmt.Sprintf("%s/octo/repo/issues/%d#issuecomment-%d", f.URL, c.Issue, c.ID),
		"issue_url": fmt.Sprintf("%s/api/v3/repos/octo/repo/issues/%d", f.URL, c.Issue)}
}

// issueRoute serves issues/N/comments and issues/comments/ID.
func (f *fake) issueRoute(w http.ResponseWriter, r *http.Request, p []string, in map[string]any) {
	if p[0] == "comments" {
		for _, c := range f.comments {
			if fmt.Sprint(c.ID) == p[1] {
				if r.Method == "PATCH" {
					c.Body, c.Edits = in["body"].(string), c.Edits+1
				}
				reply(w, 200, f.commentJSON(c))
				return
			}
		}
		notFound(w)
		return
	}
	n, _ := strconv.Atoi(p[0])
	if r.Method == "POST" {
		c := &fakeComment{ID: f.id(), Issue: n, User: botID, Body: in["body"].(string)}
		f.comments = append(f.comments, c)
		reply(w, 201, f.commentJSON(c))
		return
	}
	list := []any{}
	for _, c := range f.comments {
		if c.Issue == n {
			list = append(list, f.commentJSON(c))
		}
	}
	reply(w, 200, list)
}

// reviewRoute serves pulls/N/reviews, pulls/N/comments/ID/replies and pulls/comments/ID.
func (f *fake) reviewRoute(w http.ResponseWriter, r *http.Request, p []string, in map[string]any) {
	switch {
	case len(p) == 2 && p[1] == "reviews" && r.Method == "GET":
		reply(w, 200, f.reviews)
	case len(p) == 2 && p[1] == "reviews":
		list, _ := in["comments"].([]any)
		for _, c := range list {
			for _, bad := range f.bad {
				if c.(map[string]any)["path"] == bad {
					reply(w, 422, map[string]any{"message": "Unprocessable Entity", "errors": []string{"Pull request review thread line must be part of the diff"}})
					return
				}
			}
		}
		for _, c := range list {
			m := c.(map[string]any)
			id := f.id()
			start, _ := m["start_line"].(float64)
			f.threads = append(f.threads, &fakeThread{ID: fmt.Sprint("PRRT_", id), Path: m["path"].(string), Line: int(m["line"].(float64)), Start: int(start),
				IDs: []int64{id}, Comments: []threadComment{{m["body"].(string), fmt.Sprintf("%s/octo/repo/pull/8#discussion_r%d", f.URL, id), true}}})
		}
		rev := map[string]any{"id": f.id(), "body": in["body"], "event": in["event"], "commit_id": in["commit_id"], "user": user(botID), "comments": len(list)}
		f.reviews = append(f.reviews, rev)
		reply(w, 200, rev)
	case len(p) == 2 && p[0] == "comments":
		for _, t := range f.threads {
			for i, id := range t.IDs {
				if fmt.Sprint(id) == p[1] {
					out := map[string]any{"id": id, "body": t.Comments[i].Body, "pull_request_url": f.URL + "/api/v3/repos/octo/repo/pulls/8"}
					if i > 0 {
						out["in_reply_to_id"] = t.IDs[0]
					}
					reply(w, 200, out)
					return
				}
			}
		}
		notFound(w)
	case len(p) == 2 && p[1] == "comments" && r.Method == "POST":
		for _, t := range f.threads {
			if in["in_reply_to"] == float64(t.IDs[0]) {
				id := f.id()
				t.IDs = append(t.IDs, id)
				t.Comments = append(t.Comments, threadComment{in["body"].(string), "", true})
				reply(w, 201, map[string]any{"id": id})
				return
			}
		}
		notFound(w)
	default:
		notFound(w)
	}
}

var mutation = regexp.MustCompile(`(\w+): ?(\w+)\(input: ?\$(\w+)\)|(markPullRequestReadyForReview)\(input: ?\$(\w+)\)`)

func (f *fake) graphql(w http.ResponseWriter, body []byte) {
	var in struct {
		Query     string
		Variables map[string]json.RawMessage
	}
	json.NewDecoder(bytes.NewReader(body)).Decode(&in)
	if !strings.HasPrefix(in.Query, "mutation") {
		nodes := []any{}
		for _, t := range f.threads {
			conv := func(list []threadComment) []any {
				out := []any{}
				for i, c := range list {
					id := int64(0)
					if i < len(t.IDs) {
						id = t.IDs[i]
					}
					out = append(out, map[string]any{"fullDatabaseId": fmt.Sprint(id), "body": c.Body, "url": c.URL, "viewerDidAuthor": c.Own})
				}
				return out
			}
			nodes = append(nodes, map[string]any{"id": t.ID, "isResolved": t.Resolved, "viewerCanResolve": true,
				"first": map[string]any{"nodes": conv(t.Comments[:1])}, "last": map[string]any{"nodes": conv(t.Comments)}})
		}
		reply(w, 200, map[string]any{"data": map[string]any{"repository": map[string]any{"pullRequest": map[string]any{"reviewThreads": map[string]any{
			"nodes": nodes, "pageInfo": map[string]any{"hasNextPage": false, "endCursor": ""}}}}}})
		return
	}
	data := map[string]any{}
	for _, m := range mutation.FindAllStringSubmatch(in.Query, -1) {
		alias, name, variable := m[1], m[2], m[3]
		if m[4] != "" {
			alias, name, variable = m[4], m[4], m[5]
		}
		var v struct{ ThreadID, PullRequestReviewThreadID, Body, PullRequestID string }
		json.Unmarshal(in.Variables[variable], &v)
		for _, t := range f.threads {
			switch {
			case name == "resolveReviewThread" && t.ID == v.ThreadID:
				t.Resolved = true
			case name == "unresolveReviewThread" && t.ID == v.ThreadID:
				t.Resolved = false
			case name == "addPullRequestReviewThreadReply" && t.ID == v.PullRequestReviewThreadID:
				t.IDs, t.Comments = append(t.IDs, f.id()), append(t.Comments, threadComment{v.Body, "", true})
			}
		}
		if name == "markPullRequestReadyForReview" {
			if f.pull["draft"] == false {
				reply(w, 200, map[string]any{"errors": []any{map[string]any{"type": "UNPROCESSABLE", "message": `Pull request #8 is already "ready for review"`}}})
				return
			}
			f.pull["draft"] = false
			data[alias] = map[string]any{"pullRequest": map[string]any{"isDraft": false}}
			continue
		}
		data[alias] = map[string]any{"clientMutationId": nil}
	}
	reply(w, 200, map[string]any{"data": data})
}
