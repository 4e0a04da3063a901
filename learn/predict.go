package learn

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// Tuning is for experiments.
type Tuning struct {
	HalfLife                                                        float64 // days
	Mean, Base, Cat, Rule, Tests, CT, RT, RV, Dir, CD, RD, Fix, Sev float64
	Person, PR                                                      float64
	SlopeMean, Slope                                                float64
	Linear                                                          bool
	Share                                                           float64 // explored
	Thompson                                                        bool
	Low, High                                                       float64 // bounds of the cut
	Aim                                                             float64
	Actual                                                          bool
	Loo                                                             bool
	Ignored                                                         float64
	NoReason                                                        bool
	WBase, WMean, WCat, WRule, Knot                                 float64
	Pop                                                             float64 // half-life of the population
}

var Tune = Tuning{HalfLife: 60, Mean: 0.15, Base: 1.5, Cat: 1, Rule: 1, Tests: 0.7, CT: 1, RT: 1, RV: 1, Dir: 0.5, CD: 0.7, RD: 1, Fix: 0.3, Sev: 0.5,
	Person: 0.5, PR: 0.7, SlopeMean: -1, Slope: 1.5, Linear: true, Share: 0.03, Low: 0.1, High: 0.5, Aim: 1, Loo: true, WBase: 1, WMean: .15, WCat: .3, WRule: .3}

// sort says what a finding is about, in all that the prediction knows of it.
type sortKey struct {
	category, topic, dir, shown string
	tests, warning, fix         bool
}

// Predictor says how likely people here dismiss a finding.
type Predictor struct {
	topics      *topics
	kind, wrong *regression
	cut         float64
	blocked     [2]float64
}

type cell struct {
	sortKey
	conf   int
	person int64
}

type cellSum struct {
	cell
	w   [2]float64 // acted, dismissed
	pop [2]float64
}

func confOf(bucket int) float64 {
	c := min(0.99, max(0.01, float64(bucket)/50))
	if Tune.Linear {
		return (c - 0.65) / 0.2275
	}
	return math.Log(c/(1-c)) - math.Log(0.65/0.35)
}

func bucketOf(c float64) int { return int(math.Round(50 * c)) }

func (p *Predictor) sortOf(f *pipeline.Finding) sortKey {
	return sortKey{f.Category, p.topics.of(f), path.Dir(f.File), visibility(f.Code), isTest(f.File), f.Severity == pipeline.SeverityWarning, f.Fix != nil && f.Fix.Replacement != nil}
}

type effect struct {
	name     string
	sd, mean float64
}

