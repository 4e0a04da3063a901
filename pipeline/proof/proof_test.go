package proof

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/testname"
)

// Covers U4: a claim is worth what ran.
func TestRow(t *testing.T) {
	ran := Ran{
		Passed:  []string{"forge/a.TestNew", "forge/a.TestOld", "forge/a.TestTable/one", "t/test_x.py::test_new[1]", "app.js > cart > adds one"},
		Failed:  []string{"forge/a.TestBad", "forge/b.TestNew2"},
		Flaky:   []string{"forge/a.TestSometimes"},
		Pending: []string{"forge/a.TestPromise"},
		Before:  []string{"forge/a.TestOld", "forge/a.TestTable/one"},
		Same:    testname.Same, Base: func(test string) string { return testname.Parse(test).Base },
	}
	for _, c := range []struct {
		name  string
		claim Claim
		said  string
		want  string // what is lacking
	}{
		{"a new test", Claim{Tests: []string{"TestNew"}}, "", ""},
		{"its whole name", Claim{Tests: []string{"forge/a.TestNew"}}, "", ""},
		{"pytest's, without its case", Claim{Tests: []string{"test_new"}}, "", ""},
		{"a name of words", Claim{Tests: []string{"adds one"}}, "", ""},
		{"a promise whose other side is missing", Claim{Tests: []string{"TestPromise"}}, "", ""},
		{"an old one", Claim{Tests: []string{"TestOld"}}, "", "passes without the change, too, and the reviewer does not name it: TestOld"},
		{"an old one beside a new one", Claim{Tests: []string{"TestOld", "TestNew"}}, "", ""},
		{"an old one that the reviewer names", Claim{Tests: []string{"TestOld"}}, "see a_test.go:3, TestOld.", ""},
		{"part of another word is no name", Claim{Tests: []string{"TestOld"}}, "see TestOlder", "passes without the change, too, and the reviewer does not name it: TestOld"},
		{"a table of old cases", Claim{Tests: []string{"TestTable"}}, "", "passes without the change, too, and the reviewer does not name it: TestTable"},
		{"one that fails", Claim{Tests: []string{"TestNew", "TestBad"}}, "", "did not pass: TestBad (failed)"},
		{"a flaky one", Claim{Tests: []string{"TestSometimes"}}, "", "did not pass: TestSometimes (flaky)"},
		{"one that is not there", Claim{Tests: []string{"TestNew", "TestNowhere"}}, "", "did not run on this head: TestNowhere"},
		{"the beginning of a name", Claim{Tests: []string{"TestNe"}}, "", "did not run on this head: TestNe"},
		{"a file", Claim{Tests: []string{"t/test_x.py"}}, "", "did not run on this head: t/test_x.py"},
		{"a package", Claim{Tests: []string{"forge/a"}}, "", "did not run on this head: forge/a"},
		{"a case of a table by the end of its name", Claim{Tests: []string{"TestNew", "one"}}, "", ""},
		{"none", Claim{}, "", "no test is named that shows it"},
		{"none, with a reason", Claim{Why: "only words\nchanged"}, "", "no test shows it: only words changed"},
	} {
		if got := ran.Row(c.claim, c.said).Lacks(); got != c.want {
			t.Errorf("%s: lacks %q, want %q", c.name, got, c.want)
		}
	}
	row := ran.Row(Claim{Criterion: "AC1", Tests: []string{"TestNew", "TestOld", "Test`x`"}, Commit: "0123456789"}, "")
	if got, want := row.String(), "`TestNew` passed; `TestOld` passed, as it does without the change; `Test'x'` not run (since 0123456)"; got != want {
		t.Errorf("in words: %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"TestNew", "test_new"}, ran.Found("TestNew and test_new[1] show it; TestBad, too; one")); diff != "" {
		t.Errorf("found in evidence (-want +got):\n%s", diff)
	}
}

// A name for which something was skipped shows nothing; one that singles out what passed does.
func TestRowSkipped(t *testing.T) {
	ran := Ran{
		Passed:  []string{"m/a.TestX", "m/b/a.TestTwice", "m/a.TestAll", "m/a.TestSome", "m/a.TestSome/one", "t/test_a.py::test_p[1]", "t/test_a.py::test_same", "mod.C.test_u"},
		Skipped: []string{"m/b.TestX", "m/a.TestAll/one", "m/a.TestSome/two", "m/a.TestGone", "x/m/b/a.TestTwice", "t/test_a.py::test_p[2]", "t/test_b.py::test_same", "mod.C.test_u (i=2)"},
		Same:    testname.Same, Base: func(test string) string { return testname.Parse(test).Base },
	}
	const skipped = "was skipped, in whole or in part: "
	for name, want := range map[string]string{
		"TestX":                  skipped + "TestX (m/b.TestX): name what passed more exactly, as m/a.TestX",
		"a.TestX":                "",
		"m/a.TestX":              "",
		"m/b.TestX":              skipped + "m/b.TestX",
		"m/b/a.TestTwice":        "",
		"b/a.TestTwice":          skipped + "b/a.TestTwice (x/m/b/a.TestTwice): name what passed more exactly, as m/b/a.TestTwice",
		"TestAll":                skipped + "TestAll (m/a.TestAll/one)",
		"m/a.TestAll":            skipped + "m/a.TestAll (m/a.TestAll/one)",
		"TestSome":               skipped + "TestSome (m/a.TestSome/two): name what passed more exactly, as m/a.TestSome/one",
		"TestSome/one":           "",
		"TestSome/two":           skipped + "TestSome/two (m/a.TestSome/two)",
		"TestGone":               skipped + "TestGone (m/a.TestGone)",
		"test_p":                 skipped + "test_p (t/test_a.py::test_p[2]): name what passed more exactly, as t/test_a.py::test_p[1]",
		"test_p[1]":              "",
		"test_same":              skipped + "test_same (t/test_b.py::test_same): name what passed more exactly, as t/test_a.py::test_same",
		"t/test_a.py::test_same": "",
		"test_u":                 skipped + "test_u (mod.C.test_u (i=2))",
	} {
		if got := ran.Row(Claim{Tests: []string{name}}, "").Lacks(); got != want {
			t.Errorf("%s: lacks %q, want %q", name, got, want)
		}
	}
}

// What counts is how the head's tests do on the base's product code, where it was tried.
func TestRowTried(t *testing.T) {
	ran := Ran{
		Passed: []string{"m.TestNew", "m.TestEmpty", "m.TestExtended", "m.TestOld", "m.TestUnknown"}, Before: []string{"m.TestExtended", "m.TestOld"},
		Trial: &Trial{Fails: []string{"m.TestNew", "m.TestExtended"}, Passes: []string{"m.TestEmpty", "m.TestOld"}, Why: "it hung"},
		Same:  testname.Same, Base: func(test string) string { return testname.Parse(test).Base },
	}
	for _, c := range []struct {
		tests  []string
		said   string
		want   string
		unsure bool
	}{
		{[]string{"TestNew"}, "", "", false},
		{[]string{"TestExtended"}, "", "", false},
		{[]string{"TestEmpty"}, "", "passes without the change, too, and the reviewer does not name it: TestEmpty", false},
		{[]string{"TestEmpty"}, "as TestEmpty shows", "", false},
		{[]string{"TestOld", "TestNew"}, "", "", false},
		{[]string{"TestUnknown"}, "", "not shown: it is not known whether it fails without the change: TestUnknown (it hung)", true},
		{[]string{"TestUnknown", "TestNew"}, "", "", false},
		{[]string{"TestUnknown", "TestNowhere"}, "", "did not run on this head: TestNowhere", false},
	} {
		row := ran.Row(Claim{Tests: c.tests}, c.said)
		if got := row.Lacks(); got != c.want || row.Unsure() != c.unsure {
			t.Errorf("%s: lacks %q, not known %v; want %q, %v", c.tests, got, row.Unsure(), c.want, c.unsure)
		}
	}
}

func TestMerge(t *testing.T) {
	before := []Claim{{Criterion: "AC1", Tests: []string{"A"}, Commit: "1"}, {Criterion: "AC2", Why: "words", Commit: "1"}}
	more := []Claim{{Criterion: "AC2", Tests: []string{"B"}, Commit: "2"}, {Criterion: "AC1", Tests: []string{"A"}, Commit: "2"}, {Criterion: "AC3", Tests: []string{"C"}, Commit: "2"}}
	want := []Claim{{Criterion: "AC1", Tests: []string{"A"}, Commit: "1"}, {Criterion: "AC2", Tests: []string{"B"}, Commit: "2"}, {Criterion: "AC3", Tests: []string{"C"}, Commit: "2"}}
	if diff := cmp.Diff(want, Merge(before, more)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if before[1].Why == "" {
		t.Error("the earlier claims were changed")
	}
}

// Covers U1: each requirement stands in the task, in its words, and has a criterion.
func TestCovered(t *testing.T) {
	task := "Export\n\n- [ ] The **report** can be\n  exported as `CSV`\n- It takes at most 500 ms"
	good := []Requirement{{ID: "REQ1", Text: "export", Quote: "the report can be exported as CSV"}, {ID: "REQ2", Text: "speed", Quote: "takes at most 500 ms"}}
	for _, c := range []struct {
		name string
		list []Requirement
		fors map[string]string
		want []string
	}{
		{"all is there", good, map[string]string{"AC1": "REQ1", "AC2": "REQ2", "AC3": "REQ1"}, nil},
		{"without a criterion", good, map[string]string{"AC1": "REQ1"}, []string{"requirements: no criterion is for REQ2"}},
		{"other words", []Requirement{{ID: "REQ1", Text: "x", Quote: "the report can be exported as JSON"}}, map[string]string{"AC1": "REQ1"},
			[]string{`requirements: the quote of REQ1, "the report can be exported as JSON", does not stand in the task: quote its words as they are`}},
		{"no quote", []Requirement{{ID: "REQ1", Text: "x"}}, map[string]string{"AC1": "REQ1"},
			[]string{`requirements: the quote of REQ1, "", does not stand in the task: quote its words as they are`}},
		{"twice, and for nothing", append(good[:1:1], good[0]), map[string]string{"AC1": "REQ1", "AC2": "REQ7"},
			[]string{`criteria: AC2 is for "REQ7", which is no requirement`, "requirements: REQ1 occurs twice"}},
		{"nameless", []Requirement{{Text: "x", Quote: "500 ms"}}, nil, []string{"requirements: \"x\" lacks its id or its text"}},
	} {
		if diff := cmp.Diff(c.want, Covered(task, c.list, c.fors)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Covers U3: a part of a sentence, or of two, is not what a text says.
func TestSays(t *testing.T) {
	const task = "Export the list\n\nUsers **export** the list\nas CSV, too. It takes 1.5 s at most!\n\n- [ ] The file has a header\n- never show it to guests; ask\n- Never do this, e.g. show secrets. Nie darf, z. B. Passwörter, etwas im Log stehen."
	for text, want := range map[string]bool{
		"Users export the list as CSV, too.": true, "it takes 1.5 s at most": true, "The file has a header": true, "Export the list": true,
		"export the list as CSV, too": false, "show it to guests": false, "never show it to guests": false, "never show it to guests; ask": true,
		"show secrets": false, "Passwörter, etwas im Log stehen": false, "Never do this, e.g. show secrets": true, "as CSV, too. It takes 1.5 s at most": false,
		"5 s at most": false, "The file has a header never show it to guests": false, "": false, ".": false, "as CSV, too": false,
	} {
		if got := Says(task, text); got != want {
			t.Errorf("Says(%q) = %v, want %v", text, got, want)
		}
	}
}
