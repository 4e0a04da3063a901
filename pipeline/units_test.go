package pipeline

import (
	"strings"
	"testing"
	"time"

	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/text"

	"github.com/google/go-cmp/cmp"
)

// Covers T2: the identity of a finding does not depend on where its code stands
// or how numbers in its message read, but on what it says about which code.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := Finding{Category: "correctness", Rule: "nil", Message: `Value at line 12 may be nil.`, File: "a.go", Line: 12, Code: "\tx := f()\n"}
	cases := []struct {
		name string
		edit func(*Finding)
		same bool
	}{
		{"moved", func(f *Finding) { f.Line = 99 }, true},
		{"renumbered", func(f *Finding) { f.Message = "value at line 99 may be nil" }, true},
		{"reindented", func(f *Finding) { f.Code = "    x := f()   \n\n" }, true},
		{"other file, same code", func(f *Finding) { f.File = "b.go" }, true},
		{"other code", func(f *Finding) { f.Code = "y := g()" }, false},
		{"other message", func(f *Finding) { f.Message = "value is unused" }, false},
		{"other rule", func(f *Finding) { f.Rule = "unused" }, false},
		{"other category", func(f *Finding) { f.Category = "style" }, false},
		{"no code", func(f *Finding) { f.Code = "" }, false},
	}
	for _, c := range cases {
		f := base
		c.edit(&f)
		if got := f.Digest() == base.Digest(); got != c.same {
			t.Errorf("%s: same identity = %v, want %v", c.name, got, c.same)
		}
	}
	a, b := Finding{Category: "x", File: "a.go"}, Finding{Category: "x", File: "b.go"}
	if a.Digest() == b.Digest() {
		t.Error("findings about two whole files have one identity")
	}
	f, g, h := Failure{Test: "TestA", Error: "got 3, want 5\nat a_test.go:7"}, Failure{Test: "TestA", Error: "got 4, want 5\nat a_test.go:9"}, Failure{Test: "TestB", Error: "got 3, want 5"}
	if f.Digest() != g.Digest() || f.Digest() == h.Digest() {
		t.Error("failures: numbers must not count, the test's name must")
	}
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	for s, want := range map[Severity]bool{SeverityInfo: false, SeverityWarning: false, SeverityError: true, SeverityCritical: true, "blocker": true, "": true} {
		if got := s.Blocks(); got != want {
			t.Errorf("Severity(%q).Blocks() = %v, want %v", s, got, want)
		}
	}
	if got := []int{weight(SeverityInfo), weight(SeverityWarning), weight(SeverityError), weight(SeverityCritical)}; !cmp.Equal(got, []int{1, 2, 4, 8}) {
		t.Errorf("weights = %v", got)
	}
}

