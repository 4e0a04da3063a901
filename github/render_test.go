package github

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "render", name+".md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func testView(r *pipeline.Run) view {
	return view{r: r, web: "https://github.com", host: "github.com", slug: "forge", views: Views{Report: pipeline.Report, Scratchpad: pipeline.Scratchpad}}
}

// Covers T1, T7, V1: what a person sees at each moment of a run.
func TestRenderStatus(t *testing.T) {
	pull := &pipeline.PullRef{Number: 8, Node: "PR_8", URL: "https://github.com/octo/repo/pull/8"}
	for _, c := range []struct {
		name string
		tell func(*story)
	}{
		{"started", func(s *story) {}},
		{"planned", (*story).plan},
		{"reviewing", func(s *story) {
			s.plan()
			s.implement(1, 0, 1, "Retries.")
			s.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 2}})
		}},
		{"bounced", (*story).bounced},
		{"fault", func(s *story) {
			s.plan()
			ref := &pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1, Mode: pipeline.ModeFresh}
			s.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: ref})
			s.add(pipeline.EventPhaseFailed, pipeline.Data{Phase: ref, Fault: &pipeline.Fault{Class: pipeline.FaultProvider, Message: "the model's server answers 529: overloaded"}})
		}},
		{"waiting", func(s *story) { s.bounced(); s.gate() }},
		{"stopped", func(s *story) { s.plan(); s.add(pipeline.EventRunStopped, pipeline.Data{}) }},
		{"verified", func(s *story) {
			s.bounced()
			s.implement(2, 1, 2, "Count upwards; stop with the context.")
			s.review(2, 2, true, firstFindings()[0])
			s.tests(2, 2)
			s.verified()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.tell(s)
			if s.run.Head != s.run.Base {
				s.run.Published.Pull, s.run.Published.Head = pull, s.run.Head
			}
			golden(t, "status-"+c.name, testView(s.run).status())
			golden(t, "pull-"+c.name, testView(s.run).pullTitle()+"\n\n"+testView(s.run).pullBody())
		})
	}
}

func TestRenderReview(t *testing.T) {
	s := newStory(t)
	s.bounced()
	p, err := parsePatch(testDiff)
	if err != nil {
		t.Fatal(err)
	}
	it := &s.run.Iterations[0]
	it.Review.NotReviewed = []pipeline.Skipped{{Path: "big.json", Why: "over 1 MB"}}
	it.Review.Held = []pipeline.HeldBack{{Finding: pipeline.Finding{Category: "style", File: "calc_test.go", Line: 3, Message: "no doc comment"}, Why: "14 of 16 like it were dismissed: style in tests"}}
	d := testView(s.run).review(it, it.Review.Findings, p)
	var b strings.Builder
	b.WriteString(d.body)
	for _, c := range d.comments {
		b.WriteString("\n==== " + c.GetPath() + "\n" + c.GetBody())
	}
	golden(t, "review", b.String())
	if len(d.comments) != 2 || len(d.summed) != 1 {
		t.Fatalf("review: %d comments on lines and %d in the text, want 2 and 1", len(d.comments), len(d.summed))
	}
	if c := d.comments[0]; c.GetLine() != 4 || c.StartLine != nil || c.GetSide() != "RIGHT" {
		t.Errorf("comment of one line: %v", c)
	}
	if c := d.comments[1]; c.GetLine() != 7 || c.GetStartLine() != 5 || c.GetStartSide() != "RIGHT" {
		t.Errorf("comment of a range: %v", c)
	}
}

// Covers T7.
func TestRenderGate(t *testing.T) {
	s := newStory(t)
	s.bounced()
	s.gate()
	golden(t, "gate-open", testView(s.run).gate(&s.run.Gates[0]))
	s.answer("history", 0, "")
	golden(t, "history", testView(s.run).history("history/1"))
	s.answer("continue", 3, "Try a channel <b>instead</b>.")
	golden(t, "gate-settled", testView(s.run).gate(&s.run.Gates[0]))
}

func TestRenderCheck(t *testing.T) {
	for _, c := range []struct {
		name       string
		tell       func(*story)
		conclusion string
	}{
		{"running", func(s *story) { s.plan(); s.implement(1, 0, 1, "x") }, ""},
		{"bounced", (*story).bounced, "failure"},
		{"waiting", func(s *story) { s.bounced(); s.gate() }, "action_required"},
		{"accepted", func(s *story) { s.bounced(); s.gate(); s.add(pipeline.EventRunAccepted, pipeline.Data{}) }, "neutral"},
		{"cancelled", func(s *story) { s.bounced(); s.add(pipeline.EventRunCancelled, pipeline.Data{}) }, "cancelled"},
		{"failed", func(s *story) { s.bounced(); s.add(pipeline.EventRunFailed, pipeline.Data{}) }, "failure"},
		{"skipped", func(s *story) { s.bounced(); s.add(pipeline.EventRunSkipped, pipeline.Data{}) }, "neutral"},
		{"stopped", func(s *story) { s.bounced(); s.add(pipeline.EventRunStopped, pipeline.Data{}) }, "neutral"},
		{"verified", func(s *story) {
			s.plan()
			s.implement(1, 0, 1, "x")
			s.review(1, 1, true)
			s.tests(1, 1)
			s.verified()
		}, "success"},
		{"verified without tests of this head is not green", func(s *story) { s.bounced(); s.verified() }, "neutral"},
	} {
		s := newStory(t)
		c.tell(s)
		if got := testView(s.run).check(); got.conclusion != c.conclusion || (got.status == "completed") != (c.conclusion != "") {
			t.Errorf("check of %s: %s %q, want %q", c.name, got.status, got.conclusion, c.conclusion)
		}
	}
}
