package sandbox

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/fence"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// change is the options of a commit of one file.
func change(parent, path, content string) workspace.CommitOptions {
	return workspace.CommitOptions{
		Parent: parent, Message: "change " + strings.ReplaceAll(path, "\x00", ""), Author: "forge[bot]", Email: "forge@example.com", Time: fixedTime,
		Changes: []workspace.Change{{Path: path, Content: []byte(content)}},
	}
}

func (f *fixture) mustCommit(t *testing.T, o workspace.CommitOptions) string {
	t.Helper()
	sha, err := f.gateway.Commit(t.Context(), f.repo, o)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

func TestGatewayReads(t *testing.T) {
	f := newFixture(t, sources)
	ctx, g := t.Context(), f.gateway
	if sha, err := g.Resolve(ctx, f.repo, "main"); err != nil || sha != f.head {
		t.Errorf("Resolve(main) = %s, %v; want %s", sha, err, f.head)
	}
	if sha, err := g.Resolve(ctx, f.repo, f.head); err != nil || sha != f.head {
		t.Errorf("Resolve(sha) = %s, %v", sha, err)
	}
	for _, ref := range []string{"nothing", strings.Repeat("0", 40)} {
		if _, err := g.Resolve(ctx, f.repo, ref); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Resolve(%s) = %v; want fs.ErrNotExist", ref, err)
		}
	}
	want := []string{".gitattributes", ".gitignore", "README.md", "link", "pkg/a.go", "pkg/deep/b.txt", "run.sh"}
	if got, err := g.Files(ctx, f.repo, f.head); err != nil || !cmp.Equal(got, want) {
		t.Errorf("Files = %q, %v; want %q", got, err, want)
	}
	if got, err := g.File(ctx, f.repo, f.head, "pkg/deep/b.txt"); err != nil || string(got) != sources["pkg/deep/b.txt"] {
		t.Errorf("File = %q, %v", got, err)
	}
	for _, path := range []string{"none", "pkg", "../x", "-x", ""} {
		if got, err := g.File(ctx, f.repo, f.head, path); err == nil {
			t.Errorf("File(%q) = %q; want an error", path, got)
		}
	}
	if _, err := g.File(ctx, f.repo, "--help", "x"); err == nil {
		t.Error("File at --help: no error")
	}
	o := change(f.head, "moved.txt", sources["pkg/deep/b.txt"])
	o.Changes = append(o.Changes, workspace.Change{Path: "pkg/deep/b.txt", Deleted: true})
	diff, err := g.Diff(ctx, f.repo, f.head, f.mustCommit(t, o))
	if err != nil || !strings.Contains(diff, "rename from pkg/deep/b.txt\nrename to moved.txt\n") {
		t.Errorf("Diff = %q, %v; want a rename", diff, err)
	}
}

// Commit is a function of its options, and never an empty commit.
func TestCommit(t *testing.T) {
	f := newFixture(t, sources)
	o := change(f.head, "a/b.txt", "one\n")
	o.Changes = append(o.Changes, workspace.Change{Path: "run.sh", Exec: true, Content: []byte("#!/bin/sh\n")},
		workspace.Change{Path: "README.md", Deleted: true}, workspace.Change{Path: "README.md/now/a/dir", Content: []byte("x")})
	sha := f.mustCommit(t, o)
	if again := f.mustCommit(t, o); again != sha {
		t.Errorf("the same commit again = %s; want %s", again, sha)
	}
	got := gitIn(t, "/", nil, "--git-dir="+f.gateway.Dir(f.repo), "ls-tree", "-r", "--format=%(objectmode) %(path)", sha)
	want := "100644 .gitattributes\n100644 .gitignore\n100644 README.md/now/a/dir\n100644 a/b.txt\n120000 link\n100644 pkg/a.go\n100644 pkg/deep/b.txt\n100755 run.sh"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree -want +got:\n%s", diff)
	}
	log := gitIn(t, "/", nil, "--git-dir="+f.gateway.Dir(f.repo), "log", "-1", "--format=%P|%an|%ae|%at|%cn|%ct|%B", sha)
	if want := fmt.Sprintf("%s|forge[bot]|forge@example.com|%d|forge[bot]|%[2]d|change a/b.txt", f.head, fixedTime.Unix()); log != want {
		t.Errorf("commit = %s; want %s", log, want)
	}
	if same := f.mustCommit(t, change(f.head, "pkg/a.go", sources["pkg/a.go"])); same != f.head {
		t.Errorf("a change that changes nothing = %s; want the parent", same)
	}
	if root := f.mustCommit(t, change("", "first.txt", "x")); !isOID(root) {
		t.Errorf("root commit = %q", root)
	}
}

