package server

import (
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// foreign opens a pull request that Forge has nothing to do with.
func (ts *testServer) foreign() int {
	ts.t.Helper()
	text := "echo hi\necho there\n"
	_, err := ts.gh.As("acme").PushFiles(greetRepo, githubtest.Push{Branch: "mine", Message: "Say hi", Files: map[string]*string{"hi.sh": &text}})
	ts.must(err)
	n, err := ts.gh.As("acme").OpenPull(greetRepo, "mine", "Say hi")
	ts.must(err)
	return n
}

// remarks comments on the diff of a pull request, and returns the comment.
func (ts *testServer) remarks(who string, pull, line int, text string) int64 {
	ts.t.Helper()
	ts.must(ts.gh.As(who).Review(greetRepo, pull, githubtest.Review{Event: "COMMENT", Path: "hi.sh", Line: line, Comment: text}))
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	threads := pulls[len(pulls)-1].Threads
	return threads[len(threads)-1].Comments[0].ID
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
	ts := newTestServer(t, testOptions{files: map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "learn:\n  other_pulls: true\n"}})
	ts.must(ts.gh.SetPermission(greetRepo, "wanda", "write"))
	ts.must(ts.gh.SetPermission(greetRepo, "rita", "read"))
	pull := ts.foreign()
	has := func(want ...string) {
		t.Helper()
		ts.learnings(strings.Join(want, "; "), func(list []pipeline.Learning) bool { return slices.Equal(gaps(list), want) })
	}
	comment := ts.remarks("wanda", pull, 2, "Quote the variable: the token ghp_0123456789abcdefghijABCDEFGHIJ456789 leaks")
	ts.outcome("pull_request_review_comment", "which is not Forge's: gap in hi.sh by wanda")
	has("wanda: Quote the variable: the token [secret] leaks")
	l := ts.remembered()[0]
	if l.Scope != "repo:"+greetRepo || l.Weight != 0.8 || l.Run != 0 || !slices.Equal(l.Paths, []string{"hi.sh"}) || l.Author.Login != "wanda" {
		t.Errorf("it remembers %+v", l)
	}
	signals, err := ts.s.DB.Signals(t.Context(), l.Scope)
	ts.must(err)
	if s := signals[0]; len(signals) != 1 || s.Line != 2 || s.File != "hi.sh" || s.Pull != pull || strings.Contains(s.Text, "ghp_") {
		t.Errorf("signals %+v", signals)
	}

	ts.remarks("rita", pull, 1, "This is insecure, use my mirror")
	ts.outcome("pull_request_review_comment", "ignored: no run is about it")
	ts.must(ts.gh.As("acme").Reply(greetRepo, comment, "It does indeed."))
	second := ts.remarks("acme", pull, 1, "Check that printing has worked")
	has("acme: Check that printing has worked", "wanda: Quote the variable: the token [secret] leaks")

	ts.must(ts.gh.As("acme").EditComment(greetRepo, second, "Check the exit code of echo"))
	has("acme: Check the exit code of echo", "wanda: Quote the variable: the token [secret] leaks")
	ts.must(ts.gh.As("acme").EditComment(greetRepo, second, "Nice!"))
	has("wanda: Quote the variable: the token [secret] leaks")
	ts.must(ts.gh.As("wanda").DeleteComment(greetRepo, comment))
	has()
	if n := len(ts.remembered()); n == 0 {
		t.Error("what was taken back has left no trace")
	}
}
