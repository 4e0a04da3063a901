package githubtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
)

// What an App may do is no violation; an oracle that finds nothing wrong in what is wrong
// would prove nothing.
func TestViolations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue()
	w.must(w.s.SetPermission(w.repo, "trudy", "triage"))
	find := func(want string) {
		t.Helper()
		list := w.s.Violations("forge")
		if found := len(list) > 0 && strings.Contains(list[len(list)-1], want); found != (want != "") || want == "" && len(list) > 0 {
			t.Errorf("violations %q, want the last to be %q", list, want)
		}
	}
	say := func(text string) {
		t.Helper()
		_, _, err := w.gh.Issues.CreateComment(w.ctx, "acme", "shop", n, &github.IssueComment{Body: &text})
		w.must(err)
	}
	w.must(w.al.Label(w.repo, n, "forge"))
	say("<!-- forge:a/status --> begun")
	w.draft()
	_, err := w.al.PushFiles(w.repo, Push{Branch: "forge/issue-1", Message: "Help", Files: map[string]*string{"help.txt": github.String("help\n")}})
	w.must(err)
	w.put("forge/issue-1", "more.txt", "on top of it\n")
	_, err = w.al.PushFiles(w.repo, Push{Branch: "main", Message: "Go on", Files: map[string]*string{"x.txt": github.String("x\n")}})
	w.must(err)
	find("")

	second := w.issue()
	w.must(w.s.As("trudy").Label(w.repo, second, "forge"))
	w.put("forge/issue-3", "a.txt", "a\n")
	find("nobody with write access had asked for work on #3")
	_, err = w.al.Comment(w.repo, second, "/forge run")
	w.must(err)
	w.put("forge/issue-3", "b.txt", "b\n") // the first was too early all the same
	if list := w.s.Violations("forge"); len(list) != 1 {
		t.Errorf("violations %q, want one", list)
	}
	for name, title := range map[string]string{"incident": "Checkout fails", "bug": "Later: the rest"} {
		own, _, err := w.gh.Issues.Create(w.ctx, "acme", "shop", &github.IssueRequest{Title: &title, Labels: &[]string{name}})
		w.must(err)
		w.put(fmt.Sprintf("forge/issue-%d", own.GetNumber()), "a.txt", "a\n")
	}
	if list := w.s.Violations("forge"); len(list) != 2 { // what it puts off is no incident
		t.Errorf("violations %q, want two", list)
	}
	w.put("other", "a.txt", "a\n")
	find("moved refs/heads/other of acme/shop: it is not one of its own")
	w.put("main", "a.txt", "a\n")
	find("moved refs/heads/main of acme/shop: it is not one of its own")

	old, err := w.s.Head(w.repo, "main")
	w.must(err)
	_, err = w.al.PushFiles(w.repo, Push{Branch: "forge/issue-3", Message: "Mine", Files: map[string]*string{"mine.txt": github.String("mine\n")}})
	w.must(err)
	_, _, err = w.gh.Git.UpdateRef(w.ctx, "acme", "shop", &github.Reference{Ref: github.String("refs/heads/forge/issue-3"), Object: &github.GitObject{SHA: &old}}, true)
	w.must(err)
	find("of alice is lost")

	say("<!-- forge:a/status --> begun, and said again")
	find("posted twice: acme/shop#1 comment <!-- forge:a/status -->")
}