func TestSmallThings(t *testing.T) {
	t.Parallel()
	eq := func(what string, got, want any) {
		t.Helper()
		if !cmp.Equal(got, want) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	eq("FullName", Repo{Owner: "a", Name: "b"}.FullName(), "a/b")
	eq("FullName", Repo{Name: "b"}.FullName(), "b")
	eq("Fault", (&Fault{Class: FaultAgent, Message: "x"}).Error(), "agent: x")
	eq("Clock", text.Clock(1500*time.Millisecond), "1.5s")
	eq("Clock", text.Clock(125*time.Second), "2m 05s")
	eq("percent", percent(-1)+percent(33.33), "–33.3 %")
	eq("short", text.ShortSHA("abc")+text.ShortSHA("0123456789"), "abc0123456")
	eq("by", by(nil)+by(&Answer{By: Actor{Login: "ann"}}), " by ann")
	eq("oneLine", text.Clip(text.OneLine(" a\n b "), 200), "a b")
	eq("oneLine", len([]rune(text.Clip(text.OneLine(strings.Repeat("é", 300)), 200))), 200)
	eq("at", at("", 1)+at("f", 0)+at("f", 2), " in f at f:2")
	r := &Run{ID: 7}
	eq("Key", r.Key(PhaseRef{Phase: PhaseReview, Iteration: 2, Attempt: 1}), "run/7/iter/2/review")
	eq("Key", r.Key(PhaseRef{Phase: PhaseReview, Iteration: 2, Attempt: 3}), "run/7/iter/2/review/attempt/3")
	eq("Report", r.Report(1), "")
	eq("Decide of nothing", Decide(r) == nil, true)
	r.Apply(Event{Type: EventRunStopped, Seq: 4})
	eq("unstarted", r.State, State(""))
}

// Covers V1, V2: everything that a validation report can say.
func TestReportText(t *testing.T) {
	t.Parallel()
	if unknown := (&Run{State: StateRunning, Kind: "of the future", Config: config.Default()}); Decide(unknown) != nil {
		t.Errorf("Decide of a kind that this version does not know = %+v", Decide(unknown))
	}
	r := &Run{State: StateRunning, Config: config.Default()}
	fix := &Fix{Description: "add one"}
	r.Iterations = []Iteration{{Number: 1, Result: ResultFailed, Impl: &Implementation{Head: "0123456789", Summary: "first", Addressed: []string{"F1: checked for nil"}},
		Review: &Review{Ruled: true, Findings: []Finding{{Fingerprint: "a"}}}, Tests: &TestReport{Tampered: []Finding{{Fingerprint: "b"}}}}, {Number: 2, Result: ResultInProgress,
		Review: &Review{Findings: []Finding{{Fingerprint: "c", Severity: SeverityWarning, Category: "style", File: "a.go", Line: 3, Message: "long"}}, NotReviewed: []Skipped{{Path: "big.json", Why: "too big"}}},
		Tests: &TestReport{Total: 12, Passed: 9, Failed: 3, Flaky: []string{"TestF"}, Coverage: &Coverage{Lines: 81.25, Branches: -1, Changed: -1},
			Names:    []string{"T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9"},
			Tampered: []Finding{{Fingerprint: "b", Severity: SeverityError, Category: "tests", Message: "TestX is gone"}},
			Failures: []Failure{{Test: "TestA", File: "a_test.go", Line: 3, Error: "got 1", WorkedIn: 1}, {Test: "TestB", Error: "boom", WorkedIn: -1, Cause: "logic", Analysis: "off by one", Fix: fix}, {Test: "TestC", Error: "x"}}}}}
	r.Findings = []Issue{{Finding: &Finding{Fingerprint: "a"}, Phase: PhaseReview, First: 1, Last: 1, State: "fixed", Times: 1},
		{Finding: &Finding{Fingerprint: "b"}, Phase: PhaseTest, First: 1, Last: 2, Times: 2, State: "open"}, {Finding: &Finding{Fingerprint: "c"}, Phase: PhaseReview, First: 2, Last: 2, Times: 1}}
	want := `### Validation report, iteration 2 of 5

| total | passed | failed | skipped | coverage | of changed lines |
| --- | --- | --- | --- | --- | --- |
| 12 | 9 | 3 | 0 | 81.2 % | – |

Since iteration 1: 1 fixed, 1 still there, 1 new.

Passed: T1, T2, T3, T4, T5, T6, T7, T8 and 1 more

- **NEW FAILURE (worked in iteration 1)** ` + "`TestA`" + ` at a_test.go:3
  - error: got 1
- **NEW FAILURE (worked before the change)** ` + "`TestB`" + `
  - error: boom
  - root cause (logic): off by one
  - recommended fix: add one
- **FAILED** ` + "`TestC`" + `
  - error: x

Flaky (failed, then passed when run again): TestF

Not reviewed: ` + "`big.json`" + ` (too big)

- **warning** (style) at a.go:3: long
- **error** (tests, still there): TestX is gone

#### Recommendations

1. ` + "`TestB`" + `: add one

**Result: in progress (iteration 2 of 5)**
`
	if diff := cmp.Diff(want, r.Report(2)); diff != "" {
		t.Errorf("Report(-want +got):\n%s", diff)
	}
	if pad := r.Scratchpad(); !strings.Contains(pad, "**Implemented** (0123456): first\n- addressed: F1: checked for nil\n") {
		t.Errorf("Scratchpad = %s", pad)
	}
	if r.Iterations[0] = (Iteration{Number: 1}); r.Report(1) != "" {
		t.Error("an iteration without results has a report")
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"Fix: sum() is wrong!": "fix-sum-is-wrong", "  ": "task", "Übergröße 12": "bergr-e-12", "a very long title that goes on": "a-very-long"} {
		if got := text.Slug(in, 12); want != got && text.Slug(in, 40) != want {
			t.Errorf("Slug(%q) = %q, %q; want %q", in, got, text.Slug(in, 40), want)
		}
	}
}

// Covers lessons 21.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"continue", "accept", "cancel", "max_iterations", "tests"}
	for word, want := range map[string]string{
		"contineu": "continue", "Accept": "accept", "max-iteration": "max_iterations", "cont": "continue", "testsuite": "tests",
		"zzz": "", "ac": "", "something": "", strings.Repeat("accept", 30): "",
	} {
		if got := text.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// Covers R4.
func TestFrontMatter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"---\nmode: manual\n---\nFix it.":       {"mode: manual", "Fix it."},
		"---\r\nmode: manual\r\n---\r\nFix it.": {"mode: manual", "Fix it."},
		"---\na: 1\n\nb: 2\n---":                {"a: 1\n\nb: 2", ""},
		"---\n---\nFix it.":                     {"", "Fix it."},
		"Fix it.\n---\na: 1\n---":               {"", "Fix it.\n---\na: 1\n---"},
		"---\nno end":                           {"", "---\nno end"},
		"---\na: 1\n---- not the end":           {"", "---\na: 1\n---- not the end"},
		"":                                      {"", ""},
	} {
		yaml, rest := text.FrontMatter(in)
		if got := [2]string{yaml, rest}; got != want {
			t.Errorf("FrontMatter(%q) = %q, want %q", in, got, want)
		}
	}
}

