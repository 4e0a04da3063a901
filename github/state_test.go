package github

import (
	"errors"
	"strings"
	"testing"

	"forge/pipeline"
)

// Covers reliability 17: a repository that is archived and an installation that is
// suspended end the attempt with a word on who can mend it, and both work again after.
func TestStatesOfARepository(t *testing.T) {
	t.Parallel()
	gh, a, repo, _ := world(t)
	issue, err := gh.As("octo").OpenIssue(repo.FullName(), "A title", "and a body")
	if err != nil {
		t.Fatal(err)
	}
	n := pipeline.Notice{Repo: repo, Issue: issue}
	reply := func(key string) error { return a.Reply(t.Context(), n, "An answer.", key) }
	read := func() error { _, _, err := a.Issue(t.Context(), repo, issue); return err }
	refused := func(what string, err error, words ...string) {
		t.Helper()
		var fault *pipeline.Fault
		if !errors.As(err, &fault) || !fault.Final {
			t.Fatalf("%s: %v, want a fault that is final", what, err)
		}
		for _, w := range words {
			if !strings.Contains(fault.Message, w) {
				t.Errorf("%s: %q lacks %q", what, fault.Message, w)
			}
		}
	}
	works := func(what string, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	works("archive", gh.Archive(repo.FullName(), true))
	refused("a comment in an archived repository", reply("one"), "archived", "unarchive it")
	works("an archived repository is read", read())
	works("unarchived", gh.Archive(repo.FullName(), false), reply("one"))

	works("suspend", gh.Suspend("octo", true))
	if a, err = New(Options{BaseURL: gh.URL, AppID: gh.AppID, PrivateKey: gh.PrivateKey}); err != nil { // the next token is asked for
		t.Fatal(err)
	}
	refused("a suspended installation", read(), "suspended", "an owner can lift that")
	works("lifted", gh.Suspend("octo", false), read(), reply("two"))
}
