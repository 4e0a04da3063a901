package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
)

// wireRequests are the requests that testdata/wire has been recorded with.
func wireRequests() map[string]Request {
	read := Tool{Name: "read", Description: "Reads a file.", Schema: object("path", typed("string", "file"), "from?", typed("integer", "first line"))}
	list := Tool{Name: "list", Description: "Lists <a> directory & more.", Schema: object("dir?", typed("string", "directory"))}
	submit := Tool{Name: "submit", Description: "Ends.", Schema: object("findings", listOf(object("severity", oneOf("how bad", "info", "error"), "fix?", object("diff?", typed("string", "d"))), "all of them"))}
	return map[string]Request{
		"conversation": {System: "Be brief: 1 < 2 && \"so\".", MaxTokens: 1000, Tools: []Tool{read, list, submit}, Messages: []Message{
			{Role: "user", Text: "Hello <b>"},
			{Role: "assistant", Text: "I look.", Calls: []ToolCall{{ID: "id_1", Name: "read", Args: json.RawMessage(`{"path":"a.txt","from":1}`)}, {ID: "id_2", Name: "list", Args: json.RawMessage(`{}`)}}},
			{Role: "user", Results: []ToolResult{{ID: "id_1", Text: "1 one"}, {ID: "id_2", Text: "no such directory", Error: true}}, Text: "Go on."},
			{Role: "assistant", Calls: []ToolCall{{ID: "id_3", Name: "list", Args: json.RawMessage(`{"dir":"d"}`)}}},
			{Role: "user", Results: []ToolResult{{ID: "id_3", Text: ""}}},
		}},
		"reasoning": {System: "s", MaxTokens: 10, Messages: []Message{
			{Role: "user", Text: "x"},
			{Role: "assistant", Text: "t", Calls: []ToolCall{{ID: "id_1", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}}, Raw: json.RawMessage(`{"content":[{"signature":"s1g","thinking":"hm","type":"thinking"},{"id":"id_1","input":{"path":"a"},"name":"read","type":"tool_use"}],"role":"assistant"}`)},
			{Role: "user", Results: []ToolResult{{ID: "id_1", Text: "ok"}}},
		}},
		"marks": {System: "s", MaxTokens: 10, Tools: []Tool{read, list}, Messages: []Message{
			{Role: "user", Text: "shared then own", Marks: []int{6, 11}}, {Role: "assistant", Text: "a"}, {Role: "user", Text: "b"}, {Role: "assistant", Text: "c"}, {Role: "user", Text: "d"}}},
		"any tool": {System: "s", MaxTokens: 10, Tools: []Tool{read}, Force: ForceAny, Messages: []Message{{Role: "user", Text: "x"}}},
		"one tool": {System: "s", MaxTokens: 10, Tools: []Tool{read}, Force: "read", Messages: []Message{{Role: "user", Text: "x"}}},
	}
}

// serve opens a model against a handler, and says when the server is to be closed.
func serve(t *testing.T, name string, o ProviderOptions, h http.HandlerFunc) *remote {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c := &o.Credentials
	c.AnthropicURL, c.AnthropicKey, c.OpenAIURL = srv.URL, "sk-key-1234", srv.URL+"/v1"
	if name != "openai/llama" {
		c.OpenAIKey = "sk-key-1234"
	}
	m, err := NewProviders(o).remote(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWireFormat holds the requests against those that the official clients wrote.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"anthropic": "anthropic/claude-opus-5-5", "openai": "openai/gpt-6-sol", "compatible": "openai/llama"} {
		ar, err := txtar.ParseFile(filepath.Join("testdata", "wire", file+".txtar"))
		if err != nil || len(ar.Files) < 2 {
			t.Fatalf("%d recorded requests, %v", len(ar.Files), err)
		}
		for _, f := range ar.Files {
			t.Run(file+" "+f.Name, func(t *testing.T) {
				want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.Replace(f.Data, []byte("\n"), []byte(" HTTP/1.0\n"), 1))))
				if err != nil {
					t.Fatal(err)
				}
				_, body, _ := bytes.Cut(f.Data, []byte("\n\n"))
				m := serve(t, name, ProviderOptions{}, func(w http.ResponseWriter, r *http.Request) {
					got, _ := io.ReadAll(r.Body)
					if r.Method != want.Method || r.URL.Path != want.URL.Path {
						t.Errorf("%s %s, want %s %s", r.Method, r.URL, want.Method, want.URL)
					}
					for _, h := range []string{"Content-Type", "Anthropic-Version", "X-Api-Key", "Authorization"} {
						if g, w := r.Header.Get(h), want.Header.Get(h); g != w {
							t.Errorf("%s: %s, want %s", h, g, w)
						}
					}
					if d := cmp.Diff(parsed(t, body), parsed(t, got)); d != "" {
						t.Errorf("body (-want +got):\n%s", d)
					}
					w.WriteHeader(http.StatusBadRequest)
				})
				if d, ok := m.dialect.(*openaiDialect); ok {
					d.own = file == "openai"
				}
				m.Complete(t.Context(), wireRequests()[f.Name]) // what is answered is no matter
			})
		}
	}
}

