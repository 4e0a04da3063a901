package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// streamPart is how many characters of a text come in one event.
const streamPart = 40

// parts cuts a text as a model's words arrive.
func parts(text string) []string {
	var out []string
	for r := []rune(text); len(r) > 0; {
		n := min(streamPart, len(r))
		out = append(out, string(r[:n]))
		r = r[n:]
	}
	return out
}

// send writes one event; the name is Anthropic's alone.
func send(w http.ResponseWriter, name string, v any) {
	data, _ := json.Marshal(v) // maps of plain values
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// streamAnthropic sends a message event by event.
func streamAnthropic(w http.ResponseWriter, message map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	event := func(name string, v map[string]any) {
		v["type"] = name
		send(w, name, v)
	}
	content, _ := message["content"].([]any)
	usage := message["usage"].(map[string]any)
	stop := message["stop_reason"]
	message["content"], message["stop_reason"] = []any{}, nil
	output := usage["output_tokens"]
	usage["output_tokens"] = 1
	event("message_start", map[string]any{"message": message})
	event("ping", map[string]any{})
	for i, c := range content {
		block := map[string]any{}
		for k, v := range c.(map[string]any) {
			block[k] = v
		}
		var deltas []map[string]any
		grow := func(kind, field string, texts ...string) {
			for _, t := range texts {
				deltas = append(deltas, map[string]any{"type": kind, field: t})
			}
		}
		switch block["type"] {
		case "text":
			grow("text_delta", "text", parts(block["text"].(string))...)
			block["text"] = ""
		case "thinking":
			grow("thinking_delta", "thinking", parts(block["thinking"].(string))...)
			grow("signature_delta", "signature", block["signature"].(string))
			block["thinking"], block["signature"] = "", ""
		case "tool_use":
			input, _ := block["input"].(json.RawMessage)
			if input == nil {
				input, _ = json.Marshal(block["input"]) // from the tape's JSON
			}
			grow("input_json_delta", "partial_json", append([]string{""}, parts(string(input))...)...)
			block["input"] = map[string]any{}
		}
		event("content_block_start", map[string]any{"index": i, "content_block": block})
		for _, d := range deltas {
			event("content_block_delta", map[string]any{"index": i, "delta": d})
		}
		event("content_block_stop", map[string]any{"index": i})
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": output}})
	event("message_stop", map[string]any{})
}

// streamOpenAI sends a completion chunk by chunk.
func streamOpenAI(w http.ResponseWriter, answer map[string]any, withUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(choices []any, usage any) {
		c := map[string]any{"id": answer["id"], "object": "chat.completion.chunk", "created": answer["created"], "model": answer["model"], "choices": choices}
		if withUsage {
			c["usage"] = usage
		}
		send(w, "", c)
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	choice := answer["choices"].([]any)[0].(map[string]any)
	message := choice["message"].(map[string]any)
	delta(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, field := range []string{"content", "refusal"} {
		text, _ := message[field].(string)
		for _, p := range parts(text) {
			delta(map[string]any{field: p}, nil)
		}
	}
	calls, _ := message["tool_calls"].([]any)
	for i, c := range calls {
		call := c.(map[string]any)
		function := call["function"].(map[string]any)
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": call["id"], "type": "function", "function": map[string]any{"name": function["name"], "arguments": ""}}}}, nil)
		for _, p := range parts(function["arguments"].(string)) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}, nil)
		}
	}
	delta(map[string]any{}, choice["finish_reason"])
	if withUsage {
		chunk([]any{}, answer["usage"])
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
