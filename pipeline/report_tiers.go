package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"forge/pipeline/glob"
	"forge/pipeline/module"
	"forge/pipeline/proof"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// The tiers of validation behind a repository's own tests (V8), as suites carry them.
const (
	TierIntegration = "integration"
	TierSystem      = "system"
)

// tier says on which of them an iteration is validated first: "module", that of the
// integration, or "" for work in one piece that has no tiers.
func (r *Run) tier(it *Iteration) string {
	switch {
	case r.Part != nil:
		return "module"
	case r.split() != nil || it.Tests != nil && slices.ContainsFunc(it.Tests.Suites, func(s Suite) bool { return s.Tier != "" }):
		return TierIntegration
	}
	return ""
}

// whole reports whether an iteration was validated as a system: its commands ran, which
// they do when nothing else fails, or the work of modules has passed as a whole.
func (r *Run) whole(it *Iteration) bool {
	if r.Part != nil || it.Tests == nil {
		return false
	}
	ran := slices.ContainsFunc(it.Tests.Suites, func(s Suite) bool { return s.Tier == TierSystem })
	return ran || r.split() != nil && it.Result == ResultPassed
}

// SystemReport is the report of the last tier (V8): the whole, end to end. It is empty
// until an iteration has come to it.
func (r *Run) SystemReport(iteration int) string {
	if iteration < 1 || iteration > len(r.Iterations) {
		return ""
	}
	it := &r.Iterations[iteration-1]
	if it.Review == nil || !r.whole(it) {
		return ""
	}
	return r.reportOf(it, TierSystem)
}

// reportScope says what a report is about: on which tier, and what of the feature was there.
func (r *Run) reportScope(b *strings.Builder, it *Iteration, tier string) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "- "+fmt.Sprintf(format, args...)+"\n") }
	switch tier {
	case "module":
		m := r.Part.Module
		add("level: module %s, wave %d (%s)", m.ID, r.Part.Wave, text.Clip(text.OneLine(m.Title), 100))
		own := "only its own paths are changed"
		if r.Foreign {
			own = "people have pushed to its branch, so that other paths than its own may be changed"
		}
		add("mode: isolated; %s, and modules that are built at the same time are not here", own)
		if strays := r.strays(it); r.Foreign && len(strays) > 0 {
			add("changed besides its own paths: %s", text.Clip(strings.Join(strays, ", "), 400))
		}
		if len(m.Needs) > 0 {
			add("with what it needs: %s", strings.Join(m.Needs, ", "))
		}
		if it.Tests != nil && len(it.Tests.Pending) > 0 {
			add("pending, until the other side is merged: %s", strings.Join(it.Tests.Pending, ", "))
		}
	case TierIntegration:
		add("level: integration%s", strings.TrimSuffix(" of "+r.mergedParts(), " of "))
		add("mode: integrated; what was built apart works on what the others really are")
		for i := range r.Parts {
			if p := &r.Parts[i]; p.Off != "" {
				add("the module %s was merged, and not on the branch any more when %s: %s", p.ID, text.Clip(text.OneLine(p.Off), 200), p.Again())
			}
		}
	case TierSystem:
		add("level: system")
		add("mode: end to end; every criterion, every suite")
	}
	for _, m := range r.allMet() {
		add("resolved by an agent: %s", text.Clip(text.OneLine(m.String()), 300))
	}
	if tier != "module" {
		for _, w := range r.leftOut() {
			add("without: %s", text.Clip(text.OneLine(w.What), 200))
		}
	}
	section(b, "Validation scope", lines)
}

// allMet are the commits of people that conflicts were with, in the run and in its modules.
func (r *Run) allMet() []module.Met {
	out := slices.Clone(r.Met)
	for i := range r.Parts {
		out = append(out, r.Parts[i].Met...)
	}
	return out
}

