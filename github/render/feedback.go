package render

import (
	"fmt"
	"strings"

	"forge/pipeline/upstream"
)

// feedback is a line for each thing that agents told each other; "" without any.
func (v Renderer) feedback() string {
	if len(v.Run.Upstream) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Feedback between agents**\n\n| | kind | from → to | state | what | decision |\n|---|---|---|---|---|---|\n")
	for i := range v.Run.Upstream {
		f := &v.Run.Upstream[i]
		decision, about := "", ""
		if d := f.Decision; d != nil {
			decision = v.cell(d.String(), 300) + ", by " + code(d.By)
		}
		if len(f.About) > 0 {
			about = v.cell(strings.Join(f.About, ", "), 100) + ": "
		}
		fmt.Fprintf(&b, "| %s | %s | %s → %s | %s | %s | %s |\n", f.ID, f.Kind, f.Who(), f.To, f.State, about+v.cell(f.Text, 200), decision)
	}
	return b.String()
}

// decided are the decisions about them.
func (v Renderer) decided() (out []string) {
	for i := range v.Run.Upstream {
		f := &v.Run.Upstream[i]
		d := f.Decision
		if d == nil || f.State != upstream.Resolved {
			continue
		}
		s := fmt.Sprintf("**%s**, from the %s: %s<br>Decided by %s: %s", f.ID, f.Who(), v.line(f.Text, 500), code(d.By), v.line(d.String(), 1000))
		if f.Was != "" {
			s += "<br>Before: " + v.line(f.Was, 500)
		}
		if len(d.Weighed) > 0 {
			s += "<br>Weighed: " + v.line(strings.Join(d.Weighed, "; "), 500)
		}
		out = append(out, s)
	}
	return out
}
