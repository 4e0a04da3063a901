package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline/text"
)

// Consent is what people let pass that Forge could not verify, or let begin.
type Consent struct {
	Waivers      []Waiver          `json:"waivers,omitempty"`  // in order
	Passed       map[string]string `json:"passed,omitempty"`   // files that a human let pass unread: the SHA at which they did
	Known        map[string]string `json:"known,omitempty"`    // tests that failed before the work: the login of who called them known in this run
	KnownAs      map[string]string `json:"known_as,omitempty"` // by the same names, the ErrorKey of what they were shown
	Cleared      map[string]string `json:"cleared,omitempty"`  // what looks like a secret and is none, by the name that its fault gave it: the login of who said so
	Fix          []string          `json:"fix,omitempty"`      // tests that failed before the work, and that a human wants fixed by it
	Untested     bool              `json:"untested,omitempty"` // a human wants it planned although no test runs at the base
	ApprovedStep string            `json:"allowed,omitempty"`  // in manual mode, the step that a human let begin; "*" is every one (R7)
}

// waive notes that a named person let something pass that Forge could not verify.
func (r *Run) waive(g Guard, what string, a *Answer) {
	w := Waiver{Guard: g.Name, What: text.Clip(text.OneLine(what), 200), By: a.By, At: a.At, Head: r.Head, About: g.waived()}
	if w.At.IsZero() {
		w.At = r.Updated
	}
	r.Waivers = append(r.Waivers, w)
}

// waived are the findings that a waiver is about, by fingerprint.
func (g *Guard) waived() []string {
	if g.Name != GuardDispute {
		return nil
	}
	return slices.Clone(g.About)
}

// Exceptions returns what would not be verified without somebody's word: the waivers
// that count for the head, because what was let pass on an earlier one may be of the
// past, and what is let pass without a waiver of this run. Those of the settings name
// nobody.
func (r *Run) Exceptions() []Waiver {
	var out []Waiver
	for _, w := range r.Waivers {
		if r.counts(&w) {
			out = append(out, w)
		}
	}
	said := func(g GuardName, login string) bool {
		return slices.ContainsFunc(out, func(w Waiver) bool { return w.Guard == g && w.By.Login == login })
	}
	derived := slices.DeleteFunc(r.dismissals(), func(d Waiver) bool {
		return slices.ContainsFunc(out, func(w Waiver) bool { return w.covers(&d) })
	})
	derived = append(derived, r.knownElsewhere(func(login string) bool { return said(GuardKnown, login) })...)
	derived = append(derived, r.suppressed()...)
	derived = append(derived, r.leftOut()...)
	derived = append(derived, r.limited()...)
	return append(out, derived...)
}

// suppressed are the findings of the last review that would block, and that are not posted
// because somebody has dismissed them elsewhere: they pass in that person's name.
func (r *Run) suppressed() (out []Waiver) {
	it := r.Current()
	if it == nil || it.Review == nil {
		return nil
	}
	for _, h := range it.Review.Suppressed {
		if !h.Finding.Severity.Blocks() || h.By.Login == "" {
			continue
		}
		where := ""
		switch p := r.Published.Pull; {
		case h.Pull > 0 && h.Comment > 0 && p != nil && strings.HasSuffix(p.URL, fmt.Sprintf("/%d", p.Number)):
			where = fmt.Sprintf(" in %s%d#discussion_r%d", strings.TrimSuffix(p.URL, fmt.Sprint(p.Number)), h.Pull, h.Comment)
		case h.Pull > 0:
			where = fmt.Sprintf(" in #%d", h.Pull)
		}
		out = append(out, Waiver{Guard: GuardDispute, By: h.By, What: fmt.Sprintf("1 %s held back, dismissed by @%s on %s%s : %s",
			h.Finding.Severity, h.By.Login, h.At.UTC().Format("2006-01-02"), where, text.Clip(text.OneLine(h.Finding.Message), 200))})
	}
	return out
}