// The base branch is taken in without a work tree; what does not merge is named.
func TestMerge(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "b\n", "ö ß.txt": "x\n"})
	ctx, g := t.Context(), f.gateway
	ours := f.mustCommit(t, change(f.head, "a.txt", "one\n2\n3\n4\n5\n"))
	theirs := f.mustCommit(t, change(f.head, "a.txt", "1\n2\n3\n4\nfive\n"))
	o := workspace.CommitOptions{Parent: ours, Message: "merge main", Author: "forge[bot]", Email: "forge@example.com", Time: fixedTime}
	merged, err := g.Merge(ctx, f.repo, theirs, o)
	if err != nil || len(merged.Conflicts) > 0 || merged.Markers != "" {
		t.Fatalf("Merge = %+v, %v", merged, err)
	}
	sha := merged.SHA
	if got, err := g.File(ctx, f.repo, sha, "a.txt"); err != nil || string(got) != "one\n2\n3\n4\nfive\n" {
		t.Errorf("merged file = %q, %v", got, err)
	}
	if log := gitIn(t, "/", nil, "--git-dir="+g.Dir(f.repo), "log", "-1", "--format=%P|%an|%B", sha); log != ours+" "+theirs+"|forge[bot]|merge main" {
		t.Errorf("merge commit = %s", log)
	}
	if again, err := g.Merge(ctx, f.repo, theirs, o); again.SHA != sha || err != nil {
		t.Errorf("the same merge again = %s, %v; want %s", again.SHA, err, sha)
	}
	o.Parent = sha
	if same, err := g.Merge(ctx, f.repo, theirs, o); same.SHA != sha || err != nil {
		t.Errorf("a merge of what is there = %s, %v; want %s", same.SHA, err, sha)
	}
	clash := change(f.head, "a.txt", "uno\n2\n3\n4\n5\n")
	clash.Changes = append(clash.Changes, workspace.Change{Path: "ö ß.txt", Content: []byte("theirs\n")}, workspace.Change{Path: "b.txt", Deleted: true})
	mine := change(ours, "ö ß.txt", "ours\n")
	mine.Changes = append(mine.Changes, workspace.Change{Path: "b.txt", Content: []byte("b, changed\n")})
	o.Parent = f.mustCommit(t, mine)
	other := f.mustCommit(t, clash)
	merged, err = g.Merge(ctx, f.repo, other, o)
	if want := []string{"a.txt", "b.txt", "ö ß.txt"}; err != nil || merged.SHA != "" || !cmp.Equal(merged.Conflicts, want) {
		t.Fatalf("Merge of what clashes = %+v, %v; want conflicts %q", merged, err, want)
	}
	if why := strings.Join(merged.Why, "\n"); !strings.Contains(why, "CONFLICT (modify/delete): b.txt deleted in") ||
		strings.Contains(why, "Auto-merging") || len(merged.Why) != 3 {
		t.Errorf("git's words are %q", merged.Why)
	}
	if got, err := g.File(ctx, f.repo, merged.Markers, "ö ß.txt"); err != nil || !strings.Contains(string(got), "ours\n=======\ntheirs\n") {
		t.Errorf("with markers = %q, %v", got, err)
	}
	// Merged by hand, it is a merge like others, even where nothing had to be edited.
	hand := o
	hand.Parent, hand.Parents = merged.Markers, []string{o.Parent, other}
	for _, changes := range [][]workspace.Change{nil, {{Path: "a.txt", Content: []byte("both\n")}}} {
		hand.Changes = changes
		sha, err := g.Commit(ctx, f.repo, hand)
		if err != nil {
			t.Fatal(err)
		}
		if parents := gitIn(t, "/", nil, "--git-dir="+g.Dir(f.repo), "log", "-1", "--format=%P", sha); parents != o.Parent+" "+other ||
			sha == merged.Markers != (changes == nil) {
			t.Errorf("merged by hand: %s with the parents %s", sha, parents)
		}
	}
	if _, err := g.Merge(ctx, f.repo, "--help", o); err == nil {
		t.Error("Merge of --help: no error")
	}
	if _, err := g.Merge(ctx, f.repo, strings.Repeat("1", 40), o); err == nil {
		t.Error("Merge of a commit that is not there: no error")
	}
}

