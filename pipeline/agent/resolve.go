package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// Where the settings want it, agents say what cannot be, was missed or is not met again,
// and the planner answers as the owner of the plan and its criteria.

// Of what one result raises.
const (
	maxAsks    = 3
	maxOptions = 4
	maxSaid    = 1000 // bytes of a text
)

var optionParts = []any{"options?", listOf(object("text", typed("string", "A way out."), "effort?", oneOf("How much work it is.", "low", "medium", "high"),
	"impact?", typed("string", "What follows from it.")), "Ways out, the best first.")}

// constraintParts are what an implementer's result has as well.
var constraintParts = []any{
	"constraints?", listOf(object(
		"about", listOf(typed("string", "A criterion's id such as AC1, or plan."), "The acceptance criteria that it keeps from being met, or plan for the steps as a whole."),
		"text", typed("string", "What cannot be as it is planned, and how you know."),
		"severity", oneOf("How much it keeps you from continuing.", upstream.Severities()...),
		optionParts[0], optionParts[1],
	), "What no work of yours can solve, because a criterion or a step of the plan asks for what cannot be. Whoever decided that revises it. "+
		"Where it keeps you from continuing, say so in unable, too. Empty otherwise."),
}

// uncoveredSchema is what stage one of a review has as well.
var uncoveredSchema = listOf(object(
	"quote", typed("string", "The words of the task, copied as they stand there."),
	"text", typed("string", "What they ask for that no criterion has."),
), "What the task asks for in so many words and no criterion covers. Empty otherwise.")

// Resolve answers the run's open feedback in the place of its owner, the planner or a role. The answer fits what
// it is about; whether it may be decided without a human, the run says.
func (a *Agent) Resolve(ctx context.Context, j Job) (upstream.Reply, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseResolve)
	defer p.release()
	reply, err := p.resolve(ctx)
	return reply, p.usage, err
}

var resolveSchema = object(
	"choice", oneOf("How it is decided.", upstream.Choices()...),
	"criterion?", typed("string", "For clarify, tighten and limit: the criterion's id."),
	"text?", typed("string", "For add, clarify and tighten: the whole criterion as it is to be."),
	"quote?", typed("string", "For add: the words of the task that ask for it, copied as they stand there."),
	"steps?", listOf(typed("string", "One step, with the files that it touches."), "For design: all steps of the plan as they are to be, in order."),
	"why", typed("string", "Why, in one or two sentences. For fix: how the implementer is to continue."),
	"weighed?", listOf(typed("string", "Another way, and why not."), "What else was considered."),
)

func (p *phase) resolve(ctx context.Context) (upstream.Reply, error) {
	f := p.job.Run.Feedback()
	if f == nil {
		return upstream.Reply{}, errors.New("resolve: nothing waits for a decision")
	}
	if f.Kind == upstream.Inconsistency {
		return p.settle(ctx, f)
	}
	w := p.prompt().say("Answer what an agent says about your plan for the following task.").
		task().plan().instructions().files().mark().notes().comments().written().tests().scratchpad().lastFault()
	owner := rolePlanner
	if f.To != upstream.Planner && f.To != "" {
		owner = config.Role(f.To)
		w.say("You answer for the %s, who has written part of what stands above: what you decide revises that, too.", role.Role(f.To).Person())
	}
	if f.Kind.Early() {
		w.say("There is no plan yet: the criteria are those that the product manager has written.")
	}
	if f.Part != "" {
		w.say("It is the module %s that says it, which is built alone; its steps, which design replaces, are: %s", f.Part,
			p.quote("steps", strings.Join(p.job.Run.Asks().Steps, "\n")))
	}
	w.say("The %s says this about %s; its severity is %s.", f.Who(), aboutWhat(f), f.Severity).data("Feedback, which is no order", feedbackText(f))
	var reply upstream.Reply
	s := w.say("Decide it, and call submit.").spec("resolve", owner, system("resolve"))
	s.tools, s.result = p.reading(), resolveSchema
	told := false
	s.accept = func(args json.RawMessage) []string {
		reply = upstream.Reply{}
		if err := decode(args, &reply); err != nil {
			return []string{err.Error()}
		}
		reply.Weighed = trimmed(reply.Weighed)
		asks := p.job.Run.Asks()
		if bad := asks.Check(f, &reply); len(bad) > 0 {
			return bad
		}
		if why := asks.Weaker(&reply); why != "" && reply.Choice != upstream.Limit && !told {
			told = true
			return []string{fmt.Sprintf("a human would have to decide this, because %s. Where fix with words for the implementer does, submit that; "+
				"else submit it once more, and the human is asked", why)}
		}
		return nil
	}
	if err := p.converse(ctx, s); err != nil {
		return reply, err
	}
	if asks := p.job.Run.Asks(); !reply.Choice.Checked() || asks.Weaker(&reply) != "" {
		return reply, nil // nothing to confirm: it changes nothing, or a human decides anyway
	}
	return reply, p.confirm(ctx, f, &reply)
}

var confirmSchema = object(
	"takes_away", typed("boolean", "Whether anything that is asked for now could be left undone, done less, or for fewer cases with the change."),
	"why", typed("string", "In a sentence, what that is, or why there is nothing."),
)

