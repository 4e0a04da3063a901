package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/text"
)

// Verified is the promise with which a loop ends well (T1).
const Verified = "IMPLEMENTATION_VERIFIED"

// called is what people know the run by, at the begin of a sentence.
func (r *Run) called() string {
	if r.Part != nil {
		return fmt.Sprintf("The module %s (run %d)", r.Part.Module.ID, r.ID)
	}
	return fmt.Sprintf("Run %d", r.ID)
}

// Summary says in one sentence where the run stands.
func (r *Run) Summary() string {
	where := ""
	if r.Active != nil {
		where = ", in the phase " + string(r.Active.Phase)
	}
	if it := r.Current(); it != nil {
		where += fmt.Sprintf(", iteration %d of %d", it.Number, r.MaxIterations())
	}
	if w := r.Awaits(); w != "" {
		where += ", and waits for " + w
	}
	s := fmt.Sprintf("%s is %s%s; %s so far.", r.called(), r.State, where, r.Total().spent())
	if g := r.Gate(); g != nil {
		s += " It waits for a human: " + g.Question + " Choices: " + g.words(r.Slug) + "."
	}
	s += r.partsAsk()
	if r.Ended != "" {
		s += " It ended: " + r.Ended + "."
	}
	if it := r.Current(); r.State == StateVerified && it != nil && it.Tests != nil && len(it.Tests.Changed) > 0 {
		var tests []string
		for _, c := range it.Tests.Changed {
			tests = append(tests, c.Test)
		}
		s += fmt.Sprintf(" On the reviewer's word alone, %s had to change: %s.", text.Plural(len(tests), "test", "tests"), text.Clip(strings.Join(tests, ", "), 300))
	}
	if base := r.Behind(); base != "" {
		s += " " + base
	}
	return s
}

// Awaits says what the active phase waits for outside of Forge, and until when; "" for nothing.
func (r *Run) Awaits() string {
	switch {
	case r.State != StateRunning || r.Active == nil || r.Await == nil:
		return ""
	case !r.Await.Away():
	case r.Await.Woken || r.Updated.After(r.Await.Next): // it is tried again
		return ""
	default: // which says when that is
		return r.Await.What
	}
	return fmt.Sprintf("%s, until %s at most", r.Await.What, r.Await.Until.UTC().Format("15:04 UTC"))
}

// partsAsk says which modules ask people, and that nothing goes on without an answer where
// that is so.
func (r *Run) partsAsk() (s string) {
	if r.State.Ended() {
		return ""
	}
	idle := r.State == StateRunning && r.Active == nil
	for i := range r.Parts {
		p := &r.Parts[i]
		if p.Question != "" && p.Left == "" && partState(p) == StateWaiting {
			s += fmt.Sprintf(" Its module %s asks: %s Answer with %s; %s has the choices.", p.ID, text.Clip(text.OneLine(p.Question), 300),
				r.typed(p.ID+" CHOICE"), r.typed(p.ID+" status"))
		} else if p.Left == "" && !p.Done() && partState(p) == StateRunning {
			idle = false
		}
	}
	if s != "" && idle {
		s += " Nothing goes on until then."
	}
	return s
}

// Report renders the validation report of an iteration (V1), in Markdown. It is
// empty when the iteration has neither a review nor tests yet.
func (r *Run) Report(iteration int) string {
	if iteration < 1 || iteration > len(r.Iterations) {
		return ""
	}
	it := &r.Iterations[iteration-1]
	if it.Review == nil && it.Tests == nil {
		return ""
	}
	first := r.reportOf(it, r.tier(it))
	if system := r.SystemReport(iteration); system != "" {
		return first + "\n" + system
	}
	return first
}

