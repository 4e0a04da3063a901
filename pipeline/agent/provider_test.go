package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/agent/agenttest"
	"forge/pipeline/config"
)

// openAt opens a model against a server, by the name that the settings would have.
func openAt(t *testing.T, name, url string) agent.Model {
	t.Helper()
	m, err := openModel(name, agent.Credentials{AnthropicKey: "sk-secret", OpenAIKey: "sk-secret", AnthropicURL: url, OpenAIURL: url + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var providers = []string{"anthropic/claude-opus-5-5", "openai/gpt-6-sol"}

const wireTape = `
-- implementer 1/1 --
@expect be brief
@expect Hello
@usage input=1000 cached=700 write=200 output=50
I look.
>>> read #id_1
path: a.txt
>>> run #id_2
command: |
  go vet ./...
  go test ./...
-- implementer 1/2 --
@expect 1 one
@expect two
Done.
-- implementer 1/3 --
@stop refusal
No.
-- implementer 1/4 --
@stop length
Too mu
`

// TestWire drives both real clients against a server that speaks their formats.
// Covers I1 (usage with cached tokens).
func TestWire(t *testing.T) {
	t.Parallel()
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			srv, err := agenttest.NewServer([]byte(wireTape))
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			m := openAt(t, name, srv.URL)
			tool := agent.Tool{Name: "read", Description: "reads", Schema: map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"}}}
			req := agent.Request{System: "be brief", Tools: []agent.Tool{tool}, MaxTokens: 1000, Messages: []agent.Message{{Role: "user", Text: "Hello " + state(1)}}}
			got, err := m.Complete(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want := agent.Response{Text: "I look.", Stop: agent.StopTools, Model: strings.SplitN(name, "/", 2)[1],
				Calls: []agent.ToolCall{
					{ID: "id_1", Name: "read", Args: json.RawMessage(`{"path":"a.txt"}`)},
					{ID: "id_2", Name: "run", Args: json.RawMessage(`{"command":"go vet ./...\ngo test ./...\n"}`)},
				},
				Usage: pipeline.Usage{Calls: 1, Input: 1000, CachedInput: 700, CacheWrite: 200, Output: 50}}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("first answer (-want +got):\n%s", d)
			}
			req.Messages = append(req.Messages,
				agent.Message{Role: "assistant", Text: got.Text, Calls: got.Calls},
				agent.Message{Role: "user", Results: []agent.ToolResult{{ID: "id_1", Text: "1 one"}, {ID: "id_2", Text: "two", Error: true}}, Text: state(2)})
			if got, err = m.Complete(t.Context(), req); err != nil || got.Text != "Done." || got.Stop != agent.StopEnd {
				t.Fatalf("second answer: %+v, %v; want Done. and end", got, err)
			}
			for step, stop := range map[int]string{3: agent.StopRefusal, 4: agent.StopLength} {
				req.Messages[2].Text = state(step)
				if got, err = m.Complete(t.Context(), req); err != nil || got.Stop != stop || got.Text == "" {
					t.Errorf("answer %d: %+v, %v; want a text and stop %s", step, got, err, stop)
				}
			}
			if strings.HasPrefix(name, "anthropic") {
				checkCacheMarks(t, srv.Requests()[1])
			}
		})
	}
}

func state(step int) string {
	return fmt.Sprintf(`<state conversation="implementer" iteration="1" attempt="1" step="%d" of="100" tokens="0" cost="$0"/>`, step)
}

// checkCacheMarks looks for the marks: on the system prompt, where the first turn has
// none, and at the end of the last two turns of the user.
func checkCacheMarks(t *testing.T, body []byte) {
	t.Helper()
	type marked struct {
		Cache *struct{ Type string } `json:"cache_control"`
	}
	var in struct {
		System, Tools []marked
		Messages      []struct{ Content []marked }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	first, last := in.Messages[0].Content, in.Messages[len(in.Messages)-1].Content
	if in.System[0].Cache == nil || first[len(first)-1].Cache == nil || last[len(last)-1].Cache == nil {
		t.Errorf("cache marks are missing in %s", body)
	}
	if n := bytes.Count(body, []byte("cache_control")); n > 4 {
		t.Errorf("%d cache marks; the provider allows 4", n)
	}
}

// TestReasoningComesBack checks that a turn with reasoning is sent back unchanged.
func TestReasoningComesBack(t *testing.T) {
	t.Parallel()
	raw := `{"content":[{"signature":"s1g","thinking":"hm","type":"thinking"},{"id":"id_1","input":{"path":"a"},"name":"read","type":"tool_use"}],"role":"assistant"}`
	srv, err := agenttest.NewServer([]byte("-- planner 0/1 --\n@raw " + raw + "\n>>> read #id_1\npath: a\n-- planner 0/2 --\nok\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	m := openAt(t, providers[0], srv.URL)
	line := func(step string) string {
		return `<state conversation="planner" iteration="0" attempt="1" step="` + step + `"/>`
	}
	req := agent.Request{MaxTokens: 10, System: "s", Messages: []agent.Message{{Role: "user", Text: line("1")}}}
	got, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Calls) != 1 || !strings.Contains(string(got.Raw), `"signature":"s1g"`) {
		t.Fatalf("answer %+v with raw %s, want the call and the reasoning", got, got.Raw)
	}
	req.Messages = append(req.Messages, agent.Message{Role: "assistant", Calls: got.Calls, Raw: got.Raw},
		agent.Message{Role: "user", Results: []agent.ToolResult{{ID: "id_1", Text: "x"}}, Text: line("2")})
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(srv.Requests()[1], []byte(`"signature":"s1g"`)) {
		t.Errorf("the reasoning is missing in the second request: %s", srv.Requests()[1])
	}
}

// TestProviderFaults checks that every refusal has its class, says how to mend it
// and holds no key.
func TestProviderFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		final  bool
		say    string
	}{
		{400, true, "refused the request (400"},
		{401, false, "check the key"}, // waited for: it is every run's, and not theirs to mend,
		{402, false, "credit"},
		{403, false, "choose another model or key"},
		{404, false, "does not know the model"},
		{429, false, "limits the rate"},
		{500, false, "overloaded or down (500"},
		{529, false, "overloaded or down (529"},
	}
	for _, name := range providers {
		for _, tt := range tests {
			t.Run(fmt.Sprint(name, tt.status), func(t *testing.T) {
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Should-Retry", "false")
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(tt.status)
					fmt.Fprintf(w, `{"type":"error","error":{"type":"some_error","code":"x","message":"it broke; your key sk-secret"}}`)
				}))
				defer srv.Close()
				_, err := openAt(t, name, srv.URL).Complete(t.Context(), agent.Request{MaxTokens: 10, Messages: []agent.Message{{Role: "user", Text: "x"}}})
				var f *pipeline.Fault
				if !errors.As(err, &f) || f.Class != pipeline.FaultProvider || f.Final != tt.final || !strings.Contains(f.Message, tt.say) {
					t.Errorf("error %#v, want a provider's fault, final %v, that says %q", err, tt.final, tt.say)
				}
				if strings.Contains(err.Error(), "sk-secret") {
					t.Errorf("error %q holds the key", err)
				}
			})
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, name := range providers {
		srv := httptest.NewServer(http.NotFoundHandler())
		m := openAt(t, name, strings.Replace(srv.URL, "http://", "http://user:pass@", 1))
		srv.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req := agent.Request{MaxTokens: 10, Messages: []agent.Message{{Role: "user", Text: "x"}}}
		if _, err := m.Complete(ctx, req); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled call gives %v, want the context's error", name, err)
		}
	}
	// What answers, but not as a provider does, is a provider's fault too.
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }))
	defer srv.Close()
	for _, name := range providers {
		_, err := openAt(t, name, strings.Replace(srv.URL, "http://", "http://user:pass@", 1)).Complete(t.Context(), agent.Request{MaxTokens: 10, Messages: []agent.Message{{Role: "user", Text: "x"}}})
		var f *pipeline.Fault
		if !errors.As(err, &f) || f.Class != pipeline.FaultProvider || strings.Contains(f.Message, "pass") {
			t.Errorf("%s: %v, want a provider's fault without the address's password", name, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]string{
		"opus":               "want anthropic/MODEL",
		"anthropic/":         "want anthropic/MODEL",
		"mistral/large":      `provider "mistral" is not known`,
		"anthropic/claude":   "ANTHROPIC_API_KEY",
		"openai/gpt":         "OPENAI_API_KEY",
		"tape:nowhere.txtar": "nowhere.txtar",
		"tape:model.go":      "no section",
	} {
		if _, err := openModel(name, agent.Credentials{}); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Open(%q) gives %v, want an error that says %q", name, err, say)
		}
	}
	for _, p := range agent.ProviderNames {
		if c := agent.CredentialsOf(p, "k", ""); !c.Has(p) {
			t.Errorf("a key of %s is no credential of it", p)
		} else if _, err := openModel(p+"/some", c); err != nil {
			t.Errorf("%s with its key: %v", p, err)
		}
	}
	if _, err := openModel("openai/llama", agent.Credentials{OpenAIURL: "http://localhost:11434/v1"}); err != nil {
		t.Errorf("a local server wants no key: %v", err)
	}
}

