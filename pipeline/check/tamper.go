package check

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/testname"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// The rules of the tampering check (lessons 16).
const (
	ruleRemoved  = "tests.removed"
	ruleSkipped  = "tests.skipped"
	ruleWeakened = "tests.weakened"
)

// maxTampered caps the findings; the last one then says how many more there are.
const maxTampered = 20

// tampering compares the tests of the base with those of the head. The indexes
// are there because a repository may have 20,000 of each.
type tampering struct {
	c         *checker
	head      map[string]status
	base      map[string]bool     // passed at the base
	failed    map[string]bool     // failed there
	fresh     map[string][]string // tests at the head that the base did not have and that are run, by bare name
	headCases map[testname.ID]int // cases of a table test, by its name without the case
	baseCases map[testname.ID]int
	told      map[string]bool // tests and files that are told as changed
	removed   []*block
	added     []*block
	found     []pipeline.Finding
	files     map[string]bool // files of which a lost test is reported
}

// tampered holds that the tests that passed at the base still exist and are
// still run, and that no existing test file asserts less than before. Renamed
// and moved tests are fine. Whether they pass is told by the failures.
func (c *checker) tampered() []pipeline.Finding {
	t := &tampering{c: c, head: map[string]status{}, base: map[string]bool{}, failed: map[string]bool{}, fresh: map[string][]string{}, headCases: map[testname.ID]int{}, baseCases: map[testname.ID]int{}, files: map[string]bool{}}
	t.removed, t.added = c.patch.blocks()
	t.told = map[string]bool{}
	for _, change := range c.report.Changed {
		t.told[change.Test] = true
		if len(change.Files) == 1 || change.Now == "gone" {
			for _, file := range change.Files {
				t.told[file] = true
			}
		}
	}
	if c.o.Baseline != nil || c.stood != nil {
		t.index()
		t.compare()
		t.fewer()
		t.ownGone()
	}
	t.weakened()
	t.found = append(t.found, c.found...)
	return complete(append(t.found, unjustified(c.report.Changed, c.report.Names)...))
}

