package simulate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"forge/pipeline/config"
	"forge/pipeline/module"
)

// What the model of modules adds to that of the loop. A module of size M is a middling
// task; a feature in one piece is as large as its modules together.
const (
	mistakes  = 0.30 // mean number of interface mistakes for each need, which only the integration sees; assumed
	strangers = 0.05 // the same for each pair of modules without one; assumed
	clashes   = 0.05 // chance that a merge conflicts, or breaks a test; assumed
	wiring    = 0.5  // size of what is left to wire; assumed
)

// ModulesOptions say what is compared.
type ModulesOptions struct {
	Features int       // drawn for each size
	Sizes    []float64 // of a module of size M; 1 is a middling task
	Parallel int
	Seed     uint64
	Workers  int
}

// ModulesResult says when splitting a feature pays, by what the plan's own sizes promise.
type ModulesResult struct {
	Features int          `json:"features"`
	Seed     uint64       `json:"seed"`
	Rows     []ModulesRow `json:"rows"`
}

// ModulesRow is what came out for features whose plan promises a gain.
type ModulesRow struct {
	Size     float64 `json:"size"`
	From     float64 `json:"from"` // the promised gain, from here on up to the next row's
	Features int     `json:"features"`
	Gain     float64 `json:"gain"`   // of working time, mean: 1 − modules/one piece
	Faster   float64 `json:"faster"` // share of the features that were
	Cost     float64 `json:"cost"`   // of modules, as a multiple of one piece
	Alone    float64 `json:"alone"`  // share of features that are verified without a question, as modules
	OnePiece float64 `json:"one_piece"`
}

// gainSteps are where rows begin.
var gainSteps = []float64{math.Inf(-1), 0, 0.1, 0.2, 0.3, 0.4, 0.5}

// CompareModules builds features in one piece and as modules, with the same agents. Both
// are played until they are verified; a human who is asked lets them go on.
func CompareModules(ctx context.Context, o ModulesOptions) (*ModulesResult, error) {
	if o.Features < 1 {
		return nil, fmt.Errorf("compare modules over %d features: want at least 1", o.Features)
	}
	res := &ModulesResult{Features: o.Features, Seed: o.Seed}
	for _, size := range o.Sizes {
		found := make([]feature, o.Features)
		next := make(chan int)
		var workers sync.WaitGroup
		for range max(1, o.Workers) {
			workers.Go(func() {
				for i := range next {
					found[i] = playFeature(o.Seed, uint64(i), o.Parallel, size)
				}
			})
		}
		for i := range o.Features {
			if ctx.Err() != nil {
				break
			}
			next <- i
		}
		close(next)
		workers.Wait()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, rowsOf(size, found)...)
	}
	return res, nil
}

func rowsOf(size float64, found []feature) (out []ModulesRow) {
	for k, from := range gainSteps {
		row := ModulesRow{Size: size, From: from}
		for _, f := range found {
			if f.promised < from || k+1 < len(gainSteps) && f.promised >= gainSteps[k+1] {
				continue
			}
			row.Features++
			row.Gain += 1 - f.split.minutes/f.whole.minutes
			row.Cost += f.split.micro / f.whole.micro
			if f.split.minutes < f.whole.minutes {
				row.Faster++
			}
			if f.split.alone {
				row.Alone++
			}
			if f.whole.alone {
				row.OnePiece++
			}
		}
		if n := float64(row.Features); n > 0 {
			row.Gain, row.Cost, row.Faster, row.Alone, row.OnePiece = row.Gain/n, row.Cost/n, row.Faster/n, row.Alone/n, row.OnePiece/n
			if k == 0 {
				row.From = -1 // JSON has no infinity
			}
			out = append(out, row)
		}
	}
	return out
}

// feature is one that was built both ways.
type feature struct {
	plan         *module.Split
	promised     float64 // the gain by the plan's own sizes
	whole, split outcome
}

type outcome struct {
	minutes, micro float64
	alone          bool // verified without a question
}

var sizes = map[string]float64{"S": 0.5, "M": 1, "L": 2}

