package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"forge/pipeline"
)

// openaiDialect is OpenAI's chat completions, which most other servers understand.
// Servers differ in what they take; what one refused is left out from then on.
type openaiDialect struct {
	own         bool        // OpenAI itself, not a compatible server
	noUsage     atomic.Bool // stream_options is refused
	otherLimit  atomic.Bool // the limit on output has the other name
	noReasoning atomic.Bool // reasoning_effort is refused
	noChoice    atomic.Bool // tool_choice is refused
	marks       atomic.Bool // cache_control was sent
	noMarks     atomic.Bool // and is refused
	responses   atomic.Bool // tools are for the Responses API alone
	unreasoned  atomic.Bool // or for no reasoning at all, where that API is not there
}

type openaiBody struct {
	Model         string          `json:"model"`
	Messages      []openaiMessage `json:"messages"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	MaxCompletion int             `json:"max_completion_tokens,omitempty"`
	Reasoning     string          `json:"reasoning_effort,omitempty"`
	Tools         []openaiTool    `json:"tools,omitempty"`
	ToolChoice    any             `json:"tool_choice,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions map[string]bool `json:"stream_options,omitempty"`
}

type openaiMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	more       fields
	mark       bool // up to here the provider is to cache
}

type openaiCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
	more     fields
}

// fields are those of an object that stay as the provider wrote them: reasoning and
// its signatures have another name with each, and come back to it under that.
type fields map[string]json.RawMessage

