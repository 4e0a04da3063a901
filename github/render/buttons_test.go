package render

import (
	"fmt"
	"testing"

	"forge/pipeline"
	"forge/pipeline/command"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func buttonNames(v Renderer) []string {
	var out []string
	for _, b := range v.buttons() {
		out = append(out, b.Identifier+" "+b.Label)
	}
	return out
}

func TestButtons(t *testing.T) {
	t.Parallel()
	gate := func(guard pipeline.GuardName, choices ...pipeline.Choice) Renderer {
		return testView(&pipeline.Run{State: pipeline.StateWaiting, Gates: []pipeline.Gate{{ID: "gate/1", Closed: true},
			{ID: "gate/2", Guard: &pipeline.Guard{Name: guard}, Choices: choices}}})
	}
	n, accept, history, cancel := pipeline.Choice{Name: "continue", Arg: "N"}, pipeline.Choice{Name: "accept"},
		pipeline.Choice{Name: "history"}, pipeline.Choice{Name: "cancel"}
	for _, c := range []struct {
		name string
		v    Renderer
		want []string
	}{
		{"escalation", gate(pipeline.GuardBounces, n, accept, history, cancel), []string{"continue:1@2 Continue", "accept@2 Accept", "cancel@2 Cancel"}},
		{"breakdown", gate(pipeline.GuardFaults, n, history, cancel), []string{"continue:1@2 Try again", "cancel@2 Cancel", "history@2 History"}},
		{"approval", gate(pipeline.GuardPlan, pipeline.Choice{Name: "approve"}, cancel), []string{"approve@2 Approve", "cancel@2 Cancel"}},
		{"question", gate(pipeline.GuardPlan, pipeline.Choice{Name: "choose", Arg: "ANSWER"}, pipeline.Choice{Name: "choose", Arg: "the cache"}, history, cancel),
			[]string{"cancel@2 Cancel", "history@2 History"}},
		{"a choice to come", gate(pipeline.GuardBudget, pipeline.Choice{Name: "raise", Arg: "N"},
			pipeline.Choice{Name: "defer", Label: "ask again tomorrow, when there is more to say"}),
			[]string{"raise:1@2 Raise the budget", "defer@2 Defer"}},
		{"no gate", testView(&pipeline.Run{State: pipeline.StateRunning}), nil},
	} {
		if diff := cmp.Diff(c.want, buttonNames(c.v)); diff != "" {
			t.Errorf("buttons of %s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whatever a gate offers, GitHub takes the buttons, and Forge reads their names.
func TestButtonsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := pipeline.Gate{ID: fmt.Sprintf("gate/%d", rapid.IntRange(1, 999_999).Draw(t, "gate"))}
		for range rapid.IntRange(0, 6).Draw(t, "choices") {
			g.Choices = append(g.Choices, pipeline.Choice{
				Name: rapid.OneOf(rapid.SampledFrom([]string{"continue", "accept", "history", "cancel", "approve", "choose", "raise", "take-over",
					"simplify"}), rapid.StringN(0, 30, -1)).Draw(t, "name"),
				Arg: rapid.SampledFrom([]string{"", "N", "OPTION"}).Draw(t, "arg"), Label: rapid.StringN(0, 80, -1).Draw(t, "label")})
		}
		list := testView(&pipeline.Run{State: pipeline.StateWaiting, Gates: []pipeline.Gate{g}}).buttons()
		if len(list) > 3 {
			t.Fatalf("%d buttons", len(list))
		}
		for _, b := range list {
			if len(b.Label) > 20 || len(b.Description) > 40 || len(b.Identifier) > 20 || b.Label == "" || b.Description == "" ||
				!command.Button.MatchString(b.Identifier) {
				t.Fatalf("button %+v", b)
			}
		}
	})
}
