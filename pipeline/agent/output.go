package agent

import (
	"context"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
)

// How long an answer may be.
const (
	outputTokens = 16_000 // to begin with: what is not used is set aside for nothing
	mostOutput   = 64_000 // after an answer was cut off, where the model's limit is not known
	maxContinued = 3      // answers in a row that are cut off and go on
)

// Limits are those of a model. A zero is not known, or not set.
type Limits struct {
	OutputTokens    int    // the most that an answer may have, reasoning left out
	ContextTokens   int    // of prompt and answer together; 0: the provider is asked
	ReasoningTokens int    // how much it may reason for one answer; 0: by role where the model takes an effort, else as its provider likes
	Form            string // FormTools or FormPlain; "": as its name and its window say
}

// Reasoning by role, of models that take an effort: who plans or judges thinks more, and who
// says why a test failed less. The others think as their provider likes.
var reasoningOf = map[config.Role]int{rolePlanner: highEffort, roleReviewer: highEffort, roleTester: leastThinking}

// takesEffort are the models that are known to take an effort. One that refuses it all the
// same is not asked for it again.
var takesEffort = lazyregexp.New(`^openai/(?:gpt-[5-9]|o[1-9])`)

// limits returns those of a model; a dated snapshot has those of its model.
func (a *Agent) limits(name string) Limits {
	if l, ok := a.opts.Limits[name]; ok {
		return l
	}
	return a.opts.Limits[dated.ReplaceAllString(name, "")]
}

// bounded writes a model's limits into a request of a role.
func (l Limits) bounded(req Request, model string, role config.Role) Request {
	if l.OutputTokens > 0 {
		req.MaxTokens = min(req.MaxTokens, l.OutputTokens)
	}
	req.Context, req.Reasoning = l.ContextTokens, l.ReasoningTokens
	if req.Reasoning == 0 && takesEffort.MatchString(model) {
		req.Reasoning = reasoningOf[role]
	}
	return req
}

// raise lets the conversation's next answers be longer, because one was cut off: the
// call that it broke off in is made again whole. The limit of the provider itself is
// learned when it says so.
func (c *conversation) raise() {
	c.output = mostOutput
	if l := c.p.agent.limits(c.modelName).OutputTokens; l > 0 {
		c.output = l
	}
}

// goOn answers an answer that was cut off before it called a tool. What was written is
// in the memory, so the model goes on there; ok is false when it does so too often.
func (c *conversation) goOn(r Response) (text string, ok bool) {
	if c.cut++; c.cut > maxContinued {
		return "", false
	}
	if r.Text == "" {
		return "Your answer reached its limit before it said anything. Think less, and call a tool, or call submit with your result.", true
	}
	return "Your answer was cut off at its limit; what it says is kept. Go on exactly where it stopped, without repeating any of it, and end with a call of a tool, or of submit with your result.", true
}

// finish lets an answer in words that was cut off go on, and joins its parts. Each
// further part is a call of the conversation's continuation on the tape; allowed says
// whether another one may be made, after what the answer has taken so far.
func (p *phase) finish(ctx context.Context, m Model, name string, req Request, rec recorded, allowed func(pipeline.Usage) error) (recorded, error) {
	role, last := req.Role, rec.response
	for n := 1; last.Stop == StopLength && last.Text != "" && n <= maxContinued; n++ {
		if err := allowed(rec.response.Usage); err != nil {
			return rec, err
		}
		req.Role = role + ".continued"
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
			Message{Role: "assistant", Text: last.Text, Raw: last.Raw},
			Message{Role: "user", Text: "Your answer was cut off at its limit. Go on exactly where it stopped, without repeating any of it and without a word about this.\n" + p.state(req.Role, n, maxContinued)})
		more, err := p.call(ctx, m, name, n, req)
		if err != nil {
			return rec, err
		}
		last = more.response
		rec.response.Text += last.Text
		rec.response.Stop = last.Stop
		rec.response.Usage.Add(last.Usage)
	}
	return rec, nil
}

// trimmedText is a model's words without white space around them; of an answer that
// was cut off the end stays as it is, because it goes on there.
func trimmedText(r Response) string {
	if strings.TrimSpace(r.Text) == "" {
		return ""
	}
	if r.Stop == StopLength {
		return strings.TrimLeft(r.Text, " \t\r\n")
	}
	return strings.TrimSpace(r.Text)
}

// shrink leaves out old outputs, because the memory does not fit into the model's
// context, and keeps it smaller from then on. It reports whether that helped.
func (m *memory) shrink() bool {
	before := m.bytes()
	m.budget = tokens(before) * 2 / 3
	m.trim()
	return m.bytes() < before
}
