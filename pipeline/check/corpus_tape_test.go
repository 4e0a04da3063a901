//go:build !e2e

package check

import (
	"context"
	"maps"
	"testing"
)

// openings opens work trees in memory, whose commands tapes answer.
func openings(all *testing.T, c *corpus) func(t *testing.T, k *corpusCase) Opener {
	return func(_ *testing.T, k *corpusCase) Opener {
		file, part := k.tape()
		tp := tapeOf(all, file, part, true)
		return func(_ context.Context, sha string) (Tree, error) {
			return &tapedTree{files: maps.Clone(c.of[sha]), of: c.of, commit: sha, tape: tp}, nil
		}
	}
}
