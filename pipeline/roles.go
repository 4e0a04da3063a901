package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/config"
	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/track"
	"forge/pipeline/upstream"
)

// stages are the roles that write before the plan of a run on the full track, by the phase
// in which they do.
var stages = []struct {
	phase Phase
	roles []role.Role
}{
	{PhaseAnalyse, []role.Role{role.Analyst, role.Product}},
	{PhaseDesign, []role.Role{role.Architect, role.UX}},
}

// plans reports whether a phase goes before the work: its iteration is that of the plan.
func (p Phase) plans() bool { return p == PhasePlan || p == PhaseAnalyse || p == PhaseDesign }

// acts reports whether somebody acts for a role of the run.
func (r *Run) acts(who role.Role) bool {
	by := r.Config.Roles.Of(config.Role(who))
	switch {
	case r.Track.Name() != track.Full || r.Part != nil:
		return false
	case who == role.UX && (by == "" || by == config.ByAuto):
		return r.Track.UI
	}
	return by != config.ByNone
}

// due are the roles that have to write something before the run can be planned, and the
// phase in which they do; those of a later stage wait for those of an earlier one.
func (r *Run) due() (Phase, []role.Role) {
	for _, s := range stages {
		due := slices.DeleteFunc(slices.Clone(s.roles), func(who role.Role) bool {
			return !r.acts(who) || role.Of(r.Artefacts, who) != nil
		})
		if len(due) > 0 {
			return s.phase, due
		}
	}
	return "", nil
}

// Due are the roles that act next.
func (r *Run) Due() []role.Role {
	_, due := r.due()
	return due
}

// wantsRoles is done when every role has written what it answers for.
func (r *Run) wantsRoles(it *Iteration) *Action {
	phase, due := r.due()
	if len(due) == 0 || r.Plan == nil && r.Baseline != nil && r.Baseline.None != "" && !r.Untested { // wantsPlan asks about that
		return nil
	}
	ref := PhaseRef{Phase: phase}
	if it != nil {
		ref.Iteration = it.Number
	}
	return r.begin(ref)
}

// owner is who answers for what a feedback is about: on the full track the role that wrote
// it, else the planner.
func (r *Run) owner(f *upstream.Feedback) string {
	who := role.Product
	switch {
	case f.Kind == upstream.Uncovered:
		who = role.Analyst
	case slices.Contains(f.About, upstream.Plan) && track.Seen(f.Text) && r.acts(role.UX):
		who = role.UX
	case slices.Contains(f.About, upstream.Plan):
		who = role.Architect
	}
	if !r.acts(who) {
		return upstream.Planner
	}
	return string(who)
}

// early is what the design wants decided before anything is planned: a criterion that cannot
// be met, or what contradicts the user interface. nil for nothing.
func (r *Run) early() *upstream.Feedback {
	design := role.Of(r.Artefacts, role.Architect)
	if design == nil || !r.acts(role.Architect) {
		return nil
	}
	source := fmt.Sprintf("%s/%d", PhaseDesign, design.Rev)
	var list []upstream.Feedback
	for _, c := range design.Infeasible {
		ask := upstream.Ask{About: c.About, Text: c.Text}
		for _, o := range c.Options {
			ask.Options = append(ask.Options, upstream.Option(o))
		}
		list = append(list, upstream.Feedback{Kind: upstream.Infeasible, From: upstream.Architect, To: string(role.Product), Ask: ask})
	}
	for _, c := range design.Clashes {
		if c.Stands(r.Artefacts) {
			list = append(list, upstream.Feedback{Kind: upstream.Inconsistency, From: upstream.Alignment, To: upstream.Sides,
				Ask: upstream.Ask{Text: c.String()}, Says: [2]string{c.Design, c.UI}})
		}
	}
	for i := range list {
		f := &list[i]
		f.Source, f.Severity, f.Iteration = source, upstream.High, len(r.Iterations)
		if !slices.ContainsFunc(r.Upstream, func(o upstream.Feedback) bool {
			return o.Source == source && o.Text == f.Text || o.Decision != nil && o.Decision.Human && sameMatter(&o, f) // they have said it
		}) {
			return f
		}
	}
	return nil
}

// clashOf is what an inconsistency is about.
func clashOf(f *upstream.Feedback) role.Clash {
	return role.Clash{Design: f.Says[0], UI: f.Says[1]}
}

// settled is what roles have written once an inconsistency is decided.
func (r *Run) settled(f *upstream.Feedback, d *upstream.Reply) []role.Artefact {
	if d.Choice != upstream.Settle {
		return r.Artefacts
	}
	return role.Yield(r.Artefacts, clashOf(f), role.Role(d.Holds), d.Text, "decided in "+f.ID)
}