// reportOf renders the report of an iteration on one tier; "" where there are none.
func (r *Run) reportOf(it *Iteration, tier string) string {
	var b strings.Builder
	name := ""
	if tier != "" {
		name = " (" + tier + ")"
	}
	fmt.Fprintf(&b, "### Validation report%s, iteration %d of %d\n\n", name, it.Number, r.MaxIterations())
	r.reportScope(&b, it, tier)
	passed := tier == TierIntegration && r.whole(it) // what fails then is the system's
	if passed {
		b.WriteString("Tests: all that are not the system's passed")
		if n := len(it.Tests.Accepted); n > 0 {
			fmt.Fprintf(&b, " but %s, accepted with a module: %s", text.Plural(n, "test", "tests"), text.Clip(strings.Join(it.Tests.Accepted, ", "), 200))
		}
		b.WriteString(".\n\n")
	} else {
		r.reportSummary(&b, it)
	}
	if it.Impl != nil && len(it.Impl.Locked) > 0 {
		fmt.Fprintf(&b, "Written by package managers: %s\n\n", text.Clip(strings.Join(it.Impl.Locked, ", "), 1000))
	}
	if it.Number > 1 {
		r.reportNotes(&b, it.Number)
	}
	switch tier {
	case TierIntegration:
		r.reportPoints(&b, it)
	case TierSystem:
		r.reportProof(&b, it)
	}
	if !passed {
		r.reportTests(&b, it)
		r.reportShown(&b, it, tier)
	}
	reportChanged(&b, it.Tests)
	list := r.reportFindings(&b, it)
	reportSecurity(&b, list)
	reportCoverage(&b, it.Tests)
	reportMeasures(&b, it.Tests)
	r.reportAdvice(&b, it, list)
	r.reportHistory(&b, it.Number)
	if passed {
		fmt.Fprintf(&b, "**Result: PASSED%s**\n\nNext: the system is validated, end to end.\n", r.except(it))
		return b.String()
	}
	fmt.Fprintf(&b, "**Result: %s**\n", r.result(it))
	if it.Result != ResultInProgress { // while it goes on, a word more would be an edit more on GitHub
		fmt.Fprintf(&b, "\nNext: %s.\n", r.following(it))
	}
	return b.String()
}

func (r *Run) reportSummary(b *strings.Builder, it *Iteration) {
	t := it.Tests
	if t == nil {
		why := "not run yet"
		switch {
		case it.Result == ResultFailed && slices.ContainsFunc(r.Bounces, func(b Bounce) bool { return b.Iteration == it.Number }):
			why = "not run, because the review sent the work back"
		case it == r.Current() && r.Gate() != nil:
			why = "not run, because a human must decide first"
		case it == r.Current() && r.State == StateAccepted && r.endedBy() != "":
			why = "not run, because " + r.endedBy() + " accepted the work first"
		case it == r.Current() && r.State.Ended():
			why = "not run, because the run ended first"
		case r.State.Ended() || it.Result == ResultFailed:
			why = "not run"
		}
		fmt.Fprintf(b, "Tests: %s.\n\n", why)
		return
	}
	for _, line := range t.Setup {
		fmt.Fprintf(b, "- %s\n", text.Clip(text.OneLine(line), 600))
	}
	if len(t.Setup) > 0 {
		b.WriteString("\n")
	}
	if t.None != "" {
		fmt.Fprintf(b, "Tests: none. %s\n\n", t.None)
		return
	}
	column, rule, before := "", "", ""
	if n := len(t.Before); n > 0 {
		column, rule, before = " failed before |", " --- |", fmt.Sprintf(" %d |", n)
	}
	b.WriteString("| total | passed | failed |" + column + " skipped | coverage | of changed lines |\n| --- | --- | --- |" + rule + " --- | --- | --- |\n")
	lines, changed := "–", "–"
	if c := t.Coverage; c != nil {
		lines, changed = percent(c.Lines), percent(c.Changed)
	}
	fmt.Fprintf(b, "| %d | %d | %d |%s %d | %s | %s |\n\n", t.Total, t.Passed, t.Failed, before, t.Skipped, lines, changed)
	if len(t.Accepted) > 0 {
		fmt.Fprintf(b, "Of those that failed, accepted with a module: %s\n\n", text.Clip(text.OneLine(strings.Join(t.Accepted, ", ")), 400))
	}
}

func percent(v float64) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", v)
}

