package sandbox

import (
	"fmt"
	"testing"

	"forge/pipeline/workspace"

	"github.com/google/go-cmp/cmp"
)

// A merge says whose commits it was in conflict with, and how many of their lines it keeps:
// those of both sides, lines that a later commit took away aside, and Forge's own never.
func TestMet(t *testing.T) {
	f := newFixture(t, map[string]string{"a[1].js": "base\n", "a1.js": "base\n"})
	g := f.gateway
	by := func(name, parent, message, content string) string {
		o := change(parent, "a[1].js", content)
		o.Changes = append(o.Changes, workspace.Change{Path: "a1.js", Content: []byte("of " + message + "\n")}) // not the path in conflict
		o.Author, o.Email, o.Message = name, name+"@example.com", message
		return f.mustCommit(t, o)
	}
	ours := by("forge[bot]", f.head, "built", "base\nmodule\n")
	ours = by("bob", ours, "by bob", "base\nmodule\nbob\n")
	theirs := by("ann", f.head, "first", "base\none\ntwo\ngone\n")
	theirs = by("ann", theirs, "second", "base\none\ntwo\nthree\n")
	result := by("forge[bot]", ours, "merged", "base\nmodule\nbob\n  one\n")
	got, err := g.Met(t.Context(), f.repo, ours, theirs, result, []string{"a[1].js"}, func(name, _ string) bool { return name == "forge[bot]" })
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range got {
		said = append(said, fmt.Sprintf("%s %s by %s: %d of %d", m.Path, m.Subject, m.By, m.Kept, m.Lines))
	}
	want := []string{"a[1].js second by ann: 0 of 1", "a[1].js first by ann: 1 of 2", "a[1].js by bob by bob: 1 of 1"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}
