package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// issueRow is a finding or a failure, and what became of it.
type issueRow struct {
	Severity string // of a failure: "failure"
	Category string
	Name     string // what it says, or the test's name
	Where    string
	URL      string
	Seen     string
	Fate     string
	Class    string // open, again, fixed, dismissed, accepted
	Commit   string // that fixed it
	Why      string // more about its fate, or the failure's message
	Cause    string
	Fix      string
	Ruling   string // what the reviewer says of it, the last time
	Disputed string // why the implementer holds it for mistaken
	Upheld   int    // times that the reviewer upheld it against a dispute
}

// issueList is what review and tests found.
type issueList struct {
	Rows  []issueRow
	More  int
	Count []issueCount
}

type issueCount struct {
	Class string
	N     int
}

// issuesShown is how many findings and failures are shown: those that are open
// and worst come first.
const issuesShown = 100

// classes are the fates in the order in which they are shown.
var classes = []string{"again", "open", "asked", "accepted", "dismissed", "withdrawn", "fixed"}

// issues lists a run's findings and failures.
func issues(run *pipeline.Run, events []pipeline.Event) (out issueList) {
	dismissals := map[string]*pipeline.Signal{}
	for i := range events {
		if s := events[i].Data.Signal; s != nil && events[i].Type == pipeline.EventDismissed {
			dismissals[s.Finding] = s
		}
	}
	type ref struct {
		is    *pipeline.Issue
		class string
		rank  int
	}
	var list []ref
	for _, of := range [][]pipeline.Issue{run.Failures, run.Findings} {
		for i := range of {
			r := ref{is: &of[i], class: outcome(&of[i]), rank: pipeline.SeverityError.Rank()}
			if of[i].Finding != nil {
				r.rank = of[i].Finding.Severity.Rank()
			}
			list = append(list, r)
		}
	}
	for i := range run.Requested {
		list = append(list, ref{&pipeline.Issue{Finding: &run.Requested[i], Phase: pipeline.PhaseReview}, "asked", 0})
	}
	count := map[string]int{}
	for _, r := range list {
		count[r.class]++
	}
	slices.SortStableFunc(list, func(a, b ref) int {
		return cmp.Or(slices.Index(classes, a.class)-slices.Index(classes, b.class), b.rank-a.rank)
	})
	for _, c := range classes {
		if count[c] > 0 {
			out.Count = append(out.Count, issueCount{c, count[c]})
		}
	}
	for _, r := range list[:min(len(list), issuesShown)] {
		out.Rows = append(out.Rows, issueOf(run, r.is, r.class, dismissals))
	}
	out.More = max(0, len(list)-issuesShown)
	return out
}

// Word is a fate for people.
func (c issueCount) Word() string {
	return map[string]string{"again": "back again", "asked": "asked for", "accepted": "accepted as known"}[c.Class]
}

func outcome(is *pipeline.Issue) string {
	if is.State == pipeline.IssueOpen && is.Back > 0 {
		return "again"
	}
	return string(is.State)
}

func issueOf(run *pipeline.Run, is *pipeline.Issue, class string, dismissals map[string]*pipeline.Signal) issueRow {
	row := issueRow{Class: class, Fate: cmp.Or(issueCount{Class: class}.Word(), class), Seen: seen(is)}
	file, line := "", 0
	if f := is.Finding; f != nil {
		row.Severity, row.Category, row.Name = string(f.Severity), string(f.Category), text.Clip(f.Message, textShown)
		file, line = f.File, f.Line
		if f.Fix != nil {
			row.Fix = text.Clip(f.Fix.Description, textShown)
		}
	} else if f := is.Failure; f != nil {
		row.Severity, row.Category, row.Name, row.Why = "failure", f.Cause, text.Clip(f.Test, textShown), text.Clip(f.Error, textShown)
		file, line, row.Cause = f.File, f.Line, text.Clip(f.Analysis, textShown)
		if f.Fix != nil {
			row.Fix = text.Clip(f.Fix.Description, textShown)
		}
	}
	if file != "" {
		row.Where = text.Clip(file, titleShown)
		if base := repoURL(run); base != "" && run.Published.Head != "" {
			row.URL = base + "/blob/" + url.PathEscape(run.Published.Head) + "/" + (&url.URL{Path: file}).EscapedPath()
		}
		if line > 0 {
			row.Where += fmt.Sprintf(":%d", line)
			if row.URL != "" {
				row.URL += fmt.Sprintf("#L%d", line)
			}
		}
	}
	switch class {
	case "again":
		row.Fate = "back again, after it was fixed"
		if is.Back > 1 {
			row.Fate += fmt.Sprintf(" %d times", is.Back)
		}
	case "open":
		if is.First < is.Last {
			row.Fate = "open, still there"
		}
	case "withdrawn":
		row.Fate = "withdrawn by the reviewer"
	case "fixed":
		row.Fate, row.Commit = "fixed in", is.FixedIn
	case "dismissed":
		if s := dismissals[is.Fingerprint()]; s != nil {
			row.Fate, row.Why = "dismissed by "+cmp.Or(s.Actor.Login, "somebody"), text.Clip(s.Text, textShown)
		}
	}
	row.Ruling, row.Disputed, row.Upheld = text.Clip(is.Ruling, textShown), text.Clip(is.Disputed, textShown), is.Upheld
	return row
}

