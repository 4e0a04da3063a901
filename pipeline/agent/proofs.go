package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/module"
	"forge/pipeline/proof"
	"forge/pipeline/testname"
)

// Where loop.proofs or the run's track wants it, the planner says which words of the task each
// criterion is for; with loop.proofs, the implementer says which tests show it. What can be checked without running
// anything, is checked at once.

// requirementParts are what a plan has where it is traced.
var requirementParts = []any{
	"requirements", listOf(object("id", typed("string", "REQ1, REQ2, …"), "text", typed("string", "One thing that is asked for."),
		"quote", typed("string", "The words of the task that it comes from, copied as they stand there.")), "All that the task asks for."),
	"criteria", listOf(object("id?", typed("string", "AC1, AC2, …"), "text", typed("string", "One statement that is true or false."),
		"for", typed("string", "The id of the requirement that it is for.")), "The acceptance criteria, at least one for each requirement."),
}

// proofParts are what an implementer's result has where criteria are proved.
var proofParts = []any{
	"proofs", listOf(object("criterion", typed("string", "The criterion's id, such as AC1."), "tests?", listOf(typed("string", "A test's name, as the test runner prints it."), "The tests that show it. At least one fails without the change."),
		"why?", typed("string", "Why no test can show it, where that is so.")), "One entry for each acceptance criterion. Of those that were named before, give only what has changed."),
}

// maxProofs are the most tests that can be named for a criterion.
const maxProofs = 20

// planForm is what a planner submits.
func (p *phase) planForm() []any {
	form := planParts
	at := slices.Index(form, any("criteria"))
	switch {
	case len(p.given()) > 0: // nor is it asked for requirements: it takes over what there is
		form = slices.Concat(form[:at], form[at+2:])
	case len(p.wanted()) > 0:
		form = slices.Concat(form[:at], requirementParts[2:], form[at+2:])
	case p.job.Run.Traces():
		form = slices.Concat(form[:at], requirementParts, form[at+2:])
	}
	if p.maySplit() {
		form = slices.Concat(form, splitSchema)
	}
	return form
}

// asked is what people have said of what is wanted.
func (p *phase) asked() []string {
	run := p.job.Run
	out := append([]string{run.Task.Title, run.Task.Body}, run.Notes...)
	for _, c := range p.job.Comments {
		out = append(out, c.Text)
	}
	return out
}

// required checks a plan's requirements; where they are not wanted, it has none.
func (p *phase) required(plan *pipeline.Plan) []string {
	if !p.job.Run.Traces() {
		plan.Requirements = nil
		for i := range plan.Criteria {
			plan.Criteria[i].For = ""
		}
		return nil
	}
	written := p.wanted()
	if len(written) > 0 || len(p.given()) > 0 {
		plan.Requirements = written
	}
	if len(p.given()) > 0 { // checked when they were written
		return nil
	}
	fors := map[string]string{}
	for i := range plan.Criteria {
		c := &plan.Criteria[i]
		c.For = strings.TrimSpace(c.For)
		fors[c.ID] = c.For
	}
	if len(plan.Requirements) == 0 {
		return []string{"requirements are missing: say what the task asks for, each with its words"}
	}
	return proof.Covered(strings.Join(p.asked(), "\n"), plan.Requirements, fors)
}

// provable are the criteria that the implementer at work has to name tests for: of the run
// of a split plan, those that belong to no module.
func provable(run *pipeline.Run) []string {
	var out []string
	if run.Plan == nil || !run.Config.Loop.Proofs.On() {
		return nil
	}
	for _, c := range run.Plan.Criteria {
		owned := false
		if s := run.Plan.Split; s != nil {
			for _, m := range s.Modules {
				part := module.Find(run.Parts, m.ID)
				owned = owned || slices.Contains(m.Criteria, c.ID) && (part == nil || part.Left == "")
			}
		}
		if !owned {
			out = append(out, c.ID)
		}
	}
	return out
}

// proved reads the proofs of a result into it. Each criterion needs an entry once; a name
// that stands nowhere in the work tree is no test.
func (p *phase) proved(ctx context.Context, args json.RawMessage, impl *pipeline.Implementation) []string {
	ids := provable(p.job.Run)
	if len(ids) == 0 || p.job.Ref.Mode == pipeline.ModeContract || impl.Unable != "" || impl.Contract != "" {
		return nil
	}
	var in struct{ Proofs []proof.Claim }
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	var bad, all []string
	for _, c := range p.job.Run.Plan.Criteria {
		all = append(all, c.ID)
	}
	for _, c := range in.Proofs {
		c = proof.Claim{Criterion: strings.TrimSpace(c.Criterion), Tests: trimmed(c.Tests), Why: unlessNone(c.Why)}
		switch {
		case !slices.Contains(all, c.Criterion):
			bad = append(bad, fmt.Sprintf("proofs: there is no criterion %q to prove; there are %s", c.Criterion, strings.Join(all, ", ")))
			continue
		case len(c.Tests) > maxProofs:
			bad = append(bad, fmt.Sprintf("proofs: %s names %d tests, over %d: name those that show it best", c.Criterion, len(c.Tests), maxProofs))
			continue
		case len(c.Tests) == 0 && c.Why == "":
			bad = append(bad, fmt.Sprintf("proofs: %s names no test, and not why none can show it", c.Criterion))
			continue
		}
		for _, name := range c.Tests {
			if !p.isTest(ctx, name) {
				bad = append(bad, fmt.Sprintf("proofs: %q, which is to show %s, is no test that the work tree declares", name, c.Criterion))
			}
		}
		impl.Proofs = proof.Merge(impl.Proofs, []proof.Claim{c})
	}
	known := proof.Merge(p.job.Run.Claims(), impl.Proofs)
	for _, id := range ids {
		if !slices.ContainsFunc(known, func(c proof.Claim) bool { return c.Criterion == id }) {
			bad = append(bad, fmt.Sprintf("proofs: %s has no entry", id))
		}
	}
	return bad
}

