package check

import (
	"cmp"
	"fmt"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// judge turns the way a command ended into failures. A suite that could not run
// for want of something around it has not failed (R6): it is not run.
func (c *checker) judge(s *suite, res *workspace.Result, out []byte) {
	text := string(out)
	if s.result.ran() == 0 && res.Class == "" && res.Exit != 0 {
		if why := cmp.Or(s.cannotRun(res.Exit, text), c.absentPackage(s, text)); why != "" {
			s.refuse(why)
			return
		}
	}
	if res.Class == "" {
		c.judgeExit(s, res, text)
		return
	}
	s.ended = c.cutOff(s, res.Class)
	if at := pytestAt(text); s.pytest && res.Class == "timeout" && at != "" {
		s.ended += "; it hung in " + at
	}
	if res.Class == "timeout" {
		c.judgeTimeout(s, text)
	} else {
		s.broke(s.ended, text)
	}
}

// refuse marks a suite as one that could not run. What it may have said until it
// gave up says nothing about tests.
func (s *suite) refuse(why string) {
	s.done.NotRun = why
	s.result = result{partial: true}
}

// judgeExit handles a command that ended by itself.
func (c *checker) judgeExit(s *suite, res *workspace.Result, text string) {
	if s.format == formatAny && len(s.result.cases) == 0 {
		if res.Exit == 0 && ranNothing(text) {
			return
		}
		t := testcase{name: s.done.Name, status: passed}
		if res.Exit != 0 {
			r := reasonOf(text)
			t.status, t.err = failed, exitText(res.Exit, r.text, text)
			t.file, t.line, t.cause = r.file, r.line, r.cause
		}
		s.result.add(t)
		return
	}
	switch {
	case res.Exit == 0 && s.result.failing() == 0 && s.result.partial:
		// The runner was not the one that ended the process.
		why := "its report breaks off"
		if len(s.result.cases) == 0 {
			why = "without its report"
		}
		s.broke(exitLine(0)+", but "+why+": the process was ended from inside", text)
	case res.Exit == 0, nothingCollected(s, res.Exit, text):
	case s.result.failing() == 0, s.brokeBuild(text):
		s.broke(exitLine(res.Exit)+", though no test is reported as failing", text)
	case c.endedOtherwise(s, res.Exit):
		s.broke(exitLine(res.Exit)+", which the tests that failed before do not explain", text)
	}
}

// upToDate is a line of a build tool that has looked and run nothing.
var upToDate = lazyregexp.New("^(?:g?make(?:\\[\\d+\\])?: (?:[`'‘].+['’] is up to date\\.|Nothing to be done for [`'‘].+['’]\\.|(?:Entering|Leaving) directory .*)|ninja: no work to do\\.|task: Task \".+\" is up to date)$")

// ranNothing reports whether a command says itself that it ran nothing: a directory that is
// called as the target of a Makefile is, which does not say that the target is no file, is up to date.
func ranNothing(text string) bool {
	said := false
	for line := range strings.Lines(clean(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if said = upToDate.MatchString(line); !said {
			return false
		}
	}
	return said
}

// endedOtherwise reports whether only tests fail that failed before, and yet the
// command ended in another way than at the base.
func (c *checker) endedOtherwise(s *suite, exit int) bool {
	if c.broken(s) || c.o.Baseline == nil {
		return false
	}
	for _, was := range c.o.Baseline.Suites {
		if was.Command == s.done.Command && was.Exit != 0 && !was.TimedOut {
			return was.Exit != exit
		}
	}
	return false
}

// brokeBuild reports whether one part of a build of several did not compile while
// tests of another failed.
func (s *suite) brokeBuild(text string) bool {
	return s.format == formatReports && buildReason(strings.Split(clean(text), "\n")).text != ""
}

// nothingCollected recognises the exit codes by which tools say that there are no tests.
func nothingCollected(s *suite, exit int, text string) bool {
	switch {
	case s.result.ran() > 0:
		return false
	case s.pytest, s.format == formatUnittest:
		return exit == 5
	case s.format == formatGo:
		return strings.Contains(text, "no packages to test") || strings.Contains(text, "matched no packages")
	}
	return false
}

// cutOff says how a suite was ended from outside.
func (c *checker) cutOff(s *suite, class string) string {
	switch class {
	case "timeout":
		return c.stopped(s)
	case "memory":
		return "the tests used more memory than the sandbox allows, and were killed"
	case "output":
		return "the tests wrote more output than the sandbox allows, and were killed"
	case "disk":
		return "the tests filled the disk, or their share of it, and were killed"
	}
	return "the tests were killed by a signal (" + class + ")"
}

func (c *checker) judgeTimeout(s *suite, text string) {
	after := s.ended
	named := false
	for i := range s.result.cases {
		if t := &s.result.cases[i]; t.status == failed && t.stuck {
			t.err, named = t.err+"\n"+after, true
		}
	}
	s.result.partial = true
	if !named && strings.Contains(after, "; it hung in ") {
		s.broke(after, text)
	} else if !named {
		s.broke(after+"; which test was running cannot be told", text)
	}
}

var pytestProgress = lazyregexp.New(`^(\S+\.py)(?:::\S+)? ?([.sxXFE]*)$`)

// pytestAt returns where pytest was by the last line of its progress.
func pytestAt(text string) string {
	lines := strings.Split(strings.TrimSpace(clean(text)), "\n")
	for i := len(lines) - 1; i >= max(0, len(lines)-3); i-- {
		if m := pytestProgress.FindStringSubmatch(strings.TrimSpace(lines[i])); m != nil {
			if strings.Contains(m[0], "::") && m[2] == "" {
				return m[0]
			}
			return fmt.Sprintf("test %d of %s", len(m[2])+1, m[1])
		}
	}
	return ""
}

// stopped says that a suite took too long, and what to do about it.
func (c *checker) stopped(s *suite) string {
	return fmt.Sprintf("`%s` did not end and was stopped after %s: find the test that waits for ever, or give the command more time (tests.timeout_minutes in .github/forge.yml)", s.done.Command, c.timeout())
}

// broke adds a failure of the suite as a whole. Its most telling line comes first:
// that decides whether two failures are the same.
func (s *suite) broke(why, text string) {
	s.result.partial = true
	t := testcase{name: s.done.Name, status: failed, cause: causeRuntime, whole: true, err: strings.TrimSpace(why + "\n" + tail(text))}
	if r := reasonOf(text); r.text != "" {
		t.err = strings.TrimSpace(shorten(r.text) + "\n" + t.err)
		t.file, t.line, t.cause = r.file, r.line, cmp.Or(r.cause, causeRuntime)
	}
	s.result.add(t)
}

func exitLine(code int) string { return fmt.Sprintf("the command ended with exit code %d", code) }

// exitText puts the most telling line first.
func exitText(code int, reason, text string) string {
	text = clean(text)
	first := cmp.Or(shorten(reason), errorLine.FindString(text), exitLine(code))
	return strings.TrimSpace(strings.TrimSpace(first) + "\n" + tail(text))
}
