package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// On the full track architect and designer of the user interface write at the same time.
// What they contradict each other in is found by a model whose quotes code looks up; both say
// who is right, and where they do not agree, a facilitator does.

// maxClashes is how many contradictions a model may name.
const maxClashes = 5

// infeasibleForm is what the architect submits where there are criteria that may not be met.
var infeasibleForm = object(append(slices.Clip(architectParts), "infeasible?", listOf(object(append([]any{
	"about", listOf(typed("string", "A criterion's id, such as AC1."), "The criteria that it is about."),
	"text", typed("string", "What cannot be, and how you know: figures, and where they come from.")}, optionParts...)...),
	"The criteria that no design can meet as they stand. Empty otherwise."))...)

// criteria are the ids of those that the product manager has written.
func (p *phase) criteria() (ids []string) {
	for _, i := range role.Items(p.job.Run.Artefacts, role.Product, "") {
		ids = append(ids, i.ID)
	}
	return ids
}

// infeasible reads which criteria the architect says cannot be met.
func (p *phase) infeasible(args json.RawMessage) (out []role.Claim, bad []string) {
	var in struct{ Infeasible []upstream.Ask }
	if err := decode(args, &in); err != nil {
		return nil, []string{err.Error()}
	}
	known := p.criteria()
	if len(in.Infeasible) > maxAsks {
		bad = append(bad, fmt.Sprintf("infeasible: there are %d, over %d: name those that matter most", len(in.Infeasible), maxAsks))
	}
	for i, a := range in.Infeasible {
		bad = append(bad, checkAsk("infeasible", i, &a, known)...)
		c := role.Claim{About: a.About, Text: a.Text}
		for _, o := range a.Options {
			c.Options = append(c.Options, role.Option(o))
		}
		out = append(out, c)
	}
	return out, bad
}

// checkAsk says what is wrong with something that an owner is to be told.
func checkAsk(what string, i int, a *upstream.Ask, known []string) (bad []string) {
	a.Text, a.About = strings.TrimSpace(a.Text), trimmed(a.About)
	switch {
	case a.Text == "" || len(a.Text) > maxSaid || len(a.About) == 0:
		bad = append(bad, fmt.Sprintf("%s: number %d needs about, and a text of at most %d bytes", what, i+1, maxSaid))
	case len(a.Options) > maxOptions || slices.ContainsFunc(a.Options, func(o upstream.Option) bool { return len(o.String()) > maxSaid }):
		bad = append(bad, fmt.Sprintf("%s: number %d may have %d options of at most %d bytes", what, i+1, maxOptions, maxSaid))
	}
	for _, id := range a.About {
		if !slices.Contains(known, id) {
			bad = append(bad, fmt.Sprintf("%s: there is no criterion %q; about is one of %s", what, id, strings.Join(known, ", ")))
		}
	}
	return bad
}

var clashForm = object("contradictions", listOf(object(
	"design", typed("string", "The words of the design, copied as they stand in one of its statements."),
	"ui", typed("string", "The words of the user interface, copied likewise."),
), "Pairs that cannot both hold. Empty where there are none."))

// Align has a model say what the design and the user interface of the run contradict each
// other in. Only those pairs count whose words stand on both sides.
func (a *Agent) Align(ctx context.Context, j Job) ([]role.Clash, pipeline.Usage, error) {
	p := a.drafting(j, "align")
	defer p.release()
	w := p.prompt().say("Find what the design and the user interface of the following task contradict each other in.").task().written()
	s := w.spec("align", config.RoleChecker, system("align"))
	s.result = clashForm
	var seen []role.Clash
	s.accept = func(args json.RawMessage) []string {
		var in struct{ Contradictions []role.Clash }
		if err := decode(args, &in); err != nil {
			return []string{err.Error()}
		}
		seen = nil
		for _, c := range in.Contradictions {
			c = role.Clash{Design: strings.TrimSpace(c.Design), UI: strings.TrimSpace(c.UI)}
			if len(seen) < maxClashes && len(c.String()) <= maxSaid && c.Stands(j.Run.Artefacts) {
				seen = append(seen, c)
			}
		}
		return nil
	}
	err := p.converse(ctx, s)
	return seen, p.usage, err
}