// reportNotes compares with the iteration before: fixed, still failing, new. A report keeps
// what it said when the next iterations come.
func (r *Run) reportNotes(b *strings.Builder, iteration int) {
	var fixed, still, fresh, back int
	for _, list := range [][]Issue{r.Findings, r.Failures} {
		for i := range list {
			is := &list[i]
			before, now := r.Stood(is, iteration-1), r.Stood(is, iteration)
			switch {
			case is.First == iteration:
				fresh++
			case now == IssueOpen && !r.judged(is.Phase, iteration): // nothing is known of it
			case now == IssueOpen && before == IssueOpen:
				still++
			case now == IssueOpen:
				back++
			case now == IssueFixed && before == IssueOpen:
				fixed++
			}
		}
	}
	fmt.Fprintf(b, "Since iteration %d: %d fixed, %d still there, %d new", iteration-1, fixed, still, fresh)
	if back > 0 {
		fmt.Fprintf(b, ", %d seen before", back)
	}
	b.WriteString(".\n\n")
}

func (r *Run) reportTests(b *strings.Builder, it *Iteration) {
	t := it.Tests
	if t == nil {
		return
	}
	if n := len(t.Names); n > 0 {
		fmt.Fprintf(b, "Passed: %s", strings.Join(t.Names[:min(n, 8)], ", "))
		if n > 8 {
			fmt.Fprintf(b, " and %d more", n-8)
		}
		b.WriteString("\n\n")
	}
	for _, f := range t.Failures {
		title := "FAILED"
		is := r.followed(f.Fingerprint)
		if is != nil && is.Times > 1 && is.Last == it.Number {
			title = "STILL FAILING"
		} else if f.WorkedIn > 0 {
			title = fmt.Sprintf("NEW FAILURE (worked in iteration %d)", f.WorkedIn)
		} else if f.WorkedIn < 0 {
			title = "NEW FAILURE (worked before the change)"
		}
		fmt.Fprintf(b, "- **%s** `%s`%s\n", title, text.Clip(text.OneLine(f.Test), 200), at(f.File, f.Line))
		fmt.Fprintf(b, "  - error: %s\n", text.Clip(text.OneLine(f.Error), 200))
		if tried := it.before(&f); tried != "" && title == "STILL FAILING" {
			fmt.Fprintf(b, "  - previous attempt: %s\n", tried)
		}
		if f.Analysis != "" {
			fmt.Fprintf(b, "  - root cause (%s): %s\n", f.Cause, text.Clip(text.OneLine(f.Analysis), 200))
		}
		if f.Fix != nil {
			fmt.Fprintf(b, "  - recommended fix: %s\n", text.Clip(text.OneLine(f.Fix.Description), 200))
		}
	}
	if len(t.Failures) > 0 {
		b.WriteString("\n")
	}
	if len(t.Flaky) > 0 {
		fmt.Fprintf(b, "Flaky (failed, then passed when run again): %s\n\n", strings.Join(t.Flaky, ", "))
	}
}

func at(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return " in " + file
	}
	return fmt.Sprintf(" at %s:%d", file, line)
}

// reportFindings lists the findings of the review and about the tests, and returns them.
func (r *Run) reportFindings(b *strings.Builder, it *Iteration) (list []Finding) {
	if it.Review != nil {
		list = append(list, it.Review.Findings...)
		for _, s := range it.Review.NotReviewed {
			fmt.Fprintf(b, "Not reviewed: `%s` (%s)\n\n", s.Path, text.Clip(text.OneLine(s.Why), 200))
		}
		for _, view := range it.Review.Views {
			fmt.Fprintf(b, "Reviewed for %s\n\n", view)
		}
	}
	if it.Tests != nil {
		list = append(list, it.Tests.Tampered...)
	}
	for _, f := range list {
		fmt.Fprintf(b, "- %s\n", f.inReport(r.statusOf(f.Fingerprint, it.Number)))
	}
	for _, f := range r.kept(it) {
		list = append(list, f)
		status := cmp.Or(r.statusOf(f.Fingerprint, it.Number), ", still there")
		fmt.Fprintf(b, "- %s\n  - %s\n", f.inReport(status), it.Review.keeps(f.Fingerprint))
	}
	withdrawn := r.withdrawn(it)
	for _, line := range withdrawn {
		b.WriteString(line)
	}
	if len(list)+len(withdrawn) > 0 {
		b.WriteString("\n")
	}
	return list
}

