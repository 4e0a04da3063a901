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
//   - wasted: iterations after the last useful one. One is useful when fewer
//     defects are open after it than ever before, or when the run was verified in
//     it: without those that come after the last, the run would be as far.
//   - idle: the same, where fewer than before is enough. A run that goes nowhere,
//     but breaks and mends, is hardly ever idle, however long it goes on.
//   - right: of the escalations, those that ten more iterations would not have
//     verified.
//
// A loop with a fixed limit does what one with a higher limit does until it stops,
// and so does a loop with guards. So one play without a limit tells how every limit
// fares, and what would have become of a run that a guard stopped.
//
// A loop with a fixed limit knows rounds alone: where the implementer says that it
// cannot mend something and needs a clarification (V5), it goes on, and Forge
// stops. The variant "not heard" says what the other guards do without that.
//
// The model leaves out what guards do not weigh: plans, what people answer, and
// reviews that ask for a human. It stores nothing.
package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"forge/pipeline/config"
)

// Profile is a configuration of Forge's loop, with a name.
type Profile struct {
	Name   string
	Config config.Config
}

// Profiles are the defaults, and a patient loop for teams that would rather wait than
// be asked. The patient one stops for the strongest signs: the implementer says that it
// cannot go on, or several weak signs come together (it doubts that it can, no failure
// has a confident fix). Its other limits are wider.
func Profiles() []Profile {
	patient := config.Default()
	patient.Loop, patient.Breaker = config.Profile("patient")
	patient.Limits.CostUSD, patient.Limits.Tokens, patient.Limits.WallMinutes = 40, 20_000_000, 480
	return []Profile{{"defaults", config.Default()}, {"patient", patient}}
}

// Balanced is the profile between the two.
func Balanced() Profile {
	c := config.Default()
	c.Loop, c.Breaker = config.Profile("balanced")
	return Profile{"balanced", c}
}

// Options say what is compared.
type Options struct {
	Profiles []Profile // of Forge's loop
	Runs     int       // of the base model
	Sweep    int       // of each other model; 0: none of those is played, and no variants
	Seed     uint64
	Workers  int             // runs played at the same time; the result does not depend on it
	Done     func(plays int) // told now and then how many runs were played, from any goroutine; may be nil
}

// Result is what a comparison found. What it says of each profile is in the order
// of Options.Profiles.
type Result struct {
	Runs     int             `json:"runs"`
	Sweep    int             `json:"sweep"`
	Seed     uint64          `json:"seed"`
	Limits   []Tally         `json:"limits"` // of the base model, a fixed limit of 1, 2 …; the last one is the policy "none"
	Profiles []ProfileResult `json:"profiles"`

	// What follows is of Sweep runs each, and empty without.
	Sensitivity []Sensitivity `json:"sensitivity,omitempty"` // one parameter at a time at the ends of its range
	Middle      *Setting      `json:"middle,omitempty"`      // every parameter at its base
	Optimistic  *Setting      `json:"optimistic,omitempty"`  // all of them at this end
	Pessimistic *Setting      `json:"pessimistic,omitempty"` //
	Draws       []Setting     `json:"draws,omitempty"`       // all parameters anywhere in their ranges
}

// ProfileResult is what came out for a profile.
type ProfileResult struct {
	Name string `json:"name"`
	Comparison
	Variants  []Variant `json:"variants,omitempty"` // with something changed, of variantRuns times Sweep runs
	Reduction Spread    `json:"reduction"`          // of wasted iterations, over the draws
	IdleLess  Spread    `json:"idle_less"`          // of idle iterations, likewise
}

// Comparison sets a policy against the fixed limit that is as good, on the same
// tasks and with the same luck.
type Comparison struct {
	Forge Tally `json:"forge"`
	Equal Equal `json:"equal"`
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
	IdleLess  float64 `json:"idle_less"` // the same of idle iterations
}

// Variant is a profile with something changed.
type Variant struct {
	Name string `json:"name"`
	Comparison
}

