package agent

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/align"
	"forge/pipeline/module"
	"forge/pipeline/role"
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
	bad, kept := told.tell(p.contradictions(plan), "revise the plan so that both hold. If it has to be so, or they are about different things, "+
		"submit it again with an entry in risks that begins with `despite:` and says why: people will read both")
	if len(bad) > 0 || len(kept) == 0 {
		return bad
	}
	reason := ""
	if !slices.ContainsFunc(plan.Risks, despite) {
		if !p.insisted { // people are to read why; a plan that has no reason is theirs to judge all the same
			p.insisted = true
			return []string{fmt.Sprintf("the plan keeps what contradicts (%s), and no entry in risks says why: add one that begins with `despite:`", strings.Join(kept, "; "))}
		}
		reason = ", without a reason"
	}
	for _, f := range kept {
		plan.Risks = append(plan.Risks, fmt.Sprintf("Contradiction that the planner keeps%s: %s.", reason, f))
	}
	return nil
}

// despite reports whether a risk says why a contradiction is kept.
func despite(risk string) bool {
	why, is := strings.CutPrefix(strings.ToLower(strings.TrimSpace(risk)), "despite:")
	return is && len(strings.Fields(why)) > 1
}

// tell sorts contradictions into those that are told now, with how to go on, and those that
// were told before and are kept.
func (told *contradictions) tell(list []found, how string) (bad, kept []string) {
	for _, f := range list {
		if slices.ContainsFunc(*told, f.Same) {
			kept = append(kept, f.String())
			continue
		}
		*told = append(*told, f.Contradiction)
		bad = append(bad, fmt.Sprintf("contradiction (%s): %s; %s", f.Kind, f, how))
	}
	return bad, kept
}

// contradictions returns those of a plan.
func (p *phase) contradictions(plan *pipeline.Plan) []found {
	whole := said{"the plan", planText(plan)}
	out := p.againstFixed(whole)
	for _, r := range []role.Role{role.Architect, role.UX} {
		if a := role.Of(p.binding(), r); a != nil {
			out = append(out, against(said{headings[r], list(a.Says())}, whole, p.said(), p.people())...)
		}
	}
	return append(out, betweenModules(plan.Split)...)
}

// said is the task, and people what maintainers said of it since.
func (p *phase) said() string {
	return Clean(p.job.Run.Task.Title) + "\n\n" + Clean(p.job.Run.Task.Body)
}

func (p *phase) people() string {
	var people strings.Builder
	for _, c := range p.job.Comments {
		people.WriteString(Clean(c.Text) + "\n\n")
	}
	for _, n := range p.job.Run.Notes {
		people.WriteString(Clean(n) + "\n\n")
	}
	for _, f := range p.job.Run.Upstream {
		if d := f.Decision; d != nil && d.Human {
			people.WriteString(Clean(d.Text) + "\n\n")
		}
	}
	return people.String()
}

// againstFixed holds what somebody writes against the repository's instructions and the
// task. What goes before a text settles it: where the task or a maintainer contradicts the
// instructions in the same matter, what is written may as well.
func (p *phase) againstFixed(whole said) []found {
	var out []found
	for _, d := range p.job.used() {
		if slices.Contains(Instructions, d.Path) { // those of a directory hold for that alone
			out = append(out, against(said{d.Path, d.Text}, whole, p.said(), p.people())...)
		}
	}
	return append(out, against(said{"the task", p.said()}, whole, p.people())...)
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
