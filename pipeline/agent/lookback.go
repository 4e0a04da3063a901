package agent

import (
	"context"
	"errors"

	"forge/pipeline"
)

// LookBack is a question about a whole run (L2).
type LookBack struct {
	Number int    // of the run's looks back, from 1
	Why    string // what asked for it
	Digest string // what happened in the run; data
	Form   string // what the answer has to look like
	Limit  int64  // what it may cost at most, in micro-dollars (L4)
}

// ErrNoReflector says that there is no model to look back with: none is
// configured, or a scripted one that has nothing to say.
var ErrNoReflector = errors.New("no model looks back at runs")

// lookBackTokens is the most that an answer may have: seven learnings.
const lookBackTokens = 2500

// Reflect has the reflector look back at the job's run, or the default model when
// there is none for it. It returns the answer as it was given, and what it cost;
// a *pipeline.Fault of class budget says that it could cost more than the limit,
// and was not asked. Nothing is emitted.
func (a *Agent) Reflect(ctx context.Context, j Job, q LookBack) (string, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseReflect)
	defer p.release()
	m, name, err := a.model(j.Run, roleReflector)
	if err == nil && m == nil {
		if firstOf(j.Run.Config.Models[""], a.opts.Models[""]) == "" {
			return "", pipeline.Usage{}, ErrNoReflector
		}
		m, name, err = a.model(j.Run, "")
	}
	if err != nil {
		return "", pipeline.Usage{}, err
	}
	if tape, ok := m.(*player); ok && !tape.plays(roleReflector) {
		return "", pipeline.Usage{}, ErrNoReflector
	}
	p.budget.role = roleReflector
	prompt := p.prompt().say("Look back at this run: %s.", q.Why).data("What happened", q.Digest).say("%s", q.Form).String()
	req := Request{Role: roleReflector, System: system("lookback"), MaxTokens: lookBackTokens, Messages: []Message{{Role: "user", Text: prompt}}}
	price, known := a.prices.find(name)
	if !known {
		return "", pipeline.Usage{}, budgetFault("%s has no price, so a look back at the run cannot be held to its budget: give the model a price", name)
	}
	if most := price.cost(pipeline.Usage{Input: tokens(len(req.text())), Output: lookBackTokens}); most > q.Limit {
		return "", pipeline.Usage{}, budgetFault("over budget: looking back with %s may cost %s, and it may cost %s on this run", name, usd(most), usd(q.Limit))
	}
	rec, err := p.call(ctx, m, name, q.Number, req)
	if err != nil {
		return "", pipeline.Usage{}, err
	}
	if r := rec.response; r.Stop == StopRefusal {
		return "", r.Usage, agentFault("the reflector refused: %q", clip(r.Text, 300))
	} else if r.Stop == StopLength {
		return "", r.Usage, agentFault("the reflector's answer was cut off at %d tokens", lookBackTokens)
	}
	return rec.response.Text, rec.response.Usage, nil
}

// plays reports whether the tape has a section for the conversation.
func (p *player) plays(role string) bool {
	for n := range p.sections {
		if n.role == role {
			return true
		}
	}
	return false
}
