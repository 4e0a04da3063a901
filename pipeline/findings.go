package pipeline

import (
	"slices"
	"strings"

	"forge/pipeline/text"
)

// reviewed follows the review's findings across iterations.
func (r *Run) reviewed(it *Iteration) {
	seen := map[string]bool{}
	review := *it.Review

	it.Review = &review
	head := ""
	if review.Ruled {
		head = review.Head
	}
	for i := range review.Findings {
		f := &review.Findings[i]
		seen[f.Fingerprint] = true
		r.Findings = sight(r.Findings, Issue{Finding: f, Phase: PhaseReview, Seen: head}, it.Number)
	}
	if review.Ruled {
		r.cameBack(&review)
		r.rule(&review, seen, it.Number)
		r.settle(PhaseReview, r.isOpen)
		it.Brief = brief(r.left(), nil)
	} else {
		r.forget(&review, seen)
		r.settle(PhaseReview, func(fingerprint string) bool { return seen[fingerprint] })
		it.Brief = brief(it.Review.Findings, nil)
	}
	if len(r.Blocking(it.Review)) > 0 {
		r.Counters.ReviewInARow++
	}
}

// cameBack opens what was fixed, was shown to the reviewer again because its code is another
// now, and was not ruled gone once more.
func (l *Loop) cameBack(v *Review) {
	for i := range l.Findings {
		is := &l.Findings[i]
		switch {
		case is.Phase != PhaseReview || is.State != IssueFixed || !slices.Contains(v.Back, is.Fingerprint()):
		case v.ruling(is.Fingerprint()).gone(is.Seen, v.Head):
			is.FixedIn, is.Ruling = v.Head, v.ruling(is.Fingerprint()).Why
		default:
			is.State, is.FixedIn, is.Back = IssueOpen, "", is.Back+1
		}
	}
}

// rule closes the findings that the reviewer, who was shown them, has ruled gone.
// All others are as good as seen again: those that were forgotten, and those that
// are called fixed although nothing changed, or withdrawn without a reason.
func (r *Run) rule(v *Review, seen map[string]bool, iteration int) {
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.Phase != PhaseReview || is.State != IssueOpen {
			continue
		}
		ruling, again := v.ruling(is.Fingerprint()), seen[is.Fingerprint()]
		if ruling != nil {
			is.Ruling = ruling.Why
		}
		if !again && ruling.gone(is.Seen, v.Head) {
			is.State, is.Disputed = IssueWithdrawn, ""
			if ruling.Verdict == VerdictFixed {
				is.State, is.FixedIn = IssueFixed, v.Head
			}
			continue
		}
		if is.Last != iteration {
			is.Times, is.Last = is.Times+1, iteration
		}
		if is.Disputed != "" && (again || ruling != nil && ruling.Verdict == VerdictOpen) {
			is.Upheld, is.Disputed = is.Upheld+1, ""
		}
	}
}

// ruling returns the review's ruling on a finding, nil when there is none. Of
// several, the first that leaves it open counts.
func (v *Review) ruling(fingerprint string) (found *Ruling) {
	for i := range v.Rulings {
		if x := &v.Rulings[i]; x.Finding == fingerprint && (found == nil || !x.gone("", v.Head)) {
			if found = x; !x.gone("", v.Head) {
				break
			}
		}
	}
	return found
}

// gone reports whether a ruling closes a finding that was listed at one head, at
// another one. What was seen on the very head cannot have been fixed since.
func (x *Ruling) gone(seen, head string) bool {
	return x != nil && (x.Verdict == VerdictFixed && x.Changed && seen != head || x.Verdict == VerdictWithdrawn && strings.TrimSpace(x.Why) != "")
}

// KeepSeverity gives what is open and blocks the severity back that it had: that it is
// said again as something lesser lets nothing pass, only a ruling does that closes it. A
// finding that is called fixed and reported once more is not fixed; one that is withdrawn
// with its reason may be reported once more as something lesser.
func (r *Run) KeepSeverity(v *Review) {
	for i := range v.Findings {
		f := &v.Findings[i]
		k := slices.IndexFunc(r.Findings, func(is Issue) bool { return is.Phase == PhaseReview && is.Fingerprint() == f.Fingerprint })
		if k < 0 || f.Severity.Blocks() || !v.Ruled {
			continue
		}
		is, ruling := &r.Findings[k], v.ruling(f.Fingerprint)
		gone := ruling.gone(is.Seen, v.Head) && ruling.Verdict == VerdictWithdrawn
		if (is.State == IssueOpen || slices.Contains(v.Back, f.Fingerprint)) && is.Finding.Severity.Blocks() && !gone {
			f.Severity = is.Finding.Severity
		}
	}
}

