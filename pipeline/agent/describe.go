package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// anyContext is what every model's context holds that can do work: of a request that takes
// less, nobody need know what it is.
const anyContext = 8192

// describeWithin is how long a server may take to say what it is.
const describeWithin = 5 * time.Second

// described asks a compatible server once how much the model's context holds. A server that
// does not say, or is away, is no failure: its refusals tell later.
func (m *remote) described(ctx context.Context) {
	if d, ok := m.dialect.(*openaiDialect); !ok || d.own || m.window.tokens.Load() > 0 || !m.asked.CompareAndSwap(false, true) {
		return
	}
	if n := m.contextTokens(ctx); n >= leastLimit {
		m.window.tokens.CompareAndSwap(0, n)
	}
}

// contextTokens is what a server says that the model's context holds; 0: nothing. How large
// the model is, it notes on the way.
//
//	GET /v1/models        llama.cpp n_params; vLLM max_model_len; OpenRouter and others context_length, Groq context_window
//	GET /props            llama.cpp, whose list has what the model was trained with
//	GET /api/ps           Ollama, while the model is loaded
//	POST /api/show        Ollama: num_ctx where the model sets it, else what the model was made for
func (m *remote) contextTokens(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	list := m.list(ctx)
	if list == nil {
		return 0 // nobody is there, or it is not for everybody to ask
	}
	l, _ := list.find(m.name)
	m.window.params.Store(l.Meta.Params / 1e6)
	if max(l.Len, l.Context, l.Window) > 0 {
		return max(l.Len, l.Context, l.Window)
	}
	root := *m.endpoint
	root.base = strings.TrimSuffix(root.base, "/v1")
	var props struct {
		Settings struct {
			Context int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if m.tell(ctx, &root, http.MethodGet, "/props", nil, &props) && props.Settings.Context > 0 {
		return props.Settings.Context
	}
	type details struct {
		Size string `json:"parameter_size"` // "7.6B"
	}
	var loaded struct {
		Models []struct {
			Name    string  `json:"name"`
			Context int64   `json:"context_length"`
			Details details `json:"details"`
		} `json:"models"`
	}
	if m.tell(ctx, &root, http.MethodGet, "/api/ps", nil, &loaded) {
		for _, l := range loaded.Models {
			if strings.TrimSuffix(l.Name, ":latest") == strings.TrimSuffix(m.name, ":latest") && l.Context > 0 {
				m.window.params.Store(int64(1000 * sizeOf(l.Details.Size)))
				return l.Context
			}
		}
	}
	var shown struct {
		Parameters string         `json:"parameters"`
		Info       map[string]any `json:"model_info"`
		Details    details        `json:"details"`
	}
	if body, err := json.Marshal(map[string]string{"model": m.name}); err != nil || !m.tell(ctx, &root, http.MethodPost, "/api/show", body, &shown) {
		return 0
	}
	m.window.params.Store(int64(1000 * sizeOf(shown.Details.Size)))
	for line := range strings.Lines(shown.Parameters) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "num_ctx" {
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				return n
			}
		}
	}
	for name, v := range shown.Info {
		if n, ok := v.(float64); ok && strings.HasSuffix(name, ".context_length") {
			return int64(n)
		}
	}
	return 0
}

// tell reads what a server says of itself, and reports whether it says that.
func (m *remote) tell(ctx context.Context, e *endpoint, method, path string, body []byte, into any) bool {
	a, err := e.exchange(ctx, method, path, body, func(event) (bool, error) { return true, nil })
	return err == nil && a.status == http.StatusOK && json.Unmarshal(a.body, into) == nil
}
