package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
)

// A server's own description holds a request to what the model's context has room for. It is
// asked once; one that describes nothing is asked for as much as is wanted, and what the
// settings say goes before. Covers I1.
func TestContextDescribed(t *testing.T) {
	t.Parallel()
	const list = `{"object":"list","data":[{"id":"other","max_model_len":1},{"id":"llama","object":"model"%s}]}`
	for name, tt := range map[string]struct {
		says map[string]string
		set  int
		want int // tokens of output that are asked for; 48,000 are wanted
	}{
		"vLLM":              {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, `,"max_model_len":32768`)}, want: 32768},
		"OpenRouter":        {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, `,"context_length":16384,"pricing":{"prompt":"0.1"}`)}, want: 16384},
		"llama.cpp":         {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, `,"meta":{"n_ctx_train":131072}`), "GET /props": `{"default_generation_settings":{"id":0,"n_ctx":12288},"total_slots":1}`}, want: 12288},
		"Ollama, loaded":    {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, ``), "GET /api/ps": `{"models":[{"name":"llama:latest","context_length":10240}]}`, "POST /api/show": `{"model_info":{"llama.context_length":131072}}`}, want: 10240},
		"Ollama, num_ctx":   {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, ``), "GET /api/ps": `{"models":[]}`, "POST /api/show": `{"parameters":"stop \"<|x|>\"\nnum_ctx                        20480","model_info":{"llama.context_length":131072}}`}, want: 20480},
		"Ollama, otherwise": {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, ``), "POST /api/show": `{"parameters":"","model_info":{"general.architecture":"llama","llama.context_length":40960}}`}, want: 40960},
		"nothing":           {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, ``)}, want: 48_000},
		"no list":           {want: 48_000},
		"one for all":       {says: map[string]string{"": `{"object":"list","data":[{"id":"llama"}]}`}, want: 48_000},
		"settings":          {says: map[string]string{"GET /v1/models": fmt.Sprintf(list, `,"max_model_len":32768`)}, set: 9000, want: 9000},
	} {
		var asked, wanted []string
		m := serve(t, "openai/llama", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			at := r.Method + " " + r.URL.Path
			if strings.HasSuffix(at, "/chat/completions") {
				var in struct {
					MaxTokens int `json:"max_tokens"`
				}
				json.NewDecoder(r.Body).Decode(&in)
				wanted = append(wanted, fmt.Sprint(in.MaxTokens))
				answerOK(w)
				return
			}
			asked = append(asked, at)
			if body := firstOf(tt.says[at], tt.says[""]); body != "" {
				io.WriteString(w, body)
				return
			}
			http.NotFound(w, r)
		})
		req := hello
		req.MaxTokens, req.Context = 48_000, tt.set
		for range 2 {
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if slices.ContainsFunc(asked, func(s string) bool { return strings.Count(strings.Join(asked, "\n")+"\n", s+"\n") > 1 }) || tt.set > 0 && asked != nil {
			t.Errorf("%s: asked for %q", name, asked)
		}
		for _, n := range wanted {
			var got int
			fmt.Sscan(n, &got)
			if got > tt.want || got < tt.want-tt.want/32-200 {
				t.Errorf("%s: %s tokens of output are asked for, want what %d leaves", name, n, tt.want)
			}
		}
	}
}

// A server that cuts prompts and says nothing is found by its count, and named once with what
// helps. What it keeps of the prompt before it may leave out. Covers I1.
func TestCutPrompts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		usage string
		more  []Message
		want  bool
	}{
		"cut":     {usage: `{"prompt_tokens":2048,"completion_tokens":1}`, want: true},
		"whole":   {usage: `{"prompt_tokens":4100,"completion_tokens":1}`},
		"kept":    {usage: `{"prompt_tokens":900,"completion_tokens":1}`, more: []Message{{Role: "assistant", Text: "a"}, {Role: "user", Text: "b"}}},
		"uncount": {usage: `null`},
	} {
		var log bytes.Buffer
		m := serve(t, "openai/llama", ProviderOptions{After: never, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"model":"llama","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":%s}`, tt.usage)
		})
		req := Request{MaxTokens: 100, Messages: append([]Message{{Role: "user", Text: strings.Repeat("word ", 4000)}}, tt.more...)}
		for range 2 {
			r, err := m.Complete(t.Context(), req)
			if err != nil || slices.Contains(r.Adapted, pipeline.AdaptedCut) != tt.want {
				t.Errorf("%s: adapted %q, %v", name, r.Adapted, err)
			}
		}
		if n := strings.Count(log.String(), "OLLAMA_CONTEXT_LENGTH"); (n == 1) != tt.want || n > 1 {
			t.Errorf("%s: it is told %d times:\n%s", name, n, log.String())
		}
	}
}

// TestProbeForm finds out how a model is to be asked. What a run would choose by itself need
// not be set; a model that calls no tools needs it, and its run ends with what helps. Covers A3.
func TestProbeForm(t *testing.T) {
	t.Parallel()
	const (
		words = `{"choices":[{"message":{"content":"Sure!"}}]}`
		calls = `{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"submit","arguments":"{}"}}]}}]}`
	)
	for name, tt := range map[string]struct {
		answer  string // to a request with tools; "": it refuses those
		context int
		params  int
		limits  Limits
		want    Ability
		err     string
	}{
		"calls tools":              {answer: calls, want: Ability{Form: FormTools}},
		"calls none":               {answer: words, want: Ability{Form: FormPlain, Unset: true, Forced: true}},
		"refuses tools":            {want: Ability{Form: FormPlain, Unset: true}},
		"calls none and has to":    {answer: words, limits: Limits{Form: FormTools}, want: Ability{Form: FormTools, Forced: true}, err: "form: plain"},
		"refuses tools and has to": {limits: Limits{Form: FormTools}, want: Ability{Form: FormTools}, err: "form: plain"},
		"a small window":           {answer: calls, context: 4096, want: Ability{Form: FormPlain}},
		"a small model":            {answer: calls, params: 1_777_088_000, want: Ability{Form: FormPlain}},
		"a large model":            {answer: calls, params: 30_532_122_624, want: Ability{Form: FormTools}},
		"as it is set":             {answer: calls, limits: Limits{Form: FormPlain}, want: Ability{Form: FormPlain}},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch tools := bytes.Contains(body, []byte(`"tools"`)); {
			case r.URL.Path == "/v1/models":
				fmt.Fprintf(w, `{"data":[{"id":"some","meta":{"n_params":%d}}]}`, tt.params)
			case r.URL.Path == "/props" && tt.context > 0:
				fmt.Fprintf(w, `{"default_generation_settings":{"n_ctx":%d}}`, tt.context)
			case r.Method != http.MethodPost || r.URL.Path == "/api/show":
				http.NotFound(w, r)
			case tools && tt.answer == "":
				http.Error(w, `{"error":{"message":"some does not support tools"}}`, http.StatusBadRequest)
			case tools:
				io.WriteString(w, tt.answer)
			default:
				io.WriteString(w, words)
			}
		}))
		got, err := Probe(t.Context(), "openai/some", tt.limits, Credentials{OpenAIURL: srv.URL + "/v1"})
		srv.Close()
		if got.Form == FormPlain && got.Why == "" {
			t.Errorf("%s: it does not say why", name)
		}
		if got.Why, got.Took, got.Context, got.Adapted = "", 0, 0, nil; !reflect.DeepEqual(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, err, tt.want, tt.err)
		}
	}
}