// parsed reads a body and takes out that it shall be answered by a stream.
func parsed(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	delete(m, "stream")
	delete(m, "stream_options")
	return m
}

// TestAnswers plays answers as providers and other servers write them; each section
// of testdata/wire/answers.txtar is one. A first line "want …" is what comes of it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile("testdata/wire/answers.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i := range ar.Files {
		f := &ar.Files[i]
		t.Run(f.Name, func(t *testing.T) {
			provider, _, _ := strings.Cut(f.Name, ",")
			want, body, _ := strings.Cut(string(f.Data), "\n")
			m := serve(t, provider, ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
				kind := "text/event-stream"
				if strings.HasPrefix(body, "{") {
					kind = "application/json"
				}
				w.Header().Set("Content-Type", kind)
				w.Header().Set("X-Should-Retry", "false")
				io.WriteString(w, strings.ReplaceAll(strings.TrimSuffix(body, "\n"), "↵", "\r"))
			})
			r, err := m.once(t)
			got := "want "
			if err != nil {
				got += err.Error()
			} else {
				calls := r.Calls
				r.Calls = nil
				out, _ := json.Marshal(r)
				got += string(out)
				for _, c := range calls {
					got += fmt.Sprintf(" %s#%s(%s)", c.Name, c.ID, c.Args)
				}
			}
			got = strings.ReplaceAll(got, m.base, "BASE")
			if *update {
				f.Data = []byte(got + "\n" + body)
			} else if got != want {
				t.Errorf("got  %s\n%s", got, want)
			}
		})
	}
	if *update {
		if err := os.WriteFile("testdata/wire/answers.txtar", txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// never is a clock on which nothing ends.
func never(time.Duration) <-chan time.Time { return nil }

// soon lets pauses between attempts pass, and no call be late.
func soon(d time.Duration) <-chan time.Time {
	if d >= time.Minute {
		return nil
	}
	return time.After(0)
}

// once makes a single attempt.
func (m *remote) once(t *testing.T) (Response, error) {
	return m.attempt(t.Context(), pass{}, Request{MaxTokens: 10, Messages: []Message{{Role: "user", Text: "hello"}}})
}

// TestSilence checks the limits of time, on a clock of its own: nothing at all, a
// stream that falls silent, one that goes on without an end, an answer in one piece
// that never comes whole. Signs of life keep a stream going.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit time.Duration // that has to pass
		kind  string
		send  []string
		want  string
	}{
		{"no answer", 10 * time.Minute, "", nil, "did not answer within 10m0s"},
		{"a body that never comes whole", 10 * time.Minute, "application/json", []string{"{"}, "did not answer within 10m0s"},
		{"a silent stream", 5 * time.Minute, "text/event-stream", []string{": hello\n", "\n", "data: {}\n\n"}, "fell silent for 5m0s"},
		{"an endless stream", time.Hour, "text/event-stream", []string{": hello\n"}, "did not finish within 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := make(chan bool)
			limits := make(chan time.Duration, 100)
			fire := make(chan time.Time)
			after := func(d time.Duration) <-chan time.Time {
				limits <- d
				if d == tt.limit {
					return fire
				}
				return nil
			}
			m := serve(t, "openai/llama", ProviderOptions{After: after}, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				for _, s := range tt.send {
					io.WriteString(w, s)
					w.(http.Flusher).Flush()
				}
				close(sent)
				<-r.Context().Done()
			})
			go func() {
				<-sent
				if tt.kind == "text/event-stream" { // the limit begins anew with the head and each sign of life
					for n := 0; n < 1+len(tt.send); {
						if <-limits == 5*time.Minute {
							n++
						}
					}
				}
				fire <- time.Time{}
			}()
			_, err := m.once(t)
			wantFault(t, err, pipeline.FaultProvider, tt.want)
		})
	}
}