// A branch that was begun anew has no history in common with its base: what it was made from
// before says what each side has changed, and the merge has both for parents.
func TestMergeUnrelated(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "1\n2\n3\n4\n5\n"})
	ctx, g := t.Context(), f.gateway
	ours := f.mustCommit(t, change("", "a.txt", "one\n2\n3\n4\n5\n"))
	theirs := f.mustCommit(t, change(f.head, "a.txt", "1\n2\n3\n4\nfive\n"))
	o := workspace.CommitOptions{Parent: ours, Message: "merge main", Author: "forge[bot]", Email: "forge@example.com", Time: fixedTime}
	if merged, err := g.Merge(ctx, f.repo, theirs, o); err == nil {
		t.Errorf("Merge from nowhere = %+v", merged)
	}
	o.Base = f.head
	merged, err := g.Merge(ctx, f.repo, theirs, o)
	if err != nil || len(merged.Conflicts) > 0 {
		t.Fatalf("Merge = %+v, %v", merged, err)
	}
	if got, err := g.File(ctx, f.repo, merged.SHA, "a.txt"); err != nil || string(got) != "one\n2\n3\n4\nfive\n" {
		t.Errorf("merged file = %q, %v", got, err)
	}
	if parents := gitIn(t, "/", nil, "--git-dir="+g.Dir(f.repo), "log", "-1", "--format=%P", merged.SHA); parents != ours+" "+theirs {
		t.Errorf("its parents are %s", parents)
	}
	if same, err := g.Merge(ctx, f.repo, f.head, o); err != nil || len(same.Conflicts) > 0 || same.SHA == ours {
		t.Errorf("Merge of the base itself = %+v, %v", same, err)
	}
	clash := f.mustCommit(t, change(f.head, "a.txt", "uno\n2\n3\n4\n5\n"))
	if merged, err := g.Merge(ctx, f.repo, clash, o); err != nil || !cmp.Equal(merged.Conflicts, []string{"a.txt"}) || merged.Markers == "" {
		t.Errorf("Merge of what clashes = %+v, %v", merged, err)
	}
}

// Covers S24: whatever the message says, GitHub acts on nothing in it, and the run's
// trailer is the only one. Merges are no exception.
func TestCommitMessageIsNeutral(t *testing.T) {
	f := newFixture(t, sources)
	const message = "Fix it\x00 [skip ci]\n\ncloses owner/repo#2, thanks @octocat\n\nSigned-off-by: someone\nForge-Run: other/9\n\n\nskip-checks: true\n"
	ctx := t.Context()
	o := change(f.head, "x", "x")
	o.Message, o.Run = message, "7f3a/2"
	sha, err := f.gateway.Commit(ctx, f.repo, o)
	if err != nil {
		t.Fatal(err)
	}
	theirs := f.commitTo(t, "main", map[string]string{"y": "y"})
	if err := f.gateway.Fetch(ctx, f.repo, "", theirs); err != nil {
		t.Fatal(err)
	}
	m := o
	m.Parent, m.Changes = sha, nil
	merged, err := f.gateway.Merge(ctx, f.repo, theirs, m)
	if err != nil || len(merged.Conflicts) > 0 {
		t.Fatal(merged, err)
	}
	for _, sha := range []string{sha, merged.SHA} {
		got := gitIn(t, f.gateway.Dir(f.repo), nil, "log", "-1", "--format=%B", sha)
		if want := strings.TrimSpace(text.CommitMessage(message, "Forge-Run: 7f3a/2")); got != want || strings.Contains(got, "[skip") {
			t.Errorf("message = %q, want %q", got, want)
		}
		if got := gitIn(t, f.gateway.Dir(f.repo), nil, "log", "-1", "--format=%(trailers)", sha); got != "Forge-Run: 7f3a/2" {
			t.Errorf("trailers = %q; want the run's alone", got)
		}
	}
	o.Run = "a/1\nSigned-off-by: someone"
	if sha, err := f.gateway.Commit(ctx, f.repo, o); err == nil {
		t.Errorf("Commit with a run of two lines = %s", sha)
	}
	o.Run, o.Message = "", "\u200b\n"
	if sha, err := f.gateway.Commit(ctx, f.repo, o); err == nil {
		t.Errorf("Commit with an invisible message = %s", sha)
	}
}

