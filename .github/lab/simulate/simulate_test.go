package simulate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/config"
)

func compareSome(t *testing.T, o Options) *Result {
	t.Helper()
	o.Profiles = Profiles()
	res, err := Compare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// The result is that of the seed, however many workers play, and however many
// runs each of them takes.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	var plays atomic.Int64
	o := Options{Profiles: Profiles(), Runs: 150, Seed: 7, Workers: 1, Done: func(n int) { plays.Add(int64(n)) }}
	one := compareSome(t, o)
	if got := int(plays.Load()); got != o.Plays() {
		t.Errorf("played %d runs, announced %d", got, o.Plays())
	}
	o.Workers = 4
	if diff := cmp.Diff(one, compareSome(t, o)); diff != "" {
		t.Errorf("four workers find something else (-one +four):\n%s", diff)
	}
	o.Seed = 8
	if cmp.Equal(one.Profiles, compareSome(t, o).Profiles) {
		t.Error("another seed plays the same runs")
	}
}

func anyModel(t *rapid.T) (Model, uint64) {
	seed := rapid.Uint64().Draw(t, "seed")
	return draw(rand.New(rand.NewPCG(seed, 1))), seed
}

// Every run ends, under every policy, and what is counted about it fits together.
func TestEveryRunEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, seed := anyModel(t)
		cfg := config.Default()
		cfg.Loop.MaxIterations = rapid.IntRange(1, 8).Draw(t, "iterations")
		cfg.Loop.DiminishingFrom = rapid.SampledFrom([]int{2, 3, unlimited}).Draw(t, "diminishing")
		c := play(policy{config: cfg}, &m, seed, 0, 0)
		switch {
		case c.guard == "" && c.verified == 0:
			t.Fatalf("neither verified nor stopped: %+v", c)
		case c.guard == "" && c.verified > cfg.Loop.MaxIterations:
			t.Fatalf("verified in iteration %d of %d", c.verified, cfg.Loop.MaxIterations)
		case c.guard != "" && (c.stopped > cfg.Loop.MaxIterations || c.verified > c.stopped+beyond):
			t.Fatalf("stopped in iteration %d of %d, verified in %d", c.stopped, cfg.Loop.MaxIterations, c.verified)
		case c.guard != "" && c.verified > 0 && c.cost > c.micro[c.verified-1]:
			t.Fatalf("going on made it cheaper: %d, then %d", c.cost, c.micro[c.verified-1])
		}
		n := c.stopped
		wasted, idle := since(c.useful, n), since(c.improved, n)
		if idle < 0 || wasted < idle || n > 0 && wasted > n {
			t.Fatalf("wasted %d, idle %d of %d iterations", wasted, idle, n)
		}
	})
}

// With a reviewer and tests that overlook nothing, what is verified has no defect
// left, and a task that cannot be solved is never verified.
func TestNothingVerifiedThatIsNotTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, seed := anyModel(t)
		m.Recall, m.Recheck, m.Unsolvable = 1, 1, 0.5
		c, core := play(fixed(unlimited), &m, seed, 0, most), newWorld(&m, seed, 0).core
		if c.verified > 0 && (!c.sound || core) {
			t.Fatalf("verified in iteration %d with a defect left; unsolvable: %v", c.verified, core)
		}
	})
}

// A perfect agent is verified at once, a hopeless one never.
func TestExtremes(t *testing.T) {
	t.Parallel()
	perfect := Model{Tested: 1, Recall: 1, Recheck: 1}
	c := play(policy{config: config.Default()}, &perfect, 1, 1, 0)
	if c.verified != 1 || c.guard != "" || !c.sound {
		t.Errorf("a perfect agent: %+v", c)
	}
	hopeless := Model{Unsolvable: 1, Tested: 1, Recall: 1, Recheck: 1}
	c = play(policy{config: config.Default()}, &hopeless, 1, 1, 0)
	if c.verified != 0 || c.guard == "" || since(c.useful, c.stopped) != c.stopped-1 {
		t.Errorf("a hopeless task: %+v", c)
	}
}

