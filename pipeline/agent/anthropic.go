package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"forge/pipeline"
)

// anthropicDialect is Anthropic's Messages API.
type anthropicDialect struct {
	thinking atomic.Int32 // how reasoning is asked for; models differ
}

// The ways to ask Anthropic's models for reasoning, in the order they are tried.
const (
	thinkBudget   = iota // a number of tokens
	thinkAdaptive        // the model decides, held by an effort
	thinkDefault         // nothing is said
)

// leastThinking is the smallest budget of reasoning that the API takes; highEffort and more
// is a high effort, in the words of those who take no number.
const (
	leastThinking = 1024
	highEffort    = 16_384
)

type anthropicBody struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens"`
	System    []anthropicBlock `json:"system,omitempty"`
	Tools     []anthropicTool  `json:"tools,omitempty"`
	Messages  []any            `json:"messages"` // anthropicTurn, or one as the model wrote it
	Thinking  map[string]any   `json:"thinking,omitempty"`
	Output    map[string]any   `json:"output_config,omitempty"`
	Stream    bool             `json:"stream"`
}

type anthropicTurn struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a part of a turn that Forge writes.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      *string          `json:"text,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	IsError   *bool            `json:"is_error,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
	Cache     *anthropicCache  `json:"cache_control,omitempty"`
}

// anthropicCache marks up to where the provider caches.
type anthropicCache struct {
	Type string `json:"type"`
}

var anthropicMark = &anthropicCache{Type: "ephemeral"}

type anthropicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      map[string]any `json:"input_schema"`
}

func (d *anthropicDialect) current() dialect { return d }

func (d *anthropicDialect) path() string { return "/v1/messages" }

func (d *anthropicDialect) models() string { return "/v1/models?limit=1000" }

// encode writes a request. Request.Force is not sent: the models since Claude
// Opus 5.5 answer 400 to a forced tool; the prompt asks for it in words.
func (d *anthropicDialect) encode(model string, req Request) any {
	body := anthropicBody{Model: model, MaxTokens: req.MaxTokens, Stream: true}
	if req.System != "" {
		body.System = []anthropicBlock{{Type: "text", Text: &req.System}}
		if len(req.Messages) == 0 || len(req.Messages[0].Marks) == 0 {
			body.System[0].Cache = anthropicMark
		}
	}
	if n := max(req.Reasoning, leastThinking); req.Reasoning > 0 {
		switch d.thinking.Load() {
		case thinkBudget:
			body.Thinking = map[string]any{"type": "enabled", "budget_tokens": n}
			body.MaxTokens += n // it counts as output
		case thinkAdaptive:
			body.Thinking = map[string]any{"type": "adaptive"}
			body.Output = map[string]any{"effort": effort(n)}
			body.MaxTokens += n
		}
	}
	for _, t := range req.Tools {
		tool := anthropicTool{Name: t.Name, Description: t.Description, Schema: map[string]any{"type": "object"}}
		for _, k := range []string{"properties", "required"} {
			if v, ok := t.Schema[k]; ok {
				tool.Schema[k] = v
			}
		}
		body.Tools = append(body.Tools, tool)
	}
	for i, msg := range req.Messages {
		body.Messages = append(body.Messages, anthropicMessage(msg, i >= len(req.Messages)-3))
	}
	return body
}

// effort is a budget of reasoning in the words of those who take no number.
func effort(tokens int) string {
	switch {
	case tokens < 4096:
		return "low"
	case tokens < highEffort:
		return "medium"
	}
	return "high"
}

