package learn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"forge/pipeline"
)

// agreeing are findings that were dismissed, and learnings that say that they should be.
var agreeing = []struct{ finding, learning string }{
	{"No doc comment on the unexported function open", "Do not ask for doc comments on unexported functions."},
	{"Missing doc comment on exported type Store", "Doc comments on exported types are optional here."},
	{"The function lacks a doc comment", "People here do not want doc comment remarks for a function."},
	{"No doc comment on parse", "Never flag a missing doc comment."},
	{"The exported method has no comment", "Don't report an exported method without a comment."},
	{"The error is not wrapped with context", "Unwrapped errors are fine inside this package; do not ask to wrap an error with context."},
	{"Wrap the returned error with fmt.Errorf", "No need to wrap a returned error with fmt.Errorf in main."},
	{"Error of Close is ignored", "Ignore the error of Close on files that were only read."},
	{"The error of Close is not checked", "It is fine to leave the error of Close unchecked."},
	{"Check the error of Fprintf", "The error of Fprintf need not be checked: it is acceptable."},
	{"Missing test for the empty list", "Do not demand a test for the empty list."},
	{"No test covers the parser's error path", "Tests of an error path in the parser are not required."},
	{"Add a unit test for this helper", "Never ask for a unit test of a helper."},
	{"The helper is untested", "An untested helper is ok when its caller has a test."},
	{"Add a benchmark for this function", "Do not add benchmark functions for this."},
	{"Magic number 42 should be a named constant", "A magic number in a table is fine without a named constant."},
	{"Use a constant for the literal 60", "Do not suggest a constant for a literal that is used once."},
	{"Variable name x is too short", "Short variable names are acceptable in loops."},
	{"The name tmp says little", "Please do not nitpick a name such as tmp: it says enough."},
	{"Rename the receiver to match the other methods", "Don't insist on a receiver name that matches other methods."},
	{"Function is too long, split it up", "Long functions are fine: never ask to split a function up."},
	{"Line exceeds 120 characters", "A line over 120 characters is allowed in tests."},
	{"This map grows without bound", "The map is cleared daily; that it grows is by design."},
	{"The timeout is hard coded", "The hard coded timeout is intentional."},
	{"Missing timeout on the HTTP client", "The HTTP client has no timeout on purpose."},
	{"Add a timeout to the request", "Do not add a timeout to a request of the long poll."},
	{"The lock is held during the call", "The lock is held during the call deliberately."},
	{"The password is logged", "That a password is logged in the demo is a false positive."},
	{"SQL is concatenated from strings", "SQL concatenated from constant strings is harmless."},
	{"Use a prepared statement here", "Do not require a prepared statement for migrations."},
	{"The context is not passed on", "A context is not needed in these commands: it is not passed on as is."},
	{"Missing context parameter", "Reviews should not ask for a context parameter in tests."},
	{"Use slices.Contains instead of the loop", "Do not suggest slices.Contains instead of a loop."},
	{"Preallocate the slice", "No need to preallocate a slice here."},
	{"Allocation in a loop", "An allocation in a loop is not a problem at start."},
	{"Add a nil check for the pointer", "Never request a nil check for a pointer that the caller checks."},
	{"The pointer may be nil", "That a pointer may be nil is not an issue: the caller checks it."},
	{"Missing license header", "We do not care about a missing license header."},
	{"Missing package comment", "A package comment is unnecessary in main packages; reviewers must not ask for a missing one."},
	{"Comment does not end with a period", "Comments need not end with a period: that does not matter."},
	{"Imports are not grouped", "Do not mention that imports are not grouped."},
	{"Add logging of the failure", "Do not add logging of a failure that is returned."},
	{"Debug output is missing here", "Debug output is not wanted: never ask for missing debug output."},
	{"TODO without an issue number", "A TODO without an issue number is permitted."},
	{"Deprecated function is still used", "The deprecated function is used until version two: ignore it."},
	{"Add type hints to the function", "Type hints are not necessary for a function in scripts."},
	{"Missing docstring", "Missing docstring remarks are dismissed by this team."},
	{"Use const instead of let", "Don't complain about let instead of const."},
	{"The regular expression is compiled on each call", "A regular expression compiled on each call is okay in a command."},
	{"Duplicate code in both handlers", "Duplicate code in handlers is tolerated: the handlers will differ."},
}

