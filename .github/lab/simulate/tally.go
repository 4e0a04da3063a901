package simulate

import (
	"cmp"
	"maps"
	"slices"

	"forge/pipeline"
)

// Tally sums up how runs went under one policy. It holds whole numbers alone, so
// that the sum does not depend on the order in which runs are added.
type Tally struct {
	Runs       int   `json:"runs"`
	Verified   int   `json:"verified"`
	Sound      int   `json:"sound"`      // verified, and nothing was wrong with it
	Iterations int   `json:"iterations"` // begun, in all
	Wasted     int   `json:"wasted"`     // of them: those after the last one that left fewer defects than there ever were
	Idle       int   `json:"idle"`       // of them: those after the last one that left fewer defects than there were before it
	MicroUSD   int64 `json:"micro_usd"`
	Escalated  int   `json:"escalated"`
	Right      int   `json:"right"` // escalated, and ten more iterations would not have verified it

	Guards map[pipeline.GuardName]GuardTally `json:"guards,omitempty"` // that escalated
}

// GuardTally sums up what a guard did.
type GuardTally struct {
	Fired  int `json:"fired"`
	Right  int `json:"right"`
	Wasted int `json:"wasted"` // iterations, until it fired
	Later  int `json:"later"`  // iterations until it would have been verified, over those where it was wrong
}

// VerifiedShare is the share of runs that were verified.
func (t *Tally) VerifiedShare() float64 { return ratio(t.Verified, t.Runs) }

// WastedPerRun is the mean number of wasted iterations.
func (t *Tally) WastedPerRun() float64 { return ratio(t.Wasted, t.Runs) }

// IdlePerRun is the mean number of idle iterations.
func (t *Tally) IdlePerRun() float64 { return ratio(t.Idle, t.Runs) }

// CostPerRun is the mean cost in dollars.
func (t *Tally) CostPerRun() float64 { return ratio(t.MicroUSD, t.Runs) / 1e6 }

// CostPerVerified is what a verified run costs in dollars: what all runs cost, and what
// the time of people is worth who are asked, a question.
func (t *Tally) CostPerVerified(question float64) float64 {
	return ratio(t.MicroUSD+int64(question*1e6)*int64(t.Escalated), t.Verified) / 1e6
}

// CostPerSound is the same of a verified run in which no defect was left.
func (t *Tally) CostPerSound(question float64) float64 {
	return ratio(t.MicroUSD+int64(question*1e6)*int64(t.Escalated), t.Sound) / 1e6
}

// IterationsPerRun is the mean number of iterations begun.
func (t *Tally) IterationsPerRun() float64 { return ratio(t.Iterations, t.Runs) }

// EscalatedShare is the share of runs that ended with a question.
func (t *Tally) EscalatedShare() float64 { return ratio(t.Escalated, t.Runs) }

// RightShare is the share of escalations that were right.
func (t *Tally) RightShare() float64 { return ratio(t.Right, t.Escalated) }

// SoundShare is the share of what was verified with nothing wrong with it.
func (t *Tally) SoundShare() float64 { return ratio(t.Sound, t.Verified) }

// RightShare is the share of its firings that were right.
func (g GuardTally) RightShare() float64 { return ratio(g.Right, g.Fired) }

// WastedMean is the mean number of wasted iterations before it fired.
func (g GuardTally) WastedMean() float64 { return ratio(g.Wasted, g.Fired) }

// LaterMean is the mean number of iterations after which a run that it stopped
// wrongly would have been verified.
func (g GuardTally) LaterMean() float64 { return ratio(g.Later, g.Fired-g.Right) }

func ratio[N int | int64](a N, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// GuardNames lists the guards that fired, most often first.
func (t *Tally) GuardNames() []pipeline.GuardName {
	return slices.SortedFunc(maps.Keys(t.Guards), func(a, b pipeline.GuardName) int {
		return cmp.Or(cmp.Compare(t.Guards[b].Fired, t.Guards[a].Fired), cmp.Compare(a, b))
	})
}

// decided books a run under the policy that it was played with.
func (t *Tally) decided(c *trajectory) {
	if c.guard == "" {
		t.passed(c, c.cost)
		return
	}
	wasted := since(c.useful, c.stopped)
	g := GuardTally{Fired: 1, Wasted: wasted}
	if c.verified == 0 {
		g.Right = 1
	} else {
		g.Later = c.verified - c.stopped
	}
	t.add(&Tally{Runs: 1, Iterations: c.stopped, Wasted: wasted, Idle: since(c.improved, c.stopped), MicroUSD: c.cost, Escalated: 1,
		Right: g.Right, Guards: map[pipeline.GuardName]GuardTally{c.guard: g}})
}

// limited books a run as it goes under a fixed limit. Such a loop does what a loop
// with a higher limit does, until it stops: c was played far beyond the limit.
func (t *Tally) limited(c *trajectory, limit int) {
	if c.verified > 0 && c.verified <= limit {
		t.passed(c, c.micro[c.verified-1])
		return
	}
	right := 0
	if c.verified == 0 || c.verified > limit+beyond {
		right = 1
	}
	t.add(&Tally{Runs: 1, Iterations: limit, Wasted: since(c.useful, limit), Idle: since(c.improved, limit), MicroUSD: c.micro[limit-1],
		Escalated: 1, Right: right})
}

func (t *Tally) passed(c *trajectory, micro int64) {
	sound := 0
	if c.sound {
		sound = 1
	}
	t.add(&Tally{Runs: 1, Verified: 1, Sound: sound, Iterations: c.verified, MicroUSD: micro})
}

func (t *Tally) add(o *Tally) {
	t.Runs += o.Runs
	t.Verified += o.Verified
	t.Sound += o.Sound
	t.Iterations += o.Iterations
	t.Wasted += o.Wasted
	t.Idle += o.Idle
	t.MicroUSD += o.MicroUSD
	t.Escalated += o.Escalated
	t.Right += o.Right
	for name, n := range o.Guards {
		if t.Guards == nil {
			t.Guards = map[pipeline.GuardName]GuardTally{}
		}
		g := t.Guards[name]
		g.Fired += n.Fired
		g.Right += n.Right
		g.Wasted += n.Wasted
		g.Later += n.Later
		t.Guards[name] = g
	}
}