// inReport is a finding in a line of Markdown; status is what statusOf says of it.
func (f *Finding) inReport(status string) string {
	return fmt.Sprintf("**%s** (%s%s)%s: %s", f.Severity, f.Category, status, at(f.File, f.Line), text.Clip(text.OneLine(f.Message), 200))
}

// statusOf says what is worth knowing about a finding besides what it is: ", still
// there". It is nothing for a new one.
func (r *Run) statusOf(fingerprint string, iteration int) string {
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.Fingerprint() != fingerprint {
			continue
		}
		if s := is.Status(iteration); s == "dismissed" || is.Last == iteration && s != "new" && s != "fixed" {
			return ", " + s
		}
	}
	return ""
}

// result is the last line of a report.
func (r *Run) result(it *Iteration) string {
	last := it.Number == len(r.Iterations)
	of := func(b Bounce) bool { return b.Iteration == it.Number }
	switch {
	case it.Result == ResultPassed && last && r.State == StateVerified:
		return "PASSED (" + Verified + ")" + r.except(it)
	case last && r.Gate() != nil:
		return "ESCALATION: " + r.Gate().Question
	case it.Result == ResultInProgress:
		return fmt.Sprintf("in progress (iteration %d of %d)", it.Number, r.MaxIterations())
	case it.Brief != "":
		return fmt.Sprintf("FAILED (iteration %d of %d): %s", it.Number, r.MaxIterations(), it.Brief)
	case it.Result == ResultFailed && slices.ContainsFunc(r.Bounces, of):
		b := r.Bounces[slices.IndexFunc(r.Bounces, of)]
		return fmt.Sprintf("SENT BACK (iteration %d of %d): %s", it.Number, r.MaxIterations(), r.WhyBack(&b))
	}
	return fmt.Sprintf("%s (iteration %d of %d)", r.State, it.Number, r.MaxIterations())
}

// Scratchpad renders the whole history of the run, one section per iteration
// (T4). The next implementer reads it first, and people see it as the history.
func (r *Run) Scratchpad() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", text.Clip(text.OneLine(r.Task.Title), 200))
	for _, former := range r.PastPlans {
		fmt.Fprintf(&b, "Plan before: %s\n\n", former.Summary)
	}
	if r.Plan != nil {
		fmt.Fprintf(&b, "Plan: %s\n\n", r.Plan.Summary)
	}
	if len(r.Iterations) == 0 {
		b.WriteString("No iteration yet.\n")
	}
	for i := range r.Iterations {
		r.section(&b, &r.Iterations[i])
	}
	for _, d := range r.Decisions() {
		fmt.Fprintf(&b, "Decision %s\n", d)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note from %s\n", n)
	}
	return b.String()
}

func (r *Run) section(b *strings.Builder, it *Iteration) {
	fmt.Fprintf(b, "## Iteration %d (%s)\n\n", it.Number, strings.ReplaceAll(string(it.Mode), "_", " "))
	if m := it.Impl; m != nil {
		fmt.Fprintf(b, "**Implemented** (%s): %s\n", text.ShortSHA(m.Head), m.Summary)
		for _, a := range m.Addressed {
			fmt.Fprintf(b, "- addressed: %s\n", text.Clip(text.OneLine(a), 200))
		}
		for _, d := range m.Doubts {
			fmt.Fprintf(b, "- in doubt: %s\n", text.Clip(text.OneLine(d), 200))
		}
		b.WriteString("\n")
	}
	if u := it.Update; u != nil && u.Resolved != "" {
		fmt.Fprintf(b, "**Merged %s; the implementer resolved its conflicts** (%s): %s\n", r.Repo.DefaultBranch, text.ShortSHA(u.Head), u.Resolved)
		for _, m := range u.Met {
			fmt.Fprintf(b, "- %s\n", text.Clip(text.OneLine(m.String()), 300))
		}
		b.WriteString("\n")
	}
	if v := it.Review; v != nil {
		verdict := "approved"
		if len(r.Blocking(v)) > 0 {
			verdict = "changes requested"
		}
		fmt.Fprintf(b, "**Review**: %s\n", verdict)
		for _, f := range v.Findings {
			fmt.Fprintf(b, "- %s %s%s: %s\n", f.ID, f.Severity, at(f.File, f.Line), text.Clip(text.OneLine(f.Message), 200))
		}
		b.WriteString("\n")
	}
	if t := it.Tests; t != nil {
		fmt.Fprintf(b, "**Tests**: %d of %d passed\n", t.Passed, t.Total)
		for _, f := range t.Failures {
			fmt.Fprintf(b, "- `%s`%s: %s\n", text.Clip(text.OneLine(f.Test), 200), at(f.File, f.Line), text.Clip(text.OneLine(f.Error), 200))
		}
		b.WriteString("\n")
	}
	r.sentBack(b, it)
	status := "continuing"
	if it.Number == len(r.Iterations) && r.State == StateVerified {
		status = Verified
	} else if it.Number == len(r.Iterations) && r.State != StateRunning {
		status = string(r.State)
	}
	fmt.Fprintf(b, "Status: %s\n\n", status)
}

