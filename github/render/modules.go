package render

import (
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/module"
)

// rows are the modules of the run's plan; none for one that is built in one piece. former is
// whether they are of a plan that was replaced by such a one after they had begun.
func (v Renderer) rows() (rows []module.Row, former bool) {
	r := v.Run
	switch {
	case r.Plan == nil:
		return nil, false
	case r.Plan.Split != nil:
		return r.Plan.Split.Rows(r.Parts), false
	}
	for i := len(r.PastPlans) - 1; i >= 0 && len(r.Parts) > 0; i-- {
		if s := r.PastPlans[i].Split; s != nil {
			return s.Rows(r.Parts), true
		}
	}
	return nil, false
}

// kept says where the work on modules is that are not merged, and that nobody goes on with.
func (v Renderer) kept(rows []module.Row) string {
	var out []string
	for i := range rows {
		p := &rows[i].Part
		if p.Merged == "" && p.Left == "" && p.Head != "" && p.Head != p.Base {
			out = append(out, fmt.Sprintf("%s (%s, [changes](%s))", code(p.Branch), p.State, v.repoURL("compare/"+p.Base+"..."+p.Head)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "Not merged, and kept on their branches: " + strings.Join(out, ", ") + "."
}

// modules is the table of what is built at the same time, questions first.
func (v Renderer) modules() string {
	rows, former := v.rows()
	if len(rows) == 0 {
		return ""
	}
	over := v.Run.State.Ended() || former
	var b strings.Builder
	if former {
		b.WriteString("The plan was made again, in one piece, on what was merged of these modules by then.\n\n")
	}
	if over {
		if kept := v.kept(rows); kept != "" {
			b.WriteString(kept + "\n\n")
		}
	}
	for i := range rows {
		if r := &rows[i]; r.Question != "" && r.Left == "" {
			b.WriteString(quoted("IMPORTANT", fmt.Sprintf("The module %s asks: %s", code(r.Module.ID), v.line(r.Question, 600))) + "\n\n")
		}
	}
	for i := range rows {
		if r := &rows[i]; r.Off != "" {
			fmt.Fprintf(&b, "The module %s was merged, and not on the branch any more when %s: %s.\n\n", code(r.Module.ID), v.line(r.Off, 200), r.Again())
		}
	}
	b.WriteString("| | Module | Wave | Iteration | Tests | Findings | Time | Cost | Branch |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		status := r.Status(v.Run.Parts, over)
		iteration, cost := "", ""
		if r.Iteration > 0 {
			iteration = fmt.Sprintf("%d of %d", r.Iteration, r.Max)
		}
		if used := (pipeline.Usage{MicroUSD: r.MicroUSD, Unpriced: r.Unpriced}); used.MicroUSD+used.Unpriced > 0 {
			cost = used.Cost()
		}
		fmt.Fprintf(&b, "| %s %s | **%s** %s | %d | %s | %s | %s | %s | %s | %s |\n", statusIcon(status), v.cell(status, 60),
			v.cell(r.Module.ID, 40), v.cell(r.Title, 80), r.Wave,
			iteration, v.cell(r.Tests, 40), v.cell(r.Findings, 60), took(r.Millis), cost, v.branchLink(&r.Part))
	}
	return strings.TrimSpace(b.String())
}

// missing are the modules that work lacks which somebody took before it was finished.
func (v Renderer) missing() (out []string) {
	r := v.Run
	if r.State != pipeline.StateAccepted {
		return nil
	}
	rows, former := v.rows()
	for i := range rows {
		row := &rows[i]
		if former || row.Merged != "" || row.Left != "" {
			continue
		}
		s := fmt.Sprintf("**🚫 Missing** the module %s: %s", code(row.Module.ID), row.Status(r.Parts, true))
		if row.Head != "" && row.Head != row.Base {
			s += fmt.Sprintf("; what was made of it is on %s (%s)", code(row.Branch), v.branchLink(&row.Part))
		}
		if len(row.Module.Criteria) > 0 {
			s += "; with it goes " + v.line(strings.Join(row.Module.Criteria, ", "), 200)
		}
		out = append(out, s)
	}
	return out
}

// unjudged says of work that somebody took what nobody has judged of it.
func (v Renderer) unjudged() (out []string) {
	r, it := v.Run, v.Run.Current()
	if r.State != pipeline.StateAccepted {
		return nil
	}
	if it == nil || it.Review == nil || it.Review.Head != r.Head {
		out = append(out, "**👀 Not reviewed** as a whole: "+v.commit(r.Head))
	}
	if it == nil || it.Tests == nil || it.Tests.Head != r.Head {
		out = append(out, "**❔ Not tested** as a whole: "+v.commit(r.Head))
	}
	return out
}

func statusIcon(status string) string {
	switch status {
	case "merged":
		return "✅"
	case "asks you":
		return "✋"
	case "left out", "cancelled", "not begun", "not merged":
		return "🚫"
	case "was left to the integration":
		return "➡️"
	case "stopped":
		return "⏸️"
	}
	if strings.HasPrefix(status, "waits") {
		return "⬜"
	}
	return "🔄"
}

// branchLink is the change of a module, as a link.
func (v Renderer) branchLink(p *module.Part) string {
	if p.Head == "" || p.Head == p.Base {
		return ""
	}
	return fmt.Sprintf("[changes](%s)", v.repoURL("compare/"+p.Base+"..."+p.Head))
}

// laterLinks names the issues of modules that are left for later.
func (v Renderer) laterLinks() string {
	var out []string
	for i := range v.Run.Parts {
		p := &v.Run.Parts[i]
		if a := v.Run.Published.Artefacts[LaterKey(p.ID)]; a.ID != 0 {
			out = append(out, fmt.Sprintf("The module %s is kept for later in #%d.", code(p.ID), a.ID))
		}
	}
	return strings.Join(out, " ")
}

// split says in the plan how it is split, and why not.
func (v Renderer) split() string {
	p := v.Run.Plan
	var b strings.Builder
	if p.Unsplit != "" {
		fmt.Fprintf(&b, "\nBuilt in one piece: %s.\n", v.line(p.Unsplit, 300))
	}
	if p.Split == nil {
		return b.String()
	}
	e := p.Split.Estimate(v.Run.Config.Modules.Parallel)
	whole, split := p.Split.Forecast(v.Run.Config.Modules.Parallel)
	fmt.Fprintf(&b, "\n**Modules** (%d units of work, %d of them after each other; "+
		"about %.0f minutes and $%.2f by the model, in one piece %.0f minutes and $%.2f)\n\n",
		e.Serial, e.Whole, split.Minutes, split.USD, whole.Minutes, whole.USD)
	for _, m := range p.Split.Modules {
		needs := ""
		if len(m.Needs) > 0 {
			needs = ", after " + v.line(strings.Join(m.Needs, ", "), 100)
		}
		fmt.Fprintf(&b, "- **%s** (%s%s): %s\n", v.line(m.ID, 40), m.Size, needs, v.line(m.Summary, 400))
	}
	for _, pr := range p.Split.Promises {
		fmt.Fprintf(&b, "- %s → %s: %s\n", v.line(pr.From, 40), v.line(strings.Join(pr.To, ", "), 100), v.line(pr.Text, 300))
	}
	for _, w := range p.Split.Wiring {
		fmt.Fprintf(&b, "- then: %s\n", v.line(w, 300))
	}
	return b.String()
}
