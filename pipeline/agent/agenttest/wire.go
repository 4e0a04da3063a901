package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"forge/pipeline/agent"
)

// messages speaks Anthropic's Messages API.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, kind, message string) {
		reply(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
	}
	if r.Header.Get("X-Api-Key") == "" {
		fail(http.StatusUnauthorized, "authentication_error", "x-api-key is missing")
		return
	}
	var in struct {
		Model      string
		MaxTokens  int `json:"max_tokens"`
		System     json.RawMessage
		ToolChoice json.RawMessage `json:"tool_choice"`
		Stream     bool
		Messages   []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := s.read(r, &in); err != nil || in.Model == "" || in.MaxTokens <= 0 || len(in.Messages) == 0 {
		fail(http.StatusBadRequest, "invalid_request_error", fmt.Sprint("model, max_tokens and messages are required: ", err))
		return
	}
	if len(in.ToolChoice) > 0 { // as the newer models do
		fail(http.StatusBadRequest, "invalid_request_error", "tool_choice: forced tool use is not supported for this model")
		return
	}
	req := agent.Request{System: text(in.System)}
	for _, m := range in.Messages {
		msg, err := fromAnthropic(m.Role, m.Content)
		if err != nil {
			fail(http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		req.Messages = append(req.Messages, msg)
	}
	res, status, message := s.play(r.Context(), req)
	if status != 0 {
		fail(status, "api_error", message)
		return
	}
	if answer := toAnthropic(in.Model, res); in.Stream {
		streamAnthropic(w, answer)
	} else {
		reply(w, http.StatusOK, answer)
	}
}

func fromAnthropic(role string, content json.RawMessage) (agent.Message, error) {
	msg := agent.Message{Role: role}
	var blocks []struct {
		Type      string
		Text      string
		ToolUseID string `json:"tool_use_id"`
		IsError   bool   `json:"is_error"`
		Content   json.RawMessage
	}
	if err := json.Unmarshal(content, &blocks); err != nil {
		msg.Text = text(content)
		return msg, nil
	}
	if len(blocks) == 0 {
		return msg, fmt.Errorf("messages: content of a turn of the %s is empty", role)
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			msg.Text += b.Text
		case "tool_result":
			msg.Results = append(msg.Results, agent.ToolResult{ID: b.ToolUseID, Text: text(b.Content), Error: b.IsError})
		}
	}
	return msg, nil
}

func toAnthropic(model string, res agent.Response) map[string]any {
	var content []any
	if len(res.Raw) > 0 {
		var turn struct{ Content []any }
		_ = json.Unmarshal(res.Raw, &turn) // the tape's reader has checked it
		content = turn.Content
	} else {
		if res.Text != "" {
			content = append(content, map[string]any{"type": "text", "text": res.Text})
		}
		for _, c := range res.Calls {
			content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Args})
		}
	}
	stop := map[string]string{agent.StopEnd: "end_turn", agent.StopTools: "tool_use", agent.StopLength: "max_tokens", agent.StopRefusal: "refusal"}[res.Stop]
	u := res.Usage
	return map[string]any{
		"id": "msg_tape", "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": u.Input - u.CachedInput - u.CacheWrite, "output_tokens": u.Output,
			"cache_read_input_tokens": u.CachedInput, "cache_creation_input_tokens": u.CacheWrite,
		},
	}
}

// completions speaks OpenAI's chat completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, message string) {
		reply(w, status, map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})
	}
	var in struct {
		Model   string
		Stream  bool
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := s.read(r, &in); err != nil || in.Model == "" || len(in.Messages) == 0 {
		fail(http.StatusBadRequest, fmt.Sprint("model and messages are required: ", err))
		return
	}
	var req agent.Request
	open := map[string]bool{}
	for _, m := range in.Messages {
		msg := agent.Message{Role: m.Role, Text: text(m.Content)}
		switch m.Role {
		case "system":
			req.System = msg.Text
			continue
		case "assistant":
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				fail(http.StatusBadRequest, fmt.Sprintf("messages: tool_call_id %q answers no call", m.ToolCallID))
				return
			}
			delete(open, m.ToolCallID)
			msg = agent.Message{Role: "user", Results: []agent.ToolResult{{ID: m.ToolCallID, Text: msg.Text}}}
		}
		req.Messages = append(req.Messages, msg)
	}
	if len(open) > 0 {
		fail(http.StatusBadRequest, "messages: a tool call has no result")
		return
	}
	res, status, message := s.play(r.Context(), req)
	if status != 0 {
		fail(status, message)
		return
	}
	if answer := toOpenAI(in.Model, res); in.Stream {
		streamOpenAI(w, answer, in.Options.Usage)
	} else {
		reply(w, http.StatusOK, answer)
	}
}

func toOpenAI(model string, res agent.Response) map[string]any {
	message := map[string]any{"role": "assistant", "content": res.Text, "refusal": nil}
	if res.Stop == agent.StopRefusal {
		message["content"], message["refusal"] = nil, res.Text
	}
	var calls []any
	for _, c := range res.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(c.Args)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	stop := map[string]string{agent.StopEnd: "stop", agent.StopTools: "tool_calls", agent.StopLength: "length", agent.StopRefusal: "stop"}[res.Stop]
	u := res.Usage
	return map[string]any{
		"id": "chatcmpl-tape", "object": "chat.completion", "created": 1, "model": model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": stop, "message": message, "logprobs": nil}},
		"usage": map[string]any{
			"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"prompt_tokens_details": map[string]any{"cached_tokens": u.CachedInput, "cache_write_tokens": u.CacheWrite},
		},
	}
}
