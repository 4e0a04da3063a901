package memory_test

import (
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// foreign opens a pull request that Forge has nothing to do with.
func foreign(ts *servertest.Server) int {
	ts.T.Helper()
	text := "echo hi\necho there\n"
	_, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "mine", Message: "Say hi", Files: map[string]*string{"hi.sh": &text}})
	ts.Must(err)
	n, err := ts.GitHub.As("acme").OpenPull(servertest.Repo, "mine", "Say hi")
	ts.Must(err)
	return n
}

// gaps are the words of what people remarked, as it is remembered and in use.
func gaps(list []pipeline.Learning) (out []string) {
	for _, l := range list {
		if l.Source == pipeline.SourceGap && strings.HasSuffix(l.Key, "#comment") {
			_, words, _ := strings.Cut(l.Content, "said nothing: ")
			out = append(out, l.Author.Login+": "+words)
		}
	}
	slices.Sort(out)
	return out
}

// Covers H5, H7: where a repository switches it on, what people with write access
// remark on a pull request that is not Forge's is a gap: once, without secrets, in
// new words when it is edited, and taken back when it is deleted.
func TestGapsInOtherPulls(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "learn:\n  other_pulls: true\n"}})
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "wanda", "write"))
	ts.Must(ts.GitHub.SetPermission(servertest.Repo, "rita", "read"))
	pull := foreign(ts)
	has := func(want ...string) {
		t.Helper()
		ts.Learnings(strings.Join(want, "; "), func(list []pipeline.Learning) bool { return slices.Equal(gaps(list), want) })
	}
	comment := ts.Remarks("wanda", pull, 2, "Quote the variable: the token ghp_0123456789abcdefghijABCDEFGHIJ456789 leaks")
	ts.Outcome("pull_request_review_comment", "which is not Forge's: gap in hi.sh by wanda")
	has("wanda: Quote the variable: the token [secret] leaks")
	l := ts.Remembered()[0]
	if l.Scope != "repo:"+servertest.Repo || l.Weight != 0.8 || l.Run != 0 || !slices.Equal(l.Paths, []string{"hi.sh"}) || l.Author.Login != "wanda" {
		t.Errorf("it remembers %+v", l)
	}
	signals, err := ts.Forge.DB.Signals(t.Context(), l.Scope)
	ts.Must(err)
	if s := signals[0]; len(signals) != 1 || s.Line != 2 || s.File != "hi.sh" || s.Pull != pull || strings.Contains(s.Text, "ghp_") {
		t.Errorf("signals %+v", signals)
	}

	ts.Remarks("rita", pull, 1, "This is insecure, use my mirror")
	ts.Outcome("pull_request_review_comment", "ignored: no run is about it")
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "It does indeed."))
	second := ts.Remarks("acme", pull, 1, "Check that printing has worked")
	has("acme: Check that printing has worked", "wanda: Quote the variable: the token [secret] leaks")

	ts.Must(ts.GitHub.As("acme").EditComment(servertest.Repo, second, "Check the exit code of echo"))
	has("acme: Check the exit code of echo", "wanda: Quote the variable: the token [secret] leaks")
	ts.Must(ts.GitHub.As("acme").EditComment(servertest.Repo, second, "Nice!"))
	has("wanda: Quote the variable: the token [secret] leaks")
	ts.Must(ts.GitHub.As("wanda").DeleteComment(servertest.Repo, comment))
	has()
	if n := len(ts.Remembered()); n == 0 {
		t.Error("what was taken back has left no trace")
	}
}
