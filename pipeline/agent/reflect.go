package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// reflect has a model look back at the last steps of a conversation that makes no
// progress. Its advice is a proposal to the same agent, no more.
func (c *conversation) reflect(ctx context.Context, results []ToolResult) (string, pipeline.Usage, error) {
	m, name, err := c.p.agent.model(c.p.job.Run, roleReflector)
	if err != nil {
		return "", pipeline.Usage{}, err
	}
	if m == nil {
		m, name = c.model, c.modelName
	}
	role := c.name + ".reflection"
	prompt := fmt.Sprintf("The %s's task was:\n\n%s\n\nIts last steps:\n\n%s\n\n%s",
		c.name, c.p.quote("task", text.ClipBytes(c.prompt, 8000)), c.p.quote("steps", c.recent(results)), c.p.state(role, 1, 1))
	rec, err := c.p.call(ctx, m, name, 1, Request{
		Role: role, System: systemOfWords("advice"), MaxTokens: 2000,
		Messages: []Message{{Role: "user", Text: prompt}},
	})
	if err != nil {
		return "", pipeline.Usage{}, err
	}
	advice := text.ClipBytes(rec.response.Text, 2000)
	if advice == "" || rec.response.Stop == StopRefusal {
		advice = "Take another way than before: what was tried did not work. If the task cannot be done, say so when you submit."
	}
	return advice, rec.response.Usage, nil
}

// recent shows the last turns, shortened; results are those of the newest one.
func (c *conversation) recent(results []ToolResult) string {
	var b strings.Builder
	last := c.mem.messages[max(1, len(c.mem.messages)-12):]
	for _, m := range append(slices.Clone(last), Message{Role: "user", Results: results}) {
		if m.Role == "assistant" {
			fmt.Fprintf(&b, "said: %s\n", text.ClipBytes(m.Text, 500))
			for _, call := range m.Calls {
				fmt.Fprintf(&b, "called %s %s\n", call.Name, text.ClipBytes(string(call.Args), 500))
			}
		}
		for _, r := range m.Results {
			fmt.Fprintf(&b, "result: %s\n", text.ClipBytes(r.Text, 800))
		}
	}
	return b.String()
}