// counts reports whether the head would not be verified without a waiver.
func (r *Run) counts(w *Waiver) bool {
	it := r.Current()
	switch {
	case w.Head == r.Head:
		return true
	case w.Guard == GuardUnread:
		return it != nil && it.Review != nil && len(it.Review.NotReviewed) > 0
	case w.Guard == GuardKnown:
		return it != nil && it.Tests != nil && slices.ContainsFunc(it.Tests.Before, func(f Failure) bool { return f.KnownBy == w.By.Login })
	case w.Guard == GuardDispute:
		return slices.ContainsFunc(r.Findings, func(is Issue) bool { return is.State == IssueDismissed && is.By.Login == w.By.Login })
	case w.Guard == GuardAccepted:
		return slices.ContainsFunc(r.Findings, func(is Issue) bool { return is.State == IssueAccepted })
	}
	return w.Guard == GuardSecret // the branch's history keeps it
}

// dismissals are the findings that would block and that people have dismissed.
func (r *Run) dismissals() (out []Waiver) {
	for i := range r.Findings {
		if is := &r.Findings[i]; is.State == IssueDismissed && is.Finding.Severity.Blocks() {
			what := fmt.Sprintf("a finding (%s), dismissed: %s", is.Finding.Severity, text.Clip(text.OneLine(is.Finding.Message), 200))
			out = append(out, Waiver{Guard: GuardDispute, What: what, By: is.By, About: []string{is.Fingerprint()}})
		}
	}
	return out
}

// covers reports whether a waiver tells of a dismissal.
func (w *Waiver) covers(d *Waiver) bool {
	return w.Guard == GuardDispute && w.By.Login == d.By.Login && slices.Contains(w.About, d.About[0])
}

// knownElsewhere are the failures from before the work that the settings allow, and
// those that people know of, where it is not said that they let them pass in this run.
func (r *Run) knownElsewhere(said func(login string) bool) (out []Waiver) {
	it := r.Current()
	if it == nil || it.Tests == nil {
		return nil
	}
	type word struct{ login, where string }
	words := map[word][]Failure{}
	for _, f := range it.Tests.Before {
		w := word{f.KnownBy, f.KnownFor}
		words[w] = append(words[w], f)
	}
	for _, w := range slices.SortedFunc(maps.Keys(words), func(a, b word) int {
		return cmp.Or(cmp.Compare(a.login, b.login), cmp.Compare(a.where, b.where))
	}) {
		what := beforeText(words[w])
		switch {
		case w.login == knownBySettings:
			out = append(out, Waiver{Guard: GuardKnown, What: "allowed by the settings: " + what})
		case w.where != "":
			out = append(out, Waiver{Guard: GuardKnown, What: what + " (said " + w.where + ")", By: Actor{Login: w.login}})
		case !said(w.login):
			out = append(out, Waiver{Guard: GuardKnown, What: what, By: Actor{Login: w.login}})
		}
	}
	return out
}

// letPass says who let what pass, for people: "let pass by @alice: …". It is empty
// when nobody had to.
func (r *Run) letPass() string {
	words := map[string][]string{}
	for _, w := range r.Exceptions() {
		words[w.By.Login] = append(words[w.By.Login], w.What)
	}
	var out []string
	for _, login := range slices.Sorted(maps.Keys(words)) {
		prose := strings.Join(words[login], "; ")
		if login != "" {
			prose = "let pass by @" + login + ": " + prose
		}
		out = append(out, prose)
	}
	return strings.Join(out, "; ")
}

// knownBySettings stands in Failure.KnownBy for tests.known_failures: allow.
const knownBySettings = "settings"

