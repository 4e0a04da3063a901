// Package predict says which findings people would dismiss: it learns from what they
// decided before, and holds back what would be dismissed for certain. It is pure and
// stores nothing: a predictor is learnt anew from the signals of a repository.
package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// Decision is what a person decided on a finding that was posted.
type Decision struct {
	Finding   pipeline.Finding // as the reviewer gave it
	Dismissed bool             // else people acted on it
	Actor     pipeline.Actor   //
	Asked     float64          // share of findings like it that is posted; 0: all of them
	Weight    float64          // of the person's word by their role, 0 to 1
	At        time.Time        //
}

// Decisions returns what the latest signals of each key say about findings: a
// dismissal against it; for it a suggestion that was applied or rewritten, or code that
// a person mended in their own way. A dismissal without a word, or as a model read it, is
// weak, and counts half. Where the code speaks against the words neither is known.
// What was left as it is without a word says neither.
func Decisions(signals []pipeline.Signal) []Decision {
	var out []Decision
	quiet, silent, of := map[int]bool{}, map[int64]float64{}, map[int64]float64{}
	for _, s := range signals {
		if s.Off || s.Unsure || !(s.Weight > 0) || s.About == nil || s.Actor.Bot {
			continue
		}
		switch s.Kind {
		case pipeline.SignalDismissed, pipeline.SignalRefused, pipeline.SignalApplied, pipeline.SignalRewritten, pipeline.SignalFixedByHuman:
			read := s.Kind == pipeline.SignalRefused
			d := Decision{Finding: *s.About, Dismissed: read || s.Kind == pipeline.SignalDismissed, Actor: s.Actor, Asked: s.About.Asked,
				Weight: min(1, s.Weight), At: s.At}
			if read {
				d.Weight *= silentWeight
			} else if d.Dismissed && strings.TrimSpace(s.Text) == "" {
				d.Weight *= silentWeight
				quiet[len(out)] = true
				silent[d.Actor.ID]++
			}
			of[d.Actor.ID]++
			out = append(out, d)
		}
	}
	for i := range out {
		// Who hardly ever does anything else tidies up, and has not looked at each.
		if who := out[i].Actor.ID; quiet[i] && silent[who] >= tidyFrom && silent[who] > tidyShare*of[who] {
			out[i].Weight *= tidyWeight
		}
	}
	return out
}

// Predictor says how likely people here are to dismiss a finding, and which are
// held back so that, of those posted, no larger share is dismissed than is wanted.
//
// A finding is dismissed because nobody wants to hear it, whatever it says, or
// because it is wrong. Either has a logistic regression, P = 1 − (1 − unwanted)(1 −
// wrong): that it is not wanted follows from its kind (category, rule, folder, tests,
// names that others see or not), its words, the names in its code and who decides, that
// it is wrong from the reviewer's
// confidence, its category and its rule. Every effect is pulled to that of what is
// more general, so that a folder's habit must be shown before it outweighs the
// repository's. Decisions weigh by role, and half after 60 days.
//
// Findings that block a merge are never held back, nor does what became of them say
// anything about others. The zero value, and nil, hold nothing back.
type Predictor struct {
	classes  *classes
	unwanted logistic
	wrong    logistic
	cut      float64
	decider  int64 // who will most likely decide, if that is known
	deciders []share
}

// Asked is what became of findings that were posted although they would have been held
// back: what is held back is like them, and nobody sees it.
type Asked struct {
	Findings  int     `json:"findings"`
	Dismissed int     `json:"dismissed"`
	Base      float64 `json:"base"` // share of the others that was dismissed
}

// Worse reports whether what is held back is, by more than chance, dismissed no more often
// than what is posted: then the prediction is worth nothing here, and holds back nothing.
func (a Asked) Worse() bool {
	if a.Findings < leastAsked {
		return false
	}
	_, high := shareBounds(float64(a.Dismissed)/float64(a.Findings), float64(a.Findings))
	return high <= a.Base
}

// String says it for people.
func (a Asked) String() string {
	return fmt.Sprintf("of findings that would be held back, and were posted to see, %d of %d were dismissed; of the others %.0f %%",
		a.Dismissed, a.Findings, 100*a.Base)
}

// share is how much of what is decided a person decides.
type share struct {
	person int64
	of     float64
}