// TestAdapt checks that what a server refuses is left out from then on.
func TestAdapt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model, refuse, say string
		calls                    int
	}{
		{"stream options", "openai/llama", `"stream_options"`, "Unrecognized request argument supplied: stream_options", 3},
		{"name of the limit", "openai/llama", `"max_tokens"`, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", 3},
		{"reasoning", "openai/llama", `"reasoning_effort"`, "unknown field: reasoning_effort", 3},
		{"budget of reasoning", "anthropic/claude", `"budget_tokens"`, "thinking.budget_tokens: manual thinking is not supported by this model, use adaptive", 3},
		{"any reasoning", "anthropic/claude", `"thinking"`, "thinking: this model does not think", 4},
		{"something else", "openai/llama", `"messages"`, "messages: too spicy", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			m := serve(t, tt.model, ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if bytes.Contains(body, []byte(tt.refuse)) {
					w.WriteHeader(http.StatusBadRequest)
					json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": tt.say}})
					return
				}
				fmt.Fprint(w, `{"type":"message","content":[{"type":"text","text":"hi"}],"choices":[{"message":{"content":"hi"}}]}`)
			})
			for i := range 2 {
				r, err := m.Complete(t.Context(), Request{MaxTokens: 10, Reasoning: 2000, Messages: []Message{{Role: "user", Text: "hello"}}})
				ok := tt.name != "something else"
				if ok != (err == nil && r.Text == "hi") || slices.Contains(r.Adapted, pipeline.AdaptedRequest) != (ok && i == 0) {
					t.Errorf("%+v, %v", r, err)
				}
			}
			if n := int(calls.Load()); n != tt.calls {
				t.Errorf("%d calls, want %d: what was refused is learned once", n, tt.calls)
			}
		})
	}
}

// TestReasoningIsAskedFor checks how a budget of reasoning is written: on top of the
// output, in the provider's words, and not at all where none is set.
func TestReasoningIsAskedFor(t *testing.T) {
	t.Parallel()
	adaptive, none := &anthropicDialect{}, &anthropicDialect{}
	adaptive.thinking.Store(thinkAdaptive)
	none.thinking.Store(thinkDefault)
	for _, tt := range []struct {
		name      string
		d         dialect
		reasoning int
		want      string
	}{
		{"Anthropic", &anthropicDialect{}, 8000, `{"max_tokens":9000,"thinking":{"budget_tokens":8000,"type":"enabled"}}`},
		{"Anthropic, the least", &anthropicDialect{}, 500, `{"max_tokens":2024,"thinking":{"budget_tokens":1024,"type":"enabled"}}`},
		{"Anthropic, nothing set", &anthropicDialect{}, 0, `{"max_tokens":1000}`},
		{"Anthropic, adaptive", adaptive, 8000, `{"max_tokens":9000,"output_config":{"effort":"medium"},"thinking":{"type":"adaptive"}}`},
		{"Anthropic, by itself", none, 8000, `{"max_tokens":1000}`},
		{"OpenAI", &openaiDialect{own: true}, 20_000, `{"max_completion_tokens":21000,"reasoning_effort":"high"}`},
		{"OpenAI, nothing set", &openaiDialect{own: true}, 0, `{"max_completion_tokens":1000}`},
		{"compatible", &openaiDialect{}, 1000, `{"max_tokens":2000,"reasoning_effort":"low"}`},
	} {
		data, err := json.Marshal(tt.d.encode("m", Request{MaxTokens: 1000, Reasoning: tt.reasoning}))
		if err != nil {
			t.Fatal(err)
		}
		body := parsed(t, data)
		delete(body, "model")
		delete(body, "messages")
		if got, _ := json.Marshal(body); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestKeyIsNotTold checks that no error holds the key, whatever the provider writes.
func TestKeyIsNotTold(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openai/gpt", "anthropic/claude"} {
		for _, body := range []string{
			`data: {"error":{"message":"your key sk-key-1234 is bad"}}` + "\n\n",
			`data: {"type":"error","error":{"type":"api_error","message":"your key sk-key-1234 is bad"}}` + "\n\n",
			`data: {"type":"message_start sk-key-1234` + "\n\n",
		} {
			m := serve(t, name, ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, body)
			})
			if _, err := m.once(t); err == nil || strings.Contains(err.Error(), "sk-key-1234") {
				t.Errorf("%s, %s gives %v", name, body, err)
			}
		}
	}
}

