package pipeline

// ToolStat sums up an agent's use of a tool (I3).
type ToolStat struct {
	Calls  int   `json:"calls"`
	OK     int   `json:"ok"`
	Millis int64 `json:"ms"`
}

// spend books what a model call cost.
func (r *Run) spend(p Phase, u Usage) {
	r.Usage.Add(u)
	s := r.Spent[p]
	s.Add(u)
	put(&r.Spent, p, s)
	if it := r.Current(); it != nil && !p.plans() {
		it.Usage.Add(u)
	}
}

// CostLimit is the run's budget in micro-dollars: each iteration that a human
// granted brings its share of the original one, and what they raised it by, or its modules'.
func (r *Run) CostLimit() int64 {
	return r.share(int64(r.Config.Limits.CostUSD*1e6)) + r.raised() + r.Counters.Cost
}

func (r *Run) raised() int64 {
	sum := r.Counters.Raised
	for i := range r.Parts {
		sum += r.Parts[i].Raised
	}
	return sum
}

// TokenLimit is the run's cap on tokens, with the shares that humans granted. A
// raised budget raises it in the same proportion.
func (r *Run) TokenLimit() int64 {
	limit := r.share(r.Config.Limits.Tokens)
	if usd := r.Config.Limits.CostUSD; usd > 0 {
		limit += int64(float64(r.Config.Limits.Tokens) * float64(r.raised()) / (usd * 1e6))
	}
	return carried(limit, r.Counters.Tokens)
}

// keep is the share of the budget that stays with the run itself, for the contract,
// the merges and the integration; its modules divide the rest by their size.
const keep = 0.3

// PartBudget is the budget of a module that is given a share of what all modules may
// spend, in micro-dollars and tokens; 0 is no cap on tokens. What the run has spent
// itself, beyond what it keeps, is no longer there to be shared.
func (r *Run) PartBudget(share float64) (cost, tokens int64) {
	part := func(limit, raised, before, own int64) int64 {
		limit += raised
		return max(1, int64(share*min((1-keep)*float64(limit), float64(limit+before-own))))
	}
	usd := int64(r.Config.Limits.CostUSD * 1e6)
	cost = part(r.share(usd), r.Counters.Raised, r.Counters.Cost, r.Usage.MicroUSD)
	if all := r.Config.Limits.Tokens; all > 0 {
		more := int64(float64(all) * float64(r.Counters.Raised) / float64(max(1, usd)))
		tokens = part(r.share(all), more, r.Counters.Tokens, r.Usage.Input+r.Usage.Output)
	}
	return cost, tokens
}

// WallLimit is the limit on working time in milliseconds, likewise; 0 is none.
func (r *Run) WallLimit() int64 {
	return carried(r.share(r.Config.Limits.Wall().Milliseconds()), r.Counters.Millis)
}

// carried is a limit on top of what was used before the run was reopened; 0 stays none.
func carried(limit, before int64) int64 {
	if limit == 0 {
		return 0
	}
	return limit + before
}

func (r *Run) share(limit int64) int64 {
	return limit + limit*int64(r.Counters.Granted)/int64(max(1, r.Config.Loop.MaxIterations))
}

// Worked is the run's working time in milliseconds; waiting for humans is not in it.
func (r *Run) Worked() int64 {
	var sum int64
	for _, ms := range r.Millis {
		sum += ms
	}
	return sum
}
