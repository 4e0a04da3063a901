package agenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"forge/pipeline/agent"
)

const state = `<state conversation=\"planner\" iteration=\"0\" attempt=\"1\" step=\"1\"/>`

// TestServer speaks both formats by hand, rightly and wrongly.
func TestServer(t *testing.T) {
	t.Parallel()
	srv, err := NewServer([]byte("-- planner 0/1 --\nWords.\n>>> read\npath: a\n-- planner 0/2 --\n@stop refusal\nNo.\n-- planner 0/3 --\n@error 429 slow down\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	second := strings.Replace(state, `step=\"1\"`, `step=\"2\"`, 1)
	third := strings.Replace(state, `step=\"1\"`, `step=\"3\"`, 1)
	tests := []struct {
		name, path, body string
		status           int
		say              string
	}{
		{"Anthropic", "/v1/messages", `{"model":"m","max_tokens":5,"system":"s","messages":[{"role":"user","content":"` + state + `"}]}`, 200, `"stop_reason":"tool_use"`},
		{"Anthropic, blocks", "/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"` + second + `"}]}]}`, 200, `"stop_reason":"refusal"`},
		{"Anthropic, slow", "/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"` + third + `"}]}`, 429, "slow down"},
		{"Anthropic, forced", "/v1/messages", `{"model":"m","max_tokens":5,"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"x"}]}`, 400, "forced tool use"},
		{"Anthropic, empty turn", "/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[]}]}`, 400, "empty"},
		{"Anthropic, no model", "/v1/messages", `{"max_tokens":5}`, 400, "required"},
		{"Anthropic, no JSON", "/v1/messages", `{`, 400, "read the request"},
		{"OpenAI", "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"` + state + `"}]}`, 200, `"finish_reason":"tool_calls"`},
		{"OpenAI, refusal", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + second + `"}]}`, 200, `"refusal":"No."`},
		{"OpenAI, no state", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 400, "state"},
		{"OpenAI, no JSON", "/v1/chat/completions", `[]`, 400, "read the request"},
		{"OpenAI, call without result", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"a","arguments":"{}"}}]}]}`, 400, "a tool call has no result"},
		{"OpenAI, result without call", "/v1/chat/completions", `{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":"x"}]}`, 400, "answers no call"},
		{"elsewhere", "/v1/complete", `{}`, 404, ""},
	}
	for _, tt := range tests {
		status, body := post(t, srv.URL+tt.path, tt.body, "key")
		if status != tt.status || !strings.Contains(body, tt.say) {
			t.Errorf("%s: %d %s, want %d and %s", tt.name, status, body, tt.status, tt.say)
		}
		if tt.status != 404 && !json.Valid([]byte(body)) {
			t.Errorf("%s: the answer is not JSON: %s", tt.name, body)
		}
	}
	if status, _ := post(t, srv.URL+"/v1/messages", `{}`, ""); status != 401 {
		t.Errorf("without a key: %d, want 401", status)
	}
	if n := len(srv.Requests()); n != len(tests)-1 { // the 404 and the one without a key are not read
		t.Errorf("%d requests were kept, want %d", n, len(tests)-1)
	}
}

func post(t *testing.T, url, body, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(out)
}

// Whoever looks whether a model is there, as the server does when it starts, is told so.
func TestModelsAreThere(t *testing.T) {
	t.Parallel()
	srv, err := NewServer([]byte("-- planner 0/1 --\nWords.\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := agent.Credentials{AnthropicKey: "key", AnthropicURL: srv.URL, OpenAIURL: srv.URL + "/v1"}
	for _, name := range []string{"anthropic/claude", "openai/llama"} {
		if err := agent.Check(t.Context(), name, c); err != nil {
			t.Errorf("Check(%s): %v", name, err)
		}
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d calls were made of a model", n)
	}
}
