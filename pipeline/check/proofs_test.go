package check

import (
	"context"
	"slices"
	"testing"

	"forge/pipeline/config"
	"forge/pipeline/worktree"
)

// What was skipped is named where tests are named as proofs, and nowhere else.
func TestSkipsForProofs(t *testing.T) {
	open := func(_ context.Context, sha string) (Tree, error) {
		var log []string
		return &fakeTree{sha: sha, log: &log, answer: func(*fakeTree, string) (worktree.Result, error) {
			return worktree.Result{Stdout: []byte("TAP version 13\n1..2\nok 1 - a\nok 2 - b # SKIP no\n")}, nil
		}}, nil
	}
	for _, proofs := range [][]string{nil, {"a"}} {
		r, err := Verify(t.Context(), open, Options{Head: "H", Proofs: proofs, Config: config.Tests{Commands: []string{"sh run"}}})
		want := []string{"b"}
		if proofs == nil {
			want = nil
		}
		if err != nil || r.Skipped != 1 || !slices.Equal(r.Skips, want) {
			t.Errorf("proofs %q: skipped %d, named %q, %v; want %q", proofs, r.Skipped, r.Skips, err, want)
		}
	}
}
