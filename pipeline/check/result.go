package check

import (
	"strings"
	"unicode/utf8"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// status is how a test ended.
type status string

const (
	passed  status = "passed"
	failed  status = "failed"
	skipped status = "skipped"
	flaky   status = "flaky"  // failed, then passed when run again
	carrier status = "parent" // failed only because a test inside it failed; that one counts
)

// The causes that the output alone proves; the others need an analysis (B4).
const (
	causeSyntax  = "syntax"  // it does not build
	causeRuntime = "runtime" // it panicked, crashed, hung or was killed
	causeEnv     = "env"     // something outside the code is missing
)

// testcase is one test, or a build or command that broke before its tests.
type testcase struct {
	name   string // unique within the repository: "pkg.TestX/sub", "tests/test_a.py::test_x"
	group  string // the package, file or class that is lost with it when it breaks as a whole
	status status
	file   string // relative to the root of the work tree; "" when not told
	line   int
	err    string // shortened
	cause  string
	whole  bool   // stands for its whole group (a build, a crash), not for one test
	stuck  bool   // it hung: running it again would only cost the time again
	again  string // how its suite names it when it is to run alone; "" when it cannot
}

// result is what a parser made of one command's output.
type result struct {
	cases   []testcase
	partial bool            // it broke off: a test that is not here may still exist
	cut     bool            // output was lost: the same
	lost    map[string]bool // groups that broke off as a whole
	unbuilt map[string]bool // Go packages that were not built, because one that they need was not; that one is a failure
}

func (r *result) lose(group string) {
	if r.lost == nil {
		r.lost = map[string]bool{}
	}
	r.lost[group] = true
}

func (r *result) add(t testcase) { r.cases = append(r.cases, t) }

// failing counts the failed tests.
func (r *result) failing() int {
	n := 0
	for i := range r.cases {
		if r.cases[i].status == failed {
			n++
		}
	}
	return n
}

// ran counts the tests that were started, whatever came of them.
func (r *result) ran() int {
	n := 0
	for i := range r.cases {
		if !r.cases[i].whole {
			n++
		}
	}
	return n
}

// failure returns the test as the pipeline knows it.
func (t *testcase) failure() pipeline.Failure {
	if t.err == "" {
		t.err = "the test failed without a message"
	}
	f := pipeline.Failure{Test: t.name, File: t.file, Line: t.line, Error: t.err, Cause: t.cause, Whole: t.whole}
	f.Fingerprint = f.Digest()
	return f
}

// Limits of a failure's error text. They keep what a person reads first and
// bound what goes into events and prompts.
const (
	maxErrorLines = 30
	maxErrorBytes = 2000
)

var (
	escapes   = lazyregexp.New("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")
	addresses = lazyregexp.New(`\b0x[0-9a-fA-F]{6,}\b`) // differ from run to run, which would hide that two failures are the same
)

// shorten returns the first lines of a message, without colour codes and
// trailing space.
func shorten(s string) string {
	lines := strings.Split(strings.Trim(clean(s), "\n"), "\n")
	cut := false
	if len(lines) > maxErrorLines {
		lines, cut = lines[:maxErrorLines], true
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	out := strings.Join(lines, "\n")
	if len(out) > maxErrorBytes {
		out, cut = text.Head(out, maxErrorBytes), true
	}
	if cut {
		out += "\n…"
	}
	return out
}

// tail returns the last lines of an output, where commands say what went wrong.
func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(clean(s)), "\n")
	if len(lines) > maxErrorLines {
		lines = append([]string{"…"}, lines[len(lines)-maxErrorLines+1:]...)
	}
	out := strings.Join(lines, "\n")
	if n := len(out) - maxErrorBytes; n > 0 {
		for n < len(out) && !utf8.RuneStart(out[n]) {
			n++
		}
		out = "…" + out[n:]
	}
	return out
}

// oneLine makes a test's name fit for lists.
func oneLine(name string) string {
	return text.Head(text.OneLine(clean(name)), 500)
}

// clean makes output fit for events and pages: valid UTF-8, no terminal escapes
// and no control characters but tabs and line ends.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = escapes.ReplaceAllString(s, "")
	s = addresses.ReplaceAllString(s, "0x…")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r == '\r' {
			return '\n'
		}
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