// with writes an object and the fields that it has not itself.
func (f fields) with(v any) ([]byte, error) {
	out, err := json.Marshal(v)
	if err != nil || len(f) == 0 {
		return out, err
	}
	all := maps.Clone(f)
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// MarshalJSON implements json.Marshaler.
func (m openaiMessage) MarshalJSON() ([]byte, error) {
	type plain openaiMessage
	if m.mark && m.Content != nil {
		parts, err := json.Marshal([]anthropicBlock{{Type: "text", Text: m.Content, Cache: anthropicMark}})
		if err != nil {
			return nil, err
		}
		m.more = maps.Clone(m.more)
		m.more.grow(fields{"content": parts})
		m.Content = nil
	}
	return m.more.with(plain(m))
}

// MarshalJSON implements json.Marshaler.
func (c openaiCall) MarshalJSON() ([]byte, error) {
	type plain openaiCall
	return c.more.with(plain(c))
}

// openaiFunction is a function that is called, or one that may be.
type openaiFunction struct {
	Name        string         `json:"name"`
	Arguments   *string        `json:"arguments,omitempty"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

type openaiTool struct {
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
}

func (d *openaiDialect) current() dialect {
	if d.responses.Load() {
		return &responsesDialect{openaiDialect: d}
	}
	return d
}

func (d *openaiDialect) path() string { return "/chat/completions" }

func (d *openaiDialect) models() string { return "/models" }

func (d *openaiDialect) encode(model string, req Request) any {
	body := openaiBody{Model: model, Stream: true}
	if !d.noUsage.Load() {
		body.StreamOptions = map[string]bool{"include_usage": true}
	}
	limit := req.MaxTokens + req.Reasoning // reasoning counts as output
	if d.own != d.otherLimit.Load() {
		body.MaxCompletion = limit
	} else { // the older name is the one that compatible servers know
		body.MaxTokens = limit
	}
	switch {
	case d.unreasoned.Load():
		body.Reasoning = "none"
	case req.Reasoning > 0 && !d.noReasoning.Load():
		body.Reasoning = effort(req.Reasoning)
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, openaiTool{Type: "function", Function: openaiFunction{Name: t.Name, Description: t.Description, Parameters: someProperty(t.Schema)}})
	}
	switch {
	case req.Force == "" || d.noChoice.Load():
	case req.Force == ForceAny:
		body.ToolChoice = "required"
	default:
		body.ToolChoice = openaiTool{Type: "function", Function: openaiFunction{Name: req.Force}}
	}
	if req.System != "" {
		body.Messages = append(body.Messages, openaiMessage{Role: "system", Content: &req.System})
	}
	for _, msg := range req.Messages {
		body.Messages = append(body.Messages, openaiMessages(msg)...)
	}
	if !d.own && !d.noMarks.Load() && strings.Contains(strings.ToLower(model), "claude") {
		d.marks.Store(true)
		markClaude(body.Messages)
	}
	return body
}

// markClaude says up to where the provider is to cache, which Claude's do not without being
// told: the system prompt with the tools before it, the first turn, and the last message.
func markClaude(list []openaiMessage) {
	list[0].mark = true
	for i := range list {
		if list[i].Role == "user" {
			list[i].mark = true
			break
		}
	}
	if last := &list[len(list)-1]; last.Role != "assistant" {
		last.mark = true
	}
}

// someProperty is the schema of a tool's arguments with one at least: Gemini refuses an
// object without.
func someProperty(schema map[string]any) map[string]any {
	if p, _ := schema["properties"].(map[string]any); len(p) > 0 {
		return schema
	}
	out := maps.Clone(schema)
	out["properties"] = map[string]any{"why": map[string]any{"type": "string", "description": "what for; may be left out"}}
	return out
}

// openaiMessages writes one turn: a message for each tool result, then one for the rest.
func openaiMessages(msg Message) []openaiMessage {
	var out []openaiMessage
	for _, r := range msg.Results {
		out = append(out, openaiMessage{Role: "tool", Content: &r.Text, ToolCallID: r.ID})
	}
	if msg.Role != "assistant" {
		if msg.Text != "" {
			out = append(out, openaiMessage{Role: "user", Content: &msg.Text})
		}
		return out
	}
	a, was := openaiMessage{Role: "assistant"}, openaiMore{}
	if json.Unmarshal(msg.Raw, &was) == nil {
		a.more = was.Message
	}
	if msg.Text != "" || len(msg.Calls) == 0 {
		a.Content = &msg.Text
	}
	for _, c := range msg.Calls {
		args := string(wholeObject(c.Args))
		a.ToolCalls = append(a.ToolCalls, openaiCall{ID: c.ID, Type: "function", Function: openaiFunction{Name: c.Name, Arguments: &args}, more: was.Calls[c.ID]})
	}
	return append(out, a)
}

// openaiMore is what is kept of a model's turn beside its text and its calls; see Message.Raw.
type openaiMore struct {
	Message fields            `json:"message,omitempty"`
	Calls   map[string]fields `json:"calls,omitempty"` // by id
}

func (d *openaiDialect) adapt(f *failure, req Request) bool {
	if f.kind != kindRequest {
		return false
	}
	has := func(s string) bool { return strings.Contains(f.said, s) }
	switch {
	case has("stream_options") || has("include_usage"):
		return d.noUsage.CompareAndSwap(false, true)
	case has("max_tokens") && (has("max_completion_tokens") || d.own != d.otherLimit.Load() && has("nsupported")),
		has("max_completion_tokens") && has("nsupported"):
		return d.otherLimit.CompareAndSwap(false, true)
	case has("/responses") && len(req.Tools) > 0 && !d.unreasoned.Load():
		return d.responses.CompareAndSwap(false, true)
	case has("tool_choice") && req.Force != "":
		return d.noChoice.CompareAndSwap(false, true)
	case has("cache_control") || has("content") && has("string"):
		return d.marks.Load() && d.noMarks.CompareAndSwap(false, true)
	case has("reasoning") && req.Reasoning > 0:
		return d.noReasoning.CompareAndSwap(false, true)
	}
	return false
}

// openaiAnswer is an answer in one piece, or a part of a streamed one.
type openaiAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		Message      openaiPart `json:"message"`
		Delta        openaiPart `json:"delta"`
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
			Write  int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Of struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type openaiPart struct {
	Content   words            `json:"content"`
	Refusal   string           `json:"refusal"`
	ToolCalls []openaiCallPart `json:"tool_calls"`
	more      fields
}

type openaiCallPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments words  `json:"arguments"`
	} `json:"function"`
	more fields
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *openaiPart) UnmarshalJSON(data []byte) error {
	type plain openaiPart
	p.more = unnamed(data, "role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio")
	return json.Unmarshal(data, (*plain)(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *openaiCallPart) UnmarshalJSON(data []byte) error {
	type plain openaiCallPart
	p.more = unnamed(data, "index", "id", "type", "function")
	return json.Unmarshal(data, (*plain)(p))
}

// unnamed returns the fields of an object that say something, except those named.
func unnamed(data []byte, names ...string) fields {
	var out fields
	_ = json.Unmarshal(data, &out) // what is no object has none
	maps.DeleteFunc(out, func(name string, v json.RawMessage) bool { return slices.Contains(names, name) || string(v) == "null" })
	return out
}

// grow adds a part of a stream: texts and lists are continued, anything else replaces what was there.
func (f *fields) grow(more fields) {
	if *f == nil && len(more) > 0 {
		*f = fields{}
	}
	for name, v := range more {
		was := (*f)[name]
		var a, b string
		var x, y []json.RawMessage
		switch {
		case json.Unmarshal(was, &a) == nil && json.Unmarshal(v, &b) == nil:
			v, _ = json.Marshal(a + b)
		case json.Unmarshal(was, &x) == nil && json.Unmarshal(v, &y) == nil:
			v, _ = json.Marshal(append(x, y...))
		}
		(*f)[name] = v
	}
}

// words is a text that some servers write as the value that it describes, or as a list of
// parts, of which those without a text are left out.
type words string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(data []byte) error {
	var list []struct {
		Text string `json:"text"`
	}
	switch {
	case string(data) == "null":
	case json.Unmarshal(data, (*string)(w)) == nil:
	case json.Unmarshal(data, &list) == nil:
		for _, part := range list {
			*w += words(part.Text)
		}
	default:
		*w = words(data)
	}
	return nil
}

func (d *openaiDialect) decode(body []byte) (Response, error) {
	s := &openaiStream{}
	var in openaiAnswer
	if err := json.Unmarshal(body, &in); err != nil {
		return Response{}, err
	}
	if err := s.take(in, body); err != nil {
		return Response{}, err
	}
	return s.response()
}

func (d *openaiDialect) stream() stream { return &openaiStream{} }

// openaiStream puts an answer together.
type openaiStream struct {
	model, finish string
	text, refusal strings.Builder
	calls         []*openaiGrowing
	usage         pipeline.Usage
	some          bool // there was a choice
	more          fields
}

// openaiGrowing is a call whose arguments are still coming.
type openaiGrowing struct {
	index    int
	id, name string
	args     strings.Builder
	more     fields
}

func (s *openaiStream) add(ev event) (bool, error) {
	data := bytes.TrimSpace(ev.data)
	if string(data) == "[DONE]" {
		return true, nil
	}
	var in openaiAnswer
	if err := json.Unmarshal(data, &in); err != nil {
		return false, fmt.Errorf("read a part of the stream: %w", err)
	}
	return false, s.take(in, data)
}

func (s *openaiStream) take(in openaiAnswer, data []byte) error {
	if len(in.Error) > 0 && string(in.Error) != "null" {
		return openaiError(data)
	}
	s.model = firstOf(s.model, in.Model)
	if u := in.Usage; u != nil {
		s.usage = pipeline.Usage{Calls: 1, Input: u.Prompt, CachedInput: u.Details.Cached, CacheWrite: u.Details.Write, Output: u.Completion, Reasoning: u.Of.Reasoning}
	}
	if len(in.Choices) == 0 {
		return nil
	}
	s.some = true
	choice := in.Choices[0]
	s.finish = firstOf(choice.FinishReason, s.finish)
	for _, p := range []openaiPart{choice.Message, choice.Delta} {
		s.text.WriteString(string(p.Content))
		s.refusal.WriteString(p.Refusal)
		s.more.grow(p.more)
		for _, c := range p.ToolCalls {
			g := s.call(c)
			g.id, g.name = firstOf(g.id, c.ID), firstOf(g.name, c.Function.Name)
			g.args.WriteString(string(c.Function.Arguments))
			g.more.grow(c.more)
		}
	}
	return nil
}

// call finds the call that a part belongs to. Some servers give no index, or every call the
// index 0; some give each part of one call an id of its own. So a part of another id begins
// a call when it has a name and the arguments so far are whole, or of another one.
func (s *openaiStream) call(c openaiCallPart) *openaiGrowing {
	for i := len(s.calls) - 1; i >= 0; i-- {
		g := s.calls[i]
		if c.Index != nil && *c.Index != g.index {
			continue
		}
		same := c.ID == "" || g.id == "" || c.ID == g.id
		begins := c.Function.Name != "" && (c.Index == nil && c.ID == "" || !same && (c.Function.Name != g.name || json.Valid([]byte(g.args.String()))))
		if same && !begins || c.Index != nil && !begins {
			return g
		}
	}
	g := &openaiGrowing{index: len(s.calls)}
	if c.Index != nil {
		g.index = *c.Index
	}
	s.calls = append(s.calls, g)
	return g
}

// finished implements stream: some servers leave out the last [DONE].
func (s *openaiStream) finished() bool { return s.finish != "" }

func (s *openaiStream) response() (Response, error) {
	if !s.some {
		return Response{}, errors.New("it has no choice")
	}
	r := Response{Text: s.text.String(), Model: s.model, Stop: StopEnd, Usage: s.usage}
	more := openaiMore{Message: s.more}
	for i, g := range s.calls {
		args := json.RawMessage(g.args.String())
		var twice string // some servers encode it so
		if json.Unmarshal(args, &twice) == nil {
			args = json.RawMessage(twice)
		}
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		id := firstOf(g.id, "call_"+strconv.Itoa(i+1))
		r.Calls = append(r.Calls, ToolCall{ID: id, Name: g.name, Args: args})
		if len(g.more) > 0 {
			if more.Calls == nil {
				more.Calls = map[string]fields{}
			}
			more.Calls[id] = g.more
		}
	}
	if len(more.Message)+len(more.Calls) > 0 {
		r.Raw, _ = json.Marshal(more) // it came out of JSON
	}
	switch {
	case s.refusal.Len() > 0:
		r.Stop, r.Text = StopRefusal, s.refusal.String()
	case s.finish == "content_filter":
		r.Stop = StopRefusal
	case s.finish == "length":
		r.Stop = StopLength
	case len(r.Calls) > 0: // some servers say "stop" also then
		r.Stop = StopTools
	}
	return r, nil
}

// openaiError is an error that comes with the status 200.
func openaiError(data []byte) error {
	said, _ := errorMessage(data)
	var in struct {
		Error struct {
			Code any `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &in) // another form has no code
	status := 500
	switch code := fmt.Sprint(in.Error.Code); {
	case strings.Contains(said, "rate_limit"):
		status = 429
	case strings.Contains(said, "overloaded"):
		status = 503
	case strings.Contains(said, "invalid_request") || strings.Contains(said, "context_length_exceeded"):
		status = 400
	default:
		if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	return &failure{kind: statusKind(status, said), status: status, said: said}
}
