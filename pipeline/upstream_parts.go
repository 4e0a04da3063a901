package pipeline

import (
	"slices"
	"strings"

	"forge/pipeline/module"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// What agents of a module say cannot be is for the roles of the run that planned it: the
// module's run waits and tells its parent, which decides as it does for itself, and tells the
// module what was decided.

// AsksParent is what a module's run waits for its parent to decide, nil for nothing.
func (r *Run) AsksParent() *upstream.Feedback {
	if f := r.Feedback(); f != nil && r.Part != nil && !r.State.Ended() {
		asks := *f
		asks.Part, asks.Source = r.Part.Module.ID, r.Part.Module.ID+"/"+f.ID
		return &asks
	}
	return nil
}

// heard takes in what a module waits for a decision on, nil for nothing.
func (r *Run) heard(p *module.Part, asks *upstream.Feedback) {
	r.Asked = slices.DeleteFunc(slices.Clone(r.Asked), func(f upstream.Feedback) bool { return f.Part == p.ID })
	if asks != nil {
		r.Asked = append(r.Asked, *asks)
	}
	r.unasked(p)
}

// unasked lets go of what nobody waits for any more: the module is left out, or has ended.
// What a human is asked about stays theirs to answer.
func (r *Run) unasked(p *module.Part) {
	if f := r.Feedback(); f != nil && f.Part == p.ID && f.State != upstream.Escalating && (p.Left != "" || partState(p).Ended()) {
		f.State, f.Told = upstream.Resolved, true
		f.Decision = &upstream.Reply{Choice: upstream.Fix, Why: "the module does not wait for it any more", By: "forge"}
		if a := r.Active; a != nil && a.Phase == PhaseResolve {
			r.Active, r.Await, r.Last = nil, nil, nil
		}
	}
}

// ofParts is the next matter of a module that the run has to decide, nil for none.
func (r *Run) ofParts() *upstream.Feedback {
	for _, f := range r.Asked {
		p := r.part(f.Part)
		known := slices.ContainsFunc(r.Upstream, func(o upstream.Feedback) bool { return o.Part == f.Part && o.Source == f.Source })
		if known || p == nil || p.Left != "" || partState(p).Ended() || r.split() == nil {
			continue
		}
		return &upstream.Feedback{Kind: f.Kind, From: f.From, To: r.owner(&f), Ask: f.Ask, Part: f.Part, Source: f.Source, Head: f.Head, Iteration: len(r.Iterations)}
	}
	return nil
}

// stepsFor are the steps of a plan that a feedback is about: a module's, where its agents
// say it.
func (r *Run) stepsFor(f *upstream.Feedback, p *Plan) []string {
	if f == nil || f.Part == "" {
		return p.Steps
	}
	if m := p.Split.Module(f.Part); m != nil {
		return m.Steps
	}
	return nil
}

// revisedFor is a split in which a decision stands for the module whose agents asked for it.
func revisedFor(f *upstream.Feedback, s *module.Split) *module.Split {
	if s == nil {
		return nil
	}
	out, d := *s, f.Decision
	out.Modules, out.Integration = slices.Clone(s.Modules), slices.Clone(s.Integration)
	for i := range out.Modules {
		m := &out.Modules[i]
		own := m.ID == f.Part
		switch {
		case own && d.Choice == upstream.Design:
			m.Steps = d.Steps
		case own && d.Choice == upstream.Add:
			m.Criteria = append(slices.Clip(m.Criteria), d.Criterion)
		case d.Choice == upstream.Limit:
			m.Criteria = slices.DeleteFunc(slices.Clone(m.Criteria), func(id string) bool { return id == d.Criterion })
		}
	}
	if d.Choice == upstream.Limit {
		out.Integration = slices.DeleteFunc(out.Integration, func(id string) bool { return id == d.Criterion })
	}
	return &out
}

// tellDecided tells a module what was decided of what its agents said; nil where all know.
func (r *Run) tellDecided() *Action {
	for i := range r.Upstream {
		f := &r.Upstream[i]
		p := r.part(f.Part)
		if f.Part == "" || f.Told || f.State != upstream.Resolved || p == nil || p.Run == 0 || p.Left != "" || partState(p).Ended() {
			continue
		}
		said := upstream.Feedback{ID: strings.TrimPrefix(f.Source, f.Part+"/"), Taken: f.Taken, Decision: f.Decision}
		return r.told(p, f.ID, Event{Type: EventUpstreamResolved, Data: Data{Upstream: &said}})
	}
	return nil
}

// toldDecided takes in that a module was told a decision; false where it was told another thing.
func (r *Run) toldDecided(id string) bool {
	i := slices.IndexFunc(r.Upstream, func(f upstream.Feedback) bool { return f.ID == id && f.Part != "" })
	if i >= 0 {
		r.Upstream[i].Told = true
	}
	return i >= 0
}

// tellAsks says in a line what a module's run waits for its parent to decide.
func (r *Run) tellAsks(p *module.Part) {
	if f := r.AsksParent(); f != nil {
		p.Asks = text.Clip(text.OneLine(f.Text), 200)
	}
}
