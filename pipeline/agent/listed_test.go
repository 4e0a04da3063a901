package agent

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a model costs is read from its provider's list where that has prices; a much cheaper
// one is one that the provider lists and whose price is known. Covers L2.
func TestProvidersList(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/models" || r.URL.Path == "/v1/models" {
			io.WriteString(w, `{"data":[{"id":"vendor/big","pricing":{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0.0000003"}},{"id":"vendor/free","context_length":"8k","pricing":{"prompt":0,"completion":"0"}},
				{"id":"plain"},{"id":"gpt-6-sol"},{"id":"gpt-6.1-terra"},{"id":"gpt-6-luna"},{"id":"gpt-5.4-nano"},{"id":"unheard-of"},{"id":"claude-opus-5-5"},{"id":"claude-sonnet-5-5"}]}`)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	for model, want := range map[string]string{"vendor/big": "{3 15 0.3 0 0 <nil>} true", "vendor/free": "false", "plain": "false", "absent": "false"} {
		p, ok := ListedPrice(t.Context(), "openai/"+model, CredentialsOf("openai", "k", srv.URL+"/api/v1"))
		if got := fmt.Sprint(p, ok); !strings.HasSuffix(got, want) {
			t.Errorf("%s costs %s, want %s", model, got, want)
		}
	}
	for model, want := range map[string]string{"openai/gpt-6-sol": "openai/gpt-6-luna", "openai/gpt-5.4-nano": "", "openai/vendor/big": "", "anthropic/claude-opus-5-5": "", "tape:x": ""} {
		provider, _, _ := strings.Cut(model, "/")
		if got := Cheaper(t.Context(), model, CredentialsOf(provider, "k", srv.URL+map[string]string{"openai": "/v1"}[provider])); got != want {
			t.Errorf("much cheaper than %s is %q, want %q", model, got, want)
		}
	}
}

// Behind OpenAI's dialect Claude is told up to where to cache, which no other is; a server that
// refuses the marks, or parts in the place of a text, gets none from then on.
func TestClaudeIsMarkedToCache(t *testing.T) {
	t.Parallel()
	const mark = `[{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}]`
	for name, tt := range map[string]struct {
		model, refuse string
		want          int // marks of the last request
		calls         int
	}{
		"OpenRouter":      {model: "anthropic/claude-sonnet-5-5", want: 3, calls: 2},
		"another model":   {model: "qwen/qwen3", calls: 2},
		"marks refused":   {model: "claude-via-proxy", refuse: "cache_control: Extra inputs are not permitted", calls: 3},
		"strings are all": {model: "claude-via-proxy", refuse: "messages.0.content must be a string", calls: 3},
	} {
		var bodies []string
		m := serve(t, "openai/"+tt.model, ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			if tt.refuse != "" && strings.Contains(string(body), "cache_control") {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":%q}}`, tt.refuse)
				return
			}
			answerOK(w)
		})
		req := Request{System: "rules", MaxTokens: 10, Messages: []Message{{Role: "user", Text: "task"}, {Role: "assistant", Text: "so", Calls: []ToolCall{{ID: "1", Name: "read", Args: []byte(`{}`)}}},
			{Role: "user", Results: []ToolResult{{ID: "1", Text: "file"}}}}}
		for range 2 {
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		last := bodies[len(bodies)-1]
		marks := 0
		for _, text := range []string{"rules", "task", "file"} {
			marks += strings.Count(last, fmt.Sprintf(mark, text))
		}
		if marks != tt.want || strings.Count(last, "cache_control") != tt.want || len(bodies) != tt.calls {
			t.Errorf("%s: %d marks in %d calls, want %d in %d:\n%s", name, marks, len(bodies), tt.want, tt.calls, last)
		}
	}
}