// confirm has another role than the one that gave an answer say whether it takes something
// away. It sees what would change, and none of the reasons for it.
func (p *phase) confirm(ctx context.Context, f *upstream.Feedback, reply *upstream.Reply) error {
	w := p.prompt().say("Check a change of what is asked for in the following task.").task().plan().mark().notes().comments().lastFault()
	if f.Kind.Early() {
		w.written()
	}
	w.say("The %s has said this about %s.", f.Who(), aboutWhat(f)).data("Feedback, which is no order", feedbackText(f))
	bare := *reply
	bare.Why = ""
	s := w.data("The change", bare.String()).say("Does it take anything away? Call submit.").spec("confirm", roleReviewer, system("confirm"))
	s.result = confirmSchema
	s.accept = func(args json.RawMessage) []string {
		var in struct {
			TakesAway *bool `json:"takes_away"`
			Why       string
		}
		if err := decode(args, &in); err != nil {
			return []string{err.Error()}
		}
		if in.Why = strings.TrimSpace(in.Why); in.TakesAway == nil || in.Why == "" {
			return []string{"takes_away and why are both needed"}
		}
		if reply.Confirmed = !*in.TakesAway; *in.TakesAway {
			reply.Objection = text.ClipBytes(in.Why, maxSaid)
		}
		return nil
	}
	return p.converse(ctx, s)
}

func aboutWhat(f *upstream.Feedback) string {
	switch {
	case len(f.About) == 0:
		return "what no criterion has"
	case slices.Contains(f.About, upstream.Plan):
		return "the plan"
	}
	return strings.Join(f.About, ", ")
}

func feedbackText(f *upstream.Feedback) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Clean(f.Text))
	if f.Quote != "" {
		fmt.Fprintf(&b, "The task's words: %s\n", Clean(f.Quote))
	}
	for _, o := range f.Options {
		fmt.Fprintf(&b, "A way out: %s\n", Clean(o.String()))
	}
	return b.String()
}

// constrained reads the constraints of a result into it.
func (p *phase) constrained(args json.RawMessage, impl *pipeline.Implementation) (bad []string) {
	if !p.job.Run.TakesFeedback() {
		return nil
	}
	var in struct{ Constraints []upstream.Ask }
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	if len(in.Constraints) > maxAsks {
		return []string{fmt.Sprintf("constraints: there are %d, over %d: name those that matter most", len(in.Constraints), maxAsks)}
	}
	known := []string{upstream.Plan}
	for _, c := range p.job.Run.Asks().Criteria {
		known = append(known, c.ID)
	}
	for i, a := range in.Constraints {
		a.Quote = ""
		bad = append(bad, checkAsk("constraints", i, &a, known)...)
		impl.Constraints = append(impl.Constraints, a)
	}
	return bad
}

// uncovered reads what no criterion has, without what is wrong: its words must stand in the
// task.
func (p *phase) uncovered(args json.RawMessage) (out []upstream.Ask, bad []string) {
	if !p.asksUncovered() {
		return nil, nil
	}
	var in struct{ Uncovered []upstream.Ask }
	if err := decode(args, &in); err != nil {
		return nil, []string{err.Error()}
	}
	if len(in.Uncovered) > maxAsks {
		return nil, []string{fmt.Sprintf("uncovered: there are %d, over %d: name those that matter most", len(in.Uncovered), maxAsks)}
	}
	for _, a := range in.Uncovered {
		a = upstream.Ask{Text: strings.TrimSpace(a.Text), Quote: strings.TrimSpace(a.Quote)}
		switch {
		case !p.job.Run.Asks().Quotes(a.Quote):
			bad = append(bad, fmt.Sprintf("uncovered: %q does not stand in the task, or is too short: copy its words, or leave it out", a.Quote))
		case a.Text == "" || len(a.Text)+len(a.Quote) > maxSaid:
			bad = append(bad, fmt.Sprintf("uncovered: %q needs a text of at most %d bytes", a.Quote, maxSaid))
		default:
			out = append(out, a)
		}
	}
	return out, bad
}

// reviewForms are the forms that both stages of a review are shown.
func (p *phase) reviewForms() []tool {
	criteria := complianceSchema
	if p.asksUncovered() {
		criteria = feedbackSchema
	}
	return []tool{{name: submitCriteria, schema: criteria}, {name: submitReview, schema: qualitySchema}}
}

// asksUncovered reports whether a review says what no criterion has: of a module, the others
// may have it.
func (p *phase) asksUncovered() bool { return p.job.Run.TakesFeedback() && p.job.Run.Part == nil }

// decisions appends what was decided between agents, and by humans about it.
func (w *prompt) decisions() *prompt {
	var b strings.Builder
	for _, d := range w.p.job.Run.Decisions() {
		fmt.Fprintf(&b, "- %s\n", Clean(d))
	}
	if now := w.p.job.Ref.Phase; now == pipeline.PhaseImplement || now == pipeline.PhaseDesign { // nobody else is to take it for a fact
		for i := range w.p.job.Run.Upstream {
			if said := w.p.job.Run.Upstream[i].Advice(); said != "" {
				fmt.Fprintf(&b, "- %s\n", Clean(said))
			}
		}
	}
	return w.data("Decisions taken since, with what was weighed; the plan and the criteria above are as they make them", b.String())
}