// anthropicMessage writes one turn. The provider keeps the prompt up to each mark, of
// which it takes four, and looks for what it kept at most 20 blocks before one. So
// the first turn is marked where others begin alike, and the last two of the user at
// their ends: between them may lie more blocks than that. Tools and system prompt
// come before the first mark, and have one of their own only when there is none.
func anthropicMessage(msg Message, mark bool) any {
	if msg.Role == "assistant" && len(msg.Raw) > 0 {
		return anthropicAgain(msg)
	}
	turn := anthropicTurn{Role: msg.Role, Content: []anthropicBlock{}}
	for _, r := range msg.Results {
		turn.Content = append(turn.Content, anthropicBlock{Type: "tool_result", ToolUseID: r.ID, IsError: &r.Error, Content: []anthropicBlock{{Type: "text", Text: &r.Text}}})
	}
	text := msg.Text
	for _, to := range msg.Marks {
		from := len(msg.Text) - len(text)
		if to <= from || to >= len(msg.Text) {
			continue
		}
		shared := msg.Text[from:to]
		text = msg.Text[to:]
		turn.Content = append(turn.Content, anthropicBlock{Type: "text", Text: &shared, Cache: anthropicMark})
	}
	if text != "" {
		turn.Content = append(turn.Content, anthropicBlock{Type: "text", Text: &text})
	}
	for _, c := range msg.Calls {
		turn.Content = append(turn.Content, anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: wholeObject(c.Args)})
	}
	if n := len(turn.Content); mark && n > 0 && msg.Role != "assistant" {
		turn.Content[n-1].Cache = anthropicMark
	}
	return turn
}

// anthropicAgain is a model's turn as it wrote it, with what its calls are by now: what
// they wrote may have been left out to save room. Reasoning stays where it was, or the
// provider refuses the turn.
func anthropicAgain(msg Message) any {
	var turn struct {
		Role    string           `json:"role"`
		Content []map[string]any `json:"content"`
	}
	if json.Unmarshal(msg.Raw, &turn) != nil {
		return msg.Raw
	}
	for _, part := range turn.Content {
		for _, c := range msg.Calls {
			if part["type"] == "tool_use" && part["id"] == c.ID {
				part["input"] = wholeObject(c.Args)
			}
		}
	}
	return turn
}

// wholeObject is a call's arguments for whoever takes only whole ones: what was cut
// off is sent back as an empty object, and the call's result says what was wrong.
func wholeObject(args json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil || m == nil {
		return json.RawMessage("{}")
	}
	return args
}

func (d *anthropicDialect) adapt(f *failure, req Request) bool {
	now := d.thinking.Load()
	low := strings.ToLower(f.said)
	if f.kind != kindRequest || req.Reasoning == 0 || now == thinkDefault || !strings.Contains(low, "thinking") && !strings.Contains(low, "budget_tokens") && !strings.Contains(low, "effort") {
		return false
	}
	d.thinking.CompareAndSwap(now, now+1)
	return true
}

// anthropicUsage counts input without what the cache served or took.
type anthropicUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
}

// over returns u with what is counted in v.
func (u anthropicUsage) over(v anthropicUsage) anthropicUsage {
	for _, p := range []struct{ to, from **int64 }{{&u.Input, &v.Input}, {&u.CacheRead, &v.CacheRead}, {&u.CacheWrite, &v.CacheWrite}, {&u.Output, &v.Output}} {
		if *p.from != nil {
			*p.to = *p.from
		}
	}
	return u
}

func (u anthropicUsage) usage() pipeline.Usage {
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return pipeline.Usage{Calls: 1, Input: n(u.Input) + n(u.CacheRead) + n(u.CacheWrite), CachedInput: n(u.CacheRead), CacheWrite: n(u.CacheWrite), Output: n(u.Output)}
}

// anthropicContent is a part of a turn that the model wrote.
type anthropicContent struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	raw       json.RawMessage // as it came
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *anthropicContent) UnmarshalJSON(data []byte) error {
	type plain anthropicContent
	c.raw = append(json.RawMessage(nil), data...)
	return json.Unmarshal(data, (*plain)(c))
}

// again is the part as it is sent back.
func (c *anthropicContent) again() any {
	switch c.Type {
	case "text":
		return map[string]any{"type": c.Type, "text": c.Text}
	case "tool_use":
		return map[string]any{"type": c.Type, "id": c.ID, "name": c.Name, "input": wholeObject(c.Input)}
	case "thinking":
		return map[string]any{"type": c.Type, "thinking": c.Thinking, "signature": c.Signature}
	case "redacted_thinking":
		return map[string]any{"type": c.Type, "data": c.Data}
	}
	return c.raw
}

// anthropicAnswer is an answer in one piece.
type anthropicAnswer struct {
	Type       string              `json:"type"`
	Model      string              `json:"model"`
	Content    []*anthropicContent `json:"content"`
	StopReason string              `json:"stop_reason"`
	Usage      anthropicUsage      `json:"usage"`
}

