package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/text"
)

// Limits of the loop that no configuration raises.
const (
	stagnantOver = 3   // steps in a row without progress (I4)
	callsPerTurn = 16  // tool calls in one answer (S22)
	defaultSteps = 100 // where the configuration has no limit
	maxRepairs   = 3   // of a result that was not acceptable
)

// phase is one execution of a Job.
type phase struct {
	agent     *Agent
	job       Job
	phase     pipeline.Phase
	usage     pipeline.Usage // of this execution, as the run will book it
	budget    *budget
	steps     int                // taken, over all conversations
	limit     int                // on steps
	nonce     string             // of the data delimiters; the same in the whole run, so that prompts begin alike
	resumable bool               // an earlier attempt's tape may be used
	share     float64            // of the run's cost that the phase may spend; 0: all of it
	series    string             // in the events' ids, of the second agent in a phase
	ran       bool               // a conversation has run commands in the workspace
	read      []pipeline.Excerpt // what was read of files
	words     string             // the last ones of the conversation that ended last
	spent     error              // its fault, where it ended without a result and may have done its work all the same
	why       string             // that in short
	reserved  []func()           // give back what the calls of the last step had set aside
}

// release gives back what the calls of the last step had set aside of the money of
// all runs: by now they are booked.
func (p *phase) release() {
	for _, f := range p.reserved {
		f()
	}
	p.reserved = nil
}

func (a *Agent) phase(j Job, ph pipeline.Phase) *phase {
	run := j.Run
	p := &phase{agent: a, job: j, phase: ph, limit: run.Config.Limits.Steps, resumable: resumes(j),
		nonce:  digest(run.Trace)[:8],
		budget: &budget{cost: run.CostLimit(), tokens: run.TokenLimit(), before: run.Total(), phase: run.Spent[ph], meter: j.Meter}}
	if p.limit <= 0 {
		p.limit = defaultSteps
	}
	if p.job.Ref.Attempt < 1 {
		p.job.Ref.Attempt = 1
	}
	return p
}

// spec says what a conversation is.
type spec struct {
	name   string      // "implementer"
	role   config.Role // whose model
	system string
	prompt string
	marks  []int // bytes of the prompt up to which others begin alike; see Message
	tools  []tool
	result map[string]any                      // schema of what is submitted
	forms  []tool                              // by which the model is shown to submit it; nil: submit, with result
	other  string                              // that of them which another conversation of the role ends with
	accept func(args json.RawMessage) []string // problems with it, for the model; none: accepted
}

// conversation is a spec at work.
type conversation struct {
	spec
	p         *phase
	model     Model
	modelName string
	price     Price
	box       toolbox
	mem       memory
	step      int
	seen      map[string]bool // digests of outputs, and of file contents
	idle      int             // steps in a row without progress
	silent    int             // answers in a row without a call
	called    bool            // there was one with a call
	cut       int             // answers in a row that were cut off before a call
	asked     int64           // tokens of the last request, as estimated
	output    int             // the most tokens of an answer
	forced    bool            // it calls tools when it is made to, and else answered with words
	reflected bool
	repairs   int // results that were not accepted
}

// converse runs the loop until a result is accepted.
func (p *phase) converse(ctx context.Context, s spec) error {
	m, name, err := p.agent.model(p.job.Run, s.role)
	if err != nil {
		return err
	}
	if p.agent.plain(ctx, name, m) {
		return &pipeline.Fault{Class: pipeline.FaultProvider, Final: true,
			Message: fmt.Sprintf("the %s works with tools, and %s is asked for code alone: set models.%s to a larger model, or model_limits.%[2]s.form to tools", s.name, name, s.role)}
	}
	if s.forms == nil {
		s.forms = []tool{{name: "submit", schema: s.result}}
	}
	c := &conversation{spec: s, p: p, model: m, modelName: name, seen: map[string]bool{},
		box: toolbox{ws: p.job.Workspace, base: p.job.Run.Base, timeout: time.Duration(p.job.Run.Config.Tests.TimeoutMinutes) * time.Minute}}
	c.price, _ = p.agent.prices.Find(name) // a model without a price is shown without one
	p.budget.role = s.role
	p.budget.share = int64(p.share * float64(p.budget.cost))
	c.mem.begin(s.prompt+"\n\n"+p.state(s.name, 1, p.left()), s.marks)
	defer func() { p.ran, p.words = p.ran || c.box.ran, c.lastWords() }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.steps >= p.limit {
			return p.ends("no steps were left", "the %s did not finish within %d steps (limits.steps_per_phase); its last words: %q", c.who(), p.limit, c.lastWords())
		}
		done, err := c.turn(ctx)
		if err != nil || done {
			return err
		}
	}
}

// ends is the fault of a conversation that has come to no result: it ran out of steps,
// went in circles, fell silent or could not fill in the form.
func (p *phase) ends(short, format string, args ...any) error {
	p.spent, p.why = agentFault(format, args...), short
	return p.spent
}

// left is the number of steps that the phase may still take.
func (p *phase) left() int { return max(0, p.limit-p.steps) }