// Covers S13 and S16: what no commit may hold.
func TestCommitRefuses(t *testing.T) {
	f := newFixture(t, sources)
	for _, path := range []string{
		".git/config", "a/.git/hooks/x", ".GIT/config", "GIT~1/config", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/x", ".git /x", ".git./x",
		"../x", "/etc/passwd", "a//b", "a/./b", "a/../b", "", "a\\b", "a\nb", "a\x00b", "link",
	} {
		if sha, err := f.gateway.Commit(t.Context(), f.repo, change(f.head, path, "x")); err == nil {
			t.Errorf("Commit(%q) = %s; want an error", path, sha)
		} else if !strings.Contains(err.Error(), strings.Trim(fmt.Sprintf("%q", path), `"`)) {
			t.Errorf("Commit(%q): %v; want the path named", path, err)
		}
	}
	for path, protected := range map[string]bool{
		".github/workflows/ci.yml": true, ".GitHub/Workflows/ci.yml": true, ".github/actions/x/action.yml": true, ".github/forge.yml": true,
		"CODEOWNERS": true, "docs/CODEOWNERS": true, ".github/CODEOWNERS": true, ".gitmodules": true, ".gitattributes": true, "a/.gitattributes": true,
		"AGENTS.md": true, "sub/CLAUDE.md": true, ".mcp.json": true, ".vscode/tasks.json": true, ".vscode": true, ".cursor/rules/x": true, "secret/x": true,
		".circleci/config.yml": true, "ci/Jenkinsfile": true, ".husky/pre-commit": true, ".npmrc": true, "web/.Yarnrc.yml": true, ".cargo/config.toml": true, ".clinerules": true,
		"package.json": false, "Cargo.toml": false, "src/config.toml": false, "docs/jenkins.md": false,
		".github/ISSUE_TEMPLATE/bug.md": false, "a/.gitignore": false, "workflows/ci.yml": false, "cursor/x": false,
	} {
		o := change(f.head, path, "x")
		o.Protected = []string{"secret/**"}
		_, err := f.gateway.Commit(t.Context(), f.repo, o)
		var refused *workspace.ProtectedError
		if got := errors.As(err, &refused); got != protected {
			t.Errorf("Commit(%q) = %v; want protected %v", path, err, protected)
		}
		o.Allow = []string{path}
		if _, err := f.gateway.Commit(t.Context(), f.repo, o); err != nil {
			t.Errorf("Commit(%q) that the operator allowed: %v", path, err)
		}
	}
	for name, spoil := range map[string]func(*workspace.CommitOptions){
		"message": func(o *workspace.CommitOptions) { o.Message = " " }, "author": func(o *workspace.CommitOptions) { o.Author = "a<b>" },
		"email": func(o *workspace.CommitOptions) { o.Email = "" }, "time": func(o *workspace.CommitOptions) {
			o.Time = o.Time.AddDate(-3000, 0, 0)
			o.Time = workspace.CommitOptions{}.Time
		},
		"parent": func(o *workspace.CommitOptions) { o.Parent = "HEAD" }, "twice": func(o *workspace.CommitOptions) { o.Changes = append(o.Changes, o.Changes[0]) },
	} {
		o := change(f.head, "x", "x")
		spoil(&o)
		if _, err := f.gateway.Commit(t.Context(), f.repo, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Commit with a bad %s: %v", name, err)
		}
	}
}

