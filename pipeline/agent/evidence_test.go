package agent

import (
	"strings"
	"testing"

	"forge/pipeline"
)

// Covers B5, T6: what is named as evidence is looked for.
func TestShown(t *testing.T) {
	t.Parallel()
	files := map[string]string{"calc.go": "package calc\n\nfunc Sub() {}\n", "tests/test_calc.py": "def test_sub():\n    pass\n"}
	now := func(name string) (string, bool) {
		content, ok := files[name]
		return content, ok
	}
	p := &phase{}
	p.job.Run = &pipeline.Run{Baseline: &pipeline.TestReport{Names: []string{"example.com/calc.TestAdd"}}}
	p.job.Diff = "diff --git a/tests/test_calc.py b/tests/test_calc.py\n+++ b/tests/test_calc.py\n+def test_sub():\n+    return subtract_all(1)\n"
	for _, tt := range []struct {
		evidence, missing string
		some              bool
	}{
		{"calc.go:3", "", true},
		{"calc.go:9", "calc.go:9", false},
		{"see calc.go", "", true},
		{"nowhere.py:77", "nowhere.py:77", false},
		{"test_calc.py has it", "", true},
		{"TestAdd, case 150", "", true},
		{"test_sub and test_none", "test_none", true},
		{"TestNowhere covers it", "TestNowhere", false},
		{"`subtract_all` does it", "", true},
		{"it works", "", false},
		{"I have looked at it closely.", "", false},
	} {
		missing, some := p.shown(tt.evidence, now)
		if got := strings.Join(missing, ", "); got != tt.missing || some != tt.some {
			t.Errorf("shown(%q) = %q, %v, want %q, %v", tt.evidence, got, some, tt.missing, tt.some)
		}
	}
}

// Covers B5, T6: what was there before the change, and is untouched by it, shows nothing of
// what the change is for; what is to stay as it was it does show.
func TestWasSo(t *testing.T) {
	t.Parallel()
	p := &phase{}
	p.job.Run = &pipeline.Run{Baseline: &pipeline.TestReport{Names: []string{"example.com/calc.TestAdd", "tests/test_calc.py::test_add"}},
		Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "Sub subtracts"}, {ID: "AC2", Text: "Add still adds"}}}}
	p.job.Diff = "diff --git a/calc.go b/calc.go\n+++ b/calc.go\n@@ -1 +1,2 @@ func Mul\n+func Sub(a, b int) int { return a - b }\n"
	for _, tt := range []struct {
		id, evidence string
		want         bool
	}{
		{"AC1", "TestAdd passes", true},
		{"AC1", "tests/test_calc.py::test_add", true},
		{"AC1", "other.go:12", true},
		{"AC1", "calc.go:2", false},
		{"AC1", "TestAdd calls Sub", false}, // what is named besides is new
		{"AC1", "TestSub", false},
		{"AC1", "I have looked at it", false},
		{"AC2", "TestAdd passes", false},
	} {
		if got := p.wasSo(&pipeline.Compliance{Criterion: tt.id, Met: true, Evidence: tt.evidence}); got != tt.want {
			t.Errorf("%s by %q was so: %v, want %v", tt.id, tt.evidence, got, tt.want)
		}
	}
}