// sentBack says why an iteration was not the last, and what humans asked for in it.
func (r *Run) sentBack(b *strings.Builder, it *Iteration) {
	for _, bounce := range r.Bounces {
		if bounce.Iteration != it.Number {
			continue
		}
		fmt.Fprintf(b, "**Sent back** by %s to %s with %s\n", bounce.Phase, bounce.To(), text.Plural(bounce.Count, "issue", "issues"))
		for _, is := range r.Findings {
			if is.Finding.Category == CategoryHuman && slices.Contains(bounce.Issues, is.Fingerprint()) {
				fmt.Fprintf(b, "- asked for by a maintainer%s: %s\n", at(is.Finding.File, is.Finding.Line), text.Clip(text.OneLine(is.Finding.Message), 200))
			}
		}
		b.WriteString("\n")
	}
}

// progress is the machine-readable record of a run's loop (T6).
type progress struct {
	Loop struct {
		Enabled      bool                `json:"enabled"`
		Current      int                 `json:"current_iteration"`
		Max          int                 `json:"max_iterations"`
		Status       string              `json:"status"` // in_progress, IMPLEMENTATION_VERIFIED, escalated, or the run's state when it ended otherwise
		ReviewInARow int                 `json:"consecutive_review_failures"`
		TestInARow   int                 `json:"consecutive_test_failures"`
		Iterations   []progressIteration `json:"iterations"`
	} `json:"feedback_loop"`
}

// progressIteration is one iteration in a Progress.
type progressIteration struct {
	Number         int      `json:"number"`
	Implementation string   `json:"implementation"`
	ReviewResult   string   `json:"review_result"` // approved, changes_requested, or "" when there is none
	TestResult     string   `json:"test_result"`   // passed, failed, none, or "" when there is none
	TestFailures   []string `json:"test_failures"`
	Status         string   `json:"status"`
}

// Progress returns the progress record of a run.
func (r *Run) Progress() progress {
	var p progress
	l := &p.Loop
	l.Enabled, l.Max = true, r.MaxIterations()
	l.ReviewInARow, l.TestInARow = r.Counters.ReviewInARow, r.Counters.TestInARow
	switch {
	case r.State == StateVerified:
		l.Status = Verified
	case r.Gate() != nil:
		l.Status = "escalated"
	case r.State.Ended(), r.State == StateStopped:
		l.Status = string(r.State)
	default:
		l.Status = "in_progress"
	}
	l.Iterations = []progressIteration{}
	for _, it := range r.Iterations {
		l.Current = it.Number
		pi := progressIteration{Number: it.Number, Status: string(it.Result), TestFailures: []string{}}
		if it.Impl != nil {
			pi.Implementation = it.Impl.Summary
		}
		if it.Review != nil {
			pi.ReviewResult = "approved"
			if len(r.Blocking(it.Review)) > 0 {
				pi.ReviewResult = "changes_requested"
			}
		}
		if t := it.Tests; t != nil {
			switch {
			case t.OK():
				pi.TestResult = "passed"
			case t.None != "":
				pi.TestResult = "none"
			default:
				pi.TestResult = "failed"
			}
			for _, f := range t.Failures {
				pi.TestFailures = append(pi.TestFailures, f.Test)
			}
		}
		l.Iterations = append(l.Iterations, pi)
	}
	return p
}
