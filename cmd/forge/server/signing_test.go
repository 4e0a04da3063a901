package server

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/sandbox/sandboxtest"
	scrub "forge/pipeline/text"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

// signing is a local GitHub whose rulesets ask for signed commits, and a run's branch.
type signing struct {
	t      *testing.T
	dir    string
	gh     *githubtest.Server
	client *githubClient
	run    pipeline.Run
}

func newSigning(t *testing.T, files map[string]string) *signing {
	t.Helper()
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &signing{t: t, dir: dir}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.gh, err = githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest()})
	must(err)
	t.Cleanup(func() { s.gh.Close() })
	_, err = s.gh.AddRepo("acme", "greet", files)
	must(err)
	inst, err := s.gh.Install("acme/greet")
	must(err)
	must(s.gh.SetRules("acme/greet", githubtest.Rule{Type: "required_signatures", Pattern: "forge/*"}))
	env, err := demo.Environment(s.gh, dir, nil)
	must(err)
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	must(err)
	must(cfg.MakeStateDir())
	o := Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Workspaces: workspacetest.New(t, workspacetest.GoAlone), HostTool: sandboxtest.GoAndGit}
	_, gateway, err := newWorkspaces(o)
	must(err)
	s.client, err = newGitHubClient(o, nil, gateway)
	must(err)
	repo, err := s.client.App.Repo(t.Context(), inst.ID, "acme", "greet")
	must(err)
	base, err := s.client.App.BranchHead(t.Context(), repo, repo.DefaultBranch)
	must(err)
	s.run = pipeline.Run{ID: 1, Repo: repo, Base: base, Head: base, Branch: "forge/issue-1-x", Config: config.Default()}
	must(s.fetch(base))
	return s
}

func (s *signing) fetch(sha string) error {
	token, err := s.client.App.Token(s.t.Context(), s.run.Repo)
	if err != nil {
		return err
	}
	return s.client.gateway.Fetch(s.t.Context(), s.run.Repo, token, sha)
}

// make commits changes on the run's head, here.
func (s *signing) make(changes ...workspace.Change) string {
	s.t.Helper()
	sha, err := s.client.gateway.Commit(s.t.Context(), s.run.Repo, workspace.CommitOptions{
		Parent: s.run.Head, Message: "Change it\n\nBecause.", Run: "7f3a/1", Author: "forge[bot]", Email: "1+forge[bot]@example.com",
		Time: time.Unix(1_700_000_000, 0), Changes: changes,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return sha
}

// remote asks the local GitHub's own repository.
func (s *signing) remote(args ...string) string {
	s.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(s.dir, "githubtest-*", "repos", "acme/greet"+"-*.git"))
	if err != nil || len(dirs) != 1 {
		s.t.Fatalf("the repositories %q, %v", dirs, err)
	}
	out, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "--git-dir=" + dirs[0]}, args...)...).Output()
	if err != nil {
		s.t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// commits makes n random changes by GitHub's API and holds each against what was made
// here: the same tree, and the expected head as its parent. It returns how many of
// them could not be told to the API, and were refused.
func (s *signing) commits(n int, seed uint64) (refused int) {
	t, random := s.t, rand.New(rand.NewPCG(seed, 4))
	for i := range n {
		changes := s.change(random)
		sha := s.make(changes...)
		if sha == s.run.Head {
			continue // it changed nothing
		}
		tree, _, message, err := s.client.gateway.CommitAt(t.Context(), s.run.Repo, sha)
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.client.signer.commit(t.Context(), &s.run, sha)
		if err != nil {
			t.Fatalf("seed %d, change %d: %v", seed, i, err)
		}
		if slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Exec }) {
			var no *workspace.RejectedError
			at, err := s.client.App.BranchHead(t.Context(), s.run.Repo, s.run.Branch)
			push := s.client.signer.push(t.Context(), &s.run, sha, s.run.Published.Head)
			if err != nil || head != sha || at != s.run.Published.Head || !errors.As(push, &no) {
				t.Fatalf("seed %d, change %d: a program was taken: %s, the branch is at %s, %v, %v", seed, i, head, at, err, push)
			}
			refused++
			continue
		}
		if got := s.remote("rev-parse", s.run.Branch, s.run.Branch+"^{tree}", s.run.Branch+"^"); got != head+"\n"+tree+"\n"+s.run.Head {
			t.Fatalf("seed %d, change %d: head, tree and parent are\n%s\nwant\n%s\n%s\n%s", seed, i, got, head, tree, s.run.Head)
		}
		if head == sha || s.remote("log", "-1", "--format=%B%cn", head) != message+"GitHub" {
			t.Fatalf("seed %d, change %d: the message is %q, want %q by GitHub", seed, i, s.remote("log", "-1", "--format=%B%cn", head), message)
		}
		s.run.Head, s.run.Published.Head = head, head
	}
	return refused
}

