package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/pipeline"
)

// TestCheck covers what is told before a run is made: each problem with the address
// and what to set, and no call of a model where the list of models says it.
func TestCheck(t *testing.T) {
	t.Parallel()
	const list = `{"object":"list","data":[{"id":"llama3:8b"},{"id":"models/gemma"}]}`
	ok := `{"type":"message","content":[],"choices":[{"message":{"content":"ok"}}],"usage":{}}`
	denied := `{"error":{"message":"Incorrect API key provided: sk-key-1234"}}`
	type answers map[string]string // path → status and body
	for _, tt := range []struct {
		name, model string
		answers     answers
		say         []string // nothing: it can be used
		passes      bool
		asked       bool // the model is asked for a word
	}{
		{name: "listed", model: "openai/llama3:8b", answers: answers{"/v1/models": "200 " + list}},
		{name: "listed with a prefix", model: "openai/gemma", answers: answers{"/v1/models": "200 " + list}},
		{name: "an alias", model: "openai/llama3", answers: answers{"/v1/models": "200 " + list, "/v1/models/llama3": `200 {"id":"llama3:8b"}`}},
		{name: "unknown", model: "openai/llama3:8", answers: answers{"/v1/models": "200 " + list, "/v1/models/llama3:8": `404 {"error":{"message":"no"}}`},
			say: []string{`does not know the model llama3:8 (did you mean "llama3:8b"?)`, "BASE", "correct model"}},
		{name: "unknown, and no such path", model: "openai/qwen", answers: answers{"/v1/models": "200 " + list}, say: []string{"does not know the model qwen (it has llama3:8b, models/gemma)"}},
		{name: "Anthropic", model: "anthropic/claude", answers: answers{"/v1/models": `200 {"data":[{"type":"model","id":"claude"}],"has_more":false}`}},
		{name: "no list", model: "openai/llama", answers: answers{"/v1/chat/completions": "200 " + ok}, asked: true},
		{name: "no list, Anthropic", model: "anthropic/claude", answers: answers{"/v1/messages": "200 " + ok}, asked: true},
		{name: "no list, and the question is refused", model: "openai/llama", answers: answers{"/v1/chat/completions": `400 {"error":{"message":"max_tokens is too small"}}`}, asked: true},
		{name: "a list that was never made", model: "openai/llama",
			answers: answers{"/v1/models": "501 Unsupported method", "/v1/chat/completions": "200 " + ok}, asked: true},
		{name: "no list for this key", model: "openai/llama", answers: answers{"/v1/models": `403 {"error":{"message":"no"}}`, "/v1/chat/completions": "200 " + ok}, asked: true},
		{name: "no list, and an unknown model", model: "openai/llama", answers: answers{"/v1/chat/completions": `404 {"error":{"message":"model not found"}}`}, say: []string{"does not know the model llama", "BASE"}, asked: true},
		{name: "wrong key", model: "openai/llama", answers: answers{"/v1/models": "401 " + denied}, say: []string{"refused the API key (401, BASE)", "check the key"}},
		{name: "wrong key, Anthropic", model: "anthropic/claude", answers: answers{"/v1/models": "401 " + denied}, say: []string{"Anthropic refused the API key"}},
		{name: "a web page", model: "openai/llama", answers: answers{"/": "200 <!DOCTYPE html><title>Open WebUI</title>"}, say: []string{"BASE/chat/completions answered with a web page (200)", "set openai_base_url"}, asked: true},
		{name: "no API", model: "anthropic/claude", answers: answers{}, say: []string{"BASE/v1/messages answered 404", "set anthropic_base_url"}, asked: true},
		{name: "overloaded", model: "openai/llama", answers: answers{"/v1/models": `503 {"error":"busy"}`}, say: []string{"overloaded or down (503"}, passes: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = asked || r.Method == http.MethodPost
				answer, known := tt.answers[r.URL.Path]
				if !known {
					answer, known = tt.answers["/"]
				}
				if !known {
					http.NotFound(w, r)
					return
				}
				var status int
				fmt.Sscan(answer, &status)
				w.WriteHeader(status)
				fmt.Fprint(w, answer[4:])
			}))
			defer srv.Close()
			base := srv.URL
			c := Credentials{AnthropicKey: "sk-key-1234", OpenAIKey: "sk-key-1234", AnthropicURL: strings.Replace(base, "http://", "http://user:pass@", 1), OpenAIURL: strings.Replace(base, "http://", "http://user:pass@", 1) + "/v1/"}
			err := Check(t.Context(), tt.model, c)
			if asked != tt.asked {
				t.Errorf("the model is asked: %v, want %v", asked, tt.asked)
			}
			if len(tt.say) == 0 {
				if err != nil {
					t.Errorf("Check gives %v", err)
				}
				return
			}
			if strings.HasPrefix(tt.model, "openai") {
				base += "/v1"
			}
			var f *pipeline.Fault
			if !errors.As(err, &f) || f.Final == tt.passes {
				t.Fatalf("Check gives %#v, want a fault that passes: %v", err, tt.passes)
			}
			for _, say := range tt.say {
				if !strings.Contains(strings.ReplaceAll(f.Message, base, "BASE"), say) {
					t.Errorf("Check says %q, want %q", f.Message, say)
				}
			}
			if strings.Contains(f.Message, "pass@") || strings.Contains(f.Message, "sk-key-1234") {
				t.Errorf("Check says %q: that holds a secret", f.Message)
			}
		})
	}
}

// TestCheckSettings covers what can be told without a call, and a server that is not there.
func TestCheckSettings(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, tt := range map[string]struct {
		creds Credentials
		say   []string
	}{
		"":                 {Credentials{}, []string{"no model is set", "FORGE_MODEL"}},
		"llama":            {Credentials{}, []string{"want anthropic/MODEL, openai/MODEL"}},
		"mistral/large":    {Credentials{}, []string{`provider "mistral" is not known`, "openai with a base URL"}},
		"anthropic/claude": {Credentials{}, []string{"ANTHROPIC_API_KEY"}},
		"openai/gpt":       {Credentials{OpenAIURL: "localhost:11434"}, []string{"openai_base_url is not an address", "http://HOST/v1"}},
		"openai/llama":     {Credentials{OpenAIURL: gone.URL + "/v1"}, []string{"could not be reached at " + gone.URL + "/v1", "openai_base_url"}},
		"tape:none.txtar":  {Credentials{}, []string{"none.txtar"}},
		"tape:check.go":    {Credentials{}, []string{"no section"}},
	} {
		err := Check(t.Context(), name, tt.creds)
		for _, say := range tt.say {
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("Check(%q) gives %v, want it to say %q", name, err, say)
			}
		}
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	ctx, cancel := context.WithDeadline(t.Context(), pastDeadline)
	defer cancel()
	wantFault(t, Check(ctx, "openai/llama", Credentials{OpenAIURL: hangs.URL}), pipeline.FaultProvider, "did not answer in time", hangs.URL)
}
