package github

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"forge/github/render/rendertest"
	"forge/pipeline"

	gh "github.com/google/go-github/v62/github"
)

// plain is a GitHub without a network that is asked for what is really asked.
type plain func(*http.Request) (*http.Response, error)

func (f plain) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/access_tokens") {
		return answer(201, `{"token":"ghs_`+strings.Repeat("t", 36)+`","expires_at":"2999-01-01T00:00:00Z"}`), nil
	}
	return f(r)
}

// Calls name the repository by its id, and follow GitHub to that id alone, with their
// method and what they say.
func TestCallsNameTheID(t *testing.T) {
	t.Parallel()
	repo, ctx := rendertest.Repo(), context.Background()
	for _, c := range []struct {
		name, to, refused string
	}{
		{"to itself", "https://api.github.com/repositories/99/issues/7/comments?x=1", ""},
		{"to another repository", "https://api.github.com/repositories/100/issues/7/comments", "repository 100"},
		{"to one whose id begins alike", "https://api.github.com/repositories/991", "repository 991"},
		{"without encryption", "http://api.github.com/repositories/99/issues/7/comments", "only https://api.github.com"},
		{"to another host", "https://evil.example.com/repositories/99/issues/7/comments", "evil.example.com"},
	} {
		var seen []string
		a := testApp(t, plain(func(r *http.Request) (*http.Response, error) {
			body := ""
			if r.Body != nil {
				text, _ := io.ReadAll(r.Body)
				body = strings.TrimSpace(string(text))
			}
			seen = append(seen, r.Method+" "+r.URL.RequestURI()+" "+body)
			if len(seen) == 1 {
				return answer(307, `{"message":"Moved Permanently"}`, "Location", c.to), nil
			}
			return answer(201, `{"id":5}`), nil
		}))
		s, err := a.session(repo)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.rest.Issues.CreateComment(ctx, repo.Owner, repo.Name, 7, &gh.IssueComment{Body: gh.String("hello")})
		if c.refused == "" {
			if err != nil || len(seen) != 2 || !strings.HasPrefix(seen[0], "POST /repositories/99/issues/7/comments {") ||
				seen[1] != strings.Replace(seen[0], "/comments ", "/comments?x=1 ", 1) {
				t.Errorf("%s: %v, calls %q", c.name, err, seen)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.refused) || len(seen) != 1 {
			t.Errorf("%s: %v, calls %q; want an error with %q", c.name, err, seen, c.refused)
		}
	}
}

// A run that knows the old name goes on all the same, also when that is another
// repository's by now.
func TestCallsAfterARename(t *testing.T) {
	t.Parallel()
	hub, a, repo, _ := world(t)
	issue, err := hub.As("octo").OpenIssue("octo/repo", "Title", "Body")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.As("octo").RenameRepository("octo/repo", "new"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	say := func(key string) {
		t.Helper()
		if err := a.Reply(ctx, pipeline.Notice{Repo: repo, Issue: issue}, "hello", key); err != nil {
			t.Fatal(err)
		}
	}
	say("one")
	if _, err := hub.AddRepo("octo", "repo", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.As("octo").OpenIssue("octo/repo", "Another", "Body"); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Install("octo/repo"); err != nil {
		t.Fatal(err)
	}
	say("two")
	for full, want := range map[string]int{"octo/new": 2, "octo/repo": 0} {
		if is, err := hub.Issue(full, issue); err != nil || len(is.Comments) != want {
			t.Errorf("%s: %+v, %v; want %d comments", full, is, err, want)
		}
	}
	found, ok, err := a.Locate(ctx, repo.ID)
	if want := (pipeline.Repo{ID: repo.ID, Owner: "octo", Name: "new", DefaultBranch: "main", CloneURL: hub.URL + "/octo/new.git",
		Installation: repo.Installation}); err != nil || !ok || found != want {
		t.Errorf("Locate = %+v, %v, %v; want %+v", found, ok, err, want)
	}
	if err := hub.As("octo").DeleteRepository("octo/new"); err != nil {
		t.Fatal(err)
	}
	if found, ok, err := a.Locate(ctx, repo.ID); ok || err != nil {
		t.Errorf("Locate of what was deleted = %+v, %v, %v", found, ok, err)
	}
}

// A token that ends in mid-run is replaced, once, for REST, GraphQL and git.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	hub, a, repo, pusher := world(t)
	ctx := context.Background()
	issue, err := hub.As("octo").OpenIssue("octo/repo", "Title", "Body")
	if err != nil {
		t.Fatal(err)
	}
	n := pipeline.Notice{Repo: repo, Issue: issue}
	for i, key := range []string{"one", "two", "three"} {
		if err := a.Reply(ctx, n, "hello", key); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if is, err := hub.Issue("octo/repo", issue); err != nil || len(is.Comments) != i+1 {
			t.Fatalf("%s: %d comments, %v", key, len(is.Comments), err)
		}
		if hub.EndTokens() == 0 {
			t.Fatal("no token was there to end")
		}
	}
	s, err := a.session(repo)
	if err != nil {
		t.Fatal(err)
	}
	var q struct{ Viewer struct{ Login string } }
	for range 2 {
		if err := s.gql.Query(ctx, &q, nil); err != nil {
			t.Errorf("GraphQL: %v", err)
		}
		hub.EndTokens()
	}
	old, err := a.Token(ctx, repo)
	if err != nil {
		t.Fatal(err)
	}
	hub.EndTokens()
	renewed, err := a.Renew(ctx, repo, old)
	if err != nil || renewed == old {
		t.Errorf("Renew = %.8s, %v; want another than %.8s", renewed, err, old)
	}
	if same, err := a.Renew(ctx, repo, old); err != nil || same != renewed {
		t.Errorf("Renew for who was slower = %.8s, %v; want the one that is there", same, err)
	}
	if _, err := pusher.git(repo, "ls-remote", repo.CloneURL); err != nil {
		t.Errorf("git with the renewed token: %v", err)
	}
}

// When no token is accepted, calls wait, each says why, and the log has it once.
func TestTokensAreRefused(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now, calls := time.Unix(1e9, 0), 0
	a := testApp(t, plain(func(*http.Request) (*http.Response, error) {
		calls++
		return answer(401, `{"message":"Bad credentials"}`), nil
	}), func(o *Options) {
		o.Log, o.Clock = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), func() time.Time { return now }
	})
	for i := range 6 {
		_, err := a.BranchHead(context.Background(), rendertest.Repo(), "main")
		if err == nil || !strings.Contains(err.Error(), "accepts no token") {
			t.Errorf("call %d: %v", i, err)
		}
		if i == 2 {
			now = now.Add(2 * time.Minute)
		}
	}
	if calls != 4 || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("%d calls, want two attempts of two; log:\n%s", calls, &log)
	}
}