// Covers H1: what was held back is said, with the reason.
func TestExplainHeldBack(t *testing.T) {
	t.Parallel()
	held := []SuppressedFinding{
		{Finding: Finding{Category: "style", File: "a.go", Line: 3, Message: "no doc comment\nat all"}, Why: "14 of 16 like it were dismissed: style in tests"},
		{Finding: Finding{Category: "tests", Message: "untested"}, Why: "ann dismissed it for this code", Learning: 7},
	}
	r := &Run{State: StateRunning, Config: config.Default(), Loop: Loop{Iterations: []Iteration{{Number: 1, Review: &Review{Suppressed: held}}}}}
	for _, want := range []string{
		"\n- style in a.go:3, \"no doc comment\", because 14 of 16 like it were dismissed: style in tests\n",
		"\n- tests, \"untested\", because ann dismissed it for this code (learning 7)\n",
	} {
		if got := r.Explain(); !strings.Contains(got, want) {
			t.Errorf("it says %q, want in it %q", got, want)
		}
	}
}

// A budget that another step would pass is not there yet: its figures say nothing of why.
func TestExplainBudget(t *testing.T) {
	t.Parallel()
	g := Guard{Name: GuardBudget, Limit: 3_500_000, Unit: "micro-USD", Detail: "the run has used 18100 of its 35000 tokens"}
	r := &Run{State: StateWaiting, Config: config.Default(), Gates: []Gate{{ID: "gate/1", Guard: &g}}}
	if got := r.Explain(); strings.Contains(got, "micro-USD") || !strings.Contains(got, "because of **budget**: the run has used 18100") {
		t.Errorf("it says %q", got)
	}
	g.Value = g.Limit
	if got := r.Explain(); !strings.Contains(got, "stopped it at $3.50 of $3.50") {
		t.Errorf("at its limit it says %q", got)
	}
}

// Covers V3: what differs between two runs of a test that fails in one way does not
// make another failure of it; what it got and wanted does.
func TestErrorKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"x_test.go:12: got 3, want 4", "x_test.go:14: got 3, want 4", true},
		{"--- FAIL: TestX (0.00s)\n boom", "--- FAIL: TestX (1.31s)\n boom", true},
		{"<Box object at 0x7f01aa>", "<Box object at 0x7f02bb>", true},
		{"open /tmp/pytest-of-a/pytest-3/x: no such file", "open /tmp/pytest-of-a/pytest-4/x: no such file", true},
		{"dial tcp 127.0.0.1:40123: refused", "dial tcp 127.0.0.1:51244: refused", true},
		{"at 2026-01-02T03:04:05Z: broken", "at 2026-02-03T04:05:06.7Z: broken", true},
		{`File "a.py", line 7, in f`, `File "a.py", line 9, in f`, true},
		{"assert 6 == 7", "assert 8 == 7", false},
		{"assert 6 == 7", "assert None == 7", false},
		{"same first line\nassert a", "same first line\nassert b", false},
		{"got -1", "got 1", false},
	} {
		if got := (&Failure{Error: c.a}).ErrorKey() == (&Failure{Error: c.b}).ErrorKey(); got != c.same {
			t.Errorf("%q and %q: the same %v, want %v", c.a, c.b, got, c.same)
		}
	}
}

