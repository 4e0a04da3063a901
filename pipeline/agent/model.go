package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

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
	Iteration int    // of the run; 0 for the plan
	Attempt   int    // from 1
	Step      int    // within the conversation, from 1

	System    string
	Messages  []Message // alternating, user first, append-only as far as the memory's budget allows
	Tools     []Tool
	Force     string // a tool that the model should be made to call, or ForceAny, where the provider can
	MaxTokens int    // of output
}

// Message is one turn. A user's turn holds the results of the tools that the
// turn before called, then text; a model's turn holds text, then calls.
type Message struct {
	Role    string // "user" or "assistant"
	Text    string
	Calls   []ToolCall
	Results []ToolResult
	Raw     json.RawMessage // a model's turn as its provider wrote it, sent back unchanged: reasoning is bound to it
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
}

// Credentials are what Open may use. A URL replaces the provider's own address:
// "https://host", for OpenAI-compatible servers with the version, "http://localhost:11434/v1".
type Credentials struct {
	AnthropicKey string
	OpenAIKey    string
	AnthropicURL string
	OpenAIURL    string
	Timeout      time.Duration // of one call; 0: CallTimeout
}

// CallTimeout is after how long a call is given up when nothing else is said.
const CallTimeout = 10 * time.Minute

// callRetries is how often the SDKs repeat what may be repeated (no answer, 408,
// 409, 429, 5xx), heeding Retry-After.
const callRetries = 2

// Open returns the model with this name: "anthropic/MODEL", "openai/MODEL" (any
// OpenAI-compatible server) or "tape:PATH" (a scripted one, see ReadTape).
func Open(name string, c Credentials) (Model, error) {
	if path, ok := strings.CutPrefix(name, "tape:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("open model %s: %w", name, err)
		}
		m, err := ReadTape(data)
		if err != nil {
			return nil, fmt.Errorf("open model %s: %w", name, err)
		}
		return m, nil
	}
	provider, model, ok := strings.Cut(name, "/")
	if !ok || model == "" {
		return nil, fmt.Errorf("open model %q: want anthropic/MODEL, openai/MODEL or tape:PATH", name)
	}
	switch provider {
	case "anthropic":
		if c.AnthropicKey == "" {
			return nil, fmt.Errorf("open model %s: no API key for Anthropic; set ANTHROPIC_API_KEY", name)
		}
		return newAnthropic(model, c.AnthropicKey, c.AnthropicURL, cmp.Or(c.Timeout, CallTimeout)), nil
	case "openai":
		// A local server (Ollama, vLLM) wants no key.
		if c.OpenAIKey == "" && c.OpenAIURL == "" {
			return nil, fmt.Errorf("open model %s: no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none", name)
		}
		return newOpenAI(model, c.OpenAIKey, c.OpenAIURL, cmp.Or(c.Timeout, CallTimeout)), nil
	}
	return nil, fmt.Errorf("open model %q: provider %q is not known; use anthropic, or openai with a base URL for a compatible server", name, provider)
}