// For returns the predictor for findings on which one person will decide.
func (p *Predictor) For(person int64) *Predictor {
	if p == nil || person == 0 {
		return p
	}
	one := *p
	one.decider = person
	return &one
}

// How decisions count, and what is assumed of wrong findings beforehand. Chosen on
// streams of other seeds than those that are reported (`learning` of the laboratory); a
// slope of -1 is that of a reviewer whose confidence is right.
const (
	decisionHalfLife       = 60 * 24 * time.Hour
	mostDecisions          = 1000 // the newest: what is older hardly counts
	wrongMean, wrongSD     = -2.6, 1.0
	slopeMean, slopeSD     = -1.0, 1.5
	doubtSD                = 0.3 // of a category or a rule, being wrong
	middleConfidence       = 0.65
	confidences            = 50     // that are told apart
	benefit                = 0.7    // standard deviations by which a kind has the benefit of the doubt
	unwantedPlainly        = 0.5    // from here a kind has no doubt left to benefit from: it is likelier unwanted than wanted
	leastCut, mostCut      = 2.5, 4 // of the target: under it nothing is held back, over it everything
	askAgain               = 0.05   // share of what would be held back that is posted all the same: minds change, and nothing else tells what it is
	mostStood              = 50     // findings that one which was posted all the same stands for
	mostHeard              = 3      // and for how many it counts when effects are learnt
	unwantedSurely         = 0.8    // from here findings are held back, however many of the useful ones are of their kind
	leastAsked             = 10
	expected               = 0.85 // probability that who is expected to decide does
	fitRounds, fitEnough   = 50, 0.005
	decisionsForPrediction = 5
	mostLost               = 0.13 // share of the useful findings that may be held back, by what is known of them
	silentWeight           = 0.5  // of a dismissal without a word
	mostDeciders           = 8
	tidyFrom               = 10 // of them, by one person
	tidyShare              = 2.0 / 3
	tidyWeight             = 0.05
)

type cell struct {
	class
	person     int64
	confidence int
}

type cellOf struct {
	cell
	weight          [2]float64 // of the decisions to act, and to dismiss
	asked           [2]float64 // of those that were posted although their like is held back, each for all it stands for
	heard           float64    // of weight
	count           [2]int
	unwanted, wrong int // rows
}

// New learns from the decisions of one repository, so that at most the share
// target of what is posted is dismissed. A target that is not over 0 and under 1 gives
// nil. The order of the decisions does not matter.
func New(list []Decision, target float64, now time.Time) *Predictor {
	if !(target > 0 && target < 1) {
		return nil
	}
	var blocking [2]float64
	list = newest(list, now)
	p := &Predictor{classes: newClasses(list)}
	cells := p.cellsOf(list, now, &blocking)
	p.learn(cells)
	p.deciders = decidersOf(cells)
	p.choose(cells, blocking, target)
	if AskedOf(list, now).Worse() {
		p.cut = 1
	}
	return p
}

// AskedOf counts what was posted to see what is held back, of the decisions that count.
func AskedOf(list []Decision, now time.Time) (a Asked) {
	list = newest(list, now)
	others, dismissed := 0, 0
	for i := range list {
		d := &list[i]
		n := 0
		if d.Dismissed {
			n = 1
		}
		switch {
		case d.Finding.Severity.Blocks():
		case d.Asked > 0:
			a.Findings, a.Dismissed = a.Findings+1, a.Dismissed+n
		default:
			others, dismissed = others+1, dismissed+n
		}
	}
	a.Base = float64(dismissed) / float64(max(1, others))
	return a
}

// decidersOf are those who decided most.
func decidersOf(cells []*cellOf) (out []share) {
	by, all := map[int64]float64{}, 0.0
	for _, c := range cells {
		by[c.person] += c.weight[0] + c.weight[1]
	}
	for id, w := range by {
		out = append(out, share{id, w})
	}
	slices.SortFunc(out, func(a, b share) int { return cmp.Or(cmp.Compare(b.of, a.of), cmp.Compare(a.person, b.person)) })
	out = out[:min(mostDeciders, len(out))]
	for _, s := range out {
		all += s.of
	}
	if all == 0 { // so long ago that nothing is left of it
		return nil
	}
	for i := range out {
		out[i].of /= all
	}
	return out
}