// change draws one to four changes of the tree as it is.
func (s *signing) change(random *rand.Rand) []workspace.Change {
	files, err := s.client.gateway.Files(s.t.Context(), s.run.Repo, s.run.Head)
	if err != nil {
		s.t.Fatal(err)
	}
	names := []string{"a.txt", "B.TXT", "dir/c.go", "dir/deep/er/d", `"quoted".txt`, "with space", "ö/ß.txt", "-dash", "new\u2028line", "dollar$HOME", "[glob]*?", "a", "emoji 😀", "trailing.dot.", "back`tick"}
	contents := []string{"", "one\n", "no end", "\r\ncrlf\r\n", "\x00\x01\xff binary", "ünïcode\n", strings.Repeat("long line ", 500), "#!/bin/sh\n", "<<<<<<<\n", `{"json": "\"}`}
	out := map[string]workspace.Change{}
	put := func(name, text string) {
		for other := range out { // a name cannot be a file and a folder
			if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
				return
			}
		}
		for _, f := range files {
			if strings.HasPrefix(f, name+"/") || strings.HasPrefix(name, f+"/") {
				out[f] = workspace.Change{Path: f, Deleted: true}
			}
		}
		out[name] = workspace.Change{Path: name, Content: []byte(text)}
	}
	for range 1 + random.IntN(4) {
		name := names[random.IntN(len(names))]
		text, k := fmt.Sprintf("%s%d", contents[random.IntN(len(contents))], random.IntN(50)), random.IntN(10)
		switch {
		case k < 5 || len(files) == 0:
			put(name, text)
		case k < 7:
			f := files[random.IntN(len(files))]
			out[f] = workspace.Change{Path: f, Deleted: true}
		case k < 9: // moved, or copied
			f := files[random.IntN(len(files))]
			old, err := s.client.gateway.File(s.t.Context(), s.run.Repo, s.run.Head, f)
			if err != nil {
				s.t.Fatal(err)
			}
			put(name, string(old))
			if k == 8 && f != name {
				out[f] = workspace.Change{Path: f, Deleted: true}
			}
		case random.IntN(4) == 0:
			put(name, text)
			if c, ok := out[name]; ok && !c.Deleted {
				c.Exec = true
				out[name] = c
			}
		}
	}
	for path := range out { // what is under a file that comes, or above it, goes
		for _, c := range slices.Sorted(maps.Keys(out)) {
			if !out[c].Deleted && strings.HasPrefix(path, c+"/") && !out[path].Deleted {
				delete(out, path)
			}
		}
	}
	var list []workspace.Change
	for _, path := range slices.Sorted(maps.Keys(out)) {
		list = append(list, out[path])
	}
	return list
}