// forget closes what a review did not find again in what it covered, where its reviewer was
// not asked about it.
func (r *Run) forget(v *Review, seen map[string]bool) {
	for i := range r.Findings {
		is := &r.Findings[i]
		covered := is.Finding.File == "" || slices.Contains(v.Reviewed, is.Finding.File)
		if is.Phase == PhaseReview && is.State == IssueOpen && !seen[is.Fingerprint()] && covered {
			is.State, is.FixedIn = IssueFixed, v.Head
		}
	}
}

// left returns the findings of reviews that are open.
func (l *Loop) left() []Finding {
	var out []Finding
	for i := range l.Findings {
		if is := &l.Findings[i]; is.Phase == PhaseReview && is.State == IssueOpen {
			out = append(out, *is.Finding)
		}
	}
	return out
}

// unresolved returns the findings of reviews that block: those that are open,
// whether the last review repeated them or not (lessons 23), and what humans asked
// for and nobody has been given to do yet.
func (l *Loop) unresolved() []Finding {
	out := slices.DeleteFunc(l.left(), func(f Finding) bool { return !f.Severity.Blocks() })
	for _, f := range l.Requested {
		if !slices.ContainsFunc(out, func(known Finding) bool { return known.Fingerprint == f.Fingerprint }) {
			out = append(out, f)
		}
	}
	return out
}

// isOpen reports whether a finding of reviews is open.
func (l *Loop) isOpen(fingerprint string) bool {
	return slices.ContainsFunc(l.Findings, func(is Issue) bool {
		return is.Phase == PhaseReview && is.State == IssueOpen && is.Fingerprint() == fingerprint
	})
}

// Blocking returns the findings for which a review sends the work back: those that
// block, that it lists or leaves open, and that no human has dismissed.
func (r *Run) Blocking(v *Review) []Finding {
	var out []Finding
	listed := map[string]bool{}
	for _, f := range v.Blocking() {
		listed[f.Fingerprint] = true
		if !r.dismissed(f.Fingerprint) {
			out = append(out, f)
		}
	}
	it := r.Current()
	last := it != nil && it.Review == v
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.Phase != PhaseReview || !is.Finding.Severity.Blocks() || listed[is.Fingerprint()] || !v.Ruled {
			continue
		}
		ruling := v.ruling(is.Fingerprint())
		if last && is.State == IssueOpen || !last && is.State != IssueDismissed && ruling != nil && !ruling.gone("", v.Head) {
			out = append(out, *is.Finding)
		}
	}
	return out
}

func (l *Loop) dismissed(fingerprint string) bool {
	for i := range l.Findings {
		if l.Findings[i].Fingerprint() == fingerprint && l.Findings[i].State == IssueDismissed {
			return true
		}
	}
	return false
}

// dismiss marks a finding as dismissed by a human, or takes that back. The word of
// people without write access lets nothing pass.
func (r *Run) dismiss(s *Signal, by *Actor) {
	if s == nil || s.Finding == "" || by == nil || !s.Off && !(s.Weight > 0) {
		return
	}
	for i := range r.Findings {
		is := &r.Findings[i]
		switch {
		case is.Fingerprint() != s.Finding:
		case !s.Off && is.State == IssueOpen:
			is.State, is.By = IssueDismissed, *by
			r.letStay()
		case s.Off && is.State == IssueDismissed:
			is.State, is.By = IssueOpen, Actor{}
		}
	}
}

// wanted opens a finding again that a human has let go, because one asks for it now.
func (l *Loop) wanted(fingerprint string) {
	for i := range l.Findings {
		is := &l.Findings[i]
		if is.Phase == PhaseReview && is.Fingerprint() == fingerprint && (is.State == IssueAccepted || is.State == IssueDismissed) {
			is.State, is.By = IssueOpen, Actor{}
		}
	}
}

// disputeLimit is how often the reviewer may uphold a finding against a dispute
// before a human is asked.
const disputeLimit = 2

// dispute notes that the implementer holds a finding for mistaken. The reviewer rules on
// those of reviews, a human on what was found by rule.
func (l *Loop) dispute(d Dispute) {
	for i := range l.Findings {
		is := &l.Findings[i]
		if is.State == IssueOpen && is.Fingerprint() == d.Finding && strings.TrimSpace(d.Why) != "" {
			is.Disputed = d.Why
		}
	}
}

// allDisputed reports whether there is nothing to do but to rule on disputes.
func (l *Loop) allDisputed() bool {
	some := false
	for i := range l.Findings {
		is := &l.Findings[i]
		if is.Phase != PhaseReview || is.State != IssueOpen || !is.Finding.Severity.Blocks() {
			continue
		}
		if some = true; is.Disputed == "" {
			return false
		}
	}
	return some && len(l.Requested) == 0
}

