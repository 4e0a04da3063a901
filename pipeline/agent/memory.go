package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// memoryTokens is what a conversation may hold, and keepTokens what is left after
// old tool outputs were elided. Eliding rarely and much keeps the provider's
// prompt cache useful in between.
const (
	memoryTokens = 120_000
	keepTokens   = 60_000
	elidedOver   = 400 // bytes; shorter outputs stay
	keptTurns    = 6   // newest messages that stay as they are

	writtenTurns = 10       // newest messages whose written contents stay
	writtenBatch = 24 << 10 // bytes of older ones that are elided at once
)

// elidedMark stands for content that a model wrote and need not be sent again: it
// is in the file. whyElided is for a model that takes it for content.
const (
	elidedMark = "[content elided, "
	whyElided  = "the content holds the mark of one that was elided from what you see; write out what is to stand in the file"
)

func isElided(s string) bool { return strings.Contains(s, elidedMark) }

// memory is the working memory of a conversation: its messages, to which turns
// are only appended, until the budget forces old outputs out (I1).
type memory struct {
	messages []Message
	budget   int64 // tokens; 0: memoryTokens
	elided   int   // outputs left out so far
}

// begin is the first message; see Message for the marks.
func (m *memory) begin(text string, marks []int) {
	m.messages = append(m.messages, Message{Role: "user", Text: text, Marks: marks})
}

// assistant appends a model's turn.
func (m *memory) assistant(r Response) {
	text := r.Text
	if text == "" && len(r.Calls) == 0 {
		text = "(nothing)" // providers refuse an empty turn
	}
	m.messages = append(m.messages, Message{Role: "assistant", Text: text, Calls: r.Calls, Raw: r.Raw})
}

// user appends results and words. Words beside results are in the last of them: some
// providers refuse a user's turn behind a tool's, and models answer such words with nothing.
func (m *memory) user(results []ToolResult, text string) {
	if n := len(results); n > 0 && text != "" {
		results[n-1].Text += "\n\n" + text
		text = ""
	}
	m.messages = append(m.messages, Message{Role: "user", Results: results, Text: text})
	if m.written(false) >= writtenBatch {
		m.written(true)
	}
	m.trim()
}

// written counts the bytes of contents that older turns wrote, and elides them when
// told to: each time that is done the provider's cache is of no use once.
func (m *memory) written(elide bool) (bytes int) {
	for i := 1; i < len(m.messages)-writtenTurns; i++ {
		for k := range m.messages[i].Calls {
			call := &m.messages[i].Calls[k]
			args, n := elided(*call)
			if n > 0 && elide {
				call.Args = args
				m.elided++
			}
			bytes += n
		}
	}
	return bytes
}

// elided returns the arguments of a call that writes without the contents, and how
// many bytes that saves.
func elided(call ToolCall) (json.RawMessage, int) {
	if call.Name != "write" && call.Name != "edit" {
		return nil, 0
	}
	var args map[string]any
	if json.Unmarshal(call.Args, &args) != nil {
		return nil, 0
	}
	for _, name := range []string{"content", "old", "new"} {
		if s, _ := args[name].(string); len(s) > elidedOver {
			args[name] = fmt.Sprintf("%s%d KB; read the file to see what it holds]", elidedMark, (len(s)+1023)>>10)
		}
	}
	out, err := json.Marshal(args)
	if err != nil || len(out) >= len(call.Args)-elidedOver/2 {
		return nil, 0
	}
	return out, len(call.Args) - len(out)
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

// trim elides the oldest outputs when the memory is over its budget, and before
// them what was written.
func (m *memory) trim() {
	budget, keep := m.budget, m.budget/2
	if budget == 0 {
		budget, keep = memoryTokens, keepTokens
	}
	size := m.bytes()
	if tokens(size) <= budget {
		return
	}
	size -= m.written(true)
	for i := 1; i < len(m.messages)-keptTurns && tokens(size) > keep; i++ {
		for k := range m.messages[i].Results {
			r := &m.messages[i].Results[k]
			if len(r.Text) <= elidedOver {
				continue
			}
			short := fmt.Sprintf("%s\n[%d bytes were left out to save room; use the tool again if you need them]", text.ClipBytes(r.Text, elidedOver/2), len(r.Text))
			size += len(short) - len(r.Text)
			r.Text = short
			m.elided++
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
		conversation, p.job.Ref.Iteration, max(1, p.job.Ref.Attempt), step, of, u.Input+u.Output, text.USDExact(u.MicroUSD))
}

// resultText quotes a tool's output as data, under a word where it failed. What it took is
// in its event: a model needs the output alone.
func (p *phase) resultText(out outcome) string {
	if out.ok {
		return p.quote("", out.text)
	}
	return "failed\n" + p.quote("", out.text)
}

// add books what a call took: in the phase always, against the caps only when it
// was paid for now.
func (p *phase) add(u pipeline.Usage, replayed bool) {
	p.usage.Add(u)
	if !replayed {
		p.budget.settle(u)
	}
}
