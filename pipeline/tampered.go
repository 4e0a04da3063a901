package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/text"
)

// What is found by rule about the tests is for people to let pass: no reviewer can take
// it back.

// aboutTests returns what is open of that.
func (r *Run) aboutTests() []*Issue {
	var out []*Issue
	for i := range r.Findings {
		if is := &r.Findings[i]; is.Phase == PhaseTest && is.State == IssueOpen && is.Finding.Severity.Blocks() {
			out = append(out, is)
		}
	}
	return out
}

// named is a guard's sentence behind what it is about, when that was found by rule about
// the tests: whoever is asked must see what the question is.
func (r *Run) named(g Guard) string {
	if g.Name == GuardDispute || !r.asksAboutTests(g) {
		return g.Detail
	}
	words := g.Detail
	if words != "" {
		words = strings.ToUpper(words[:1]) + words[1:]
	}
	return fmt.Sprintf("found by rule about the tests, and still open: %s. %s", r.aboutTestsInWords(), words)
}

// aboutTestsInWords names what is open of that.
func (r *Run) aboutTestsInWords() string {
	var what []string
	for _, is := range r.aboutTests() {
		what = append(what, is.words())
	}
	return listed(what)
}

// onlyAboutTests reports whether nothing else keeps the run.
func (r *Run) onlyAboutTests() bool {
	return len(r.aboutTests()) > 0 && len(r.unresolved()) == 0 && !r.failing()
}

// failing reports whether a test fails as far as the run knows.
func (r *Run) failing() bool {
	return slices.ContainsFunc(r.Failures, func(is Issue) bool { return is.State == IssueOpen })
}

// disputedTests returns the guard that asks a human when the implementer holds all for
// mistaken that is left, and no reviewer can rule on it.
func (r *Run) disputedTests() *Guard {
	if !r.onlyAboutTests() {
		return nil
	}
	g := &Guard{Name: GuardDispute, Phase: PhaseTest, Value: 1, Limit: 1}
	var all []string
	for _, is := range r.aboutTests() {
		if is.Disputed == "" {
			return nil
		}
		all = append(all, fmt.Sprintf("%s; the implementer: %s", is.words(), text.Clip(text.OneLine(is.Disputed), 200)))
		g.About = append(g.About, is.Fingerprint())
	}
	g.Detail = fmt.Sprintf("the implementer would leave what was found by rule about the tests (%s): %s", text.Plural(len(all), "finding", "findings"), strings.Join(all, " · "))
	return g
}

// words says a finding in a line.
func (i *Issue) words() string {
	return strings.TrimSuffix(text.Clip(text.OneLine(i.Finding.Message), 150), ".") + at(i.Finding.File, i.Finding.Line)
}

// asksAboutTests reports whether a human can let pass what is found about the tests in
// answer to a guard.
func (r *Run) asksAboutTests(g Guard) bool {
	if g.futile() || g.Name == GuardNoProgress || g.Name == GuardFaults || g.Name == GuardUnable {
		return r.onlyAboutTests()
	}
	return g.Name == GuardDispute && g.Phase == PhaseTest
}

// passTests takes a human's word that the change may do to the tests what it does.
func (r *Run) passTests(a *Answer) {
	for _, is := range r.aboutTests() {
		is.State, is.By, is.Disputed = IssueDismissed, a.By, ""
		r.waive(Guard{Name: GuardDispute, About: []string{is.Fingerprint()}}, "about the tests: "+is.words(), a)
	}
	r.letStay()
	r.Counters.EmptyRounds, r.Counters.Faults, r.Fault = 0, 0, nil
}
