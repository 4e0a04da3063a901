package sandbox

import (
	"fmt"
	"forge/pipeline/workspace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// merges are the ways in which a pull request comes to its branch, as GitHub does them.
var merges = map[string]func(git func(...string) string){
	"merge": func(git func(...string) string) {
		git("merge", "-q", "--no-ff", "-m", "Merge pull request #7 from a/b", "pull")
	},
	"squash": func(git func(...string) string) {
		git("merge", "-q", "--squash", "pull")
		git("commit", "-qm", "Carts (#7)")
	},
	"rebase": func(git func(...string) string) { // with other committers and times than the pull request's own
		git("checkout", "-q", "-b", "moved", "pull")
		git("-c", "user.name=GitHub", "rebase", "-q", "--force-rebase", "main")
		git("checkout", "-q", "main")
		git("merge", "-q", "--ff-only", "moved")
	},
}

// A revert has the tree that git revert makes, however the pull request was merged, with
// commits of others after it; what cannot be taken back cleanly makes no commit.
func TestRevert(t *testing.T) {
	for name, merge := range merges {
		for _, commits := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s of %d", name, commits), func(t *testing.T) {
				f := newFixture(t, map[string]string{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "c.txt": "c\n", "old.txt": "old\nname\nof\nthis\n"})
				dir := t.TempDir()
				git := func(args ...string) string {
					return gitIn(t, dir, nil, append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"}, args...)...)
				}
				git("clone", "-q", f.remote, ".")
				write := func(path, text string) {
					if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					git("add", "-A")
				}
				git("checkout", "-q", "-b", "pull")
				for n := range commits {
					write(fmt.Sprintf("new%d.txt", n), "new\n")
					write("a.txt", strings.Replace("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "2", fmt.Sprintf("two %d", n), 1))
					if n == 1 {
						git("mv", "old.txt", "renamed.txt")
					}
					git("commit", "-qm", fmt.Sprintf("step %d", n))
				}
				head := git("rev-parse", "HEAD")
				git("checkout", "-q", "main")
				write("c.txt", "c\nby somebody else\n")
				git("commit", "-qm", "meanwhile")
				merge(git)
				merged := git("rev-parse", "HEAD")
				write("a.txt", strings.Replace(git("show", "HEAD:a.txt")+"\n", "8", "eight", 1))
				git("commit", "-qm", "later")
				later := git("rev-parse", "HEAD")
				git("push", "-q", "origin", "main", head+":refs/heads/pull")
				if err := f.gateway.Fetch(t.Context(), f.repo, "", "main", "pull"); err != nil {
					t.Fatal(err)
				}
				before, err := f.gateway.Landed(t.Context(), f.repo, head, merged)
				if err != nil {
					t.Fatal(err)
				}
				o := workspace.CommitOptions{Parent: later, Message: "Revert", Author: "a", Email: "a@b.c", Time: time.Unix(1, 0)}
				m, err := f.gateway.Revert(t.Context(), f.repo, before, merged, o)
				if err != nil || m.SHA == "" {
					t.Fatalf("%+v, %v", m, err)
				}
				switch {
				case name == "merge":
					git("revert", "--no-edit", "-m", "1", merged)
				case name == "squash":
					git("revert", "--no-edit", merged)
				default:
					git("revert", "--no-edit", fmt.Sprintf("%s~%d..%s", merged, commits, merged))
				}
				tree, parents, _, err := f.gateway.CommitAt(t.Context(), f.repo, m.SHA)
				if err != nil || tree != git("rev-parse", "HEAD^{tree}") || fmt.Sprint(parents) != fmt.Sprint([]string{later}) {
					t.Errorf("tree %s on %q, want %s: %v", tree, parents, git("rev-parse", "HEAD^{tree}"), err)
				}
				if again, err := f.gateway.Revert(t.Context(), f.repo, before, merged, o); err != nil || again.SHA != m.SHA {
					t.Errorf("again %+v, %v", again, err)
				}
				o.Parent = m.SHA
				if gone, err := f.gateway.Revert(t.Context(), f.repo, before, merged, o); err != nil || gone.SHA != m.SHA {
					t.Errorf("what was taken back already: %+v, %v", gone, err)
				}
				git("reset", "-q", "--hard", later)
				write("a.txt", strings.Replace(git("show", "HEAD:a.txt")+"\n", "two", "TWO", 1))
				git("commit", "-qm", "on top of it")
				o.Parent = git("rev-parse", "HEAD")
				git("push", "-q", "origin", "main")
				if err := f.gateway.Fetch(t.Context(), f.repo, "", "main"); err != nil {
					t.Fatal(err)
				}
				if m, err := f.gateway.Revert(t.Context(), f.repo, before, merged, o); err != nil || m.SHA != "" || fmt.Sprint(m.Conflicts) != "[a.txt]" {
					t.Errorf("with a conflict: %+v, %v", m, err)
				}
				files, err := f.gateway.Changed(t.Context(), f.repo, before, merged)
				if want := map[int]string{1: "[a.txt new0.txt]", 3: "[a.txt new0.txt new1.txt new2.txt old.txt renamed.txt]"}[commits]; err != nil ||
					fmt.Sprint(files) != want {
					t.Errorf("changed %q, want %s: %v", files, want, err)
				}
			})
		}
	}
}
