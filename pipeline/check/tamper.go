package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline"
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

// testID is a test's name taken apart: "pkg" "TestX" "/sub", or "file::class"
// "test_x" "[1-2]".
type testID struct{ container, base, param string }

var (
	goName = regexp.MustCompile(`^(.*?)\.((?:Test|Example|Fuzz|Benchmark)[^/.]*)(/.*)?$`)
	pyBase = regexp.MustCompile(`^([^\[(]*[^\[( ])(\[.*\]| \(.*\))$`)
)

func identify(name string) testID {
	if m := goName.FindStringSubmatch(name); m != nil && !strings.Contains(name, "::") && !strings.Contains(name, " > ") {
		return testID{m[1], m[2], m[3]}
	}
	id := testID{base: name}
	if m := pyBase.FindStringSubmatch(name); m != nil {
		id.base, id.param = m[1], m[2]
	}
	for _, sep := range []string{" > ", "::", "."} {
		if i := strings.LastIndex(id.base, sep); i >= 0 && (sep != "." || !strings.Contains(id.base, " ")) {
			id.container, id.base = id.base[:i], id.base[i+len(sep):]
			break
		}
	}
	return id
}

// tampering compares the tests of the base with those of the head. The indexes
// are there because a repository may have 20,000 of each.
type tampering struct {
	c         *checker
	head      map[string]status
	base      map[string]bool     // passed at the base
	failed    map[string]bool     // failed there
	fresh     map[string][]string // tests at the head that the base did not have and that are run, by bare name
	headCases map[testID]int      // cases of a table test, by its name without the case
	baseCases map[testID]int
	broken    []*suite // suites that broke off for a reason of this change's own
	removed   []*block
	added     []*block
	found     []pipeline.Finding
	files     map[string]bool // files of which a lost test is reported
}

// tampered holds that the tests that passed at the base still exist and are
// still run, and that no existing test file asserts less than before. Renamed
// and moved tests are fine. Whether they pass is told by the failures.
func (c *checker) tampered() []pipeline.Finding {
	t := &tampering{c: c, head: map[string]status{}, base: map[string]bool{}, failed: map[string]bool{}, fresh: map[string][]string{}, headCases: map[testID]int{}, baseCases: map[testID]int{}, files: map[string]bool{}}
	t.removed, t.added = c.patch.blocks()
	if c.o.Baseline != nil {
		t.index()
		t.compare()
	}
	t.weakened()
	return t.list()
}

// index sorts the tests of both sides by what they will be looked up by.
func (t *tampering) index() {
	for _, name := range t.c.o.Baseline.Names {
		id := identify(name)
		t.base[name] = true
		t.baseCases[testID{id.container, id.base, ""}]++
	}
	for name, f := range t.c.base {
		if !t.base[name] && !f.Whole {
			t.failed[name] = true
		}
	}
	for _, s := range t.c.suites {
		broke := s.result.cut || s.done.NotRun != ""
		for i := range s.result.cases {
			k := &s.result.cases[i]
			if t.head[k.name] != passed {
				t.head[k.name] = k.status
			}
			if k.status == failed {
				_, before := t.c.failedBefore(k)
				broke = broke || !before
			}
		}
		if broke {
			t.broken = append(t.broken, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.head)) {
		if t.head[name] == skipped {
			continue
		}
		id := identify(name)
		t.headCases[testID{id.container, id.base, ""}]++
		if !t.base[name] && !t.failed[name] {
			t.fresh[id.base] = append(t.fresh[id.base], name)
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
		id := identify(name)
		switch st, there := t.head[name]; {
		case st == skipped:
			skip[id.container] = append(skip[id.container], name)
		case !there && t.complete(name) && !t.renamed(id) && !t.moved(id):
			gone[id.container] = append(gone[id.container], name)
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

// complete reports whether a test that is not in the result is really gone: its
// group, and the suites as a whole, did not break off.
func (t *tampering) complete(name string) bool {
	for _, s := range t.broken {
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

// renamed reports whether the patch shows a missing test coming back under another
// name, or whether it is one case of a table that still has as many.
func (t *tampering) renamed(id testID) bool {
	table := testID{id.container, id.base, ""}
	if id.param != "" && t.headCases[table] >= t.baseCases[table] {
		return true
	}
	for _, old := range t.removed {
		if old.name != id.base {
			continue
		}
		for _, new := range t.added {
			// That the new test fails would be a failure of its own.
			if (!new.used || new.file == old.file && id.param != "") && len(t.fresh[new.name]) > 0 && sameBody(old, new) {
				new.used = true
				return true
			}
		}
	}
	return false
}

// moved reports whether a missing test is run under the same bare name in another
// package or file. Each new test answers for one missing test alone.
func (t *tampering) moved(id testID) bool {
	for i, name := range t.fresh[id.base] {
		if identify(name).param == id.param {
			t.fresh[id.base] = slices.Delete(t.fresh[id.base], i, i+1)
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
		base := identify(name).base
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

// weakened reports the existing test files that assert less than before. An
// assertion that the patch moves elsewhere does not count as removed.
func (t *tampering) weakened() {
	type tally struct{ removed, added []string }
	tallies := map[*gitdiff.File]*tally{}
	came := map[string]int{}
	for _, f := range t.c.patch.files {
		name := f.NewName
		if f.IsDelete {
			name = f.OldName
		}
		if f.IsBinary || !isTestFile(name) {
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
					n.removed = append(n.removed, text)
				}
			}
		}
		tallies[f] = n
	}
	for _, f := range t.c.patch.files {
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
		if lost > 0 {
			t.weaker(f, lost, len(n.removed), len(n.added))
		}
	}
}

func (t *tampering) weaker(f *gitdiff.File, lost, removed, added int) {
	name := f.NewName
	if f.IsDelete {
		name = f.OldName
	}
	if t.files[name] {
		return // its lost tests are reported already
	}
	what := fmt.Sprintf("%s asserts less than before: %d assertions removed, %d added (%d fewer)", name, removed, added, lost)
	if f.IsDelete {
		what = fmt.Sprintf("%s is deleted, and with it %d assertions that are nowhere else", name, lost)
	}
	t.found = append(t.found, pipeline.Finding{Rule: ruleWeakened, File: name, Code: name, Message: what + ". Put them back, or let a human decide that they go."})
}

// list completes the findings.
func (t *tampering) list() []pipeline.Finding {
	if more := len(t.found) - maxTampered; more > 0 {
		t.found = t.found[:maxTampered]
		t.found[maxTampered-1].Message += fmt.Sprintf(" (and %d more findings of this kind)", more)
	}
	for i := range t.found {
		f := &t.found[i]
		f.ID = fmt.Sprintf("T%d", i+1)
		f.Severity, f.Category, f.Confidence, f.Fixable = pipeline.SeverityError, "tests", 1, true
		f.Fingerprint = pipeline.Fingerprint(f)
	}
	return t.found
}
