package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a deployment brings is told by the main line: a merge stands for all that it
// merges, and a line is of the merge that brought it.
func TestShipped(t *testing.T) {
	f := newFixture(t, map[string]string{"a.go": "one\ntwo\nthree\n"})
	ctx, g := t.Context(), f.gateway
	before := f.head
	side := f.commitTo(t, "side", map[string]string{"a.go": "one\nTWO\nthree\n", "new name.go": "x\n"})
	direct := f.commitTo(t, "main", map[string]string{"b.go": "b\n"})
	// The side branch has the start for its parent, as those of pull requests have.
	git := func(args ...string) string {
		return gitIn(t, "/", nil, append([]string{"--git-dir=" + f.remote}, args...)...)
	}
	tree := git("rev-parse", side+"^{tree}")
	inner := git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", tree, "-p", before, "-m", "inner")
	both := git("merge-tree", "--write-tree", direct, inner)
	merge := git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", both, "-p", direct, "-p", inner, "-m",
		"Merge pull request #42 from x", "-m", "body \x02 here")
	git("update-ref", "refs/heads/main", merge)
	if err := g.Fetch(ctx, f.repo, "", "main"); err != nil {
		t.Fatal(err)
	}
	list, err := g.Shipped(ctx, f.repo, before, merge, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].SHA != merge || list[1].SHA != direct || !strings.HasPrefix(list[0].Message, "Merge pull request #42") {
		t.Fatalf("%+v", list)
	}
	if diff := cmp.Diff([]string{"b.go"}, list[1].Files); diff != "" {
		t.Error(diff)
	}
	if len(list[0].Files) < 2 || list[0].Files[0] != "a.go" {
		t.Errorf("files %q", list[0].Files)
	}
	if list, err := g.Shipped(ctx, f.repo, "", merge, 10); err != nil || len(list) != 1 {
		t.Errorf("without what was before: %+v, %v", list, err)
	}
	for _, tt := range []struct {
		path string
		line int
		want string
	}{{"a.go", 2, merge}, {"a.go", 1, before}, {"b.go", 1, direct}, {"a.go", 99, ""}, {"none.go", 1, ""}} {
		if got, err := g.Blame(ctx, f.repo, merge, tt.path, tt.line); err != nil || got != tt.want {
			t.Errorf("Blame(%s:%d) = %s, %v; want %s", tt.path, tt.line, got, err, tt.want)
		}
	}
	for _, bad := range []string{"--output=x", "HEAD", "../a"} {
		if _, err := g.Blame(ctx, f.repo, bad, "a.go", 1); err == nil {
			t.Errorf("Blame takes %q for a commit", bad)
		}
		if _, err := g.Shipped(ctx, f.repo, bad, merge, 1); err == nil {
			t.Errorf("Shipped takes %q for a commit", bad)
		}
	}
	if _, err := g.Blame(ctx, f.repo, merge, "../../etc/passwd", 1); err == nil {
		t.Error("Blame takes a path that leads out")
	}
}
