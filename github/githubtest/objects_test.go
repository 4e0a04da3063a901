package githubtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is written here is sound to git, and git answers the same about it: what a commit
// holds, which are before it and in what order, and where two of them part.
func TestObjectsAreGits(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := New(Options{Dir: t.TempDir(), Manifest: manifest(t), Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddRepo("acme", "shop", map[string]string{"a/b/c.txt": "1\n", "run.sh": "#!/bin/sh\n", "a.b": "x"}); err != nil {
		t.Fatal(err)
	}
	r := s.repos["acme/shop"]
	git := func(args ...string) string {
		t.Helper()
		out, err := s.git(r, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	shas := []string{r.refs["refs/heads/main"]}
	paths := []string{"a", "a/b", "a/b/c.txt", "a/d.txt", "a.b", "a-b/x", "run.sh", "z/y/x"}
	for i := range 30 {
		at = at.Add(time.Duration(rnd.IntN(2)) * time.Second) // many at the same time
		c := commitRequest{parent: shas[rnd.IntN(len(shas))], message: fmt.Sprintf("Change %d\n\nwhy\n", i), author: r.owner, files: map[string]*string{}}
		if rnd.IntN(3) == 0 {
			c.merged = shas[rnd.IntN(len(shas))]
		}
		text := fmt.Sprint(i)
		c.files[paths[rnd.IntN(len(paths))]] = []*string{&text, &text, nil}[rnd.IntN(3)]
		sha, err := s.commit(r, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.writeRef(r, fmt.Sprintf("refs/heads/topic/%d", i), sha, ""); err != nil {
			t.Fatal(err)
		}
		shas = append(shas, sha)
	}
	git("fsck", "--full", "--strict")
	refs, err := s.readRefs(r)
	if err != nil || len(refs) != 31 || len(strings.Split(git("for-each-ref"), "\n")) != 31 {
		t.Errorf("%d refs, %v", len(refs), err)
	}
	for range 12 {
		a, b := shas[rnd.IntN(len(shas))], shas[rnd.IntN(len(shas))]
		list, err := s.commits(r, a, b)
		var ours []string
		for _, c := range list {
			ours = append(ours, c.SHA)
		}
		if theirs := strings.Fields(git("rev-list", a, "^"+b)); err != nil || !slices.Equal(ours, theirs) {
			t.Errorf("commits of %.7s without %.7s: %v, %v; git lists %v", a, b, ours, err, theirs)
		}
		bases := strings.Fields(git("merge-base", "--all", a, b))
		if base := s.mergeBase(r, a, b); !slices.Contains(bases, base) || s.isAncestor(r, a, b) != slices.Contains(bases, a) {
			t.Errorf("%.7s and %.7s part at %s, one before the other: %v; git says %v", a, b, base, s.isAncestor(r, a, b), bases)
		}
		one, err1 := s.commitAt(r, a)
		other, err2 := s.commitAt(r, b)
		files, err3 := s.changedFiles(r, one.Tree, other.Tree)
		var changed []string
		for name, how := range files {
			changed = append(changed, string(how)+"\t"+name)
		}
		theirs := strings.FieldsFunc(git("diff-tree", "-r", "--name-status", "--no-renames", a, b), func(c rune) bool { return c == '\n' })
		slices.Sort(changed)
		slices.Sort(theirs)
		if err1 != nil || err2 != nil || err3 != nil || !slices.Equal(changed, theirs) {
			t.Errorf("from %.7s to %.7s: %v, git says %v (%v, %v, %v)", a, b, changed, theirs, err1, err2, err3)
		}
		said := fmt.Sprintf("%s|%s|%s|%s|%s|%s", one.Author, one.AuthorMail, one.AuthorDate, one.Committer, one.CommitDat, strings.Join(one.Parents, " "))
		if want := git("log", "-1", "--date=format:%Y-%m-%dT%H:%M:%SZ", "--format=%an|%ae|%ad|%cn|%cd|%P", a); said != want {
			t.Errorf("commit %s, git says %s", said, want)
		}
	}
	// What git has packed is read, too, and a branch may take the place of a folder.
	git("repack", "-adq")
	r.commits.Clear()
	if c, err := s.commitAt(r, shas[3]); err != nil || c.Message != "Change 2\n\nwhy" {
		t.Errorf("of a pack: %+v, %v", c, err)
	}
	for i := range 30 {
		if err := s.writeRef(r, fmt.Sprintf("refs/heads/topic/%d", i), zeroSHA, shas[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.writeRef(r, "refs/heads/topic", shas[1], ""); err != nil {
		t.Error(err)
	}
	if err := s.writeRef(r, "refs/heads/topic/1", shas[1], ""); err == nil {
		t.Error("a branch below another was made")
	}
	if err := s.writeRef(r, "refs/heads/topic", shas[2], shas[3]); err == nil {
		t.Error("a branch was moved that is not where it was thought to be")
	}
	if out := git("for-each-ref", "--format=%(refname) %(objectname)"); out != "refs/heads/main "+shas[0]+"\nrefs/heads/topic "+shas[1] {
		t.Errorf("refs: %s", out)
	}
}