func effects(k sortKey) []effect {
	t := Tune
	out := []effect{{"", t.Base, logit(t.Mean)}, {"c:" + k.category, t.Cat, 0}}
	add := func(name string, sd float64) { out = append(out, effect{name, sd, 0}) }
	if k.warning {
		add("w", t.Sev)
	}
	if k.fix {
		add("f", t.Fix)
	}
	rule := k.category + "/" + k.topic
	if k.topic != "" {
		add("r:"+rule, t.Rule)
	}
	if k.tests {
		add("t", t.Tests)
		add("ct:"+k.category, t.CT)
	}
	if k.topic != "" {
		if k.tests {
			add("rt:"+rule, t.RT)
		} else {
			add("rp:"+rule, t.RT/2)
		}
		if k.shown != "" {
			add("rv:"+rule+"/"+k.shown, t.RV)
		}
	}
	for d := k.dir; ; d = path.Dir(d) {
		if d != "." && d != "/" || d == k.dir {
			add("d:"+d, t.Dir)
			add("cd:"+k.category+":"+d, t.CD)
			if k.topic != "" {
				add("rd:"+rule+":"+d, t.RD)
			}
		}
		if d == "." || d == "/" {
			break
		}
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func logit(p float64) float64   { return math.Log(p / (1 - p)) }

// NewPredictor learns.
func NewPredictor(list []Decision, now time.Time, target float64) *Predictor {
	p := &Predictor{}
	p.topics = newTopics(list)
	cells := map[cell]*[4]int64{}
	for _, d := range list {
		if !(d.Weight > 0) || d.At.After(now) {
			continue
		}
		age := now.Sub(d.At).Hours() / 24
		w := int64(math.Round(1e6 * d.Weight * math.Exp2(-age/Tune.HalfLife)))
		pw := int64(math.Round(1e6 * math.Exp2(-age/Tune.Pop)))
		y := 0
		if d.Dismissed {
			y = 1
		}
		if d.Finding.Severity.Blocks() {
			p.blocked[y] += float64(pw) / 1e6
			continue
		}
		c := cell{p.sortOf(&d.Finding), bucketOf(d.Finding.Confidence), d.Actor.ID}
		if cells[c] == nil {
			cells[c] = new([4]int64)
		}
		cells[c][y] += w
		cells[c][2+y] += pw
	}
	var sums []*cellSum
	for c, w := range cells {
		sums = append(sums, &cellSum{cell: c, w: [2]float64{float64(w[0]) / 1e6, float64(w[1]) / 1e6}, pop: [2]float64{float64(w[2]) / 1e6, float64(w[3]) / 1e6}})
	}
	slices.SortFunc(sums, func(a, b *cellSum) int {
		return cmp.Or(cmp.Compare(a.category, b.category), cmp.Compare(a.topic, b.topic), cmp.Compare(a.dir, b.dir), cmp.Compare(a.shown, b.shown), cmp.Compare(a.person, b.person), cmp.Compare(a.conf, b.conf), boolCmp(a.tests, b.tests), boolCmp(a.warning, b.warning), boolCmp(a.fix, b.fix))
	})
	p.kind, p.wrong = newRegression(len(sums)), newRegression(len(sums))
	for i, s := range sums {
		for _, e := range effects(s.sortKey) {
			p.kind.add(i, e, 1)
		}
		if Tune.Person > 0 {
			p.kind.add(i, effect{"p:" + itoa(s.person), Tune.Person, 0}, 1)
			p.kind.add(i, effect{"pr:" + itoa(s.person) + s.category + "/" + s.topic, Tune.PR, 0}, 1)
		}
		for _, e := range doubts(s.sortKey, confOf(s.conf)) {
			p.wrong.add(i, e.effect, e.x)
		}
	}
	p.fit(sums)
	p.choose(sums, target)
	return p
}

type doubt struct {
	effect
	x float64
}

func doubts(k sortKey, c float64) []doubt {
	t := Tune
	out := []doubt{{effect{"", t.WBase, logit(t.WMean)}, 1}, {effect{"slope", t.Slope, t.SlopeMean}, c}, {effect{"c:" + k.category, t.WCat, 0}, 1}}
	if k.topic != "" {
		out = append(out, doubt{effect{"r:" + k.category + "/" + k.topic, t.WRule, 0}, 1})
	}
	if t.Knot > 0 {
		for _, knot := range []float64{-1, 0, 1} {
			out = append(out, doubt{effect{"k:" + itoa(int64(knot+5)), t.Knot, 0}, max(0, c-knot)})
		}
	}
	return out
}

type entry struct {
	cell int
	x    float64
}

// regression is a logistic one, with a normal prior for each effect.
type regression struct {
	index              map[string]int
	theta, prior, mean []float64
	prec               []float64
	cols               [][]entry
	eta                []float64
	v, r               []float64
}

func newRegression(n int) *regression {
	return &regression{index: map[string]int{}, eta: make([]float64, n), v: make([]float64, n), r: make([]float64, n)}
}

func (g *regression) add(i int, e effect, x float64) {
	j, ok := g.index[e.name]
	if !ok {
		j = len(g.theta)
		g.index[e.name] = j
		g.theta, g.mean, g.prior, g.cols = append(g.theta, e.mean), append(g.mean, e.mean), append(g.prior, 1/(e.sd*e.sd)), append(g.cols, nil)
	}
	g.cols[j] = append(g.cols[j], entry{i, x})
	g.eta[i] += g.theta[j] * x
}

// step goes towards the best effects for these targets.
func (g *regression) step(w, y []float64) (most float64) {
	for i, eta := range g.eta {
		g.v[i] = w[i] * curvature(eta)
		g.r[i] = w[i] * (y[i] - sigmoid(eta))
	}
	for range 2 {
		for j := range g.theta {
			a, h := -g.prior[j]*(g.theta[j]-g.mean[j]), g.prior[j]
			for _, e := range g.cols[j] {
				a += e.x * g.r[e.cell]
				h += e.x * e.x * g.v[e.cell]
			}
			d := a / h
			g.theta[j] += d
			for _, e := range g.cols[j] {
				g.r[e.cell] -= d * e.x * g.v[e.cell]
				g.eta[e.cell] += d * e.x
			}
			most = max(most, math.Abs(d))
		}
	}
	return most
}

func (g *regression) precision(w []float64) {
	g.prec = slices.Clone(g.prior)
	for j := range g.theta {
		for _, e := range g.cols[j] {
			m := sigmoid(g.eta[e.cell])
			g.prec[j] += e.x * e.x * w[e.cell] * m * (1 - m)
		}
	}
}

func (g *regression) at(e effect) (theta, variance float64) {
	if j, ok := g.index[e.name]; ok {
		return g.theta[j], 1 / g.prec[j]
	}
	return e.mean, e.sd * e.sd
}

func itoa(i int64) string { return string(rune('a' + i)) }

func boolCmp(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (p *Predictor) fit(sums []*cellSum) {
	w, ty, wy := make([]float64, len(sums)), make([]float64, len(sums)), make([]float64, len(sums))
	for i, s := range sums {
		w[i] = s.w[0] + s.w[1]
	}
	n := 0
	for range 60 {
		n++
		for i, s := range sums {
			a, b := sigmoid(p.kind.eta[i]), sigmoid(p.wrong.eta[i])
			y := s.w[1] / w[i]
			ty[i], wy[i] = y*a/(a+b-a*b), y*b/(a+b-a*b)
		}
		if max(p.kind.step(w, ty), p.wrong.step(w, wy)) < 0.005 {
			break
		}
	}
	Passes += n
	Fits++
	NEffects += len(p.kind.theta) + len(p.wrong.theta)
	Cells += len(sums)
	p.kind.precision(w)
	p.wrong.precision(w)
}

func (p *Predictor) choose(sums []*cellSum, target float64) {
	type point struct{ p, w, y float64 }
	var points []point
	for _, s := range sums {
		m, _ := p.of(s.sortKey, confOf(s.conf))
		for y, w := range s.pop {
			if w > 0 {
				points = append(points, point{m, w, float64(y)})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.p, b.p), cmp.Compare(a.y, b.y), cmp.Compare(a.w, b.w))
	})
	sum, all := p.blocked[1], p.blocked[0]+p.blocked[1]
	p.cut = Tune.Low
	for _, x := range points {
		if Tune.Actual {
			sum += x.w * x.y
		} else {
			sum += x.w * x.p
		}
		all += x.w
		if sum <= target*Tune.Aim*all {
			p.cut = max(p.cut, x.p)
		}
	}
	p.cut = min(p.cut, Tune.High)
	if len(points) == 0 {
		p.cut = Tune.High
	}
}

func (p *Predictor) of(k sortKey, c float64) (mean, optimist float64) {
	var eta, v, b, bv float64
	for _, e := range effects(k) {
		t, s := p.kind.at(e)
		eta, v = eta+t, v+s
	}
	for _, e := range doubts(k, c) {
		t, s := p.wrong.at(e.effect)
		b, bv = b+t*e.x, bv+s*e.x*e.x
	}
	return 1 - (1-sigmoid(eta))*(1-sigmoid(b)), 1 - (1-sigmoid(eta-math.Sqrt(v)))*(1-sigmoid(b-math.Sqrt(bv)))
}

// Of predicts.
func (p *Predictor) Of(f *pipeline.Finding) float64 {
	m, _ := p.of(p.sortOf(f), confOf(bucketOf(f.Confidence)))
	return m
}

// Cut is for experiments.
func (p *Predictor) Cut() float64 { return p.cut }

// Holds reports whether it is held back.
func (p *Predictor) Holds(f *pipeline.Finding) (float64, bool) {
	m := p.Of(f)
	return m, m > p.cut && drawOf(f.Fingerprint) >= Tune.Share
}

var Passes, Fits, NEffects, Cells int

func curvature(eta float64) float64 {
	if math.Abs(eta) < 1e-3 {
		return 0.25
	}
	return math.Tanh(eta/2) / (2 * eta)
}

func drawOf(s string) float64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return (float64(h>>11) + 0.5) / (1 << 53)
}

// topics name what findings without a rule are about.
type topics struct {
	lead  map[string][]leader // by category
	known map[string]string
}

type leader struct {
	words []string
	name  string
}

const leaders = 64

func newTopics(list []Decision) *topics {
	t := &topics{map[string][]leader{}, map[string]string{}}
	type key struct{ category, rule, words string }
	seen := map[key][]string{}
	for i := range list {
		f := &list[i].Finding
		w := saidWords(f)
		seen[key{f.Category, f.Rule, strings.Join(w, " ")}] = w
	}
	var keys []key
	for k := range seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(boolCmp(a.rule == "", b.rule == ""), cmp.Compare(a.category, b.category), cmp.Compare(a.rule, b.rule), cmp.Compare(a.words, b.words))
	})
	for _, k := range keys {
		name := k.rule
		if name == "" {
			if t.nearest(k.category, seen[k]) != "" {
				continue
			}
			name = "~" + k.words
		}
		if l := t.lead[k.category]; len(l) < leaders {
			t.lead[k.category] = append(l, leader{seen[k], name})
		}
	}
	return t
}

func (t *topics) nearest(category string, words []string) string {
	best, name := 0.0, ""
	for _, l := range t.lead[category] {
		if alikeWords(l.words, words) {
			if j := jaccard(l.words, words); j > best {
				best, name = j, l.name
			}
		}
	}
	return name
}

func (t *topics) of(f *pipeline.Finding) string {
	if f.Rule != "" {
		return f.Rule
	}
	at := f.Category + "\x00" + f.Message + "\x00" + f.Code
	name, ok := t.known[at]
	if !ok {
		name = t.nearest(f.Category, saidWords(f))
		t.known[at] = name
	}
	return name
}

func saidWords(f *pipeline.Finding) []string {
	code := keyWords(f.Code)
	return slices.DeleteFunc(keyWords(f.Message), func(w string) bool { _, in := slices.BinarySearch(code, w); return in })
}
