package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
}

type openaiCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
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
	if req.Reasoning > 0 && !d.noReasoning.Load() {
		body.Reasoning = effort(req.Reasoning)
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, openaiTool{Type: "function", Function: openaiFunction{Name: t.Name, Description: t.Description, Parameters: t.Schema}})
	}
	switch req.Force {
	case "":
	case ForceAny:
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
	return body
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
	a := openaiMessage{Role: "assistant"}
	if msg.Text != "" || len(msg.Calls) == 0 {
		a.Content = &msg.Text
	}
	for _, c := range msg.Calls {
		args := string(wholeObject(c.Args))
		a.ToolCalls = append(a.ToolCalls, openaiCall{ID: c.ID, Type: "function", Function: openaiFunction{Name: c.Name, Arguments: &args}})
	}
	return append(out, a)
}

func (d *openaiDialect) adapt(said string, req Request) bool {
	has := func(s string) bool { return strings.Contains(said, s) }
	switch {
	case has("stream_options") || has("include_usage"):
		return d.noUsage.CompareAndSwap(false, true)
	case has("max_tokens") && (has("max_completion_tokens") || d.own != d.otherLimit.Load() && has("nsupported")),
		has("max_completion_tokens") && has("nsupported"):
		return d.otherLimit.CompareAndSwap(false, true)
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
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type openaiPart struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
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
}

// openaiGrowing is a call whose arguments are still coming.
type openaiGrowing struct {
	index    int
	id, name string
	args     strings.Builder
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
		s.usage = pipeline.Usage{Calls: 1, Input: u.Prompt, CachedInput: u.Details.Cached, CacheWrite: u.Details.Write, Output: u.Completion}
	}
	if len(in.Choices) == 0 {
		return nil
	}
	s.some = true
	choice := in.Choices[0]
	s.finish = firstOf(choice.FinishReason, s.finish)
	for _, p := range []openaiPart{choice.Message, choice.Delta} {
		s.text.WriteString(p.Content)
		s.refusal.WriteString(p.Refusal)
		for _, c := range p.ToolCalls {
			index := len(s.calls) // some servers send calls without an index
			switch {
			case c.Index != nil:
				index = *c.Index
			case c.ID == "" && c.Function.Name == "":
				index--
			}
			g := s.call(index, c.ID)
			g.id, g.name = firstOf(g.id, c.ID), firstOf(g.name, c.Function.Name)
			g.args.WriteString(c.Function.Arguments)
		}
	}
	return nil
}

// call finds the call that a part belongs to. Some servers give every call the index
// 0, and each an id of its own.
func (s *openaiStream) call(index int, id string) *openaiGrowing {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if g := s.calls[i]; g.index == index && (id == "" || g.id == id || g.id == "") {
			return g
		}
	}
	g := &openaiGrowing{index: index}
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
	for i, g := range s.calls {
		args := json.RawMessage(g.args.String())
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		r.Calls = append(r.Calls, ToolCall{ID: firstOf(g.id, "call_"+strconv.Itoa(i+1)), Name: g.name, Args: args})
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
