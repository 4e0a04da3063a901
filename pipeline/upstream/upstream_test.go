package upstream

import (
	"fmt"
	"strings"
	"testing"
)

// Covers U2: the states and events are as the design has them; all else changes nothing.
func TestTable(t *testing.T) {
	const want = `
		notifying raised ; waiting notified ; escalating notifying/rejected ; resolving acknowledged ; escalating waiting/timed_out
		validating answered ; escalating resolving/timed_out ; escalating resolving/failed ; resolved validating/accepted ;
		escalating validating/rejected ; resolved escalating/accepted`
	states := []State{Idle, Notifying, Waiting, Resolving, Validating, Resolved, Escalating}
	events := []Event{Raised, Notified, Acknowledged, Answered, TimedOut, Failed, Accepted, Rejected}
	moves := 0
	for _, s := range states {
		for _, e := range events {
			to := s.After(e)
			if to == s {
				continue
			}
			moves++
			if !strings.Contains(want, fmt.Sprintf("%s %s/%s", to, s, e)) && !strings.Contains(want, fmt.Sprintf("%s %s ", to, e)) {
				t.Errorf("%s goes by %s to %s", s, e, to)
			}
		}
	}
	if moves != 11 {
		t.Errorf("%d moves, want 11", moves)
	}
	for _, s := range states {
		if s.Open() == (s == Idle || s == Resolved) {
			t.Errorf("%q is open: %v", s, s.Open())
		}
	}
}

// Covers U3: what takes something away is seen, as far as words and numbers show it.
func TestWeaker(t *testing.T) {
	for _, c := range []struct{ old, now, why string }{
		{"The list is sorted", "The list is sorted by name", ""},
		{"A page answers within 500 ms", "A page answers within 300 ms", ""},
		{"A page answers within 500 ms", "A page answers within 800 ms", "500 ms became 800 ms"},
		{"A page answers within 500 ms", "A page answers within 1 s", "drops"},
		{"A page answers within 500 ms", "A page answers within 5 ms or within 500 ms", `"or"`},
		{"At least 80 tests pass", "At least 90 tests pass", ""},
		{"At least 80 tests pass", "At least 70 tests pass", "80 tests became 70 tests"},
		{"No more than 3 calls", "No more than 4 calls", "3 calls became 4 calls"},
		{"No more than 3 calls", "No more than 2 calls", ""},
		{"Exports CSV, JSON and XML", "Exports CSV and JSON", `drops "xml"`},
		{"Exports CSV", "Exports CSV if possible", `"if"`},
		{"Every order is shown", "Orders are shown", `drops "every"`},
		{"Answers within 500 ms", "Answers within 500 ms for 1 % of calls", `"%"`},
		{"Retries 3 times", "Retries 5 times", "3 times became 5 times"}, // nobody can tell which is more
	} {
		s := Spec{Criteria: []Item{{"AC1", c.old}}}
		got := s.Weaker(&Reply{Choice: Clarify, Criterion: "AC1", Text: c.now})
		if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%q → %q: %q, want %q", c.old, c.now, got, c.why)
		}
	}
}

// Covers U3: an answer that is about something else, or that nothing backs, is refused.
func TestCheck(t *testing.T) {
	quotes := func(words string) bool { return strings.Contains("export them as csv", words) }
	s := Spec{Quotes: quotes, Criteria: []Item{{"AC1", "fast"}, {"AC2", "shown"}}, Steps: []string{"one"}}
	constraint := &Feedback{Kind: Constraint, Ask: Ask{About: []string{"AC1"}}}
	for _, c := range []struct {
		f    *Feedback
		r    Reply
		want string
	}{
		{constraint, Reply{Choice: Fix, Why: "x"}, ""},
		{constraint, Reply{Choice: Fix}, "why is missing"},
		{constraint, Reply{Choice: "drop", Why: "x"}, "is none of"},
		{constraint, Reply{Choice: Clarify, Criterion: "AC7", Text: "y", Why: "x"}, `no criterion "AC7"`},
		{constraint, Reply{Choice: Clarify, Criterion: "AC2", Text: "shown at once", Why: "x"}, "not about AC2"},
		{constraint, Reply{Choice: Limit, Criterion: "AC2", Why: "x"}, "not about AC2"},
		{constraint, Reply{Choice: Clarify, Criterion: "AC1", Text: " Fast ", Why: "x"}, "the same as before"},
		{constraint, Reply{Choice: Design, Steps: []string{"ONE"}, Why: "x"}, "not those that there are"},
		{constraint, Reply{Choice: Design, Steps: []string{"two"}, Why: "x"}, ""},
		{constraint, Reply{Choice: Add, Text: "csv", Quote: "export them as csv", Why: "x"}, ""},
		{constraint, Reply{Choice: Add, Text: "pdf", Quote: "export them as pdf", Why: "x"}, "does not stand in the task"},
		{constraint, Reply{Choice: Add, Text: "shown", Quote: "csv", Why: "x"}, "there is already"},
		{&Feedback{Kind: Uncovered}, Reply{Choice: Fix, Why: "x"}, "add, or limit"},
		{&Feedback{Kind: Uncovered}, Reply{Choice: Limit, Why: "x"}, ""},
		{&Feedback{Kind: Constraint, Ask: Ask{About: []string{Plan}}}, Reply{Choice: Tighten, Criterion: "AC2", Text: "shown at once", Why: "x"}, ""},
	} {
		got := strings.Join(s.Check(c.f, &c.r), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}
