package pipeline

import (
	"fmt"
	"slices"

	"forge/pipeline/text"
)

// judged reports whether an iteration has a result of a phase: of the review, or of the tests.
func (r *Run) judged(p Phase, iteration int) bool {
	it := &r.Iterations[iteration-1]
	return p == PhaseReview && it.Review != nil || p == PhaseTest && it.Tests != nil
}

// Stood is what a finding or failure was at the end of an iteration, "" before it was seen.
func (r *Run) Stood(is *Issue, iteration int) IssueState {
	var state IssueState
	seen := "" // the head at which it was listed
	for i := max(0, is.First-1); i < min(iteration, len(r.Iterations)); i++ {
		it := &r.Iterations[i]
		if it.Review != nil && slices.Contains(it.Review.Back, is.Fingerprint()) {
			state = IssueOpen
		}
		switch listed := it.lists(is); {
		case listed:
			if state = IssueOpen; is.Phase == PhaseReview && it.Review.Ruled {
				seen = it.Review.Head
			}
		case state == "": // what people or the whole asked for is in no review
			if state = IssueOpen; is.Last == is.First { // else Seen is of when they asked once more
				seen = is.Seen
			}
		case !r.judged(is.Phase, it.Number), state != IssueOpen:
		case is.Phase == PhaseTest:
			state = IssueFixed
		case it.Review.Ruled:
			x := it.Review.ruling(is.Fingerprint())
			switch {
			case x.gone(seen, it.Review.Head):
				state = map[bool]IssueState{true: IssueFixed, false: IssueWithdrawn}[x.Verdict == VerdictFixed]
			case x == nil && is.State == IssueFixed && it.Impl != nil && is.FixedIn == it.Impl.Head:
				state = IssueFixed // ruled so before the iteration took the base branch in and was reviewed again
			}
		case is.Finding.File == "" || slices.Contains(it.Review.Reviewed, is.Finding.File):
			state = IssueFixed
		}
	}
	if state == IssueOpen && is.Last < iteration && is.State != IssueOpen && is.State != IssueFixed && is.State != IssueWithdrawn {
		return is.State // people let it go since it was last seen
	}
	return state
}

// lists reports whether the review or the tests of an iteration name an issue.
func (it *Iteration) lists(is *Issue) bool {
	found := func(f Finding) bool { return f.Fingerprint == is.Fingerprint() }
	switch {
	case is.Phase == PhaseReview:
		return it.Review != nil && slices.ContainsFunc(it.Review.Findings, found)
	case it.Tests == nil:
		return false
	case is.Finding != nil:
		return slices.ContainsFunc(it.Tests.Tampered, found)
	}
	return slices.ContainsFunc(it.Tests.Failures, func(f Failure) bool { return f.Fingerprint == is.Fingerprint() })
}

// kept are the findings that stay open after the review of an iteration, which does not list
// them again.
func (r *Run) kept(it *Iteration) []Finding {
	if it.Review == nil || !it.Review.Ruled {
		return nil
	}
	var out []Finding
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.Phase == PhaseReview && is.First < it.Number && !it.lists(is) && r.Stood(is, it.Number) == IssueOpen {
			out = append(out, *is.Finding)
		}
	}
	return out
}

// withdrawn says what the reviewer took back in an iteration, and why: a line for each.
func (r *Run) withdrawn(it *Iteration) (lines []string) {
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.Phase != PhaseReview || it.Review == nil || !is.Finding.Severity.Blocks() || it.lists(is) || is.First >= it.Number {
			continue
		}
		if x := it.Review.ruling(is.Fingerprint()); x != nil && x.Verdict == VerdictWithdrawn && x.gone("", it.Review.Head) {
			lines = append(lines, fmt.Sprintf("- withdrawn: %s\n  - the reviewer: %s\n", is.Finding.inReport(""), text.Clip(text.OneLine(x.Why), 200)))
		}
	}
	return lines
}

// keeps says why a finding stays open that a review does not list.
func (v *Review) keeps(fingerprint string) string {
	switch x := v.ruling(fingerprint); {
	case x == nil:
		return "the review does not say what became of it"
	case x.Verdict == VerdictFixed:
		return "called fixed, but the code at its place is as it was"
	case x.Verdict == VerdictWithdrawn:
		return "withdrawn without a reason"
	default:
		return "the reviewer: " + text.Clip(text.OneLine(x.Why), 200)
	}
}
