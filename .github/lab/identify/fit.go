// Package identify fits and measures how findings are recognised that are said in other
// words.
package identify

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"forge/pipeline/identity"
)

// features are what two messages are compared by.
type features = [len(identity.Features)]float64

// Pair is two comments on a pull request, and whether they are about one problem.
type Pair struct {
	Kind string `json:"kind"` // how they came about: reworded, cross-tool
	Same bool   `json:"same"`
	A    string `json:"a"`
	B    string `json:"b"`
	Pull string `json:"pull"` // owner/name/pull/number
}

// repository is what is left out together: a repository with its forks, by the first
// word of its name.
func (p *Pair) repository() string {
	name := p.Pull
	if parts := strings.Split(p.Pull, "/"); len(parts) > 1 {
		name = parts[1]
	}
	name, _, _ = strings.Cut(name, "-")
	return name
}

// priors are the weights that are assumed before anything is fitted: what is shared
// speaks for one finding, and other numbers and other files against it. Without them
// a model knows of numbers and files only what the few pairs have that name any.
var priors = features{1, 1, 1, 1, 1, 1, -0.5, -0.5, -0.5, -2, -1, 0}

// How a model is fitted. With much less ridge it learns its repositories' own words.
const (
	ridge      = 10.0 // on the weights
	ridgePull  = 4.0  // on what is a pull request's own: how often its pairs are the same
	evenness   = 0.5  // a pull request with n pairs counts as n to the power of 1 - evenness
	folds      = 5
	mostRounds = 300
)

// contextSizes are how many messages of a pull request are known when pairs are
// fitted; 0 none, -1 all. A run has few at first.
var contextSizes = []int{-1, 0, 6, 15}

// Recall that the limit must leave, by kind; the strictest limit that does is taken.
// A recall holds from one repository to the next, a precision much less.
var recallGoal = map[string]float64{"reworded": 0.94, "cross-tool": 0.66}

const recallElse = 0.8

// Fit fits a model to pairs. The limit comes from pairs that a model was not fitted
// on, a fifth of the pull requests at a time.
func Fit(pairs []Pair) *identity.Model {
	return newLibrary(pairs).fit(func(*Pair) bool { return true })
}

// library holds pairs, and the messages of pull requests.
type library struct {
	pairs    []Pair
	compared map[int][]features  // by how many messages are known, of each pair
	messages map[string][]string // by pull request, each once, in an order of no meaning
	subjects map[subject]*identity.Messages
}

// subject is what a pull request is about, by so many of its messages.
type subject struct {
	pull string
	size int
}

func newLibrary(pairs []Pair) *library {
	l := &library{pairs, map[int][]features{}, map[string][]string{}, map[subject]*identity.Messages{}}
	for i := range pairs {
		p := &pairs[i]
		l.messages[p.Pull] = append(l.messages[p.Pull], p.A, p.B)
	}
	for pull, list := range l.messages {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(scatter(a), scatter(b)), cmp.Compare(a, b)) })
		l.messages[pull] = slices.Compact(list)
	}
	return l
}

