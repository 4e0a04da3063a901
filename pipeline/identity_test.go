package pipeline

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Covers lessons 2: the second look at findings takes next to no two for one, and
// finds most that were only said in other words. The figures are what it reaches
// on the pairs of testdata/identity.txt; raise them when it gets better.
func TestSameMatterMeasured(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/identity.txt")
	if err != nil {
		t.Fatal(err)
	}
	var found, missed, wrong, apart int
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 {
			t.Fatalf("%q has not three parts", line)
		}
		a := Finding{Category: "correctness", File: "a.go", Line: 10, Code: "x := f()", Message: parts[1]}
		b := Finding{Category: "correctness", File: "a.go", Line: 17, Code: "x := f()", Message: parts[2]}
		if strings.HasSuffix(parts[0], "there") {
			b.Code = "y = g(y)"
		}
		s, got := a.SameMatter(&b)
		switch want := strings.HasPrefix(parts[0], "same"); {
		case want && got:
			found++
		case want:
			missed++
			t.Logf("missed (%.2f): %s", s, line)
		case got:
			wrong++
			t.Logf("taken for one (%.2f): %s", s, line)
		default:
			apart++
		}
	}
	precision, recall := float64(found)/float64(found+wrong), float64(found)/float64(found+missed)
	t.Logf("%d pairs: precision %.2f, recall %.2f", found+missed+wrong+apart, precision, recall)
	if precision < 0.95 || recall < 0.9 {
		t.Errorf("precision %.2f, recall %.2f; want 0.95 and 0.90", precision, recall)
	}
}

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

// Covers T2, lessons 2, 3: a finding in other words keeps its identity, and with it
// its count and its dismissal; one about other code does not.
func TestRecognise(t *testing.T) {
	t.Parallel()
	first := Finding{Category: "correctness", File: "a.go", Code: "f.Close()", Message: "The error returned by Close is ignored"}
	first.Fingerprint = first.Digest()
	criterion := Finding{Category: "compliance", Criterion: "AC1", Message: "AC1 is not met"}
	criterion.Fingerprint = criterion.Digest()
	r := &Run{Loop: Loop{Findings: []Issue{{Finding: &criterion, Phase: PhaseReview}, {Finding: &first, Phase: PhaseReview}, {Finding: &first, Phase: PhaseTest}}}}
	again := func(edit func(*Finding)) Finding {
		f := first
		f.Message = "The returned error of Close is dropped"
		edit(&f)
		f.Fingerprint = f.Digest()
		return f
	}
	for name, c := range map[string]struct {
		f    Finding
		same bool
	}{
		"reworded":       {again(func(*Finding) {}), true},
		"said as before": {first, true},
		"within more":    {again(func(f *Finding) { f.Code = "defer func() {\n  f.Close()\n}()" }), true},
		"other file":     {again(func(f *Finding) { f.File = "b.go" }), false},
		"other category": {again(func(f *Finding) { f.Category = "style" }), false},
		"other lines":    {again(func(f *Finding) { f.Code = "g.Close()" }), false},
		"no lines":       {again(func(f *Finding) { f.Code = "" }), false},
		"nothing said":   {again(func(f *Finding) { f.Message = "!" }), false},
	} {
		list := []Finding{c.f}
		got := r.recognise(list, PhaseReview)
		if (got[0].Fingerprint == first.Fingerprint) != c.same {
			t.Errorf("%s: recognised = %v, want %v", name, !c.same, c.same)
		}
		if list[0].Fingerprint != c.f.Fingerprint {
			t.Errorf("%s: the event's own list was changed", name)
		}
	}
	both := r.recognise([]Finding{first, again(func(*Finding) {})}, PhaseReview)
	if both[0].Fingerprint == both[1].Fingerprint {
		t.Error("two findings of one review became one")
	}
	if !sameCode(&Finding{File: "a"}, &Finding{File: "a"}) || alike("", "?") != 0 {
		t.Error("findings about a whole file are about the same code; nothing said is like nothing")
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
