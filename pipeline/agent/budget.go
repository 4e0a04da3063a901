package agent

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

//go:embed prices.yaml
var builtinPrices []byte

// Price is what a model costs, in USD per million tokens. A zero Cached or CacheWrite
// means that the provider charges tokens that its prompt cache serves or takes like
// others. Calls whose input has more than Above tokens cost Long.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	Cached     float64 `json:"cached,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
	Above      int64   `json:"above,omitempty"`
	Long       *Price  `json:"long,omitempty"`
}

// Prices has a price for each model by provider/model.
type Prices map[string]Price

// LoadPrices returns the table that ships with the program, and of when it is.
func LoadPrices() (out Prices, asOf string, err error) { return readPrices(builtinPrices) }

func readPrices(src []byte) (Prices, string, error) {
	var file struct {
		AsOf   string `json:"as_of"`
		Models Prices `json:"models"`
	}
	if err := yaml.UnmarshalWithOptions(src, &file, yaml.Strict()); err != nil {
		return nil, "", fmt.Errorf("read prices: %w", err)
	}
	for name, p := range file.Models {
		if p.Input < 0 || p.Output < 0 || p.Cached < 0 || p.CacheWrite < 0 || (p.Above > 0) != (p.Long != nil) {
			return nil, "", fmt.Errorf("read prices: %s: prices must not be negative, and above goes together with long", name)
		}
	}
	return file.Models, file.AsOf, nil
}

// dated matches the date that a snapshot of a model carries in its name.
var dated = lazyregexp.New(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// Find returns the price of a model; a dated snapshot costs what its model costs.
// A scripted model costs nothing unless the table says otherwise.
func (p Prices) Find(name string) (Price, bool) {
	if price, ok := p[name]; ok {
		return price, true
	}
	if price, ok := p[dated.ReplaceAllString(name, "")]; ok {
		return price, true
	}
	return Price{}, strings.HasPrefix(name, "tape:")
}

// charge books what a model's usage costs, or that its cost is not known.
func (p Prices) charge(model string, u *pipeline.Usage) {
	if price, ok := p.Find(model); ok {
		u.MicroUSD = price.cost(*u)
	} else {
		u.Unpriced = u.Input + u.Output
	}
}

// cost returns what usage costs in micro-dollars: USD per million tokens is
// micro-dollars per token.
func (p Price) cost(u pipeline.Usage) int64 {
	if p.Long != nil && u.Input > p.Above {
		return p.Long.cost(u)
	}
	read, write := p.Cached, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	plain := max(0, u.Input-u.CachedInput-u.CacheWrite)
	return int64(math.Ceil(float64(plain)*p.Input + float64(u.CachedInput)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output))
}

// budget holds a phase against the caps of its run. It reserves before a call
// what the call may cost at most, and books after it what it did cost.
type budget struct {
	role   config.Role
	cost   int64          // cap of the run in micro-dollars, 0: none
	tokens int64          // cap of the run, 0: none
	before pipeline.Usage // of the run, when the phase began
	share  int64          // cap of the phase in micro-dollars, 0: none
	phase  pipeline.Usage // of earlier executions of the phase
	now    pipeline.Usage // of this execution, calls played back left out
	meter  *Meter         // of all that goes on beside it, itself included; nil: nothing does
}

// Meter counts what agents use that work on a phase of a run at the same time, so that
// they keep to the run's caps together.
type Meter struct {
	mu   sync.Mutex
	used pipeline.Usage
}

func (m *Meter) add(u pipeline.Usage) pipeline.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Add(u)
	return m.used
}

// used is what the phase has used by now.
func (b *budget) used() pipeline.Usage {
	if b.meter != nil {
		return b.meter.add(pipeline.Usage{})
	}
	return b.now
}

// reserve returns what the call may cost at most, 0 where that is not known, and a
// fault when it could break a cap.
func (b *budget) reserve(model string, prices Prices, input, output int64) (micros int64, err error) {
	price, known := prices.Find(model)
	now := b.used()
	used := b.before.Input + b.before.Output + now.Input + now.Output
	if b.tokens > 0 && used+input+output > b.tokens {
		return 0, budgetFault("the run has used %d of its %d tokens, and the next call of the %s (%s) may take %d: raise the budget, or limits.tokens",
			used, b.tokens, b.role, model, input+output)
	}
	if !known {
		if b.tokens <= 0 {
			return 0, budgetFault("%s has no price, so its cost cannot be capped: set limits.tokens, or give the model a price", model)
		}
		return 0, nil
	}
	next := price.cost(pipeline.Usage{Input: input, Output: output})
	if spent := b.before.MicroUSD + now.MicroUSD; b.cost > 0 && spent+next > b.cost {
		return 0, budgetFault("the run has cost %s of its %s, and the next call of the %s (%s) may cost %s: raise the budget, or limits.cost_usd",
			text.USDExact(spent), text.USDExact(b.cost), b.role, model, text.USDExact(next))
	}
	if spent := b.phase.MicroUSD + now.MicroUSD; b.share > 0 && spent+next > b.share {
		return 0, budgetFault("the %s has cost %s of its share of %s, and its next call (%s) may cost %s: raise limits.cost_usd",
			b.role, text.USDExact(spent), text.USDExact(b.share), model, text.USDExact(next))
	}
	return next, nil
}

func (b *budget) settle(u pipeline.Usage) {
	b.now.Add(u)
	if b.meter != nil {
		b.meter.add(u)
	}
}

func budgetFault(format string, args ...any) error {
	return &pipeline.Fault{Class: pipeline.FaultBudget, Message: fmt.Sprintf(format, args...)}
}

// tokens estimates what text takes: a token is some 4 bytes of English or code.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }
