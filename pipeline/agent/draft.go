package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/proof"
	"forge/pipeline/role"
)

// On the full track roles write down what is wanted and how it is to be built, each in a
// conversation of its own, before the planner plans it. What they write is the planner's
// data, except the criteria, which are the plan's own, word for word.

// draftShare is the share of a run's cost that all roles together may take.
const draftShare = 0.2

var itemText = typed("string", "One statement.")

var architectParts = []any{
	"summary", typed("string", "The design, in a few sentences."),
	"decisions", listOf(object("text", typed("string", "What will be done, and where."), "why", typed("string", "Why in this way."),
		"weighed", listOf(typed("string", "Another way, and why not."), "At least one.")), "The decisions, the most important first."),
	"constraints?", listOf(itemText, "What holds for every step."),
}

// draftForms are what each role submits.
var draftForms = map[role.Role]map[string]any{
	role.Analyst: object(
		"summary", typed("string", "What is wanted, for whom and why, in a few sentences."),
		"requirements", listOf(object("text", typed("string", "One thing that is asked for."),
			"quote", typed("string", "The words that it comes from, copied as they stand in the task, a comment or a note."),
			"kind?", oneOf("Functional, or quality for how well.", role.Functional, role.Quality)), "All that is asked for."),
		"open?", listOf(typed("string", "What only a person can say."), "What contradicts itself, or is open between ways that differ for users."),
	),
	role.Product: object(
		"summary", typed("string", "What users can do once it is done, in a few sentences."),
		"criteria", listOf(object("text", typed("string", "One statement that is true or false."),
			"for?", typed("string", "The id of the requirement that it is for.")), "The acceptance criteria."),
		"non_goals?", listOf(itemText, "What is left out, because nobody asked for it."),
	),
	role.Architect: object(architectParts...),
	role.UX: object(
		"summary", typed("string", "What people see, in a few sentences."),
		"items", listOf(object("kind", oneOf("What it is about.", role.Screen, role.State, role.Breakpoint, role.Accessibility), "text", itemText), "At least one."),
	),
}

// drafts say what each role is to write.
var drafts = map[role.Role]string{
	role.Analyst:   "Write down what the following task asks for.",
	role.Product:   "Write the acceptance criteria of the following task.",
	role.Architect: "Design how the following task is to be built.",
	role.UX:        "Design what people will see of the following task.",
}

// headings name the artefacts for those who read them.
var headings = map[role.Role]string{
	role.Analyst:   "Requirements, by the analyst",
	role.Product:   "Acceptance criteria and non-goals, by the product manager",
	role.Architect: "Design, by the architect",
	role.UX:        "User interface, by its designer",
}

// Draft lets a role write its artefact, on top of those that the job's run has.
func (a *Agent) Draft(ctx context.Context, j Job, r role.Role) (role.Artefact, pipeline.Usage, error) {
	p := a.drafting(j, string(r))
	defer p.release()
	w := p.prompt().say("%s", drafts[r]).task().instructions().files().mark().notes().comments().written().lastFault()
	s := w.spec(string(r), config.Role(r), system(string(r)))
	if s.tools, s.result = p.reading(), draftForms[r]; r == role.Architect && len(p.criteria()) > 0 {
		s.result = infeasibleForm
	}
	out, err := p.draft(ctx, r, s)
	return out, p.usage, err
}

func (a *Agent) drafting(j Job, series string) *phase {
	p := a.phase(j, j.Ref.Phase)
	p.series, p.share = series+"/", draftShare
	p.budget.phase = j.Run.Spent[pipeline.PhaseAnalyse]
	p.budget.phase.Add(j.Run.Spent[pipeline.PhaseDesign])
	return p
}

func (p *phase) draft(ctx context.Context, r role.Role, s spec) (role.Artefact, error) {
	var out role.Artefact
	s.accept = func(args json.RawMessage) []string {
		var bad []string
		if out, bad = readDraft(args, r); len(bad) > 0 {
			return bad
		}
		if r == role.Architect {
			if out.Infeasible, bad = p.infeasible(args); len(bad) > 0 {
				return bad
			}
		}
		all := strings.Join(p.asked(), "\n")
		return out.Check(p.job.Run.Artefacts, func(words string) bool { return proof.Quoted(all, words) })
	}
	return out, p.converse(ctx, s)
}

// readDraft reads what a role submits.
func readDraft(args json.RawMessage, r role.Role) (role.Artefact, []string) {
	var in struct {
		Summary                                  string
		Requirements, Criteria, Decisions, Items []role.Item
		Open, Constraints                        []string
		NonGoals                                 []string `json:"non_goals"`
	}
	out := role.Artefact{Role: r}
	if err := decode(args, &in); err != nil {
		return out, []string{err.Error()}
	}
	out.Body = strings.TrimSpace(in.Summary)
	add := func(kind string, texts []string) {
		for _, t := range trimmed(texts) {
			out.Items = append(out.Items, role.Item{Kind: kind, Text: t})
		}
	}
	one := func(i role.Item) role.Item { return role.Item{Text: strings.TrimSpace(i.Text)} }
	switch r {
	case role.Analyst:
		for _, i := range in.Requirements {
			n := one(i)
			if n.Kind, n.Quote = role.Functional, strings.TrimSpace(i.Quote); i.Kind == role.Quality {
				n.Kind = role.Quality
			}
			out.Items = append(out.Items, n)
		}
		for _, t := range trimmed(in.Open) {
			out.Body += "\nOpen: " + t
		}
	case role.Product:
		for _, i := range in.Criteria {
			n := one(i)
			n.For = strings.TrimSpace(i.For)
			out.Items = append(out.Items, n)
		}
		add(role.NonGoal, in.NonGoals)
	case role.Architect:
		for _, i := range in.Decisions {
			n := one(i)
			n.Kind, n.Why, n.Weighed = role.Decision, strings.TrimSpace(i.Why), trimmed(i.Weighed)
			out.Items = append(out.Items, n)
		}
		add(role.Constraint, in.Constraints)
	case role.UX:
		for _, i := range in.Items {
			n := one(i)
			if n.Kind = i.Kind; !slices.Contains([]string{role.State, role.Breakpoint, role.Accessibility}, i.Kind) {
				n.Kind = role.Screen
			}
			out.Items = append(out.Items, n)
		}
	}
	return out, nil
}

// written appends what roles have written, and what was decided about it before the plan.
func (w *prompt) written() *prompt {
	for _, r := range role.All() {
		if a := role.Of(w.p.job.Run.Artefacts, r); a != nil {
			w.data(headings[r], Clean(a.Text()))
		}
	}
	if w.p.job.Run.Plan == nil {
		w.decisions()
	}
	return w
}

// binding are the artefacts that the plan at hand has to take over: a plan for work that was
// sent back may find that they do not hold.
func (p *phase) binding() []role.Artefact {
	if run := p.job.Run; len(run.Iterations) == 0 || run.Edited {
		return run.Artefacts
	}
	return nil
}

// given are the criteria that a plan takes over as they are.
func (p *phase) given() (out []pipeline.Criterion) {
	for _, i := range role.Items(p.binding(), role.Product, "") {
		out = append(out, pipeline.Criterion{ID: i.ID, Text: i.Text, For: i.For})
	}
	return out
}

// wanted are the requirements that a plan takes over as they are.
func (p *phase) wanted() (out []proof.Requirement) {
	for _, i := range role.Items(p.binding(), role.Analyst) {
		out = append(out, proof.Requirement{ID: i.ID, Text: i.Text, Quote: i.Quote})
	}
	return out
}
