package server

import (
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// newAgent makes the agents that phases are carried out by.
func newAgent(o Options, db *store.DB) (*agent.Agent, error) {
	cfg := o.Config
	creds := agent.Credentials{AnthropicKey: cfg.AnthropicKey.Reveal(), OpenAIKey: cfg.OpenAIKey.Reveal(), AnthropicURL: cfg.AnthropicURL, OpenAIURL: cfg.OpenAIURL, Timeout: cfg.ModelTimeout}
	return agent.New(agent.Options{
		Open:   func(name string) (agent.Model, error) { return agent.Open(name, creds) },
		Models: cfg.Run.Models, Tape: db, Scratchpad: pipeline.Scratchpad, Log: o.Log,
		Purse: &budget{day: int64(cfg.DayUSD * 1e6), month: int64(cfg.MonthUSD * 1e6), spent: db.Spent, now: o.clock()},
	})
}