func (d *anthropicDialect) decode(body []byte) (Response, error) {
	var a anthropicAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return Response{}, err
	}
	if a.Type != "message" {
		return Response{}, fmt.Errorf("it is of type %q, not a message", a.Type)
	}
	return a.response()
}

func (a *anthropicAnswer) response() (Response, error) {
	r := Response{Model: a.Model, Stop: StopEnd, Usage: a.Usage.usage()}
	special, parts := false, []any{}
	for _, c := range a.Content {
		switch c.Type {
		case "text":
			r.Text = strings.TrimSpace(r.Text + "\n" + c.Text)
			if strings.TrimSpace(c.Text) == "" {
				continue // providers refuse an empty part when it comes back
			}
		case "tool_use":
			r.Calls = append(r.Calls, ToolCall{ID: c.ID, Name: c.Name, Args: c.Input})
		default: // reasoning, which must come back unchanged
			special = true
		}
		parts = append(parts, c.again())
	}
	if special {
		raw, err := json.Marshal(map[string]any{"role": "assistant", "content": parts})
		if err != nil {
			return r, err
		}
		r.Raw = raw
	}
	switch a.StopReason {
	case "tool_use":
		r.Stop = StopTools
	case "max_tokens", "model_context_window_exceeded":
		r.Stop = StopLength
	case "refusal":
		r.Stop = StopRefusal
	}
	return r, nil
}

func (d *anthropicDialect) stream() stream { return &anthropicStream{} }

// anthropicStream puts a streamed answer together.
type anthropicStream struct {
	answer anthropicAnswer
	inputs map[int]string // of calls, as they grow
}

func (s *anthropicStream) add(ev event) (bool, error) {
	var in struct {
		Type    string           `json:"type"`
		Index   int              `json:"index"`
		Message anthropicAnswer  `json:"message"`
		Block   anthropicContent `json:"content_block"`
		Delta   struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			JSON       string `json:"partial_json"`
			Thinking   string `json:"thinking"`
			Signature  string `json:"signature"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage anthropicUsage `json:"usage"`
	}
	if err := json.Unmarshal(ev.data, &in); err != nil {
		return false, fmt.Errorf("read event %q: %w", ev.name, err)
	}
	switch in.Type {
	case "message_start":
		s.answer = in.Message
	case "content_block_start":
		if in.Index != len(s.answer.Content) {
			return false, fmt.Errorf("part %d begins after %d parts", in.Index, len(s.answer.Content))
		}
		s.answer.Content = append(s.answer.Content, &in.Block)
	case "content_block_delta":
		if in.Index < 0 || in.Index >= len(s.answer.Content) {
			return false, fmt.Errorf("part %d goes on, and there are %d", in.Index, len(s.answer.Content))
		}
		c := s.answer.Content[in.Index]
		c.Text += in.Delta.Text
		c.Thinking += in.Delta.Thinking
		c.Signature += in.Delta.Signature
		if in.Delta.JSON != "" {
			if s.inputs == nil {
				s.inputs = map[int]string{}
			}
			s.inputs[in.Index] += in.Delta.JSON
		}
	case "message_delta":
		s.answer.StopReason = firstOf(in.Delta.StopReason, s.answer.StopReason)
		s.answer.Usage = s.answer.Usage.over(in.Usage)
	case "message_stop":
		return true, nil
	case "error":
		return false, anthropicError(ev.data)
	}
	return false, nil
}

// anthropicError is an error that comes in the middle of a stream, where no status
// can say what it is.
func anthropicError(data []byte) error {
	var in struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &in) // another type is an error of the provider's own
	status, ok := map[string]int{
		"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
		"request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504, "overloaded_error": 529,
	}[in.Error.Type]
	if !ok {
		status = 500
	}
	said, _ := errorMessage(data)
	return &failure{kind: statusKind(status, said), status: status, said: said}
}

func (s *anthropicStream) finished() bool { return s.answer.StopReason != "" }

func (s *anthropicStream) response() (Response, error) {
	for i, input := range s.inputs {
		s.answer.Content[i].Input = json.RawMessage(input)
	}
	return s.answer.response()
}
