package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"forge/pipeline"
)

// responsesDialect is OpenAI's Responses API, where its newer models take tools and reason
// at the same time. Nothing is kept by the provider: the whole conversation goes along each
// time, with what was reasoned as it came, sealed.
type responsesDialect struct{ *openaiDialect }

func (d *responsesDialect) current() dialect { return d }

func (d *responsesDialect) path() string { return "/responses" }

type responsesBody struct {
	Model        string         `json:"model"`
	Instructions string         `json:"instructions,omitempty"`
	Input        []any          `json:"input"`
	Include      []string       `json:"include"`
	MaxOutput    int            `json:"max_output_tokens,omitempty"`
	Reasoning    map[string]any `json:"reasoning,omitempty"`
	Tools        []any          `json:"tools,omitempty"`
	ToolChoice   any            `json:"tool_choice,omitempty"`
	Store        bool           `json:"store"`
	Stream       bool           `json:"stream"`
}

func (d *responsesDialect) encode(model string, req Request) any {
	body := responsesBody{Model: model, Instructions: req.System, Include: []string{"reasoning.encrypted_content"}, MaxOutput: req.MaxTokens + req.Reasoning, Stream: true}
	if req.Reasoning > 0 && !d.noReasoning.Load() {
		body.Reasoning = map[string]any{"effort": effort(req.Reasoning)}
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, map[string]any{"type": "function", "name": t.Name, "description": t.Description, "parameters": someProperty(t.Schema), "strict": false})
	}
	switch {
	case req.Force == "" || d.noChoice.Load():
	case req.Force == ForceAny:
		body.ToolChoice = "required"
	default:
		body.ToolChoice = map[string]any{"type": "function", "name": req.Force}
	}
	for _, msg := range req.Messages {
		body.Input = append(body.Input, responsesItems(msg)...)
	}
	return body
}

// responsesItems writes one turn. Of a model's, what was reasoned stands before what came
// of it.
func responsesItems(msg Message) []any {
	var out []any
	for _, r := range msg.Results {
		out = append(out, map[string]any{"type": "function_call_output", "call_id": r.ID, "output": r.Text})
	}
	var sealed struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(msg.Raw, &sealed) == nil {
		for _, item := range sealed.Items {
			out = append(out, item)
		}
	}
	if msg.Text != "" {
		out = append(out, map[string]any{"role": msg.Role, "content": msg.Text})
	}
	for _, c := range msg.Calls {
		out = append(out, map[string]any{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": string(wholeObject(c.Args))})
	}
	return out
}

// adapt goes back to chat completions, without reasoning, where nothing is at the path.
func (d *responsesDialect) adapt(f *failure, req Request) bool {
	switch {
	case f.kind == kindModel || f.kind == kindURL:
		d.responses.Store(false)
		return d.unreasoned.CompareAndSwap(false, true)
	case f.kind != kindRequest:
		return false
	case strings.Contains(f.said, "tool_choice") && req.Force != "":
		return d.noChoice.CompareAndSwap(false, true)
	}
	return strings.Contains(f.said, "reasoning") && d.noReasoning.CompareAndSwap(false, true)
}

// responsesAnswer is a whole answer.
type responsesAnswer struct {
	Model  string            `json:"model"`
	Status string            `json:"status"`
	Output []json.RawMessage `json:"output"`
	Why    struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Of struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

func (d *responsesDialect) decode(body []byte) (Response, error) {
	var in responsesAnswer
	if err := json.Unmarshal(body, &in); err != nil {
		return Response{}, err
	}
	return in.response()
}

func (in *responsesAnswer) response() (Response, error) {
	if in.Error != nil && in.Error.Message != "" {
		return Response{}, openaiError(fmt.Appendf(nil, `{"error":{"code":%q,"message":%q}}`, in.Error.Code, in.Error.Message))
	}
	if len(in.Output) == 0 && in.Status == "" {
		return Response{}, errors.New("it has no output")
	}
	r := Response{Model: in.Model, Stop: StopEnd, Usage: pipeline.Usage{Calls: 1, Input: in.Usage.Input, CachedInput: in.Usage.Details.Cached, Output: in.Usage.Output, Reasoning: in.Usage.Of.Reasoning}}
	var sealed []json.RawMessage
	for _, raw := range in.Output {
		var item struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
			Content   []struct {
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return r, err
		}
		switch item.Type {
		case "reasoning":
			sealed = append(sealed, raw)
		case "message":
			for _, c := range item.Content {
				r.Text += c.Text + c.Refusal
				if c.Refusal != "" {
					r.Stop = StopRefusal
				}
			}
		case "function_call":
			r.Calls = append(r.Calls, ToolCall{ID: item.CallID, Name: item.Name, Args: json.RawMessage(firstOf(item.Arguments, "{}"))})
		}
	}
	if len(sealed) > 0 {
		r.Raw, _ = json.Marshal(map[string]any{"items": sealed}) // it came out of JSON
	}
	switch {
	case r.Stop == StopRefusal || in.Why.Reason == "content_filter":
		r.Stop = StopRefusal
	case in.Why.Reason == "max_output_tokens":
		r.Stop = StopLength
	case len(r.Calls) > 0:
		r.Stop = StopTools
	}
	return r, nil
}

func (d *responsesDialect) stream() stream { return &responsesStream{} }

// responsesStream waits for the event that has the whole answer: what comes before it says
// only that there is life.
type responsesStream struct{ whole *responsesAnswer }

func (s *responsesStream) add(ev event) (bool, error) {
	var in struct {
		Type     string          `json:"type"`
		Response responsesAnswer `json:"response"`
	}
	if err := json.Unmarshal(ev.data, &in); err != nil {
		return false, fmt.Errorf("read a part of the stream: %w", err)
	}
	switch in.Type {
	case "response.completed", "response.incomplete", "response.failed":
		s.whole = &in.Response
		return true, nil
	case "error":
		return false, openaiError(ev.data)
	}
	return false, nil
}

func (s *responsesStream) finished() bool { return s.whole != nil }

func (s *responsesStream) response() (Response, error) {
	if s.whole == nil {
		return Response{}, errors.New("it has no end")
	}
	return s.whole.response()
}