// beforeText says in a sentence which tests failed before the work and fail still, and
// of those that fail in another way by now how they did and do.
func beforeText(failures []Failure) string {
	var same, other []string
	for _, f := range failures {
		name := text.Clip(text.OneLine(f.Test), 200)
		if f.Was == "" {
			same = append(same, name)
			continue
		}
		other = append(other, fmt.Sprintf("%s (before: %s; now: %s)", name, text.Clip(text.OneLine(f.Was), 80), text.Clip(text.OneLine(f.Error), 80)))
	}
	var out []string
	if n := len(other); n > 0 {
		out = append(out, fmt.Sprintf("%s failed before this work, but %s with another error now: %s", text.Plural(n, "test", "tests"), verb(n, "fails", "fail"), listed(other)))
	}
	if n := len(same); n > 0 {
		out = append(out, fmt.Sprintf("%s failed before this work and still %s: %s", text.Plural(n, "test", "tests"), verb(n, "fails", "fail"), listed(same)))
	}
	return strings.Join(out, "; ")
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// listed names at most five things.
func listed(names []string) string {
	if n := len(names); n > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), n-5)
	}
	return strings.Join(names, ", ")
}

// looked reports whether a human has let this very head go on, or sends it back, after
// the reviewer wanted one to look. A word that came after a push was about what stood
// there before.
func (r *Run) looked(it *Iteration) bool {
	here := func(w Waiver) bool { return w.Guard == GuardHuman && w.Head == r.Head }
	return it.Forced && (!it.Review.Ruled || len(r.Requested) > 0 || slices.ContainsFunc(r.Waivers, here))
}