func scatter(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// known are the first messages of a pull request. Pairs without one stand alone.
func (l *library) known(pull string, size int) *identity.Messages {
	if pull == "" {
		size = 0
	}
	k := subject{pull, size}
	if l.subjects[k] == nil {
		list := l.messages[pull]
		if size >= 0 {
			list = list[:min(size, len(list))]
		}
		l.subjects[k] = identity.NewMessages(list...)
	}
	return l.subjects[k]
}

// compare returns the features of all pairs.
func (l *library) compare(size int) []features {
	if l.compared[size] == nil {
		list := make([]features, len(l.pairs))
		for i := range l.pairs {
			p := &l.pairs[i]
			list[i] = l.known(p.Pull, size).Compare(p.A, p.B)
		}
		l.compared[size] = list
	}
	return l.compared[size]
}

// over returns a pair's log-odds over the model's limit.
func (l *library) over(m *identity.Model, pair, size int) float64 {
	f := l.compare(size)[pair]
	known := f[len(f)-1] // the last feature is how much the messages say
	sum := m.Bias - m.Limit[0]*(1-known) - m.Limit[1]*known
	for i, x := range f {
		sum += m.Weights[identity.Features[i].Name] * x
	}
	return sum
}

// fit fits a model to some of the pairs.
func (l *library) fit(wanted func(*Pair) bool) *identity.Model {
	m := l.regress(wanted)
	alone, known := map[string][]float64{}, map[string][]float64{}
	for held := range uint64(folds) {
		part := l.regress(func(p *Pair) bool { return wanted(p) && scatter(p.Pull)%folds != held })
		for i := range l.pairs {
			if p := &l.pairs[i]; p.Same && wanted(p) && scatter(p.Pull)%folds == held {
				alone[p.Kind] = append(alone[p.Kind], l.over(part, i, 0))
				known[p.Kind] = append(known[p.Kind], l.over(part, i, -1))
			}
		}
	}
	m.Limit = [2]float64{round(strictest(alone)), round(strictest(known))}
	return m
}

// strictest returns the strictest limit that leaves the recall that is wanted of
// each kind, given the scores of pairs that are the same.
func strictest(same map[string][]float64) float64 {
	least := math.Inf(1)
	for kind, scores := range same {
		goal := recallGoal[kind]
		if goal == 0 {
			goal = recallElse
		}
		slices.Sort(scores)
		least = min(least, scores[int(float64(len(scores))*(1-goal))])
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// regress fits everything but the limit.
func (l *library) regress(wanted func(*Pair) bool) *identity.Model {
	r := &regression{}
	groups, counts := map[string]int{}, map[string]float64{}
	var of []int
	for i := range l.pairs {
		if p := &l.pairs[i]; wanted(p) {
			of = append(of, i)
			counts[p.Pull]++
		}
	}
	var total float64
	for _, i := range of {
		total += math.Pow(counts[l.pairs[i].Pull], -evenness)
	}
	for _, size := range contextSizes {
		for _, i := range of {
			p := &l.pairs[i]
			if _, ok := groups[p.Pull]; !ok {
				groups[p.Pull] = len(groups)
			}
			weight := float64(len(of)) / total / float64(len(contextSizes)) * math.Pow(counts[p.Pull], -evenness)
			r.rows = append(r.rows, row{l.compare(size)[i], p.Same, weight, groups[p.Pull]})
		}
	}
	beta, bias := r.solve(len(groups))
	m := &identity.Model{Bias: round(bias), Weights: map[string]float64{}}
	for i, f := range identity.Features {
		m.Weights[f.Name] = round(beta[i])
	}
	return m
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// regression is a logistic one with a ridge, with signs that weights must have, and
// with a constant for each pull request, which is forgotten afterwards: what makes
// one pull request's pairs likelier to be the same is not what makes a pair so.
type regression struct {
	rows []row
	eta  []float64
	most float64 // the largest step of this round
}

type row struct {
	x      features
	same   bool
	weight float64
	group  int
}

func (r *regression) solve(groups int) (beta features, bias float64) {
	r.eta = make([]float64, len(r.rows))
	own := make([]float64, groups)
	members := make([][]int, groups)
	everyone := make([]int, len(r.rows))
	for i := range r.rows {
		everyone[i] = i
		members[r.rows[i].group] = append(members[r.rows[i].group], i)
	}
	one := func(*row) float64 { return 1 }
	beta = priors
	for i := range r.rows {
		for j := range beta {
			r.eta[i] += beta[j] * r.rows[i].x[j]
		}
	}
	for range mostRounds {
		r.most = 0
		bias = r.step(everyone, one, bias, 0, 0, 0)
		for j := range beta {
			beta[j] = r.step(everyone, func(row *row) float64 { return row.x[j] }, beta[j], ridge, priors[j], identity.Features[j].Sign)
		}
		for g := range own {
			own[g] = r.step(members[g], one, own[g], ridgePull, 0, 0)
		}
		if r.most < 1e-4 {
			break
		}
	}
	return beta, bias
}

// step takes Newton's step for one weight and returns it.
func (r *regression) step(on []int, x func(*row) float64, value, ridge, prior float64, sign int) float64 {
	slope, bend := -ridge*(value-prior), ridge
	for _, i := range on {
		row := &r.rows[i]
		if v := x(row); v != 0 {
			p, y := 1/(1+math.Exp(-r.eta[i])), 0.0
			if row.same {
				y = 1
			}
			slope += row.weight * (y - p) * v
			bend += row.weight * max(p*(1-p), 1e-4) * v * v
		}
	}
	if bend == 0 {
		return value
	}
	next := value + max(-2, min(2, slope/bend))
	if sign > 0 {
		next = max(next, 0)
	} else if sign < 0 {
		next = min(next, 0)
	}
	for _, i := range on {
		r.eta[i] += (next - value) * x(&r.rows[i])
	}
	r.most = max(r.most, math.Abs(next-value))
	return next
}
