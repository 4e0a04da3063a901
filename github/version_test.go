package github

import (
	"strings"
	"testing"

	"forge/github/githubtest"
)

// Every call names the version that it was written for, those for tokens and those
// that sign people in included. Covers what is pinned by 2.12 of GitHub's semantics.
func TestEveryCallNamesTheVersion(t *testing.T) {
	t.Parallel()
	gh, app, repo, _ := world(t)
	work := func(app *App) {
		t.Helper()
		if _, err := app.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := app.Repo(t.Context(), repo.Installation, "octo", "repo"); err != nil {
			t.Fatal(err)
		}
		if head, err := app.BranchHead(t.Context(), repo, "main"); err != nil || head == "" {
			t.Fatalf("head of main %q, %v", head, err)
		}
		if _, err := app.BotUser(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work(app)
	tokens := 0
	for _, c := range gh.Calls() {
		if c.Operation == "apps/create-installation-access-token" {
			tokens++
		}
		if !strings.HasPrefix(c.Path, "/octo/") && c.Version != apiVersion {
			t.Errorf("%s %s names version %q", c.Method, c.Path, c.Version)
		}
	}
	if tokens == 0 {
		t.Error("no token was asked for")
	}
}

// A server that knows the older version alone is asked in that one, from the second
// call on at once.
func TestOlderServer(t *testing.T) {
	t.Parallel()
	gh, app, repo, _ := world(t, func(o *githubtest.Options) { o.OldAPI = true })
	head, err := app.BranchHead(t.Context(), repo, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := app.MakeBranch(t.Context(), repo, "forge/x", head); err != nil { // a call with a body
		t.Fatal(err)
	}
	refused := 0
	for _, c := range gh.Calls() {
		if c.Status == 400 {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d calls were refused for their version, want 1", refused)
	}
}
