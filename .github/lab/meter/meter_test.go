package meter

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline/agent"
	"forge/pipeline/agent/agenttest"
)

// The cache's rules: OpenAI's serves any common beginning in steps of 128 tokens,
// Anthropic's what an earlier request had marked, and neither less than 1024 tokens.
func TestMeter(t *testing.T) {
	t.Parallel()
	long, longer := strings.Repeat("abcd", 2000), strings.Repeat("abcd", 2000)+strings.Repeat("x", 400)
	state := func(name string, step int) string {
		return fmt.Sprintf(`<state conversation=\"%s\" iteration=\"2\" attempt=\"1\" step=\"%d\"/>`, name, step)
	}
	openAI := func(text, name string, step int) []byte {
		return fmt.Appendf(nil, `{"messages":[{"role":"system","content":"%s"},{"role":"user","content":"%s"}]}`, text, state(name, step))
	}
	const mark = `,"cache_control":{"type":"ephemeral"}`
	anthropic := func(mark, text, name string, step int) []byte {
		return fmt.Appendf(nil, `{"system":[{"type":"text","text":"%s"%s}],"messages":[{"role":"user","content":[{"type":"text","text":"%s"%s}]}]}`, text, mark, state(name, step), mark)
	}
	for _, tt := range []struct {
		name   string
		bodies [][]byte
		cached []int64
	}{
		{"OpenAI", [][]byte{openAI(long, "a", 1), openAI(longer, "a", 2), openAI("short", "b", 1), openAI("short", "b", 1)}, []int64{0, 1920, 0, 0}},
		{"Anthropic", [][]byte{anthropic(mark, long, "a", 1), anthropic(mark, long, "b", 1), anthropic(mark, longer, "a", 2)}, []int64{0, 2000, 0}},
		{"Anthropic without marks", [][]byte{anthropic("", long, "a", 1), anthropic("", long, "a", 1)}, []int64{0, 0}},
		{"Anthropic, only the later marks", [][]byte{anthropic("", long, "a", 1), anthropic(mark, long, "a", 1)}, []int64{0, 0}},
	} {
		calls, err := Meter(tt.bodies)
		if err != nil {
			t.Fatal(err)
		}
		var cached []int64
		for _, c := range calls {
			cached = append(cached, c.Cached)
		}
		if d := cmp.Diff(tt.cached, cached); d != "" {
			t.Errorf("%s: cached tokens (-want +got):\n%s", tt.name, d)
		}
		if c := calls[0]; c.Conversation != "a" || c.Iteration != 2 || c.Step != 1 || c.Input < 2000 {
			t.Errorf("%s: the first call is %+v", tt.name, c)
		}
	}
	if got := Table([]Metered{{Conversation: "a", Input: 100, Cached: 50}, {Conversation: "b", Input: 300}}); !strings.Contains(got, "a              1 calls      100 tokens  50 % cached\nall            2 calls      400 tokens  12 % cached\n") {
		t.Errorf("the table is\n%s", got)
	}
	if _, err := Meter([][]byte{[]byte("{")}); err == nil {
		t.Error("what is no JSON gives no error")
	}
}

// A provider looks for what is cached at most 20 blocks before a mark.
func TestMeterLooksBack(t *testing.T) {
	t.Parallel()
	body := func(blocks int, mark bool) []byte {
		var list []string
		for i := range blocks {
			end := ""
			if mark && i == blocks-1 {
				end = `,"cache_control":{"type":"ephemeral"}`
			}
			list = append(list, fmt.Sprintf(`{"type":"text","text":"%s"%s}`, strings.Repeat("abcd", 1100), end))
		}
		return []byte(`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[` + strings.Join(list, ",") + `]}]}`)
	}
	for added, want := range map[int]bool{10: true, 19: true, 20: false} {
		calls, err := Meter([][]byte{body(2, true), body(2+added, true)})
		if err != nil {
			t.Fatal(err)
		}
		if got := calls[1].Cached > 0; got != want {
			t.Errorf("%d blocks later: cached %v, want %v", added, got, want)
		}
	}
}

// Two conversations that begin alike share what the provider keeps, and a turn finds
// what the turn before left, also behind many results. Covers I1 (cost).
func TestCacheIsShared(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"anthropic/claude-opus-5-5", "openai/gpt-6-sol"} {
		t.Run(name, func(t *testing.T) {
			srv, err := agenttest.NewServer([]byte("-- implementer 1/1 --\none\n-- implementer 1/2 --\ntwo\n-- implementer 1/3 --\nthree\n"))
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			m, err := agent.NewProviders(agent.ProviderOptions{Credentials: agent.Credentials{AnthropicKey: "sk-secret", OpenAIKey: "sk-secret",
				AnthropicURL: srv.URL, OpenAIURL: srv.URL + "/v1"}}).Open(name)
			if err != nil {
				t.Fatal(err)
			}
			state := func(step int) string {
				return fmt.Sprintf(`<state conversation="implementer" iteration="1" attempt="1" step="%d" of="100" tokens="0" cost="$0"/>`, step)
			}
			task, change := strings.Repeat("task ", 1200), strings.Repeat("diff ", 1200)
			ask := func(messages ...agent.Message) {
				if _, err := m.Complete(t.Context(), agent.Request{System: "be brief", MaxTokens: 10, Messages: messages}); err != nil {
					t.Fatal(err)
				}
			}
			first := func(instruction string, step int) agent.Message {
				return agent.Message{Role: "user", Text: task + change + instruction + state(step), Marks: []int{len(task), len(task) + len(change)}}
			}
			ask(first("stage one", 1))
			ask(first("stage two", 1)) // shares task and change
			other := first("stage one", 1)
			other.Text = strings.Replace(other.Text, "diff", "DIFF", 1)
			ask(other) // shares the task
			var calls []agent.ToolCall
			var results []agent.ToolResult
			for i := range 16 {
				id := fmt.Sprint("id_", i)
				calls = append(calls, agent.ToolCall{ID: id, Name: "read", Args: []byte("{}")})
				results = append(results, agent.ToolResult{ID: id, Text: "x"})
			}
			turn := []agent.Message{first("stage two", 1), {Role: "assistant", Calls: calls}, {Role: "user", Results: results, Text: state(2)}}
			ask(turn...) // all of the second request is there
			got, err := Meter(srv.Requests())
			if err != nil {
				t.Fatal(err)
			}
			for i, least := range []int64{0, 2800, 1400, got[1].Input - 200} {
				if c := got[i].Cached; c < least || least == 0 && c > 0 {
					t.Errorf("request %d: %d of %d tokens are served from the cache, want at least %d", i+1, c, got[i].Input, least)
				}
			}
			for _, body := range srv.Requests() {
				if n := bytes.Count(body, []byte("cache_control")); n > 4 {
					t.Errorf("%d cache marks; the provider allows 4", n)
				}
			}
		})
	}
}
