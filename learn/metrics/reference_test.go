package metrics

import (
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// observation is one value of a metric, on its day.
type observation struct {
	metric, label string
	day           int64
	value         float64
}

// observe is what the package is held against: it goes through a run's log anew
// for each metric, and keeps every observation. It knows nothing of sums, and does
// not fold the run.
func observe(events []pipeline.Event) (out []observation) {
	see := func(at time.Time, metric, label string, value float64) {
		out = append(out, observation{metric, label, DayOf(at), value})
	}
	yes := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	end := slices.IndexFunc(events, func(e pipeline.Event) bool {
		return e.Type == pipeline.EventRunVerified || e.Type == pipeline.EventRunAccepted || e.Type == pipeline.EventRunCancelled
	})
	ended := func(metric, label string, value float64) {
		if end >= 0 {
			see(events[end].Time, metric, label, value)
		}
	}
	count := func(is func(e pipeline.Event) bool) float64 {
		n := 0.0
		for _, e := range events {
			n += yes(is(e))
		}
		return n
	}
	observeInner(events, see)
	observeLoop(events, end, see)
	observeMemory(events, see)
	observePeople(events, see)

	for _, p := range []pipeline.Phase{"plan", "implement", "review", "test"} {
		ended(PhaseIterations, string(p), count(func(e pipeline.Event) bool { return e.Type == pipeline.EventPhaseCompleted && e.Data.Phase.Phase == p }))
	}
	rounds := map[int]bool{}
	for _, e := range events {
		if e.Type == pipeline.EventPhaseEntered && e.Data.Phase.Iteration > 0 {
			rounds[e.Data.Phase.Iteration] = true
		}
	}
	ended(PhaseIterations, "", float64(len(rounds)))
	for _, p := range []pipeline.Phase{"review", "test"} {
		ended(Bounces, string(p), count(func(e pipeline.Event) bool { return e.Type == pipeline.EventBounce && e.Data.Bounce.Phase == p }))
	}
	ended(Bounces, "", count(func(e pipeline.Event) bool { return e.Type == pipeline.EventBounce }))
	ended(Diminishing, "", min(1, count(func(e pipeline.Event) bool { return e.Type == pipeline.EventDiminishing })))
	ended(Escalation, "", min(1, count(func(e pipeline.Event) bool {
		return e.Type == pipeline.EventGateRequested && strings.Contains("escalation stuck budget", string(e.Data.Gate.Kind))
	})))
	verified := end >= 0 && events[end].Type == pipeline.EventRunVerified
	ended(Success, "", yes(verified))
	ended(QuickPass, "", yes(verified && len(rounds) <= 2))
	cost, learnings := 0.0, 0.0
	for _, e := range events {
		if e.Type == pipeline.EventAgentIteration {
			cost += float64(e.Data.Step.Usage.MicroUSD)
		}
		if e.Type == pipeline.EventReflection {
			learnings += float64(len(e.Data.Reflection.Learnings))
		}
		if e.Type == pipeline.EventPublishCompleted || e.Type == pipeline.EventPublishFailed {
			see(e.Time, PublishFailure, "", yes(e.Type == pipeline.EventPublishFailed))
		}
	}
	ended(Cost, "", cost)
	ended(Learnings, "", learnings)
	return out
}

type seeFunc = func(at time.Time, metric, label string, value float64)

func observeInner(events []pipeline.Event, see seeFunc) {
	name := func(t *pipeline.ToolUse) string {
		if t.Tool == "No Such Tool" {
			return "other"
		}
		return t.Tool
	}
	for i, e := range events {
		switch {
		case e.Type == pipeline.EventAgentIteration && e.Data.Step.Usage.Calls > 0:
			s := e.Data.Step
			for label, n := range map[string]int64{"": s.Usage.Input + s.Usage.Output, "input": s.Usage.Input - s.Usage.CachedInput, "cached": s.Usage.CachedInput,
				"output": s.Usage.Output - s.Usage.Reasoning, "reasoning": s.Usage.Reasoning} {
				see(e.Time, ModelTokens, label, float64(n))
			}
			see(e.Time, ModelAdapted, "", min(1, float64(len(s.Adapted))))
			for _, how := range pipeline.Adaptations() {
				see(e.Time, ModelAdapted, how, float64(strings.Count(strings.Join(s.Adapted, "|"), how)))
			}
		case e.Type == pipeline.EventToolExecuted:
			ok := 0.0
			if e.Data.Tool.OK {
				ok = 1
			}
			see(e.Time, ToolSuccess, name(e.Data.Tool), ok)
			see(e.Time, ToolDuration, name(e.Data.Tool), float64(e.Data.Tool.Millis))
		case e.Type == pipeline.EventPhaseEntered:
			observeExecution(events[i:], see, name)
		}
	}
}

// observeExecution looks at the execution that begins with the first event.
func observeExecution(events []pipeline.Event, see seeFunc, name func(*pipeline.ToolUse) string) {
	turns, advised := 0.0, 0.0
	cost, tools, first := map[int]int64{}, map[int][]string{}, map[int]time.Time{}
	var stop *pipeline.Event
	for i, e := range events[1:] {
		if e.Type == pipeline.EventAgentIteration {
			turns++
			if e.Data.Step.Advice != "" {
				advised = 1
			}
			cost[e.Data.Step.Number] += e.Data.Step.Usage.MicroUSD
			if first[e.Data.Step.Number].IsZero() {
				first[e.Data.Step.Number] = e.Time
			}
		}
		if e.Type == pipeline.EventToolExecuted {
			t := e.Data.Tool
			tools[t.Step] = append(tools[t.Step], name(t))
			if first[t.Step].IsZero() {
				first[t.Step] = e.Time
			}
		}
		if e.Type == pipeline.EventPhaseCompleted || e.Type == pipeline.EventPhaseFailed {
			stop = &events[1+i]
			break
		}
	}
	for step, list := range tools {
		rest := cost[step]
		for i, tool := range list { // as even as whole micro-dollars can be, the larger ones first
			n := int64(len(list) - i)
			part := (rest + n - 1) / n
			rest -= part
			see(first[step], ToolCost, tool, float64(part))
		}
	}
	if stop == nil {
		return
	}
	p := stop.Data.Phase
	if turns > 0 {
		see(stop.Time, Stagnation, string(p.Phase), advised)
	}
	if stop.Type == pipeline.EventPhaseCompleted {
		see(stop.Time, PhaseDuration, string(p.Phase), float64(p.Millis))
		if turns > 0 {
			see(stop.Time, PhaseTurns, string(p.Phase), turns)
		}
	}
}

// seenIn returns the fingerprints in a phase's result.
func seenIn(e pipeline.Event) map[string]bool {
	seen := map[string]bool{}
	if e.Data.Review != nil {
		for _, f := range e.Data.Review.Findings {
			seen[f.Fingerprint] = true
		}
	}
	if e.Data.Tests != nil {
		for _, f := range e.Data.Tests.Failures {
			seen[f.Fingerprint] = true
		}
	}
	return seen
}

func observeLoop(events []pipeline.Event, end int, see seeFunc) {
	work, over, last := map[int]int64{}, map[int]time.Time{}, 0
	reviewed := -1
	for i, e := range events {
		switch e.Type {
		case pipeline.EventPhaseEntered:
			last = e.Data.Phase.Iteration
		case pipeline.EventPhaseCompleted, pipeline.EventPhaseFailed:
			work[e.Data.Phase.Iteration] += e.Data.Phase.Millis
			if e.Data.Review != nil && reviewed < 0 {
				reviewed = i
			}
		case pipeline.EventBounce:
			over[e.Data.Bounce.Iteration] = e.Time
			observeBounce(events, i, end >= 0, see)
		}
	}
	if end >= 0 && last > 0 && over[last].IsZero() {
		over[last] = events[end].Time
	}
	for iteration, at := range over {
		see(at, IterationTime, "", float64(work[iteration]))
	}
	if reviewed < 0 {
		return
	}
	for _, e := range events[reviewed:] {
		manual := e.Type == pipeline.EventGateRequested && e.Data.Gate.Kind == pipeline.GateApproval
		if e.Type == pipeline.EventPhaseApproved {
			see(events[reviewed].Time, FirstPass, "", 1)
			return
		}
		if !manual && slices.Contains([]pipeline.EventType{pipeline.EventBounce, pipeline.EventDiminishing, pipeline.EventGuardFired,
			pipeline.EventGateRequested}, e.Type) {
			see(events[reviewed].Time, FirstPass, "", 0)
			return
		}
	}
}

func observeBounce(events []pipeline.Event, i int, ended bool, see seeFunc) {
	b := events[i].Data.Bounce
	followed, resolved, looked := false, 0.0, false
	for _, e := range events[i+1:] {
		if e.Type == pipeline.EventBounce && e.Data.Bounce.Phase == b.Phase {
			followed = true
			break
		}
		if e.Type != pipeline.EventPhaseCompleted || e.Data.Phase.Phase != b.Phase {
			continue
		}
		left, seen := 0, seenIn(e)
		for _, fp := range b.Issues {
			if seen[fp] {
				left++
			}
		}
		if resolved = 0; left == 0 {
			resolved = 1
		}
		if !looked {
			fixed := 0.0
			if left < len(b.Issues) {
				fixed = 1
			}
			see(events[i].Time, IterationFixes, "", fixed)
		}
		looked = true
	}
	if followed || resolved == 1 || ended {
		see(events[i].Time, BounceResolution, string(b.Phase), resolved)
	}
}

func observeMemory(events []pipeline.Event, see seeFunc) {
	type key struct {
		phase     pipeline.Phase
		iteration int
	}
	given, used, at := map[key]map[int64]bool{}, map[key]map[int64]bool{}, map[key]time.Time{}
	for _, e := range events {
		r := e.Data.Recall
		if r == nil {
			continue
		}
		k := key{r.Phase, r.Iteration}
		if at[k].IsZero() {
			at[k], given[k], used[k] = e.Time, map[int64]bool{}, map[int64]bool{}
		}
		for _, id := range r.Given {
			given[k][id] = true
		}
		for _, id := range r.Used {
			used[k][id] = true
		}
	}
	for k, ids := range given {
		any := 0.0
		for id := range ids {
			if used[k][id] {
				any = 1
				see(at[k], Precision, "", 1)
			} else {
				see(at[k], Precision, "", 0)
			}
		}
		if len(ids) > 0 {
			see(at[k], Application, "", any)
		}
	}
}

func observePeople(events []pipeline.Event, see seeFunc) {
	dismissed := map[string]bool{}
	for _, e := range events { // later ones count
		if e.Type == pipeline.EventDismissed {
			dismissed[e.Data.Signal.Finding] = !e.Data.Signal.Off
		}
	}
	known := map[string]bool{}
	for i, e := range events {
		if e.Data.Review != nil {
			for _, f := range e.Data.Review.Findings {
				if !known[f.Fingerprint] {
					known[f.Fingerprint] = true
					category, value := string(f.Category), 0.0
					if category == "nonsense" {
						category = "other"
					}
					if dismissed[f.Fingerprint] {
						value = 1
					}
					see(e.Time, Dismissal, category, value)
				}
			}
		}
		if e.Type != pipeline.EventGateRequested {
			continue
		}
		first, override, closed := true, 0.0, false
		for _, later := range events[i+1:] {
			a := later.Data.Answer
			if a == nil || a.Gate != e.Data.Gate.ID {
				if later.Type == pipeline.EventRunCancelled {
					closed = true
				}
				continue
			}
			if later.Type == pipeline.EventGateOverride {
				override = 1
			}
			if later.Type != pipeline.EventGateAnswered {
				continue
			}
			if first {
				see(e.Time, Response, "", float64(later.Time.Sub(e.Time).Milliseconds()))
			}
			first = false
			closed = closed || a.Choice != "history"
		}
		if closed && !first && e.Data.Gate.Kind != pipeline.GateApproval {
			see(e.Time, Override, "", override)
		}
	}
}