// isTest reports whether a test of a name is declared in the work tree, or is in the list
// of tests that pass at the base: a word in some text is no test, for what tests print can
// look like a test's result. Of a subtest it is its parent that has to be declared; the run
// tells whether it ran.
func (p *phase) isTest(ctx context.Context, name string) bool {
	if b := p.baseline(); b != nil && slices.ContainsFunc(b.Names, func(n string) bool { return testname.Same(n, name) }) {
		return true
	}
	words := []string{testname.Parse(name).Base, name}
	if m := goTestName.FindStringSubmatch(name); m != nil {
		words = append([]string{m[1]}, words...)
	}
	for _, word := range words {
		hits, err := p.job.Workspace.Search(ctx, regexp.QuoteMeta(word), "", maxHits)
		if err != nil || slices.ContainsFunc(hits, func(hit string) bool { return declares(hit, word, name) }) { // the run says what it is worth
			return true
		}
		if len(hits) < maxHits {
			continue
		}
		for _, decl := range declarations(word) { // a word that stands all over
			if hits, err = p.job.Workspace.Search(ctx, decl, "", maxHits); err != nil || slices.ContainsFunc(hits, func(hit string) bool { return declares(hit, word, name) }) {
				return true
			}
		}
	}
	return false
}

var (
	goTestName = lazyregexp.New(`^(?:.*?\.)?((?:Test|Example|Fuzz|Benchmark)\w*)(?:/.*)?$`)
	hitAt      = lazyregexp.New(`^(.+?):\d+: ?(.*)$`)
	plainFile  = lazyregexp.New(`(?i)\.(?:md|markdown|rst|adoc|txt|log|json|jsonl|ya?ml|toml|ini|cfg|xml|html?|csv|lock|snap|svg)$`)
)

// declarations are how Go, Python and JavaScript declare a test of a name, a line each; in
// a Go table, or a call that goes over lines, the name stands alone.
func declarations(word string) []string {
	w := regexp.QuoteMeta(word)
	const quote = "[\"'`]"
	return []string{
		`^func (?:\([^)]*\) )?` + w + `\(`,
		`^\s*(?:(?:async\s+)?def\s+` + w + `\s*\(|class\s+` + w + `\b)`,
		`(?:\b(?:[fx]?(?:test|it|describe)|suite|specify|context|scenario)\b[^"'` + "`" + `]*\(\s*|^\s*)` + quote + w + quote,
	}
}

// declares reports whether a line that a search found ("path:line: text") declares a test.
// Of languages that are not known here each line does, but those of documents and data only
// where the test is named by them.
func declares(hit, word, name string) bool {
	m := hitAt.FindStringSubmatch(hit)
	if m == nil {
		return false
	}
	is := func(pattern string) bool { ok, err := regexp.MatchString(pattern, m[2]); return err == nil && ok }
	decl := declarations(word)
	switch ext := path.Ext(m[1]); {
	case ext == ".go" && goTestName.MatchString(word):
		return is(decl[0])
	case ext == ".go": // a case by the end of its name
		return is("[\"`]" + regexp.QuoteMeta(word) + "[\"`]")
	case ext == ".py":
		return is(decl[1])
	case slices.Contains([]string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"}, ext):
		return is(decl[2])
	}
	return !plainFile.MatchString(m[1]) || strings.Contains(name, path.Base(m[1]))
}

// claimed appends what the implementer names as shown, for those who judge it.
func (w *prompt) claimed() *prompt {
	run := w.p.job.Run
	if !run.Config.Loop.Proofs.On() {
		return w
	}
	var b strings.Builder
	for _, c := range run.Claims() {
		fmt.Fprintf(&b, "%s: %s\n", c.Criterion, cmp.Or(strings.Join(c.Tests, ", "), "no test: "+c.Why))
	}
	if run.Config.Loop.Proofs == config.ProofsRequire && b.Len() > 0 {
		w.say("Look into the tests that are named as proofs: a test that does not show its criterion is a finding, and evidence names those that do.")
	}
	return w.data("Tests that the implementer names as proofs of the criteria; whether they pass is not known yet", b.String())
}