// A branch is deleted where it stands as it is known, again without an error, and never
// with what somebody else has pushed to it, nor another than Forge's own.
func TestDelete(t *testing.T) {
	f := newFixture(t, sources)
	ctx, g, branch := t.Context(), f.gateway, "forge/issue-1--auth"
	one := f.mustCommit(t, change(f.head, "a.txt", "1"))
	if err := g.Push(ctx, f.repo, "", workspace.PushOptions{Branch: branch, SHA: one}); err != nil {
		t.Fatal(err)
	}
	human := f.commitTo(t, branch, map[string]string{"human.txt": "mine\n"})
	var moved *workspace.MovedError
	if err := g.Delete(ctx, f.repo, "", branch, one); !errors.As(err, &moved) || moved.Head != human {
		t.Errorf("delete over a human's commit: %v; want MovedError at %s", err, human)
	}
	if got := gitIn(t, f.remote, nil, "rev-parse", branch); got != human {
		t.Errorf("branch is at %s; want the human's %s", got, human)
	}
	for range 2 {
		if err := g.Delete(ctx, f.repo, "", branch, human); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if got := gitIn(t, f.remote, nil, "for-each-ref", "refs/heads/"+branch); got != "" {
		t.Errorf("the branch is still there: %s", got)
	}
	for _, bad := range []string{"main", "forge/", "refs/heads/main"} {
		if err := g.Delete(ctx, f.repo, "", bad, f.head); err == nil {
			t.Errorf("Delete(%q): no error", bad)
		}
	}
}

// Covers S18: who has lost a run pushes and deletes nothing, whatever it began before.
func TestPushOfWhatIsLost(t *testing.T) {
	f := newFixture(t, sources)
	g, branch, lost := f.gateway, "forge/issue-1", errors.New("another server has the run")
	ctx := fence.With(t.Context(), func() error { return lost })
	one := f.mustCommit(t, change(f.head, "a.txt", "1"))
	if err := g.Push(ctx, f.repo, "", workspace.PushOptions{Branch: branch, SHA: one}); !errors.Is(err, lost) {
		t.Errorf("push: %v; want %v", err, lost)
	}
	if err := g.Push(t.Context(), f.repo, "", workspace.PushOptions{Branch: branch, SHA: one}); err != nil {
		t.Fatal(err)
	}
	if err := g.Delete(ctx, f.repo, "", branch, one); !errors.Is(err, lost) {
		t.Errorf("delete: %v; want %v", err, lost)
	}
	if got := gitIn(t, f.remote, nil, "rev-parse", branch); got != one {
		t.Errorf("the branch is at %s", got)
	}
}

// Covers S18: only forward, only over what was seen, only Forge's own branches.
func TestPush(t *testing.T) {
	f := newFixture(t, sources)
	ctx, g, branch := t.Context(), f.gateway, "forge/issue-1"
	one := f.mustCommit(t, change(f.head, "a.txt", "1"))
	two := f.mustCommit(t, change(one, "a.txt", "2"))
	push := func(sha, old string) error {
		return g.Push(ctx, f.repo, "", workspace.PushOptions{Branch: branch, SHA: sha, Old: old})
	}

	if err := push(one, ""); err != nil {
		t.Fatal(err)
	}
	if err := push(one, ""); err != nil {
		t.Errorf("the same push again: %v; want success", err)
	}
	if sha, err := g.Resolve(ctx, f.repo, branch); err != nil || sha != one {
		t.Errorf("Resolve after Push = %s, %v; want %s", sha, err, one)
	}
	var moved *workspace.MovedError
	if err := push(two, ""); !errors.As(err, &moved) || moved.Moved() != one {
		t.Errorf("push over a branch that must not exist: %v; want MovedError at %s", err, one)
	}
	if err := push(two, one); err != nil {
		t.Error(err)
	}
	human := f.commitTo(t, branch, map[string]string{"human.txt": "mine\n"})
	three := f.mustCommit(t, change(two, "a.txt", "3"))
	if err := push(three, two); !errors.As(err, &moved) || moved.Head != human {
		t.Errorf("push over a human's commit: %v; want MovedError at %s", err, human)
	}
	if got := gitIn(t, f.remote, nil, "rev-parse", branch); got != human {
		t.Errorf("branch is at %s; want the human's %s", got, human)
	}
	if err := g.Fetch(ctx, f.repo, "", branch); err != nil {
		t.Error(err)
	}
	if err := push(three, human); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("push that takes a commit away: %v", err)
	}
	gitIn(t, f.remote, nil, "update-ref", "-d", "refs/heads/"+branch)
	if err := push(three, two); !errors.As(err, &moved) || moved.Head != "" {
		t.Errorf("push to a branch that was deleted: %v; want MovedError without a head", err)
	}
	for _, bad := range []string{"main", "forge/", "forge/../main", "refs/heads/main", "refs/heads/forge/x", "forge/a b", "forge/x.lock", "-forge/x"} {
		if err := g.Push(ctx, f.repo, "", workspace.PushOptions{Branch: bad, SHA: one}); err == nil {
			t.Errorf("push to %q: no error", bad)
		}
	}
	hook := "#!/bin/sh\necho 'error: GH013: Repository rule violations found' >&2\nexit 1\n"
	if err := writeFile(filepath.Join(f.remote, "hooks", "pre-receive"), hook, 0o755); err != nil {
		t.Fatal(err)
	}
	var rejected *workspace.RejectedError
	if err := g.Push(ctx, f.repo, "", workspace.PushOptions{Branch: "forge/issue-2", SHA: one}); !errors.As(err, &rejected) ||
		!strings.Contains(rejected.Rejected(), "GH013") {
		t.Errorf("push against a rule: %v; want RejectedError with GH013", err)
	}
}