// newest are the newest decisions that count.
func newest(list []Decision, now time.Time) []Decision {
	out := make([]Decision, 0, len(list))
	for _, d := range list {
		if d.Weight > 0 && !d.At.After(now) {
			out = append(out, d)
		}
	}
	if len(out) <= mostDecisions {
		return out
	}
	times := make([]int64, len(out))
	for i, d := range out {
		times[i] = d.At.UnixMicro()
	}
	slices.Sort(times)
	least := times[len(times)-mostDecisions] // and all of that moment
	return slices.DeleteFunc(out, func(d Decision) bool { return d.At.UnixMicro() < least })
}

// cellsOf sums up the decisions on findings that are the same for the prediction.
// Weights are summed as whole millionths: that is exact in every order.
func (p *Predictor) cellsOf(list []Decision, now time.Time, blocking *[2]float64) []*cellOf {
	type sums struct {
		micro [2]int64
		asked [2]int64
		heard int64
		count [2]int
	}
	all, blocks := map[cell]*sums{}, [2]int64{}
	for i := range list {
		d := &list[i]
		y := 0
		if d.Dismissed {
			y = 1
		}
		weight := 1e6 * d.Weight * math.Exp2(-float64(now.Sub(d.At))/float64(decisionHalfLife))
		stands := 1.0
		if d.Asked > 0 {
			stands = min(mostStood, 1/d.Asked)
		}
		micro := int64(math.Round(weight * min(stands, mostHeard)))
		if d.Finding.Severity.Blocks() {
			blocks[y] += micro
			continue
		}
		c := cell{p.classes.of(&d.Finding), d.Actor.ID, level(d.Finding.Confidence)}
		if all[c] == nil {
			all[c] = &sums{}
		}
		all[c].micro[y] += micro
		if d.Asked > 0 {
			all[c].asked[y] += int64(math.Round(weight * stands))
			all[c].heard += micro
		}
		all[c].count[y]++
	}
	out := make([]*cellOf, 0, len(all))
	for c, s := range all {
		out = append(out, &cellOf{cell: c, weight: whole(s.micro), asked: whole(s.asked), heard: float64(s.heard) / 1e6, count: s.count})
	}
	slices.SortFunc(out, func(a, b *cellOf) int {
		return cmp.Or(a.class.compare(b.class), cmp.Compare(a.person, b.person), cmp.Compare(a.confidence, b.confidence))
	})
	*blocking = whole(blocks)
	return out
}

func whole(micro [2]int64) [2]float64 {
	return [2]float64{float64(micro[0]) / 1e6, float64(micro[1]) / 1e6}
}

// level is a confidence as it is told apart.
func level(confidence float64) int {
	return int(math.Round(confidences * max(0.01, min(0.99, confidence))))
}

// sureness is the log-odds of a confidence, over those of a middling one.
func sureness(tick int) float64 {
	return logit(max(0.01, min(0.99, float64(tick)/confidences))) - logit(middleConfidence)
}

type doubt struct {
	effect
	x float64
}

func (k class) doubts(tick int) []doubt {
	out := []doubt{{effect{name: "findings", mean: wrongMean, sd: wrongSD}, 1},
		{effect{name: "confidence", mean: slopeMean, sd: slopeSD}, sureness(tick)}, {effect{name: string(k.category), mean: 0, sd: doubtSD}, 1}}
	if rule := k.rule(); rule != "" {
		out = append(out, doubt{effect{name: rule, mean: 0, sd: doubtSD}, 1})
	}
	return out
}

// rows gives each cell its rows: one of each regression for what it knows.
func (p *Predictor) rows(cells []*cellOf) {
	type wanted struct {
		class
		person int64
	}
	type doubted struct {
		category   pipeline.Category
		topic      string
		confidence int
	}
	byKind, byDoubt := map[wanted]int{}, map[doubted]int{}
	for _, c := range cells {
		w, ok := byKind[wanted{c.class, c.person}]
		if !ok {
			w = p.unwanted.row()
			byKind[wanted{c.class, c.person}] = w
			for _, e := range append(c.class.effects(), c.class.personal(c.person)...) {
				p.unwanted.add(w, e, 1)
			}
		}
		for _, e := range c.class.effects() {
			at := &p.unwanted.effects[p.unwanted.index[e.name]]
			at.dismissed, at.decided = at.dismissed+c.count[1], at.decided+c.count[0]+c.count[1]
		}
		d, ok := byDoubt[doubted{c.category, c.topic, c.confidence}]
		if !ok {
			d = p.wrong.row()
			byDoubt[doubted{c.category, c.topic, c.confidence}] = d
			for _, e := range c.class.doubts(c.confidence) {
				p.wrong.add(d, e.effect, e.x)
			}
		}
		c.unwanted, c.wrong = w, d
	}
}