// opposed are findings that were dismissed, and learnings that want what they ask for.
var opposed = []struct{ finding, learning string }{
	{"The returned error is not wrapped", "Wrap every returned error with the name of the operation."},
	{"Quote it for the shell", "Quote what the shell expands."},
	{"Missing test for the empty list", "Add a test for the empty list."},
	{"No doc comment on the exported type", "Every exported type has a doc comment: ask for it."},
	{"Do not log the password", "Never log a password."},
	{"The nil pointer is not checked", "Check the pointer for nil before its use."},
	{"Avoid panic in library code", "Do not panic in library code."},
	{"Missing timeout on the HTTP client", "A missing timeout of an HTTP client is not acceptable."},
	{"Close the response body", "Always close the response body."},
	{"The map is read without the lock", "The map must be read under the lock."},
}

// unrelated are findings, and learnings of the same file and category, of which neither says
// anything about the other.
var unrelated = []struct {
	finding, learning string
	stand             Stand
}{
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "`sigmaCalc1` returns 1 when the total is over 101.", StandFact},
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "The function sigmaCalc1 in lib adds the unit price.", StandFact},
	{"`sigmaCalc1` has no JSDoc comment; functions in lib need one that names the unit.", "Run `npm run deploy` after every change.", StandHow},
	{"`psiCalc3` should log overflow before it adds.", "`psiCalc0` should split the sum before it adds.", StandAsk},
	{"`psiCalc3` should log overflow before it adds.", "`psiCalc3` should freeze its value.", StandAsk},
	{"The retry has no limit", "Retries of the client wait 30 seconds.", StandFact},
	{"loadConfig reads the file twice", "Use loadConfig to read settings in tests.", StandHow},
}

// What a finding says nothing about is moved by nothing that becomes of it, in whatever
// file it is: neither by a dismissal, nor by a suggestion that was applied or left out.
func TestEvidenceIsAboutTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range unrelated {
		l := learning("l", c.learning, func(l *pipeline.Learning) {
			l.Category, l.Paths, l.Tags = "style", []string{"a.go"}, []string{c.stand.Tag()}
		})
		for _, k := range []pipeline.SignalKind{pipeline.SignalDismissed, pipeline.SignalRefused, pipeline.SignalApplied, pipeline.SignalIgnored, pipeline.SignalFixedByHuman} {
			s := dismissing(c.finding, "won't fix", 0)
			s.Kind = k
			if e, ok := EvidenceFrom(s, &l); ok {
				t.Errorf("%q is %s, and %q (%s) gets %+.2f: %s", c.finding, k, c.learning, c.stand, e.Delta, e.Why)
			}
		}
	}
}

// How a person rewrote one suggestion is not told by what became of others of its file; what
// became of those of its rule there is.
func TestRewritesStandForThemselves(t *testing.T) {
	t.Parallel()
	about := func(n int, message, rule string, kind pipeline.SignalKind) pipeline.Signal {
		s := dismissing(message, "Won't fix", n)
		s.About.Category, s.About.Rule, s.Kind = "correctness", rule, kind
		s.About.File, s.File = "lib/psi.js", "lib/psi.js"
		return s
	}
	own := about(0, "`psiCalc0` should split the sum before it adds.", "split-the-sum", pipeline.SignalRewritten)
	own.Before, own.After, own.Actor = "const a = 1;\nconst b = a;", "const x = 1;\nconst b = x + 0;", pipeline.Actor{ID: 1}
	for _, c := range []struct {
		name string
		s    pipeline.Signal
		want float64 // of either learning
	}{
		{"another was dismissed", about(1, "`psiCalc3` should log overflow before it adds.", "log-overflow", pipeline.SignalDismissed), 0},
		{"another was left out", about(1, "`psiCalc4` should guard zero before it adds.", "guard-zero", pipeline.SignalIgnored), 0},
		{"one of the rule was dismissed", about(1, "Split it: `psiCalc7` sums twice.", "split-the-sum", pipeline.SignalDismissed), dismissedDelta},
		{"one of the rule was applied", about(1, "Split it: `psiCalc7` sums twice.", "split-the-sum", pipeline.SignalApplied), appliedDelta},
	} {
		born := LearningsFrom(own)
		if len(born) != 2 {
			t.Fatalf("a rewrite bears %+v", born)
		}
		for i := range born {
			if e, _ := EvidenceFrom(c.s, &born[i]); e.Delta != c.want {
				t.Errorf("%s: %s gets %+.2f (%s), want %+.2f", c.name, born[i].Key, e.Delta, e.Why, c.want)
			}
		}
	}
}

