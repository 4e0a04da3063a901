package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/command"
	"forge/pipeline/module"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// givenUp notes what becomes of a module whose run a human gives up.
func (r *Run) givenUp(a *Answer) {
	if r.Part == nil || a == nil {
		return
	}
	if a.Choice == module.Later || a.Choice == module.Without {
		r.How = a.Choice
	}
	if a.Via != viaParent {
		r.GivenUpBy = a.By.Login
	}
}

// leaving lists the ways in which a module that asks can be left out, besides giving it up.
func (r *Run) leaving() []Choice {
	if r.Part == nil {
		return nil
	}
	return leavings
}

var leavings = []Choice{
	{Name: module.Later, Label: "leave it out, and what needs it; an issue is opened for it"},
	{Name: module.Without, Label: "leave it out, and revise the plan without it; what needs it is built without it where it can be"},
}

// leavable is the module that a question of the run itself is about, and that can be left
// out; nil when there is none.
func (r *Run) leavable(g *Guard) *module.Part {
	if r.split() == nil || g == nil || len(g.About) != 1 || g.Name != GuardConflict && g.Name != GuardRounds {
		return nil
	}
	if p := r.part(g.About[0]); p != nil && p.Left == "" && p.Merged == "" {
		return p
	}
	return nil
}

// Unbegun says of a module of the plan why nothing works on it, as the end of a sentence;
// "" of one that a run builds or that is merged, and where the plan has none of this name.
func (r *Run) Unbegun(id string) string {
	s := r.split()
	if s == nil || s.Module(id) == nil {
		return ""
	}
	p := r.part(id)
	switch {
	case p != nil && p.Left != "":
		return "is left out: " + p.Left
	case p != nil && p.Passed() && !p.Done():
		return p.Settled()
	case p != nil && p.Run != 0:
		return ""
	}
	var needs []string
	for _, n := range s.Module(id).Needs {
		if q := r.part(n); q == nil || q.Merged == "" {
			needs = append(needs, n)
		}
	}
	if len(needs) > 0 {
		return "has not begun: it needs " + strings.Join(needs, ", ")
	}
	return "has not begun"
}

// toUnbegun is Answer for a command to a module that no run builds yet, or that waits to be
// merged: it can be left out.
func (r *Run) toUnbegun(cmd command.Line, a *Answer) ([]Event, string) {
	why, p, g := r.Unbegun(cmd.Part), r.part(cmd.Part), r.Gate()
	switch {
	case r.State.Ended():
		return nil, fmt.Sprintf("Run %d has ended (%s: %s), so `%s` changes nothing.", r.ID, r.State, r.Ended, cmd.Name)
	case why == "":
		return nil, fmt.Sprintf("Nothing was done: by now there is a run for the module %s. Give the command again to tell it.", cmd.Part)
	case g != nil && g.Guard != nil && g.Guard.Name == GuardSplit:
		return nil, "Nothing was done: whether there are modules at all waits for your word. The choices are: " + g.words(r.Slug) + "."
	case p != nil && p.Left != "" || !slices.Contains([]string{"cancel", module.Later, module.Without}, cmd.Name):
		words := fmt.Sprintf("The module %s %s. So `%s` changes nothing.", cmd.Part, why, cmd.Name)
		if p == nil || p.Left == "" {
			words += fmt.Sprintf(" It can be left out: %s, %s or %s.", r.typed(cmd.Part+" cancel"), r.typed(cmd.Part+" later"), r.typed(cmd.Part+" without"))
		}
		return nil, words
	}
	left := answering(EventModuleLeft, a)
	left.Data.Part = &module.Part{ID: cmd.Part, Left: "left out by " + a.By.Login, By: a.By.Login}
	if cmd.Name != "cancel" {
		left.Data.Part.How = cmd.Name
	}
	words := fmt.Sprintf("The module %s is left out before it has begun", cmd.Part)
	if p != nil && p.Merged != "" {
		words = fmt.Sprintf("The module %s is left out; what of it is merged stays", cmd.Part)
	} else if p != nil && p.Run != 0 {
		words = fmt.Sprintf("The module %s is left out before it is merged", cmd.Part)
	}
	if also := r.split().Dependents(cmd.Part); len(also) > 0 {
		words += ", and so is what needs it: " + strings.Join(also, ", ")
	}
	events := []Event{left}
	if r.only(g, cmd.Part) { // nothing is left to answer there
		a.Gate = g.ID
		events = []Event{answering(EventGateAnswered, a), left}
	}
	return events, a.reply(words + ". The others go on.")
}

