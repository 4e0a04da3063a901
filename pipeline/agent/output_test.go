package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
)

// TestOutputLimits checks how long an answer may be: short to begin with, longer once
// one was cut off, and never over what the model is known to give.
func TestOutputLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		limits    Limits
		want      []int
		reasoning int
	}{
		{"nothing known", Limits{}, []int{outputTokens, mostOutput, mostOutput}, 0},
		{"long answers", Limits{OutputTokens: 128_000, ReasoningTokens: 8000}, []int{outputTokens, 128_000, 128_000}, 8000},
		{"short answers", Limits{OutputTokens: 4000}, []int{4000, 4000, 4000}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			m := modelFunc(func(_ context.Context, r Request) (Response, error) {
				got = append(got, r.MaxTokens)
				if r.Reasoning != tt.reasoning {
					t.Errorf("reasoning %d, want %d", r.Reasoning, tt.reasoning)
				}
				if len(got) < 3 {
					return Response{Stop: StopLength, Calls: []ToolCall{{ID: "1", Name: "submit", Args: json.RawMessage(`{"question":"wh`)}}}, nil
				}
				return Response{Calls: []ToolCall{{ID: "1", Name: "submit", Args: json.RawMessage(`{"question":"why"}`)}}}, nil
			})
			a := newAgent(t, "openai/homemade-2026-01-02", m, func(o *Options) { o.Limits = map[string]Limits{"openai/homemade": tt.limits} })
			run := newRun()
			run.Config.Limits.Tokens = 1e6
			plan, usage, err := a.Plan(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhasePlan}, nil, nil))
			if err != nil || plan.Question != "why" || !slices.Equal(got, tt.want) {
				t.Errorf("limits %v, want %v; %+v, %v", got, tt.want, plan, err)
			}
			if usage.Unpriced != usage.Input+usage.Output || usage.MicroUSD != 0 {
				t.Errorf("usage %+v: the model has no price", usage)
			}
		})
	}
}

// fakeBudget counts what is set aside.
type fakeBudget struct{ aside, most int64 }

func (p *fakeBudget) Reserve(_ context.Context, _ *pipeline.Run, micros int64) (func(), error) {
	p.aside += micros
	p.most = max(p.most, p.aside)
	return func() { p.aside -= micros }, nil
}

// TestSetAside checks that what a step's calls may cost stays set aside until the step
// is booked, reasoning included, and nothing stays after the phase.
func TestSetAside(t *testing.T) {
	t.Parallel()
	p := &fakeBudget{}
	log := &eventLog{}
	var booked []int64
	step := 0
	m := modelFunc(func(_ context.Context, r Request) (Response, error) {
		booked = append(booked, p.aside)
		if step++; r.Role == "planner.reflection" {
			return Response{Text: "stop", Usage: pipeline.Usage{Input: 1}}, nil
		}
		if step > 6 {
			return Response{Calls: []ToolCall{{ID: "s", Name: "submit", Args: []byte(`{"question":"?"}`)}}}, nil
		}
		return Response{Calls: []ToolCall{{ID: fmt.Sprint(step), Name: "nothing", Args: []byte("{}")}}}, nil
	})
	a := newAgent(t, "openai/gpt-6-sol", m, func(o *Options) {
		o.Budget, o.Limits = p, map[string]Limits{"openai/gpt-6-sol": {ReasoningTokens: 100_000}}
	})
	if _, _, err := a.Plan(t.Context(), job(newRun(), pipeline.PhaseRef{Phase: pipeline.PhasePlan}, newWorkspace(t, nil), log)); err != nil {
		t.Fatal(err)
	}
	if p.aside != 0 {
		t.Errorf("%d micro-dollars stay set aside", p.aside)
	}
	for i, n := range booked {
		twice := i == 4 // the advice is asked for within a step
		if least := int64(116_000 * 10); n < least || twice != (n > 2*least-200_000) {
			t.Errorf("call %d: %d micro-dollars are set aside of at least %d; the step's first call included: %v", i+1, n, least, twice)
		}
	}
}

// TestTooLong checks that a conversation which outgrows the model's context goes on
// with a smaller memory, and that a task which never fits ends.
func TestTooLong(t *testing.T) {
	t.Parallel()
	tooLong := (&failure{kind: kindTooLong, status: 400}).describe(&endpoint{provider: "X"}, "small")
	run := func(window int) (sizes []int, err error) {
		step := 0
		m := modelFunc(func(_ context.Context, r Request) (Response, error) {
			n := len(r.text())
			if sizes = append(sizes, n); n > window {
				return Response{}, tooLong
			}
			if step++; step > 8 {
				return Response{Calls: []ToolCall{{ID: "s", Name: "submit", Args: []byte(`{"question":"?"}`)}}}, nil
			}
			return Response{Calls: []ToolCall{{ID: fmt.Sprint(step), Name: "read", Args: fmt.Appendf(nil, `{"path":"long.txt","from":%d}`, step)}}}, nil
		})
		ws := newWorkspace(t, map[string]string{"long.txt": strings.Repeat("a line of some length\n", 400)})
		_, _, err = newAgent(t, "tape:x", m).Plan(t.Context(), job(newRun(), pipeline.PhaseRef{Phase: pipeline.PhasePlan}, ws, nil))
		return sizes, err
	}
	sizes, err := run(60_000)
	if err != nil || slices.Max(sizes) <= 60_000 {
		t.Errorf("requests of %v bytes, %v; want one that is too long, and the end", sizes, err)
	}
	sizes, err = run(10)
	wantFault(t, err, pipeline.FaultProvider, "too long for small", "let the server's context be longer")
	if len(sizes) > 2 {
		t.Errorf("%d requests for a task that never fits", len(sizes))
	}
}

// Of a model that takes an effort, who plans and judges thinks more, and who analyses less;
// what the settings say goes before, and of other models nothing is asked.
func TestReasoningByRole(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits Limits
		want   map[config.Role]string
	}{
		"openai/gpt-6-sol-2026-01-02": {want: map[config.Role]string{rolePlanner: "high", roleReviewer: "high", roleImplementer: "", roleTester: "low", roleReflector: ""}},
		"openai/o4-mini":              {limits: Limits{ReasoningTokens: 8000}, want: map[config.Role]string{rolePlanner: "medium", roleTester: "medium"}},
		"openai/gpt-4o":               {want: map[config.Role]string{rolePlanner: ""}},
		"openai/openai/gpt-6-sol":     {want: map[config.Role]string{rolePlanner: ""}},
		"anthropic/claude-opus-5-5":   {want: map[config.Role]string{rolePlanner: ""}},
	} {
		for role, want := range tt.want {
			got := ""
			if n := tt.limits.bounded(Request{MaxTokens: 10}, name, role).Reasoning; n > 0 {
				got = effort(n)
			}
			if got != want {
				t.Errorf("%s as %s thinks with the effort %q, want %q", name, role, got, want)
			}
		}
	}
}

// What was reasoned is counted apart where the provider does, as a part of the output.
func TestReasoningIsCounted(t *testing.T) {
	t.Parallel()
	chat := &openaiDialect{}
	for said, d := range map[string]dialect{
		`{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":9,"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":5}}}`:                                                 chat,
		`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":9,"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5}}}`: &responsesDialect{chat},
	} {
		if r, err := d.decode([]byte(said)); err != nil || r.Usage.Output != 7 || r.Usage.Reasoning != 5 || r.Usage.Input != 9 {
			t.Errorf("%s: %+v, %v", said, r.Usage, err)
		}
	}
}