// A suggestion that was applied says of both sides what it says: it raises what asks for
// it, whatever that was learnt from, and lowers what is against it.
func TestAppliedIsForAndAgainst(t *testing.T) {
	t.Parallel()
	const finding = "`sigmaCalc3` has no JSDoc comment; functions in lib need one that names the unit."
	for _, c := range []struct {
		content string
		stand   Stand
		want    float64 // when it was applied; a dismissal is as much against it as for the others
	}{
		{"Functions in lib need a JSDoc comment that names the unit.", StandAsk, appliedDelta},
		{"Do not forget a JSDoc comment on functions in lib.", StandAsk, appliedDelta},
		{"Functions in lib need no JSDoc comment.", StandAvoid, -appliedDelta},
		{"JSDoc comments on lib functions are noise; reviewers should stay silent about them.", StandAsk, -appliedDelta}, // the words say otherwise than the tag
	} {
		l := learning("l", c.content, func(l *pipeline.Learning) { l.Category, l.Tags = "style", []string{c.stand.Tag()} })
		s := dismissing(finding, "Won't fix", 0)
		dismissed, _ := EvidenceFrom(s, &l)
		s.Kind = pipeline.SignalApplied
		applied, _ := EvidenceFrom(s, &l)
		if applied.Delta != c.want || (dismissed.Delta < 0) != (c.want > 0) || dismissed.Delta == 0 {
			t.Errorf("%q: applied %+.2f, dismissed %+.2f; want %+.2f, and the other way round", c.content, applied.Delta, dismissed.Delta, c.want)
		}
	}
}

func dismissing(finding, reason string, n int) pipeline.Signal {
	f := pipeline.Finding{Category: "style", Message: finding, File: "a.go"}
	return pipeline.Signal{Key: fmt.Sprint("dismissed/", n), Kind: pipeline.SignalDismissed, Scope: scope, At: day(float64(n + 1)), Weight: 1,
		Text: reason, File: f.File, About: &f}
}

// Covers H1: what agrees with a dismissal is not punished for it, whoever wrote it.
func TestEvidenceHasADirection(t *testing.T) {
	t.Parallel()
	punished, confirmed := 0, 0
	for _, c := range agreeing {
		for _, source := range []pipeline.LearningSource{pipeline.SourceHuman, pipeline.SourceReflection} {
			l := learning("l", c.learning, func(l *pipeline.Learning) { l.Source, l.Category, l.Paths = source, "style", []string{"a.go"} })
			switch e, ok := EvidenceFrom(dismissing(c.finding, "not wanted", 0), &l); {
			case ok && e.Delta < 0:
				punished++
				t.Errorf("%q was dismissed, and %q gets %+.2f: %s", c.finding, c.learning, e.Delta, e.Why)
			case ok:
				confirmed++
			}
		}
	}
	t.Logf("%d of %d agreeing learnings punished, %d confirmed", punished, 2*len(agreeing), confirmed)
	for _, c := range opposed {
		l := learning("l", c.learning, func(l *pipeline.Learning) { l.Type, l.Category = pipeline.LearningProcedural, "style" })
		if e, ok := EvidenceFrom(dismissing(c.finding, "not wanted", 0), &l); !ok || e.Delta != dismissedDelta {
			t.Errorf("%q was dismissed, and %q gets %+v, want %v", c.finding, c.learning, e, dismissedDelta)
		}
		s := dismissing(c.finding, "", 0)
		s.Kind = pipeline.SignalApplied
		if e, ok := EvidenceFrom(s, &l); !ok || e.Delta != appliedDelta {
			t.Errorf("%q was applied, and %q gets %+v, want %v", c.finding, c.learning, e, appliedDelta)
		}
	}
}

func TestStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		change  func(*pipeline.Learning)
		want    Stand
	}{
		{"Flag every missing timeout.", nil, StandAsk},
		{"Do not flag a missing timeout.", nil, StandAvoid},
		{"The flag --json prints JSON.", nil, StandFact},
		{"The request has a timeout.", nil, StandFact},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Type = pipeline.LearningProcedural }, StandHow},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Tags = []string{"go", StandAvoid.Tag()} }, StandAvoid},
		{"Wrap errors.", func(l *pipeline.Learning) { l.Tags = []string{"stands:nothing"} }, StandFact},
		{"whatever", func(l *pipeline.Learning) { l.Source = pipeline.SourceGap }, StandAsk},
		{"Panics are not acceptable.", nil, StandAsk},
	} {
		l := learning("l", c.content)
		if c.change != nil {
			c.change(&l)
		}
		if got := Stands(&l); got != c.want {
			t.Errorf("%q %v stands for %s, want %s", c.content, l.Tags, got, c.want)
		}
	}
}