// strays are the files of a module's change that are not its own, each with whose it is: the
// tools let no agent change them, but people may have.
func (r *Run) strays(it *Iteration) (out []string) {
	if it.Review == nil {
		return nil
	}
	owns := func(path, name string) bool { return path == name || glob.Match(path, name) }
	for _, name := range it.Review.Reviewed {
		if slices.ContainsFunc(r.Part.Module.Paths, func(p string) bool { return owns(p, name) }) {
			continue
		}
		whose := "no module's"
		for _, path := range slices.Sorted(maps.Keys(r.Part.Owners)) { // in an order, so that a report is always the same
			if owns(path, name) {
				whose = "of the module " + r.Part.Owners[path]
			}
		}
		if slices.Contains(r.Part.Contract, name) {
			whose = "of the contract"
		}
		out = append(out, fmt.Sprintf("`%s` (%s)", name, whose))
	}
	return out
}

// reportPoints lists what modules promise each other, and whether the test of it passed.
func (r *Run) reportPoints(b *strings.Builder, it *Iteration) {
	s := r.split()
	if s == nil || len(s.Promises)+len(s.Void) == 0 {
		return
	}
	lines := []string{"| integration point | promise | shown by | |\n| --- | --- | --- | --- |\n"}
	for _, p := range slices.Concat(s.Promises, s.Void) {
		saw := it.Tests.saw(p.Probe)
		if lost := r.lost(p); lost != "" {
			saw = "counts for nothing: " + lost + " is left out"
		}
		lines = append(lines, fmt.Sprintf("| %s ↔ %s | %s | %s | %s |\n", p.From, strings.Join(p.To, ", "), inCell(p.Text), inCell(p.Probe), saw))
	}
	section(b, "Integration points", lines)
}

// lost is the side of a promise that is left out, and without which its test counts for
// nothing; "" where both are there, or are still to come.
func (r *Run) lost(p module.Promise) string {
	gone := func(id string) bool {
		q := r.part(id)
		return q != nil && q.Left != "" && q.Merged == "" && q.How != module.Wired
	}
	switch {
	case gone(p.From):
		return p.From
	case !slices.ContainsFunc(p.To, func(id string) bool { return !gone(id) }):
		return strings.Join(p.To, ", ")
	}
	return ""
}

// saw says how a test went, by a name that somebody wrote.
func (t *TestReport) saw(name string) string {
	named := func(s string) bool { return testname.Same(s, name) }
	failed := func(f Failure) bool { return named(f.Test) }
	switch {
	case name == "" || t == nil:
		return "–"
	case slices.ContainsFunc(t.Failures, failed) || slices.ContainsFunc(t.Before, failed):
		return "❌"
	case slices.ContainsFunc(t.Accepted, named):
		return "❌, accepted"
	}
	if i := slices.IndexFunc(t.Changed, func(c TestChange) bool { return named(c.Test) }); i >= 0 { // a promise is what its test said when it was made
		return "❌ as it stood; as edited: " + t.Changed[i].Now
	}
	switch {
	case slices.ContainsFunc(t.Flaky, named):
		return "⚠️ flaky"
	case slices.ContainsFunc(t.Names, named):
		return "✅"
	}
	return "not run"
}

// failsAs reports whether what is said to show a criterion names a test that fails, and was
// accepted with a module.
func (t *TestReport) failsAs(evidence string) bool {
	words := strings.Fields(evidence)
	return slices.ContainsFunc(t.Accepted, func(test string) bool {
		if base := testname.Parse(test).Base; strings.ContainsRune(base, ' ') { // one of its words is in many sentences
			return strings.Contains(evidence, base)
		}
		return slices.ContainsFunc(words, func(word string) bool {
			word = strings.Trim(word, "`.,;()")
			return word != "" && testname.Same(test, word)
		})
	})
}

