package agent

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/align"
	"forge/pipeline/module"
	"forge/pipeline/text"
)

// contradictions are those that a planner was told of.
type contradictions []align.Contradiction

// said is a text with where it stands.
type said struct{ where, text string }

// found is a contradiction with where its two sides stand.
type found struct {
	align.Contradiction
	a, b string
}

func (f found) String() string {
	return fmt.Sprintf("%s says %q, but %s says %q", f.a, text.Clip(text.OneLine(f.A), 200), f.b, text.Clip(text.OneLine(f.B), 200))
}

// align holds a plan against what is fixed, and its modules against each other, by facts
// alone. The planner is told of a contradiction once; one that it keeps becomes a risk, so
// that people read of it.
func (p *phase) align(plan *pipeline.Plan, told *contradictions) []string {
	if run := p.job.Run; !run.Config.Upstream.Enabled && !run.Track.Above() {
		return nil
	}
	var bad, kept []string
	for _, f := range p.contradictions(plan) {
		if slices.ContainsFunc(*told, f.Same) {
			kept = append(kept, fmt.Sprintf("Contradiction that the planner keeps: %s.", f))
			continue
		}
		*told = append(*told, f.Contradiction)
		bad = append(bad, fmt.Sprintf("contradiction (%s): %s; revise the plan so that both hold. If it has to be so, or they are about different things, "+
			"submit it again with an entry in risks that begins with `despite:` and says why: people will read both", f.Kind, f))
	}
	if len(bad) == 0 {
		plan.Risks = append(plan.Risks, kept...)
	}
	return bad
}

// contradictions returns those of a plan. What goes before a text settles it: where the task
// or a maintainer contradicts the instructions in the same matter, the plan may as well.
func (p *phase) contradictions(plan *pipeline.Plan) []found {
	run := p.job.Run
	task := said{"the task", Clean(run.Task.Title) + "\n\n" + Clean(run.Task.Body)}
	var people strings.Builder
	for _, c := range p.job.Comments {
		people.WriteString(Clean(c.Text) + "\n\n")
	}
	for _, n := range run.Notes {
		people.WriteString(Clean(n) + "\n\n")
	}
	var out []found
	whole := said{"the plan", planText(plan)}
	for _, d := range p.job.used() {
		if slices.Contains(Instructions, d.Path) { // those of a directory hold for that alone
			out = append(out, against(said{d.Path, d.Text}, whole, task.text, people.String())...)
		}
	}
	out = append(out, against(task, whole, people.String())...)
	return append(out, betweenModules(plan.Split)...)
}

// against finds what of a text contradicts what is fixed, unless one of the texts that go
// before does so, too.
func against(fixed, by said, before ...string) []found {
	var out []found
	for _, c := range align.Against(fixed.text, by.text) {
		settled := slices.ContainsFunc(before, func(higher string) bool {
			return slices.ContainsFunc(align.Against(fixed.text, higher), func(o align.Contradiction) bool { return o.Kind == c.Kind && o.Key == c.Key })
		})
		if !settled {
			out = append(out, found{c, fixed.where, by.where})
		}
	}
	return out
}

// betweenModules holds modules against each other, and against what they promise or rely on.
func betweenModules(split *module.Split) []found {
	if split == nil {
		return nil
	}
	var out []found
	for i := range split.Modules {
		m := &split.Modules[i]
		now := said{"module " + m.ID, list(append([]string{m.Summary}, m.Steps...))}
		for j := range split.Modules[:i] {
			o := &split.Modules[j]
			for _, c := range align.Between(list(append([]string{o.Summary}, o.Steps...)), now.text) {
				out = append(out, found{c, "module " + o.ID, now.where})
			}
		}
		for _, pr := range split.Promises {
			if pr.From == m.ID || slices.Contains(pr.To, m.ID) {
				out = append(out, against(said{"promise " + pr.ID, pr.Text}, now)...)
			}
		}
	}
	return out
}

// planText is what a plan says will be: not its risks, which say what may go wrong.
func planText(plan *pipeline.Plan) string {
	lines := append([]string{plan.Summary}, plan.Steps...)
	for _, c := range plan.Criteria {
		lines = append(lines, c.Text)
	}
	if plan.Split != nil {
		for _, m := range plan.Split.Modules {
			lines = append(append(lines, m.Summary), m.Steps...)
		}
		for _, pr := range plan.Split.Promises {
			lines = append(lines, pr.Text)
		}
		lines = append(lines, plan.Split.Wiring...)
	}
	return list(lines)
}

// list makes an entry of a list of each text: none goes on in the next.
func list(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString("- " + text.OneLine(Clean(t)) + "\n")
	}
	return b.String()
}