// Covers S18: a human and the bot push at the same time; no human's commit is lost.
func TestPushRace(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "a"})
	branch := "forge/race"
	head := f.mustCommit(t, change(f.head, "a", "b"))
	if err := f.gateway.Push(t.Context(), f.repo, "", workspace.PushOptions{Branch: branch, SHA: head}); err != nil {
		t.Fatal(err)
	}
	races := 25
	if n, err := strconv.Atoi(os.Getenv("FORGE_PUSH_RACES")); err == nil {
		races = n
	}
	for i := range races {
		bot := f.mustCommit(t, change(head, "bot", fmt.Sprint(i)))
		human := gitIn(t, "/", nil, "--git-dir="+f.remote, "commit-tree", head+"^{tree}", "-p", head, "-m", fmt.Sprint("human ", i))
		var wg sync.WaitGroup
		var botErr, humanErr error
		wg.Go(func() {
			botErr = f.gateway.Push(t.Context(), f.repo, "", workspace.PushOptions{Branch: branch, SHA: bot, Old: head})
		})
		wg.Go(func() {
			humanErr = exec.Command("git", "--git-dir="+f.remote, "update-ref", "refs/heads/"+branch, human, head).Run()
		})
		wg.Wait()
		got := gitIn(t, f.remote, nil, "rev-parse", branch)
		if humanErr == nil && got != human || botErr == nil && got != bot || (humanErr == nil) == (botErr == nil) {
			t.Fatalf("branch at %s; human %s (%v), bot %s (%v)", got, human, humanErr, bot, botErr)
		}
		if err := f.gateway.Fetch(t.Context(), f.repo, "", branch); err != nil {
			t.Fatal(err)
		}
		head = got
	}
}

func TestFetchFaults(t *testing.T) {
	f := newFixture(t, sources)
	gone := f.repo
	gone.ID, gone.CloneURL = 8, f.remote+"-gone"
	elsewhere := f.repo
	elsewhere.CloneURL = "https://evil.example.com/acme/widgets.git"
	creds := f.repo
	creds.CloneURL = "https://user:hunter2@github.com/acme/widgets.git"
	ssh := f.repo
	ssh.CloneURL = "ext::sh -c evil"
	for _, tt := range []struct {
		name  string
		repo  pipeline.Repo
		ref   string
		final bool
		want  string
	}{
		{"no such branch", f.repo, "nope", true, "not there"},
		{"no such commit", f.repo, strings.Repeat("1", 40), true, "not there"},
		{"no such repository", gone, "main", true, "no such repository"},
		{"a bad name", f.repo, "a..b", true, "not a valid branch name"},
		{"another host", elsewhere, "main", true, "not among the hosts"},
		{"credentials", creds, "main", true, "carries credentials"},
		{"another transport", ssh, "main", true, "not a URL"},
	} {
		err := f.gateway.Fetch(t.Context(), tt.repo, "", tt.ref)
		var fault *pipeline.Fault
		if !errors.As(err, &fault) || fault.Class != pipeline.FaultGitHub || fault.Final != tt.final || !strings.Contains(fault.Message, tt.want) {
			t.Errorf("%s: %v; want a final fault that says %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v: a secret is told", tt.name, err)
		}
	}
	closed, err := NewGateway(GatewayOptions{Dir: openDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Fetch(t.Context(), f.repo, "", "main"); err == nil || !strings.Contains(err.Error(), "forge run") {
		t.Errorf("a path without AllowLocal: %v", err)
	}
	// A branch that gave way to a directory of branches, and a SHA that is there.
	first := f.commitTo(t, "topic", map[string]string{"x": "1"})
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "topic"); err != nil {
		t.Error(err)
	}
	gitIn(t, f.remote, nil, "update-ref", "-d", "refs/heads/topic")
	f.commitTo(t, "topic/sub", map[string]string{"x": "2"})
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "topic/sub", first); err != nil {
		t.Error(err)
	}
}

// object writes an object into the remote as it is given, whatever git's checks say of it.
func (f *fixture) object(t testing.TB, kind, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), kind)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return gitIn(t, f.remote, nil, "hash-object", "-w", "-t", kind, "--literally", file)
}

