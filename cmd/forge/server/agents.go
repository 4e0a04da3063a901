package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"forge/cmd/forge/settings"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// newAgent makes the agents that phases are carried out by. All runs share the
// providers, and with them what is known of whether they are there.
func newAgent(o Options, providers *agent.Providers, db *store.DB) (*agent.Agent, error) {
	cfg := o.Config
	prices := agent.Prices{}
	for model, p := range cfg.Prices {
		prices[model] = agent.Price{Input: p.Input, Cached: p.Cached, CacheWrite: p.CacheWrite, Output: p.Output}
	}
	return agent.New(agent.Options{
		Open: providers.Open, Models: cfg.Run.Models, Prices: prices, Limits: modelLimits(cfg),
		Tape: db, Log: o.Log, AtOnce: cfg.Parallel.Models,
		Budget: &budget{day: int64(cfg.DayUSD * 1e6), month: int64(cfg.MonthUSD * 1e6), spent: db.Spent, now: o.clock()},
	})
}

// modelLimits are the limits of models, by provider/model.
func modelLimits(cfg settings.Config) map[string]agent.Limits {
	out := map[string]agent.Limits{}
	for model, l := range cfg.ModelLimits {
		out[model] = agent.Limits{OutputTokens: l.OutputTokens, ContextTokens: l.ContextTokens, ReasoningTokens: l.ReasoningTokens, Form: l.Form}
	}
	return out
}

// checkWithin is how long the look at one model may take.
const checkWithin = 15 * time.Second

// Models is the probe of the models that the settings name: each is looked for at its
// provider. Its error is for the operator: it names addresses, and what to set.
func Models(cfg settings.Config) Probe {
	return Probe{Name: "model", Fix: "a model cannot be used; see the log", Check: func(ctx context.Context) error {
		names := slices.Compact(slices.Sorted(maps.Values(cfg.Run.Models)))
		if len(names) == 0 {
			names = []string{""}
		}
		var errs []error
		for _, name := range names {
			within, cancel := context.WithTimeout(ctx, checkWithin)
			errs = append(errs, agent.Check(within, name, cfg.Credentials()))
			cancel()
		}
		return errors.Join(errs...)
	}}
}