// learn finds the most likely effects. Why a finding was dismissed nobody knows: each
// regression gets its share of the blame, by what is known so far, until that does not
// change any more (expectation and maximisation).
func (p *Predictor) learn(cells []*cellOf) {
	p.rows(cells)
	n, m := len(p.unwanted.eta), len(p.wrong.eta)
	weightU, weightW, yesU, yesW := make([]float64, n), make([]float64, m), make([]float64, n), make([]float64, m)
	for _, c := range cells {
		weightU[c.unwanted] += c.weight[0] + c.weight[1]
		weightW[c.wrong] += c.weight[0] + c.weight[1]
	}
	for range fitRounds {
		clear(yesU)
		clear(yesW)
		for _, c := range cells {
			u, w := sigmoid(p.unwanted.eta[c.unwanted]), sigmoid(p.wrong.eta[c.wrong])
			either := u + w - u*w
			yesU[c.unwanted] += c.weight[1] * u / either
			yesW[c.wrong] += c.weight[1] * w / either
		}
		if max(p.unwanted.step(weightU, yesU), p.wrong.step(weightW, yesW)) < fitEnough {
			break
		}
	}
	p.unwanted.settle(weightU)
	p.wrong.settle(weightW)
}

// choose finds the probability from which findings are held back: the highest with
// which, of what people decided on, those that would be posted again are dismissed at
// most at the target's rate. What blocks a merge is always among them. Where useful findings
// are not told from others well enough for that, it is the probability at which the
// share mostLost of them would be held back, but what is surely unwanted. How many are
// among what is held back already, those say that were posted all the same.
func (p *Predictor) choose(cells []*cellOf, blocking [2]float64, target float64) {
	type point struct{ probability, weight, useful float64 }
	points := make([]point, 0, len(cells))
	for _, c := range cells {
		q := p.of(c.class, c.confidence)
		w := c.weight[0] + c.weight[1] - c.heard
		points = append(points, point{q.Dismissed, w + c.asked[0] + c.asked[1], w*(1-either(q.sure, q.Wrong)) + c.asked[0]})
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.probability, b.probability), cmp.Compare(a.weight, b.weight))
	})
	dismissed, all := blocking[1], blocking[0]+blocking[1]
	p.cut = min(mostCut*target, 1)
	for _, x := range points {
		dismissed, all = dismissed+x.weight-x.useful, all+x.weight
		if dismissed > target*all {
			p.cut = min(p.cut, x.probability)
			break
		}
	}
	p.cut = max(p.cut, min(leastCut*target, 1))
	useful, lost := 0.0, 0.0
	for _, x := range points {
		useful += x.useful
	}
	for i := len(points) - 1; i >= 0 && points[i].probability >= p.cut; i-- {
		x := points[i]
		if lost += x.useful; lost > mostLost*useful {
			p.cut = max(p.cut, min(x.probability, unwantedSurely))
			break
		}
	}
}

// Prediction is how likely people are to dismiss a finding, and why. All are 0 to 1.
type Prediction struct {
	Dismissed  float64 `json:"dismissed"` // for either reason
	Unwanted   float64 `json:"unwanted"`  // because nobody wants to hear such things
	Wrong      float64 `json:"wrong"`     // because it is wrong
	Cut        float64 `json:"cut"`       // over which it is held back
	Suppressed bool    `json:"held"`
	Asked      float64 `json:"asked,omitempty"` // share of its like that is posted all the same, and it is of that
	Why        string  `json:"why,omitempty"`   // it is held back, for people
}

