package agent

import (
	"cmp"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/agent/change"
)

// What has no place in the code, or one that is not there, is fixed by a changed file that
// the ruling names, not by just any commit.
func TestFixedNowhere(t *testing.T) {
	t.Parallel()
	patch := change.Read("diff --git a/sum.py b/sum.py\n--- a/sum.py\n+++ b/sum.py\n@@ -1,2 +1,2 @@\n def total(a, b):\n-    return a\n+    return a + b\n")
	now := func(file string) (string, bool) {
		return "def total(a, b):\n    return a + b\n", file == "sum.py"
	}
	for _, tc := range []struct {
		file     string
		line     int
		severity pipeline.Severity
		why      string
		fixed    bool
		message  string
	}{
		{"nosuch.py", 3, pipeline.SeverityError, "it is mended", false, ""},
		{"nosuch.py", 3, pipeline.SeverityError, "sum.py:2 adds them", true, ""},
		{"sum.py", 9999, pipeline.SeverityError, "it is mended", false, ""},
		{"sum.py", 9999, pipeline.SeverityError, "see `sum.py`", true, ""},
		{"sum.py", 2, pipeline.SeverityError, "it is mended", true, ""},
		{"", 0, pipeline.SeverityCritical, "the changelog has it", false, ""},
		{"", 0, pipeline.SeverityCritical, "sum.py says so", true, ""},
		{"", 0, pipeline.SeverityCritical, "it is mended", true, "sum.py has no docstring"},
		{"", 0, pipeline.SeverityInfo, "it is mended", true, ""},
	} {
		f := &pipeline.Finding{Severity: tc.severity, Category: pipeline.CategoryCorrectness, Message: cmp.Or(tc.message, "wrong"), File: tc.file, Line: tc.line, Fingerprint: "0123456789"}
		c := &claim{id: "F1", issue: &pipeline.Issue{Finding: f}, since: true, code: true, files: []string{"sum.py"}}
		if tc.file != "" {
			c.outcome = patch.Follow(change.Place{File: tc.file, Line: tc.line}, now)
		}
		r, problem := c.rule("fixed", tc.why)
		if fixed := r.Verdict == pipeline.VerdictFixed; fixed != tc.fixed || fixed != (problem == "") || !fixed && !strings.Contains(problem, "has no place in the code") {
			t.Errorf("%s:%d, %q: %s, %q", tc.file, tc.line, tc.why, r.Verdict, problem)
		}
	}
}