// unread returns the guard that stops before the tests when part of the change could
// not be shown to the reviewer, and no human has let that pass.
func (r *Run) unread(it *Iteration) *Guard {
	if !it.Review.Ruled {
		return nil
	}
	var out []string
	for _, s := range it.Review.NotReviewed {
		if !r.passedUnread(s.Path) {
			out = append(out, fmt.Sprintf("%s (%s)", text.Clip(text.OneLine(s.Path), 200), text.Clip(text.OneLine(s.Why), 200)))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &Guard{Name: GuardUnread, Phase: PhaseReview, Value: int64(len(out)),
		Detail: fmt.Sprintf("%s of the change could not be shown to the reviewer: %s", text.Plural(len(out), "file", "files"), listed(out))}
}

// passedUnread reports whether a human let a file pass without a review, at this
// head or at an earlier one since which nobody has touched it.
func (r *Run) passedUnread(path string) bool {
	at, head := r.Passed[path], r.Head
	for i := len(r.Iterations) - 1; i >= 0 && at != "" && at != head; i-- {
		m := r.Iterations[i].Impl
		if m == nil || m.Head != head || slices.Contains(m.Files, path) {
			return false
		}
		head = m.Parent
	}
	return at != "" && at == head
}

// passUnread lets what could not be read pass, as it is at this head.
func (r *Run) passUnread(v *Review) {
	for _, s := range v.NotReviewed {
		if !r.passedUnread(s.Path) {
			put(&r.Passed, s.Path, r.Head)
		}
	}
}

// contested returns the findings that the reviewer has upheld against the implementer
// too often to leave it to them.
func (l *Loop) contested() []*Issue {
	var out []*Issue
	for i := range l.Findings {
		is := &l.Findings[i]
		if is.Upheld >= disputeLimit && is.Phase == PhaseReview && is.State == IssueOpen && is.Finding.Severity.Blocks() {
			out = append(out, is)
		}
	}
	return out
}

// disagreement returns the guard that asks a human about contested findings.
func (r *Run) disagreement(it *Iteration) *Guard {
	g := &Guard{Name: GuardDispute, Phase: PhaseReview, Limit: disputeLimit}
	var all []string
	for _, is := range r.contested() {
		words := strings.TrimSuffix(text.Clip(text.OneLine(is.Finding.Message), 200), ".") + at(is.Finding.File, is.Finding.Line)
		for _, d := range it.Impl.disputes() {
			if d.Finding == is.Fingerprint() {
				words += "; the implementer: " + text.Clip(text.OneLine(d.Why), 200)
			}
		}
		if is.Ruling != "" {
			words += "; the reviewer: " + text.Clip(text.OneLine(is.Ruling), 200)
		}
		all, g.Value = append(all, words), max(g.Value, int64(is.Upheld))
		g.About = append(g.About, is.Fingerprint())
	}
	if len(all) == 0 {
		return nil
	}
	g.Detail = fmt.Sprintf("implementer and reviewer disagree about %s: %s", text.Plural(len(all), "finding", "findings"), strings.Join(all, " · "))
	return g
}

func (m *Implementation) disputes() []Dispute {
	if m == nil {
		return nil
	}
	return m.Disputes
}

// settleDispute takes a human's word on what was contested: it is dismissed, or goes
// back as if it had not been disputed.
func (l *Loop) settleDispute(g Guard, by *Actor) {
	for i := range l.Findings {
		is := &l.Findings[i]
		if is.State != IssueOpen || !slices.Contains(g.About, is.Fingerprint()) {
			continue
		}
		if is.Upheld = 0; is.Phase == PhaseTest {
			is.Disputed = ""
		}
		if by != nil {
			is.State, is.By = IssueDismissed, *by
		}
	}
}

// know notes that tests which failed before the work are known to a person.
func (r *Run) know(g Guard, login string) {
	for _, test := range g.About {
		put(&r.Known, test, login)
	}
	if it := r.Current(); it.Tests != nil {
		for _, f := range it.Tests.Before {
			if f.Key != "" && slices.Contains(g.About, f.Test) {
				put(&r.KnownAs, f.Test, f.Key)
			}
		}
		tests := *it.Tests
		tests.Before = r.before(&tests)
		it.Tests = &tests
	}
}

// claim makes tests that failed before the work a part of it.
func (r *Run) claim(g Guard) {
	r.Fix = append(r.Fix, g.About...)
	it := r.Current()
	if it == nil || it.Tests == nil {
		return
	}
	tests := *it.Tests
	tests.Before = r.before(&tests)
	it.Tests = &tests
	for i := range tests.Failures {
		r.Failures = sight(r.Failures, Issue{Failure: &tests.Failures[i], Phase: PhaseTest}, it.Number)
	}
	it.Brief = brief(tests.Tampered, tests.Failures)
}

// before returns what failed before the work, as far as the run leaves it at that:
// with who knows of it, and without what it is to fix, which becomes a failure.
func (r *Run) before(t *TestReport) []Failure {
	var out []Failure
	for _, f := range t.Before {
		if slices.Contains(r.Fix, f.Test) {
			if f.Fingerprint == "" {
				f.Fingerprint = f.Digest()
			}
			t.Failures = append(slices.Clip(t.Failures), f)
			t.Failed++
			continue
		}
		if f.KnownBy == "" && f.Key == r.KnownAs[f.Test] { // a person's word is for the error that they saw
			f.KnownBy = r.Known[f.Test]
		}
		out = append(out, f)
	}
	return out
}

// known returns the guard that asks, once, whether tests which failed before the
// work may go on failing.
func (r *Run) known(it *Iteration) *Guard {
	g := &Guard{Name: GuardKnown, Phase: PhaseTest}
	unknown := it.Tests.Unknown()
	for _, f := range unknown {
		g.About = append(g.About, f.Test)
	}
	if len(unknown) == 0 {
		return nil
	}
	g.Value, g.Detail = int64(len(unknown)), beforeText(unknown)
	return g
}

// clear lets what looks like a secret pass, in somebody's name. The step that it
// stopped is done again, with what the model said before.
func (r *Run) clear(g Guard, login string) {
	for _, leak := range g.About {
		put(&r.Cleared, leak, login)
	}
	r.Counters.Faults, r.Counters.PublishFaults = 0, 0
}

// withdraw takes back what is not pushed because of a secret in it: the commit is
// made again, on what GitHub has, so that no history holds it.
func (r *Run) withdraw(g Guard) {
	r.Counters.Faults, r.Counters.PublishFaults, r.Fault = 0, 0, nil
	if on := cmp.Or(r.Published.Head, r.Base); g.Phase == "" && r.Head != on {
		r.move(on)
	}
	if it := r.Current(); it != nil {
		r.Last = &execution{Phase: PhaseRef{Phase: PhaseImplement, Iteration: it.Number}, Head: r.Head, Fault: &Fault{Class: FaultAgent, Message: g.Detail}}
	}
}
