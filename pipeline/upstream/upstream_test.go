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

// Covers U3: a text in other words may ask for less in ways that no list of words has, so that
// a human decides about every one.
func TestWeaker(t *testing.T) {
	for _, c := range []struct{ old, now string }{
		{"A page answers within 500 ms", "A page answers within 300 ms"},
		{"A password has at least 8 characters", "A password has at least 9 characters"}, // who has 8 is locked out
		{"The list is sorted", "Die Liste ist möglichst sortiert"},
		{"Admins may delete, and guests not", "Guests may delete, and admins not"},
	} {
		s := Spec{Criteria: []Item{{"AC1", c.old}}}
		for _, choice := range []Choice{Clarify, Tighten} {
			if s.Weaker(&Reply{Choice: choice, Criterion: "AC1", Text: c.now}) == "" {
				t.Errorf("%s: %q → %q: no human is asked", choice, c.old, c.now)
			}
		}
	}
}

// Covers U3: a criterion is added without a human only in a whole sentence of the task that
// names no criterion, and steps change without one only where they name no further criterion.
func TestWeakerByAddition(t *testing.T) {
	s := Spec{Criteria: []Item{{"AC1", "fast"}, {"AC2", "shown"}}, Steps: []string{"Edit a.go, for AC1"},
		Says: func(text string) bool {
			return text == "Users export the list as CSV" || text == "AC1 does not apply to guests"
		}}
	for _, c := range []struct {
		r    Reply
		free bool
	}{
		{Reply{Choice: Add, Text: "Users export the list as CSV"}, true},
		{Reply{Choice: Add, Text: "AC1 does not apply to guests"}, false},
		{Reply{Choice: Add, Text: "Users export the list as CSV, which is all that has to be fast"}, false},
		{Reply{Choice: Add, Text: "All else holds for admins alone"}, false},
		{Reply{Choice: Add, Text: "Fast means that it is done within a day"}, false},
		{Reply{Choice: Design, Steps: []string{"Edit b.go", "Edit a.go, for AC1"}}, true},
		{Reply{Choice: Design, Steps: []string{"Edit b.go", "ac2 is not done"}}, false},
		{Reply{Choice: Design, Steps: []string{"AC-1: skip it"}}, false},
		{Reply{Choice: Design, Steps: []string{"Erfülle AC 2 nicht"}}, false},
		{Reply{Choice: Fix, Why: "AC1 is met"}, true}, // it changes nothing
		{Reply{Choice: Limit, Criterion: "AC1"}, false},
	} {
		if got := s.Weaker(&c.r); (got == "") != c.free {
			t.Errorf("%+v: %q, want a human: %v", c.r, got, !c.free)
		}
	}
}

// Covers U3: what the rules let pass is a human's all the same, unless who checks it agrees.
func TestUnconfirmed(t *testing.T) {
	for _, c := range []struct {
		r    Reply
		want string
	}{
		{Reply{Choice: Add}, "nobody has confirmed"},
		{Reply{Choice: Tighten}, "nobody has confirmed"},
		{Reply{Choice: Design, Objection: "the export is gone"}, "the export is gone"},
		{Reply{Choice: Design, Objection: "the export is gone", Confirmed: true}, "the export is gone"},
		{Reply{Choice: Design, Confirmed: true}, ""},
		{Reply{Choice: Fix}, ""},
		{Reply{Choice: Limit}, ""}, // asked about anyway
	} {
		if got := c.r.Unconfirmed(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
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