// seen says in which iterations an issue was seen.
func seen(is *pipeline.Issue) string {
	switch {
	case is.First == 0:
		return "–"
	case is.First == is.Last:
		return fmt.Sprintf("%d", is.First)
	}
	return fmt.Sprintf("%d–%d", is.First, is.Last)
}

// heldShown is how many lines about what was held back are shown.
const suppressedShown = 100

// suppressed lists what reviews say was held back, or lowered, because people had
// dismissed the like before.
func suppressed(run *pipeline.Run) (out []string) {
	for i := range run.Iterations {
		v := run.Iterations[i].Review
		if v == nil {
			continue
		}
		for line := range strings.SplitSeq(v.Summary, "\n") {
			if (strings.HasPrefix(line, "Held back: ") || strings.HasPrefix(line, "Lowered to ")) && len(out) < suppressedShown {
				out = append(out, fmt.Sprintf("Iteration %d. %s", i+1, text.Clip(line, textShown)))
			}
		}
	}
	return out
}

// testRow is the tests' result in one iteration.
type testRow struct {
	Label   string
	None    string
	Suites  string
	Total   int
	Passed  int
	Failed  int
	Skipped int
	Lines   string // coverage
	Changed string // of the changed lines
	Result  string
	Notes   []string
}

// namesShown is how many tests are named in one note.
const namesShown = 6

// tests lists the tests' results: before the change, then by iteration.
func tests(run *pipeline.Run) (out []testRow) {
	if run.Baseline != nil {
		out = append(out, testsOf("before", run.Baseline))
	}
	for i := range run.Iterations {
		if t := run.Iterations[i].Tests; t != nil {
			out = append(out, testsOf(fmt.Sprintf("%d", run.Iterations[i].Number), t))
		}
	}
	return out
}

func testsOf(label string, t *pipeline.TestReport) testRow {
	row := testRow{Label: label, None: t.None, Total: t.Total, Passed: t.Passed, Failed: t.Failed, Skipped: t.Skipped, Lines: "–", Changed: "–", Result: "failed"}
	if t.OK() {
		row.Result = "passed"
	}
	if c := t.Coverage; c != nil {
		row.Lines, row.Changed = percent(c.Lines), percent(c.Changed)
	}
	var names, before, fresh []string
	for _, s := range t.Suites {
		names = append(names, s.Name)
	}
	row.Suites = text.Clip(strings.Join(names, ", "), titleShown)
	for _, f := range t.Failures {
		switch {
		case f.WorkedIn > 0:
			before = append(before, fmt.Sprintf("%s (worked in iteration %d)", f.Test, f.WorkedIn))
		case f.WorkedIn < 0:
			before = append(before, f.Test+" (worked before the change)")
		default:
			fresh = append(fresh, f.Test)
		}
	}
	for _, n := range []struct {
		name string
		list []string
	}{{"Regression", before}, {"Failed", fresh}, {"Flaky, passed when run again", t.Flaky}} {
		if len(n.list) > 0 {
			row.Notes = append(row.Notes, n.name+": "+someOf(n.list))
		}
	}
	row.Notes = append(row.Notes, verdictNotes(t)...)
	if n := len(t.Tampered); n > 0 {
		row.Notes = append(row.Notes, text.Plural(n, "test was", "tests were")+" removed or weakened")
	}
	return row
}