// Doubts are told by an implementer that is asked, and stop a loop that hears them:
// of what comes back alone, and not before there are as many as it waits for.
func TestDoubts(t *testing.T) {
	t.Parallel()
	m := Model{Unsolvable: 1, Tested: 1, Recall: 1, Recheck: 1, Asked: 1, Sure: 1, SureWrong: 1}
	patient := Profiles()[1].Config
	off := patient
	off.Loop.Doubts = unlimited
	for _, c := range []struct {
		name   string
		policy policy
		want   bool
	}{
		{"patient", policy{config: patient}, true},
		{"not asked outright", policy{config: patient, unasked: true}, false},
		{"not heard", policy{config: patient, deaf: true}, false},
		{"doubts off", policy{config: off}, false},
	} {
		fired := 0
		for run := range uint64(50) {
			got := play(c.policy, &m, 1, run, toGate)
			if got.guard != pipeline.GuardDoubts {
				continue
			}
			if fired++; got.stopped < 4 { // the third is the first that is told of what came back
				t.Errorf("%s: run %d was stopped in iteration %d", c.name, run, got.stopped)
			}
		}
		if (fired > 25) != c.want || !c.want && fired > 0 {
			t.Errorf("%s: doubts stopped %d of 50 runs", c.name, fired)
		}
	}
}

// Policies differ in where they stop and in nothing else: what a run would have
// become after a guard stopped it is what becomes of it without guards, and a
// loop with a fixed limit is the beginning of one without.
func TestCommonRandomNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, seed := anyModel(t)
		open := play(fixed(unlimited), &m, seed, 0, most+beyond)
		c := play(policy{config: config.Default()}, &m, seed, 0, 0)
		want := open.verified
		if c.guard != "" && want > c.stopped+beyond {
			want = 0
		}
		first := play(policy{config: config.Default()}, &m, seed, 0, toGate)
		if first.guard != c.guard || first.stopped != c.stopped || first.cost != c.cost {
			t.Fatalf("stopped in %d by %s, and when it is played on, in %d by %s", first.stopped, first.guard, c.stopped, c.guard)
		}
		if c.verified != want || want > 0 && c.sound != open.sound {
			t.Fatalf("stopped in %d by %s, then verified in %d; without guards in %d", c.stopped, c.guard, c.verified, open.verified)
		}
		m.Idle = 0 // a round without a commit has a guard that no setting turns off
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		open, c = play(fixed(unlimited), &m, seed, 0, most+beyond), play(fixed(limit), &m, seed, 0, 0)
		var played, derived Tally
		played.decided(&c)
		derived.limited(&open, limit)
		if diff := cmp.Diff(played, derived, cmpopts.IgnoreFields(Tally{}, "Guards")); diff != "" {
			t.Fatalf("limit %d (-played +derived):\n%s", limit, diff)
		}
	})
}

// What more iterations can only make better or worse.
func TestLimits(t *testing.T) {
	t.Parallel()
	res := compareSome(t, Options{Runs: 100, Sweep: 8, Seed: 1, Workers: 2})
	limits := res.Limits
	for i := 1; i < len(limits); i++ {
		a, b := &limits[i-1], &limits[i]
		if b.Verified < a.Verified || b.MicroUSD < a.MicroUSD || b.Iterations < a.Iterations || b.Runs != 100 {
			t.Errorf("limit %d: %+v; limit %d: %+v", i, a, i+1, b)
		}
	}
	none := limits[len(limits)-1]
	if none.Verified < limits[4].Verified || none.Verified+none.Escalated != none.Runs {
		t.Errorf("none: %+v", none)
	}
	for i, p := range res.Profiles {
		f, fired, right := p.Forge, 0, 0
		for _, g := range f.Guards {
			fired, right = fired+g.Fired, right+g.Right
		}
		if fired != f.Escalated || right != f.Right || f.Verified+f.Escalated != f.Runs || f.Sound > f.Verified {
			t.Errorf("%s: guards fired %d times, %d rightly: %+v", p.Name, fired, right, f)
		}
		if res.Pessimistic.Profiles[i].Forge.VerifiedShare() >= res.Optimistic.Profiles[i].Forge.VerifiedShare() {
			t.Errorf("%s verifies no less where all is worse", p.Name)
		}
		if s := p.Reduction; s.Min > s.Median || s.Median > s.Max {
			t.Errorf("%s: reduction %+v", p.Name, s)
		}
		if len(p.Variants) == 0 || p.Variants[0].Forge.Runs != variantRuns*8 || p.Variants[1].Forge.Guards[pipeline.GuardUnable].Fired != 0 {
			t.Errorf("%s: variants %+v", p.Name, p.Variants)
		}
	}
	if len(res.Draws) != draws || len(res.Sensitivity) != len(Parameters()) {
		t.Errorf("the sweep is not whole: %d draws, %d parameters", len(res.Draws), len(res.Sensitivity))
	}
}