// implemented notes the new head, or that there is none. A round without a commit
// is one for the reviewer when everything that it was for is disputed.
func (r *Run) implemented(it *Iteration) {
	for _, d := range it.Impl.Disputes {
		r.dispute(d)
	}
	if it.Disputed = false; it.Impl.Anew {
		return
	}
	if it.Impl.Head == it.Impl.Parent && it.Mode != ModeWire && it.Impl.Contract == "" {
		r.Counters.EmptyRounds++
		it.Disputed = r.Counters.EmptyRounds <= staleLimit && (r.allDisputed() || r.onlyProofs(it))
		return
	}
	r.Head, r.Counters.EmptyRounds = it.Impl.Head, 0
}

// tested follows failures, and findings about the tests, across iterations.
func (r *Run) tested(it *Iteration) {
	seen := map[string]bool{}
	tests := *it.Tests
	tests.Before = r.before(&tests)
	tests.Failures = r.recogniseFailures(tests.Failures)
	it.Tests = &tests
	for i := range it.Tests.Failures {
		f := &it.Tests.Failures[i]
		seen[f.Fingerprint] = true
		r.Failures = sight(r.Failures, Issue{Failure: f, Phase: PhaseTest}, it.Number)
	}
	for i := range it.Tests.Tampered {
		f := &it.Tests.Tampered[i]
		seen[f.Fingerprint] = true
		r.Findings = sight(r.Findings, Issue{Finding: f, Phase: PhaseTest}, it.Number)
	}
	for _, list := range [][]Issue{r.Failures, r.Findings} {
		for i := range list {
			is := &list[i]
			if is.Phase == PhaseTest && is.State == IssueOpen && !seen[is.Fingerprint()] {
				is.State, is.FixedIn = IssueFixed, it.Tests.Head
			}
		}
	}
	r.settle(PhaseTest, func(fingerprint string) bool { return seen[fingerprint] })
	r.letStay()
	it.Brief = brief(it.Tests.Tampered, it.Tests.Failures)
	if !it.Tests.OK() {
		r.Counters.TestInARow++
	}
}

// letStay leaves out of the last test report what a person has dismissed of it: what the
// change does to the tests stays, in their name.
func (r *Run) letStay() {
	it := r.Current()
	if it == nil || it.Tests == nil || len(it.Tests.Tampered) == 0 {
		return
	}
	tests := *it.Tests
	tests.Tampered = slices.DeleteFunc(slices.Clone(tests.Tampered), func(f Finding) bool {
		return slices.ContainsFunc(r.Findings, func(is Issue) bool {
			return is.Phase == PhaseTest && is.Fingerprint() == f.Fingerprint && is.State == IssueDismissed
		})
	})
	if len(tests.Tampered) < len(it.Tests.Tampered) {
		it.Tests = &tests
	}
}

// settle marks the phase's last bounce as resolved when nothing of what it was
// for is there any more.
func (l *Loop) settle(p Phase, there func(fingerprint string) bool) {
	for i := len(l.Bounces) - 1; i >= 0; i-- {
		b := &l.Bounces[i]
		if b.Phase != p {
			continue
		}
		b.Resolved = !slices.ContainsFunc(b.Issues, there)
		return
	}
}

// sight adds an issue or, when it is known, notes that it was seen again.
func sight(list []Issue, is Issue, iteration int) []Issue {
	for i := range list {
		known := &list[i]
		if known.Phase != is.Phase || known.Fingerprint() != is.Fingerprint() {
			continue
		}
		if known.Last != iteration { // twice in one review is once
			known.Times++
		}
		if known.State == IssueFixed {
			known.Back++
		}
		settled := known.State == IssueDismissed || known.State == IssueAccepted && known.Finding != nil
		if !settled || !sameCode(known.Finding, is.Finding) { // a human's word is for this code (lessons 3)
			known.State, known.FixedIn, known.By = IssueOpen, "", Actor{}
		}
		known.Finding, known.Failure, known.Last, known.Seen = keptWords(known.Finding, is.Finding), is.Failure, iteration, is.Seen
		return list
	}
	is.State, is.First, is.Last, is.Times = IssueOpen, iteration, iteration, 1
	return append(list, is)
}

func accept(is *Issue) {
	if is.State == IssueOpen {
		is.State = IssueAccepted
	}
}

// brief puts an iteration's feedback into one line, worst first (R5).
func brief(findings []Finding, failures []Failure) string {
	counts := map[Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	var parts []string
	for _, s := range []Severity{SeverityCritical, SeverityError, SeverityWarning, SeverityInfo} {
		n, many := counts[s], string(s)
		if s == SeverityWarning || s == SeverityError {
			many += "s"
		}
		if n > 0 {
			parts = append(parts, text.Plural(n, string(s), many))
		}
	}
	missed := 0
	for _, f := range failures {
		if f.Cause == CauseQuality {
			missed++
		}
	}
	if n := len(failures) - missed; n > 0 {
		parts = append(parts, text.Plural(n, "failing test", "failing tests"))
	}
	if missed > 0 {
		parts = append(parts, text.Plural(missed, "missed quality gate", "missed quality gates"))
	}
	return strings.Join(parts, ", ")
}