// reviseWritten makes what roles wrote say what a decision before the plan says. What was
// designed for other criteria is designed again; where the criteria stay, the architect is to
// find another way.
func (r *Run) reviseWritten(f *upstream.Feedback) {
	d, a := f.Decision, role.Of(r.Artefacts, role.Product)
	if r.Artefacts = r.settled(f, d); f.Kind == upstream.Inconsistency {
		return
	}
	if a != nil && d.Choice != upstream.Fix {
		next := *a
		next.Items = slices.Clone(a.Items)
		at := slices.IndexFunc(next.Items, func(i role.Item) bool { return i.ID == d.Criterion && i.Kind == "" })
		switch {
		case d.Choice == upstream.Add:
			d.Criterion = r.freshCriterion(next.Items)
			item := role.Item{ID: d.Criterion, Text: d.Text}
			if q := role.Of(r.Artefacts, role.Analyst); q != nil {
				more := *q
				item.For = fmt.Sprintf("REQ%d", len(q.Items)+1)
				more.Items = append(slices.Clip(q.Items), role.Item{ID: item.For, Kind: role.Functional, Text: d.Text, Quote: d.Quote})
				r.Artefacts = role.Put(r.Artefacts, more)
			}
			next.Items = append(next.Items, item)
		case at >= 0 && d.Choice == upstream.Limit:
			f.Was = next.Items[at].Text
			next.Items = slices.Delete(next.Items, at, at+1)
		case at >= 0:
			f.Was, next.Items[at].Text = next.Items[at].Text, d.Text
		}
		r.Artefacts = role.Put(r.Artefacts, next)
	}
	r.Artefacts = slices.Clone(r.Artefacts)
	for i := range r.Artefacts {
		who := r.Artefacts[i].Role
		r.Artefacts[i].Stale = r.Artefacts[i].Stale || who == role.Architect || who == role.UX && d.Choice != upstream.Fix
	}
}

// freshCriterion is the next name that no criterion of those before the plan has had.
func (r *Run) freshCriterion(items []role.Item) string {
	for n := 1; ; n++ {
		id := fmt.Sprintf("AC%d", n)
		if !slices.ContainsFunc(items, func(i role.Item) bool { return i.ID == id }) &&
			!slices.ContainsFunc(r.Upstream, func(f upstream.Feedback) bool { return f.Decision != nil && f.Decision.Criterion == id }) {
			return id
		}
	}
}

// keepUp has what roles wrote say what the plan says, once a decision has revised that.
func (r *Run) keepUp(d *upstream.Reply) {
	if a := role.Of(r.Artefacts, role.Product); a != nil && d.Choice != upstream.Fix && d.Choice != upstream.Design {
		next := *a
		next.Items = role.Items(r.Artefacts, role.Product, role.NonGoal)
		for _, c := range slices.Backward(r.Plan.Criteria) {
			next.Items = slices.Insert(next.Items, 0, role.Item{ID: c.ID, Text: c.Text, For: c.For})
		}
		r.Artefacts = role.Put(r.Artefacts, next)
	}
	if a := role.Of(r.Artefacts, role.Analyst); a != nil && d.Choice == upstream.Add && len(r.Plan.Requirements) > 0 {
		q := r.Plan.Requirements[len(r.Plan.Requirements)-1]
		next := *a
		next.Items = append(slices.Clip(a.Items), role.Item{ID: q.ID, Kind: role.Functional, Text: q.Text, Quote: q.Quote})
		r.Artefacts = role.Put(r.Artefacts, next)
	}
	if a := role.Of(r.Artefacts, role.Architect); a != nil && d.Choice == upstream.Design {
		next := *a
		next.Items = append(slices.Clip(a.Items), role.Item{ID: fmt.Sprintf("DEC%d", len(role.Items(r.Artefacts, role.Architect, role.Decision))+1),
			Kind: role.Decision, Text: "the plan has other steps: " + strings.Join(d.Steps, "; "), Why: d.Why, Weighed: d.Weighed})
		r.Artefacts = role.Put(r.Artefacts, next)
	}
}

// wrote takes in what roles have written.
func (r *Run) wrote(d Data) {
	for _, a := range d.Artefacts {
		r.Artefacts = role.Put(r.Artefacts, a)
	}
	if d.Tests != nil {
		r.Baseline = d.Tests
	}
}

// outdate has roles write again: what they wrote was for another task.
func (r *Run) outdate() {
	r.Artefacts = slices.Clone(r.Artefacts)
	for i := range r.Artefacts {
		r.Artefacts[i].Stale = true
	}
	if f := r.Feedback(); f != nil && f.Kind.Early() { // about what nobody has to keep any more
		f.State, f.Decision = upstream.Resolved, &upstream.Reply{Choice: upstream.Fix, Holds: "work", Why: "the task has changed", By: "forge"}
	}
}

// itemsTold is how many items of a role's artefact are told of.
const itemsTold = 20

// explainRoles says what roles wrote before the plan.
func (r *Run) explainRoles(b *strings.Builder) {
	for i := range r.Artefacts {
		a := &r.Artefacts[i]
		old := ""
		if a.Stale {
			old = ", for the task as it was"
		}
		fmt.Fprintf(b, "\nBy the %s, revision %d%s: %s\n\n", a.Role.Person(), a.Rev, old, text.Clip(text.OneLine(a.Body), 600))
		for _, item := range a.Items[:min(len(a.Items), itemsTold)] {
			fmt.Fprintf(b, "- %s\n", text.Clip(item.String(), 400))
		}
		if more := len(a.Items) - itemsTold; more > 0 {
			fmt.Fprintf(b, "- and %d more\n", more)
		}
	}
}