// Each change that GitHub makes is the one that was made here; FORGE_COMMITS sets how
// many are tried.
func TestCommitsByAPI(t *testing.T) {
	n := 25
	if text := os.Getenv("FORGE_COMMITS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	s := newSigning(t, map[string]string{"a.txt": "a\n", "dir/c.go": "package c\n"})
	refused := s.commits(n, 7)
	t.Logf("%d changes, %d of them refused because of their executable bit", n, refused)
}

// What is under way when a process dies is found and kept, and what others did is never
// written over.
func TestCommitsByAPIAgain(t *testing.T) {
	s := newSigning(t, map[string]string{"a.txt": "a\n"})
	sign := func(sha string) string {
		t.Helper()
		head, err := s.client.signer.commit(t.Context(), &s.run, sha)
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	sha := s.make(workspace.Change{Path: "a.txt", Content: []byte("b\n")})
	first := sign(sha)
	if again := sign(sha); again != first {
		t.Errorf("the second attempt made %s, the first %s", again, first)
	}
	if n := s.gh.Mutations()["graphql/createCommitOnBranch"]; n != 1 {
		t.Errorf("%d commits were made, want 1", n)
	}
	if err := s.client.signer.push(t.Context(), &s.run, first, ""); err != nil {
		t.Errorf("push of what is there: %v", err)
	}
	s.run.Head, s.run.Published.Head = first, first

	// An answer that got lost, and the same again.
	sha = s.make(workspace.Change{Path: "a.txt", Content: []byte("c\n")})
	s.gh.AddFault(githubtest.Fault{Kind: githubtest.FaultErrorAfter, Operation: "graphql/createCommitOnBranch", Times: 1})
	if _, err := s.client.signer.commit(t.Context(), &s.run, sha); err == nil {
		t.Error("a lost answer is no error")
	}
	second := sign(sha)
	if n := s.gh.Mutations()["graphql/createCommitOnBranch"]; n != 2 || second == sha {
		t.Errorf("%d commits were made, want 2; the head is %s", n, second)
	}
	s.run.Head, s.run.Published.Head = second, second

	// The base of what was made here is stale: somebody has pushed.
	theirs, err := s.gh.As("acme").PushFiles("acme/greet", githubtest.Push{Branch: s.run.Branch, Message: "Mine", Files: map[string]*string{"mine.txt": new("mine\n")}})
	if err != nil {
		t.Fatal(err)
	}
	sha = s.make(workspace.Change{Path: "a.txt", Content: []byte("d\n")})
	if head := sign(sha); head != sha {
		t.Errorf("a commit on a stale head became %s", head)
	}
	var moved *workspace.MovedError
	if err := s.client.signer.push(t.Context(), &s.run, sha, second); !errors.As(err, &moved) || moved.Head != theirs {
		t.Errorf("push over somebody's commit: %v, want it moved to %s", err, theirs)
	}
	if got := s.remote("rev-parse", s.run.Branch); got != theirs {
		t.Errorf("the branch is at %s, want %s", got, theirs)
	}
}

// GitHub's tokens since April 2026 have some 520 characters, with points and dashes:
// nothing of one may stay where texts are cleaned.
func TestLongTokensAreTakenOut(t *testing.T) {
	s := newSigning(t, map[string]string{"a.txt": "a\n"})
	token, err := s.client.App.Token(t.Context(), s.run.Repo)
	if err != nil {
		t.Fatal(err)
	}
	if len(token) < 500 || len(token) > 540 || strings.Count(token, ".") != 2 {
		t.Fatalf("the local GitHub's tokens have %d characters", len(token))
	}
	finder, err := newSecrets(settings.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{token, "token=" + token, `{"token":"` + token + `"}`, "https://x-access-token:" + token + "@github.com/acme/greet.git", "Authorization: Bearer " + token + "\r\n", "(" + token + ")."} {
		clean, leaks := finder.Text("a comment", text)
		for what, got := range map[string]string{"scrubbed": scrub.Scrub(text), "posted": clean} {
			for i := 0; i+12 <= len(token); i++ {
				if strings.Contains(got, token[i:i+12]) {
					t.Errorf("%s: %.40q… leaves %q", what, text, got)
					break
				}
			}
		}
		if len(leaks) == 0 {
			t.Errorf("%.40q… is no leak", text)
		}
	}
}
