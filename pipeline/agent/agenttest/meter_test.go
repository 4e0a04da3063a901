package agenttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
