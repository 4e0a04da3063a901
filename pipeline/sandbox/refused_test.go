package sandbox

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// A token that has ended is replaced, and a repository that was renamed is found, once for
// each call of git. Who is asked and knows nothing else changes nothing.
func TestRemoteRefuses(t *testing.T) {
	backend := filepath.Join(gitIn(t, "/", nil, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git-http-backend: apt-get install git")
	}
	f := newFixture(t, sources)
	gitIn(t, f.remote, nil, "config", "http.receivepack", "true")
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.remote), "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"PATH"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pass, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/old.git"):
			http.Redirect(w, r, "/remote.git"+strings.TrimPrefix(r.URL.Path, "/old.git")+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
		case strings.HasPrefix(r.URL.Path, "/taken.git"):
			http.Error(w, "no", http.StatusForbidden)
		case pass != "good":
			http.Error(w, "who?", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	gone := &pipeline.Fault{Class: pipeline.FaultGitHub, Message: "it is gone", Final: true}
	for _, c := range []struct {
		name, path, token, address, renewed string
		err                                 error
		asked                               int
		want                                string
	}{
		{name: "all is well", path: "/remote.git", token: "good"},
		{name: "the token has ended", path: "/remote.git", token: "ended", address: "/remote.git", renewed: "good", asked: 1},
		{name: "renamed", path: "/old.git", token: "good", address: "/remote.git", renewed: "good", asked: 1},
		{name: "renamed, and the token has ended", path: "/old.git", token: "ended", address: "/remote.git", renewed: "good", asked: 1},
		{name: "the name is another's", path: "/taken.git", token: "good", address: "/remote.git", renewed: "good", asked: 1},
		{name: "the new token is refused, too", path: "/remote.git", token: "ended", address: "/remote.git", renewed: "bad", asked: 1, want: "token was refused"},
		{name: "nothing else is known", path: "/taken.git", token: "good", address: "/taken.git", renewed: "good", asked: 1, want: "token was refused"},
		{name: "nobody can say", path: "/old.git", token: "good", err: errors.New("away"), asked: 1, want: "redirects"},
		{name: "it is gone", path: "/old.git", token: "good", err: gone, asked: 1, want: "it is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := NewGateway(GatewayOptions{Dir: openDir(t), Hosts: []string{server.URL}})
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			g.OnRefused(func(_ context.Context, repo pipeline.Repo, token string) (pipeline.Repo, string, error) {
				asked++
				repo.CloneURL = server.URL + c.address
				return repo, c.renewed, c.err
			})
			repo := f.repo
			repo.CloneURL = server.URL + c.path
			err = g.Fetch(t.Context(), repo, c.token, f.head)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || asked != c.asked {
					t.Fatalf("fetch: %v, asked %d times; want %q", err, asked, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sha, err := g.Commit(t.Context(), repo, change(f.head, "x", c.name))
			if err != nil {
				t.Fatal(err)
			}
			branch := "forge/" + strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), "'", "")
			if err := g.Push(t.Context(), repo, c.token, workspace.PushOptions{Branch: branch, SHA: sha}); err != nil {
				t.Fatal(err)
			}
			heads, _, err := g.Heads(t.Context(), repo, c.token, branch)
			if err != nil || heads[branch] != sha {
				t.Errorf("the branch is at %v, %v; want %s", heads, err, sha)
			}
			if err := g.Delete(t.Context(), repo, c.token, branch, sha); err != nil {
				t.Error(err)
			}
			if want := 4 * c.asked; asked != want {
				t.Errorf("asked %d times, want %d", asked, want)
			}
		})
	}
}
