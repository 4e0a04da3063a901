package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"forge/pipeline"
)

// claude speaks Anthropic's Messages API.
type claude struct {
	model    string
	key      string
	timeout  time.Duration // of one call
	messages anthropic.MessageService
}

// newAnthropic takes nothing from the environment: the caller chose the key and
// the address, and a key must never travel to another address.
func newAnthropic(model, key, url string, timeout time.Duration) *claude {
	if url == "" {
		url = "https://api.anthropic.com/"
	}
	return &claude{model: model, key: key, timeout: timeout, messages: anthropic.NewMessageService(
		option.WithBaseURL(url),
		option.WithAPIKey(key),
		option.WithMaxRetries(callRetries),
		option.WithRequestTimeout(timeout),
	)}
}

// Complete implements Model. Request.Force is not sent: the models since Claude
// Opus 5.5 answer 400 to a forced tool; the prompt asks for it in words.
func (m *claude) Complete(ctx context.Context, req Request) (Response, error) {
	params := anthropic.MessageNewParams{
		Model:     m.model,
		MaxTokens: int64(req.MaxTokens),
		System:    []anthropic.TextBlockParam{{Text: req.System}},
	}
	if len(req.Messages) == 0 || len(req.Messages[0].Marks) == 0 {
		params.System[0].CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	for _, t := range req.Tools {
		required, _ := t.Schema["required"].([]string)
		tool := anthropic.ToolParam{
			Name:        t.Name,
			Description: param.NewOpt(t.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: t.Schema["properties"], Required: required},
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	for i, msg := range req.Messages {
		params.Messages = append(params.Messages, claudeMessage(msg, i >= len(req.Messages)-3))
	}
	msg, err := m.messages.New(ctx, params)
	if err != nil {
		return Response{}, m.fault(ctx, err)
	}
	return claudeResponse(msg)
}

// claudeMessage writes one turn. The provider keeps the prompt up to each mark, of
// which it takes four, and looks for what it kept at most 20 blocks before one. So
// the first turn is marked where others begin alike, and the last two of the user at
// their ends: between them may lie more blocks than that. Tools and system prompt
// come before the first mark, and have one of their own only when there is none.
func claudeMessage(msg Message, mark bool) anthropic.MessageParam {
	if msg.Role == "assistant" && len(msg.Raw) > 0 {
		return param.Override[anthropic.MessageParam](msg.Raw)
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range msg.Results {
		blocks = append(blocks, anthropic.NewToolResultBlock(r.ID, r.Text, r.Error))
	}
	text := msg.Text
	from := 0
	for _, to := range msg.Marks {
		if to > from && to < len(text) {
			blocks = append(blocks, marked(anthropic.NewTextBlock(text[from:to])))
			from = to
		}
	}
	if text = text[from:]; text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(text))
	}
	for _, c := range msg.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.Args, c.Name))
	}
	if msg.Role == "assistant" {
		return anthropic.NewAssistantMessage(blocks...)
	}
	if mark && len(blocks) > 0 {
		blocks[len(blocks)-1] = marked(blocks[len(blocks)-1])
	}
	return anthropic.NewUserMessage(blocks...)
}

func marked(b anthropic.ContentBlockParamUnion) anthropic.ContentBlockParamUnion {
	if c := b.GetCacheControl(); c != nil {
		*c = anthropic.NewCacheControlEphemeralParam()
	}
	return b
}

func claudeResponse(msg *anthropic.Message) (Response, error) {
	r := Response{Model: msg.Model, Stop: StopEnd}
	special := false
	for _, b := range msg.Content {
		switch b.Type {
		case "text":
			r.Text = strings.TrimSpace(r.Text + "\n" + b.Text)
		case "tool_use":
			r.Calls = append(r.Calls, ToolCall{ID: b.ID, Name: b.Name, Args: b.Input})
		default: // reasoning, which must come back unchanged
			special = true
		}
	}
	if special {
		raw, err := json.Marshal(msg.ToParam())
		if err != nil {
			return r, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "Anthropic's answer cannot be kept: " + err.Error()}
		}
		r.Raw = raw
	}
	switch msg.StopReason {
	case anthropic.StopReasonToolUse:
		r.Stop = StopTools
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		r.Stop = StopLength
	case anthropic.StopReasonRefusal:
		r.Stop = StopRefusal
	}
	u := msg.Usage
	r.Usage = pipeline.Usage{
		Calls:       1,
		Input:       u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
		CachedInput: u.CacheReadInputTokens,
		CacheWrite:  u.CacheCreationInputTokens,
		Output:      u.OutputTokens,
	}
	return r, nil
}

func (m *claude) fault(ctx context.Context, err error) error {
	var api *anthropic.Error
	if errors.As(err, &api) {
		var body struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal([]byte(api.RawJSON()), &body) // no message is an answer too
		return providerFault("Anthropic", m.model, m.key, api.StatusCode, body.Error.Message)
	}
	return transportFault(ctx, "Anthropic", m.model, m.key, m.timeout, err)
}