// whySilent is for people whose model answers in words alone.
const whySilent = "The model may call no tools, or its server gives it none (llama.cpp: --jinja, vLLM: --enable-auto-tool-choice) or cuts its prompt (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx of the model)"

// byPlain says what helps a model that calls no tools at all.
func byPlain(model string) string {
	return "Or let it be asked for code alone: model_limits." + model + ".form: plain"
}

// turnLog is what a turn did, for its events.
type turnLog struct {
	step     pipeline.Step
	tools    []pipeline.ToolUse
	replayed bool
}

// turn is one step: look, decide, act (I1). Whatever comes of it, the step and
// its cost are an event before the turn returns (I2).
func (c *conversation) turn(ctx context.Context) (done bool, err error) {
	c.step++
	c.p.steps++
	start := c.p.agent.opts.Clock()
	rec, err := c.ask(ctx)
	if err != nil {
		return false, err
	}
	log := &turnLog{replayed: rec.replayed, step: pipeline.Step{Phase: c.p.phase, Iteration: c.p.job.Ref.Iteration, Number: c.p.steps, Model: c.modelName, Usage: rec.response.Usage, Adapted: rec.response.Adapted,
		Call: c.p.agent.opts.Clock().Sub(start).Milliseconds()}}
	done, err = c.act(ctx, rec.response, log)
	log.step.Millis = c.p.agent.opts.Clock().Sub(start).Milliseconds()
	// The call is paid for, so its event is written even when the phase is being stopped.
	if e := c.p.emit(context.WithoutCancel(ctx), c.role, log); e != nil && err == nil {
		err = e
	}
	return done && err == nil, err
}

// ask makes the model call of a step.
func (c *conversation) ask(ctx context.Context) (recorded, error) {
	c.p.release()
	req := Request{Role: c.name, System: c.system, Messages: c.mem.messages, Tools: c.describe(), MaxTokens: max(outputTokens, c.output)}
	switch {
	case c.p.left() == 0:
		req.Force = c.own()
	case c.silent > 0 || c.forced:
		req.Force = ForceAny
	}
	for {
		c.asked = tokens(req.bytes())
		rec, err := c.p.call(ctx, c.model, c.modelName, c.step, req)
		if !errors.Is(err, ErrTooLong) || !c.mem.shrink() {
			return rec, err
		}
	}
}

// call books, records and makes one model call.
func (p *phase) call(ctx context.Context, m Model, name string, step int, req Request) (recorded, error) {
	req = p.agent.limits(name).bounded(req, name, p.budget.role)
	if of := p.job.Run.Part; of != nil {
		req.Part = of.Module.ID
	}
	req.Iteration, req.Attempt, req.Step = p.job.Ref.Iteration, p.job.Ref.Attempt, step
	rec, err := p.record(ctx, m, p.tapeKey(req.Role), req, func() error {
		next, err := p.budget.reserve(name, p.agent.prices, tokens(req.bytes()), int64(req.MaxTokens+req.Reasoning))
		if err != nil || p.agent.opts.Budget == nil {
			return err
		}
		release, err := p.agent.opts.Budget.Reserve(ctx, p.job.Run, next)
		if err == nil {
			p.reserved = append(p.reserved, release)
		}
		return err
	})
	if err != nil {
		return rec, err
	}
	r := &rec.response
	r.Text = trimmedText(*r)
	if rec.earlier {
		r.Usage = pipeline.Usage{} // the earlier attempt's events have it
	} else {
		p.agent.prices.charge(name, &r.Usage)
	}
	p.add(r.Usage, rec.replayed)
	return rec, nil
}

func (c *conversation) describe() []Tool {
	var out []Tool
	for _, t := range c.tools {
		out = append(out, t.describe())
	}
	for _, t := range c.forms {
		out = append(out, t.describe())
	}
	return out
}

// own names the tool that this conversation ends with.
func (c *conversation) own() string {
	return c.forms[slices.IndexFunc(c.forms, func(t tool) bool { return t.name != c.other })].name
}

// handsIn reports whether a tool hands in this conversation's result. Each of them may be
// called submit, which is what models call them anyway.
func (c *conversation) handsIn(name string) bool {
	return name == "submit" || name != c.other && slices.ContainsFunc(c.forms, func(t tool) bool { return t.name == name })
}

// act carries out what the model wants and puts the results into the memory.
func (c *conversation) act(ctx context.Context, r Response, log *turnLog) (bool, error) {
	c.mem.assistant(r)
	if r.Stop == StopRefusal {
		return false, agentFault("the %s refused: %q; rephrase the task, or choose another model", c.who(), text.ClipBytes(r.Text, 300))
	}
	if r.Stop == StopLength {
		c.raise()
	}
	if len(r.Calls) == 0 {
		return false, c.nudge(r)
	}
	c.forced = c.forced || c.silent > 0
	c.silent, c.cut, c.called = 0, 0, true
	results, accepted, err := c.useAll(ctx, r, log)
	if err != nil || accepted {
		log.step.Progress = log.step.Progress || accepted
		return accepted, err
	}
	advice, err := c.watch(ctx, results, log)
	if err != nil {
		return false, err
	}
	c.mem.user(results, strings.TrimSpace(advice+c.hurry()+"\n"+c.p.state(c.name, c.step+1, c.p.left())))
	return false, nil
}

