// Package simulate plays the loop of a run against a stochastic model of agents,
// to compare policies of stopping: Forge's guards against a loop that knows
// nothing but a limit on its iterations.
//
// A simulated run goes through the real [pipeline.Decide] and [pipeline.Run.Apply];
// only the agents, the tests and GitHub are made up. The model (see [Parameters])
// knows what no guard can see: which defects are really there. Each run draws
// from a stream of its own, in the order of its phases, so that all policies see
// the same task and the same luck until one of them stops, and the result depends
// on nothing but the seed.
//
// What is measured:
//
//   - verified: the share of runs that ended so; sound: those of them in which no
//     defect was left, because tests and review can overlook one.
//   - wasted: iterations after the last useful one; one is useful when fewer
//     defects are open after it than before, or when the run was verified in it.
//   - stuck: the same, where only fewer than ever before is useful: mending what
//     the last rework broke does not count.
//   - right: of the escalations, those that ten more iterations would not have
//     verified. The run is played on to see, with `continue` as the answer.
//
// A loop with a fixed limit does what one with a higher limit does until it stops,
// so that one play without a limit tells how every limit fares.
//
// The model leaves out what guards do not weigh: plans, questions, people, and
// reviews that ask for a human. It stores nothing.
package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"forge/pipeline"
)

// Options say what is compared.
type Options struct {
	Config  pipeline.Config // of Forge's loop
	Runs    int             // of the base model
	Sweep   int             // of each other model and each variant; 0: none of those is played
	Seed    uint64
	Workers int             // runs played at the same time; the result does not depend on it
	Done    func(plays int) // told now and then how many runs were played, from any goroutine; may be nil
}

// Result is what a comparison found.
type Result struct {
	Runs  int        `json:"runs"`
	Sweep int        `json:"sweep"`
	Seed  uint64     `json:"seed"`
	Base  Comparison `json:"base"`

	// What follows is of Sweep runs each, and empty without.
	Variants    []Variant     `json:"variants,omitempty"`    // Forge's loop with something changed
	Sensitivity []Sensitivity `json:"sensitivity,omitempty"` // one parameter at a time at the ends of its range
	Optimistic  *Setting      `json:"optimistic,omitempty"`  // all of them at this end
	Pessimistic *Setting      `json:"pessimistic,omitempty"` //
	Draws       []Setting     `json:"draws,omitempty"`       // all parameters anywhere in their ranges
	Reduction   Spread        `json:"reduction"`             // of wasted iterations, over the draws
	IdleLess    Spread        `json:"idle_less"`             // of stuck iterations, likewise
}

// Comparison sets a policy against fixed limits, on the same tasks and with the
// same luck.
type Comparison struct {
	Forge  Tally   `json:"forge"`
	Limits []Tally `json:"limits"` // a fixed limit of 1, 2 …; the last one is the policy "none"
	Equal  Equal   `json:"equal"`
}

// Equal is the fixed limit that verifies the same share: where it lies between
// two, a mixture of both, each for a part of the runs.
type Equal struct {
	Limit     float64 `json:"limit"`
	Verified  float64 `json:"verified"`
	Wasted    float64 `json:"wasted"`    // iterations a run
	Idle      float64 `json:"idle"`      // likewise
	CostUSD   float64 `json:"cost_usd"`  // a run
	Reduction float64 `json:"reduction"` // of wasted iterations, by not using it: 0.4 is 40 % fewer
	IdleLess  float64 `json:"idle_less"` // the same of stuck iterations
}

// Variant is Forge's loop with something changed.
type Variant struct {
	Name string `json:"name"`
	Comparison
}

// Setting is one model of the agents, and what came out.
type Setting struct {
	Model Model `json:"model"`
	Forge Tally `json:"forge"`
	Equal Equal `json:"equal"`
}

// Sensitivity says what one parameter alone does.
type Sensitivity struct {
	Parameter
	Better Setting `json:"at_optimistic"`
	Worse  Setting `json:"at_pessimistic"`
}