// verdictNotes say what a result rests on beside what passed and failed: what failed
// before the work, what the work changed in tests, and what did not end well.
func verdictNotes(t *pipeline.TestReport) (out []string) {
	var before, known, changed []string
	for _, f := range t.Before {
		if f.KnownBy == "" {
			before = append(before, f.Test)
		} else {
			known = append(known, f.Test+" (known, says "+f.KnownBy+")")
		}
	}
	for _, c := range t.Changed {
		words := c.Test
		if c.Reason != "" {
			words += " (the reviewer: " + text.Clip(text.FirstLine(c.Reason), titleShown) + ")"
		}
		changed = append(changed, words)
	}
	for _, n := range []struct {
		name string
		list []string
	}{{"Failed before this work, and still", before}, {"Failed before this work, as is known", known}, {"Pass only as this work changed them", changed}} {
		if len(n.list) > 0 {
			out = append(out, n.name+": "+someOf(n.list))
		}
	}
	for _, m := range t.Measures {
		out = append(out, "Quality gate "+m.Mark()+" "+text.Clip(m.Name+": "+m.Says(), textShown))
	}
	for _, s := range t.Suites {
		if s.NotRun != "" {
			out = append(out, text.Clip(s.Name, titleShown)+" did not run: "+text.Clip(text.FirstLine(s.NotRun), titleShown))
		}
	}
	for _, line := range t.Setup {
		out = append(out, text.Clip(text.FirstLine(strings.ToUpper(line[:1])+line[1:]), 2*titleShown))
	}
	if t.Unclean != "" {
		out = append(out, "Not green: "+text.Clip(text.FirstLine(t.Unclean), 2*titleShown))
	}
	return out
}

// waiver is what somebody let pass that Forge could not verify.
type waiver struct {
	Who, What, Head string
	At              time.Time
}

func waivers(run *pipeline.Run) (out []waiver) {
	for _, w := range run.Waivers {
		out = append(out, waiver{cmp.Or(w.By.Login, "somebody"), text.Clip(w.What, textShown), w.Head, w.At})
	}
	return out
}

// someOf lists the first of some names.
func someOf(list []string) string {
	var short []string
	for _, s := range list[:min(len(list), namesShown)] {
		short = append(short, text.Clip(s, titleShown))
	}
	words := strings.Join(short, ", ")
	if n := len(list) - namesShown; n > 0 {
		words += fmt.Sprintf(" and %d more", n)
	}
	return words
}

func percent(v float64) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", v)
}

// costTable is what each phase of each iteration took.
type costTable struct {
	Phases []pipeline.Phase
	Rows   []costRow
	Total  costRow
}

type costRow struct {
	Label string
	Cells []costCell
	Sum   costCell
}

type costCell struct{ MicroUSD, Unpriced, Millis int64 }

func (c *costCell) add(d costCell) {
	c.MicroUSD += d.MicroUSD
	c.Unpriced += d.Unpriced
	c.Millis += d.Millis
}

// Cost is what it cost, for people.
func (c costCell) Cost() string {
	return pipeline.Usage{MicroUSD: c.MicroUSD, Unpriced: c.Unpriced}.Cost()
}

// costs sums the timeline up: by phase and by row. What was spent looking back is
// no station of the loop and comes last.
func costs(run *pipeline.Run, line *timeline) costTable {
	t := costTable{Phases: line.Phases, Total: costRow{Label: "in all", Cells: make([]costCell, len(line.Phases))}}
	for _, row := range line.Rows {
		out := costRow{Label: fmt.Sprintf("%d", row.Number), Cells: make([]costCell, len(line.Phases))}
		if row.Number == 0 {
			out.Label = "plan"
		}
		for at, c := range row.cost {
			out.Cells[at-1].add(c)
			t.Total.Cells[at-1].add(c)
		}
		out.Sum = row.Sum
		t.Total.Sum.add(row.Sum)
		if out.Sum != (costCell{}) {
			t.Rows = append(t.Rows, out)
		}
	}
	if u := run.Spent[pipeline.PhaseReflect]; u.MicroUSD > 0 || u.Unpriced > 0 {
		c := costCell{MicroUSD: u.MicroUSD, Unpriced: u.Unpriced}
		t.Rows = append(t.Rows, costRow{Label: "looking back", Cells: make([]costCell, len(line.Phases)), Sum: c})
		t.Total.Sum.add(c)
	}
	return t
}