// hurry warns before the steps run out.
func (c *conversation) hurry() string {
	switch c.p.left() {
	case 1:
		return "\nOnly one step is left in this phase: call " + c.own() + "."
	case 2:
		return "\nOnly two steps are left in this phase: finish, and call " + c.own() + "."
	}
	return ""
}

// nudge answers an answer that called no tool; twice in a row is a fault, unless it
// was cut off before it could.
func (c *conversation) nudge(r Response) error {
	c.idle++
	if r.Stop == StopLength {
		if words, ok := c.goOn(r); ok {
			c.mem.user(nil, words+c.hurry()+"\n"+c.p.state(c.name, c.step+1, c.p.left()))
			return nil
		}
	}
	if c.silent++; c.silent > 1 {
		why := whySilent
		if !c.called {
			why += ". " + byPlain(c.modelName)
		}
		if n := r.Usage.Input; n > 0 && n < c.asked/2 {
			why = fmt.Sprintf("Its server counted %d tokens of a prompt that has about %d: %s", n, c.asked, whyCut)
		}
		return c.p.ends("it called no tool any more", "not verified: the %s answered twice without calling a tool, last with %q. %s", c.who(), text.ClipBytes(r.Text, 300), why)
	}
	words := "Your answer called no tool, so nothing came of it. Call the tool that you need next, or call " + c.own() + " with your result."
	c.mem.user(nil, words+c.hurry()+"\n"+c.p.state(c.name, c.step+1, c.p.left()))
	return nil
}

// submit returns everything that is wrong with a result, in its form and in what
// it says.
func (c *conversation) submit(args json.RawMessage) []string {
	fitted, problems := fit(c.result, args)
	if fitted == nil {
		return problems
	}
	for _, p := range c.accept(fitted) {
		if !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
	}
	return problems
}

// progress reports whether an outcome changed a file to content that it has not
// had before, or brought information that was not there before (I4).
func (c *conversation) progress(out outcome) bool {
	key := denoise(out.text)
	if out.changed != "" {
		key = out.changed + "\x00" + out.content
	}
	if key = digest(key); out.misuse || c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}

// watch counts steps without progress. The first time that there are too many it
// asks for advice, the second time it ends the phase (I4).
func (c *conversation) watch(ctx context.Context, results []ToolResult, log *turnLog) (advice string, err error) {
	if log.step.Progress {
		c.idle = 0
		return "", nil
	}
	if c.idle++; c.idle <= stagnantOver {
		return "", nil
	}
	if c.reflected {
		return "", c.p.ends("it made no progress any more", "the %s stagnated: %d steps in a row changed no file and brought nothing new, again after it had been given advice", c.who(), c.idle)
	}
	c.reflected, c.idle = true, 0
	advice, usage, err := c.reflect(ctx, results)
	if err != nil {
		return "", err
	}
	log.step.Usage.Add(usage)
	log.step.Advice = advice
	return "You have made no progress for several steps. Advice from looking back at them:\n" + advice + "\n", nil
}

func (c *conversation) find(name string) (tool, bool) {
	for _, t := range c.tools {
		if t.name == name {
			return t, c.box.ws != nil
		}
	}
	return tool{}, false
}

func (c *conversation) toolNames() string {
	names := []string{}
	for _, t := range c.tools {
		names = append(names, t.name)
	}
	return strings.Join(append(names, c.own()), ", ")
}

// who names the conversation for people.
func (c *conversation) who() string {
	if c.name == string(c.role) {
		return c.name
	}
	return string(c.role) + " (" + c.name + ")"
}

func (c *conversation) lastWords() string {
	for i := len(c.mem.messages) - 1; i >= 0; i-- {
		if m := c.mem.messages[i]; m.Role == "assistant" && m.Text != "" {
			return text.ClipBytes(m.Text, 200)
		}
	}
	return ""
}

// emit writes a turn's events: the step, then its tools, in order. Their IDs come
// from the key and the step, so that a turn that is played back after a crash
// gives the same events.
func (p *phase) emit(ctx context.Context, role config.Role, log *turnLog) error {
	if p.job.Emit == nil {
		return nil
	}
	source, id := "agent:"+string(role), fmt.Sprintf("%s/%sstep/%d", p.job.Key, p.series, log.step.Number)
	events := []pipeline.Event{{ID: id, Type: pipeline.EventAgentIteration, Source: source, Data: pipeline.Data{Step: &log.step}}}
	if log.replayed {
		events[0].Data.Note = "played back from the tape"
	}
	for i := range log.tools {
		events = append(events, pipeline.Event{ID: fmt.Sprintf("%s/tool/%d", id, i+1), Type: pipeline.EventToolExecuted, Source: source, Data: pipeline.Data{Tool: &log.tools[i]}})
	}
	if err := p.job.Emit(ctx, events...); err != nil {
		return fmt.Errorf("emit the events of %s: %w", id, err)
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
