package check

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// ruleChanged is the rule of a test that passes only as the change edited it.
const ruleChanged = "tests.changed"

// changed lists the tests of the base that do not pass as they stood there. A file
// that asserts less is one of them where its tests were run as they stood: what it
// does not hold any more holds all the same.
func (c *checker) changed() []pipeline.TestChange {
	var out []pipeline.TestChange
	if c.stood != nil {
		out = c.stood.changes(c, c.edits)
	}
	head := outcomes(c.cases())
	for _, change := range c.inside {
		if slices.ContainsFunc(out, func(o pipeline.TestChange) bool { return o.Test == change.Test }) || head[change.Test].status == failed {
			continue
		}
		change.Now = now(head, change.Test)
		out = append(out, change)
	}
	if c.stood == nil || c.stood.cut != "" || c.o.Beside {
		return out
	}
	for _, w := range c.patch.weakened() {
		restored := slices.ContainsFunc(c.edits, func(e edit) bool { return e.name == w.file })
		told := slices.ContainsFunc(out, func(o pipeline.TestChange) bool {
			return o.Test == w.file || len(o.Files) == 1 && o.Files[0] == w.file
		})
		if restored && !told && !strings.Contains(w.what, " is deleted") {
			out = append(out, pipeline.TestChange{Test: w.file, Error: w.what + "; its tests pass as they stood at the base, too, but for those named here", Now: string(passed), Files: []string{w.file}})
		}
	}
	return out
}

// now says what became of a test.
func now(head map[string]outcome, test string) string {
	o, there := head[test]
	switch {
	case !there:
		return "gone"
	case o.status == skipped:
		return string(skipped)
	}
	return string(passed)
}

// Justify takes in the reviewer's reasons for the tests that had to change. A
// change that has one is no finding any more; the others stay findings that block.
func Justify(r *pipeline.TestReport, changed []pipeline.TestChange) {
	why := map[string]string{}
	for _, c := range changed {
		why[c.Test] = strings.TrimSpace(c.Reason)
	}
	r.Changed = slices.Clone(r.Changed)
	for i := range r.Changed {
		r.Changed[i].Reason = why[r.Changed[i].Test]
	}
	found := slices.DeleteFunc(slices.Clone(r.Tampered), func(f pipeline.Finding) bool { return f.Rule == ruleChanged })
	r.Tampered = complete(append(found, unjustified(r.Changed, r.Names)...))
}

// Restrict takes out of a report what is about other files than some. What names no file
// stays.
func Restrict(r *pipeline.TestReport, about func(file string) bool) {
	other := func(file string) bool { return file != "" && !about(file) }
	r.Failures = slices.DeleteFunc(slices.Clone(r.Failures), func(f pipeline.Failure) bool { return other(f.File) })
	r.Changed = slices.DeleteFunc(slices.Clone(r.Changed), func(c pipeline.TestChange) bool {
		file, _, in := strings.Cut(c.Test, "::")
		return in && path.Ext(file) != "" && other(file) || len(c.Files) > 0 && !slices.ContainsFunc(c.Files, func(f string) bool { return !other(f) })
	})
	found := slices.DeleteFunc(slices.Clone(r.Tampered), func(f pipeline.Finding) bool { return f.Rule == ruleChanged || other(f.File) })
	r.Tampered = complete(append(found, unjustified(r.Changed, r.Names)...))
}

// missingThing tells by a failure that what a test is about is not there any more.
var missingThing = lazyregexp.New(`\bundefined\b|\bhas no\b|ImportError|ModuleNotFoundError|NameError|is not (?:a function|defined|a constructor)|[Cc]annot find|not found in|not enough arguments|too many arguments|does not provide an export|unresolved|no such (?:file|module|element)|unexpected keyword argument|positional argument`)

// excused reports whether the reviewer's reason settles a changed test. It does not
// where a test of what is still there is not run any more: whatever the task asks
// for, the test can be edited for it. names are the head's passing tests.
func excused(c pipeline.TestChange, names []string) bool {
	return c.Reason != "" && !dropped(c, names)
}

// dropped reports whether a test is gone or skipped although what it is about is
// still there. One case of a table may give way to another.
func dropped(c pipeline.TestChange, names []string) bool {
	if c.Now == string(passed) || c.Since > 0 || missingThing.MatchString(c.Error) {
		return false
	}
	id := testname.Parse(c.Test)
	return c.Now == string(skipped) || id.Param == "" || !slices.ContainsFunc(names, func(n string) bool {
		other := testname.Parse(n)
		return other.Container == id.Container && other.Base == id.Base && other.Param != ""
	})
}

// unjustified makes findings of the changed tests without a reason: one for those
// that fail in the same way for the same files.
func unjustified(changed []pipeline.TestChange, passing []string) []pipeline.Finding {
	type group struct {
		first pipeline.TestChange
		names []string
	}
	var order []string
	groups := map[string]*group{}
	for _, c := range changed {
		if excused(c, passing) {
			continue
		}
		key := strings.Join(append([]string{c.Now, strconv.FormatBool(dropped(c, passing)), strconv.Itoa(c.Since), text.FirstLine(c.Error)}, c.Files...), "\x00")
		if groups[key] == nil {
			groups[key], order = &group{first: c}, append(order, key)
		}
		groups[key].names = append(groups[key].names, c.Test)
	}
	var out []pipeline.Finding
	for _, key := range order {
		g := groups[key]
		shown := strings.Join(g.names[:min(len(g.names), 10)], ", ")
		if n := len(g.names); n > 10 {
			shown += fmt.Sprintf(" and %d more", n-10)
		}
		became := map[string]string{string(passed): "pass only as this change edits the tests", "gone": "are gone with this change", string(skipped): "are skipped with this change"}[g.first.Now]
		mend := "Make the code right for them, or say why they had to change"
		if dropped(g.first, passing) {
			mend = "Have them run, edited where the task asks for it: what they test is still there, so that no reason of the reviewer's settles this, only a human"
		}
		f := pipeline.Finding{Rule: ruleChanged, Code: strings.Join(g.names, "\n"),
			Message: fmt.Sprintf("Tests of the base %s: %s. As they stood: %s. %s", became, shown, text.FirstLine(g.first.Error), mend)}
		if g.first.Since > 0 {
			f.Message = fmt.Sprintf("Tests that this work brought, and that passed in iteration %d, %s: %s. Put them back, or say why they had to go", g.first.Since, became, shown)
		}
		if len(g.first.Files) > 0 {
			f.File = g.first.Files[0]
		}
		out = append(out, f)
	}
	return out
}