// Covers H1 and lessons 3: clicks without a word, however many, take no more than one
// dismissal with a reason.
func TestSilenceIsWeak(t *testing.T) {
	t.Parallel()
	m := NewMemory(learning("l", "Wrap every returned error with its operation.",
		func(l *pipeline.Learning) { l.Type, l.Category, l.Base = pipeline.LearningProcedural, "style", 0.8 }))
	for n := range 8 {
		m.Take(dismissing("The returned error is not wrapped", "", n))
	}
	of := func() pipeline.Learning {
		for _, l := range m.Learnings() {
			if l.Key == "l" {
				return l
			}
		}
		return pipeline.Learning{}
	}
	if l := of(); math.Abs(l.Confidence-0.6) > 1e-9 || l.Against != 8 {
		t.Errorf("after eight clicks: %+v, want a confidence of 0.6", l)
	}
	m.Take(dismissing("The returned error is not wrapped", "the caller does", 9))
	if l := of(); math.Abs(l.Confidence-0.4) > 1e-9 {
		t.Errorf("and after a reason: %v, want 0.4", l.Confidence)
	}
}

// What a person told Forge is theirs to end: dismissals of one pull request, however many,
// take no more from it than one, those of all no more than two, and it is questioned. That
// the reviewer was wrong says nothing about it.
func TestPersonsWordIsNotTakenAway(t *testing.T) {
	t.Parallel()
	rule := learning("l", "Reviews must ask for a zero guard before division.",
		func(l *pipeline.Learning) { l.ID, l.Source, l.Category, l.Base = 7, pipeline.SourceHuman, "style", 0.9 })
	after := func(source pipeline.LearningSource, runs int, reasons ...string) pipeline.Learning {
		rule := rule
		if rule.Source = source; source == pipeline.SourceRewrite {
			rule.Author = pipeline.Actor{ID: 3}
		}
		m := NewMemory(rule)
		for n, r := range reasons {
			s := dismissing("There is no zero guard before the division", r, n)
			s.Run = int64(1 + n%runs)
			m.Take(s)
		}
		for _, l := range m.Learnings() {
			if l.Key == "l" {
				return l
			}
		}
		return pipeline.Learning{}
	}
	many := func(reason string) []string { return slices.Repeat([]string{reason}, 8) }
	for _, c := range []struct {
		name       string
		source     pipeline.LearningSource
		runs       int
		reasons    []string
		want       float64
		questioned bool
	}{
		{"one", pipeline.SourceHuman, 1, []string{"we do not want guards"}, 0.7, false},
		{"many in one pull request", pipeline.SourceHuman, 1, many("we do not want guards"), 0.7, true},
		{"many in many", pipeline.SourceHuman, 8, many("we do not want guards"), 0.5, true},
		{"the reviewer erred", pipeline.SourceHuman, 8, many("False positive."), 0.9, false},
		{"the reviewer erred, in other words", pipeline.SourceHuman, 1, []string{"The divisor is checked above.", "That's wrong", "It is never zero", "误报", "Fehlalarm"}, 0.9, false},
		{"of what Forge taught itself", pipeline.SourceReflection, 1, many("False positive."), 0, false},
		{"of a rewrite, the reviewer erred", pipeline.SourceRewrite, 1, many("False positive."), 0.9, false},
		{"of a rewrite", pipeline.SourceRewrite, 1, many("we do not want guards"), 0.7, true},
		{"both", pipeline.SourceHuman, 1, []string{"False positive, and we do not want guards anyway"}, 0.7, false},
	} {
		l := after(c.source, c.runs, c.reasons...)
		if math.Abs(l.Confidence-c.want) > 1e-9 {
			t.Errorf("%s: %.2f, want %.2f", c.name, l.Confidence, c.want)
		}
		if got := Questioned([]pipeline.Learning{l}, nil); (len(got) == 1) != c.questioned || c.questioned && got[0].Why == "" {
			t.Errorf("%s: questioned %+v, want %v", c.name, got, c.questioned)
		}
	}
}

// Covers H6: a dismissed suggestion was not applied.
func TestRatesCountDismissed(t *testing.T) {
	t.Parallel()
	text := "x"
	var list []pipeline.Signal
	for n := range 10 {
		s := dismissing("Wrap it", "", n)
		s.Comment = int64(n + 1)
		s.About.Fix = &pipeline.Fix{Replacement: &text}
		if n == 0 {
			s.Kind = pipeline.SignalApplied
		}
		list = append(list, s)
	}
	again := list[3] // refused, and rewritten all the same: one suggestion
	again.Key, again.Kind = "suggestion/4", pipeline.SignalRewritten
	without := dismissing("Another", "", 20) // no suggestion
	got := Rates(append(list, again, without), day(21))
	if len(got) != 1 || got[0].Suggested != 10 || got[0].Applied != 1 || got[0].Rate != 0.1 {
		t.Errorf("%+v, want 1 of 10", got)
	}
}
