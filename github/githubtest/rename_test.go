package githubtest

import (
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ask sends a request and follows no redirect.
func (w *world) ask(method, path, token, body string) (status int, location string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.s.URL+path, strings.NewReader(body))
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	w.must(err)
	defer resp.Body.Close()
	return resp.StatusCode, strings.TrimPrefix(resp.Header.Get("Location"), w.s.URL)
}

func TestRenameRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue()
	owner, id := w.s.As("acme"), w.s.repos["acme/shop"].id
	if _, err := w.al.RenameRepository(w.repo, "store"); err == nil {
		t.Error("somebody who may write renamed the repository: it takes an admin")
	}
	if _, err := owner.RenameRepository(w.repo, "not ok"); err == nil {
		t.Error("a name with a space was taken")
	}
	full, err := owner.RenameRepository(w.repo, "store")
	if err != nil || full != "acme/store" {
		t.Fatalf("rename = %q, %v", full, err)
	}
	tok, by := w.token(), "/api/v3/repositories/"+strconv.FormatInt(id, 10)
	for _, c := range []struct {
		method, path, body, location string
		status                       int
	}{
		{"GET", "/api/v3/repos/acme/shop", "", by, 301},
		{"GET", "/api/v3/repos/acme/shop/issues?state=open", "", by + "/issues?state=open", 301},
		{"POST", "/api/v3/repos/acme/shop/issues/1/comments", `{"body":"x"}`, by + "/issues/1/comments", 307},
		{"GET", "/api/v3/repos/acme/store", "", "", 200},
		{"GET", by, "", "", 200},
		{"GET", by + "/issues/1", "", "", 200},
		{"POST", by + "/issues/1/comments", `{"body":"x"}`, "", 201},
		{"GET", "/api/v3/repositories/1", "", "", 404},
	} {
		if status, to := w.ask(c.method, c.path, tok, c.body); status != c.status || to != c.location {
			t.Errorf("%s %s = %d to %q, want %d to %q", c.method, c.path, status, to, c.status, c.location)
		}
	}
	if got := w.s.Mutations()["issues/create-comment"]; got != 1 {
		t.Errorf("%d comments were made, want the one that was not sent on", got)
	}
	if _, text := w.do("GET", "/api/v3/repos/acme/shop/issues/1", tok, ""); !strings.Contains(text, `"number":1`) {
		t.Errorf("issue %d by the old name, redirects followed: %s", n, text)
	}
	query := `{"query":"{repository(owner:\"acme\",name:\"shop\"){nameWithOwner}}"}`
	if _, text := w.do("POST", "/api/graphql", tok, query); !strings.Contains(text, "acme/store") {
		t.Errorf("the old name in GraphQL: %s", text)
	}
	lsRemote := func() string {
		out, err := exec.Command("git", "ls-remote", strings.Replace(w.s.URL, "http://", "http://x:"+tok+"@", 1)+"/acme/shop.git", "HEAD").CombinedOutput()
		if err != nil {
			return "error: " + string(out)
		}
		return string(out)
	}
	before := lsRemote()
	if !strings.Contains(before, "HEAD") {
		t.Errorf("git by the old name: %s", before)
	}
	_, err = w.s.AddRepo("acme", "shop", nil)
	w.must(err)
	if status, to := w.ask("GET", "/api/v3/repos/acme/shop", w.s.As("alice").Token, ""); status != 200 || to != "" {
		t.Errorf("the name was taken again, and leads to %d %q", status, to)
	}
	if status, _ := w.ask("GET", "/api/v3/repos/acme/shop/issues/1", tok, ""); status != 404 {
		t.Errorf("issue 1 of the new repository = %d", status)
	}
	w.must(w.s.SetPrivate("acme/shop", true))
	if after := lsRemote(); strings.Contains(after, "HEAD") {
		t.Errorf("git by the name that was taken again, with a token of the old repository: %s", after)
	}
	if _, text := w.do("POST", "/api/graphql", tok, query); !strings.Contains(text, "NOT_FOUND") {
		t.Errorf("the name that was taken again in GraphQL: %s", text)
	}
}

// What GitHub sends of a repository that goes elsewhere says its new name, with the id
// that it always had.
func TestMovedRepositoryIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Manifest = []byte(strings.Replace(string(o.Manifest), "  - issues #", "  - repository\n  - issues #", 1))
	})
	n, owner, id := w.issue(), w.s.As("acme"), w.s.repos["acme/shop"].id
	w.settle()
	w.hook.names()
	tell := func(repo string, want ...string) {
		t.Helper()
		_, err := w.al.Comment(repo, n, "hello")
		w.must(err)
		w.settle()
		w.hook.mu.Lock()
		for _, e := range w.hook.events {
			if r, ok := e.body["repository"].(map[string]any); ok && (r["full_name"] != repo || int64(r["id"].(float64)) != id) {
				t.Errorf("%v says %v with id %v, want %s with %d", e, r["full_name"], r["id"], repo, id)
			}
		}
		w.hook.mu.Unlock()
		if got := w.hook.names(); !slices.Equal(got, want) {
			t.Errorf("%s: told %v, want %v", repo, got, want)
		}
	}
	_, err := owner.RenameRepository(w.repo, "store")
	w.must(err)
	tell("acme/store", "repository.renamed", "issue_comment.created")
	_, err = w.s.AddRepo("bob", "other", nil)
	w.must(err)
	_, err = w.s.Install("bob/other")
	w.must(err)
	w.settle()
	w.hook.names()
	_, err = owner.TransferRepository("acme/store", "bob", true)
	w.must(err)
	tell("bob/store", "installation_repositories.removed", "installation_repositories.added", "repository.transferred", "issue_comment.created")
	w.must(w.s.As("bob").DeleteRepository("bob/store"))
	w.settle()
	if got := w.hook.names(); !slices.Equal(got, []string{"repository.deleted", "installation_repositories.removed"}) {
		t.Errorf("deleted: told %v", got)
	}
	if status, _ := w.ask("GET", "/api/v3/repositories/"+strconv.FormatInt(id, 10), w.al.Token, ""); status != 404 {
		t.Errorf("the deleted repository = %d", status)
	}
}