// TestEnvironmentIsIgnored checks that a key from the environment goes nowhere.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-env")
	t.Setenv("ANTHROPIC_API_KEY", "sk-from-env")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	var seen []http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		w.Header().Set("X-Should-Retry", "false")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer srv.Close()
	m, err := openModel("openai/llama", agent.Credentials{OpenAIURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []agent.Model{m, openAt(t, providers[0], srv.URL)} {
		m.Complete(t.Context(), agent.Request{MaxTokens: 10, Messages: []agent.Message{{Role: "user", Text: "x"}}})
	}
	if len(seen) != 2 || strings.Contains(fmt.Sprint(seen), "sk-from-env") {
		t.Errorf("headers %v: want two requests, without the key from the environment", seen)
	}
}

// TestAgentOverHTTP runs a whole phase through each real client.
func TestAgentOverHTTP(t *testing.T) {
	t.Parallel()
	tape := `
-- planner 0/1 --
@expect Sub adds
@usage input=1000 output=100
>>> submit
question: ""
-- planner 0/2 --
@expect summary is missing
@usage input=2000 cached=1000 output=100
>>> submit
summary: Subtract.
steps: [calc.go]
criteria: [{text: "Sub(5, 3) is 2"}]
`
	costs := map[string]int64{providers[0]: 4000 + 2000 + 4000 + 200 + 2000, providers[1]: 2000 + 1000 + 2000 + 200 + 1000}
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			srv, err := agenttest.NewServer([]byte(tape))
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			a, err := agent.New(agent.Options{Models: map[config.Role]string{"": name}, Open: func(n string) (agent.Model, error) { return openAt(t, n, srv.URL), nil }})
			if err != nil {
				t.Fatal(err)
			}
			run := &pipeline.Run{ID: 1, Config: config.Default(), Task: pipeline.Task{Title: "Sub adds"}}
			ref := pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
			plan, usage, err := a.Plan(t.Context(), agent.Job{Run: run, Ref: ref, Key: run.Key(ref)})
			if err != nil || plan.Summary != "Subtract." {
				t.Fatalf("plan %+v, %v; want the tape's", plan, err)
			}
			if want := (pipeline.Usage{Calls: 2, Input: 3000, CachedInput: 1000, Output: 200, MicroUSD: costs[name]}); usage != want {
				t.Errorf("usage %+v, want %+v", usage, want)
			}
		})
	}
}