// except names who accepted modules with what is wrong in them: the whole has passed except for
// that.
func (r *Run) except(it *Iteration) string {
	var out []string
	for i := range r.Parts {
		p := &r.Parts[i]
		fails := it.Tests != nil && slices.ContainsFunc(p.Known, func(test string) bool { return slices.Contains(it.Tests.Accepted, test) })
		if State(p.State) == StateAccepted && p.Left == "" && (fails || it == r.Current()) {
			whom := "a person"
			if p.By != "" {
				whom = "@" + p.By
			}
			out = append(out, fmt.Sprintf("what %s accepted with the module %s", whom, p.ID))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return ", except for " + strings.Join(out, " and ")
}

// reportProof lists every criterion with what shows that it is met, and every suite.
func (r *Run) reportProof(b *strings.Builder, it *Iteration) {
	if r.Plan == nil {
		return
	}
	judged := map[string]Compliance{}
	for i := range r.Iterations[:it.Number] {
		if v := r.Iterations[i].Review; v != nil {
			for _, c := range v.Compliance {
				judged[c.Criterion] = c
			}
		}
	}
	rows := map[string]string{}
	for _, row := range r.Proofs(it) {
		if len(row.Tests) > 0 || r.Config.Loop.Proofs.On() {
			rows[row.Criterion] = inCell("; tests: " + row.String())
			if len(row.Tests) == 0 {
				rows[row.Criterion] = "; tests: none"
			}
			if lacks := row.Lacks(); lacks != "" && r.Config.Loop.Proofs.On() {
				rows[row.Criterion] += "; **not proved**: " + strings.ReplaceAll(text.Clip(text.OneLine(lacks), 300), "|", `\|`)
			}
		}
	}
	lines := []string{"| criterion | | shown by |\n| --- | --- | --- |\n"}
	for _, c := range r.Plan.Criteria {
		j, ok := judged[c.ID]
		mark := "–"
		if ok {
			mark = map[bool]string{true: "✅", false: "❌"}[j.Met]
			if j.Met && it.Tests.failsAs(j.Evidence) {
				mark = "❌, accepted"
			}
		}
		lines = append(lines, fmt.Sprintf("| %s: %s | %s | %s |\n", c.ID, inCell(c.Text), mark, inCell(j.Evidence)+rows[c.ID]))
	}
	for _, c := range r.Plan.LeftOut {
		why := "left out with its module"
		if c.By != "" {
			why = "a known limitation, by " + c.By
		}
		lines = append(lines, fmt.Sprintf("| %s: %s | – | %s |\n", c.ID, inCell(c.Text), why))
	}
	if it.Number > r.PlanIteration { // the criteria of an earlier plan are gone
		section(b, "Acceptance criteria", lines)
	}
	lines = []string{"| suite | tier | exit |\n| --- | --- | --- |\n"}
	for _, s := range it.Tests.Suites {
		lines = append(lines, fmt.Sprintf("| %s | %s | %d |\n", inCell(s.Name), s.Tier, s.Exit))
	}
	section(b, "Suites", lines)
}

// reportShown says what shows each criterion, where the settings ask for tests that do; the
// system's report has it in its table. Of an earlier plan's criteria nothing is known any more.
func (r *Run) reportShown(b *strings.Builder, it *Iteration, tier string) {
	if tier == TierSystem || !r.Config.Loop.Proofs.On() || it.Number <= r.PlanIteration {
		return
	}
	var lines []string
	for _, row := range r.Proofs(it) {
		lines = append(lines, "- "+row.Criterion+": "+shown(row, "**not proved**: ")+"\n")
	}
	section(b, "Acceptance criteria", lines)
}

func shown(row proof.Row, not string) string {
	if lacks := row.Lacks(); lacks != "" {
		return not + text.Clip(text.OneLine(lacks), 300)
	}
	return "tests: " + text.Clip(text.OneLine(row.String()), 300)
}

// Shown says what shows each criterion, at the newest head that was tested, where the
// settings ask for tests that do: in the words of the pull request.
func (r *Run) Shown() (out []string) {
	for i := len(r.Iterations) - 1; i >= 0 && len(out) == 0 && r.Config.Loop.Proofs.On(); i-- {
		for _, row := range r.Proofs(&r.Iterations[i]) {
			out = append(out, row.Criterion+": "+shown(row, "not proved: "))
		}
	}
	return out
}

func inCell(s string) string {
	return strings.ReplaceAll(text.Clip(text.OneLine(s), 160), "|", `\|`)
}