// index sorts the tests of both sides by what they will be looked up by.
func (t *tampering) index() {
	if t.c.o.Baseline != nil {
		for _, name := range t.c.o.Baseline.Names {
			t.base[name] = true
		}
	}
	if t.c.stood != nil { // it knows them even where the base could not be run
		for name, o := range t.c.stood.tests {
			if o.ok() {
				t.base[name] = true
			}
		}
	}
	for name, f := range t.c.base {
		if !t.base[name] && !f.Whole {
			t.failed[name] = true
		}
	}
	for _, list := range []map[string]bool{t.base, t.failed} {
		for name := range list {
			t.baseCases[tableOf(name)]++
		}
	}
	for _, s := range t.c.suites {
		for i := range s.result.cases {
			if k := &s.result.cases[i]; t.head[k.name] != passed {
				t.head[k.name] = k.status
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.head)) {
		if t.head[name] == skipped {
			continue
		}
		id := testname.Parse(name)
		t.headCases[tableOf(name)]++
		if !t.base[name] && !t.failed[name] {
			t.fresh[id.Base] = append(t.fresh[id.Base], name)
		}
	}
}

// compare finds the tests that are gone or skipped, and reports them by the
// package, class or file they were in. One that failed at the base is not got rid
// of in this way either.
func (t *tampering) compare() {
	t.lost(t.base, "passed")
	t.lost(t.failed, "failed")
}

func (t *tampering) lost(base map[string]bool, how string) {
	gone, skip := map[string][]string{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(base)) {
		id := testname.Parse(name)
		switch st, there := t.head[name]; {
		case t.told[name]:
		case st == skipped:
			skip[id.Container] = append(skip[id.Container], name)
		case !there && id.Param == "" && t.base[name] && t.headCases[tableOf(name)] > 0: // a table now, of one case or more
		case !there && t.c.finished(name) && !t.renamed(name, id) && !t.moved(id):
			gone[id.Container] = append(gone[id.Container], name)
		}
	}
	for _, where := range slices.Sorted(maps.Keys(gone)) {
		t.report(ruleRemoved, where, gone[where], how+" at the base commit and is gone: put it back, or let a human decide that it goes",
			how+" at the base commit and are gone: put them back, or let a human decide that they go")
	}
	for _, where := range slices.Sorted(maps.Keys(skip)) {
		t.report(ruleSkipped, where, skip[where], how+" at the base commit and is skipped now: run it again", how+" at the base commit and are skipped now: run them again")
	}
}

// ownGone looks for tests that this very work brought in an earlier iteration, and that are
// not run any more. One that failed there, and has not passed since, does not pass by
// going. For one that passed, the reviewer must say why. A test that runs under another
// file's name, or gave way to another case of its table, is there.
func (t *tampering) ownGone() {
	failing, passing, cases := map[string]int{}, map[string]int{}, map[testname.ID]int{}
	for _, past := range t.c.o.Earlier {
		if past.Iteration <= t.c.o.PlanIteration {
			continue
		}
		now := map[testname.ID]int{}
		for _, name := range past.Report.Names {
			delete(failing, name)
			passing[name] = past.Iteration
			now[tableOf(name)]++
		}
		for _, f := range past.Report.Failures {
			if now[tableOf(f.Test)]++; !f.Whole {
				failing[f.Test] = past.Iteration
				delete(passing, f.Test)
			}
		}
		for table, n := range now {
			cases[table] = max(cases[table], n)
		}
	}
	there := map[string]bool{} // by bare name
	for name, st := range t.head {
		there[testname.Parse(name).Base] = there[testname.Parse(name).Base] || st != skipped
	}
	gone := func(name string) bool {
		id, table := testname.Parse(name), tableOf(name)
		st, runs := t.head[name]
		switch {
		case id.Container == "" || t.base[name] || t.failed[name] || t.baseCases[table] > 0: // of the base: the others tell
		case runs && st != skipped || !runs && !t.c.finished(name):
		case id.Param == "" && there[id.Base] || id.Param != "" && t.headCases[table] >= cases[table]:
		default:
			return true
		}
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		if gone(name) {
			t.report(ruleRemoved, testname.Parse(name).Container, []string{name},
				fmt.Sprintf("failed in iteration %d and is not run any more: let it run and pass, or let a human decide that it goes", failing[name]), "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(passing)) {
		if gone(name) {
			now := "gone"
			if t.head[name] == skipped {
				now = string(skipped)
			}
			t.c.report.Changed = append(t.c.report.Changed, pipeline.TestChange{Test: name, Now: now, Since: passing[name],
				Error: fmt.Sprintf("this work brought it, it passed in iteration %d, and it is not run any more", passing[name])})
		}
	}
}

// Lost returns the tests that passed by one report and are not in a later one, although
// the patch between the two takes none of them away. Where something does not build, or a
// suite broke off, it is not known: nothing.
func Lost(before, after *pipeline.TestReport, text string) []string {
	if after.Unclean != "" || len(before.Names) >= maxNames || slices.ContainsFunc(after.Failures, func(f pipeline.Failure) bool { return f.Whole }) {
		return nil
	}
	var removed []*block
	if p, err := parsePatch(text); err == nil {
		removed, _ = p.blocks()
	}
	there, moved := map[testname.ID]bool{}, map[string]bool{}
	was := map[string]bool{} // containers
	for _, name := range before.Names {
		was[testname.Parse(name).Container] = true
	}
	ran := slices.Concat(after.Names, after.Flaky, after.Pending, after.Accepted)
	for _, f := range slices.Concat(after.Failures, after.Before) {
		ran = append(ran, f.Test)
	}
	for _, name := range ran {
		id := tableOf(name)
		there[id] = true
		moved[id.Base] = moved[id.Base] || !was[id.Container]
	}
	var out []string
	for _, name := range before.Names {
		id := tableOf(name)
		if !there[id] && !moved[id.Base] && !slices.ContainsFunc(removed, func(b *block) bool { return b.name == id.Base }) {
			there[id] = true
			out = append(out, name)
		}
	}
	return out
}

// tableOf is a test without its case.
func tableOf(name string) testname.ID {
	id := testname.Parse(name)
	return testname.ID{Container: id.Container, Base: id.Base}
}

// fewer reports tests that are missing among others of the same name: some
// reports do not say which file a test is in.
func (t *tampering) fewer() {
	b := t.c.o.Baseline
	if b == nil || len(b.Names) == 0 || len(b.Names) >= maxNames || len(t.found) > 0 {
		return
	}
	ran, whole := 0, true
	for _, s := range t.c.suites {
		whole = whole && !s.result.partial && !s.result.cut && len(s.result.lost) == 0
		for i := range s.result.cases {
			if k := &s.result.cases[i]; k.status != skipped && t.base[k.name] {
				ran++
			}
		}
	}
	if missing := b.Passed - ran; whole && missing > 0 && ran >= len(b.Names) {
		t.found = append(t.found, pipeline.Finding{Rule: ruleRemoved, Code: "fewer tests of the same names",
			Message: fmt.Sprintf("%d tests are gone that share their names with others: put them back, or let a human decide that they go", missing)})
	}
}

// finished reports whether a test that is not in the result is really gone: its
// group, and the suites as a whole, did not break off for a reason of this
// change's own.
func (c *checker) finished(name string) bool {
	for _, s := range c.suites {
		if !s.result.partial && !s.result.cut && len(s.result.lost) == 0 || !c.broken(s) {
			continue
		}
		if s.result.partial || s.result.cut {
			return false
		}
		for group := range s.result.lost {
			if within(group)(name) {
				return false
			}
		}
	}
	return true
}

// broke is what broken said, of how many cases.
type broke struct {
	cases int
	is    bool
}

// broken reports whether something in a suite fails, or was lost, that did not fail before.
func (c *checker) broken(s *suite) bool {
	if known, ok := c.broke[s]; ok && known.cases == len(s.result.cases) {
		return known.is
	}
	is := s.result.cut || s.done.NotRun != "" || slices.ContainsFunc(s.result.cases, func(t testcase) bool {
		if t.status != failed {
			return false
		}
		_, before := c.failedBefore(&t)
		return !before
	})
	if c.broke == nil {
		c.broke = map[*suite]broke{}
	}
	c.broke[s] = broke{len(s.result.cases), is}
	return is
}

// renamed reports whether the patch shows a missing test coming back under another
// name, or whether it is one case of a table, that passed, and still has as many.
func (t *tampering) renamed(name string, id testname.ID) bool {
	table := testname.ID{Container: id.Container, Base: id.Base}
	if id.Param != "" && t.headCases[table] >= t.baseCases[table] && t.base[name] {
		return true
	}
	for _, old := range t.removed {
		if old.name != id.Base {
			continue
		}
		for _, new := range t.added {
			// That the new test fails would be a failure of its own.
			if (!new.used || new.file == old.file && id.Param != "") && len(t.fresh[new.name]) > 0 && sameBody(old, new) {
				new.used = true
				return true
			}
		}
	}
	return false
}

// moved reports whether a missing test is run under the same bare name in another
// package or file. Each new test answers for one missing test alone.
func (t *tampering) moved(id testname.ID) bool {
	for i, name := range t.fresh[id.Base] {
		if testname.Parse(name).Param == id.Param {
			t.fresh[id.Base] = slices.Delete(t.fresh[id.Base], i, i+1)
			return true
		}
	}
	return false
}

func (t *tampering) report(rule, where string, names []string, one, many string) {
	text, verb := "", one
	switch {
	case len(names) == 1:
		text = names[0] + " "
	default:
		shown := names[:min(len(names), 10)]
		text, verb = fmt.Sprintf("%d tests: %s", len(names), strings.Join(shown, ", ")), many
		if len(shown) < len(names) {
			text += ", …"
		}
		text += ": these "
	}
	f := pipeline.Finding{Rule: rule, Message: text + verb}
	for _, name := range names {
		base := testname.Parse(name).Base
		for _, b := range t.removed {
			if b.name == base && rule == ruleRemoved {
				t.files[b.file] = true
				if f.File == "" {
					f.File = b.file
				}
			}
		}
	}
	if f.File == "" {
		f.Code = where // gives the finding its identity where no file is known
	}
	t.found = append(t.found, f)
}

// weakness is an existing test file that asserts less than before.
type weakness struct{ file, what string }

// weakened returns the existing test files that assert less than before. An
// assertion that the patch moves elsewhere does not count as removed.
func (p *patch) weakened() []weakness {
	type tally struct{ removed, added []string }
	tallies := map[*gitdiff.File]*tally{}
	came := map[string]int{}
	renamed := p.modulesRenamed()
	for _, f := range p.files {
		name := nameOf(f)
		if f.IsBinary || !testname.IsFile(name) {
			continue
		}
		lang, n := languageOf(name), &tally{}
		for _, frag := range f.TextFragments {
			for _, l := range frag.Lines {
				if l.Op == gitdiff.OpContext || !lang.asserts(l.Line) {
					continue
				}
				if text := strings.TrimSpace(l.Line); l.Op == gitdiff.OpAdd {
					n.added = append(n.added, text)
					came[text]++
				} else {
					n.removed = append(n.removed, renamed(text))
				}
			}
		}
		tallies[f] = n
	}
	var out []weakness
	for _, f := range p.files {
		n := tallies[f]
		if n == nil || f.IsNew {
			continue
		}
		mine := map[string]int{}
		for _, text := range n.added {
			mine[text]++
		}
		lost := -len(n.added)
		for _, text := range n.removed {
			if mine[text] > 0 {
				mine[text]--
			} else if came[text] > 0 {
				came[text]--
				continue // moved to another file
			}
			lost++
		}
		if lost <= 0 {
			continue
		}
		what := fmt.Sprintf("%s asserts less than before: %d assertions removed, %d added (%d fewer)", nameOf(f), len(n.removed), len(n.added), lost)
		if f.IsDelete {
			what = fmt.Sprintf("%s is deleted, and with it %d assertions that are nowhere else", nameOf(f), lost)
		}
		out = append(out, weakness{nameOf(f), what})
	}
	return out
}

// modulesRenamed returns what a line says once the modules that the patch renames go by
// their new names.
func (p *patch) modulesRenamed() func(line string) string {
	stem := func(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }
	names := map[string]string{}
	for _, f := range p.files {
		if f.IsRename && stem(f.OldName) != stem(f.NewName) && !testname.IsFile(f.OldName) && isCode(f.OldName) {
			names[stem(f.OldName)] = stem(f.NewName)
		}
	}
	return func(line string) string {
		for old, new := range names {
			line = regexp.MustCompile(`\b`+regexp.QuoteMeta(old)+`\.`).ReplaceAllLiteralString(line, new+".")
		}
		return line
	}
}

func nameOf(f *gitdiff.File) string {
	if f.IsDelete {
		return f.OldName
	}
	return f.NewName
}

// weakened reports the files that assert less, but for those of which something is
// told already.
func (t *tampering) weakened() {
	if t.c.o.Beside {
		return
	}
	for _, w := range t.c.patch.weakened() {
		if !t.files[w.file] && !t.told[w.file] {
			t.found = append(t.found, pipeline.Finding{Rule: ruleWeakened, File: w.file, Code: w.file, Message: w.what + ". Put them back, or let a human decide that they go."})
		}
	}
}

// complete caps findings of the tests, and fills in what all have in common.
func complete(found []pipeline.Finding) []pipeline.Finding {
	if more := len(found) - maxTampered; more > 0 {
		found = found[:maxTampered]
		found[maxTampered-1].Message += fmt.Sprintf(" (and %d more findings of this kind)", more)
	}
	for i := range found {
		f := &found[i]
		f.ID = fmt.Sprintf("T%d", i+1)
		f.Severity, f.Category, f.Confidence, f.Fixable = pipeline.SeverityError, pipeline.CategoryTests, 1, true
		f.Fingerprint = f.Digest()
	}
	return found
}