// TestServerMismatch checks that a tape's complaint reaches the caller through HTTP.
func TestServerMismatch(t *testing.T) {
	t.Parallel()
	srv, err := agenttest.NewServer([]byte("-- planner 0/1 --\n@expect unicorns\nhi\n-- planner 0/2 --\n@error 503 down\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, name := range providers {
		for step, say := range map[string]string{"1": "unicorns", "2": "overloaded or down (503", "3": "no section"} {
			_, err := openAt(t, name, srv.URL).Complete(t.Context(), agent.Request{System: "s", MaxTokens: 10,
				Messages: []agent.Message{{Role: "user", Text: `<state conversation="planner" iteration="0" attempt="1" step="` + step + `"/>`}}})
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("%s, step %s: %v, want it to say %q", name, step, err, say)
			}
		}
		if _, err := openAt(t, name, srv.URL).Complete(t.Context(), agent.Request{MaxTokens: 10, System: "s", Messages: []agent.Message{{Role: "user", Text: "x"}}}); err == nil || !strings.Contains(err.Error(), "state") {
			t.Errorf("%s: a request without a state line gives %v", name, err)
		}
	}
	if _, err := agenttest.NewServer([]byte("nothing")); err == nil {
		t.Error("a server without a tape starts")
	}
}

// openModel opens a single model, with a circuit of its own.
func openModel(name string, c agent.Credentials) (agent.Model, error) {
	return agent.NewProviders(agent.ProviderOptions{Credentials: c}).Open(name)
}
