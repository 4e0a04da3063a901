package check

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
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
	if c.stood == nil || c.stood.cut != "" {
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
	for i := range r.Changed {
		r.Changed[i].Reason = why[r.Changed[i].Test]
	}
	found := slices.DeleteFunc(slices.Clone(r.Tampered), func(f pipeline.Finding) bool { return f.Rule == ruleChanged })
	r.Tampered = complete(append(found, unjustified(r.Changed)...))
}

// unjustified makes findings of the changed tests without a reason: one for those
// that fail in the same way for the same files.
func unjustified(changed []pipeline.TestChange) []pipeline.Finding {
	type group struct {
		first pipeline.TestChange
		names []string
	}
	var order []string
	groups := map[string]*group{}
	for _, c := range changed {
		if c.Reason != "" {
			continue
		}
		key := strings.Join(append([]string{c.Now, text.FirstLine(c.Error)}, c.Files...), "\x00")
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
		f := pipeline.Finding{Rule: ruleChanged, Code: strings.Join(g.names, "\n"),
			Message: fmt.Sprintf("Tests of the base %s: %s. As they stood: %s. Make the code right for them, or say why they had to change", became, shown, text.FirstLine(g.first.Error))}
		if len(g.first.Files) > 0 {
			f.File = g.first.Files[0]
		}
		out = append(out, f)
	}
	return out
}