// Covers S24: addresses and settings of the server are not told on GitHub.
func TestFaultShown(t *testing.T) {
	t.Parallel()
	f := &Fault{Class: FaultProvider, Message: "http://10.0.0.7/v1 answered with a web page; set openai_base_url", Public: "the model's provider answered with an error page"}
	if got := f.Shown(&Run{Repo: Repo{ID: 1}}); got.Message != f.Public || got.Operator != f.Message {
		t.Errorf("on GitHub: %+v", got)
	}
	if got := f.Shown(&Run{}); got != f {
		t.Errorf("on a repository of one's own: %+v", got)
	}
}

// Covers V1: what is below the threshold, about security, still failing, and to be
// done has a place of its own, and only where there is something.
func TestReportSections(t *testing.T) {
	t.Parallel()
	fix := &Fix{Description: "escape it"}
	f := Failure{Test: "TestSum", Error: "2 != 3", Fingerprint: "t1", Fix: &Fix{Description: "add the third"}}
	r := &Run{State: StateRunning}
	r.Config.Loop.MaxIterations = 5
	r.Iterations = []Iteration{
		{Number: 1, Mode: ModeFresh, Result: ResultFailed, Brief: "1 failing test", Impl: &Implementation{Summary: "Add a sum"}},
		{Number: 2, Mode: ModeFixFailures, Result: ResultFailed, Brief: "1 failing test", Impl: &Implementation{Summary: "Mend it", Addressed: []string{"T1 (TestSum): started at one"}},
			Review: &Review{Findings: []Finding{{Severity: SeverityWarning, Category: "security", File: "a.go", Line: 3, Message: "It is not escaped.", Fix: fix, Fingerprint: "f1"}}},
			Tests: &TestReport{Total: 2, Passed: 1, Failed: 1, Failures: []Failure{f},
				Coverage: &Coverage{Lines: 50, Changed: -1, Threshold: 60, Under: []CoverageGap{{File: "a.go", Function: "Sum", Line: 2, Lines: 40, Changed: true}, {File: "b.go", Lines: 10}}, More: 3}}},
	}
	r.Failures = []Issue{{Failure: &f, Phase: PhaseTest, State: IssueOpen, First: 1, Last: 2, Times: 2}}
	r.end(StateFailed, "it was enough")
	got := r.Report(2)
	for _, want := range []string{
		"- **STILL FAILING** `TestSum`\n  - error: 2 != 3\n  - previous attempt: started at one\n",
		"#### Security issues\n\n- **warning** at a.go:3: It is not escaped.\n",
		"#### Coverage under 60 %\n\n- `Sum` at a.go:2, which the change touches: 40.0 %\n- `b.go`: 10.0 %\n- and 3 more\n",
		"#### Recommendations\n\n1. `TestSum`: add the third\n2. a.go:3: escape it\n",
		"#### Iterations\n\n1. fresh: Add a sum (1 failing test)\n2. fix failures: Mend it (1 failing test)\n",
		"Next: nothing: it was enough.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

// An integration point stands as its test went; what was not run is never a pass.
func TestIntegrationPoints(t *testing.T) {
	t.Parallel()
	tests := &TestReport{Names: []string{"pkg.TestPair"}, Failures: []Failure{{Test: "pkg.TestBroken"}}, Flaky: []string{"pkg.TestShaky"}, Before: []Failure{{Test: "pkg.TestOld"}},
		Changed: []TestChange{{Test: "pkg.TestRewritten", Now: "passed"}}}
	tests.Names = append(tests.Names, "pkg.TestRewritten")
	for probe, want := range map[string]string{"TestRewritten": "❌ as it stood; as edited: passed", "TestPair": "✅", "TestBroken": "❌", "TestShaky": "⚠️ flaky", "TestOld": "❌", "TestNone": "not run", "": "–"} {
		if got := tests.saw(probe); got != want {
			t.Errorf("saw(%q) = %s, want %s", probe, got, want)
		}
	}
	if got := (*TestReport)(nil).saw("TestPair"); got != "–" {
		t.Errorf("without tests: %s", got)
	}
}

// Covers V1: tests that had to change are told with the reason, also where there is no
// pull request.
func TestChangedTestsAreTold(t *testing.T) {
	t.Parallel()
	r := &Run{ID: 3, State: StateVerified, Config: config.Default()}
	r.Iterations = []Iteration{{Number: 1, Tests: &TestReport{Total: 2, Passed: 2,
		Changed: []TestChange{{Test: "TestSum", Error: "got 3, want 4", Reason: "the issue asks for 3"}}}}}
	for _, c := range []struct{ text, want string }{
		{r.Report(1), "#### Tests that had to change\n\n- `TestSum`, as it stood at the base: got 3, want 4; the reviewer: the issue asks for 3\n"},
		{r.Summary(), "On the reviewer's word alone, 1 test had to change: TestSum."},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%q is not in:\n%s", c.want, c.text)
		}
	}
}

// Covers T8, lessons 23: what is open and reported once more as something lesser keeps its
// severity, unless it was withdrawn, with why.
func TestKeepSeverity(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]Severity{"": SeverityError, " ": SeverityError, "calc.go:14 checks it": SeverityWarning} {
		r := &Run{}
		r.Findings = []Issue{{State: IssueOpen, Phase: PhaseReview, Seen: "head1", Finding: &Finding{Fingerprint: "aa", Severity: SeverityError, Message: "it leaks"}}}
		v := &Review{Head: "head2", Ruled: true, Findings: []Finding{{Fingerprint: "aa", Severity: SeverityWarning, Message: "it leaks"}},
			Rulings: []Ruling{{Finding: "aa", Verdict: VerdictWithdrawn, Why: why}}}
		if r.KeepSeverity(v); v.Findings[0].Severity != want {
			t.Errorf("withdrawn as %q and reported again: %s, want %s", why, v.Findings[0].Severity, want)
		}
	}
}

