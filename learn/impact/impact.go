// Package impact measures what learnings and findings are worth: some of what
// would be recalled is withheld at random, and runs that had it are compared with
// runs that had not; the reviewer's confidence is compared with what people
// decided. It computes, and stores nothing.
package impact

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"forge/pipeline/record"
)

// DefaultRate is the share of recalled learnings that is withheld.
const DefaultRate = 0.1

// Withhold splits what would be given to an agent: each learning is left out with
// the given probability, by itself. Both lists keep the order.
func Withhold(ids []int64, rate float64, rng *rand.Rand) (given, withheld []int64) {
	for _, id := range ids {
		if rng.Float64() < rate {
			withheld = append(withheld, id)
		} else {
			given = append(given, id)
		}
	}
	return given, withheld
}

// Interval is an estimate with its 95 % interval. Known is false when there are
// too few runs on one side to say anything.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Known bool    `json:"known"`
}

// Effect is what having a learning changed, against runs from which it was
// withheld.
type Effect struct {
	Learning  int64    `json:"learning"`
	Given     int      `json:"given"`      // runs
	Withheld  int      `json:"withheld"`   // runs
	FirstPass Interval `json:"first_pass"` // the first review went well: [record.Outcome.Well]
	Bounces   Interval `json:"bounces"`    // of a run
	Dismissed Interval `json:"dismissed"`  // share of the findings that people saw
	Surely    Interval `json:"-"`          // of FirstPass, by [Anytime]: what is decided on again and again
}

// Estimate compares, for each learning, the runs that were given it with those
// from which it was withheld. Shares of runs are compared by Newcombe's hybrid
// score interval (Statistics in Medicine 17, 1998, method 10), means by Welch's
// interval. The share of dismissed findings is a mean over runs with findings:
// findings of one run are not independent. Learnings come by id.
func Estimate(outcomes []record.Outcome) []Effect {
	type side struct{ pass, bounces, dismissed []float64 }
	sides := map[int64]*[2]side{} // given, withheld
	for _, o := range outcomes {
		for k, ids := range [2][]int64{o.Given, o.Withheld} {
			for _, id := range ids {
				if sides[id] == nil {
					sides[id] = &[2]side{}
				}
				s := &sides[id][k]
				pass := 0.0
				if o.Well(id) {
					pass = 1
				}
				s.pass, s.bounces = append(s.pass, pass), append(s.bounces, float64(o.Bounces))
				if o.Findings > 0 {
					s.dismissed = append(s.dismissed, float64(o.Dismissed)/float64(o.Findings))
				}
			}
		}
	}
	var out []Effect
	for id, s := range sides {
		g, w := &s[0], &s[1]
		out = append(out, Effect{Learning: id, Given: len(g.pass), Withheld: len(w.pass),
			FirstPass: Proportions(int(sum(g.pass)), len(g.pass), int(sum(w.pass)), len(w.pass)),
			Bounces:   Means(g.bounces, w.bounces), Dismissed: Means(g.dismissed, w.dismissed),
			Surely: Anytime(int(sum(g.pass)), len(g.pass), int(sum(w.pass)), len(w.pass))})
	}
	slices.SortFunc(out, func(a, b Effect) int { return cmp.Compare(a.Learning, b.Learning) })
	return out
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

const z95 = 1.959963984540054 // two-sided 95 % of the normal distribution

// Wilson returns the score interval of a proportion of x in n at z standard
// deviations (Wilson, JASA 22, 1927); 0 to 1 when n is 0.
func Wilson(x, n int, z float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(x)/float64(n), float64(n)
	centre := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (centre-half)/(1+z*z/m)), min(1, (centre+half)/(1+z*z/m))
}

// Proportions estimates the difference of the proportions a of n and b of m with
// Newcombe's interval. It is unknown when a side is empty.
func Proportions(a, n, b, m int) Interval {
	if n == 0 || m == 0 {
		return Interval{Low: -1, High: 1}
	}
	p, q := float64(a)/float64(n), float64(b)/float64(m)
	l1, u1 := Wilson(a, n, z95)
	l2, u2 := Wilson(b, m, z95)
	d := p - q
	return Interval{Value: d, Low: d - math.Hypot(p-l1, u2-q), High: d + math.Hypot(u1-p, q-l2), Known: true}
}

// LeastWithheld is how many runs must have been without a learning before anything is
// decided on what it is worth.
const LeastWithheld = 20

// What an interval that is looked at every day assumes: that with probability alwaysWrong
// at most it ever leaves out the true difference, and where it is narrowest, in units of
// information (one over the variance): about a hundred runs on the smaller side.
const (
	alwaysWrong = 0.01
	narrowestAt = 35
)

// Anytime estimates the difference of the proportions a of n and b of m by an interval
// that holds at every moment at once, however often it is looked at (the normal mixture of
// Robbins, Annals of Mathematical Statistics 41, 1970, with the variance estimated). It is
// unknown under [LeastWithheld] runs on a side.
func Anytime(a, n, b, m int) Interval {
	if n < LeastWithheld || m < LeastWithheld {
		return Interval{Low: -1, High: 1}
	}
	p, v := share(a, n)
	q, w := share(b, m)
	return always(p-q, v+w)
}

// share is a proportion of x in n, and its variance with one success and one failure more:
// what was always so may not stay so.
func share(x, n int) (p, variance float64) {
	q := float64(x+1) / float64(n+2)
	return float64(x) / float64(n), q * (1 - q) / float64(n)
}

// always is the interval of [Anytime] around a difference of shares with this variance.
func always(difference, variance float64) Interval {
	information := 1 / variance
	half := math.Sqrt((information+narrowestAt)*(math.Log((information+narrowestAt)/narrowestAt)+2*math.Log(1/alwaysWrong))) / information
	return Interval{Value: difference, Low: max(-1, difference-half), High: min(1, difference+half), Known: true}
}

// Means estimates the difference of two means with Welch's interval. It is
// unknown when a side has fewer than two values.
func Means(a, b []float64) Interval {
	if len(a) < 2 || len(b) < 2 {
		return Interval{Low: math.Inf(-1), High: math.Inf(1)}
	}
	ma, va := moments(a)
	mb, vb := moments(b)
	sa, sb := va/float64(len(a)), vb/float64(len(b))
	d := ma - mb
	if sa+sb == 0 {
		return Interval{Value: d, Low: d, High: d, Known: true}
	}
	freedom := (sa + sb) * (sa + sb) / (sa*sa/float64(len(a)-1) + sb*sb/float64(len(b)-1))
	half := Student95(freedom) * math.Sqrt(sa+sb)
	return Interval{Value: d, Low: d - half, High: d + half, Known: true}
}

func moments(list []float64) (mean, variance float64) {
	mean = sum(list) / float64(len(list))
	for _, x := range list {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(list)-1)
}

// Student95 is the two-sided 95 % quantile of Student's distribution: the exact
// values for one and two degrees of freedom, between and beyond them the
// Cornish–Fisher expansion (Abramowitz and Stegun 26.7.5), within 1 % from three.
func Student95(freedom float64) float64 {
	const one, two = 12.706, 4.303
	z, v := z95, freedom
	expansion := func(v float64) float64 {
		z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
		return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
	}
	switch {
	case v <= 1:
		return one
	case v < 2:
		return one + (v-1)*(two-one)
	case v < 3:
		return two + (v-2)*(expansion(3)-two)
	}
	return expansion(v)
}