// position is what one side says to a contradiction.
type position struct {
	Holds role.Role
	Why   string
	Text  string // what that side would say, where the other holds
}

var positionForm = object(
	"holds", oneOf("Whose words hold.", string(role.Architect), string(role.UX)),
	"why", typed("string", "Why, in one or two sentences."),
	"text", typed("string", "The whole statement that you would make instead of yours, where the other holds."),
)

// settle has both sides of a contradiction say who is right. Where they do not agree, a
// facilitator, who wrote neither, decides.
func (p *phase) settle(ctx context.Context, f *upstream.Feedback) (upstream.Reply, error) {
	clash := role.Clash{Design: f.Says[0], UI: f.Says[1]}
	sides := map[role.Role]position{}
	reply := upstream.Reply{Choice: upstream.Settle}
	for _, who := range []role.Role{role.Architect, role.UX} {
		w := p.clashing(clash).say("You are the %s. Say whose words hold, and what you would say instead of yours. Call submit.", who.Person())
		s := w.spec("settle."+string(who), config.Role(who), system("settle"))
		s.tools, s.result = p.reading(), positionForm
		side, err := p.position(ctx, s, func(side position) string { return p.yields(clash, who, side.Text) })
		if err != nil {
			return reply, err
		}
		sides[who] = side
		reply.Weighed = append(reply.Weighed, text.ClipBytes(fmt.Sprintf("the %s, for the %s: %s", who.Person(), side.Holds.Person(), side.Why), maxSaid))
	}
	holds, why := sides[role.Architect].Holds, sides[role.Architect].Why
	if other := sides[role.UX]; other.Holds != holds {
		w := p.clashing(clash)
		for _, said := range reply.Weighed {
			w.data("A side", Clean(said))
		}
		s := w.say("Decide whose words hold. Call submit.").spec("facilitate", config.RoleChecker, system("facilitate"))
		s.result = object("holds", positionForm["properties"].(map[string]any)["holds"], "why", typed("string", "Why, in one or two sentences."))
		side, err := p.position(ctx, s, nil)
		if err != nil {
			return reply, err
		}
		holds, why = side.Holds, "the facilitator: "+side.Why
	}
	reply.Holds, reply.Why, reply.Text = string(holds), why, sides[holds.Other()].Text
	return reply, nil
}

func (p *phase) clashing(c role.Clash) *prompt {
	return p.prompt().say("Settle a contradiction in what was written for the following task.").task().instructions().files().mark().notes().comments().written().lastFault().
		data("The contradiction", Clean(c.String()))
}

// position asks one who decides about a contradiction; check says what is wrong with it.
func (p *phase) position(ctx context.Context, s spec, check func(position) string) (side position, err error) {
	s.accept = func(args json.RawMessage) []string {
		side = position{}
		if err := decode(args, &side); err != nil {
			return []string{err.Error()}
		}
		side.Why, side.Text = strings.TrimSpace(side.Why), strings.TrimSpace(side.Text)
		switch {
		case side.Holds != role.Architect && side.Holds != role.UX:
			return []string{"holds is architect or ux"}
		case side.Why == "" || len(side.Why) > maxSaid:
			return []string{fmt.Sprintf("why has one to %d bytes", maxSaid)}
		case check != nil && check(side) != "":
			return []string{check(side)}
		}
		return nil
	}
	err = p.converse(ctx, s)
	return side, err
}

// yields says why what a side would say instead does not end a contradiction; "" where it does.
func (p *phase) yields(c role.Clash, who role.Role, instead string) string {
	switch {
	case instead == "" || len(instead) > upstream.MaxText:
		return fmt.Sprintf("text has one to %d bytes", upstream.MaxText)
	case c.Stands(role.Yield(p.job.Run.Artefacts, c, who.Other(), instead, "")):
		return "text still says what contradicts: say what you would say where the other holds"
	}
	return ""
}
