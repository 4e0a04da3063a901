package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var someTools = []Tool{{Name: "read"}, {Name: "write"}, {Name: "run"}, {Name: "submit"}}

// Covers I1: a call that a server did not take out of the text is read, in the forms in which models
// are taught to write one, and nothing else is.
func TestCallsInText(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		// Hermes and Qwen, with and without an end, with an invented result behind.
		"I look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>":                                                  `I look.|read{"path":"a"}`,
		"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_response>\nx\n</tool_response>":                     `|read{"path":"a"}`,
		"<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>\n<tool_call>{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}": `|read{"path":"a"}|run{"command":"ls"}`,
		// Fenced and bare, in one piece or in lists, with the names that templates use.
		"I will do this:\n```json\n{\n \"name\": \"read\",\n \"arguments\": {\"path\": \"a\"}\n}\n```": `I will do this:|read{"path":"a"}`,
		`{"name": "read", "parameters": {"path": "a"}}`:                                                `|read{"path":"a"}`,
		`{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`:                `|read{"path":"a"}`,
		`[TOOL_CALLS][{"name": "read", "arguments": {"path": "a"}}, {"name": "run", "arguments": {}}]`: `|read{"path":"a"}|run{}`,
		`<|python_tag|>{"name": "read", "parameters": {"path": "a"}}`:                                  `|read{"path":"a"}`,
		// Qwen3-Coder and Llama.
		"<tool_call>\n<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nx = {\n}\n</parameter>\n</function>\n</tool_call>": `|write{"content":"x = {\n}","path":"a"}`,
		`<function=read>{"path": "a"}</function>`: `|read{"path":"a"}`,
		// Line breaks in a text as they are.
		"```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"one\n\ttwo\"}}\n```": `|write{"content":"one\n\ttwo","path":"a"}`,
		// Names around the tool's.
		`{"name": "functions.read", "arguments": {}}`:    `|read{}`,
		`{"name": "read_file", "arguments": {}}`:         `|read{}`,
		`{"name": "read_and_write", "arguments": {}}`:    `|read_and_write{}`,
		`{"name": "search_code_files", "arguments": {}}`: `|search_code_files{}`,
		// Reasoning is not said.
		"<think>\nI could {\"name\": \"run\", \"arguments\": {}}\n</think>\n\n{\"name\": \"read\", \"arguments\": {}}": `|read{}`,
		"hm\n</think>\nDone.": `Done.`,
		"<think>and so on":    ``,
		// No calls.
		"The file has\n{\"name\": \"x\", \"version\": \"1\"}":                              "The file has\n{\"name\": \"x\", \"version\": \"1\"}",
		"Use `{\"name\": \"x\"}`, as\n```json\n{\"name\": \"x\", \"arguments\": [1]}\n```": "Use `{\"name\": \"x\"}`, as\n```json\n{\"name\": \"x\", \"arguments\": [1]}\n```",
		`It calls f({"name": "read", "arguments": {}}).`:                                   `It calls f({"name": "read", "arguments": {}}).`,
		`{"name": "write", "arguments": {"path": "a", "content": "cut o`:                   `{"name": "write", "arguments": {"path": "a", "content": "cut o`,
		"<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nx":      "<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nx",
	} {
		r := tolerant(Response{Text: said, Stop: StopEnd}, someTools)
		got := r.Text
		for _, c := range r.Calls {
			got += "|" + c.Name + canonical(c.Args)
		}
		if got != want {
			t.Errorf("%q\nis read as %q\nwant       %q", said, got, want)
		}
		if (len(r.Calls) > 0) != (r.Stop == StopTools) || (got != said) != (len(r.Adapted) > 0) {
			t.Errorf("%q: stop %s, adapted %q", said, r.Stop, r.Adapted)
		}
	}
	if r := tolerant(Response{Text: `{"name": "read", "arguments": {}}`, Stop: StopEnd}, nil); len(r.Calls) > 0 {
		t.Error("a call is read where no tool was offered")
	}
}

