package phase

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/agent"
)

// says is a reviewer that says the same each time.
type says struct {
	review pipeline.Review
	err    error
}

func (s says) Review(context.Context, agent.Job) (pipeline.Review, pipeline.Usage, error) {
	return s.review, pipeline.Usage{}, s.err
}

func finding(id string) []pipeline.Finding { return []pipeline.Finding{{ID: id}} }

// Several reviewers make one review, in which nothing that one of them said is lost.
func TestReviewsAreMadeOne(t *testing.T) {
	first := pipeline.Review{Head: "h", Summary: "Good.", Risk: 10, Findings: finding("a"), SendTo: pipeline.TargetPlan, Reviewed: []string{"b.go"},
		NotReviewed: []pipeline.Skipped{{Path: "big.bin", Why: "binary"}, {Path: "a.go", Why: "too long"}}, Compliance: []pipeline.Compliance{{Criterion: "AC1", Met: true}}}
	second := pipeline.Review{Summary: "A leak.", Risk: 60, Findings: finding("b"), NeedsHuman: "money", SendTo: pipeline.TargetImplement, Reviewed: []string{"a.go", "b.go"}}
	x := New(Options{Reviewers: []Reviewer{says{review: first}, says{review: second}}})
	got, err := x.reviews(t.Context(), agent.Job{})
	if err != nil {
		t.Fatal(err)
	}
	want := pipeline.Review{Head: "h", Summary: "Good.\n\nA leak.", Risk: 60, Findings: append(finding("a"), finding("b")...), NeedsHuman: "money", SendTo: pipeline.TargetPlan,
		Reviewed: []string{"a.go", "b.go"}, NotReviewed: []pipeline.Skipped{{Path: "big.bin", Why: "binary"}}, Compliance: first.Compliance}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two reviews (-want +got):\n%s", diff)
	}
	alone := New(Options{Reviewers: []Reviewer{says{review: first}}})
	if got, err := alone.reviews(t.Context(), agent.Job{}); err != nil || cmp.Diff(first, got) != "" {
		t.Errorf("one review is changed: %+v, %v", got, err)
	}
}

// Approval cannot come of a review that did not take place.
func TestNoReviewIsNoApproval(t *testing.T) {
	if _, err := New(Options{}).reviews(t.Context(), agent.Job{Key: "run/1/review/1"}); err == nil || !strings.Contains(err.Error(), "no reviewer") {
		t.Errorf("without a reviewer: %v", err)
	}
	broken := errors.New("away")
	x := New(Options{Reviewers: []Reviewer{says{}, says{err: broken}}})
	if got, err := x.reviews(t.Context(), agent.Job{}); !errors.Is(err, broken) || cmp.Diff(pipeline.Review{}, got) != "" {
		t.Errorf("with a reviewer that fails: %+v, %v", got, err)
	}
}
