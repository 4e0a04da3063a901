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

func finding(id string) []pipeline.Finding {
	return []pipeline.Finding{{ID: id, Fingerprint: id, Message: "the " + id + " is wrong"}}
}

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

// Of several reviewers' rulings on a finding, the strictest counts, whoever gave it:
// still there, then fixed, then withdrawn. Silence of one who was asked is no consent.
func TestStrictestRuling(t *testing.T) {
	open := pipeline.Ruling{Verdict: pipeline.VerdictOpen, Why: "line 3"}
	fixed := pipeline.Ruling{Verdict: pipeline.VerdictFixed, Changed: true}
	claimed := pipeline.Ruling{Verdict: pipeline.VerdictFixed}
	withdrawn := pipeline.Ruling{Verdict: pipeline.VerdictWithdrawn, Why: "it is checked above"}
	waved := pipeline.Ruling{Verdict: pipeline.VerdictWithdrawn, Why: " "}
	none := pipeline.Ruling{}
	for _, tt := range []struct {
		name    string
		rulings []pipeline.Ruling // by reviewer; none: silent
		unasked int               // how many of them, from the first, were not shown what is open
		want    pipeline.Ruling
	}{
		{"one", []pipeline.Ruling{fixed}, 0, fixed},
		{"still there over fixed", []pipeline.Ruling{fixed, open}, 0, open},
		{"still there over withdrawn", []pipeline.Ruling{withdrawn, open, fixed}, 0, open},
		{"still there over what shows nothing", []pipeline.Ruling{claimed, open, waved}, 0, open},
		{"nothing changed over fixed", []pipeline.Ruling{fixed, claimed}, 0, claimed},
		{"no reason over fixed", []pipeline.Ruling{fixed, waved}, 0, waved},
		{"fixed over withdrawn", []pipeline.Ruling{withdrawn, fixed}, 0, fixed},
		{"agreed", []pipeline.Ruling{withdrawn, withdrawn}, 0, withdrawn},
		{"silence over fixed", []pipeline.Ruling{fixed, none}, 0, none},
		{"silence over withdrawn", []pipeline.Ruling{none, withdrawn, withdrawn}, 0, none},
		{"still there over silence", []pipeline.Ruling{none, open}, 0, open},
		{"who was not asked", []pipeline.Ruling{none, fixed}, 1, fixed},
	} {
		for _, backwards := range []bool{false, true} {
			x := New(Options{})
			for i, r := range tt.rulings {
				v := pipeline.Review{Ruled: i >= tt.unasked}
				if r != none {
					r.Finding = "f"
					v.Rulings = []pipeline.Ruling{r, {Finding: "other", Verdict: pipeline.VerdictOpen}}
				}
				if x.o.Reviewers = append(x.o.Reviewers, says{review: v}); backwards {
					x.o.Reviewers[0], x.o.Reviewers[i] = x.o.Reviewers[i], x.o.Reviewers[0]
				}
			}
			got, err := x.reviews(t.Context(), agent.Job{})
			if err != nil {
				t.Fatal(err)
			}
			var of []pipeline.Ruling
			for _, r := range got.Rulings {
				if r.Finding == "f" {
					r.Finding = ""
					of = append(of, r)
				}
			}
			want := []pipeline.Ruling{tt.want}
			if tt.want == none {
				want = nil
			}
			if diff := cmp.Diff(want, of); diff != "" {
				t.Errorf("%s, backwards %v: rulings (-want +got):\n%s", tt.name, backwards, diff)
			}
		}
	}
}

// What one of several reviewers was shown as being back is back for all.
func TestBackForAll(t *testing.T) {
	all := pipeline.Review{Back: []string{"b"}}
	addReview(&all, pipeline.Review{Back: []string{"b", "a"}})
	if d := cmp.Diff([]string{"a", "b"}, all.Back); d != "" {
		t.Errorf("what is back (-want +got):\n%s", d)
	}
}