// Covers V8: a test that fails proves nothing, also where a person accepted its module.
func TestFailsAs(t *testing.T) {
	t.Parallel()
	tests := &TestReport{Accepted: []string{"tests/test_cc.py::test_cc", "kbad works"}}
	for evidence, want := range map[string]bool{"lib/kok.js:1 works": false, "the test `kbad works` shows it": true, "src/cc.py:1 test_cc": true, "see `test_cc`.": true, "src/aa.py:1 test_aa": false, "": false} {
		if tests.failsAs(evidence) != want {
			t.Errorf("%q names a test that fails: %v", evidence, !want)
		}
		var b strings.Builder
		r := &Run{Plan: &Plan{Criteria: []Criterion{{ID: "AC1", Text: "cc works"}}}}
		r.Iterations = []Iteration{{Number: 1, Review: &Review{Compliance: []Compliance{{Criterion: "AC1", Met: true, Evidence: evidence}}}, Tests: tests}}
		r.reportProof(&b, &r.Iterations[0])
		if mark := map[bool]string{true: "| ❌, accepted |", false: "| ✅ |"}[want]; !strings.Contains(b.String(), mark) {
			t.Errorf("%q shows no %q:\n%s", evidence, mark, &b)
		}
	}
}

// Covers V8, V9: the result of each tier names who accepted a module whose test fails.
func TestResultNamesWhoAccepted(t *testing.T) {
	t.Parallel()
	report := func(state State, accepted ...string) string {
		r := &Run{State: StateVerified, Plan: &Plan{Split: &module.Split{Modules: []module.Module{{ID: "cc"}}}},
			Parts: []module.Part{{ID: "cc", State: string(state), By: "ann", Known: []string{"TestCC"}}}}
		r.Iterations = []Iteration{{Number: 1, Result: ResultPassed, Review: &Review{}, Tests: &TestReport{Accepted: accepted}}}
		return r.Report(1)
	}
	but := ", except for what @ann accepted with the module cc**"
	got := report(StateAccepted, "TestCC")
	for _, want := range []string{"**Result: PASSED" + but, "**Result: PASSED (" + Verified + ")" + but} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := report(StateVerified); strings.Contains(got, "accepted") || !strings.Contains(got, "**Result: PASSED**") {
		t.Errorf("nothing was accepted:\n%s", got)
	}
}