// TestCeiling checks that the most output which may be asked for is read out of the
// refusals of those that have a limit.
func TestCeiling(t *testing.T) {
	t.Parallel()
	for said, tt := range map[string]struct {
		room int // what the server takes
		want []int
	}{
		"max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-20250514":                                                                                                {32000, []int{64_000, 32_000, 32_000}},
		"max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000.":                                                                                          {16384, []int{64_000, 16_384, 16_384}},
		"'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 32,768 tokens and your request has 20000 input tokens (64000 > 32768 - 20000). (BadRequestError, 400)": {12768, []int{64_000, 32_214, 16_107, 8053, 8053}},
		"max_tokens must be a number for gpt-4-0613": {10_000, nil},
		"messages: 3 of 1000 are bad":                {10_000, nil},
	} {
		asked := []int{}
		m := serve(t, "openai/llama", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet || r.URL.Path == "/api/show" { // it says nothing of itself
				http.NotFound(w, r)
				return
			}
			var in struct {
				MaxTokens int `json:"max_tokens"`
			}
			json.NewDecoder(r.Body).Decode(&in)
			asked = append(asked, in.MaxTokens)
			if in.MaxTokens > tt.room {
				w.WriteHeader(http.StatusBadRequest)
				json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": said}})
				return
			}
			answerOK(w)
		})
		req := hello
		req.MaxTokens, req.Reasoning = 48_000, 16_000
		for range 2 {
			if _, err := m.Complete(t.Context(), req); (err == nil) != (tt.want != nil) {
				t.Errorf("%q gives %v", said, err)
			}
		}
		if tt.want != nil && !slices.Equal(asked, tt.want) {
			t.Errorf("%q: asked for %v, want %v", said, asked, tt.want)
		}
	}
}

