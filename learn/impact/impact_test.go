package impact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"forge/pipeline/record"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestWithhold(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]int64, 20_000)
	for i := range ids {
		ids[i] = int64(i)
	}
	given, withheld := Withhold(ids, DefaultRate, rng)
	near(t, "share", float64(len(withheld))/20_000, 0.1, 0.008) // some four standard deviations
	both := slices.Concat(given, withheld)
	slices.Sort(both)
	if !slices.Equal(both, ids) || !slices.IsSorted(given) || !slices.IsSorted(withheld) {
		t.Error("something was lost or reordered")
	}
	if g, w := Withhold(ids, 0, rng); len(g) != len(ids) || w != nil {
		t.Error("withheld at a rate of 0")
	}
	if g, w := Withhold(ids, 1, rng); g != nil || len(w) != len(ids) {
		t.Error("given at a rate of 1")
	}
}

// Against published figures: Newcombe 1998, table II, method 10: 56/70 − 48/80 and
// 9/10 − 3/10; Wilson's interval of 81/263 in the companion paper.
func TestIntervals(t *testing.T) {
	t.Parallel()
	low, high := Wilson(81, 263, z95)
	near(t, "Wilson low", low, 0.2553, 5e-5)
	near(t, "Wilson high", high, 0.3662, 5e-5)
	for _, c := range []struct {
		a, n, b, m int
		low, high  float64
	}{{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {10, 10, 0, 20, 0.6791, 1}} {
		i := Proportions(c.a, c.n, c.b, c.m)
		near(t, fmt.Sprint(c, " low"), i.Low, c.low, 5e-5)
		near(t, fmt.Sprint(c, " high"), i.High, c.high, 5e-5)
	}
	if i := Proportions(1, 1, 0, 0); i.Known || i.Low != -1 || i.High != 1 {
		t.Errorf("an empty side: %+v", i)
	}
	// Student's table.
	for freedom, want := range map[float64]float64{0.5: 12.706, 1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962} {
		near(t, fmt.Sprint("Student95 of ", freedom), Student95(freedom), want, 0.01*want)
	}
	// Means 1 apart, variances 1: Welch with 4+4 values has 6 degrees of freedom.
	s := math.Sqrt(0.75)
	i := Means([]float64{1 - s, 1 + s, 1 - s, 1 + s}, []float64{-s, s, -s, s})
	near(t, "Means", i.Value, 1, 1e-9)
	near(t, "Means low", i.Low, 1-2.447*math.Sqrt(0.5), 0.02)
	if i := Means([]float64{1}, []float64{1, 2}); i.Known {
		t.Errorf("one value: %+v", i)
	}
	if i := Means([]float64{1, 1}, []float64{3, 3}); !i.Known || i.Low != -2 || i.High != -2 {
		t.Errorf("no variance: %+v", i)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	var list []record.Outcome
	for i := range 20 {
		o := record.Outcome{FirstPass: i%2 == 0, Bounces: i % 2, Findings: i % 3, Dismissed: i % 3, Given: []int64{1}}
		if i < 10 {
			o.Withheld, o.FirstPass = []int64{2}, true
		} else {
			o.Given, o.FirstPass = []int64{1, 2}, false
		}
		list = append(list, o)
	}
	got := Estimate(list)
	if len(got) != 2 || got[0].Learning != 1 || got[0].Given != 20 || got[0].Withheld != 0 || got[0].FirstPass.Known || got[0].Bounces.Known {
		t.Fatalf("got %+v", got)
	}
	two := got[1]
	if two.Given != 10 || two.Withheld != 10 || two.FirstPass.Value != -1 || two.FirstPass.High >= 0 || two.Bounces.Value != 0 ||
		!two.Dismissed.Known || two.Dismissed.Value != 0 {
		t.Errorf("got %+v", two)
	}
}

// A learning that makes the reviewer find more lowers the share of first reviews that are
// approved. It is judged by what was confirmed; what makes others work better is not.
func TestReviewersLearning(t *testing.T) {
	t.Parallel()
	const reviewers, both, implementers = 1, 2, 3
	var list []record.Outcome
	for i := range 40 {
		o := record.Outcome{Reviewers: map[int64]bool{reviewers: true, both: false}}
		if i%2 == 0 { // with them, faults are found that pass else
			o.Given, o.Caught = []int64{reviewers, both, implementers}, true
		} else {
			o.Withheld, o.FirstPass = []int64{reviewers, both, implementers}, true
		}
		list = append(list, o)
	}
	got := Estimate(list)
	for i, want := range []float64{1, 0, -1} {
		if got[i].FirstPass.Value != want {
			t.Errorf("learning %d: %+v, want a difference of %v", got[i].Learning, got[i].FirstPass, want)
		}
	}
}

// The interval holds the truth about as often as it says, for a learning that
// helps and for one that does nothing.
func TestIntervalsCover(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, effect := range []float64{0, 0.2} {
		held := 0
		const rounds = 2000
		for range rounds {
			var a, b int
			for range 90 {
				if rng.Float64() < 0.5+effect {
					a++
				}
			}
			for range 10 {
				if rng.Float64() < 0.5 {
					b++
				}
			}
			if i := Proportions(a, 90, b, 10); i.Low <= effect && effect <= i.High {
				held++
			}
		}
		near(t, fmt.Sprintf("coverage with an effect of %v", effect), float64(held)/rounds, 0.95, 0.025)
	}
}

// Looked at every day for a year, at ten runs a day of which one in ten is without the
// learning, one that changes nothing is retired in 2 % of the years at most, and one that
// costs 20 points is found in 80 % at least.
func TestAnytime(t *testing.T) {
	t.Parallel()
	year := func(seed uint64, effect float64) bool {
		rng := rand.New(rand.NewPCG(seed, 11))
		var a, n, b, m int
		for range 365 {
			for range 10 {
				if rng.Float64() < 0.1 {
					if m++; rng.Float64() < 0.6 {
						b++
					}
				} else if n++; rng.Float64() < 0.6+effect {
					a++
				}
			}
			if i := Anytime(a, n, b, m); i.Known && i.High < 0 {
				return true
			}
		}
		return false
	}
	count := func(effect float64) (retired int) {
		for seed := uint64(9001); seed <= 9400; seed++ {
			if year(seed, effect) {
				retired++
			}
		}
		return retired
	}
	wrongly, found := count(0), count(-0.2)
	t.Logf("of 400 years: %d retired that changed nothing, %d that cost 20 points", wrongly, found)
	if wrongly > 8 || found < 320 {
		t.Errorf("of 400: %d retired that changed nothing, %d that cost 20 points", wrongly, found)
	}
	if i := Anytime(0, 500, 19, 19); i.Known {
		t.Errorf("decided on 19 runs: %+v", i)
	}
}
