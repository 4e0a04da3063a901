package agent

import (
	"context"
	"testing"

	"forge/pipeline/agent/change"
)

// Covers T8: a second body under other build constraints is asked about where the first stands in a
// file that the change does not show; what is added beside it is not.
func TestPointsTwins(t *testing.T) {
	t.Parallel()
	const patch = "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,5 @@\n+//go:build !prod\n+\n // Package a adds.\n // It does.\n package a\n" +
		"diff --git a/b.go b/b.go\nnew file mode 100644\n--- /dev/null\n+++ b/b.go\n@@ -0,0 +1,5 @@\n+//go:build prod\n+\n+package a\n+\n+func "
	head := map[string]string{
		"a.go":      "//go:build !prod\n\n// Package a adds.\n// It does.\npackage a\n\nfunc Mul(a, b int) int { return a * b }\n\nfunc Add(a, b int) int { return a + b }\n",
		"a_test.go": "package a\n", "README.md": "",
	}
	now := func(name string) (string, bool) { s, ok := head[name]; return s, ok }
	for name, want := range map[string]string{"Add": "a.go:1", "Sub": ""} {
		line := name + "(a, b int) int { return a - b }\n"
		head["b.go"] = "//go:build prod\n\npackage a\n\nfunc " + line
		p := &phase{}
		p.job.Tree = []string{"README.md", "a.go", "a_test.go"}
		got := ""
		for _, q := range p.points(context.Background(), change.Read(patch+line), now) {
			got += q.At()
		}
		if got != want {
			t.Errorf("%s: asked at %q, want %q", name, got, want)
		}
	}
}
