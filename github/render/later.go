package render

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/module"
)

// LaterKey is what the issue of a module that is left for later is known by.
func LaterKey(id string) string { return "later/" + id }

// Later is the issue of a module that is left for later, with all that somebody needs who
// works on it: what it was to do and to meet, and what was left out because it needs it. child
// is the run that built it, nil when there is none.
func (v Renderer) Later(p *module.Part, child *pipeline.Run) (title, body string) {
	r, name := v.Run, p.ID
	plan := v.planOf(p.ID)
	from := "a run"
	if r.Task.Issue != 0 {
		from = fmt.Sprintf("#%d", r.Task.Issue)
	}
	said := fmt.Sprintf("The module %s of %s was left for later: %s.", code(p.ID), from, v.line(p.Left, 300))
	if p.By != "" {
		said = fmt.Sprintf("The module %s of %s was left for later by %s.", code(p.ID), from, v.line(p.By, 300))
	}
	var modules []string
	if plan != nil {
		ids := []string{p.ID}
		for _, id := range plan.Split.Dependents(p.ID) {
			if q := module.Find(r.Parts, id); q != nil && q.Left != "" && q.Merged == "" {
				ids = append(ids, id)
			}
		}
		if len(ids) > 1 {
			said += " So was what needs it: " + v.line(strings.Join(ids[1:], ", "), 300) + "."
		}
		for _, id := range ids {
			m := moduleOf(plan.Split, id)
			if modules = append(modules, v.toDo(plan, m)); id == p.ID {
				name = m.Title
			}
		}
	}
	report, branch := "", ""
	if child != nil {
		report = Renderer{Run: child, Web: v.Web, Host: v.Host, Slug: v.Slug}.report()
		if child.Published.Head != "" && child.Head != child.Base {
			branch = fmt.Sprintf("What was made of it is on the branch %s ([changes](%s)).", code(child.Branch), v.repoURL("compare/"+child.Base+"..."+child.Head))
		}
	}
	return Shorten("Later: "+v.line(name, 240), 240), v.body(LaterKey(p.ID), said, strings.Join(modules, "\n\n"), branch, v.feature(), report,
		v.writtenDown())
}

// planOf is the newest plan that has a module; nil when none has.
func (v Renderer) planOf(id string) *pipeline.Plan {
	plans := slices.Clone(v.Run.PastPlans)
	if v.Run.Plan != nil {
		plans = append(plans, *v.Run.Plan)
	}
	for i := range slices.Backward(plans) {
		if s := plans[i].Split; s != nil && moduleOf(s, id) != nil {
			return &plans[i]
		}
	}
	return nil
}

// moduleOf is a module of a split, one that was dropped from it included.
func moduleOf(s *module.Split, id string) *module.Module {
	for _, list := range [][]module.Module{s.Modules, s.Dropped} {
		for i := range list {
			if list[i].ID == id {
				return &list[i]
			}
		}
	}
	return nil
}

// toDo is what a module of a plan is to do and to meet. Nothing is ticked: what was met of it
// is not in the work.
func (v Renderer) toDo(plan *pipeline.Plan, m *module.Module) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s (%s)\n\n%s\n", v.line(m.Title, 240), code(m.ID), v.block(m.Summary, 2000))
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n**%s**\n\n- %s\n", title, strings.Join(lines, "\n- "))
		}
	}
	var criteria, steps, paths, promises []string
	for _, c := range slices.Concat(plan.Criteria, plan.LeftOut) {
		if slices.Contains(m.Criteria, c.ID) {
			criteria = append(criteria, fmt.Sprintf("[ ] **%s** %s", v.line(c.ID, 20), v.line(c.Text, 500)))
		}
	}
	for _, s := range m.Steps {
		steps = append(steps, v.line(s, 500))
	}
	for _, path := range m.Paths {
		paths = append(paths, code(path))
	}
	for _, p := range slices.Concat(plan.Split.Promises, plan.Split.Void) {
		if p.From == m.ID || slices.Contains(p.To, m.ID) {
			promises = append(promises, fmt.Sprintf("%s → %s: %s (test %s)", code(p.From), v.line(strings.Join(p.To, ", "), 200), v.line(p.Text, 300), code(p.Probe)))
		}
	}
	list("Acceptance criteria", criteria)
	list("Steps", steps)
	list("Files", paths)
	list("Promises", promises)
	if len(m.Needs) > 0 {
		fmt.Fprintf(&b, "\nIt needs %s.\n", v.line(strings.Join(m.Needs, ", "), 300))
	}
	return strings.TrimSpace(b.String())
}

// feature is the task that a module is a part of.
func (v Renderer) feature() string {
	t := v.Run.Task
	return "## The feature that it is a part of\n\n**" + v.line(t.Title, 240) + "**\n\n" + v.block(t.Body, 3000)
}
