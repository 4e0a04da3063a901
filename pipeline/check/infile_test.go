package check

import (
	"slices"
	"strings"
	"testing"
)

// Covers T8: tests that stand in files of the product are run as they stood, and what the
// change edits of them is named.
func TestInsideProduct(t *testing.T) { judgeAll(t, "inside") }

// Covers T8: a test that the change makes fail does not pass by a second try.
func TestUnsteady(t *testing.T) { judgeAll(t, "unsteady") }

// judgeAll judges all cases of a directory.
func judgeAll(t *testing.T, dir string) {
	needAll(t)
	c := readCorpus(t, dir)
	for _, k := range c.cases {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			k.patch = gitCorpus(t, nil, "--git-dir="+c.dir, "diff-tree", "-r", "-p", "-M", "--full-index", k.gitBase, k.gitHead)
			r := c.judge(t, k)
			lines := told(&r)
			for _, want := range k.want {
				if want != "ok" && !says(lines, want) {
					t.Errorf("%s\nwant %q; the report says:\n%s", k.why, want, strings.Join(lines, "\n"))
				}
			}
			if r.OK() != slices.Contains(k.want, "ok") {
				t.Errorf("%s\nOK %v:\n%s", k.why, r.OK(), strings.Join(lines, "\n"))
			}
		})
	}
}