// Spread is a distribution in three figures.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// draws is how many random models are tried.
const draws = 40

// Plays is how many runs a comparison plays, for showing how far it is.
func (o *Options) Plays() int {
	n := 2 * o.Runs
	if o.Sweep > 0 {
		n += o.Sweep * (2*(2*len(Parameters())+2+draws) + 1 + len(variants(o.Config)))
	}
	return n
}

// Compare plays runs under Forge's loop and under fixed limits, and compares.
func Compare(ctx context.Context, o Options) (*Result, error) {
	if o.Runs < 1 || o.Sweep < 0 {
		return nil, fmt.Errorf("compare loops over %d runs, and %d of each other model: want at least 1 and 0", o.Runs, o.Sweep)
	}
	res := &Result{Runs: o.Runs, Sweep: o.Sweep, Seed: o.Seed}
	m := Base()
	tallies, err := o.tally(ctx, &m, o.Runs, []policy{{config: o.Config}})
	if err != nil {
		return nil, err
	}
	res.Base = compare(tallies)
	if o.Sweep > 0 {
		err = o.sweep(ctx, res)
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// sweep plays everything but the base.
func (o *Options) sweep(ctx context.Context, res *Result) error {
	m := Base()
	var err error
	if res.Variants, err = o.variants(ctx, &m); err != nil {
		return err
	}
	setting := func(m Model) Setting {
		tallies, e := o.tally(ctx, &m, o.Sweep, []policy{{config: o.Config}})
		if e != nil {
			err = e
			return Setting{}
		}
		c := compare(tallies)
		return Setting{Model: m, Forge: c.Forge, Equal: c.Equal}
	}
	best, worst := setting(Optimistic()), setting(Pessimistic())
	res.Optimistic, res.Pessimistic = &best, &worst
	for _, p := range Parameters() {
		better, worse := Base(), Base()
		*p.field(&better), *p.field(&worse) = p.Optimistic, p.Pessimistic
		res.Sensitivity = append(res.Sensitivity, Sensitivity{Parameter: p, Better: setting(better), Worse: setting(worse)})
	}
	rng := rand.New(rand.NewPCG(o.Seed, ^uint64(0)))
	for range draws {
		res.Draws = append(res.Draws, setting(draw(rng)))
	}
	res.Reduction = spreadOf(res.Draws, func(e Equal) float64 { return e.Reduction })
	res.IdleLess = spreadOf(res.Draws, func(e Equal) float64 { return e.IdleLess })
	return err
}

func spreadOf(settings []Setting, f func(Equal) float64) Spread {
	var v []float64
	for _, s := range settings {
		v = append(v, f(s.Equal))
	}
	slices.Sort(v)
	n := len(v)
	return Spread{Min: v[0], Median: (v[(n-1)/2] + v[n/2]) / 2, Max: v[n-1]}
}

// variants plays Forge's loop with one thing changed at a time.
func (o *Options) variants(ctx context.Context, m *Model) ([]Variant, error) {
	changed := variants(o.Config)
	var configs []policy
	for _, v := range changed {
		configs = append(configs, v.policy)
	}
	tallies, err := o.tally(ctx, m, o.Sweep, configs)
	if err != nil {
		return nil, err
	}
	limits := tallies[len(configs):]
	var out []Variant
	for i, v := range changed {
		out = append(out, Variant{Name: v.name, Comparison: compare(append([]Tally{tallies[i]}, limits...))})
	}
	return out, nil
}

type variant struct {
	name   string
	policy policy
}

func variants(cfg pipeline.Config) []variant {
	with := func(name string, change func(*pipeline.Config)) variant {
		c := cfg
		change(&c)
		return variant{name, policy{config: c}}
	}
	return []variant{
		with("diminishing returns off", func(c *pipeline.Config) { c.Loop.DiminishingFrom = unlimited }),
		with("diminishing returns from the 3rd bounce", func(c *pipeline.Config) { c.Loop.DiminishingFrom = 3 }),
		with("the same again: off", func(c *pipeline.Config) { c.Loop.SameFinding, c.Loop.SameFailure = unlimited, unlimited }),
		with("the same again: 2 times", func(c *pipeline.Config) { c.Loop.SameFinding, c.Loop.SameFailure = 2, 2 }),
		with("bounce limits off", func(c *pipeline.Config) { c.Loop.ReviewBounces, c.Loop.TestBounces = unlimited, unlimited }),
		with("circuit breaker off", func(c *pipeline.Config) { c.Breaker.Enabled = false }),
		with("auto_fix_only off", func(c *pipeline.Config) { c.Loop.AutoFixOnly = false }),
		with("limit of iterations 10", func(c *pipeline.Config) { c.Loop.MaxIterations = 10 }),
		with("limit 12, the same 4 times, nothing else", func(c *pipeline.Config) { *c = fixed(12).config; c.Loop.SameFinding, c.Loop.SameFailure = 4, 4 }),
		with("limit 12, the same 4 times, auto_fix_only", func(c *pipeline.Config) {
			sure := c.Loop.AutoFixConfidence
			*c = fixed(12).config
			c.Loop.SameFinding, c.Loop.SameFailure, c.Loop.AutoFixOnly, c.Loop.AutoFixConfidence = 4, 4, true, sure
		}),
	}
}

// chunk is how many runs a worker takes at a time.
const chunk = 250

// tally plays runs of a model under each configuration, and once without a limit.
// It returns the tallies of the configurations, then those of the fixed limits.
func (o *Options) tally(ctx context.Context, m *Model, runs int, configs []policy) ([]Tally, error) {
	total := make([]Tally, len(configs)+most)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var next atomic.Int64
	for range max(1, o.Workers) {
		wg.Go(func() {
			own := make([]Tally, len(total))
			for ctx.Err() == nil {
				from := int(next.Add(chunk)) - chunk
				if from >= runs {
					break
				}
				n := min(chunk, runs-from)
				for i := range n {
					o.playAll(own, m, uint64(from+i), configs)
				}
				if o.Done != nil {
					o.Done(n * (len(configs) + 1))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range own {
				total[i].add(&own[i])
			}
		})
	}
	wg.Wait()
	return total, ctx.Err()
}

func (o *Options) playAll(into []Tally, m *Model, run uint64, configs []policy) {
	for i, cfg := range configs {
		c := play(cfg, m, o.Seed, run, 0)
		into[i].decided(&c)
	}
	c := play(fixed(unlimited), m, o.Seed, run, most+beyond)
	for i := range most {
		into[len(configs)+i].limited(&c, i+1)
	}
}

// compare takes the tally of a policy and those of the fixed limits.
func compare(tallies []Tally) Comparison {
	c := Comparison{Forge: tallies[0], Limits: tallies[1:]}
	e, share := &c.Equal, c.Forge.VerifiedShare()
	low := &Tally{} // a limit of 0: nothing begun, nothing verified
	for i := range c.Limits {
		high := &c.Limits[i]
		a, b := low.VerifiedShare(), high.VerifiedShare()
		if share <= b || i == len(c.Limits)-1 {
			part := 1.0
			if b > a {
				part = min(1, (share-a)/(b-a))
			}
			mix := func(f func(*Tally) float64) float64 { return f(low) + part*(f(high)-f(low)) }
			e.Limit, e.Verified = float64(i)+part, mix((*Tally).VerifiedShare)
			e.Wasted, e.CostUSD = mix((*Tally).WastedPerRun), mix((*Tally).CostPerRun)
			e.Idle = mix((*Tally).IdlePerRun)
			break
		}
		low = high
	}
	e.Reduction, e.IdleLess = less(c.Forge.WastedPerRun(), e.Wasted), less(c.Forge.IdlePerRun(), e.Idle)
	return c
}

// less says by what part a is less than b.
func less(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return 1 - a/b
}