// treeRow is one entry of a tree in git's own form.
func treeRow(t testing.TB, mode, name, oid string) string {
	t.Helper()
	raw, err := hex.DecodeString(oid)
	if err != nil {
		t.Fatal(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

// Old tools wrote commits, tags and trees that are wrong in form alone; GitHub keeps them and
// so do large repositories of today, in histories that nobody can change any more.
func TestOldHistories(t *testing.T) {
	f := newFixture(t, map[string]string{"dir/a.txt": "a\n"})
	dir, blob := gitIn(t, f.remote, nil, "rev-parse", f.head+":dir"), gitIn(t, f.remote, nil, "rev-parse", f.head+":dir/a.txt")
	padded := f.object(t, "tree", treeRow(t, "0100644", "b.txt", blob)+treeRow(t, "040000", "dir", dir))
	const fine = "A <a@example.com> 1200000000 +0000"
	for name, people := range map[string]string{ // by git's name of the fault
		"zeroPaddedFilemode":      "author " + fine,
		"badTimezone":             "author A <a@example.com> 1200000000 -7",
		"badTimezone, long":       "author A <a@example.com> 1312735823 +051800",
		"badDate":                 "author A <a@example.com> soon +0000",
		"badDateOverflow":         "author A <a@example.com> 99999999999999999999 +0000",
		"zeroPaddedDate":          "author A <a@example.com> 01200000000 +0000",
		"badEmail":                "author A <a<@example.com> 1200000000 +0000",
		"badName":                 "author A> <a@example.com> 1200000000 +0000",
		"missingEmail":            "author A a@example.com 1200000000 +0000",
		"missingNameBeforeEmail":  "author <a@example.com> 1200000000 +0000",
		"missingSpaceBeforeDate":  "author A <a@example.com>1200000000 +0000",
		"missingSpaceBeforeEmail": "author A<a@example.com> 1200000000 +0000",
		"multipleAuthors":         "author " + fine + "\nauthor B <b@example.com> 1200000000 +0000",
	} {
		old := f.object(t, "commit", "tree "+padded+"\n"+people+"\ncommitter "+fine+"\n\n"+name+"\n")
		head := gitIn(t, f.remote, nil, "commit-tree", f.head+"^{tree}", "-p", old, "-m", "on top")
		gitIn(t, f.remote, nil, "update-ref", "refs/heads/old", head)
		if err := f.gateway.Fetch(t.Context(), f.repo, "", "old"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := f.gateway.File(t.Context(), f.repo, old, "dir/a.txt"); err != nil || string(got) != "a\n" {
			t.Errorf("%s: File = %q, %v", name, got, err)
		}
		if log, err := f.gateway.Subjects(t.Context(), f.repo, head, 9); err != nil || len(log) != 2 {
			t.Errorf("%s: Subjects = %d, %v; want 2", name, len(log), err)
		}
	}
	tag := f.object(t, "tag", "object "+f.head+"\ntype commit\ntag v0.1\n\nwithout a tagger\n")
	gitIn(t, f.remote, nil, "update-ref", "refs/tags/v0.1", tag)
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "refs/tags/v0.1"); err != nil {
		t.Errorf("a tag without a tagger: %v", err)
	}
	// What is built on such a tree holds what was changed and nothing else.
	old := f.object(t, "commit", "tree "+padded+"\nauthor "+fine+"\ncommitter "+fine+"\n\nold\n")
	gitIn(t, f.remote, nil, "update-ref", "refs/heads/old", old)
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "old"); err != nil {
		t.Fatal(err)
	}
	diff, err := f.gateway.Diff(t.Context(), f.repo, old, f.mustCommit(t, change(old, "dir/a.txt", "b\n")))
	if err != nil || strings.Count(diff, "diff --git") != 1 {
		t.Errorf("Diff = %q, %v; want one file", diff, err)
	}
}

// A clone on this machine may have been cut short itself: what it has is taken.
func TestShallowSource(t *testing.T) {
	f := newFixture(t, sources)
	head := f.commitTo(t, "main", map[string]string{"later.txt": "x"})
	shallow := f.repo
	shallow.ID, shallow.CloneURL = 8, filepath.Join(openDir(t), "shallow.git")
	gitIn(t, "/", nil, "clone", "-q", "--bare", "--depth=1", "file://"+f.remote, shallow.CloneURL)
	if err := f.gateway.Fetch(t.Context(), shallow, "", "main"); err != nil {
		t.Fatal(err)
	}
	if sha, err := f.gateway.Resolve(t.Context(), shallow, "main"); err != nil || sha != head {
		t.Errorf("Resolve = %s, %v; want %s", sha, err, head)
	}
	if log, err := f.gateway.Subjects(t.Context(), shallow, head, 9); err != nil || len(log) != 1 {
		t.Errorf("Subjects = %d, %v; want the one that it has", len(log), err)
	}
	sha, err := f.gateway.Commit(t.Context(), shallow, change(head, "pkg/a.go", "package a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.gateway.Push(t.Context(), shallow, "", workspace.PushOptions{Branch: "forge/issue-1", SHA: sha}); err != nil {
		t.Error(err)
	}
}

// Covers S14: objects that git's checks refuse do not get into the mirror.
func TestHostileTrees(t *testing.T) {
	f := newFixture(t, sources)
	blob := gitIn(t, f.remote, []string{"STDIN=x"}, "hash-object", "-w", "--stdin")
	for i, name := range []string{".git", ".GIT", ".git ", "git~1", "..", ".", ".g\u200cit", ".git::$INDEX_ALLOCATION", ".gitmodules"} {
		mode := "100644"
		switch name {
		case ".gitmodules":
			mode = "120000"
		case ".git":
			mode = "0100644" // an old form does not hide it
		}
		tree := f.object(t, "tree", treeRow(t, mode, name, blob))
		commit := gitIn(t, f.remote, nil, "commit-tree", tree, "-m", "evil")
		branch := fmt.Sprintf("evil-%d", i)
		gitIn(t, f.remote, nil, "update-ref", "refs/heads/"+branch, commit)
		if err := f.gateway.Fetch(t.Context(), f.repo, "", branch); err == nil {
			t.Errorf("a tree with %q was fetched", name)
		} else if !strings.Contains(err.Error(), "git's checks refuse: error: object ") {
			t.Errorf("a tree with %q: %v; want what git says of it", name, err)
		}
		if _, err := f.gateway.Resolve(t.Context(), f.repo, branch); err == nil {
			t.Errorf("a tree with %q is in the mirror", name)
		}
	}
}

// Covers S17: over HTTP, the token goes to the one host, and is told nowhere.
func TestToken(t *testing.T) {
	const token = "ghs_S3cretT0kenValue"
	backend := filepath.Join(gitIn(t, "/", nil, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git-http-backend: apt-get install git")
	}
	f := newFixture(t, sources)
	gitIn(t, f.remote, nil, "config", "http.receivepack", "true")
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.remote), "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"PATH"}}
	var mu sync.Mutex
	status := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked for %s, with %q", r.URL, r.Header)
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		code := status
		mu.Unlock()
		user, pass, _ := r.BasicAuth()
		switch {
		case code == http.StatusFound:
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
		case code != 0:
			http.Error(w, "no, "+token, code)
		case user != "x-access-token" || pass != token:
			http.Error(w, "who?", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	dir := openDir(t)
	g, err := NewGateway(GatewayOptions{Dir: dir, Hosts: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	repo := f.repo
	repo.CloneURL = server.URL + "/remote.git"
	if err := g.Fetch(t.Context(), repo, token, "main"); err != nil {
		t.Fatal(err)
	}
	sha, err := g.Commit(t.Context(), repo, change(f.head, "x", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Push(t.Context(), repo, token, workspace.PushOptions{Branch: "forge/x", SHA: sha}); err != nil {
		t.Fatal(err)
	}
	secrets := []string{token, base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))}
	for code, want := range map[int]string{401: "token was refused", 403: "token was refused", 404: "no such repository", 302: "redirects", 500: "500"} {
		mu.Lock()
		status = code
		mu.Unlock()
		err := g.Fetch(t.Context(), repo, token, "main")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: %v; want %q", code, err, want)
		}
		for _, secret := range secrets {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("status %d: the error tells the token: %v", code, err)
			}
		}
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, secret := range secrets {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s holds the token", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// A server may say what it was sent, and git says what a server said.
	_, err = g.git(repo).run(t.Context(), gitCall{args: []string{"cat-file", "-t", "no-" + secrets[0] + "-" + secrets[1]}, token: token})
	if said, ok := err.(*gitError); !ok || !strings.Contains(said.stderr+said.stdout, "[redacted]") || strings.Contains(said.stderr+said.stdout, token) ||
		strings.Contains(said.stderr+said.stdout, secrets[1]) {
		t.Errorf("what git said: %v", err)
	}
	cmd := g.git(repo).command(context.Background(), gitCall{args: []string{"fetch"}, token: token})
	for _, secret := range secrets {
		if strings.Contains(strings.Join(cmd.Args, " "), secret) {
			t.Error("the token is in git's arguments")
		}
	}
}

// Many files are read with one process; what is not there is left out.
func TestReadFiles(t *testing.T) {
	files := map[string]string{"empty": "", "a b/ö.txt": "x\n"}
	var names []string
	for i := range 300 {
		name := fmt.Sprintf("m%d/go.mod", i)
		files[name] = fmt.Sprintf("module m%d\n", i)
		names = append(names, name)
	}
	f := newFixture(t, files)
	got, err := f.gateway.ReadFiles(t.Context(), f.repo, f.head, append(names, "empty", "a b/ö.txt", "none", "../x", "m1"))
	if err != nil || len(got) != 302 || string(got["m299/go.mod"]) != "module m299\n" || string(got["a b/ö.txt"]) != "x\n" || got["empty"] == nil {
		t.Errorf("ReadFiles = %d files, %v", len(got), err)
	}
	if _, err := f.gateway.ReadFiles(t.Context(), f.repo, "--help", names); err == nil {
		t.Error("ReadFiles at --help: no error")
	}
}