// Setting is one model of the agents, and what came out for each profile.
type Setting struct {
	Model    Model        `json:"model"`
	Profiles []Comparison `json:"profiles"`
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

// draws is how many random models are tried; variantRuns how many runs of a
// variant, for one of a model: variants are compared with each other.
const (
	draws       = 40
	variantRuns = 5
)

// Plays is how many runs a comparison plays, for showing how far it is.
func (o *Options) Plays() int {
	each := len(o.Profiles) + 1
	n := each * o.Runs
	if o.Sweep > 0 {
		_, changed := o.changed()
		n += o.Sweep * (each*(2*len(Parameters())+3+draws) + variantRuns*(1+len(changed)))
	}
	return n
}

// Compare plays runs under Forge's loop and under fixed limits, and compares.
func Compare(ctx context.Context, o Options) (*Result, error) {
	if o.Runs < 1 || o.Sweep < 0 {
		return nil, fmt.Errorf("compare loops over %d runs, and %d of each other model: want at least 1 and 0", o.Runs, o.Sweep)
	}
	res, m := &Result{Runs: o.Runs, Sweep: o.Sweep, Seed: o.Seed}, Base()
	found, limits, err := o.compare(ctx, &m, o.Runs, o.policies())
	if err != nil {
		return nil, err
	}
	res.Limits = limits
	for i, c := range found {
		res.Profiles = append(res.Profiles, ProfileResult{Name: o.Profiles[i].Name, Comparison: c})
	}
	if o.Sweep > 0 {
		if err := o.variants(ctx, res); err != nil {
			return nil, err
		}
		if err := o.sweep(ctx, res); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (o *Options) policies() []policy {
	var out []policy
	for _, p := range o.Profiles {
		out = append(out, policy{config: p.Config})
	}
	return out
}

// sweep plays the profiles under other models.
func (o *Options) sweep(ctx context.Context, res *Result) error {
	var err error
	policies, other := o.policies(), *o
	setting := func(m Model) Setting {
		found, _, e := other.compare(ctx, &m, o.Sweep, policies)
		if e != nil {
			err = e
		}
		return Setting{Model: m, Profiles: found}
	}
	base := setting(Base())
	res.Middle = &base
	best, worst := setting(Optimistic()), setting(Pessimistic())
	res.Optimistic, res.Pessimistic = &best, &worst
	for _, p := range Parameters() {
		better, worse := Base(), Base()
		*p.field(&better), *p.field(&worse) = p.Optimistic, p.Pessimistic
		res.Sensitivity = append(res.Sensitivity, Sensitivity{Parameter: p, Better: setting(better), Worse: setting(worse)})
	}
	rng := rand.New(rand.NewPCG(o.Seed, ^uint64(0)))
	for range draws {
		other.Seed++ // their spread is not to hang on the luck of the same runs
		res.Draws = append(res.Draws, setting(draw(rng)))
	}
	if err != nil {
		return err
	}
	for i := range res.Profiles {
		p := &res.Profiles[i]
		p.Reduction = spreadOf(res.Draws, i, func(e Equal) float64 { return e.Reduction })
		p.IdleLess = spreadOf(res.Draws, i, func(e Equal) float64 { return e.IdleLess })
	}
	return nil
}

func spreadOf(settings []Setting, profile int, f func(Equal) float64) Spread {
	var v []float64
	for _, s := range settings {
		v = append(v, f(s.Profiles[profile].Equal))
	}
	slices.Sort(v)
	n := len(v)
	return Spread{Min: v[0], Median: (v[(n-1)/2] + v[n/2]) / 2, Max: v[n-1]}
}

// variants plays the profiles with one thing changed at a time.
func (o *Options) variants(ctx context.Context, res *Result) error {
	m := Base()
	names, changed := o.changed()
	found, _, err := o.compare(ctx, &m, variantRuns*o.Sweep, changed)
	if err != nil {
		return err
	}
	for i, c := range found {
		p := &res.Profiles[i*len(res.Profiles)/len(found)]
		p.Variants = append(p.Variants, Variant{Name: names[i], Comparison: c})
	}
	return nil
}

// changed lists the variants: as many of each profile, one profile after the other.
func (o *Options) changed() (names []string, out []policy) {
	for _, p := range o.Profiles {
		for _, v := range []struct {
			name   string
			change func(*policy)
		}{
			{"nothing changed", func(*policy) {}},
			{"not heard that it cannot", func(p *policy) { p.deaf = true }},
			{"not asked outright", func(p *policy) { p.unasked = true }},
			{"doubts off", func(p *policy) { p.config.Loop.Doubts = unlimited }},
			{"diminishing returns off", func(p *policy) { p.config.Loop.DiminishingFrom = unlimited }},
			{"the same again: off", func(p *policy) { p.config.Loop.SameFinding, p.config.Loop.SameFailure = unlimited, unlimited }},
			{"auto_fix_only the other way", func(p *policy) { p.config.Loop.AutoFixOnly = !p.config.Loop.AutoFixOnly }},
			{"bounce limits and breaker off", func(p *policy) {
				p.config.Loop.ReviewBounces, p.config.Loop.TestBounces, p.config.Breaker.Enabled = unlimited, unlimited, false
			}},
		} {
			pol := policy{config: p.Config}
			v.change(&pol)
			names, out = append(names, v.name), append(out, pol)
		}
	}
	return names, out
}

// chunk is how many runs a worker takes at a time.
const chunk = 250

// tally plays runs of a model under each configuration, and once without a limit.
// It returns the tallies of the configurations, then those of the fixed limits.
func (o *Options) tally(ctx context.Context, m *Model, runs int, policies []policy) ([]Tally, error) {
	total := make([]Tally, len(policies)+most)
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
					o.playAll(own, m, uint64(from+i), policies)
				}
				if o.Done != nil {
					o.Done(n * (len(policies) + 1))
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

func (o *Options) playAll(into []Tally, m *Model, run uint64, policies []policy) {
	open := play(fixed(unlimited), m, o.Seed, run, most+beyond)
	for i, p := range policies {
		c := play(p, m, o.Seed, run, toGate)
		if c.guard != "" && open.verified <= c.stopped+beyond {
			c.verified = open.verified // had it gone on
		}
		into[i].decided(&c)
	}
	for i := range most {
		into[len(policies)+i].limited(&open, i+1)
	}
}

// compare plays policies and sets each against the fixed limits, which it returns.
func (o *Options) compare(ctx context.Context, m *Model, runs int, policies []policy) ([]Comparison, []Tally, error) {
	tallies, err := o.tally(ctx, m, runs, policies)
	if err != nil {
		return nil, nil, err
	}
	var out []Comparison
	limits := tallies[len(policies):]
	for _, t := range tallies[:len(policies)] {
		out = append(out, Comparison{Forge: t, Equal: equal(&t, limits)})
	}
	return out, limits, nil
}

// equal finds the fixed limit that verifies the same share as a policy.
func equal(forge *Tally, limits []Tally) Equal {
	var e Equal
	share, low := forge.VerifiedShare(), &Tally{} // a limit of 0: nothing begun, nothing verified
	for i := range limits {
		high := &limits[i]
		a, b := low.VerifiedShare(), high.VerifiedShare()
		if share <= b || i == len(limits)-1 {
			part := 1.0
			if b > a {
				part = min(1, (share-a)/(b-a))
			}
			mix := func(f func(*Tally) float64) float64 { return f(low) + part*(f(high)-f(low)) }
			e.Limit, e.Verified = float64(i)+part, mix((*Tally).VerifiedShare)
			e.Wasted, e.Idle, e.CostUSD = mix((*Tally).WastedPerRun), mix((*Tally).IdlePerRun), mix((*Tally).CostPerRun)
			break
		}
		low = high
	}
	e.Reduction, e.IdleLess = less(forge.WastedPerRun(), e.Wasted), less(forge.IdlePerRun(), e.Idle)
	return e
}

// less says by what part a is less than b.
func less(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return 1 - a/b
}
