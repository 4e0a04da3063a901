package pipeline

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Covers V2, V4, lessons 2: the second look at failures, on the pairs of
// testdata/failures.txt.
func TestSameErrorMeasured(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var found, missed, wrong int
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 {
			t.Fatalf("%q has not three parts", line)
		}
		s, got := sameError(parts[1], parts[2]+"\nsecond line")
		switch want := parts[0] == "same"; {
		case want && got:
			found++
		case want:
			missed++
			t.Logf("missed (%.2f): %s", s, line)
		case got:
			wrong++
			t.Logf("taken for one (%.2f): %s", s, line)
		}
	}
	precision, recall := float64(found)/float64(found+wrong), float64(found)/float64(found+missed)
	t.Logf("precision %.2f, recall %.2f", precision, recall)
	if precision < 0.95 || recall < 0.9 {
		t.Errorf("precision %.2f, recall %.2f; want 0.95 and 0.90", precision, recall)
	}
}

// Covers T2, V4: a test that fails with other values is the same failure, counted
// on; with another error, or when it is another test, it is not.
func TestRecogniseFailures(t *testing.T) {
	t.Parallel()
	failure := func(test, text string) Failure {
		f := Failure{Test: test, Error: text}
		f.Fingerprint = f.Digest()
		return f
	}
	first := failure("TestGreet", `got "hullo", want "hello"`)
	r := &Run{Loop: Loop{Failures: []Issue{{Failure: &first, Phase: PhaseTest}}}}
	for name, c := range map[string]struct {
		f    Failure
		same bool
	}{
		"the same":      {first, true},
		"other values":  {failure("TestGreet", `got "hallo", want "hello"`), true},
		"other error":   {failure("TestGreet", "panic: nil map"), false},
		"another test":  {failure("TestPart", `got "hallo", want "hello"`), false},
		"another shape": {failure("TestGreet", "exit status 2"), false},
	} {
		list := []Failure{c.f}
		got := r.recogniseFailures(list)
		if (got[0].Fingerprint == first.Fingerprint) != c.same {
			t.Errorf("%s: recognised = %v, want %v", name, !c.same, c.same)
		}
		if list[0].Fingerprint != c.f.Fingerprint {
			t.Errorf("%s: the event's own list was changed", name)
		}
	}
	both := r.recogniseFailures([]Failure{failure("TestGreet", `got "a", want "hello"`), failure("TestGreet", `got "b b", want "hello" now`)})
	if both[0].Fingerprint == both[1].Fingerprint {
		t.Error("two failures of one run became one")
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	failing := &Failure{WorkedIn: 1}
	for want, is := range map[string]Issue{
		"new": {State: "open", First: 2, Last: 2}, "still there": {State: "open", First: 1, Last: 2}, "fixed": {State: "fixed"},
		"back again": {State: "open", Back: 1, First: 1, Last: 2}, "dismissed": {State: "dismissed"}, "accepted as known": {State: "accepted"},
		"regression": {State: "open", Failure: failing, First: 2, Last: 2},
	} {
		if got := is.Status(2); got != want {
			t.Errorf("Status of %+v = %q, want %q", is, got, want)
		}
	}
}

// Covers T8: the same words of a person on two lines of a file ask for two things; said twice
// on one line, they ask for one.
func TestSameWordsOnTwoLines(t *testing.T) {
	t.Parallel()
	r := &Run{}
	comment := func(review, id int64, line int) Finding {
		return Finding{Category: CategoryHuman, Message: "Take strings here, too", File: "sum.py", Line: line, Review: review, Comment: id}
	}
	r.changesAsked(&Review{Findings: []Finding{comment(7, 1, 5), comment(7, 2, 9), comment(7, 3, 13), comment(7, 4, 13)}}, nil)
	r.changesAsked(&Review{Findings: []Finding{comment(8, 5, 5), comment(8, 6, 20)}}, nil)
	var lines []int
	known := map[string]bool{}
	for _, f := range r.Requested {
		lines = append(lines, f.Line)
		known[f.Fingerprint] = true
	}
	if want := []int{5, 9, 13, 20}; !slices.Equal(lines, want) || len(known) != len(want) {
		t.Errorf("asked for on lines %v, as %d findings; want %v", lines, len(known), want)
	}
}
