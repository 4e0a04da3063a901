package edit

import (
	"strings"
	"testing"
)

// Whatever a model writes is read: covers A1.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"```diff\n--- a/x.py\n+++ \n@@ -1 +1 @@\n-a\n+b\n```\n",
		"```\n   \n\tx = 1\n```\n",
		"```go\nfunc (",
		"<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
		"```python x.py\n@a(\n\n  # ...\nclass A:\n  def f(self):\n    pass\n```",
	} {
		f.Add("def a():\n    return 1\n", s)
	}
	f.Add("   \nx = 1\n", "```\nx = 2\n```")
	f.Fuzz(func(t *testing.T, file, answer string) {
		for _, b := range Read(answer, []string{"x.py", "dir/y.go"}) {
			if strings.Contains(b.Path, "..") || strings.HasPrefix(b.Path, "/") {
				t.Errorf("a block is for %q", b.Path)
			}
			Merge(file, b.Text, func(string) bool { return false })
			Add(file, b.Text)
		}
		Excerpt(file, Names(answer))
	})
}
