package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forge/cmd/forge/settings"
	"forge/pipeline/config"
)

// TestModels checks that every model which the settings name is looked at, once.
func TestModels(t *testing.T) {
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"llama"},{"id":"qwen"}]}`)
	}))
	defer srv.Close()
	for _, tt := range []struct {
		models map[config.Role]string
		say    []string
		lists  int
	}{
		{nil, []string{"no model is set", "FORGE_MODEL"}, 0},
		{map[config.Role]string{"planner": "openai/llama", "tester": "openai/llama", "reviewer": "openai/qwen"}, nil, 2},
		{map[config.Role]string{"planner": "openai/lama", "tester": "anthropic/claude"},
			[]string{`does not know the model lama (did you mean "llama"?)`, "ANTHROPIC_API_KEY", srv.URL}, 1},
	} {
		clear(asked)
		cfg := settings.Config{OpenAIURL: srv.URL + "/v1", Run: config.Config{Models: tt.models}}
		err := Models(cfg).Check(t.Context())
		if (err == nil) != (tt.say == nil) || asked["/v1/models"] != tt.lists {
			t.Errorf("%v: %v, after %v", tt.models, err, asked)
		}
		for _, say := range tt.say {
			if !strings.Contains(fmt.Sprint(err), say) {
				t.Errorf("%v: %v, want it to say %q", tt.models, err, say)
			}
		}
	}
}
