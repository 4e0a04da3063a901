package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
)

// Covers V1, V8: what stays open from before, though the review does not list it again,
// stands in the report of the iteration, with why, and is counted; reports of earlier
// iterations keep their counts.
func TestReportOfWhatStaysOpen(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), Task{Issue: 1})
	err := p.Play("plan ok\n" +
		"implement a\nreview ruled error a, error b\n" +
		"implement b\nreview ruled ok; unchanged a; fixed b\n" +
		"implement c\nreview ruled ok; open a: it rounds down\n" +
		"human continue 2\nimplement d\nreview ruled ok; fixed a\ntest TestA 0.1\n" +
		"implement e\nreview ruled error b\nhuman continue 2\nimplement f\nreview ruled ok; fixed b\ntest ok\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{
		{"- **error** (correctness) at a.go:1: a\n", "- **error** (correctness) at a.go:2: b\n", "FAILED (iteration 1 of 7): 2 errors"},
		{"Since iteration 1: 1 fixed, 1 still there, 0 new.", "- **error** (correctness, still there) at a.go:1: a\n",
			"called fixed, but the code at its place is as it was", "FAILED (iteration 2 of 7): 1 error"},
		{"Since iteration 2: 0 fixed, 1 still there, 0 new.", "- **error** (correctness, still there) at a.go:1: a\n", "the reviewer: it rounds down"},
		{"Since iteration 3: 1 fixed, 0 still there, 1 new.", "FAILED (iteration 4 of 7): 1 failing test"},
		{"Since iteration 4: 0 fixed, 0 still there, 0 new, 1 seen before.", "FAILED (iteration 5 of 7): 1 error"},
		{"Since iteration 5: 2 fixed, 0 still there, 0 new.", "PASSED"},
	} {
		report := p.Run.Report(i + 1)
		for _, words := range want {
			if !strings.Contains(report, words) {
				t.Errorf("the report of iteration %d does not say %q:\n%s", i+1, words, report)
			}
		}
		if n := strings.Count(report, " at a.go:"); n != []int{2, 1, 1, 0, 1, 0}[i] {
			t.Errorf("the report of iteration %d has %d findings:\n%s", i+1, n, report)
		}
	}
}

// Covers V8: where people have pushed to a module's branch, its report names what that
// changes besides the module's own paths, and whose it is.
func TestReportOfStrays(t *testing.T) {
	t.Parallel()
	of := &module.Of{Module: module.Module{ID: "a", Paths: []string{"a/**"}}, Owners: map[string]string{"b/**": "b"}, Contract: []string{"b/api.go"}}
	r := &Run{Config: config.Default(), Part: of}
	r.Iterations = []Iteration{{Number: 1, Review: &Review{Reviewed: []string{"a/a.go", "b/b.go", "b/api.go", "go.sum"}}}}
	want := "- changed besides its own paths: `b/b.go` (of the module b), `b/api.go` (of the contract), `go.sum` (no module's)\n"
	for _, r.Foreign = range []bool{false, true} {
		if report := r.Report(1); strings.Contains(report, want) != r.Foreign || strings.Contains(report, "changed besides") != r.Foreign {
			t.Errorf("people have pushed to it: %v; the report:\n%s", r.Foreign, report)
		}
	}
}