// only reports whether a question is about one module alone: that its merge did not get on,
// or that it waits for a word to begin or to be merged.
func (r *Run) only(g *Gate, id string) bool {
	if g == nil || g.Guard == nil {
		return false
	}
	merge := r.Key(PhaseRef{Phase: PhaseMerge, Iteration: len(r.Iterations), Part: id})
	return g.Guard.Name == GuardManual && (g.Guard.Step == merge || g.Guard.Step == r.spawnKey(id)) || r.leavable(g.Guard) != nil && g.Guard.About[0] == id
}

// partsMissing reports whether modules are neither merged as they are nor left out.
func (r *Run) partsMissing() bool {
	s := r.split()
	return s != nil && slices.ContainsFunc(s.Modules, func(m module.Module) bool {
		p := r.part(m.ID)
		return p == nil || !p.Done()
	})
}

// leave takes a module that was given up out of the feature.
func (r *Run) leave(p *module.Part, why string) *Action {
	left := &module.Part{ID: p.ID, Left: text.Clip(text.OneLine(why), 200), How: p.How, By: p.By}
	if left.How == "" && r.Config.Modules.OnFailure == module.Without {
		left.How = module.Without
	}
	return r.record(Event{Type: EventModuleLeft, Data: Data{Part: left}})
}

// leaveOut takes a module, and what needs it, out of the feature. What is merged stays.
// Where the plan is to be revised without it, only its own criteria go.
func (r *Run) leaveOut(in *module.Part) {
	ids := []string{in.ID}
	if s := r.split(); s != nil {
		ids = append(ids, s.Dependents(in.ID)...)
	}
	for i, m := range ids {
		p := r.part(m)
		if p == nil {
			r.Parts = append(r.Parts, module.Part{ID: m})
			p = &r.Parts[len(r.Parts)-1]
		}
		if p.Merged != "" && i > 0 || p.Left != "" {
			continue
		}
		p.Left, p.How, p.By = in.Left, in.How, cmp.Or(in.By, p.By)
		if i > 0 {
			p.Left, p.How = "it needs "+in.ID, map[string]string{module.Without: module.Wired}[in.How] // an issue is the other's
		}
		if a := r.Active; a != nil && a.Phase == PhaseMerge && a.Mode == "" && a.Part == m { // nobody wants that merge any more
			r.Active, r.Await, r.Last = nil, nil, nil
		}
		if p.Rework = nil; p.Merged != "" {
			continue
		}
		if i == 0 || in.How != module.Without {
			r.dropCriteria(m)
		}
		if in.How == module.Without && r.split() != nil {
			r.Without = append(r.Without, m)
			if r.Active != nil && r.Active.Phase == PhasePlan { // it works on what is out of date
				r.Active, r.Await, r.Last = nil, nil, nil
			}
		}
	}
}

// dropCriteria takes what a module that is left out was to meet out of the plan.
func (r *Run) dropCriteria(id string) {
	s := r.split()
	if s == nil || s.Module(id) == nil {
		return
	}
	own := s.Module(id).Criteria
	plan := *r.Plan
	plan.Criteria = nil
	for _, c := range r.Plan.Criteria {
		if slices.Contains(own, c.ID) {
			plan.LeftOut = append(slices.Clip(plan.LeftOut), c)
		} else {
			plan.Criteria = append(plan.Criteria, c)
		}
	}
	r.Plan = &plan
}

