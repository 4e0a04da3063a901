package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/github/render/rendertest"
	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".md")
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
		t.Fatalf("%v: -update writes what is new", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func testView(r *pipeline.Run) Renderer {
	return Renderer{Run: r, Web: "https://github.com", Host: "github.com", Slug: "forge", Label: "forge"}
}

// Covers T1, T7, V1: what a person sees at each moment of a run.
func TestRenderStatus(t *testing.T) {
	t.Parallel()
	pull := &pipeline.PullRef{Number: 8, Node: "PR_8", URL: "https://github.com/octo/repo/pull/8"}
	for _, c := range []struct {
		name string
		tell func(*rendertest.Story)
	}{
		{"started", func(s *rendertest.Story) {}},
		{"planned", (*rendertest.Story).Plan},
		{"reviewing", func(s *rendertest.Story) {
			s.Plan()
			s.Implement(1, 0, 1, "Retries.")
			s.Add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 2}})
		}},
		{"bounced", (*rendertest.Story).Bounced},
		{"fault", func(s *rendertest.Story) {
			s.Plan()
			ref := &pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1, Mode: pipeline.ModeFresh}
			s.Add(pipeline.EventPhaseEntered, pipeline.Data{Phase: ref})
			s.Add(pipeline.EventPhaseFailed, pipeline.Data{Phase: ref,
				Fault: &pipeline.Fault{Class: pipeline.FaultProvider, Message: "the model's server answers 529: overloaded"}})
		}},
		{"waiting", func(s *rendertest.Story) { s.Bounced(); s.Gate() }},
		{"stopped", func(s *rendertest.Story) { s.Plan(); s.Add(pipeline.EventRunStopped, pipeline.Data{}) }},
		{"verified", func(s *rendertest.Story) {
			s.Bounced()
			s.Implement(2, 1, 2, "Count upwards; stop with the context.")
			s.Review(2, 2, true, rendertest.FirstFindings()[0])
			s.Tests(2, 2)
			s.Verified()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := rendertest.New(t)
			c.tell(s)
			if s.Run.Head != s.Run.Base {
				s.Run.Published.Pull, s.Run.Published.Head = pull, s.Run.Head
			}
			golden(t, "status-"+c.name, testView(s.Run).Status())
			golden(t, "pull-"+c.name, testView(s.Run).PullTitle()+"\n\n"+testView(s.Run).PullBody())
		})
	}
}

func TestRenderReview(t *testing.T) {
	t.Parallel()
	s := rendertest.New(t)
	s.Bounced()
	p, err := ParsePatch(rendertest.Diff)
	if err != nil {
		t.Fatal(err)
	}
	it := &s.Run.Iterations[0]
	it.Review.NotReviewed = []pipeline.Skipped{{Path: "big.json", Why: "over 1 MB"}}
	it.Review.Suppressed = []pipeline.SuppressedFinding{
		{Finding: pipeline.Finding{Category: "style", File: "calc_test.go", Line: 3, Message: "no doc comment"},
			Why: "14 of 16 like it were dismissed: style in tests"}}
	d := testView(s.Run).Review(it, it.Review.Findings, p)
	var b strings.Builder
	b.WriteString(d.Body)
	for _, c := range d.Comments {
		b.WriteString("\n==== " + c.GetPath() + "\n" + c.GetBody())
	}
	golden(t, "review", b.String())
	if len(d.Comments) != 2 || len(d.Summed) != 1 {
		t.Fatalf("review: %d comments on lines and %d in the text, want 2 and 1", len(d.Comments), len(d.Summed))
	}
	if c := d.Comments[0]; c.GetLine() != 4 || c.StartLine != nil || c.GetSide() != "RIGHT" {
		t.Errorf("comment of one line: %v", c)
	}
	if c := d.Comments[1]; c.GetLine() != 7 || c.GetStartLine() != 5 || c.GetStartSide() != "RIGHT" {
		t.Errorf("comment of a range: %v", c)
	}
}

// Covers T7.
func TestRenderGate(t *testing.T) {
	t.Parallel()
	s := rendertest.New(t)
	s.Bounced()
	s.Gate()
	golden(t, "gate-open", testView(s.Run).Gate(&s.Run.Gates[0]))
	s.Answer("history", 0, "")
	golden(t, "history", testView(s.Run).History("history/1"))
	s.Answer("continue", 3, "Try a channel <b>instead</b>.")
	golden(t, "gate-settled", testView(s.Run).Gate(&s.Run.Gates[0]))
}

func TestRenderCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		tell       func(*rendertest.Story)
		conclusion string
	}{
		{"running", func(s *rendertest.Story) { s.Plan(); s.Implement(1, 0, 1, "x") }, ""},
		{"bounced", (*rendertest.Story).Bounced, "failure"},
		{"waiting", func(s *rendertest.Story) { s.Bounced(); s.Gate() }, "action_required"},
		{"accepted", func(s *rendertest.Story) { s.Bounced(); s.Gate(); s.Add(pipeline.EventRunAccepted, pipeline.Data{}) }, "neutral"},
		{"cancelled", func(s *rendertest.Story) { s.Bounced(); s.Add(pipeline.EventRunCancelled, pipeline.Data{}) }, "cancelled"},
		{"failed", func(s *rendertest.Story) { s.Bounced(); s.Add(pipeline.EventRunFailed, pipeline.Data{}) }, "failure"},
		{"skipped", func(s *rendertest.Story) { s.Bounced(); s.Add(pipeline.EventRunSkipped, pipeline.Data{}) }, "neutral"},
		{"stopped", func(s *rendertest.Story) { s.Bounced(); s.Add(pipeline.EventRunStopped, pipeline.Data{}) }, "neutral"},
		{"verified", func(s *rendertest.Story) {
			s.Plan()
			s.Implement(1, 0, 1, "x")
			s.Review(1, 1, true)
			s.Tests(1, 1)
			s.Verified()
		}, "success"},
		{"tested, and read by nobody", func(s *rendertest.Story) {
			s.Plan()
			s.Implement(1, 0, 1, "x")
			s.Phase(pipeline.PhaseReview, 1, pipeline.Data{Review: &pipeline.Review{Head: s.Run.Head, NotReviewed: []pipeline.Skipped{{Path: "a.py", Why: "it is so"}}}})
			s.Tests(1, 1)
			s.Verified()
			if v := testView(s.Run); !strings.Contains(s.Run.Ended, "nobody has reviewed it") || !strings.Contains(v.PullBody(), "**Tested, not reviewed**") {
				s.T.Errorf("it ended with %q, and the pull request says\n%s", s.Run.Ended, v.PullBody())
			}
		}, "neutral"},
		{"verified without tests of this head is not green", func(s *rendertest.Story) { s.Bounced(); s.Verified() }, "neutral"},
	} {
		s := rendertest.New(t)
		c.tell(s)
		if got := testView(s.Run).Check(); got.Conclusion != c.conclusion || (got.Status == "completed") != (c.conclusion != "") {
			t.Errorf("check of %s: %s %q, want %q", c.name, got.Status, got.Conclusion, c.conclusion)
		}
	}
}
