package pipeline

import (
	"strings"
	"testing"
	"time"

	"forge/pipeline/command"
	"forge/pipeline/module"
)

// The budget that a question offers is a round amount, which is taken as it stands, and at
// the cap on tokens it is said what becomes of that.
func TestRaising(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		usd  float64
		unit string
		arg  string
		says string
	}{
		{2.333333, "tokens", "3", "raise the budget by $3, and with it the cap on tokens by 257143, or"},
		{2.333333, "micro-USD", "3", "raise the budget by $3, or"},
		{0.2, "tokens", "1", "by $1, and with it the cap on tokens by 1000000, or"},
		{5000, "micro-USD", "1000", "by $1000, or"},
		{0, "tokens", "1", "by $1, or"},
	} {
		run := &Run{ID: 7, State: StateWaiting}
		run.Config.Limits.CostUSD, run.Config.Limits.Tokens = tt.usd, 200_000
		g := Guard{Name: GuardBudget, Unit: tt.unit}
		choice := run.choices(GateBudget, g)[0]
		if choice.Arg != tt.arg || !strings.Contains(choice.Label, tt.says) {
			t.Errorf("with %v dollars, at the cap in %s: %+v, want %q, %q", tt.usd, tt.unit, choice, tt.arg, tt.says)
		}
		run.Gates = []Gate{{ID: "g", Guard: &g, Choices: []Choice{choice}}}
		before := run.TokenLimit()
		events, words := run.Answer(command.Line{Name: "raise", Args: choice.Arg}, Actor{Login: "ann"}, "comment", 1, time.Unix(9, 0))
		for _, e := range events {
			run.Apply(e)
		}
		if run.State != StateRunning || strings.Contains(tt.says, "tokens") && run.TokenLimit() <= before {
			t.Errorf("raised by %s: %s, the run is %s, its cap on tokens %d of %d before", choice.Arg, words, run.State, run.TokenLimit(), before)
		}
	}
}

func TestSoFar(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]Usage{
		"has cost $1.25 so far":                      {MicroUSD: 1_250_000},
		"what it has cost so far is unknown":         {Unpriced: 10},
		"has cost $1.25 so far, and what is unknown": {MicroUSD: 1_250_000, Unpriced: 10},
	} {
		run := &Run{Plan: split("a", "b")}
		run.Usage = u
		run.Config.Modules.Mode, run.Config.Limits.CostUSD = "ask", 5
		if g := run.splitAsked(run.split()); !strings.HasSuffix(g.Detail, " The run may cost $5.00, and "+want+".") {
			t.Errorf("of %+v the question says %q, want %q", u, g.Detail, want)
		}
	}
}

// A module that a person left out says who, however its own run ended.
func TestWhoLeftIt(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"": "cancelled by ann", module.Later: "left out by ann", module.Without: "left out by ann"} {
		run := &Run{State: StateRunning, Plan: split("a"), Parts: []module.Part{{ID: "a", Run: 8, State: "cancelled", Why: "cancelled by ann", By: "ann", How: how}}}
		if act := run.partFailed(); act == nil || act.Events[0].Data.Part.Left != want {
			t.Errorf("given up as %q: %+v, want %q", how, act, want)
		}
	}
}