// revised is a plan that was made without modules that are left out: the others stay as
// they are, with what they are to meet, and its steps are the integration's.
func (r *Run) revised(in *Plan) *Plan {
	s, out := r.split(), *in
	if s == nil {
		return in
	}
	if in.Question == "" {
		r.unwire(in)
	}
	next := s.Without(r.Without, func(id string) bool {
		p := r.part(id)
		return p != nil && p.How != module.Wired && (slices.Contains(r.Without, id) || s.Module(id) == nil)
	})
	out.LeftOut, out.Criteria = r.Plan.LeftOut, nil
	for _, c := range r.Plan.Criteria {
		kept := slices.ContainsFunc(in.Criteria, func(n Criterion) bool { return n.ID == c.ID })
		switch {
		case next.Has(c.ID):
			out.Criteria = append(out.Criteria, c)
		case !kept && in.Question == "": // the new plan does not say what became of it
			out.LeftOut = append(slices.Clip(out.LeftOut), c)
		}
	}
	gone := func(id string) bool {
		same := func(c Criterion) bool { return c.ID == id }
		return next.Has(id) || slices.ContainsFunc(out.LeftOut, same)
	}
	next.Integration = nil
	for _, c := range in.Criteria {
		if !gone(c.ID) {
			out.Criteria, next.Integration = append(out.Criteria, c), append(next.Integration, c.ID)
		}
	}
	next.Wiring = in.Steps
	if out.Split = next; in.Question != "" { // it is the former one, until the question is answered
		former := *r.Plan
		former.Question, former.Options = in.Question, in.Options
		return &former
	}
	if len(next.Modules) == 0 {
		out.Split, out.Unsplit = nil, "none of its modules is left"
	}
	return &out
}

// unwire takes from the integration a module that needed what is left out, and of whose
// criteria the revised plan keeps none: nobody builds it.
func (r *Run) unwire(in *Plan) {
	s := r.split()
	for _, m := range slices.Concat(s.Modules, s.Dropped) {
		p := r.part(m.ID)
		kept := func(c Criterion) bool { return slices.Contains(m.Criteria, c.ID) }
		if p != nil && p.How == module.Wired && p.Merged == "" && len(m.Criteria) > 0 && !slices.ContainsFunc(in.Criteria, kept) {
			p.How = ""
		}
	}
}

// spare reports whether nobody needs the branch of a module any more: the run has
// ended, and has it merged or did without. What an issue keeps for later stays, and
// what somebody else has pushed to. So does what a run has merged that was cancelled with
// its pull request: whoever closes that may delete the branch that has it.
func (r *Run) spare(p *module.Part) bool {
	if !r.State.Ended() || !partState(p).Ended() || p.Foreign || p.Merged != "" && r.State == StateCancelled && r.Published.Pull != nil {
		return false
	}
	return p.Merged != "" && (p.Merged == p.Head || p.Stays() && p.How != module.Later) || p.Left != "" && p.How != module.Later
}

// staying are tests of the promises of a module that is left out, which fail without it
// and count for nothing.
func (r *Run) staying(id string) []string {
	it := r.Current()
	if it == nil || it.Tests == nil {
		return nil
	}
	var out []string
	for _, test := range it.Tests.Pending {
		shows := func(p module.Promise) bool {
			return (p.From == id || slices.Contains(p.To, id)) && testname.Same(test, p.Probe)
		}
		if slices.ContainsFunc(r.plans(), func(p Plan) bool { return p.Split != nil && slices.ContainsFunc(p.Split.Promises, shows) }) {
			out = append(out, test)
		}
	}
	return out
}

// leftOut are the modules without which the run is verified: of what is left.
func (r *Run) leftOut() (out []Waiver) {
	for i := range r.Parts {
		p := &r.Parts[i]
		if State(p.State) == StateAccepted && p.Left == "" {
			what := fmt.Sprintf("the module %s was accepted with known issues", p.ID)
			if n := len(p.Known); n > 0 {
				what += fmt.Sprintf("; %s there: %s", text.Plural(n, "test fails", "tests fail"), text.Clip(strings.Join(p.Known, ", "), 200))
			}
			out = append(out, Waiver{Guard: GuardAccepted, What: what, By: Actor{Login: p.By}})
		}
		if p.Simpler != "" && p.Left == "" {
			out = append(out, Waiver{Guard: GuardParts, What: fmt.Sprintf("the module %s was made simpler: %s", p.ID, p.Simpler), By: Actor{Login: p.SimplerBy}})
		}
		if p.Left != "" && p.Merged == "" && p.How != module.Wired {
			why := p.Left
			switch p.How {
			case module.Later:
				why = "for later"
			case module.Without:
				why = "the plan does without it"
			}
			what := fmt.Sprintf("the module %s is left out (%s)", p.ID, why)
			if tests := r.staying(p.ID); len(tests) > 0 {
				what += "; of its promises, what stays in the repository and fails: " + text.Clip(strings.Join(tests, ", "), 200)
			}
			out = append(out, Waiver{Guard: GuardParts, What: what, By: Actor{Login: p.By}})
		}
	}
	return out
}
