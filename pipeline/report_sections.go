package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/text"
)

// What a report says behind what was found (V1): each section only where there is
// something to say in it.

const (
	shownGaps   = 15 // of what is covered too little
	shownAdvice = 10
)

// before says what the last attempt at a failure did that did not help: the line of
// the implementer about it, in the iteration that is reported on.
func (it *Iteration) before(f *Failure) string {
	if it.Impl == nil {
		return ""
	}
	name := text.ClipBytes(f.Test, 100)
	for _, line := range it.Impl.Addressed {
		if _, what, ok := strings.Cut(line, "("+name+"): "); ok {
			return text.Clip(text.OneLine(what), 200)
		}
	}
	return ""
}

// followed is the failure of a fingerprint, nil when it is not followed.
func (r *Run) followed(fingerprint string) *Issue {
	for i := range r.Failures {
		if r.Failures[i].Fingerprint() == fingerprint {
			return &r.Failures[i]
		}
	}
	return nil
}

// reportSecurity lists by their place the findings that are about security.
func reportSecurity(b *strings.Builder, list []Finding) {
	var lines []string
	for _, f := range list {
		if f.Category == CategorySecurity {
			lines = append(lines, fmt.Sprintf("- **%s**%s: %s\n", f.Severity, at(f.File, f.Line), text.Clip(text.OneLine(f.Message), 200)))
		}
	}
	section(b, "Security issues", lines)
}

// reportChanged lists the tests of the base that do not pass as they stood, and why the
// reviewer let them change, then all that the change edits.
func reportChanged(b *strings.Builder, t *TestReport) {
	if t == nil {
		return
	}
	var lines []string
	for _, c := range t.Changed {
		line := fmt.Sprintf("- `%s`, as it stood at the base: %s", text.Clip(text.OneLine(c.Test), 200), text.Clip(text.OneLine(c.Error), 200))
		if c.Reason != "" {
			line += "; the reviewer: " + text.Clip(text.OneLine(c.Reason), 400)
		}
		lines = append(lines, line+"\n")
	}
	section(b, "Tests that had to change", lines)
}

// reportCoverage lists what is covered less than the settings ask for.
func reportCoverage(b *strings.Builder, t *TestReport) {
	if t == nil || t.Coverage == nil || len(t.Coverage.Under) == 0 {
		return
	}
	c := t.Coverage
	var lines []string
	for _, g := range c.Under[:min(len(c.Under), shownGaps)] {
		what := "`" + g.File + "`"
		if g.Function != "" {
			what = fmt.Sprintf("`%s` at %s:%d", g.Function, g.File, g.Line)
		}
		if g.Changed {
			what += ", which the change touches"
		}
		lines = append(lines, fmt.Sprintf("- %s: %s\n", what, percent(g.Lines)))
	}
	if more := len(c.Under) - len(lines) + c.More; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more\n", more))
	}
	section(b, fmt.Sprintf("Coverage under %g %%", c.Threshold), lines)
}

// reportMeasures lists the gates of quality with what they came to.
func reportMeasures(b *strings.Builder, t *TestReport) {
	table := t.MeasureTable()
	if table == "" {
		return
	}
	for _, line := range t.MeasureNotes() {
		table += "\n- " + line
	}
	section(b, "Quality gates", []string{table + "\n"})
}

// reportAdvice lists what to do about what is open, the worst first.
func (r *Run) reportAdvice(b *strings.Builder, it *Iteration, list []Finding) {
	type advice struct {
		weight int
		text   string
	}
	var all []advice
	if it.Tests != nil {
		for _, f := range it.Tests.Failures {
			if f.Fix != nil && f.Fix.Description != "" {
				all = append(all, advice{weight(SeverityError), fmt.Sprintf("`%s`: %s", text.Clip(text.OneLine(f.Test), 100), text.Clip(text.OneLine(f.Fix.Description), 200))})
			}
		}
	}
	for _, f := range list {
		if f.Fix != nil && f.Fix.Description != "" && r.statusOf(f.Fingerprint, it.Number) != ", dismissed" {
			all = append(all, advice{weight(f.Severity), strings.TrimPrefix(at(f.File, f.Line)+": ", " at ") + text.Clip(text.OneLine(f.Fix.Description), 200)})
		}
	}
	slices.SortStableFunc(all, func(a, b advice) int { return cmp.Compare(b.weight, a.weight) })
	var lines []string
	for i, a := range all[:min(len(all), shownAdvice)] {
		lines = append(lines, fmt.Sprintf("%d. %s\n", i+1, strings.TrimPrefix(a.text, ": ")))
	}
	section(b, "Recommendations", lines)
}

// reportHistory is what became of each iteration, in the last one's report.
func (r *Run) reportHistory(b *strings.Builder, last int) {
	if last < 2 || last != len(r.Iterations) || !r.State.Ended() {
		return
	}
	var lines []string
	for i := range r.Iterations {
		it := &r.Iterations[i]
		line := fmt.Sprintf("%d. %s", it.Number, strings.ReplaceAll(string(it.Mode), "_", " "))
		if it.Impl != nil && it.Impl.Summary != "" {
			line += ": " + text.Clip(text.FirstLine(it.Impl.Summary), 120)
		}
		if it.Brief != "" {
			line += fmt.Sprintf(" (%s)", it.Brief)
		}
		lines = append(lines, line+"\n")
	}
	section(b, "Iterations", lines)
}

// section appends lines under a heading; nothing when there are none.
func section(b *strings.Builder, heading string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "#### %s\n\n%s\n", heading, strings.Join(lines, ""))
	}
}

// following says what comes next after an iteration.
func (r *Run) following(it *Iteration) string {
	next := fmt.Sprintf("iteration %d", it.Number+1)
	switch {
	case it.Number < len(r.Iterations):
		return next
	case r.Gate() != nil:
		return "a human decides"
	case r.Part != nil && (r.State == StateVerified || r.State == StateAccepted):
		return "it is merged, and goes on to the integration when those that it waits for are there"
	case r.State == StateVerified:
		return "a human reviews and merges"
	case r.State.Ended():
		return "nothing: " + r.Ended
	case r.State == StateStopped:
		return "it goes on when it is resumed"
	case slices.ContainsFunc(r.Bounces, func(b Bounce) bool { return b.Iteration == it.Number }):
		return next // in the same words as when it has begun: the report is not edited for it
	}
	return "the work goes back, or a human is asked"
}
