package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"forge/pipeline"
)

// gpt speaks OpenAI's chat completions, which most other servers understand.
type gpt struct {
	model   string
	key     string
	own     bool          // OpenAI itself, not a compatible server
	timeout time.Duration // of one call
	chat    openai.ChatCompletionService
}

// newOpenAI takes nothing from the environment; see newAnthropic.
func newOpenAI(model, key, url string, timeout time.Duration) *gpt {
	own := url == ""
	if own {
		url = "https://api.openai.com/v1/"
	}
	opts := []option.RequestOption{
		option.WithBaseURL(url),
		option.WithMaxRetries(callRetries),
		option.WithRequestTimeout(timeout),
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return &gpt{model: model, key: key, own: own, timeout: timeout, chat: openai.NewChatCompletionService(opts...)}
}

// Complete implements Model.
func (m *gpt) Complete(ctx context.Context, req Request) (Response, error) {
	params := openai.ChatCompletionNewParams{
		Model:    m.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(req.System)},
	}
	if m.own {
		params.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	} else { // the older name is the one that compatible servers know
		params.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: param.NewOpt(t.Description), Parameters: t.Schema,
		}))
	}
	switch req.Force {
	case "":
	case ForceAny:
		params.ToolChoice.OfAuto = param.NewOpt(string(openai.ChatCompletionToolChoiceOptionAutoRequired))
	default:
		params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: req.Force})
	}
	for _, msg := range req.Messages {
		params.Messages = append(params.Messages, gptMessages(msg)...)
	}
	res, err := m.chat.New(ctx, params)
	if err != nil {
		return Response{}, m.fault(ctx, err)
	}
	if len(res.Choices) == 0 {
		return Response{}, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "OpenAI (" + m.model + ") answered without a choice"}
	}
	return gptResponse(res), nil
}

// gptMessages writes one turn: a message for each tool result, then one for the rest.
func gptMessages(msg Message) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	for _, r := range msg.Results {
		out = append(out, openai.ToolMessage(r.Text, r.ID))
	}
	if msg.Role != "assistant" {
		if msg.Text != "" {
			out = append(out, openai.UserMessage(msg.Text))
		}
		return out
	}
	a := openai.ChatCompletionAssistantMessageParam{}
	if msg.Text != "" || len(msg.Calls) == 0 {
		a.Content.OfString = param.NewOpt(msg.Text)
	}
	for _, c := range msg.Calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.Args)},
			},
		})
	}
	return append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &a})
}

func gptResponse(res *openai.ChatCompletion) Response {
	choice := res.Choices[0]
	r := Response{Text: choice.Message.Content, Model: res.Model, Stop: StopEnd}
	for _, c := range choice.Message.ToolCalls {
		args := json.RawMessage(c.Function.Arguments)
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		r.Calls = append(r.Calls, ToolCall{ID: c.ID, Name: c.Function.Name, Args: args})
	}
	switch {
	case choice.Message.Refusal != "":
		r.Stop, r.Text = StopRefusal, choice.Message.Refusal
	case choice.FinishReason == "content_filter":
		r.Stop = StopRefusal
	case choice.FinishReason == "length":
		r.Stop = StopLength
	case len(r.Calls) > 0: // some servers say "stop" also then
		r.Stop = StopTools
	}
	u := res.Usage
	r.Usage = pipeline.Usage{
		Calls:       1,
		Input:       u.PromptTokens,
		CachedInput: u.PromptTokensDetails.CachedTokens,
		CacheWrite:  u.PromptTokensDetails.CacheWriteTokens,
		Output:      u.CompletionTokens,
	}
	return r
}

func (m *gpt) fault(ctx context.Context, err error) error {
	var api *openai.Error
	if errors.As(err, &api) {
		return providerFault("OpenAI", m.model, m.key, api.StatusCode, api.Message)
	}
	return transportFault(ctx, "OpenAI", m.model, m.key, m.timeout, err)
}
