package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// unmeasured returns the gates of quality that block and have no value in the report of a
// head: nothing is verified without them. A module's run has no gates.
func (r *Run) unmeasured(t *TestReport) (out []string) {
	if r.Part != nil {
		return nil
	}
	for _, name := range r.Config.Blocking() {
		if !slices.ContainsFunc(t.Measures, func(m measure.Result) bool { return m.Name == name && m.Error == "" }) {
			out = append(out, name)
		}
	}
	return out
}

// MeasureTable is what the gates of quality came to, as a table for people; "" without any.
func (t *TestReport) MeasureTable() string {
	if t == nil || len(t.Measures) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| quality gate | | value | bound | base |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range t.Measures {
		value, base := "not measured", "–"
		if m.Error == "" {
			value = measure.Show(m.Value, m.Unit)
		}
		if m.Base != nil {
			base = measure.Show(*m.Base, m.Unit)
		}
		mark := m.Mark()
		if !m.Block {
			mark += " (a warning)"
		} else if m.Before {
			mark += " (as before)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", inCell(m.Name), mark, inCell(value), inCell(m.Bound), inCell(base))
	}
	return b.String()
}

// MeasureNotes are lines about gates that are missed, or could not be measured.
func (t *TestReport) MeasureNotes() (out []string) {
	if t == nil {
		return nil
	}
	for _, m := range t.Measures {
		if m.OK && m.Note == "" {
			continue
		}
		line := m.Name + ": " + m.Says()
		if cause := m.Cause(); cause != "" && !m.OK {
			line += "; " + text.OneLine(strings.ReplaceAll(cause, "\n", "; "))
		}
		if len(m.Owner) > 0 && !m.OK {
			line += "; answered for by " + strings.Join(m.Owner, ", ")
		}
		out = append(out, text.Clip(line, 500))
	}
	return out
}

// explainMeasures says which gates of quality there are, and what they came to last.
func (r *Run) explainMeasures(b *strings.Builder) {
	if len(r.Config.Quality) == 0 {
		return
	}
	var last *TestReport
	for i := range r.Iterations {
		if t := r.Iterations[i].Tests; t != nil && len(t.Measures) > 0 {
			last = t
		}
	}
	if last == nil {
		fmt.Fprintf(b, "\nThere are %s of quality, measured once the tests have passed; none was yet. Those that block: %s.\n",
			text.Plural(len(r.Config.Quality), "gate", "gates"), strings.Join(r.Config.Blocking(), ", "))
		return
	}
	fmt.Fprintf(b, "\nThe gates of quality, as measured on %s with the base's settings:\n\n%s", text.ShortSHA(last.Head), last.MeasureTable())
	for _, line := range last.MeasureNotes() {
		fmt.Fprintf(b, "\n- %s", line)
	}
	b.WriteString("\n")
}
