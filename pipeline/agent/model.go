package agent

import (
	"context"
	"encoding/json"

	"forge/pipeline"
)

// Model answers requests. Its errors are *pipeline.Fault of class provider, or
// the context's error.
type Model interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// Request is one call of a model. The first four fields name the call on a tape;
// they are not sent to a provider.
type Request struct {
	Role      string // name of the conversation, "implementer"
	Part      string // the module that the run builds; "" for the run as a whole
	Iteration int    // of the run; 0 for the plan
	Attempt   int    // from 1
	Step      int    // within the conversation, from 1

	System    string
	Messages  []Message // alternating, user first, append-only as far as the memory's budget allows
	Tools     []Tool
	Force     string // a tool that the model should be made to call, or ForceAny, where the provider can
	MaxTokens int    // of output, without reasoning
	Context   int    // tokens that the model's context holds, where the settings say so
	Reasoning int    // tokens of reasoning on top, where the provider can be told; 0: as the provider likes
}

// bytes estimates how long a request is when it is written.
func (r *Request) bytes() int {
	n := len(r.text()) + len(r.Tools)*600 // descriptions and schemas
	for _, msg := range r.Messages {
		for _, c := range msg.Calls {
			n += len(c.Args)
		}
		n += len(msg.Raw)
	}
	return n
}

// Message is one turn. A user's turn holds the results of the tools that the
// turn before called, then text; a model's turn holds text, then calls.
type Message struct {
	Role    string // "user" or "assistant"
	Text    string
	Calls   []ToolCall
	Results []ToolResult
	Raw     json.RawMessage // what goes back to the provider of a model's turn beside the rest: reasoning, and what is bound to it
	Marks   []int           // of the first turn: bytes of Text up to which other requests begin alike, ascending, at most two; the provider is to keep the prompt up to there
}

// ToolCall is a model's wish to use a tool.
type ToolCall struct {
	ID   string
	Name string
	Args json.RawMessage // an object
}

// ToolResult answers a ToolCall.
type ToolResult struct {
	ID    string // of the call
	Text  string
	Error bool
}

// Tool describes a tool to a model. Schema is the JSON schema of an object.
type Tool struct {
	Name        string
	Description string
	Schema      map[string]any
}

// ForceAny in Request.Force asks for a call of any tool.
const ForceAny = "*"

// The reasons for which a model stops.
const (
	StopEnd     = "end"     // it had nothing more to say
	StopTools   = "tools"   // it waits for the results of its calls
	StopLength  = "length"  // the limit on output, or the context window, was reached
	StopRefusal = "refusal" // it would not
)

// Response is a model's answer. Usage has tokens, not money: see Prices.
type Response struct {
	Text  string
	Calls []ToolCall
	Stop  string
	Model string // as the provider names it
	Usage pipeline.Usage
	Raw   json.RawMessage // see Message

	Adapted []string `json:",omitempty"` // see pipeline.Adaptations; not on a tape
}
