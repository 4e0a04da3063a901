package predict

import "math"

// logistic is a logistic regression in which each effect has a normal distribution
// beforehand, so that what little is known of it is pulled to what is assumed. Its
// rows are what is predicted.
type logistic struct {
	index   map[string]int
	effects []learntEffect
	eta     []float64 // of each row: its log-odds
	left    []float64 // of each row: what is not explained yet, while it is fitted
	bend    []float64 // of each row: the curvature there
}

type learntEffect struct {
	effect
	value     float64
	precision float64 // how sure it is: one over the variance, the other effects being known
	on        []entry
	dismissed int // findings that have it
	decided   int
}

type entry struct {
	row int
	x   float64
}

// row adds a row without effects.
func (g *logistic) row() int {
	g.eta, g.left, g.bend = append(g.eta, 0), append(g.left, 0), append(g.bend, 0)
	return len(g.eta) - 1
}

// add says that a row has an effect, x times.
func (g *logistic) add(row int, e effect, x float64) {
	if g.index == nil {
		g.index = map[string]int{}
	}
	j, ok := g.index[e.name]
	if !ok {
		j = len(g.effects)
		g.index[e.name] = j
		g.effects = append(g.effects, learntEffect{effect: e, value: e.mean, precision: 1 / (e.sd * e.sd)})
	}
	at := &g.effects[j]
	at.on = append(at.on, entry{row, x})
	g.eta[row] += at.value * x
}

// step goes towards the most likely effects, given each row's weight and, of it, what
// is true. It never leads away from them: its curvature is the bound of Jaakkola and
// Jordan (Statistics and Computing 10, 2000). It returns the largest change.
func (g *logistic) step(weight, yes []float64) (most float64) {
	for i, eta := range g.eta {
		g.bend[i] = weight[i] * bound(eta)
		g.left[i] = yes[i] - weight[i]*sigmoid(eta)
	}
	for range 2 {
		for j := range g.effects {
			e := &g.effects[j]
			prior := e.prior()
			slope, bend := prior*(e.mean-e.value), prior
			for _, o := range e.on {
				slope += o.x * g.left[o.row]
				bend += o.x * o.x * g.bend[o.row]
			}
			d := slope / bend
			e.value += d
			for _, o := range e.on {
				g.left[o.row] -= d * o.x * g.bend[o.row]
				g.eta[o.row] += d * o.x
			}
			most = max(most, math.Abs(d))
		}
	}
	return most
}

// tails is how many degrees of freedom the distribution of an effect has beforehand that is
// mostly about nothing, and then about much (Student's t).
const tails = 2

// prior is how sure what is assumed of an effect is: one over the variance.
func (e *learntEffect) prior() float64 {
	if !e.rare {
		return 1 / (e.sd * e.sd)
	}
	d := e.value - e.mean
	return (tails + 1) / (tails*e.sd*e.sd + d*d)
}

// settle computes how sure the effects are.
func (g *logistic) settle(weight []float64) {
	for j := range g.effects {
		e := &g.effects[j]
		e.precision = e.prior()
		for _, o := range e.on {
			m := sigmoid(g.eta[o.row])
			e.precision += o.x * o.x * weight[o.row] * m * (1 - m)
		}
	}
}

// of returns what is known of an effect: its value and its variance.
func (g *logistic) of(e effect) (value, variance float64) {
	if j, ok := g.index[e.name]; ok {
		return g.effects[j].value, 1 / g.effects[j].precision
	}
	return e.mean, e.sd * e.sd
}

func bound(eta float64) float64 {
	if math.Abs(eta) < 1e-3 {
		return 0.25
	}
	return math.Tanh(eta/2) / (2 * eta)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func logit(p float64) float64   { return math.Log(p / (1 - p)) }
