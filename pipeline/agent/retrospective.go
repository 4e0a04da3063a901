package agent

import (
	"context"
	"errors"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/text"
)

// Retrospective is a question about a whole run (L2).
type Retrospective struct {
	Number int    // of the run's looks back, from 1
	Why    string // what asked for it
	Digest string // what happened in the run; data
	Form   string // what the answer has to look like
	Limit  int64  // what it may cost at most, in micro-dollars (L4)
	Answer int64  // how many tokens the answer may take; 0: retrospectiveTokens
}

// ErrNoReflector says that there is no model to look back with: none is
// configured, a scripted one that has nothing to say, or one that is asked for code alone.
var ErrNoReflector = errors.New("no model looks back at runs")

const (
	retrospectiveTokens   = 2500   // of an answer, to begin with: seven learnings
	retrospectiveUnpriced = 50_000 // of all looks back at a run with a model without a price
)

// Reflect has the reflector look back at the job's run, or the default model when
// there is none for it. It returns the answer as it was given, and what it cost;
// a *pipeline.Fault of class budget says that it could cost more than the limit,
// and was not asked. Nothing is emitted.
func (a *Agent) Reflect(ctx context.Context, j Job, q Retrospective) (string, pipeline.Usage, error) {
	if q.Answer <= 0 {
		q.Answer = retrospectiveTokens
	}
	return a.lookBack(ctx, j, roleReflector, q, func(w *prompt) {
		w.say("Look back at this run: %s.", q.Why).data("What happened", q.Digest).say("%s", q.Form)
	})
}

// Answer is a question about what somebody answered to a finding.
type Answer struct {
	Number  int    // of the run's answers that are read, from 1
	Finding string // what Forge had said; data
	Words   string // the answer; data
	Form    string // what the model's answer has to look like
	Limit   int64  // what it may cost at most, in micro-dollars (L4)
}

const roleReader = config.Role("reader") // answers are read by the reflector's model

// readTokens is how long what is said about an answer may be.
const readTokens = 300

// ReadAnswer has the reflector's model say what an answer to a finding means, as Reflect
// looks back: within a limit, or not at all. One person's words are all that it sees.
func (a *Agent) ReadAnswer(ctx context.Context, j Job, q Answer) (string, pipeline.Usage, error) {
	r := Retrospective{Number: q.Number, Limit: q.Limit, Answer: readTokens}
	return a.lookBack(ctx, j, roleReader, r, func(w *prompt) {
		w.say("What does this answer say about the finding?").data("The finding", q.Finding).data("The answer", q.Words).say("%s", q.Form)
	})
}

// Reflects names the model that looks back at a run: the reflector's, else the default
// one; "" when there is none.
func (a *Agent) Reflects(run *pipeline.Run) string {
	return firstOf(run.Config.Models[roleReflector], a.opts.Models[roleReflector], run.Config.Models[""], a.opts.Models[""])
}

// lookBack asks the reflector's model once, or the default model when there is none for it.
func (a *Agent) lookBack(ctx context.Context, j Job, role config.Role, q Retrospective, ask func(*prompt)) (string, pipeline.Usage, error) {
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
	if tape, ok := m.(*player); ok && !tape.plays(string(role)) || a.plain(ctx, name, m) {
		return "", pipeline.Usage{}, ErrNoReflector
	}
	p.budget.role = roleReflector
	w := p.prompt()
	ask(w)
	req := Request{Role: string(role), System: systemOfWords(string(role)), MaxTokens: int(q.Answer), Messages: []Message{{Role: "user", Text: w.String()}}}
	allowed := p.retrospectiveCap(name, q, req)
	if err := allowed(pipeline.Usage{}); err != nil {
		return "", pipeline.Usage{}, err
	}
	rec, err := p.call(ctx, m, name, q.Number, req)
	if err != nil {
		return "", pipeline.Usage{}, err
	}
	if rec, err = p.finish(ctx, m, name, req, rec, allowed); err != nil {
		return "", rec.response.Usage, err
	}
	if r := rec.response; r.Stop == StopRefusal {
		return "", r.Usage, agentFault("the %s refused: %q", role, text.ClipBytes(r.Text, 300))
	} else if r.Stop == StopLength {
		return "", r.Usage, agentFault("the %s's answer was still cut off after %d tokens", role, r.Usage.Output)
	}
	return rec.response.Text, rec.response.Usage, nil
}

// retrospectiveCap returns what says whether another call may be made: in money, or in
// tokens where the model has no price.
func (p *phase) retrospectiveCap(name string, q Retrospective, req Request) func(spent pipeline.Usage) error {
	next := pipeline.Usage{Input: tokens(len(req.text())), Output: q.Answer}
	if price, known := p.agent.prices.Find(name); known {
		return func(spent pipeline.Usage) error {
			if most := spent.MicroUSD + price.cost(next); most > q.Limit {
				return budgetFault("over budget: looking back with %s may cost %s, and it may cost %s on this run", name, text.USDExact(most), text.USDExact(q.Limit))
			}
			return nil
		}
	}
	const limit = retrospectiveUnpriced
	before := p.job.Run.Spent[pipeline.PhaseReflect]
	if p.budget.tokens <= 0 { // this cap does
		p.budget.tokens = p.job.Run.Usage.Input + p.job.Run.Usage.Output + limit
	}
	return func(spent pipeline.Usage) error {
		if most := before.Input + before.Output + spent.Input + spent.Output + next.Input + next.Output; most > limit {
			return budgetFault("over budget: looking back with %s, which has no price, may take %d tokens, and it may take %d on this run", name, most, limit)
		}
		return nil
	}
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