// Covers V9: a module that nobody needs is told so once, also while the run is stopped.
func TestUnneededModuleIsToldOnce(t *testing.T) {
	t.Parallel()
	r := &Run{ID: 7, State: StateStopped, Plan: &Plan{}, Parts: []module.Part{{ID: "c", Run: 703, State: string(StateRunning)}}}
	first := r.tell()
	if first == nil || first.Tell[0].Type != EventRunCancelled {
		t.Fatalf("%+v", first)
	}
	r.Parts[0].Told = "cancelled"
	if again := r.tell(); again != nil {
		t.Errorf("it is told more before it has ended: %+v", again.Tell)
	}
}

// An iteration that people sent back after it had been verified does not read as verified.
func TestReportOfWhatPeopleSentBack(t *testing.T) {
	t.Parallel()
	r := &Run{State: StateVerified, Loop: Loop{Bounces: []Bounce{{Phase: PhaseReview, Iteration: 1, Count: 1}},
		Iterations: []Iteration{{Number: 1, Result: ResultFailed, Review: &Review{Ruled: true}}, {Number: 2, Result: ResultPassed}}}}
	if report := r.Report(1); !strings.Contains(report, "SENT BACK (iteration 1 of") || !strings.Contains(report, "a maintainer asked for changes") {
		t.Error(report)
	}
}

// What was ruled fixed stays so in the report when the iteration takes the base branch in and
// is reviewed once more.
func TestReportAfterASecondReview(t *testing.T) {
	t.Parallel()
	wish := &Finding{Fingerprint: "w", Severity: SeverityError, Category: CategoryHuman, Message: "say why"}
	r := &Run{State: StateVerified, Head: "h3", Loop: Loop{
		Findings: []Issue{{Finding: wish, Phase: PhaseReview, First: 1, Last: 1, Seen: "h1", State: IssueFixed, FixedIn: "h2"}},
		Iterations: []Iteration{{Number: 1, Result: ResultFailed, Review: &Review{Ruled: true, Head: "h1"}},
			{Number: 2, Result: ResultPassed, Impl: &Implementation{Parent: "h1", Head: "h2"}, Review: &Review{Ruled: true, Head: "h3"}, Tests: &TestReport{Head: "h3"}}}}}
	if report := r.Report(2); strings.Contains(report, "(human, still there)") || !strings.Contains(report, "1 fixed, 0 still there") {
		t.Error(report)
	}
}

// What was ruled fixed, and is asked for again later, was fixed in the iteration that it was
// ruled so in.
func TestReportOfWhatIsAskedForAgain(t *testing.T) {
	t.Parallel()
	wish := &Finding{Fingerprint: "w", Severity: SeverityError, Category: CategoryTests, Message: "the merge breaks it"}
	fixed := Ruling{Finding: "w", Verdict: VerdictFixed, Why: "done", Changed: true}
	r := &Run{State: StateRunning, Head: "h3", Loop: Loop{
		Findings: []Issue{{Finding: wish, Phase: PhaseReview, First: 1, Last: 2, Seen: "h2", State: IssueOpen}},
		Iterations: []Iteration{{Number: 1, Result: ResultPassed, Review: &Review{Ruled: true, Head: "h1"}},
			{Number: 2, Result: ResultPassed, Impl: &Implementation{Parent: "h1", Head: "h2"}, Review: &Review{Ruled: true, Head: "h2", Rulings: []Ruling{fixed}}, Tests: &TestReport{Head: "h2"}},
			{Number: 3, Result: ResultInProgress}}}}
	if report := r.Report(2); strings.Contains(report, "still there)") || strings.Contains(report, "as it was") {
		t.Error(report)
	}
}