// TestRedirect checks that the key goes to no other address.
func TestRedirect(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, name := range []string{"anthropic/x", "openai/x"} {
		m := serve(t, name, ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
		_, err := m.Complete(t.Context(), Request{MaxTokens: 10, Messages: []Message{{Role: "user", Text: "hello"}}})
		wantFault(t, err, pipeline.FaultProvider, "answered 307 and sends elsewhere", "_base_url", m.base)
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// FuzzStream feeds both readers whatever a server may send.
func FuzzStream(f *testing.F) {
	ar, err := txtar.ParseFile("testdata/wire/answers.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range ar.Files {
		_, body, _ := strings.Cut(string(a.Data), "\n")
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range []dialect{&anthropicDialect{}, &openaiDialect{}} {
			st := d.stream()
			err := readEvents(bytes.NewReader(data), func(ev *event) bool {
				if ev == nil {
					return true
				}
				done, err := st.add(*ev)
				return !done && err == nil
			})
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			st.finished()
			st.response()
			d.decode(data)
		}
	})
}

// Covers I1: what a provider wants back of a model's turn comes back to it, also when what
// was written is left out by then, and a provider that takes tools elsewhere is asked there.
func TestReasoningComesBack(t *testing.T) {
	t.Parallel()
	answer := func(more, call string) string {
		return `{"choices":[{"message":{"role":"assistant","content":null` + more + `,"tool_calls":[{"id":"c1","type":"function"` + call + `,"function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	}
	sealed := `{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[],"encrypted_content":"seal"},{"type":"function_call","id":"f","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"}],"usage":{"input_tokens":1,"output_tokens":1}}`
	for name, tt := range map[string]struct {
		answer, want, without string // what must be in the second request, and what only where it comes back
		chat                  string // refusal of chat completions
	}{
		"DeepSeek":   {answer: answer(`,"reasoning_content":"hm"`, ""), want: `"reasoning_content":"hm"`},
		"OpenRouter": {answer: answer(`,"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]`, ""), want: `"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]`},
		"Gemini":     {answer: answer("", `,"extra_content":{"google":{"thought_signature":"s"}}`), want: `"extra_content":{"google":{"thought_signature":"s"}}`},
		"Responses":  {answer: sealed, want: `{"type":"reasoning","id":"r","summary":[],"encrypted_content":"seal"}`, chat: "Function tools with reasoning_effort are not supported. To use function tools, use /v1/responses."},
	} {
		var bodies []string
		m := serve(t, "openai/gpt", ProviderOptions{After: never}, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if chat := strings.HasSuffix(r.URL.Path, "/chat/completions"); chat && tt.chat != "" {
				w.WriteHeader(http.StatusBadRequest)
				json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": tt.chat}})
				return
			}
			bodies = append(bodies, string(body))
			io.WriteString(w, tt.answer)
		})
		req := Request{MaxTokens: 1000, Tools: []Tool{{Name: "read", Schema: object("path", typed("string", "file"))}}, Messages: []Message{{Role: "user", Text: "x"}}}
		r, err := m.Complete(t.Context(), req)
		if err != nil || len(r.Calls) != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		r.Calls[0].Args = json.RawMessage(`{"path":"elided"}`)
		req.Messages = append(req.Messages, Message{Role: "assistant", Text: r.Text, Calls: r.Calls, Raw: r.Raw}, Message{Role: "user", Results: []ToolResult{{ID: "c1", Text: "ok"}}})
		if _, err := m.Complete(t.Context(), req); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(bodies) != 2 || !strings.Contains(bodies[1], tt.want) || !strings.Contains(bodies[1], "elided") || strings.Contains(bodies[0], tt.want) {
			t.Errorf("%s: asked with\n%s\nwant it to contain %s", name, bodies[len(bodies)-1], tt.want)
		}
	}
}

// Covers I1: a server that cannot be used as it is set up is named with what helps, and no
// run waits for it where the operator is there.
func TestServerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for said, tt := range map[string]struct {
		status int
		say    string
	}{
		`{"error":{"message":"tools param requires --jinja flag","type":"server_error","code":500}}`:                                                 {500, "--jinja"},
		`{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`: {400, "--enable-auto-tool-choice"},
		`{"error":{"message":"registry.ollama.ai/library/codellama:7b does not support tools","type":"api_error"}}`:                                  {400, "choose a model that calls tools"},
		`{"error":{"message":"No endpoints found that support tool use.","code":404}}`:                                                               {404, "choose a model that calls tools"},
		`<html>Open WebUI</html>`: {200, "openai_base_url"},
		`{"choices":[]}`:          {200, "cannot be read"},
	} {
		m := serve(t, "openai/llama", ProviderOptions{Attended: true, After: soon}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, said)
		})
		_, err := m.Complete(t.Context(), hello)
		var f *pipeline.Fault
		if !errors.As(err, &f) || !strings.Contains(f.Message, tt.say) || !f.Final {
			t.Errorf("%s gives %+v, want a fault that says %q", said, f, tt.say)
		}
	}
}

// Covers I1: Gemini's quota of a minute is a limit of the rate, and says in the body how long to wait.
func TestQuotaOfAMinute(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 3.2s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"3s"}]}}`
	for body, want := range map[string]kind{said: kindLimited, "[" + said + "]": kindLimited,
		`{"error":{"message":"You exceeded your current quota, please check your plan.","type":"insufficient_quota"}}`: kindCredit} {
		f := (&endpoint{}).refusal("/", answer{status: http.StatusTooManyRequests, body: []byte(body)}, time.Now())
		if f.kind != want || (f.wait == 3*time.Second) != (want == kindLimited) {
			t.Errorf("%s is %s, to be asked again after %v; want %s", body, f.kind, f.wait, want)
		}
	}
}
