// Package learn looks at what runs did and says what can be learnt from it.
//
// It measures the inner loop: how many turns each phase took, and how the agents'
// tools fared (requirement I3, [Measure]). It says what people's signals do to
// what Forge remembers ([Judge], H1–H6), which findings are posted ([Filter]),
// and what becomes of learnings over time ([Effective], [Consolidate],
// [Contradictions], [Retire]). All of it is pure: the memory is a function of the
// set of signals, whatever their order, and the database keeps it. It stores nothing.
package learn

import (
	"cmp"
	"slices"

	"forge/pipeline"
)

// Tool is how a tool fared.
type Tool struct {
	Name     string  `json:"name"`
	Calls    int     `json:"calls"`
	Success  float64 `json:"success"`            // share of calls that succeeded, 0 to 1
	MeanMS   float64 `json:"mean_ms"`            // duration of a call in milliseconds
	MicroUSD float64 `json:"micro_usd"`          // mean cost of a call: that of the model's turn that asked for it, shared by the calls of the turn
	Unpriced int     `json:"unpriced,omitempty"` // calls that a model without a price asked for: MicroUSD is not known
}

// Phase is what a phase took, over all its executions.
type Phase struct {
	Name     pipeline.Phase `json:"name"`
	Runs     int            `json:"runs"`  // executions that ended with a result
	Turns    int            `json:"turns"` // of agents
	Millis   int64          `json:"ms"`
	MicroUSD int64          `json:"micro_usd"`
	Unpriced int64          `json:"unpriced,omitempty"` // tokens of models without a price, which are not in MicroUSD
}

// InnerLoop is what the inner loop of a run took.
type InnerLoop struct {
	Phases []Phase `json:"phases"` // in the order of the loop; those that happened
	Tools  []Tool  `json:"tools"`  // most used first
}

type turn struct {
	phase           pipeline.Phase
	iteration, step int
}

// Measure computes the inner loop's figures from a run's events.
func Measure(events []pipeline.Event) InnerLoop {
	phases := map[pipeline.Phase]*Phase{}
	phase := func(p pipeline.Phase) *Phase {
		if phases[p] == nil {
			phases[p] = &Phase{Name: p}
		}
		return phases[p]
	}
	calls := map[turn]int{} // of tools, by turn
	costs := map[turn]pipeline.Usage{}
	for _, e := range events {
		switch d := e.Data; {
		case e.Type == pipeline.EventAgentIteration && d.Step != nil:
			p := phase(d.Step.Phase)
			p.Turns++
			p.MicroUSD += d.Step.Usage.MicroUSD
			p.Unpriced += d.Step.Usage.Unpriced
			at := turn{d.Step.Phase, d.Step.Iteration, d.Step.Number}
			sum := costs[at]
			sum.Add(d.Step.Usage)
			costs[at] = sum
		case e.Type == pipeline.EventToolExecuted && d.Tool != nil:
			calls[turn{d.Tool.Phase, d.Tool.Iteration, d.Tool.Step}]++
		case e.Type == pipeline.EventPhaseCompleted && d.Phase != nil:
			p := phase(d.Phase.Phase)
			p.Runs++
			p.Millis += d.Phase.Millis
		}
	}
	in := InnerLoop{Phases: []Phase{}, Tools: tools(events, calls, costs)}
	for _, name := range []pipeline.Phase{pipeline.PhaseAnalyse, pipeline.PhaseDesign, pipeline.PhasePlan,
		pipeline.PhaseImplement, pipeline.PhaseReview, pipeline.PhaseTest} {
		if p := phases[name]; p != nil {
			in.Phases = append(in.Phases, *p)
		}
	}
	return in
}

func tools(events []pipeline.Event, calls map[turn]int, costs map[turn]pipeline.Usage) []Tool {
	sums := map[string]*Tool{}
	for _, e := range events {
		d := e.Data.Tool
		if e.Type != pipeline.EventToolExecuted || d == nil {
			continue
		}
		t := sums[d.Tool]
		if t == nil {
			t = &Tool{Name: d.Tool}
			sums[d.Tool] = t
		}
		t.Calls++
		t.MeanMS += float64(d.Millis)
		if d.OK {
			t.Success++
		}
		at := turn{d.Phase, d.Iteration, d.Step}
		t.MicroUSD += float64(costs[at].MicroUSD) / float64(calls[at])
		if costs[at].Unpriced > 0 {
			t.Unpriced++
		}
	}
	out := []Tool{}
	for _, t := range sums {
		n := float64(t.Calls)
		t.Success, t.MeanMS, t.MicroUSD = t.Success/n, t.MeanMS/n, t.MicroUSD/n
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Tool) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
	return out
}
