package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/track"
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

// Due are the roles that have to write something before the run can be planned, and the
// phase in which they do; those of a later stage wait for those of an earlier one.
func (r *Run) Due() (Phase, []role.Role) {
	if r.Track.Name() != track.Full || r.Part != nil {
		return "", nil
	}
	for _, s := range stages {
		due := slices.DeleteFunc(slices.Clone(s.roles), func(who role.Role) bool {
			return who == role.UX && !r.Track.UI || role.Of(r.Artefacts, who) != nil
		})
		if len(due) > 0 {
			return s.phase, due
		}
	}
	return "", nil
}

// wantsRoles is done when every role has written what it answers for.
func (r *Run) wantsRoles(it *Iteration) *Action {
	phase, due := r.Due()
	if len(due) == 0 || r.Plan == nil && r.Baseline != nil && r.Baseline.None != "" && !r.Untested { // wantsPlan asks about that
		return nil
	}
	ref := PhaseRef{Phase: phase}
	if it != nil {
		ref.Iteration = it.Number
	}
	return r.begin(ref)
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
}

// itemsTold is how many items of a role's artefact are told of.
const itemsTold = 20

// explainRoles says what roles wrote before the plan.
func (r *Run) explainRoles(b *strings.Builder) {
	for i := range r.Artefacts {
		a := &r.Artefacts[i]
		by, old := "the "+a.Role.Person(), ""
		if a.By != "" {
			by = fmt.Sprintf("%s, for the %s", a.By, a.Role.Person())
		}
		if a.Stale {
			old = ", for the task as it was"
		}
		fmt.Fprintf(b, "\nBy %s, revision %d%s: %s\n\n", by, a.Rev, old, text.Clip(text.OneLine(a.Body), 600))
		for _, item := range a.Items[:min(len(a.Items), itemsTold)] {
			fmt.Fprintf(b, "- %s\n", text.Clip(item.String(), 400))
		}
		if more := len(a.Items) - itemsTold; more > 0 {
			fmt.Fprintf(b, "- and %d more\n", more)
		}
		for _, k := range a.Kept[:min(len(a.Kept), itemsTold)] {
			fmt.Fprintf(b, "- It keeps a contradiction: %s\n", text.Clip(k, 400))
		}
	}
}
