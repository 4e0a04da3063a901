package check

import (
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// knownBySettings is who knows of every failure from before the work where the
// repository's settings say so.
const knownBySettings = "settings"

// Task is what the work is about. A test that it names must pass in the end,
// however long it has been failing.
type Task struct {
	Tests []string // from the plan
	Text  string   // title and body of the issue
}

// about reports whether the task is about a test.
func (k Task) about(test string) bool {
	return slices.ContainsFunc(k.Tests, func(n string) bool { return testname.Same(test, strings.TrimSpace(n)) }) || k.mentions(test)
}

var (
	testLike = lazyregexp.New(`\d|_|[a-z][A-Z]|\S\s+\S`) // tells a test's name from an everyday word
	wordChar = lazyregexp.New(`[\pL\pN_]`)
)

// mentions reports whether the text names a test. A bare word that is no
// name by its looks must stand in quotes.
func (k Task) mentions(test string) bool {
	id := testname.Parse(strings.TrimSuffix(test, " [build]"))
	if len(id.Base) < 3 {
		return false
	}
	plain := testLike.MatchString(id.Base) || strings.Contains(id.Base, "/")
	for rest, at := k.Text, 0; ; {
		i := strings.Index(rest[at:], id.Base)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(id.Base)
		before, after := rest[:from], rest[to:]
		at = to
		if wordChar.MatchString(lastRune(before)) || wordChar.MatchString(firstRune(after)) {
			continue
		}
		quoted := before != "" && strings.ContainsAny(before[len(before)-1:], "`'\"/.:>") && after != "" && strings.ContainsAny(after[:1], "`'\"")
		if plain && onlyCase(after, id.Param) || quoted {
			return true
		}
	}
}

// onlyCase reports whether what follows a test's name in a text, where that is one
// case of a table, is this one.
func onlyCase(after, param string) bool {
	if after == "" || after[0] != '/' && after[0] != '[' || len(after) == 1 || after[1] == ' ' || after[1] == '\n' {
		return true
	}
	return strings.HasPrefix(after, param)
}

func lastRune(s string) string {
	r := []rune(s[max(0, len(s)-4):])
	return string(r[max(0, len(r)-1):])
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

// failedBefore returns the failure that the base commit has of the same test. A
// test that the task is about has none. It must have failed in the same way where
// that is what tells it: what breaks as a whole (a build, a suite) hides tests, so
// that another reason may be this change's; and of two tests of one name another
// may have passed.
func (c *checker) failedBefore(t *testcase) (pipeline.Failure, bool) {
	was, ok := c.base[t.name]
	if !ok || c.o.Task.about(t.name) {
		return pipeline.Failure{}, false
	}
	if _, passed := slices.BinarySearch(c.o.Baseline.Names, t.name); !t.whole && !passed {
		return was, true
	}
	return was, was.Fingerprint == t.failure().Fingerprint
}

// baseFailures indexes what fails at the base commit.
func baseFailures(baseline *pipeline.TestReport) map[string]pipeline.Failure {
	out := map[string]pipeline.Failure{}
	if baseline != nil {
		for _, f := range slices.Concat(baseline.Before, baseline.Failures) {
			out[f.Test] = f
		}
	}
	return out
}

// fails takes a failed test into the report: as a failure, or as one from before
// the work.
func (c *checker) fails(s *suite, t *testcase) {
	r, f := &c.report, t.failure()
	was, before := c.failedBefore(t)
	switch {
	case !before:
		if t.whole && was.Test != "" {
			f.Analysis = "It broke at the base commit, too, but for another reason: " + text.FirstLine(was.Error)
		} else if broke, ok := c.base[t.group+" [build]"]; ok && !t.whole {
			f.Analysis = "Whether it worked at the base commit is not known: " + broke.Test + " broke there: " + text.FirstLine(broke.Error)
		}
		r.Failed++
		r.Failures = append(r.Failures, f)
		s.blamed = true
	case s.ended != "" && t.whole && t.group == "":
		// Said once, by Unclean.
	default:
		r.Before = append(r.Before, c.knownAs(f, was))
	}
}

// knownAs says of a failure from before the work whether it is the one that the base
// has, and who knows of it. Nobody knows of another error of the same test: that may be
// what this change breaks.
func (c *checker) knownAs(f, was pipeline.Failure) pipeline.Failure {
	if f.Key = f.ErrorKey(); f.Key != was.ErrorKey() {
		f.Was = was.Error
		f.Analysis = "It failed at the base commit, too, but with another error: " + text.FirstLine(was.Error)
		return f
	}
	switch k := c.o.Known[f.Test]; {
	case k.Login != "" && k.Error == f.Key:
		f.KnownBy, f.KnownFor = k.Login, k.For()
	case c.o.Config.KnownFailures == "allow":
		f.KnownBy = knownBySettings
	}
	return f
}

// unclean says which suites could not run, and which were cut off, at the base
// commit no less: what comes after the tests that hang was not run, so that such a
// suite verifies nothing.
func (c *checker) unclean() string {
	out, _ := c.notRun()
	for _, s := range c.suites {
		if s.ended != "" && !s.blamed {
			out = append(out, s.ended)
		}
	}
	return strings.Join(out, "; ")
}
