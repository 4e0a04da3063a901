package evaluate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is read of the answers is measured by what became of the comments; the half that
// is held out is so by the pull request alone. Covers H1.
func TestEvaluateThreads(t *testing.T) {
	t.Parallel()
	evaluate := func(content string) (string, error) {
		file := filepath.Join(t.TempDir(), "threads.jsonl")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return lab("threads", file)
	}
	got, err := evaluate(`{"repo": "o/r", "pr": 3, "label": "dismissed", "replies": [{"by": "author", "text": "Not a bug."}]}
{"repo": "o/r", "pr": 3, "label": "dismissed", "replies": [{"by": "author", "text": "Hm, the tree is sorted."}]}
{"repo": "o/r", "pr": 3, "label": "accepted", "replies": [{"by": "author", "text": "Not a bug."}, {"by": "author", "text": "Fixed."}]}
{"repo": "o/r", "pr": 1, "label": "later", "replies": [{"by": "author", "text": "Won't fix here: separate issue."}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"to choose by        3       1.00    0.50    0 of 1     1 of 2",
		"held out            1       0.00    0.00    0 of 0     0 of 0  0 of 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	const want = "thread 1 needs a repo (owner/name), a pr and a label (accepted, "
	if _, err := evaluate(`{"repo": "o/r", "pr": 1, "label": "done"}`); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a label that there is not: %v", err)
	}
}