// The fixed limit that is as good lies between the two that are a little better
// and a little worse.
func TestEqualShare(t *testing.T) {
	t.Parallel()
	limit := func(verified, wasted int) Tally {
		return Tally{Runs: 100, Verified: verified, Wasted: wasted, Idle: 2 * wasted, MicroUSD: 100e6}
	}
	limits := []Tally{limit(40, 0), limit(60, 40), limit(60, 50)}
	cases := []struct {
		forge Tally
		want  Equal
	}{
		{limit(50, 12), Equal{Limit: 1.5, Verified: 0.5, Wasted: 0.2, Idle: 0.4, CostUSD: 1, Reduction: 0.4, IdleLess: 0.4}},
		{limit(60, 50), Equal{Limit: 2, Verified: 0.6, Wasted: 0.4, Idle: 0.8, CostUSD: 1, Reduction: -0.25, IdleLess: -0.25}},
		{limit(90, 25), Equal{Limit: 3, Verified: 0.6, Wasted: 0.5, Idle: 1, CostUSD: 1, Reduction: 0.5, IdleLess: 0.5}},
		{limit(20, 0), Equal{Limit: 0.5, Verified: 0.2, CostUSD: 0.5}},
	}
	for _, c := range cases {
		got := equal(&c.forge, limits)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("equal(%d %% verified)(-want +got):\n%s", c.forge.Verified, diff)
		}
	}
}

// The parameters' bases lie within their ranges, each field is set once, and the
// base is the median of what is drawn.
func TestParameters(t *testing.T) {
	t.Parallel()
	fields := map[*float64]bool{}
	var m Model
	for _, p := range Parameters() {
		if lo, hi := min(p.Optimistic, p.Pessimistic), max(p.Optimistic, p.Pessimistic); p.Base < lo || p.Base > hi || p.Source == "" {
			t.Errorf("parameter %+v", p)
		}
		fields[p.field(&m)] = true
	}
	if len(fields) != len(Parameters()) {
		t.Errorf("%d parameters set %d fields", len(Parameters()), len(fields))
	}
	rng, below, base := rand.New(rand.NewPCG(1, 1)), 0, Base()
	const n = 2000
	for range n {
		if draw(rng).Fix < base.Fix {
			below++
		}
	}
	if math.Abs(float64(below)/n-0.5) > 0.05 {
		t.Errorf("%d of %d draws are below the base", below, n)
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Compare(t.Context(), Options{}); err == nil {
		t.Error("compared nothing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, sweep := range []int{0, 5} {
		if _, err := Compare(ctx, Options{Runs: 10, Sweep: sweep}); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled comparison returns %v", err)
		}
	}
}

// The time and memory that one run takes: forge plays on after a guard, open has
// none.
func BenchmarkRun(b *testing.B) {
	m := Base()
	for _, c := range []struct {
		name   string
		policy policy
		last   int
	}{{"forge", policy{config: config.Default()}, 0}, {"open", fixed(unlimited), most + beyond}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				play(c.policy, &m, 1, uint64(i), c.last)
			}
		})
	}
}