// Whatever is said: what was read as calls are objects, and the text before them was said.
func FuzzCallsInText(f *testing.F) {
	f.Add("<tool_call>{\"name\":\"read\",\"arguments\":{\"a\":\"b\nc\"}}</tool_call>")
	f.Add("<function=a><parameter=b>c</parameter></function>")
	f.Add("```json\n[{\"name\":\"a\",\"args\":\"{}\"}]")
	f.Fuzz(func(t *testing.T, said string) {
		before, calls := callsIn(said)
		if !strings.Contains(said, before) {
			t.Errorf("%q was never said in %q", before, said)
		}
		for _, c := range calls {
			var v map[string]any
			if c.ID == "" || c.Name == "" || json.Unmarshal(c.Args, &v) != nil && !json.Valid(c.Args) {
				t.Errorf("a call without a name, an id or arguments: %+v", c)
			}
		}
	})
}

// Covers I1: what servers say of their limits; the refusals as they were recorded.
func TestLimitsSaid(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][2]int64{
		"This model's maximum context length is 16384 tokens. However, you requested 16000 output tokens and your prompt contains at least 2300 input tokens, for a total of at least 18300 tokens. (parameter=input_tokens, value=2300)": {16384, 2300},
		"This endpoint's maximum context length is 32768 tokens. However, you requested about 33012 tokens (15012 of text input, 2000 of tool input, 16000 in the output).":                                                               {32768, 0},
		"the request exceeds the available context size. try increasing the context size or enable context shift n_ctx: 4096 (exceed_context_size_error, 400)":                                                                            {4096, 0},
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.":                                                                                                                         {128000, 0},
		"prompt is too long: 215000 tokens > 200000 maximum":                                                               {200000, 0},
		"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).":                          {1048576, 0},
		"max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-20250514":       {0, 32000},
		"max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000.": {0, 16384},
		"Invalid value for 'maxOutputTokens': 64000, must be between 1 and 8192":                                           {0, 8192},
		"max_tokens must be a number for gpt-4-0613":                                                                       {0, 0},
		"messages: 3 of 1000 are bad": {0, 0},
	} {
		if got := [2]int64{contextSaid(said), outputSaid(said, 64_000)}; got[0] != want[0] || want[0] == 0 && got[1] != want[1] {
			t.Errorf("%q names %d, want %d", said, got, want)
		}
	}
}

// Covers I1: what is kept of reasoning grows in a stream as the provider means it.
func TestFieldsGrow(t *testing.T) {
	t.Parallel()
	var f fields
	for _, part := range []string{`{"reasoning":"a","details":[{"x":1}],"seal":{"k":1}}`, `{"reasoning":"b","details":[{"x":2}],"seal":{"k":2}}`, `{"reasoning":null}`} {
		f.grow(unnamed([]byte(part)))
	}
	got, _ := json.Marshal(f)
	if d := cmp.Diff(`{"details":[{"x":1},{"x":2}],"reasoning":"ab","seal":{"k":2}}`, string(got)); d != "" {
		t.Error(d)
	}
}

// A name means the one tool that it holds; what hands in a result may be called submit.
func TestToolNamed(t *testing.T) {
	t.Parallel()
	tools := []Tool{{Name: "read"}, {Name: "search"}, {Name: submitCriteria}, {Name: submitReview}}
	for said, want := range map[string]string{
		"read": "read", "functions.read": "read", "read_file": "read", "Read": "read", "read_or_search": "read_or_search", "write": "write",
		"submit": "submit", "functions.submit": "submit", "submit<|channel|>commentary": "submit",
		"submit_review": "submit_review", "functions.submit_review": "submit_review", "submit_findings": "submit",
	} {
		if got := toolNamed(said, tools); got != want {
			t.Errorf("%q means %q, want %q", said, got, want)
		}
	}
}
