package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/github/githubtest/exchangetest"
	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/config"
)

// gitPusher pushes with the git binary and the App's own token, from a clone that is made
// when it is first used.
type gitPusher struct {
	t      *testing.T
	a      *App
	dir    string
	cloned bool
}

func (g *gitPusher) clone(repo pipeline.Repo) (string, error) {
	if g.cloned {
		return "", nil
	}
	g.cloned = true
	return g.git(repo, "clone", "--quiet", repo.CloneURL, ".")
}

func (g *gitPusher) git(repo pipeline.Repo, args ...string) (string, error) {
	if out, err := g.clone(repo); err != nil {
		return out, err
	}
	tok, err := g.a.Token(context.Background(), repo)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("git", append([]string{"-C", g.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:"+tok)),
		"GIT_AUTHOR_NAME=f", "GIT_AUTHOR_EMAIL=f@example.com", "GIT_COMMITTER_NAME=f", "GIT_COMMITTER_EMAIL=f@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (g *gitPusher) Push(_ context.Context, repo pipeline.Repo, branch, sha, old string) error {
	_, err := g.git(repo, "push", "--quiet", "--force-with-lease="+branch+":"+old, repo.CloneURL, sha+":refs/heads/"+branch)
	if err == nil {
		return nil
	}
	if head, look := g.a.BranchHead(context.Background(), repo, branch); look == nil && head != old {
		return movedError{head}
	}
	return err
}

func (g *gitPusher) Diff(_ context.Context, repo pipeline.Repo, from, to string) (string, error) {
	out, err := g.git(repo, "diff", from, to)
	return out + "\n", err
}

func (g *gitPusher) Delete(_ context.Context, repo pipeline.Repo, branch, old string) error {
	_, err := g.git(repo, "push", "--quiet", "--force-with-lease="+branch+":"+old, repo.CloneURL, ":refs/heads/"+branch)
	return err
}

// commit writes a file and returns the new head.
func (g *gitPusher) commit(repo pipeline.Repo, name, text string) string {
	g.t.Helper()
	if out, err := g.clone(repo); err != nil {
		g.t.Fatal(out, err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "--quiet", "-m", "Change"}} {
		if out, err := g.git(repo, args...); err != nil {
			g.t.Fatal(out, err)
		}
	}
	head, err := g.git(repo, "rev-parse", "HEAD")
	if err != nil {
		g.t.Fatal(err)
	}
	return head
}

// world is a GitHub of the real protocol, with the App installed on octo/repo and
// an issue that asks for something.
func world(t *testing.T, change ...any) (*githubtest.Server, *App, pipeline.Repo, *gitPusher) {
	t.Helper()
	manifest, err := os.ReadFile("../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	server, client := githubtest.Options{Dir: t.TempDir(), Manifest: manifest, Contract: exchangetest.Record(t)}, Options{}
	for _, c := range change {
		switch c := c.(type) {
		case func(*githubtest.Options):
			c(&server)
		case func(string) string:
			server.Manifest = []byte(c(string(server.Manifest)))
		case func(*Options):
			c(&client)
		}
	}
	gh, err := githubtest.New(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	if _, err := gh.AddRepo("octo", "repo", map[string]string{"README.md": "# Repo\n"}); err != nil {
		t.Fatal(err)
	}
	inst, err := gh.Install("octo/repo")
	if err != nil {
		t.Fatal(err)
	}
	if err := gh.SetPermission("octo/repo", "alice", "write"); err != nil {
		t.Fatal(err)
	}
	client.BaseURL, client.AppID, client.PrivateKey = gh.URL, gh.AppID, gh.PrivateKey
	a, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.FindInstallation(context.Background(), "octo", "repo")
	if err != nil || id != inst.ID {
		t.Fatalf("FindInstallation = %d, %v; want %d", id, err, inst.ID)
	}
	repo, err := a.Repo(context.Background(), id, "octo", "repo")
	if err != nil {
		t.Fatal(err)
	}
	return gh, a, repo, &gitPusher{t: t, a: a, dir: t.TempDir()}
}

// thorough has tests that do the same again and again do more of it; with the tag e2e.
var thorough bool

// A whole run against the real protocol: App tokens, permissions of the manifest,
// review comments that must lie in the diff, GraphQL, git. Everything is held against
// GitHub's own descriptions when they are there.
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	gh, a, repo, g := world(t)
	ctx := context.Background()
	n, err := gh.As("alice").OpenIssue("octo/repo", "Retry failed uploads", "Uploads fail.")
	if err != nil {
		t.Fatal(err)
	}
	task, _, err := a.Issue(ctx, repo, n)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := a.Permission(ctx, repo, task.Author); err != nil || p != "write" {
		t.Errorf("Permission(%+v) = %q, %v", task.Author, p, err)
	}
	base, err := a.BranchHead(ctx, repo, repo.DefaultBranch)
	if err != nil || base == "" {
		t.Fatalf("BranchHead = %q, %v", base, err)
	}
	s := &rendertest.Story{T: t, Run: &pipeline.Run{}}
	s.Add(pipeline.EventRunStarted, pipeline.Data{
		Start: &pipeline.Start{Repo: repo, Task: task, By: task.Author, Config: config.Default(), Base: base, Branch: "forge/issue-1-retry"}})
	again := false
	publish := func() {
		t.Helper()
		// Every second publication is lost, as by a crash before the record.
		if again {
			if _, _, err := a.Publish(ctx, s.Run, PublishOptions{Again: true, Pusher: g}); err != nil {
				t.Fatalf("publish at event %d, lost: %v", s.N, err)
			}
		}
		pub, events, err := a.Publish(ctx, s.Run, PublishOptions{Again: again, Pusher: g})
		if err != nil || len(events) != 0 {
			t.Fatalf("publish at event %d: %v %v", s.N, err, events)
		}
		s.Add(pipeline.EventPublishCompleted, pipeline.Data{Publication: &pub})
		again = !again
	}
	publish()
	s.Plan()
	publish()
	first := g.commit(repo, "retry.go", "package upload\n\nfunc retry(n int) {\n\tfor i := 0; i != n; i++ {\n\t\td := pause(i)\n\t\ttime.Sleep(d)\n\t\tsend()\n\t}\n}\n")
	s.Implemented(1, base, first, "Retries.")
	publish()
	s.Reviewed(1, first, false, rendertest.FirstFindings()...)
	s.Bounce(1, 2)
	publish()
	second := g.commit(repo, "retry.go", "package upload\n\nfunc retry(n int) {\n\tfor range n {\n\t\tsend()\n\t}\n}\n")
	s.Implemented(2, first, second, "Mended.")
	publish()
	s.Reviewed(2, second, true, rendertest.FirstFindings()[0])
	publish()
	s.Tested(2, second)
	s.Verified()
	publish()
	checkEnd(t, gh, a, s, n, second)
}

func checkEnd(t *testing.T, gh *githubtest.Server, a *App, s *rendertest.Story, n int, head string) {
	t.Helper()
	issue, err := gh.Issue("octo/repo", n)
	if err != nil || len(issue.Comments) != 1 || !strings.Contains(issue.Comments[0].Body, "Done: reviewed and tested") {
		t.Errorf("the issue's comments: %v %+v", err, issue.Comments)
	}
	pulls, err := gh.Pulls("octo/repo")
	if err != nil || len(pulls) != 1 {
		t.Fatalf("pull requests: %d, %v", len(pulls), err)
	}
	p := pulls[0]
	if p.Draft || p.State != "open" || p.Head != head || len(p.Reviews) == 0 {
		t.Errorf("pull request: draft %v, %s, head %s, %d reviews", p.Draft, p.State, p.Head, len(p.Reviews))
	}
	if len(p.Checks) != 1 || p.Checks[0].Conclusion != "success" || p.Checks[0].ExternalID != s.Run.Trace+"/check/"+head {
		t.Errorf("check runs of the head: %+v", p.Checks)
	}
	if len(p.Threads) != 2 || slices.ContainsFunc(p.Threads, func(th githubtest.Thread) bool {
		return !th.Resolved || len(th.Comments) != 2 || !strings.Contains(th.Comments[1].Body, "Fixed in")
	}) {
		t.Errorf("threads: %+v", p.Threads)
	}
	bot, err := a.BotUser(context.Background())
	if err != nil || bot.Login != issue.Comments[0].Author {
		t.Errorf("BotUser = %+v, %v; the comment is by %s", bot, err, issue.Comments[0].Author)
	}
}
