// Package meter says how much of what models are sent their providers would read from a cache.
package meter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/agent/agenttest"
)

var stateLine = regexp.MustCompile(`<state conversation="([^"]*)" iteration="(\d+)" attempt="(\d+)" step="(\d+)"`)

// Metered is what a call of a model takes in, by an estimate of four bytes a token,
// and how much of that its provider would read from its prompt cache.
type Metered struct {
	Conversation string
	Iteration    int
	Step         int
	Input        int64 // tokens
	Cached       int64 // of them
}

// The providers' rules: a prefix below the least is not cached. OpenAI caches any
// beginning in steps of 128 tokens (platform.openai.com/docs/guides/prompt-caching).
// Anthropic caches up to the marked blocks, and looks for what is cached at each
// mark and at most 20 blocks before it (platform.claude.com/docs/en/build-with-claude/prompt-caching).
const (
	leastCached   = 1024
	openAIStep    = 128
	lookBack      = 20
	bytesPerToken = 4
)

// block is a part of a request, in the order in which a cache sees them.
type block struct {
	text string
	mark bool
}

// Meter measures calls, given as the bodies of their requests in order.
func Meter(bodies [][]byte) ([]Metered, error) {
	var out []Metered
	var before [][]block
	for i, body := range bodies {
		blocks, m, anthropic, err := readBody(body)
		if err != nil {
			return nil, fmt.Errorf("read request %d: %w", i+1, err)
		}
		n := 0
		for _, b := range blocks {
			n += len(b.text)
		}
		m.Input = int64(n / bytesPerToken)
		for _, earlier := range before {
			if anthropic {
				m.Cached = max(m.Cached, marked(earlier, blocks))
			} else {
				m.Cached = max(m.Cached, alike(earlier, blocks)/openAIStep*openAIStep)
			}
		}
		if m.Cached < leastCached {
			m.Cached = 0
		}
		before = append(before, blocks)
		out = append(out, m)
	}
	return out, nil
}

// alike is how many tokens two requests begin with in common.
func alike(a, b []block) int64 {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i].text == b[i].text {
			n += len(a[i].text)
			continue
		}
		for k := range min(len(a[i].text), len(b[i].text)) {
			if a[i].text[k] != b[i].text[k] {
				break
			}
			n++
		}
		break
	}
	return int64(n / bytesPerToken)
}

// marked is how many tokens the later request finds at a mark of the earlier one.
func marked(earlier, later []block) int64 {
	n, best := 0, 0
	for i := range min(len(earlier), len(later)) {
		if earlier[i].text != later[i].text {
			break
		}
		n += len(later[i].text)
		seen := slices.ContainsFunc(later[i:min(len(later), i+lookBack)], func(b block) bool { return b.mark })
		if earlier[i].mark && seen {
			best = n
		}
	}
	return int64(best / bytesPerToken)
}

func readBody(body []byte) (blocks []block, m Metered, anthropic bool, err error) {
	var in struct {
		System   json.RawMessage
		Tools    []json.RawMessage
		Messages []struct {
			Role      string
			Content   json.RawMessage
			ToolCalls json.RawMessage `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, m, false, err
	}
	for _, t := range in.Tools {
		blocks = append(blocks, readBlock(t))
	}
	blocks = append(blocks, readBlocks(in.System)...)
	for _, msg := range in.Messages {
		if msg.Role == "user" {
			if all := stateLine.FindAllSubmatch(text(msg.Content), -1); len(all) > 0 {
				last := all[len(all)-1]
				m.Conversation = string(last[1])
				fmt.Sscan(string(last[2]), &m.Iteration)
				fmt.Sscan(string(last[4]), &m.Step)
			}
		}
		blocks = append(blocks, readBlocks(msg.Content)...)
		if len(msg.ToolCalls) > 0 {
			blocks = append(blocks, block{text: string(msg.ToolCalls)})
		}
	}
	return blocks, m, len(in.System) > 0, nil
}

// text is content as a text, its strings without their escapes.
func text(content json.RawMessage) []byte {
	var b bytes.Buffer
	for _, block := range readBlocks(content) {
		b.WriteString(block.text + "\n")
	}
	return b.Bytes()
}

func readBlocks(content json.RawMessage) []block {
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		if len(content) == 0 || string(content) == "null" {
			return nil
		}
		return []block{readBlock(content)}
	}
	var out []block
	for _, b := range list {
		out = append(out, readBlock(b))
	}
	return out
}

// readBlock takes the mark off a block: it is no part of what is cached.
func readBlock(raw json.RawMessage) block {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return block{text: s}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return block{text: string(raw)}
	}
	_, mark := m["cache_control"]
	delete(m, "cache_control")
	if json.Unmarshal(m["text"], &s) == nil && string(m["type"]) == `"text"` {
		return block{text: s, mark: mark}
	}
	plain, _ := json.Marshal(m) // it came out of JSON
	return block{text: string(plain), mark: mark}
}

// Table sums up calls by conversation, as text: calls, tokens in, and the share of
// them that the cache serves.
func Table(calls []Metered) string {
	sums := map[string]*Metered{}
	count := map[string]int{}
	var names []string
	total := &Metered{}
	for _, c := range calls {
		s := sums[c.Conversation]
		if s == nil {
			s = &Metered{Conversation: c.Conversation}
			sums[c.Conversation] = s
			names = append(names, c.Conversation)
		}
		count[c.Conversation]++
		for _, t := range []*Metered{s, total} {
			t.Input += c.Input
			t.Cached += c.Cached
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(sums[b].Input, sums[a].Input) })
	var b strings.Builder
	row := func(name string, calls int, m *Metered) {
		fmt.Fprintf(&b, "%-12s %3d calls %8d tokens %3d %% cached\n", name, calls, m.Input, m.Cached*100/max(1, m.Input))
	}
	for _, n := range names {
		row(n, count[n], sums[n])
	}
	row("all", len(calls), total)
	return b.String()
}

// CheckTokens says what the models of a run were sent, by role, and how much of it a
// provider's cache serves, and holds it under a limit: context is not free.
func CheckTokens(t *testing.T, models *agenttest.Server, limit int64) {
	t.Helper()
	calls, err := Meter(models.Requests())
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, c := range calls {
		total += c.Input
	}
	t.Logf("sent to the models:\n%s", Table(calls))
	if total > limit || total == 0 {
		t.Errorf("the models were sent %d tokens, over %d", total, limit)
	}
}