// Predict says how likely people here are to dismiss a finding, and whether it is held
// back: where that is likelier than the cut even if its kind has the benefit of the
// doubt that is left, or where its kind is likelier unwanted than wanted; except for one in
// twenty, which its fingerprint chooses, so that people who changed their minds are heard.
func (p *Predictor) Predict(f *pipeline.Finding) Prediction {
	if p == nil || p.classes == nil || f.Severity.Blocks() {
		return Prediction{Cut: 1}
	}
	k := p.classes.of(f)
	q := p.of(k, level(f.Confidence))
	if over := either(q.sure, q.Wrong) > p.cut || q.Dismissed > p.cut && q.Unwanted > unwantedPlainly; over && draw(f.Fingerprint) < askAgain {
		q.Asked = askAgain
	} else if over {
		q.Suppressed, q.Why = true, p.why(k, f, &q.Prediction)
	}
	return q.Prediction
}

type prediction struct {
	Prediction
	sure float64 // what it is not wanted at least
}

func (p *Predictor) of(k class, confidence int) (q prediction) {
	var u, variance, told, w float64
	for _, e := range k.effects() {
		value, v := p.unwanted.of(e)
		if u += value; !e.light {
			variance += v
		}
		if e.name == k.rule()+" in "+k.dir || e.name == string(k.category)+" in "+k.dir && k.topic == "" {
			told = 1/v - 1/(e.sd*e.sd)
		}
	}
	// The effects of one kind are not known apart, but together they are: what was
	// decided on just this kind makes it surer than its effects are one by one.
	variance = 1 / (1/variance + max(0, told))
	for _, e := range k.doubts(confidence) {
		value, _ := p.wrong.of(e.effect)
		w += value * e.x
	}
	q.Wrong, q.Cut = sigmoid(w), p.cut
	q.Unwanted, q.sure = p.decided(k, u, variance)
	q.Dismissed = either(q.Unwanted, q.Wrong)
	return q
}

// decided is how likely a kind of findings is unwanted, and at least unwanted, by who may
// decide: whoever is expected to, and the others by how much they do.
func (p *Predictor) decided(k class, u, variance float64) (unwanted, sure float64) {
	rest := 1.0
	add := func(person int64, part float64) {
		x, v := u, variance
		for _, e := range k.personal(person) {
			value, about := p.unwanted.of(e)
			x, v = x+value, v+about
		}
		rest -= part
		unwanted, sure = unwanted+part*sigmoid(x), sure+part*sigmoid(x-benefit*math.Sqrt(v))
	}
	others := 1.0
	if p.decider != 0 {
		add(p.decider, expected)
		others -= expected
	}
	for _, s := range p.deciders {
		add(s.person, others*s.of)
	}
	if rest = max(0, rest); rest > 1e-9 { // nobody is known
		unwanted, sure = unwanted+rest*sigmoid(u), sure+rest*sigmoid(u-benefit*math.Sqrt(variance))
	}
	return unwanted, sure
}

// either is the probability of one of two things that have nothing to do with each other.
func either(a, b float64) float64 { return a + b - a*b }

// why says what speaks most clearly against a finding.
func (p *Predictor) why(k class, f *pipeline.Finding, q *Prediction) string {
	likely := fmt.Sprintf("people here would dismiss it with a probability of %.0f %%", 100*q.Dismissed)
	var best *learntEffect
	clearest := 0.0
	for _, e := range k.effects() {
		j, ok := p.unwanted.index[e.name]
		if !ok || e.light && best != nil || p.unwanted.effects[j].decided < decisionsForPrediction {
			continue
		}
		at := &p.unwanted.effects[j]
		if low, _ := shareBounds(float64(at.dismissed)/float64(at.decided), float64(at.decided)); low >= clearest {
			best, clearest = at, low
		}
	}
	if q.Wrong > q.Unwanted || best == nil {
		return fmt.Sprintf("%s: with a confidence of %.2f such findings turn out wrong", likely, f.Confidence)
	}
	return fmt.Sprintf("%s: %d of %d like it were dismissed: %s", likely, best.dismissed, best.decided, best.name)
}

// shareBounds is Wilson's score interval of a share p of n, each bound at 90 %.
func shareBounds(p, n float64) (low, high float64) {
	const z = 1.2815515655446004 // one-sided 90 % quantile of the normal distribution
	centre := p + z*z/(2*n)
	half := z * math.Sqrt(max(0, p*(1-p)/n+z*z/(4*n*n)))
	return max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
}

// draw gives a number from 0 to 1 that belongs to a fingerprint (FNV-1a, mixed as in
// MurmurHash3).
func draw(s string) float64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}