// drawSplit draws a feature: two to six modules, some of which need earlier ones.
func drawSplit(rng *rand.Rand) *module.Split {
	s := &module.Split{}
	for i := range 2 + rng.IntN(5) {
		m := module.Module{ID: "m" + strconv.Itoa(i), Size: []string{"S", "M", "M", "L"}[rng.IntN(4)], Paths: []string{fmt.Sprintf("m%d/**", i)}}
		for j := range i {
			if rng.Float64() < 0.25 {
				m.Needs = append(m.Needs, "m"+strconv.Itoa(j))
			}
		}
		s.Modules = append(s.Modules, m)
	}
	return s
}

func playFeature(seed, n uint64, parallel int, size float64) feature {
	rng := rand.New(rand.NewPCG(seed, n))
	s := drawSplit(rng)
	total := 0.0
	for _, m := range s.Modules {
		total += size * sizes[m.Size]
	}
	b := builder{rng: rng, seed: seed, run: n * 100, total: total, scale: size, policy: policy{config: roomy(config.Default())}}
	f := feature{plan: s, promised: s.Estimate(parallel).Gain}
	f.whole = b.build(sighted(), total)
	f.split = b.modules(s, parallel)
	return f
}

// roomy takes the caps on money and time away, which are set for one task of middling size.
func roomy(c config.Config) config.Config {
	c.Limits = config.Limits{CostUSD: 1e6}
	return c
}

// sighted is the base without what a reviewer never sees: what it is, and where, is the same
// in one piece and in modules. What people are told beforehand (module.Split.Forecast) is
// fitted to it.
func sighted() Model {
	m := Base()
	m.Blind = 0
	return m
}

// builder plays the loops of one feature.
type builder struct {
	rng    *rand.Rand
	seed   uint64
	run    uint64 // the next loop's
	total  float64
	scale  float64 // of a module of size M
	policy policy
}

// build plays a loop over a task of a size.
func (b *builder) build(m Model, size float64) outcome {
	b.run++
	m.Defects *= size
	m.Unsolvable = 1 - math.Pow(1-m.Unsolvable, size/b.total)
	c := playSized(b.policy, &m, size, b.seed, b.run, 0)
	return outcome{float64(c.allMillis) / 60_000, float64(c.allMicro), c.verified > 0 && c.guard == ""}
}

// modules plays the contract, the modules in the order in which they can begin, their
// merges, and the integration.
func (b *builder) modules(s *module.Split, parallel int) outcome {
	all := outcome{minutes: minutesPlan + minutesImplement*wiring + minutesTest, micro: costPlan + costFresh*wiring, alone: true}
	ends, merged := map[string]float64{}, map[string]bool{}
	now := all.minutes
	for len(merged) < len(s.Modules) {
		working := 0
		for id := range ends {
			if !merged[id] {
				working++
			}
		}
		for _, id := range s.Ready(func(id string) bool { _, ok := ends[id]; return ok }, func(id string) bool { return merged[id] }) {
			if working < max(1, parallel) {
				working++
				o := b.build(sighted(), b.scale*sizes[s.Module(id).Size])
				o.minutes += minutesTest // of its base
				if b.rng.Float64() < clashes {
					o.minutes += minutesImplement + minutesReview + minutesTest
					o.micro += costRework + costReview + costTest
				}
				ends[id] = now + o.minutes
				all.micro += o.micro
				all.alone = all.alone && o.alone
			}
		}
		first := ""
		for _, id := range slices.Sorted(maps.Keys(ends)) {
			if !merged[id] && (first == "" || ends[id] < ends[first]) {
				first = id
			}
		}
		if now = max(now, ends[first]); len(merged) > 0 {
			now += minutesTest // on the merge
		}
		merged[first] = true
	}
	m := sighted()
	needs := 0
	for _, mod := range s.Modules {
		needs += len(mod.Needs)
	}
	pairs := len(s.Modules) * (len(s.Modules) - 1) / 2
	m.Defects = mistakes*float64(needs) + strangers*float64(pairs-needs)
	m.Unsolvable = 0 // the modules have shown that it can be done
	c := playSized(b.policy, &m, wiring, b.seed, b.run+1, 0)
	b.run++
	all.minutes = now + float64(c.allMillis)/60_000 + minutesReview*(b.total-wiring)/2
	all.micro += float64(c.allMicro) + costReview*(b.total-wiring)/2
	all.alone = all.alone && c.verified > 0 && c.guard == ""
	return all
}
