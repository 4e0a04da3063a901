package agent

import (
	"fmt"

	"forge/pipeline"
)

// memoryTokens is what a conversation may hold, and keepTokens what is left after
// old tool outputs were elided. Eliding rarely and much keeps the provider's
// prompt cache useful in between.
const (
	memoryTokens = 120_000
	keepTokens   = 60_000
	elidedOver   = 400 // bytes; shorter outputs stay
	keptTurns    = 6   // newest messages that stay as they are
)

// memory is the working memory of a conversation: its messages, to which turns
// are only appended, until the budget forces old outputs out (I1).
type memory struct {
	messages []Message
	budget   int64 // tokens; 0: memoryTokens
	elided   int   // outputs left out so far
}

// assistant appends a model's turn.
func (m *memory) assistant(r Response) {
	text := r.Text
	if text == "" && len(r.Calls) == 0 {
		text = "(nothing)" // providers refuse an empty turn
	}
	m.messages = append(m.messages, Message{Role: "assistant", Text: text, Calls: r.Calls, Raw: r.Raw})
}

// user appends results and words.
func (m *memory) user(results []ToolResult, text string) {
	m.messages = append(m.messages, Message{Role: "user", Results: results, Text: text})
	m.trim()
}

func (m *memory) bytes() int {
	n := 0
	for _, msg := range m.messages {
		n += len(msg.Text)
		for _, r := range msg.Results {
			n += len(r.Text)
		}
		for _, c := range msg.Calls {
			n += len(c.Args)
		}
	}
	return n
}

// trim elides the oldest outputs when the memory is over its budget. The model's
// reasoning is bound to the exact text before it, so it goes too: the provider
// would refuse it behind a changed message.
func (m *memory) trim() {
	budget, keep := m.budget, m.budget/2
	if budget == 0 {
		budget, keep = memoryTokens, keepTokens
	}
	size := m.bytes()
	if tokens(size) <= budget {
		return
	}
	changed := false
	for i := 1; i < len(m.messages)-keptTurns && tokens(size) > keep; i++ {
		for k := range m.messages[i].Results {
			r := &m.messages[i].Results[k]
			if len(r.Text) <= elidedOver {
				continue
			}
			short := fmt.Sprintf("%s\n[%d bytes were left out to save room; use the tool again if you need them]", clip(r.Text, elidedOver/2), len(r.Text))
			size += len(short) - len(r.Text)
			r.Text = short
			m.elided++
			changed = true
		}
	}
	if changed {
		for i := range m.messages {
			m.messages[i].Raw = nil
		}
	}
}

// state is the line that tells a model where it stands: how often it acted, and
// what the run has used so far. It is appended to what a user's turn says, never
// to the system prompt, so that the provider's cache stays valid.
func (p *phase) state(conversation string, step, of int) string {
	u := p.budget.before
	u.Add(p.usage)
	return fmt.Sprintf(`<state conversation="%s" iteration="%d" attempt="%d" step="%d" of="%d" tokens="%d" cost="%s"/>`,
		conversation, p.job.Ref.Iteration, max(1, p.job.Ref.Attempt), step, of, u.Input+u.Output, usd(u.MicroUSD))
}

// resultText heads a tool's output with its success, duration and price (I1), and
// quotes the output as data.
func (p *phase) resultText(out outcome, millis int64, inputPrice float64) string {
	how := "failed"
	if out.ok {
		how = "ok"
	}
	n := tokens(len(denoise(out.text))) // the same when it is played back
	return fmt.Sprintf("%s, %dms, %d tokens, %s\n%s", how, millis, n,
		usd(int64(float64(n)*inputPrice)), p.quote("tool output", out.text))
}

// add books what a call took: in the phase always, against the caps only when it
// was paid for now.
func (p *phase) add(u pipeline.Usage, replayed bool) {
	p.usage.Add(u)
	if !replayed {
		p.budget.settle(u)
	}
}
